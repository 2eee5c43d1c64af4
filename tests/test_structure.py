"""Data flow one way, and imports say so: a module imports only from its own folder and from those above it."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import cosim

PACKAGE = Path(cosim.__file__).parent
# A folder imports from these, all above it in the list, and from no other. docs/develop/architecture.md has the list.
ROOMS = {
    "base": (),
    "technology": ("base",),
    "network": ("base",),
    "tasks": ("base", "network"),
    "circuit": ("base", "technology"),
    "cells": ("circuit", "technology"),
    "units": ("base", "cells", "circuit", "network", "technology"),
    "exchange": ("base", "network", "units"),
    "compiler": ("base", "cells", "circuit", "network", "technology", "units"),
    "variation": ("base", "circuit", "technology"),
    "engines": (
        "base", "cells", "circuit", "compiler", "network", "tasks", "technology", "units", "variation",
    ),
    "training": ("base", "exchange", "network", "tasks", "technology", "variation"),
    "automata": ("base", "network", "training"),
    "papers": ("base", "network", "tasks", "training"),
    "mask": ("base", "circuit", "compiler", "technology"),
    "results": ("base",),
    "cli": ("base",),
    "verbs": (
        "automata", "base", "cells", "circuit", "cli", "compiler", "engines", "exchange", "mask", "network", "papers",
        "results", "tasks", "technology", "training", "units", "variation",
    ),
}  # fmt: skip
MOST_ROOMS, MOST_EDGES = 18, 70
WINGS = {"mask", "automata", "papers"}  # they build on the rest; of the rest, verbs alone know them
DOORS = {"__init__", "__main__"}  # `import cosim` and `python -m cosim`
# who may import what, anywhere in the module; everyone else may not
MATPLOTLIB = {"verbs/compare/pvt.py", "results/figures.py"}
PYSPICE = {"engines/ngspice/server.py"}
TORCH = ("training/", "papers/", "automata/train_")  # what modules begin with
TORCH_LAZY = {"exchange/checkpoint.py", "base/arrays.py"}
TQDM = {"cli/progress.py"}
OPTUNA = {"verbs/explore/search.py"}
NUMBA = {  # kernels take it from there
    "engines/batch/compiled.py",
    "engines/batch/cuda.py",
    "engines/batch/cuda_threads.py",
    "engines/batch/lanes.py",
}

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "py.typed")


@cache
def imports(module, top_level=False):
    """Dotted names that a module imports; with `top_level` only what importing it imports."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))

    def walk(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module} imports relatively"
                yield child.module
            elif top_level and (isinstance(child, ast.FunctionDef | ast.Lambda) or is_type_checking(child)):
                continue
            else:
                yield from walk(child)

    return list(walk(tree))


def is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def folder(module):
    return module.split("/")[0].removesuffix(".py")


def rooms_of(module):
    """The other folders that a module imports from."""
    names = {name.split(".")[1] for name in imports(module) if name.startswith("cosim.")}
    return names - {folder(module)}


def test_every_folder_has_its_place():
    assert {folder(module) for module in MODULES} == {*ROOMS, *DOORS}


def test_the_manual_lists_the_folders_in_their_order():
    page = (PACKAGE.parent / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| Folder |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\w+) \|", table, re.MULTILINE) == list(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_folder_imports_from_those_that_it_may(room):
    found = {other: module for module in MODULES if folder(module) == room for other in rooms_of(module)}
    assert {other: found[other] for other in found if other not in ROOMS[room]} == {}
    assert set(ROOMS[room]) == set(found), "an entry that nothing needs"


def test_the_house_can_be_held_in_the_head():
    places = list(ROOMS)
    assert all(places.index(other) < places.index(room) for room, others in ROOMS.items() for other in others)
    assert len(ROOMS) <= MOST_ROOMS
    assert sum(map(len, ROOMS.values())) <= MOST_EDGES


def test_wings_are_known_to_verbs_alone():
    assert all(not WINGS & set(others) for room, others in ROOMS.items() if room not in WINGS | {"verbs"})


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("PySpice", PYSPICE),
        ("matplotlib", MATPLOTLIB),
        ("torch", TORCH_LAZY),
        ("tqdm", TQDM),
        ("optuna", OPTUNA),
        ("numba", NUMBA | {"engines/table.py"}),  # it looks for a device
        ("llvmlite", NUMBA),
    ],
)
def test_who_may_import_what(library, allowed):
    found = {module for module in MODULES if any(name.split(".")[0] == library for name in imports(module))}
    if library == "torch":
        found = {module for module in found if not module.startswith(TORCH)}
    assert found <= allowed
    assert found  # a name that nobody imports would prove nothing


def test_torch_is_not_imported_with_any_module_outside_its_folders():
    for module in MODULES:
        if not module.startswith(TORCH):
            assert not any(name.split(".")[0] == "torch" for name in imports(module, top_level=True)), module


def test_no_package_root_is_imported_by_its_own_modules():
    """`from cosim.units import x` inside cosim/units would be a cycle in waiting."""
    for module in MODULES:
        for name in imports(module):
            assert name != f"cosim.{folder(module)}" or "/" not in module, module


def test_all_modules_but_those_of_torch_import_without_torch_or_pyspice():
    free = [module for module in MODULES if not module.startswith(TORCH) and module != "__init__.py"]
    wanted = [f"cosim.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for module in free]
    code = f"""
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("torch", "PySpice"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
for name in {wanted!r}:
    importlib.import_module(name)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def compiled():
    """Modules that import numba, or one that does, at once."""
    of = {module: set(imports(module, top_level=True)) for module in MODULES}
    found, before = set(NUMBA), set()
    while found != before:
        before = set(found)
        names = {f"cosim.{module.removesuffix('.py').replace('/', '.')}" for module in found}
        found |= {module for module, imported in of.items() if names & imported}
    return found


def test_only_the_batch_engine_needs_numba():
    """Without it every other module and engine can be loaded; --engine batch says what is missing."""
    need = compiled()
    assert all(module.startswith("engines/batch/") for module in need)
    wanted = [module for module in MODULES if module not in need and not module.startswith(TORCH)]
    names = [f"cosim.{module.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}" for module in wanted]
    code = f"""
import importlib, sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
for name in {[name for name in names if name != "cosim.__init__"]!r}:
    importlib.import_module(name)
from cosim.engines.table import engines
from cosim.base.errors import MissingToolError
for entry in engines():
    try:
        entry.load()
        assert entry.name not in ("batch", "cuda")
    except MissingToolError as error:
        assert entry.name in ("batch", "cuda") and "numba is missing" in str(error)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
