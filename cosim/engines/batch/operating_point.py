"""Operating points of benches, and the tiles in whose lanes benches run.

A bench begins at its operating point: dQ/dt = 0 with the sources' values at time 0. It is found by pseudo-transient
continuation (`transient.solve_operating_points`), once for all benches of a chip whose sources begin alike. Until then
some unknowns are clamped: memories that the bench sets, and nets that only leakage would hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.circuit.elements import Mos, Resistor
from cosim.circuit.waveforms import Waveform
from cosim.engines.batch.arrays import (
    BEGINS_STEP,
    CLOCK_ROWS,
    END,
    FAILED,
    FINISHED,
    FIRST_STEP,
    FOUR_TERMINAL_ROWS,
    HIGHEST_ORDER,
    NEWTON_TOLERANCE,
    NEXT_BREAKPOINT,
    NEXT_STEP,
    NOT_EVALUATED,
    OVERRANGE,
    RUNNING,
    STATUS,
    STEP_ROWS,
    TileValues,
    TransientState,
)
from cosim.engines.batch.assemble import AssembledCircuit
from cosim.engines.batch.circuit import SPARE, FlatCircuit, Unsupported
from cosim.engines.batch.device_tables import RANK, RESPONSES
from cosim.engines.batch.evaluate import TANGENT_RANGE, TANGENT_RANGE_FOUR_TERMINAL, TANGENT_RANGE_SATURATED
from cosim.engines.batch.lanes import LANES, aligned_zeros, aligned_zeros_single
from cosim.engines.batch.transient import solve_operating_points
from cosim.variation.draws import Chip

Array = NDArray[np.float64]
_NEWTON = 150.0  # V per reltol: at 1e-4 a last move d of 15 mV leaves d^2 / (2 n U_T), which the next steps take up
_ERROR = 10.0  # V of a step's error per reltol
_BEND = 0.07  # V: 2 n U_T
_LEFT_BY_NEWTON = 0.1  # of a step's error, where reltol is small
_SHARE = 0.05 / 20  # of a step's change per trtol, which adds to what its error may be
# Times the step that is asked for: the longest step of order 2, the longest of a higher order, whose measures are read
# from curves, and the first step after a breakpoint.
_LONGEST, _LONGEST_OF_HIGH_ORDER, _FIRST = 4.0, 12.0, 0.04
# Below this reltol the order of the BDF formula is HIGHEST_ORDER, which takes fewer steps there but more above it. The
# first step shrinks with reltol, because it has no error control and errs by its square; so do the tangents' ranges,
# down to _SMALLEST_SHARE of them, because what they err by is noise to the step control.
_HIGH_ORDER_BELOW, _SMALLEST_SHARE = 2.5e-6, 0.01
_TANGENT_RANGES = np.array([TANGENT_RANGE, TANGENT_RANGE_SATURATED, TANGENT_RANGE_FOUR_TERMINAL])
# V of a sample gate's clock in a step that turns it off: the channel goes within some 0.4 V, and its charge with it.
# With steps of 90 mV the voltage there errs by 0.003 mV (rms of eleven candidates, generic180), without by 0.03 mV.
_TURN_OFF_STEP = 0.09
_CLAMP, _STIFF = 1e-3, 1e6  # S, or times the conductance of the smallest resistor
_LEAK = 1e-15  # S, to its rail, of a net that only one polarity reaches: at 1 V a millionth of 1 nA
# V: Newton's last move in a step to an operating point. The last steps are longer than any time constant, so each is
# one more update, and what is left falls with its square.
_NEWTON_ON_THE_WAY = 15e-3
_FIRST_PSEUDO_STEP = 1e-10  # s: the first step on the way to an operating point
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of a chip's deviations, where no operating point is found at once
_Begun = tuple[Array, Array, Array]  # a bench's sources at time 0, deviations of three- and of four-terminal devices
ACCURACY = {
    "newton_V_per_reltol": _NEWTON,
    "step_error_V_per_reltol": _ERROR,
    "step_error_share_per_trtol": _SHARE,
    "tangent_V": TANGENT_RANGE,
    "high_order_below_reltol": _HIGH_ORDER_BELOW,
    "longest_step_of_high_order": _LONGEST_OF_HIGH_ORDER,
    "left_by_newton": _LEFT_BY_NEWTON,
    "turn_off_step_V": _TURN_OFF_STEP,
}


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """The operating point of a simulated bench, with its sources and deviations.

    time: breakpoints of the sources, (n,), s; sources: values there, (n, sources), V or A, linear in between;
    three_terminal_deviation (4 n,), four_terminal_deviation (2 n,): of n devices, in the rows of `arrays.TileValues`;
    x: unknowns, (rows + 1,), V; charge: (nets,), C; converged: whether an operating point was found.
    """

    time: Array
    sources: Array
    three_terminal_deviation: Array
    four_terminal_deviation: Array
    x: Array
    charge: Array
    converged: bool


@dataclass(frozen=True, eq=False)
class BenchTile:
    """The lanes in which the batched engine runs benches of one circuit side by side.

    has_deviations: three-terminal devices of some bench deviate from the nominal ones; step_limit: the longest step
    where no sample gate turns off, s.
    """

    circuit: AssembledCircuit
    values: TileValues
    state: TransientState
    has_deviations: bool
    step_limit: float

    def load(self, lane: int, point: OperatingPoint) -> None:
        """Begin a bench in a lane of the batched engine, at its operating point."""
        values, state, clock = self.values, self.state, self.state.clock
        values.x[:, lane] = state.x[:, :, lane] = point.x
        state.charge[:, :, lane] = point.charge
        _set_deviations(self.circuit, values, lane, point.three_terminal_deviation, point.four_terminal_deviation)
        _invalidate_devices(values, lane)
        count = len(point.time)
        state.breakpoint[:count, lane], state.source_values[:count, :, lane] = point.time, point.sources
        state.longest_step[:count, lane] = _longest_steps(
            self.circuit.sample_clocks, point.time, point.sources, self.step_limit
        )
        state.low[:, lane], state.high[:, lane] = np.inf, -np.inf
        clock[:, lane] = 0.0
        first_step = state.limits[FIRST_STEP]
        clock[[END, NEXT_BREAKPOINT, NEXT_STEP], lane] = point.time[-1], 1.0, first_step
        clock[STATUS, lane] = RUNNING if point.converged else FAILED
        state.step[BEGINS_STEP, lane] = 1.0


def _longest_steps(sample_clocks: Array, time: Array, sources: Array, limit: float) -> Array:
    """Return the longest step on the way to each breakpoint of a bench, (n,), s.

    While a clock turns a sample gate off, a step moves the clock by at most _TURN_OFF_STEP. sample_clocks: see
    `AssembledCircuit`; time, sources: see `OperatingPoint`; limit: what no step exceeds, s.
    """
    turned_off = (np.diff(sources, axis=0) @ sample_clocks.T).max(axis=1, initial=0.0)  # V
    least = np.diff(time) / limit  # steps
    return np.append(limit, np.diff(time) / np.maximum(turned_off / _TURN_OFF_STEP, least))


def new_tile(
    circuit: AssembledCircuit, bench: Bench, points: Sequence[OperatingPoint], lanes: int = LANES
) -> BenchTile:
    """Return a tile of the batched engine for benches with these operating points.

    Each lane holds the first point and counts as FINISHED, until a bench is loaded.
    """
    breakpoints = max(len(one.time) for one in points)
    has_deviations = any(one.three_terminal_deviation.any() for one in points)
    tile = _empty_tile(circuit, bench, breakpoints, lanes, has_deviations=has_deviations)
    for lane in range(lanes):
        tile.load(lane, points[0])
        tile.state.clock[STATUS, lane] = FINISHED  # it is there because a lane must hold something
    return tile


def _empty_tile(
    circuit: AssembledCircuit,
    bench: Bench,
    breakpoints: int,
    lanes: int = LANES,
    *,
    has_deviations: bool,
) -> BenchTile:
    """Return a tile of zeros, with the limits that a bench's tolerances give its steps."""
    rows, nets, sources = circuit.nets.unknowns, len(circuit.nets.names), len(circuit.source)
    step, highest = bench.transient.step, bench.technology.supply + OVERRANGE
    reltol, share = bench.tolerances.reltol, _SHARE * bench.tolerances.trtol
    newton = max(_NEWTON * reltol, (_BEND * _LEFT_BY_NEWTON * _ERROR * reltol) ** 0.5)
    first = _FIRST * step * min(1.0, reltol / _HIGH_ORDER_BELOW) ** 0.5
    order, longest = (HIGHEST_ORDER, _LONGEST_OF_HIGH_ORDER) if reltol < _HIGH_ORDER_BELOW else (2, _LONGEST)
    solutions = ("predicted", "error_weight", "inverse_diagonal", "residual")
    state = TransientState(
        clock=aligned_zeros(CLOCK_ROWS, lanes),
        step=aligned_zeros(STEP_ROWS, lanes),
        breakpoint=aligned_zeros(breakpoints, lanes),
        longest_step=aligned_zeros(breakpoints, lanes),
        source_values=aligned_zeros(breakpoints * sources, lanes).reshape(breakpoints, sources, lanes),
        **{name: aligned_zeros(rows + 1, lanes) for name in solutions},
        x=aligned_zeros((HIGHEST_ORDER + 1) * (rows + 1), lanes).reshape(-1, rows + 1, lanes),
        charge=aligned_zeros(HIGHEST_ORDER * nets, lanes).reshape(-1, nets, lanes),
        **{name: aligned_zeros(nets, lanes) for name in ("low", "high")},
        clamps=np.zeros((0, 2)),
        clamp_voltage=np.zeros((0, lanes)),
        limits=np.array([newton, _ERROR * reltol, first, share, highest, order]),
    )
    return BenchTile(circuit, _values(circuit, bench, lanes), state, has_deviations, longest * step)


