"""Arithmetic of SPICE parameters: `{0.7*par_k*1e-06/p}`, `'w*2'`, `10u`, `agauss(0,1,1)`, evaluated without `eval`.

Random functions give their mean: what is left is the nominal device, and variation is drawn by cosim itself.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from cosim.base.errors import InputError
from cosim.base.text import shown

_SUFFIXES = {
    "t": 1e12, "g": 1e9, "meg": 1e6, "x": 1e6, "k": 1e3, "mil": 25.4e-6, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12,
    "f": 1e-15, "a": 1e-18,
}  # fmt: skip
LONGEST = 4000  # characters; those of the open kits have 205
# `++` and the like give nothing back, so that a long row of digits takes linear time
_NUMBER = re.compile(r"(?<![\w.])((?:\d++\.?+\d*+|\.\d++)(?:e[+-]?\d++)?+)(meg|mil|[tgxkmunpfa])?[a-z]*+(?![\w.])")
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[..., bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def _pwr(base: float, exponent: float) -> float:
    """Simulators differ below 0: |x|^y in ngspice, -|x|^y in HSPICE."""
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
    """Parameters by lower-case name, evaluated when they are first asked for.

    `outer` is looked at where a name is not here. Raises InputError for an unknown name, a circle or an expression that
    is no arithmetic.
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
        """Evaluate an expression to a number. Raises InputError where it is no finite one."""
        value = self._evaluate(text)
        if isinstance(value, complex) or not math.isfinite(value):
            raise InputError(f"cannot evaluate {shown(text.strip())}: {value} is no finite number")
        return value

    def _evaluate(self, text: str) -> float:
        if len(text) > LONGEST:
            raise InputError(f"an expression must have at most {LONGEST} characters, not {len(text)}: {shown(text)}")
        try:
            return float(text)
        except ValueError:
            pass
        plain = text.lower().translate(str.maketrans("{}", "()", "'\"")).replace("^", "**")
        plain = _NUMBER.sub(lambda found: repr(float(found[1]) * _SUFFIXES.get(found[2] or "", 1.0)), plain)
        try:
            tree = ast.parse(plain.strip(), mode="eval")
            _check_powers(tree, plain.strip())
            return self._reduce(tree.body)
        except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
            # the parser of Python answers what is nested too deeply for it with a MemoryError
            raise InputError(f"cannot evaluate {shown(text.strip())}: {error or 'it is nested too deeply'}") from None

    def _reduce(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name):
                return self[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(left), self._reduce(right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._reduce(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return float(_COMPARISONS[type(op)](self._reduce(left), self._reduce(right)))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return float(_FUNCTIONS[name](*map(self._reduce, args)))
        raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")


def _check_powers(tree: ast.AST, text: str) -> None:
    """a^b^c is a^(b^c) to Python, (a^b)^c to ngspice, so it must have parentheses."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Pow(), right=ast.BinOp(op=ast.Pow(), col_offset=start)):
                if not text[:start].rstrip().endswith("("):
                    raise ValueError("simulators differ in what a^b^c is; write (a^b)^c or a^(b^c)")
