"""Tables of devices from their sweeps: which voltages are measured, and how splines come from what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.lowrank import separate
from cosim.engines.batch.reference import float_values, tied_current
from cosim.engines.batch.splines import cubics, quadratics, resample, sample_points
from cosim.engines.batch.sweeps import Bias, Laboratory, Stack, measure_charges, measure_currents
from cosim.engines.batch.tables import RESPONSES, Array, Float, GridAxis, Kind, Table, Tied
from cosim.technology.types import Technology

_MARGIN = 0.1  # V beyond ground and supply
_BELOW = 0.05  # V of a drain below its source
_STEP = 0.01  # V, of a Tied
_FLOAT_STEPS = (0.05, 0.05, 0.025)  # V of gate, source and V_DS
_CHARGE_STEP = 0.1  # V of source and V_DS where charges of a Float are measured
_LIMIT = 1e-5  # V_DS, V, that stands for 0 in ln(I / (1 - exp(-V_DS / U_T)))
_BEYOND = 0.3  # V beyond the axes that a drain goes where V_S + V_DS leads further
_FLOOR = 1e-19  # A
_VT_STEP, _BETA_STEP = 0.01, 1.02
SIGNAL = (1e-12, 1e-7)  # A: currents whose error is reported
_RESPONDING = (1e-12, 1e-8)  # A: where the gate shift of a threshold is taken
_TYPICAL = 1e-9  # A: where the drain's charge is taken
_SATURATED = 0.2  # V_DS, V: from there on the overlap is taken


def top_voltage(technology: Technology) -> float:
    """The supply that tables are made for, V: 5 % above, then the next quarter of a volt, so that +-5 % share them."""
    return float(np.ceil(technology.supply * 1.05 / 0.25 - 1e-9) * 0.25)


def fit_table(laboratory: Laboratory, kind: Kind) -> Table:
    """Measure a device. Raises SimulationError when the simulator fails, MissingToolError without it."""
    return fit_float(laboratory, kind) if kind.floating else fit_tied(laboratory, kind)


def fit_tied(laboratory: Laboratory, kind: Kind) -> Tied:
    """A device whose source and bulk are one net."""
    stop = top_voltage(laboratory.technology) + _MARGIN
    x, y = _axis(-_MARGIN, stop, _STEP), _axis(-_BELOW, stop, _STEP)
    swept = measure_currents(laboratory, Stack(kind), x, [Bias(0.0, v) for v in y.points])
    high = y.count // 2
    shape = separate(swept.drain.T, y.points, high)
    typical = int(np.argmax(swept.drain[high] > _TYPICAL))
    charges = _tied_charges(laboratory, kind, _Curves(x, y, high, typical, swept.middle))
    q = charges.gate - charges.c_gd * x.points
    j = charges.drain - charges.c_gd * y.points
    found = Tied(
        x,
        y,
        cubics(x, np.vstack([np.log(shape.reference), shape.gate, q - q[_index(x, 0.0)]])),
        cubics(y, np.vstack([shape.drain, j - j[_index(y, 0.0)]])),
        cubics(x, _responses(laboratory, kind, x, float(y.points[high]))),
        charges.c_gd,
        0.0,
    )
    return replace(found, error=_tied_error(laboratory, kind, found))


def _tied_error(laboratory: Laboratory, kind: Kind, table: Tied) -> float:
    """Largest relative error halfway between the points of the sweeps, for SIGNAL and V_DS above 0.1 V.

    Where a device that is off leaks as much at a high V_DS, it counts for nothing.
    """
    gate = GridAxis(table.x.start + _STEP / 2, _STEP, table.x.count - 1)
    drains = np.arange(0.105, table.y.stop, 5 * _STEP)
    truth = measure_currents(laboratory, Stack(kind), gate, [Bias(0.0, v) for v in drains]).drain
    carrying = _between(truth[len(drains) // 2], SIGNAL)
    return _largest_error(tied_current(table, gate.points, drains[:, None])[:, carrying], truth[:, carrying])


def _responses(laboratory: Laboratory, kind: Kind, x: GridAxis, drain: float) -> Array:
    """r, s and e over x, (RESPONSES, x): of all devices together, then of the upper one of a cascode alone."""

    def logarithm(vt_shifts: tuple[float, float] = (0.0, 0.0), betas: tuple[float, float] = (1.0, 1.0)) -> Array:
        stack = Stack(kind, vt_shifts, betas)
        return np.log(measure_currents(laboratory, stack, x, [Bias(0.0, drain)]).drain[0])

    middle, rows = logarithm(), np.zeros((RESPONSES, x.count))
    for part in range(1 if kind.cascode is None else 2):
        both = part == 0
        up, down = (logarithm(vt_shifts=(step if both else 0.0, step)) for step in (_VT_STEP, -_VT_STEP))
        rows[3 * part] = (up - down) / (2 * _VT_STEP)
        rows[3 * part + 1] = (up - 2 * middle + down) / _VT_STEP**2
        up, down = (logarithm(betas=(beta if both else 1.0, beta)) for beta in (_BETA_STEP, 1 / _BETA_STEP))
        rows[3 * part + 2] = (up - down) / (2 * np.log(_BETA_STEP))
    return rows


@dataclass(frozen=True, eq=False)
class _Curves:
    """Curves on which the charges of a Tied are measured: along x at V_DS = y[high], along y at V_GS = x[typical];
    middle: (y, x), V, of the net between a cascode's two devices."""

    x: GridAxis
    y: GridAxis
    high: int
    typical: int
    middle: Array


