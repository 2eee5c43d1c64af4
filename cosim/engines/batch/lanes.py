# pyright: basic
# numba compiles or calls these functions: what it hands them has no type that pyright knows.
"""LANES instances side by side: a vector of the processor as a type of numba, so that kernels read as scalar code.

`load`, `store` and `add_to` take a row of an array (rows, LANES) in double or single precision; `+ - * /` and the
functions below work on all lanes at once, in double precision unless both are single. A loop over lanes would do as
well, but the compiler must then prove that no two rows overlap, and gives up: it is half as fast. No sum is reordered,
so a lane's bits do not depend on the others.
"""

import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic as _intrinsic
from numba.extending import models, overload, register_model
from numpy.typing import NDArray

from cosim.engines.batch.compiled import inlined_jit, jit

Number = TypeVar("Number", np.float64, np.float32)
intrinsic = cast("Callable[[Callable[..., Any]], Any]", _intrinsic)  # its arguments are not those of a call
LANES = 8
_DOUBLE, _INT = ir.DoubleType(), ir.IntType(64)
_VECTOR, _INTS = ir.VectorType(_DOUBLE, LANES), ir.VectorType(_INT, LANES)
_CONTRACT = ("contract", "nsz")


def aligned_zeros(rows: int, lanes: int = LANES) -> NDArray[np.float64]:
    """Return zeros (rows, lanes) for a kernel of the batched engine, aligned with the lines of the processor's cache.

    A row of LANES numbers is then in one line of the cache.
    """
    return _aligned(rows, lanes, np.float64)


def aligned_zeros_single(rows: int, lanes: int = LANES) -> NDArray[np.float32]:
    """Return zeros (rows, lanes) in single precision for a kernel, aligned with the lines of the cache."""
    return _aligned(rows, lanes, np.float32)