def _values(circuit: AssembledCircuit, bench: Bench, lanes: int) -> TileValues:
    """Return a tile's values: zeros, with no device evaluated."""
    s, nets, rows = circuit.arrays, len(circuit.nets.names), circuit.nets.unknowns + 1
    gates, drains, devices = len(s.gate_lines), len(s.drain_lines), len(s.three_terminal)
    found = TileValues(
        x=aligned_zeros(rows, lanes),
        offset=aligned_zeros(nets, lanes),
        voltage=aligned_zeros(nets, lanes),
        current=aligned_zeros(nets, lanes),
        charge=aligned_zeros(nets, lanes),
        matrix=aligned_zeros_single(circuit.matrix.size + SPARE, lanes),
        source=aligned_zeros(len(circuit.source), lanes),
        tangent_range=np.clip(bench.tolerances.reltol / _HIGH_ORDER_BELOW, _SMALLEST_SHARE, 1.0) * _TANGENT_RANGES,
        gate_functions=aligned_zeros_single(gates * 2 * RANK, lanes),
        gate_responses=aligned_zeros_single(gates * 2 * RESPONSES, lanes),
        drain_functions=aligned_zeros_single(drains * 2 * RANK, lanes),
        gate_shift=aligned_zeros(gates, lanes),
        gate_point=aligned_zeros(gates, lanes),
        gate_delta=aligned_zeros(gates, lanes),
        gate_charge=aligned_zeros(2 * gates, lanes),
        gate_version=np.zeros(gates, dtype=np.int64),
        drain_point=aligned_zeros(drains, lanes),
        drain_delta=aligned_zeros(drains, lanes),
        drain_charge=aligned_zeros(2 * drains, lanes),
        drain_version=np.zeros(drains, dtype=np.int64),
        three_terminal_tangent=aligned_zeros_single(3 * devices, lanes),
        three_terminal_version=np.zeros(devices, dtype=np.int64),
        three_terminal_deviation=aligned_zeros_single(4 * devices, lanes),
        four_terminal_deviation=aligned_zeros(2 * len(s.four_terminal), lanes),
        four_terminal_tangent=aligned_zeros(len(circuit.four_terminal) * FOUR_TERMINAL_ROWS, lanes),
    )
    _invalidate_devices(found, slice(None))
    return found


