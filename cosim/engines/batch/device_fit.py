"""Measure devices in a simulator and fit their tables: sweeps, low-rank currents, charges, responses to deviations.

A device is measured once: the cache has a file for each kind, condition, card and version of the simulator. A table
that is absent, damaged or of other content is measured anew. It is not kept where the cache cannot be written, or at a
temperature that is not a whole degree, because that is a single chip's own.

A deck holds many copies of a device, each at voltages of its own. Voltages, currents and charges are those of an n
device here, too; a p device is measured at the opposite ones. For the tables see `device_tables`.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.base.store import cached_files, find_kept, keep_in_cache
from cosim.circuit.bench import Analysis, Bench, Current, Dc, Probe, Tolerances, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Mos, Source
from cosim.engines.batch.device_tables import (
    RANK,
    RESPONSES,
    Array,
    DeviceKind,
    DeviceTable,
    FourTerminalTable,
    GridAxis,
    ThreeTerminalTable,
    cubics,
    four_terminal_values,
    load_table,
    quadratics,
    resample,
    sample_points,
    table_bytes,
    table_name,
    three_terminal_current,
)
from cosim.engines.engine import DEFAULT_TIMEOUT, Failure, Simulator, Waveforms
from cosim.engines.table import reference_simulator, simulator_named
from cosim.technology.foundry import Size, device_cards
from cosim.technology.types import Technology

# gmin is that of the networks' runs, so that a table leaks as they do.
STATIC = Tolerances(abstol=1e-18, vntol=1e-9, reltol=1e-6)
# xmu 0 is the backward Euler rule: the charge that flows in a step is its length times the current at its end.
FAST = replace(STATIC, xmu=0.0, trtol=1e9, chgtol=1e-3)
_RAMP = 1e-18  # s from point to point: no transistor conducts so fast
_COPIES = 600  # in one deck
FORMAT = 10  # raised whenever a table of the same device comes out differently
Bias = tuple[float, float]  # voltages of the source and of the drain of a device's copy, V to the bulk


@dataclass(frozen=True)
class MeasuredDevice:
    """A transistor, or a cascode of two, that the simulator measures for a device table.

    vt_shifts: threshold shifts of the lower and upper device, V; betas: their factors of the current.
    """

    kind: DeviceKind
    vt_shifts: tuple[float, float] = (0.0, 0.0)
    betas: tuple[float, float] = (1.0, 1.0)

    def devices(self, copy: int) -> Iterator[Mos]:
        """Yield the transistors of one copy of the device that is measured for a table.

        Its nets are g, s, d, and m between two transistors, with the copy's number behind; the bulk is on ground.
        """
        kind, ends = self.kind, (f"d{copy}", f"g{copy}", f"s{copy}", GROUND)
        lower = Mos(f"l{copy}", *ends, kind.polarity, kind.w, kind.l)
        lower = replace(lower, vt_shift=self.vt_shifts[0], beta_factor=self.betas[0])
        if kind.cascode is None:
            yield lower
            return
        yield replace(lower, drain=f"m{copy}")
        w, l = kind.cascode  # noqa: E741
        upper = replace(lower, name=f"u{copy}", source=f"m{copy}", w=w, l=l)
        yield replace(upper, vt_shift=self.vt_shifts[1], beta_factor=self.betas[1])


@dataclass(frozen=True)
class MeasurementSetup:
    """A technology in its condition, and the simulator that measures device tables there."""

    technology: Technology
    simulator: Simulator

    def run(self, title: str, elements: Iterable[Element], analysis: Analysis, probes: Iterable[Probe]) -> Waveforms:
        """Run a circuit in the simulator that measures device tables, and return its waveforms.

        Raises SimulationError where the simulator fails, MissingToolError where it is not installed.
        """
        tolerances = FAST if isinstance(analysis, Tran) else STATIC
        circuit = Circuit(title, (), tuple(elements))
        bench = Bench(circuit, self.technology, analysis, tuple(probes), tolerances)
        found = self.simulator.run(bench, DEFAULT_TIMEOUT)
        if isinstance(found, Failure):
            raise SimulationError(f"{title} of {self.technology.name}: {found}")
        return found


def device_tables(
    technology: Technology, kinds: Iterable[DeviceKind], progress: Callable[[str], None] = lambda text: None
) -> dict[DeviceKind, DeviceTable]:
    """Return the batched engine's table of each kind of device, from the cache or newly measured.

    Tables are for the technology's corner, temperature and supply. progress: is told what is measured, and of a cache
    that cannot be written. Raises InputError when the technology's library lacks a device or a size, SimulationError
    when the simulator fails on one, MissingToolError when a table must be measured and the simulator is missing.
    """
    measuring = reference_simulator(technology)
    setup = MeasurementSetup(technology, simulator_named(measuring))
    version = f"{measuring}-{setup.simulator.describe(technology).version}"
    found: dict[DeviceKind, DeviceTable] = {}
    for kind in dict.fromkeys(kinds):
        provenance = _provenance(technology, kind, version)
        name = table_name(provenance)
        table = find_kept(cached_files(name), partial(load_table, provenance=provenance), progress)
        if table is None:
            progress(f"device table: {technology.name}, {_format_kind(kind)}")
            table = found[kind] = fit_table(setup, kind)
            if not float(technology.celsius).is_integer():
                continue  # a chip's own temperature, which no other chip has
            keep_in_cache(name, table_bytes(table, provenance), "device table", progress)
        found[kind] = table
    return found


def _provenance(technology: Technology, kind: DeviceKind, version: str) -> str:
    """Return everything that a device table depends on, as JSON: process, condition, simulator, sizes and cards."""
    sizes: list[Size] = [(kind.polarity, kind.w, kind.l)]
    if kind.cascode is not None:
        sizes.append((kind.polarity, *kind.cascode))
    content = {
        "format": FORMAT,
        "technology": technology.name,
        "corner": technology.corner,
        "celsius": technology.celsius,
        "top": top_voltage(technology),
        "simulator": version,
        "tolerances": [asdict(one) for one in (STATIC, FAST)],
        "kind": kind,
        "diffusion": technology.library.diffusion,
        "cards": [
            {"name": card.name, "polarity": card.polarity, "version": card.version, **card.parameters}
            for card in device_cards(technology, sizes)
        ],
    }
    return json.dumps(content, sort_keys=True)


def _format_kind(kind: DeviceKind) -> str:
    sizes = [(kind.w, kind.l), *([kind.cascode] if kind.cascode else [])]
    drawn = " under ".join(f"{w * 1e6:.6g}u/{l * 1e6:.6g}u" for w, l in sizes)  # noqa: E741
    return f"{kind.polarity} {drawn}{', four-terminal' if kind.four_terminal else ''}"


def measure_currents(
    setup: MeasurementSetup, device: MeasuredDevice, gate: GridAxis, biases: Sequence[Bias]
) -> tuple[Array, Array, Array]:
    """Simulate a device's direct currents at each bias, with the gate swept along its axis.

    biases: source and drain voltage; all voltages are to the bulk, V. Returns the currents into the drain and out of
    the source, A, and the voltage of a cascode's inner net, V, (biases, gate) each.
    """
    parts = [
        _currents(setup, device, gate, biases[start : start + _COPIES]) for start in range(0, len(biases), _COPIES)
    ]
    drain, source, middle = (np.concatenate(found) for found in zip(*parts, strict=True))
    return drain, source, middle


def _currents(
    setup: MeasurementSetup, device: MeasuredDevice, gate: GridAxis, biases: Sequence[Bias]
) -> tuple[Array, Array, Array]:
    """Measure direct currents as `measure_currents` does, in one deck."""
    sign, copies = device.kind.sign, range(len(biases))
    elements: list[Element] = [Source("gate", "v", "g", GROUND, sign * gate.start)]
    for copy, (source_volt, drain_volt) in enumerate(biases):
        elements += [replace(mos, gate="g") for mos in device.devices(copy)]
        elements += [Source(f"s{copy}", "v", f"s{copy}", GROUND, sign * source_volt)]
        elements += [Source(f"d{copy}", "v", f"d{copy}", GROUND, sign * drain_volt)]
    inner = [Voltage(f"m{copy}") for copy in copies] if device.kind.cascode else []
    probes = [*(Current(f"{end}{copy}") for end in "ds" for copy in copies), *inner]
    sweep = Dc("v", "gate", sign * gate.start, sign * gate.stop, sign * gate.step)
    waves = setup.run("currents", elements, sweep, probes)
    drain, source = (sign * np.array([waves.delivered(f"{end}{copy}") for copy in copies]) for end in "ds")
    assert drain.shape == (len(biases), gate.count), f"{drain.shape} points of {gate.count}"
    middle = sign * np.array([waves.probes[net] for net in inner]) if inner else np.zeros_like(drain)
    return drain, -source, middle


def measure_charges(setup: MeasurementSetup, kind: DeviceKind, paths: Array) -> Array:
    """Simulate a device's gate, source and drain charges, C, minus those at 0 V, along paths of voltages.

    paths: (copies, points, 3), gate, source and drain to the bulk, V. Returns an array of this shape, with charges of
    junctions and overlaps. Voltages ramp from point to point so fast that only charges make the current.
    """
    parts = [_charges(setup, kind, paths[start : start + _COPIES]) for start in range(0, len(paths), _COPIES)]
    return np.concatenate(parts)


def _charges(setup: MeasurementSetup, kind: DeviceKind, paths: Array) -> Array:
    """Measure charges as `measure_charges` does, in one deck."""
    device = MeasuredDevice(kind._replace(cascode=None))
    times: Array = _RAMP * np.arange(float(paths.shape[1] + 1))
    elements: list[Element] = []
    for copy, path in enumerate(paths):
        elements += device.devices(copy)
        for end, voltages in zip("gsd", kind.sign * path.T, strict=True):
            ramp = tuple((float(time), float(v)) for time, v in zip(times, [0.0, *voltages], strict=True))
            elements.append(Source(f"{end}{copy}", "v", f"{end}{copy}", GROUND, ramp))
    names = [f"{end}{copy}" for copy in range(len(paths)) for end in "gsd"]
    waves = setup.run("charges", elements, Tran(_RAMP, times[-1]), map(Current, names))
    flow = np.array([waves.delivered(name) for name in names])
    total = np.zeros_like(flow)
    np.cumsum(flow[:, 1:] * np.diff(waves.time), axis=1, out=total[:, 1:])
    reached = np.searchsorted(waves.time, times[1:] - 0.01 * _RAMP)
    found = kind.sign * total[:, np.minimum(reached, len(waves.time) - 1)]
    return found.reshape(len(paths), 3, -1).transpose(0, 2, 1)


_EXACT = 1e-3  # relative, at a high V_DS
_ONSET = 1e-3  # of the saturated current, at V_DS of 0 to 0.1 V
_REVERSED = 2e-2  # relative, beyond _ONSET
_LEAKING, _WORKING, _FROZEN = 2e-14, 2e-8, 2.5e-7  # A: less exact below, and above; the shape stays above
_LOOSEST = 30.0  # times less exact
_FREEZE_WIDTH = 2.0  # rows
_ROUNDS, _STEPS = 12, 4
_NORM = 8  # of the error: near the largest
_RIDGE = 1e-14


def low_rank_fit(current: Array, y: Array, high: int) -> tuple[Array, Array, Array]:
    """Fit a device's current (x, y), A, over V_GS and V_DS = y by a sum of RANK products, for its table.

    Returns reference (x,), the current at V_DS = y[high], A; gate (RANK, x) and drain (RANK, y), so that I(x, y) =
    reference(x) sum_k gate[k](x) drain[k](y).
    The fit is by weighted alternating least squares. Weights first follow from how exact each entry must be; then they
    grow where the error is large, so that the largest error shrinks. The best round counts. Where the reference exceeds
    _FROZEN, I(x, y) / I(x, y[high]) stays constant in x: a digital signal's device needs no more, and its late
    saturation would cost two products.
    """
    reference = np.maximum(current[:, high], 1e-19)
    shape = _freeze(current / reference[:, None], reference)
    tolerance = np.where(y > 0.1, _EXACT * np.abs(shape), np.where(y >= 0, _ONSET, _REVERSED * np.abs(shape) + _ONSET))
    looser = np.where(reference < _LEAKING, _LEAKING / reference, np.maximum(1.0, reference / _WORKING))
    first = 1 / (tolerance * np.minimum(looser, _LOOSEST)[:, None])
    weights, drain = first, _initial(shape, first)
    gate, best, least = _rows(shape, weights, drain), drain, np.inf
    for _ in range(_ROUNDS):
        drain = _alternated(shape, weights, drain, first.mean(axis=0))
        found = _rows(shape, weights, drain)
        error = np.abs(found @ drain - shape) * first
        if (worst := float(np.mean(error**_NORM) ** (1 / _NORM))) < least:
            gate, best, least = found, drain, worst
        emphasis = np.maximum(error / np.sqrt(np.mean(error**2)), 0.1) ** 0.3
        weights = np.minimum(weights * emphasis, 30 * first)
    return reference, gate.T, best


def _alternated(shape: Array, weights: Array, drain: Array, scale: Array) -> Array:
    """Return better functions of y, orthogonal but for `scale`, by fitting rows and columns in turn."""
    for _ in range(_STEPS):
        gate = np.linalg.qr(_rows(shape, weights, drain))[0]
        columns = _rows(shape.T, weights.T, gate.T)
        drain = np.linalg.qr(columns * scale[:, None])[0].T / scale
    return drain


def _freeze(shape: Array, reference: Array) -> Array:
    """Return the shape, whose row stops changing, softly, where the reference exceeds _FROZEN."""
    if reference[-1] <= _FROZEN:
        return shape
    rows, top = np.arange(float(len(shape))), float(np.argmax(reference > _FROZEN))
    effective = top - _FREEZE_WIDTH * np.logaddexp(0.0, (top - rows) / _FREEZE_WIDTH)
    return resample(rows, shape, np.maximum(effective, 0.0))


def _initial(shape: Array, weights: Array) -> Array:
    """Return functions of y from a singular value decomposition, with weights of x times weights of y."""
    over_x, over_y = weights.mean(axis=1), weights.mean(axis=0)
    return np.linalg.svd(over_x[:, None] * shape * over_y, full_matrices=False)[2][:RANK] / over_y


def _rows(shape: Array, weights: Array, drain: Array) -> Array:
    """Return (rows, RANK): each row of the shape as a sum of the drain functions with least weighted squares."""
    squares = weights**2
    matrices = (squares @ (drain[:, None] * drain[None]).reshape(RANK**2, -1).T).reshape(-1, RANK, RANK)
    sides = (squares * shape) @ drain.T
    ridge: Array = _RIDGE * np.einsum("rkk->r", matrices)[:, None, None] * np.eye(RANK)
    return np.linalg.solve(matrices + ridge, sides[..., None])[..., 0].astype(np.float64)


_MARGIN = 0.1  # V beyond ground and supply
_BELOW = 0.05  # V of a drain below its source
_STEP = 0.01  # V, of a three-terminal device
# V of gate, source and V_DS. Largest error of a switch of sg13g2: 0.18 % (tt, 27 C) and 0.26 % (ss, 0 C); with 0.05,
# 0.05 and 0.025 V 0.9 % (tt, 27 C): currents bend over V_G and V_S, and hardly over V_DS.
_FOUR_TERMINAL_STEPS = (0.035, 0.03, 0.03)
_CHARGE_STEP = 0.1  # V of source and V_DS where charges of a four-terminal device are measured
_LIMIT = 1e-5  # V_DS, V, that stands for 0 in ln(I / (1 - exp(-V_DS / U_T)))
_BEYOND = 0.3  # V above the end of the axes, at which the measured drain voltage V_S + V_DS is cut
_FLOOR = 1e-19  # A
_VT_STEP, _BETA_STEP = 0.01, 1.02
SIGNAL = (1e-12, 1e-7)  # A: currents whose error is reported
_RESPONDING = (1e-12, 1e-8)  # A: where the gate shift of a threshold is taken
_TYPICAL = 2e-10  # A: the drain's charge is measured at the first gate voltage with more current
_SATURATED = 0.2  # V_DS, V, from which on the slope of the gate's charge is C_GD


def top_voltage(technology: Technology) -> float:
    """Return the supply for which the batched engine's device tables are made, V.

    It is the technology's supply plus 5 %, rounded up to a quarter of a volt, so that supplies of +-5 % share tables.
    """
    return float(np.ceil(technology.supply * 1.05 / 0.25 - 1e-9) * 0.25)


def fit_table(setup: MeasurementSetup, kind: DeviceKind) -> DeviceTable:
    """Measure a kind of device in the simulator and return its device table.

    Raises SimulationError when the simulator fails, MissingToolError without it.
    """
    return fit_four_terminal(setup, kind) if kind.four_terminal else fit_three_terminal(setup, kind)


def fit_three_terminal(setup: MeasurementSetup, kind: DeviceKind) -> ThreeTerminalTable:
    """Measure a device whose source is on its bulk in the simulator, and return its table."""
    stop = top_voltage(setup.technology) + _MARGIN
    x, y = _axis(-_MARGIN, stop, _STEP), _axis(-_BELOW, stop, _STEP)
    current, _, middle = measure_currents(setup, MeasuredDevice(kind), x, [(0.0, v) for v in y.points])
    high = y.count // 2
    reference, gate, drain = low_rank_fit(current.T, y.points, high)
    typical = int(np.argmax(current[high] > _TYPICAL))
    along_x, along_y = np.zeros((x.count, 3)), np.zeros((y.count, 3))
    along_x[:, 0], along_x[:, 2] = x.points, y.points[high]
    along_y[:, 0], along_y[:, 2] = x.points[typical], y.points
    gate_over_x, _ = _three_terminal_charges(setup, kind, along_x, middle[high])
    gate_over_y, drain_over_y = _three_terminal_charges(setup, kind, along_y, middle[:, typical])
    first = _index(y, _SATURATED)
    c_gd = float((gate_over_y[first] - gate_over_y[-1]) / (y.points[-1] - y.points[first]))
    q, j = gate_over_x - c_gd * x.points, drain_over_y - c_gd * y.points
    zero = _index(y, 0.0)
    drain[:, zero] = 0.0  # at V_DS = 0, where the fit leaves its rounding
    found = ThreeTerminalTable(
        x,
        y,
        cubics(x, np.vstack([gate, np.log(reference), q - q[_index(x, 0.0)]])),
        cubics(y, np.vstack([drain, j - j[zero]]), zero),  # BSIM4's current bends where V_DS changes its sign
        cubics(x, _responses(setup, kind, x, float(y.points[high]))),
        c_gd,
        0.0,
    )
    return replace(found, error=_three_terminal_error(setup, kind, found))


def _three_terminal_error(setup: MeasurementSetup, kind: DeviceKind, table: ThreeTerminalTable) -> float:
    """Return the largest relative error halfway between the points of the sweeps, for SIGNAL and V_DS above 0.1 V.

    Where a device that is off leaks as much at a high V_DS, it counts for nothing.
    """
    gate = GridAxis(table.x.start + _STEP / 2, _STEP, table.x.count - 1)
    drains = np.arange(0.105, table.y.stop, 5 * _STEP)
    truth, *_ = measure_currents(setup, MeasuredDevice(kind), gate, [(0.0, v) for v in drains])
    carrying = _inside(truth[len(drains) // 2], SIGNAL)
    return _largest_error(three_terminal_current(table, gate.points, drains[:, None])[:, carrying], truth[:, carrying])


def _responses(setup: MeasurementSetup, kind: DeviceKind, x: GridAxis, drain: float) -> Array:
    """Return r, s and e over x, (RESPONSES, x): of all devices together, then of the upper one of a cascode alone."""

    def logarithm(vt_shifts: tuple[float, float] = (0.0, 0.0), betas: tuple[float, float] = (1.0, 1.0)) -> Array:
        device = MeasuredDevice(kind, vt_shifts, betas)
        return np.log(measure_currents(setup, device, x, [(0.0, drain)])[0][0])

    middle, rows = logarithm(), np.zeros((RESPONSES, x.count))
    for part in range(1 if kind.cascode is None else 2):
        both = part == 0
        up, down = (logarithm(vt_shifts=(step if both else 0.0, step)) for step in (_VT_STEP, -_VT_STEP))
        rows[3 * part] = (up - down) / (2 * _VT_STEP)
        rows[3 * part + 1] = (up - 2 * middle + down) / _VT_STEP**2
        up, down = (logarithm(betas=(beta if both else 1.0, beta)) for beta in (_BETA_STEP, 1 / _BETA_STEP))
        rows[3 * part + 2] = (up - down) / (2 * np.log(_BETA_STEP))
    return rows


def _three_terminal_charges(
    setup: MeasurementSetup, kind: DeviceKind, path: Array, middle: Array
) -> tuple[Array, Array]:
    """Measure for the batched engine the charges of gate and drain, C, along a path (points, 3) of voltages.

    A cascode's are those of its devices, with the inner net at its direct voltage `middle`, (points,) V.
    """
    if kind.cascode is None:
        charges = measure_charges(setup, kind, path[None])[0]
        return charges[:, 0], charges[:, 2]
    upper = kind._replace(w=kind.cascode[0], l=kind.cascode[1])
    below = measure_charges(setup, kind, np.column_stack([path[:, :2], middle])[None])[0]
    above = measure_charges(setup, upper, np.column_stack([path[:, 0], middle, path[:, 2]])[None])[0]
    return below[:, 0] + above[:, 0], above[:, 2]


def fit_four_terminal(setup: MeasurementSetup, kind: DeviceKind) -> FourTerminalTable:
    """Measure a device whose source is not on its bulk in the simulator, and return its table."""
    stop = top_voltage(setup.technology) + _MARGIN
    starts = (-_MARGIN, -_MARGIN, 0.0)
    axes = [_axis(start, stop, step) for start, step in zip(starts, _FOUR_TERMINAL_STEPS, strict=True)]
    gate, source, drain = axes
    samples = [sample_points(axis) for axis in axes]
    l = _current_logarithms(setup, kind, gate, samples)  # noqa: E741
    charges = _four_terminal_charges(setup, kind, samples, max(source.stop, drain.stop))
    values = np.concatenate([l[..., None], charges], axis=-1)
    for dimension, axis in enumerate(axes):
        values = np.moveaxis(quadratics(axis, np.moveaxis(values, dimension, 0)), 0, dimension)
    thermal, shift = setup.technology.thermal_voltage, _gate_shift(setup, kind)
    found = FourTerminalTable(gate, source, drain, _to_single_precision(_equal_at_no_drop(values)), thermal, shift, 0.0)
    return replace(found, error=_four_terminal_error(setup, kind, found))


def _equal_at_no_drop(values: Array) -> Array:
    """Return the values with the charges of both ends equal where V_DS is 0.

    So none jumps where the ends change roles. A spline is (first + second coefficient) / 2 at the axis' beginning, and
    the charges' difference is to be 0 there.
    """
    mean, half = (values[..., 3] + values[..., 2]) / 2, (values[..., 3] - values[..., 2]) / 2
    half[:, :, 0] = -half[:, :, 1]
    return np.stack([values[..., 0], values[..., 1], mean - half, mean + half], axis=-1)


def _channel_currents(setup: MeasurementSetup, kind: DeviceKind, gate: GridAxis, biases: Sequence[Bias]) -> Array:
    """Return the current through the channel into the source, A, (biases, gate), without the source's loss to the bulk.

    That loss is half of what both ends lose when both are at the source's voltage.
    """
    sources = sorted({source for source, _ in biases})
    into, out, _ = measure_currents(setup, MeasuredDevice(kind), gate, [(source, source) for source in sources])
    lost = dict(zip(sources, (into - out) / 2, strict=True))
    _, through, _ = measure_currents(setup, MeasuredDevice(kind), gate, biases)
    return through + np.array([lost[source] for source, _ in biases])


def _current_logarithms(setup: MeasurementSetup, kind: DeviceKind, gate: GridAxis, samples: Sequence[Array]) -> Array:
    """Return ln(I / (1 - exp(-V_DS / U_T))), I in A, at the samples of the three axes."""
    _, sources, drops = samples
    biases = [(source, min(source + max(drop, _LIMIT), gate.stop + _BEYOND)) for source in sources for drop in drops]
    fine = GridAxis(gate.start, gate.step / 2, 2 * gate.count - 1)
    current = _channel_currents(setup, kind, fine, biases)
    floored = (current + np.hypot(current, 2 * _FLOOR)) / 2
    drop = np.array([drain - source for source, drain in biases])[:, None]
    found = np.log(floored) - np.log(-np.expm1(-drop / setup.technology.thermal_voltage))
    kept = [0, *range(1, fine.count, 2), fine.count - 1]
    return np.moveaxis(found.reshape(len(sources), len(drops), -1)[..., kept], -1, 0)


def _four_terminal_charges(setup: MeasurementSetup, kind: DeviceKind, samples: Sequence[Array], stop: float) -> Array:
    """Return the charges of gate, lower and higher end, C, at the samples of the three axes.

    They are smooth, so they are measured 0.1 V apart, up to `stop` V of source and V_DS.
    """
    sources = _axis(-_MARGIN, stop, _CHARGE_STEP).points
    drops = _axis(0.0, stop, _CHARGE_STEP).points
    paths = np.zeros((len(sources), len(drops), len(samples[0]), 3))
    paths[..., 0] = samples[0]
    paths[..., 1] = sources[:, None, None]
    paths[..., 2] = np.minimum(sources[:, None, None] + drops[None, :, None], stop + _BEYOND)
    found = measure_charges(setup, kind, paths.reshape(-1, *paths.shape[2:])).reshape(paths.shape)
    for dimension, (points, wanted) in enumerate(((sources, samples[1]), (drops, samples[2]))):
        found = np.moveaxis(resample(points, np.moveaxis(found, dimension, 0), wanted), 0, dimension)
    return np.moveaxis(found, 2, 0)


def _gate_shift(setup: MeasurementSetup, kind: DeviceKind) -> float:
    """Return the gate shift that makes up for a threshold shift, over it: the mean over _RESPONDING at V_S = 0."""
    stop = top_voltage(setup.technology)
    gate = _axis(0.0, stop, _STEP)
    up, middle, down = (
        np.log(measure_currents(setup, MeasuredDevice(kind, (step, 0.0)), gate, [(0.0, stop / 2)])[0][0])
        for step in (_VT_STEP, 0.0, -_VT_STEP)
    )
    over_threshold = (up - down)[1:-1] / (2 * _VT_STEP)
    over_gate = (middle[2:] - middle[:-2]) / (2 * _STEP)
    shifts: Array = -over_threshold / over_gate
    return float(shifts[_inside(np.exp(middle[1:-1]), _RESPONDING)].mean())


def _four_terminal_error(setup: MeasurementSetup, kind: DeviceKind, table: FourTerminalTable) -> float:
    """Return the largest relative error off the samples where a network works, for SIGNAL and V_DS above 0.1 V."""
    top = table.gate.stop - _MARGIN
    gate = GridAxis(0.013, 0.0371, int(top / 0.0371))
    rng = np.random.default_rng(1)
    drops = rng.uniform(0.1, top, 200)
    sources = rng.uniform(0.0, top - drops)
    biases = list(zip(sources.tolist(), (sources + drops).tolist(), strict=True))
    truth = _channel_currents(setup, kind, gate, biases)
    current, *_ = four_terminal_values(table, gate.points, sources[:, None], drops[:, None])
    return _largest_error(current, truth)


def _largest_error(found: Array, truth: Array) -> float:
    inside = _inside(truth, SIGNAL)
    return float(np.max(np.abs(found[inside] / truth[inside] - 1), initial=0.0))


def _axis(start: float, stop: float, step: float) -> GridAxis:
    """Return the axis from `start` whose last point is `stop`, V, or the first one beyond it."""
    return GridAxis(start, step, math.ceil((stop - start) / step - 1e-9) + 1)


def _index(axis: GridAxis, v: float) -> int:
    return round((v - axis.start) / axis.step)


def _inside(current: Array, ends: tuple[float, float]) -> NDArray[np.bool_]:
    return (current > ends[0]) & (current < ends[1])


def _to_single_precision(values: Array) -> Array:
    """Return values rounded to single precision, in which they are kept: 1e-6 of a current."""
    return np.ascontiguousarray(values, dtype=np.float32).astype(np.float64)
