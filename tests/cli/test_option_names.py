"""Messages of units and compiler name settings; the command line alone knows how their options are typed."""

import ast
import re
from pathlib import Path

import pytest

import cosim
from cosim.base.errors import MappingError, UnitCurrentError
from cosim.cli.option_names import FLAGS, spell_options

PACKAGE = Path(cosim.__file__).parent
KNOW_NO_OPTIONS = ("network/ir", "circuit/waveforms.py", "units", "compiler")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("`i_unit` must be at least 4e-11 A", "--i-unit must be at least 4e-11 A"),
        ("compile with `cell=auto`, or", "compile with --cell auto, or"),
        ("leave `ranges_from=FILE.npz` (x_test)", "leave --ranges-from FILE.npz (x_test)"),
        ("`around=inputs` takes codes", "--with inputs takes codes"),
        ("anneal it (`train(epsilon=anneal)`)", "anneal it (cosim train --epsilon anneal)"),
        ("train it with `train()`; leave `pedestal` out", "train it with cosim train; leave `pedestal` out"),
        ("`tau", "`tau"),
    ],
)
def test_settings_become_options(text, typed):
    assert spell_options(text) == typed


def constants(path):
    """Texts of a module's code, f-strings' included, its docstrings left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def modules():
    for name in KNOW_NO_OPTIONS:
        yield from [PACKAGE / name] if name.endswith(".py") else sorted((PACKAGE / name).rglob("*.py"))


def test_units_and_compiler_spell_no_option():
    found = [f"{path.name}: {text}" for path in modules() for text in constants(path) if re.search("--[a-z]", text)]
    assert found == []


def test_each_setting_that_they_name_has_an_option():
    """A name between backticks that is none would reach the terminal as it is; `pedestal` is Python's alone."""
    named = {name for path in modules() for text in constants(path) for name in re.findall(r"`(?:train\()?(\w+)", text)}
    assert named - {"pedestal", "train"} <= FLAGS.keys()
    assert {"i_unit", "tau", "cell", "epsilon"} <= named


def test_an_error_keeps_its_numbers_in_other_words():
    error = UnitCurrentError("too low", where="layer0.3", value=2e-12, limit=1e-11, unit="A")
    found = error.reworded("net: too low; use more", MappingError)
    assert type(found) is MappingError and str(found) == "net: too low; use more"
    assert (found.where, found.value, found.limit, found.unit) == ("layer0.3", 2e-12, 1e-11, "A")
    assert type(error.reworded("other")) is UnitCurrentError