def _set_deviations(
    circuit: AssembledCircuit, values: TileValues, lanes: int | slice, three_terminal: Array, four_terminal: Array
) -> None:
    """Set the deviations of devices, (rows,) in a lane or (rows, lanes) in several.

    The charge of a gate line is shifted by the mean of its devices.
    """
    s = circuit.arrays
    values.three_terminal_deviation[:, lanes], values.four_terminal_deviation[:, lanes] = three_terminal, four_terminal
    if len(s.gate_lines):
        by_device = three_terminal.reshape(len(s.three_terminal), 4, -1)
        shifts = s.three_terminal_size[:, None] * (by_device[:, 0] + s.upper_share[:, None] * by_device[:, 2])
        total = np.zeros((len(s.gate_lines), shifts.shape[1]))
        np.add.at(total, s.three_terminal[:, 0], shifts)
        values.gate_shift[:, lanes] = (total / s.gate_size[:, None]).reshape(values.gate_shift[:, lanes].shape)


def _invalidate_devices(values: TileValues, lanes: int | slice) -> None:
    """Mark every device of some lanes as not evaluated: nothing may depend on the bench that was there before."""
    values.gate_point[:, lanes] = values.drain_point[:, lanes] = NOT_EVALUATED
    values.four_terminal_tangent[::FOUR_TERMINAL_ROWS, lanes] = NOT_EVALUATED


