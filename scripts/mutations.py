"""The mutants of a module: every small change of its syntax tree that tests should notice.

    compare     < becomes <= and >=, == becomes !=, in becomes not in, ...
    arithmetic  + and -, * and / exchanged, ** becomes *; operands of -, / exchanged; of | one side alone
    logic       and, or exchanged, one operand left out; conditions negated
    number      n + 1, n - 1; a float times 1.25 and negated; True and False exchanged
    call        neighbouring arguments exchanged; a keyword left out; min and max, ceil and floor, any and all, ...
                exchanged; abs, max, clip, sorted, ... left out
    order       neighbouring elements of a tuple, list or dictionary exchanged
    slice       an open end moved by one
    name        rise and fall, thresh and width, n and p, ... exchanged, where the module knows both
    statement   a call, a yield, an augmented assignment or a raise left out; a returned number negated

Annotations, decorators, docstrings, type aliases and `strict=` of zip are left alone.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
}  # fmt: skip
UNSYMMETRIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
CALLS = {
    "min": "max", "minimum": "maximum", "argmin": "argmax", "floor": "ceil", "any": "all", "zeros": "ones",
    "zeros_like": "ones_like", "log": "exp", "sum": "prod", "isnan": "isinf",
}  # fmt: skip
CALLS |= {other: name for name, other in CALLS.items()}
TRANSPARENT = {"abs", "max", "min", "maximum", "minimum", "clip", "round", "rint", "sorted", "bool", "sqrt"}
SYMMETRIC = {
    "min",
    "max",
    "minimum",
    "maximum",
    "gcd",
    "isinstance",
    "nodes_of",
}  # in their arguments, or unable to take others
TWINS = [
    ("rise", "fall"), ("thresh", "width"), ("upper", "lower"), ("sets", "resets"), ("near", "far"), ("vt", "beta"),
    ("pull", "push"), ("n", "p"), ("low", "high"), ("first", "last"), ("nfet", "pfet"), ("into_thresh", "into_width"),
    ("mean", "std"), ("behavioral", "ngspice"), ("software", "behavioral"), ("source", "target"), ("up", "down"),
    ("high", "width"), ("beta_hi", "beta_lo"), ("supply", "temperature"), ("set_points", "bias"),
]  # fmt: skip
PREFIXES = ("", "i_", "gain_", "slope_", "lines_", "line_", "a_", "sigma_", "process_", "trim_", "start_", "beta_")
NUMBERS = {"float", "int", "Array"}


@dataclass(frozen=True)
class Mutant:
    """One change. key: short hash of what changes where, whatever the line; line: in the source; where: function or
    class; old, new: the lines that differ, as Python itself would write them; change: what differs in them; text: the
    whole mutated module."""

    key: str
    line: int
    where: str
    old: str
    new: str
    change: str
    text: str


@dataclass(frozen=True)
class _Site:
    """A place in a part of the module, parent.field or parent.field[index], and what to put there."""

    part: ast.stmt  # of the module's body
    parent: ast.AST
    field: str
    index: int | None
    replacement: ast.AST
    line: int
    where: str

    def _exchange(self, node: ast.AST) -> ast.AST:
        """Puts a node there and returns what stood there."""
        if self.index is None:
            old = getattr(self.parent, self.field)
            setattr(self.parent, self.field, node)
        else:
            nodes = getattr(self.parent, self.field)
            old, nodes[self.index] = nodes[self.index], node
        return old

    @property
    def before(self) -> str:
        nodes = getattr(self.parent, self.field)
        return ast.unparse(nodes if self.index is None else nodes[self.index])

    @property
    def after(self) -> str:
        return ast.unparse(self.replacement)

    def mutated(self) -> str:
        """The part as text, with the replacement."""
        old = self._exchange(self.replacement)
        try:
            return ast.unparse(ast.fix_missing_locations(self.part))
        finally:
            self._exchange(old)


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module's source, in the order of its text; the same source gives the same keys."""
    tree = ast.parse(source)
    parts = [ast.unparse(part) for part in tree.body]
    found: list[Mutant] = []
    for k, part in enumerate(tree.body):
        seen, times = {parts[k]}, Counter()
        for site in _sites(part, _names(tree)):
            mutated = site.mutated()
            if mutated in seen:
                continue
            seen.add(mutated)
            change = (site.where, *_difference(parts[k].splitlines(), mutated.splitlines()))
            times[change] += 1
            key = hashlib.blake2b("\n".join([*change, str(times[change])]).encode(), digest_size=4).hexdigest()
            text = "\n".join([*parts[:k], mutated, *parts[k + 1 :], ""])
            found.append(Mutant(key, site.line, *change, " ".join(f"{site.before} -> {site.after}".split()), text))
    return found


def _difference(plain: list[str], mutated: list[str]) -> tuple[str, str]:
    """The lines between the common beginning and the common end."""
    begin = 0
    while begin < min(len(plain), len(mutated)) and plain[begin] == mutated[begin]:
        begin += 1
    end = 0
    while end < min(len(plain), len(mutated)) - begin and plain[-1 - end] == mutated[-1 - end]:
        end += 1
    lines = (plain[begin : len(plain) - end], mutated[begin : len(mutated) - end])
    old, new = ("\n".join(line.strip() for line in part) for part in lines)
    return old, new


def _names(tree: ast.Module) -> set[str]:
    """Every name, attribute, argument and string of the module."""
    known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    known |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    known |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword | ast.arg) and node.arg}
    known |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return known


