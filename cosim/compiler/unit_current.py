"""The unit current that a network could be compiled at, where it cannot be at the one that was asked for.

Every limit of a cell is a current, so a smaller i_unit helps a threshold that is too high and harms one that is too
low. Which i_unit suits all cells is found by asking the checks themselves.
"""

import math
from collections.abc import Callable

from cosim.compiler.checks import set_points
from cosim.compiler.scale import scale
from cosim.network.ir.graph import Lowered

_SERIES = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)  # IEC 60063, E12
_DECADES = range(-12, -6)  # of i_unit, A
_SAME = 1e-9  # relative, of rounded floats


def advise_unit_current(graph: Lowered, asked: float, refused: Callable[[float], str], technology: str) -> str:
    """Return what to do about a network that is refused at `asked`, ampere: the nearest i_unit that suits it, if any.

    refused: what the compiler says against an i_unit, nothing where it takes it.
    """
    least, most = _bounds(graph)
    tried = sorted(
        {value for value in (least, most, *_series()) if least <= value <= most}, key=lambda one: _apart(one, asked)
    )
    found = next((value for value in tried if not refused(value)), None)
    if found is not None:
        return f"compile with `i_unit={_typed(found)}`, which suits all cells"
    nearest = _between(least, most) if least <= most else most
    other = refused(nearest)
    why = other and f": at {_typed(nearest)}A, {other}"
    return (
        f"no `i_unit` suits all cells{why}; train it again with `train(technology={technology})`, which keeps all "
        "that it learns within what the cells can have"
    )


def _bounds(graph: Lowered) -> tuple[float, float]:
    """Return the smallest and the largest i_unit at which all set-points can be built, three digits, ampere.

    The first is the larger one where no i_unit suits all of them.
    """
    least, most = 0.0, math.inf
    for _, point in set_points(scale(graph, 1.0)):
        if point.current > 0:  # others are refused at any
            least, most = max(least, point.least / point.current), min(most, point.most / point.current)
    return _rounded(least * (1 + _SAME), math.ceil), _rounded(most * (1 - _SAME), math.floor)


def _rounded(value: float, whole: Callable[[float], int]) -> float:
    """Return a positive value rounded to three digits by `whole`, which is floor or ceil; others as they are."""
    if not 0 < value < math.inf:
        return value
    digit = math.floor(math.log10(value)) - 2
    return float(f"{whole(value / 10.0**digit)}e{digit}")


def _between(least: float, most: float) -> float:
    """Return a current of three digits between two, their geometric mean within the range of the series, ampere."""
    ends = max(least, _series()[0]), min(most, _series()[-1])
    return _rounded(math.sqrt(ends[0] * ends[1]), math.floor)


def _series() -> list[float]:
    return [float(f"{value}e{decade}") for decade in _DECADES for value in _SERIES]


def _apart(one: float, other: float) -> float:
    """Return by how many e-folds two currents differ."""
    return abs(math.log(one / other)) if 0 < one < math.inf else math.inf


def _typed(i_unit: float) -> str:
    """Return a current as `i_unit` takes it in a text: 333p."""
    return f"{i_unit * 1e9:g}n" if i_unit >= 1e-9 else f"{i_unit * 1e12:g}p"