@dataclass(frozen=True, eq=False)
class _TiedCharges:
    """Charges of a tied device: of the gate over x and of the drain over y, C; c_gd: gate-drain capacitance, F."""

    gate: Array
    drain: Array
    c_gd: float


def _tied_charges(laboratory: Laboratory, kind: Kind, curves: _Curves) -> _TiedCharges:
    """Along both curves; those of a cascode are those of its devices at the inner voltage of the direct current."""
    x, y = curves.x.points, curves.y.points
    to_x, to_y = np.zeros((len(x), 3)), np.zeros((len(y), 3))
    to_x[:, 0], to_x[:, 2] = x, y[curves.high]
    to_y[:, 0], to_y[:, 2] = x[curves.typical], y
    if kind.cascode is None:
        over_x, over_y = (measure_charges(laboratory, kind, path[None])[0] for path in (to_x, to_y))
        gate, gate_over_y, drain = over_x[:, 0], over_y[:, 0], over_y[:, 2]
    else:
        upper = kind._replace(w=kind.cascode[0], l=kind.cascode[1])
        middles = curves.middle[curves.high], curves.middle[:, curves.typical]
        lower_x, lower_y = (
            measure_charges(laboratory, kind, np.column_stack([path[:, :2], middle])[None])[0]
            for path, middle in zip((to_x, to_y), middles, strict=True)
        )
        upper_x, upper_y = (
            measure_charges(laboratory, upper, np.column_stack([path[:, 0], middle, path[:, 2]])[None])[0]
            for path, middle in zip((to_x, to_y), middles, strict=True)
        )
        gate, gate_over_y, drain = lower_x[:, 0] + upper_x[:, 0], lower_y[:, 0] + upper_y[:, 0], upper_y[:, 2]
    first = _index(curves.y, _SATURATED)
    c_gd = float((gate_over_y[first] - gate_over_y[-1]) / (y[-1] - y[first]))
    return _TiedCharges(gate, drain, c_gd)


def fit_float(laboratory: Laboratory, kind: Kind) -> Float:
    """A device whose source is not its bulk."""
    stop = top_voltage(laboratory.technology) + _MARGIN
    starts = (-_MARGIN, -_MARGIN, 0.0)
    gate, source, drain = axes = [_axis(start, stop, step) for start, step in zip(starts, _FLOAT_STEPS, strict=True)]
    samples = [sample_points(axis) for axis in axes]
    l = _float_logarithms(laboratory, kind, gate, samples)  # noqa: E741
    charges = _float_charges(laboratory, kind, samples, stop)
    values = np.concatenate([l[..., None], charges], axis=-1)
    for dimension, axis in enumerate(axes):
        values = np.moveaxis(quadratics(axis, np.moveaxis(values, dimension, 0)), 0, dimension)
    thermal, shift = laboratory.technology.thermal_voltage, _gate_shift(laboratory, kind)
    found = Float(gate, source, drain, _rounded(_joined(values)), thermal, shift, 0.0)
    return replace(found, error=_float_error(laboratory, kind, found))


def _joined(values: Array) -> Array:
    """Values whose charges of both ends are one where V_DS is 0, so that none jumps where the ends change roles.

    A spline is (first + second coefficient) / 2 at the axis' beginning, and the charges' difference is to be 0 there.
    """
    mean, half = (values[..., 3] + values[..., 2]) / 2, (values[..., 3] - values[..., 2]) / 2
    half[:, :, 0] = -half[:, :, 1]
    return np.stack([values[..., 0], values[..., 1], mean - half, mean + half], axis=-1)


def _channel_currents(laboratory: Laboratory, kind: Kind, gate: GridAxis, biases: Sequence[Bias]) -> Array:
    """Return the current through the channel into the source, A, (biases, gate), without the source's loss to the bulk.

    That loss is half of what both ends lose when both are at the source's voltage.
    """
    sources = sorted({bias.source for bias in biases})
    still = measure_currents(laboratory, Stack(kind), gate, [Bias(source, source) for source in sources])
    lost = dict(zip(sources, (still.drain - still.source) / 2, strict=True))
    through = measure_currents(laboratory, Stack(kind), gate, biases).source
    return through + np.array([lost[bias.source] for bias in biases])


