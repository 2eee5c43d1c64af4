"""scripts/mutate.py: what it changes, and that it says killed and survived as it is."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
SOURCE = '''"""A docstring of 1."""

Number = int | float


def clipped(low: float, high: float = 2.5) -> float:
    """Another of 2."""
    return max(low - 3, 0.0) if low < high else high
'''
CHANGES = {
    "2.5 -> 3.125",
    "2.5 -> -2.5",
    "low < high -> low <= high",
    "low < high -> low >= high",
    "low -> high",
    "high -> low",
    "max(low - 3, 0.0) -> min(low - 3, 0.0)",
    "max(low - 3, 0.0) -> low - 3",
    "low - 3 -> low + 3",
    "low - 3 -> 3 - low",
    "3 -> 4",
    "3 -> 2",
    "0.0 -> 1.0",
    "return max(low - 3, 0.0) if low < high else high -> return -(max(low - 3, 0.0) if low < high else high)",
}


@pytest.fixture(scope="module")
def mutations():
    spec = importlib.util.spec_from_file_location("mutations", SCRIPTS / "mutations.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_small_change_is_made_once(mutations):
    """Neither in annotations, nor in docstrings, nor in a type alias."""
    found = mutations.mutants_of(SOURCE)
    assert {mutant.change for mutant in found} == CHANGES
    assert len({mutant.text for mutant in found}) == len({mutant.key for mutant in found}) == len(found)
    for mutant in found:
        compile(mutant.text, "mutant", "exec")
        assert mutant.where == "clipped" and mutant.line in (6, 8)


def test_keys_do_not_depend_on_the_line(mutations):
    moved = SOURCE.replace("\n\n\ndef", "\n\n\nOTHER = ()\n\n\ndef")
    assert [one.key for one in mutations.mutants_of(moved)] == [one.key for one in mutations.mutants_of(SOURCE)]


@pytest.mark.slow
def test_killed_and_survived_are_told_apart_and_kept(tmp_path):
    """Of x > 3 a test at 3 and 5 sees >=, but not 4, which seed 0 draws, too; the tree itself stays as it was."""
    files = {
        "cosim/__init__.py": "",
        "cosim/tiny.py": "def large(x):\n    return x > 3\n",
        "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--ngspice')\n",
        "tests/test_tiny.py": "from cosim.tiny import large\n\n\ndef test():\n    assert large(5) and not large(3)\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, SCRIPTS / "mutate.py", "run", "cosim/tiny.py", "--count", "2", "--results", "kept.jsonl"]
    for repetition in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "cosim/tiny.py                             2       1           0         1   50.0%" in done.stdout
        assert "- return x > 3\n      + return x > 4" in done.stdout
        assert ("\n  killed " in done.stdout) is (repetition == 0)  # kept outcomes are not made again
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == 2
    assert {name: (tmp_path / name).read_text() for name in files} == files
