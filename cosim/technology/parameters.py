"""Expressions of SPICE parameters, as foundries and designers write them, evaluated without `eval`.

Such as `{0.7*par_k*1e-06/p}`, `'w*2'`, `10u`, `agauss(0,1,1)`. Random functions give their mean, which leaves the
nominal device, because cosim draws variation itself.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cosim.base.errors import InputError
from cosim.base.text import shown

_SUFFIXES = {
    "t": 1e12, "g": 1e9, "meg": 1e6, "x": 1e6, "k": 1e3, "mil": 25.4e-6, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12,
    "f": 1e-15, "a": 1e-18,
}  # fmt: skip
LONGEST = 4000  # characters of an expression; the longest in the open kits has 205
# possessive quantifiers (`++`), so that a long row of digits takes linear time
_NUMBER = re.compile(r"(?<![\w.])((?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?+)(meg|mil|[tgxkmunpfa])?[a-z]*+(?![\w.])")
_GROUPED = re.compile(r"(?<![\w.])[\d.]++_")  # 1_000, which Python would take for 1000
_NAMED = "parameter_"  # before a parameter's name that Python reserves
_RESERVED = re.compile(r"\b(as|is)\b")  # SPICE has parameters of these names
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[..., bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def _pwr(base: float, exponent: float) -> float:
    """Compute pwr(x, y), as foundry libraries use it, for x of at least 0.

    Below 0 simulators differ: |x|^y in ngspice, -|x|^y in HSPICE.
    """
    if base < 0:
        raise ValueError("pwr of a negative number")
    return math.pow(base, exponent)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "exp": math.exp, "ln": math.log, "log": math.log, "log10": math.log10, "abs": abs, "max": max,
    "min": min, "pow": math.pow, "pwr": _pwr, "int": int, "floor": math.floor, "ceil": math.ceil,
    "agauss": lambda mean, *_: mean, "gauss": lambda mean, *_: mean, "aunif": lambda mean, *_: mean,
    "unif": lambda mean, *_: mean, "limit": lambda mean, *_: mean,
}  # fmt: skip


class Parameters:
    """Parameters of a foundry library by lower-case name, each evaluated when it is first read.

    `outer` is searched for names that are not here. Raises InputError for an unknown name, a circular definition or an
    expression that is no arithmetic.
    """

    def __init__(self, texts: Mapping[str, str], outer: "Parameters | None" = None) -> None:
        self.texts, self.outer = dict(texts), outer
        self.values: dict[str, float] = {}
        self.pending: set[str] = set()

    def __getitem__(self, name: str) -> float:
        if name in self.values:
            return self.values[name]
        if name not in self.texts:
            if self.outer is None:
                raise InputError(f"parameter {name!r} is used but not defined")
            return self.outer[name]
        if name in self.pending:
            raise InputError(f"parameter {name!r} is defined by itself")
        self.pending.add(name)
        try:
            self.values[name] = self.evaluate(self.texts[name])
        finally:
            self.pending.discard(name)
        return self.values[name]

    def evaluate(self, text: str) -> float:
        """Evaluate an expression of a foundry library to a number. Raises InputError if it has no finite value."""
        value = self._evaluate(text)
        if isinstance(value, complex) or not math.isfinite(value):
            raise InputError(f"cannot evaluate {shown(text.strip())}: {value} is no finite number")
        return value

    def _evaluate(self, text: str) -> float:
        if len(text) > LONGEST:
            raise InputError(f"an expression must have at most {LONGEST} characters, not {len(text)}: {shown(text)}")
        if not text.isascii() or _GROUPED.search(text):
            raise InputError(
                f"cannot evaluate {shown(text.strip())}: a number has digits, a point and an exponent or letter"
            )
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return self._reduce(_parse(text))
        except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
            # the parser of Python answers what is nested too deeply for it with a MemoryError
            why = error.msg if isinstance(error, SyntaxError) else error
            raise InputError(f"cannot evaluate {shown(text.strip())}: {why or 'it is nested too deeply'}") from None

    def _reduce(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=float(value)):  # every decimal number is one by now; 0x10 or 1_000 is none
                return value
            case ast.Name(id=name):
                return self[name.removeprefix(_NAMED)]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(left), self._reduce(right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return float(_COMPARISONS[type(op)](self._reduce(left), self._reduce(right)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return float(_FUNCTIONS[name](*map(self._reduce, args)))
        raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    """Return the tree of a foundry library's expression, its numbers with their suffixes applied."""
    plain = _RESERVED.sub(rf"{_NAMED}\1", text.lower()).translate(str.maketrans("{}", "()", "'\"")).replace("^", "**")
    plain = _NUMBER.sub(lambda found: repr(float(found[1]) * _SUFFIXES.get(found[2] or "", 1.0)), plain).strip()
    tree = ast.parse(plain, mode="eval")
    _check_powers(tree, plain)
    return tree.body


def _check_powers(tree: ast.AST, text: str) -> None:
    """Raise ValueError for a power of a power without parentheses in a foundry library's expression.

    a^b^c is a^(b^c) to Python, (a^b)^c to ngspice.
    """
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Pow(), right=ast.BinOp(op=ast.Pow(), col_offset=start)):
                if not text[:start].rstrip().endswith("("):
                    raise ValueError("simulators differ in what a^b^c is; write (a^b)^c or a^(b^c)")