def _float_logarithms(laboratory: Laboratory, kind: Kind, gate: GridAxis, samples: Sequence[Array]) -> Array:
    """ln(I / (1 - exp(-V_DS / U_T))) at the samples of the three axes."""
    _, sources, drops = samples
    biases = [
        Bias(source, min(source + max(drop, _LIMIT), gate.stop + _BEYOND)) for source in sources for drop in drops
    ]
    fine = GridAxis(gate.start, gate.step / 2, 2 * gate.count - 1)
    current = _channel_currents(laboratory, kind, fine, biases)
    floored = (current + np.hypot(current, 2 * _FLOOR)) / 2
    drop = np.array([bias.drain - bias.source for bias in biases])[:, None]
    found = np.log(floored) - np.log(-np.expm1(-drop / laboratory.technology.thermal_voltage))
    kept = [0, *range(1, fine.count, 2), fine.count - 1]
    return np.moveaxis(found.reshape(len(sources), len(drops), -1)[..., kept], -1, 0)


def _float_charges(laboratory: Laboratory, kind: Kind, samples: Sequence[Array], stop: float) -> Array:
    """Charges of gate, lower and higher end at the samples of the three axes; smooth, so measured on a wider grid."""
    sources = _axis(-_MARGIN, stop, _CHARGE_STEP).points
    drops = _axis(0.0, stop, _CHARGE_STEP).points
    paths = np.zeros((len(sources), len(drops), len(samples[0]), 3))
    paths[..., 0] = samples[0]
    paths[..., 1] = sources[:, None, None]
    paths[..., 2] = np.minimum(sources[:, None, None] + drops[None, :, None], stop + _BEYOND)
    found = measure_charges(laboratory, kind, paths.reshape(-1, *paths.shape[2:])).reshape(paths.shape)
    for dimension, (points, wanted) in enumerate(((sources, samples[1]), (drops, samples[2]))):
        found = np.moveaxis(resample(points, np.moveaxis(found, dimension, 0), wanted), 0, dimension)
    return np.moveaxis(found, 2, 0)


def _gate_shift(laboratory: Laboratory, kind: Kind) -> float:
    """Measure the gate voltage that makes up for a threshold, over that threshold; mean over _RESPONDING, V_S = 0."""
    stop = top_voltage(laboratory.technology)
    gate, biases = _axis(0.0, stop, _STEP), [Bias(0.0, stop / 2)]
    up, middle, down = (
        np.log(measure_currents(laboratory, Stack(kind, (step, 0.0)), gate, biases).drain[0])
        for step in (_VT_STEP, 0.0, -_VT_STEP)
    )
    over_threshold = (up - down)[1:-1] / (2 * _VT_STEP)
    over_gate = (middle[2:] - middle[:-2]) / (2 * _STEP)
    shifts: Array = -over_threshold / over_gate
    return float(shifts[_between(np.exp(middle[1:-1]), _RESPONDING)].mean())


def _float_error(laboratory: Laboratory, kind: Kind, table: Float) -> float:
    """Largest relative error where the network works, for SIGNAL and V_DS above 0.1 V, off the samples."""
    top = table.gate.stop - _MARGIN
    gate = GridAxis(0.013, 0.0371, int(top / 0.0371))
    rng = np.random.default_rng(1)
    drops = rng.uniform(0.1, top, 200)
    sources = rng.uniform(0.0, top - drops)
    biases = [Bias(*ends) for ends in zip(sources.tolist(), (sources + drops).tolist(), strict=True)]
    truth = _channel_currents(laboratory, kind, gate, biases)
    return _largest_error(float_values(table, gate.points, sources[:, None], drops[:, None]).current, truth)


def _largest_error(found: Array, truth: Array) -> float:
    inside = _between(truth, SIGNAL)
    return float(np.max(np.abs(found[inside] / truth[inside] - 1), initial=0.0))


def _axis(start: float, stop: float, step: float) -> GridAxis:
    return GridAxis(start, step, round((stop - start) / step) + 1)


def _index(axis: GridAxis, v: float) -> int:
    return round((v - axis.start) / axis.step)


def _between(current: Array, ends: tuple[float, float]) -> NDArray[np.bool_]:
    return (current > ends[0]) & (current < ends[1])


def _rounded(values: Array) -> Array:
    """To single precision, in which they are kept: 1e-6 of a current."""
    return np.ascontiguousarray(values, dtype=np.float32).astype(np.float64)