def _sites(part: ast.stmt, known: set[str]) -> Iterator[_Site]:
    def visit(node: ast.AST, where: str, returns: str, line: int) -> Iterator[_Site]:
        for field, value in ast.iter_fields(node):
            if _left_alone(node, field):
                continue
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, ast.AST) or _is_docstring(child):
                    continue
                at = getattr(child, "lineno", line)
                for replacement in (*_variants(child, node, returns), *_twins(child, known)):
                    yield _Site(part, node, field, index if isinstance(value, list) else None, replacement, at, where)
                yield from visit(child, *_inside(child, where, returns), at)

    if not _is_alias(part) and not _is_docstring(part):
        yield from visit(part, *_inside(part, "module", ""), part.lineno)


def _inside(node: ast.AST, where: str, returns: str) -> tuple[str, str]:
    """(name of what a node defines, what it returns), or those of what it stands in."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = node.name if where == "module" else f"{where}.{node.name}"
    if isinstance(node, ast.FunctionDef):
        returns = ast.unparse(node.returns) if node.returns else ""
    return where, returns


def _left_alone(node: ast.AST, field: str) -> bool:
    annotation = field in ("annotation", "returns", "decorator_list", "bases", "ctx")
    return annotation or (isinstance(node, ast.keyword) and node.arg == "strict") or isinstance(node, ast.Import)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_alias(part: ast.stmt) -> bool:
    """A type alias: a name in CamelCase on the module's level."""
    target = part.targets[0] if isinstance(part, ast.Assign) else None
    return isinstance(target, ast.Name) and not target.id.lstrip("_").isupper()


def _variants(node: ast.AST, parent: ast.AST, returns: str) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            yield from _compare(node)
        case ast.BinOp():
            yield from _binary(node, isinstance(parent, ast.Call) and _called(parent) == "abs")
        case ast.BoolOp():
            yield from _logic(node)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield ast.Constant(1.25 * value if value else 1.0)
            if value:
                yield ast.UnaryOp(ast.USub(), ast.Constant(value))
        case ast.Call():
            yield from _call(node)
        case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) if not isinstance(parent, ast.Compare):
            yield from (_with(node, elts=row) for row in _exchanged(node.elts))
        case ast.Dict():
            yield from (_with(node, values=row) for row in _exchanged(node.values))
        case ast.Slice(lower=lower, upper=upper):
            if lower is None:
                yield _with(node, lower=ast.Constant(1))
            if upper is None:
                yield _with(node, upper=ast.UnaryOp(ast.USub(), ast.Constant(1)))
        case ast.If() | ast.IfExp() | ast.While():
            if not isinstance(node.test, ast.Compare | ast.UnaryOp):
                yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.expr() as value):
            yield from _returned(value, returns)
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Pass()
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.MatchOr(patterns=patterns):
            yield from (_with(node, patterns=[*patterns[:k], *patterns[k + 1 :]]) for k in range(len(patterns)))
        case ast.match_case(guard=ast.expr()):
            yield _with(node, guard=None)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy with other fields; children are shared, which is harmless as long as one mutant is applied at a time."""
    copy = type(node)(**dict(ast.iter_fields(node)) | fields)
    return ast.copy_location(copy, node) if hasattr(node, "lineno") else copy


def _exchanged(items: list) -> Iterator[list]:
    """The list with every two different neighbours exchanged, once each."""
    for k, (left, right) in enumerate(pairwise(items)):
        if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
            yield [*items[:k], right, left, *items[k + 2 :]]


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for k, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            yield _with(node, ops=[*node.ops[:k], other(), *node.ops[k + 1 :]])


def _binary(node: ast.BinOp, unsigned: bool) -> Iterator[ast.AST]:
    if type(node.op) in ARITHMETIC:
        yield _with(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node.op, ast.BitOr):
        yield from (node.left, node.right)
    if isinstance(node.op, UNSYMMETRIC) and not (unsigned and isinstance(node.op, ast.Sub)):
        yield _with(node, left=node.right, right=node.left)


def _logic(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for k in range(len(node.values)):
        rest = [*node.values[:k], *node.values[k + 1 :]]
        yield _with(node, values=rest) if len(rest) > 1 else rest[0]


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _call(node: ast.Call) -> Iterator[ast.AST]:
    name = _called(node)
    if name in CALLS:
        func = deepcopy(node.func)
        setattr(func, "id" if isinstance(func, ast.Name) else "attr", CALLS[name])
        if name != "sum" or isinstance(func, ast.Attribute):
            yield _with(node, func=func)
    if name in TRANSPARENT and node.args:
        yield node.args[0]
    if name not in SYMMETRIC:
        yield from (_with(node, args=row) for row in _exchanged(node.args))
    for k, keyword in enumerate(node.keywords):
        if keyword.arg not in ("strict", None):
            yield _with(node, keywords=[*node.keywords[:k], *node.keywords[k + 1 :]])


def _returned(value: ast.expr, returns: str) -> Iterator[ast.AST]:
    if returns in NUMBERS:
        yield ast.Return(ast.UnaryOp(ast.USub(), value))
    elif returns == "bool":
        yield ast.Return(ast.UnaryOp(ast.Not(), value))
    elif "None" in returns and not (isinstance(value, ast.Constant) and value.value is None):
        yield ast.Return(ast.Constant(None))


def _twins(node: ast.AST, known: set[str]) -> Iterator[ast.AST]:
    """The node with the other name of a pair, where the module uses both."""
    field = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value"}.get(type(node))
    name = getattr(node, field, None) if field else None
    if not isinstance(name, str) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    for prefix in PREFIXES:
        for pair in TWINS:
            for one, other in (pair, pair[::-1]):
                if name == prefix + one and prefix + other in known:
                    yield _with(node, **{field: prefix + other})