def operating_points(
    circuit: AssembledCircuit, benches: Sequence[Bench], flat: Sequence[FlatCircuit]
) -> list[OperatingPoint]:
    """Solve for the operating points of benches with flat circuits `flat`.

    Benches of one chip whose sources begin alike share one.
    """
    sources = _source_breakpoints(circuit, benches, flat)
    deviations = _device_deviations(circuit, flat)
    return _solve_all(circuit, benches[0], clamped_rows(circuit, benches[0], flat[0]), sources, deviations)


def chip_operating_points(
    circuit: AssembledCircuit, bench: Bench, flat: FlatCircuit, chips: Sequence[Chip]
) -> list[OperatingPoint]:
    """Solve for the operating points of a bench, whose flat circuit is `flat`, on drawn chips."""
    names = {one.name: k for k, one in enumerate(chips[0].devices)}
    drawn = np.stack([one.vt_shift for one in chips]), np.stack([one.beta_factor for one in chips])
    deviations = list(zip(*_deviations_of(circuit, names, *drawn), strict=True))
    sources = _source_breakpoints(circuit, [bench], [flat]) * len(chips)
    return _solve_all(circuit, bench, clamped_rows(circuit, bench, flat), sources, deviations)


def _solve_all(
    circuit: AssembledCircuit,
    bench: Bench,
    clamps: Array,
    sources: Sequence[tuple[Array, Array]],
    deviations: Sequence[tuple[Array, Array]],
) -> list[OperatingPoint]:
    """Solve for operating points, one for all that begin alike; sources: breakpoints, s, and values there, V or A."""
    begun = [(values[0], *one) for (_, values), one in zip(sources, deviations, strict=True)]
    keys = [tuple(part.tobytes() for part in one) for one in begun]
    first = {key: k for k, key in reversed(list(enumerate(keys)))}
    found: dict[int, tuple[Array, Array, bool]] = {}
    unlike, tile = sorted(first.values()), _operating_point_tile(circuit, bench, clamps, begun)
    for few in (unlike[at : at + LANES] for at in range(0, len(unlike), LANES)):
        found.update(zip(few, _solve_few(tile, bench, [begun[k] for k in few]), strict=True))
    return [
        OperatingPoint(*own, *one, *found[first[key]]) for own, one, key in zip(sources, deviations, keys, strict=True)
    ]


def _operating_point_tile(circuit: AssembledCircuit, bench: Bench, clamps: Array, begun: Sequence[_Begun]) -> BenchTile:
    """Return the tile in which operating points of benches that begin so are solved for, with clamped unknowns."""
    tile = _empty_tile(circuit, bench, 1, has_deviations=any(three_terminal.any() for _, three_terminal, _ in begun))
    # where nothing but a leak holds a pair of nets that a switch joins, 1e-9 of the switch, single precision loses it
    values = tile.values._replace(matrix=aligned_zeros(circuit.matrix.size + SPARE))
    tile.state.limits[NEWTON_TOLERANCE] = _NEWTON_ON_THE_WAY
    clamped = np.repeat(clamps[:, 2:], LANES, axis=1)
    return replace(tile, values=values, state=tile.state._replace(clamps=clamps[:, :2].copy(), clamp_voltage=clamped))