def _aligned(rows: int, lanes: int, kind: type[Number]) -> NDArray[Number]:
    line, size = 64, np.dtype(kind).itemsize
    whole = np.zeros(rows * lanes + line // size, dtype=kind)
    skip = -whole.ctypes.data % line // size
    return whole[skip : skip + rows * lanes].reshape(rows, lanes)


class LanesType(types.Type):
    """A numba type of the batched engine's kernels: a vector of LANES numbers, in double or single precision."""

    def __init__(self, single: bool) -> None:
        self.kind = ir.VectorType(ir.FloatType() if single else _DOUBLE, LANES)
        super().__init__(name="SingleLanes" if single else "Lanes")


_LANES, _SINGLES = LanesType(False), LanesType(True)


@register_model(LanesType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.kind)


def _lanes_of(array: Any) -> Any:
    """Return the numba type of one row of an array: LANES numbers in the array's precision."""
    return _SINGLES if array.dtype == types.float32 else _LANES


def _as(builder: Any, value: Any, given: Any, wanted: Any) -> Any:
    """Convert LANES numbers to the precision that is wanted."""
    if given is wanted:
        return value
    return builder.fptrunc(value, wanted.kind) if wanted is _SINGLES else builder.fpext(value, wanted.kind)


def _row(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> Any:
    first = builder.mul(row, ir.Constant(_INT, LANES))
    there = _place(context, builder, array_type, array, first)
    return builder.bitcast(there, _lanes_of(array_type).kind.as_pointer())


def _place(context: Any, builder: Any, array_type: Any, array: Any, first: Any) -> Any:
    """Return a pointer to number `first` of an array; where kernels are checked, LANES numbers must follow there."""
    if array_type.layout != "C":
        raise TypingError(f"lanes must lie in an array whose numbers follow each other, not in {array_type}")
    found = context.make_array(array_type)(context, builder, array)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, first, builder.sub(found.nitems, ir.Constant(_INT, LANES - 1)))
    return builder.gep(found.data, [first])


@intrinsic
def load(typing: Any, array: Any, row: Any) -> Any:
    """Return a row of an array as LANES numbers, in a kernel of the batched engine."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_row(context, builder, signature.args[0], *args), align=4)

    return _lanes_of(array)(array, types.intp), build


@intrinsic
def load_consecutive(typing: Any, numbers: Any, first: Any) -> Any:
    """Return LANES consecutive numbers of a kernel's flat array in single precision, converted to double."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], *args)
        there = builder.bitcast(place, _SINGLES.kind.as_pointer())
        return builder.fpext(builder.load(there, align=4), _VECTOR)

    return _LANES(numbers, types.intp), build


@intrinsic
def halves(typing: Any, low: Any, high: Any) -> Any:
    """Return `low` in the lower half of a kernel's lanes and `high` in the upper half."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = [0] * (LANES // 2) + [LANES] * (LANES // 2)
        kind = ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask)
        return builder.shuffle_vector(_splat(builder, args[0]), _splat(builder, args[1]), kind)

    return _LANES(types.float64, types.float64), build


@intrinsic
def halves_added(typing: Any, value: Any) -> Any:
    """Return the sum of the lower and the upper half of a kernel's lanes, in both halves."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        swapped = [*range(LANES // 2, LANES), *range(LANES // 2)]
        kind = ir.Constant(ir.VectorType(ir.IntType(32), LANES), swapped)
        return builder.fadd(args[0], builder.shuffle_vector(args[0], args[0], kind), flags=_CONTRACT)

    return _LANES(_LANES), build


@intrinsic
def store(typing: Any, array: Any, row: Any, value: Any) -> Any:
    """Write LANES numbers to a row of a kernel's array, in the array's precision."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = _lanes_of(signature.args[0])
        value = _as(builder, args[2], signature.args[2], kind)
        builder.store(value, _row(context, builder, signature.args[0], *args[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), build


@intrinsic
def in_precision_of(typing: Any, array: Any, value: Any) -> Any:
    """Convert LANES numbers of a kernel of the batched engine to the precision of an array."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _as(builder, args[1], signature.args[1], signature.return_type)

    return _lanes_of(array)(array, value), build


@inlined_jit
def each_lane() -> Any:
    """Return the numbers of the lanes, for a kernel's loops."""
    return range(LANES)


@inlined_jit
def count_evaluation(version: Any, line: int) -> None:
    """Count in a kernel one more evaluation of a circuit's gate or drain line, in one lane or more."""
    version[line] += 1


@inlined_jit
def evaluation_count(version: Any, line: int) -> Any:
    """Return in a kernel how often a circuit's gate or drain line was evaluated."""
    return version[line]


@inlined_jit
def set_evaluation_count(version: Any, line: int, count: Any) -> None:
    """Set in a kernel how often a circuit's gate or drain line was evaluated."""
    version[line] = count


@inlined_jit
def add_to(rows: Any, row: Any, value: Any) -> None:
    """Add LANES numbers to a row of a kernel's array, in its precision."""
    store(rows, row, load(rows, row) + in_precision_of(rows, value))


@intrinsic
def splat(typing: Any, number: Any) -> Any:
    """Return one number in every lane of a kernel of the batched engine."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(builder, args[0])

    return _LANES(types.float64), build


def _splat(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)


def _binary(name: str) -> Any:
    @intrinsic
    def calculate(typing: Any, a: Any, b: Any) -> Any:
        found = _SINGLES if a is _SINGLES and b is _SINGLES else _LANES

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            both = [_as(builder, *one, found) for one in zip(args, signature.args, strict=True)]
            return getattr(builder, name)(*both, flags=_CONTRACT)

        return found(a, b), build

    return calculate


_OPERATIONS = {
    operator.add: _binary("fadd"),
    operator.sub: _binary("fsub"),
    operator.mul: _binary("fmul"),
    operator.truediv: _binary("fdiv"),
}


def _overload(symbol: Any, calculate: Any) -> None:
    @overload(symbol)
    def operate(a, b):  # numba compares its arguments with those of what it returns, annotations included
        if isinstance(a, LanesType) and isinstance(b, LanesType):
            return lambda a, b: calculate(a, b)
        if isinstance(a, LanesType) and isinstance(b, types.Number):
            return lambda a, b: calculate(a, splat(b))
        if isinstance(a, types.Number) and isinstance(b, LanesType):
            return lambda a, b: calculate(splat(a), b)
        return None


for _symbol, _calculate in _OPERATIONS.items():
    _overload(_symbol, _calculate)


def _function(name: str, arguments: int) -> Any:
    """Return an intrinsic of LLVM, such as fabs, as a function of LANES numbers in double precision."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * arguments)
        full = f"llvm.{name}.v{LANES}f64"
        doubles = [_as(builder, *one, _LANES) for one in zip(args, signature.args, strict=True)]
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, full), doubles)

    if arguments == 1:
        return intrinsic(lambda typing, a: (_LANES(a), build))
    return intrinsic(lambda typing, a, b: (_LANES(a, b), build))


