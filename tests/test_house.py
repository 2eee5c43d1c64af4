"""The size of things, counted, and their docstrings: what grows beyond these limits is taken apart, not excused."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import cosim

PACKAGE = Path(cosim.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FUNCTION_LINES, FILE_LINES = 60, 650
MANY, WITH_MANY = 5, 16  # parameters, and functions with more of them in the whole package
KERNEL = {"jit", "inlined_jit", "cached_jit"}  # decorators of what numba compiles: it wants arguments one by one
UNTYPED = 15  # dict[str, Any], at the edge of a file format
DEFINITION = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BASES = ("ABC", "Protocol", "NamedTuple", "Generic")  # which give a class no methods with a docstring of their own
RIDDLE = re.compile(  # begins no sentence, or one that needs its neighbour
    r"(Of|What|Whether|How|Where|When|Why|Who|Which|As|By|Such|Its|Their|It|They|Those|These|Likewise|The same)\b"
)


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path):
    """The syntax tree of a file, flat: walking a tree takes a third as long as parsing it."""
    return tuple(ast.walk(parsed(path)))


@cache
def functions(path):
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def parameters(function):
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [name.arg for name in names if name.arg not in ("self", "cls")]


def is_kernel(function):
    return any(isinstance(one, ast.Name) and one.id in KERNEL for one in function.decorator_list)


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
        if len(parameters(function)) > MANY and not is_kernel(function)
    ]
    assert len(many) <= WITH_MANY, many


def test_a_public_class_name_has_one_meaning():
    places = defaultdict[str, list[str]](list)
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize(("text", "most"), [(r"dict\[str, Any\]", UNTYPED), (r"[:>] nx\.(Di)?Graph\b(?!\[)", 0)])
def test_what_is_passed_around_has_a_type(text, most):
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(text, line)
    ]
    assert len(found) <= most, found


def may_inherit(node):
    """Tell whether a class has bases whose docstrings an editor shows for methods without one."""
    bases = [ast.unparse(base).partition("[")[0].split(".")[-1] for base in getattr(node, "bases", ())]
    return any(base not in BASES for base in bases)


def public_definitions(node, name):
    """Yield (name, docstring) of a module's public classes and functions, and of public methods that override none."""
    for child in getattr(node, "body", ()):
        if isinstance(child, (ast.If, ast.Try, ast.With)):
            yield from public_definitions(child, name)
        elif isinstance(child, DEFINITION) and not child.name.startswith("_"):
            if not isinstance(node, ast.ClassDef) or not may_inherit(node):
                yield f"{name}:{child.name}", ast.get_docstring(child)
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child, f"{name}:{child.name}")


def test_docstrings_can_be_understood_alone():
    riddles = [
        f"{path.relative_to(PACKAGE)}:{getattr(node, 'name', 'module')}: {text.splitlines()[0]}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, (ast.Module, *DEFINITION)) and RIDDLE.match(text := ast.get_docstring(node) or "")
    ]
    assert riddles == []


def test_a_class_says_what_it_is_before_its_fields():
    bare = [
        f"{path.relative_to(PACKAGE)}:{node.name}: {text.splitlines()[0]}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and (text := ast.get_docstring(node)) and text[0].islower()
    ]
    assert bare == []


def test_what_is_public_has_a_docstring():
    bare = [
        name
        for path in FILES
        for name, text in public_definitions(parsed(path), str(path.relative_to(PACKAGE)))
        if not text
    ]
    assert bare == []


def defined(path):
    """The names of all functions, found in the text: hundreds of files would be parsed for no other test."""
    return re.findall(r"^ *(?:async )?def (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_fixture_of_the_session_has_a_name_of_its_own():
    """pytest makes such a fixture once, also from one that a folder has put in place of another: tests of other folders
    would then get what was made of that."""
    tests = Path(__file__).parent
    decorated = [(one.name, "".join(map(ast.unparse, one.decorator_list))) for one in functions(tests / "conftest.py")]
    shared = {name for name, text in decorated if "fixture" in text and "session" in text}
    assert {"technology", "calibration"} <= shared
    again = {str(path): shared & set(defined(path)) for path in tests.glob("*/**/*.py")}
    assert not {name: found for name, found in again.items() if found}