def _solve_few(tile: BenchTile, bench: Bench, few: Sequence[_Begun]) -> list[tuple[Array, Array, bool]]:
    """Return unknowns, V, charges, C, and whether it converged, of each of at most LANES benches.

    few: each bench's sources at time 0 and its deviations. A bench with deviations for which no operating point is
    found is solved again with all of them scaled, from 0 to 1 times; each attempt begins where the one before ended.
    """
    found = _solve_from(tile, bench, few, None)
    lost = [k for k, (*_, converged) in enumerate(found) if not converged and few[k][1].any()]
    starts: list[Array] | None = None
    for share in _SHARES if lost else ():
        again = _solve_from(tile, bench, [_scaled(few[k], share) for k in lost], starts)
        starts = [x for x, *_ in again]
        found = [again[lost.index(k)] if k in lost else one for k, one in enumerate(found)]
    return found


def _scaled(begun: _Begun, share: float) -> _Begun:
    """Return a bench's sources, and a share of its deviations: shifts times it, current factors to the power of it."""
    sources, three_terminal, four_terminal = begun
    shift, factor = four_terminal.reshape(-1, 2).T
    return (
        sources,
        share * three_terminal,
        np.stack([share * shift, factor**share], axis=1).reshape(four_terminal.shape),
    )


def _solve_from(
    tile: BenchTile, bench: Bench, few: Sequence[_Begun], starts: Sequence[Array] | None
) -> list[tuple[Array, Array, bool]]:
    """Return what `_solve_few` returns, of one attempt. starts: unknowns to begin at, None for `bench.start`."""
    circuit, values, state = tile.circuit, tile.values, tile.state
    s = circuit.arrays
    for rows in (state.clock, state.step, state.x, state.charge, values.x):
        rows[:] = 0.0
    benches = [min(lane, len(few) - 1) for lane in range(LANES)]
    sources, three_terminal, four_terminal = (np.stack([few[k][part] for k in benches], axis=1) for part in range(3))
    for net, voltage in bench.start:
        if net in circuit.net:
            behind = sum(sources[circuit.source[f"v{name}"]] * sign for name, sign in circuit.nets.paths[net])
            values.x[s.row[circuit.net[net]]] = voltage - behind
    values.x[circuit.nets.unknowns] = 0.0
    if starts is not None:
        values.x[:] = np.stack([starts[k] for k in benches], axis=1)
    values.source[:] = sources
    _set_deviations(circuit, values, slice(None), three_terminal, four_terminal)
    _invalidate_devices(values, slice(None))
    state.clock[NEXT_STEP], state.step[BEGINS_STEP] = _FIRST_PSEUDO_STEP, 1.0
    solve_operating_points(s, circuit.matrix.lu, values, state, tile.has_deviations)
    failed = state.clock[STATUS] == FAILED
    return [(values.x[:, k].copy(), state.charge[0, :, k].copy(), not failed[k]) for k in range(len(few))]


def net_voltages(circuit: AssembledCircuit, point: OperatingPoint) -> Array:
    """Return the voltages of all nets at a simulated operating point, V, (nets,)."""
    s = circuit.arrays
    found = point.x[s.row]
    np.add.at(found, s.offsets[:, 0], point.sources[0][s.offsets[:, 1]] * s.offset_sign)
    return found


def clamped_rows(circuit: AssembledCircuit, bench: Bench, flat: FlatCircuit) -> Array:
    """Return the solver's unknowns that are clamped until the operating point: (n, 3), row, conductance S, voltage V.

    They are nets that the bench sets; nets that only p devices reach, clamped to the supply; and nets that only n
    devices reach, clamped to ground, because tables lack the junctions' currents that would hold them.
    """
    supply = bench.technology.supply
    reached: dict[str, set[str]] = {}
    for mos in flat.shared:
        if isinstance(mos, Mos):
            for net in (mos.drain, mos.source):
                reached.setdefault(net, set()).add(mos.polarity)
    rails = {frozenset("p"): supply, frozenset("n"): 0.0}
    leaks = {net: rails[frozenset(by)] for net, by in reached.items() if frozenset(by) in rails}
    for net, _ in bench.preset:
        if circuit.nets.paths.get(net):
            raise Unsupported(f"a preset of net {net}, which is behind a voltage source")
    stiff = max([_CLAMP, *(_STIFF / one.value for one in flat.shared if isinstance(one, Resistor))])
    clamped = [(net, stiff, voltage) for net, voltage in bench.preset]
    clamped += [(net, _LEAK, voltage) for net, voltage in leaks.items()]
    rows = [(circuit.arrays.row[circuit.net[net]], *pull) for net, *pull in clamped if net in circuit.net]
    return np.array([one for one in rows if one[0] < circuit.nets.unknowns], dtype=np.float64).reshape(-1, 3)


