"""The size of things, counted: what grows beyond these limits is taken apart, not excused."""

import ast
import re
from pathlib import Path

import pytest

import cosim

PACKAGE = Path(cosim.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FUNCTION_LINES, FILE_LINES = 50, 350
MANY, WITH_MANY = 5, 20  # parameters, and functions with more of them in the whole package
UNTYPED = 15  # dict[str, Any], at the edge of a file format


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def parameters(function):
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [name.arg for name in names if name.arg not in ("self", "cls")]


def test_functions_and_files_fit_a_screen_and_a_sitting():
    long = {
        f"{path.relative_to(PACKAGE)}:{function.name}": function.end_lineno - function.lineno + 1
        for path in FILES
        for function in functions(path)
    }
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}
    sizes = {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: lines for name, lines in sizes.items() if lines > FILE_LINES} == {}


def test_few_functions_have_many_parameters():
    many = [
        f"{path.relative_to(PACKAGE)}:{function.name}"
        for path in FILES
        for function in functions(path)
        if len(parameters(function)) > MANY
    ]
    assert len(many) <= WITH_MANY, many


@pytest.mark.parametrize(("text", "most"), [(r"dict\[str, Any\]", UNTYPED), (r"[:>] nx\.(Di)?Graph\b(?!\[)", 0)])
def test_what_is_passed_around_has_a_type(text, most):
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(text, line)
    ]
    assert len(found) <= most, found