rounded, absolute = _function("rint", 1), _function("fabs", 1)
minimum, maximum = _function("minnum", 2), _function("maxnum", 2)


@intrinsic
def power_of_two(typing: Any, whole: Any) -> Any:
    """Return 2 to the power of a kernel's LANES whole numbers between -1022 and 1023."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.fptosi(args[0], _INTS)
        shifted = builder.shl(builder.add(bits, ir.Constant(_INTS, [1023] * LANES)), ir.Constant(_INTS, [52] * LANES))
        return builder.bitcast(shifted, _VECTOR)

    return _LANES(_LANES), build


@intrinsic
def select(typing: Any, mask: Any, yes: Any, no: Any) -> Any:
    """Return `yes` in the lanes of a kernel where the mask is not 0, else `no`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen = builder.fcmp_unordered("!=", args[0], ir.Constant(_VECTOR, [0.0] * LANES))
        return builder.select(chosen, args[1], args[2])

    return _LANES(_LANES, _LANES, _LANES), build


@intrinsic
def not_less(typing: Any, a: Any, b: Any) -> Any:
    """Return 1 in a kernel's lanes where a < b does not hold, as for nan, else 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.uitofp(builder.fcmp_unordered(">=", *args), _VECTOR)

    return _LANES(_LANES, _LANES), build


@inlined_jit
def store_where(array: Any, row: Any, mask: Any, value: Any) -> None:
    """Write LANES numbers to a row of a kernel's array in the lanes where the mask is not 0."""
    store(array, row, select(mask, value, load(array, row)))


@intrinsic
def lane_mask(typing: Any, mask: Any) -> Any:
    """Return a bit for each lane of a kernel, 1 where the mask is not 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        there = builder.fcmp_unordered("!=", args[0], ir.Constant(_VECTOR, [0.0] * LANES))
        return builder.zext(builder.bitcast(there, ir.IntType(LANES)), _INT)

    return types.int64(_LANES), build


@intrinsic
def first_lane(typing: Any, some: Any) -> Any:
    """Return the first of a kernel's lanes whose bit is 1."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), build


@inlined_jit
def without_first_lane(some: Any) -> Any:
    """Return a kernel's bits, one for each lane, without the first that is 1."""
    return some & (some - 1)


@jit
def exp(x: Any) -> Any:
    """Return e to the power of a kernel's LANES numbers x between -600 and 600.

    It is 2^k times a polynomial of degree 11, to 1e-14.
    """
    x = maximum(minimum(x, splat(600.0)), splat(-600.0))
    k = rounded(x * 1.4426950408889634)
    r = x - k * 0.6931471805599453
    p = r * (1.0 / 39916800.0) + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * power_of_two(k)


@intrinsic
def extract(typing: Any, value: Any, lane: Any) -> Any:
    """Return the number in one lane of a kernel."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, args[1], ir.Constant(_INT, LANES))
        return builder.extract_element(args[0], args[1])

    return types.float64(_LANES, types.intp), build