def _device_deviations(circuit: AssembledCircuit, flat: Sequence[FlatCircuit]) -> list[tuple[Array, Array]]:
    """Return the deviations of each bench's devices, three-terminal and four-terminal, in rows of `arrays.TileValues`.

    Circuits that share their transistors share both arrays.
    """
    found: list[tuple[Array, Array]] = []
    for k, one in enumerate(flat):
        if k and one.shared is flat[k - 1].shared:
            found.append(found[-1])
        else:
            deviating = [mos for mos in one.shared if isinstance(mos, Mos) and (mos.vt_shift or mos.beta_factor != 1.0)]
            drawn = np.array([(mos.vt_shift, mos.beta_factor) for mos in deviating]).reshape(-1, 1, 2).T
            names = {mos.name: k for k, mos in enumerate(deviating)}
            three_terminal, four_terminal = _deviations_of(circuit, names, drawn[0], drawn[1])
            found.append((three_terminal[0], four_terminal[0]))
    return found


def _deviations_of(
    circuit: AssembledCircuit, names: Mapping[str, int], vt_shift: Array, beta_factor: Array
) -> tuple[Array, Array]:
    """Return the deviations of three-terminal devices, (chips, 4 n), and of four-terminal ones, (chips, 2 n).

    names: transistor -> its column of vt_shift, V, and beta_factor, (chips, transistors); others do not deviate.
    """
    chips = len(vt_shift)
    shift = np.concatenate([vt_shift, np.zeros((chips, 1))], axis=1)  # the last column is of the others
    factor = np.concatenate([beta_factor, np.ones((chips, 1))], axis=1)
    three_terminal = np.zeros((chips, len(circuit.three_terminal), 4))
    four_terminal = np.zeros((chips, len(circuit.four_terminal), 2))
    lower, upper = (_columns([one.parts[end] for one in circuit.three_terminal], names) for end in (0, -1))
    three_terminal[..., 0], three_terminal[..., 1] = shift[:, lower], np.log(factor[:, lower])
    three_terminal[..., 2] = shift[:, upper] - shift[:, lower]  # 0 for a single transistor, which is its own upper one
    three_terminal[..., 3] = np.log(factor[:, upper] / factor[:, lower])
    own = _columns([one.parts[0] for one in circuit.four_terminal], names)
    four_terminal[..., 0], four_terminal[..., 1] = shift[:, own], factor[:, own]
    return three_terminal.reshape(chips, -1), four_terminal.reshape(chips, -1)


def _columns(devices: Sequence[str], names: Mapping[str, int]) -> NDArray[np.int64]:
    return np.array([names.get(name, -1) for name in devices], dtype=np.int64)


def _source_breakpoints(
    circuit: AssembledCircuit, benches: Sequence[Bench], flat: Sequence[FlatCircuit]
) -> list[tuple[Array, Array]]:
    """Return the breakpoints (n,), s, of each bench's sources, and the values (n, sources) there, V or A."""
    found: list[tuple[Array, Array]] = []
    for bench, own in zip(benches, flat, strict=True):
        waveforms = {one.letter + one.name: one.value for one in own.sources}
        found.append(_breakpoints_of(circuit, waveforms, bench.transient.end))
    return found


def _breakpoints_of(circuit: AssembledCircuit, waveforms: Mapping[str, Waveform], end: float) -> tuple[Array, Array]:
    moving = {name: np.array(value).T for name, value in waveforms.items() if isinstance(value, tuple)}
    time = _breakpoint_times([corners for corners, _ in moving.values()], end)
    values = np.empty((len(time), len(circuit.source)))
    for name, index in circuit.source.items():
        values[:, index] = np.interp(time, *moving[name]) if name in moving else waveforms[name]
    return time, values


def _breakpoint_times(times: Sequence[Array], end: float) -> Array:
    """Return the corners of all sources, with 0 and `end`, s; those closer than 1e-12 of `end` are one."""
    found = np.unique(np.concatenate([*times, [0.0, end]]))
    found = found[(found >= 0.0) & (found <= end)]
    return found[np.concatenate([[True], np.diff(found) > 1e-12 * end])]
