# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Transients with device noise: currents between nets that are normal numbers at grid points, linear in between.

ngspice's `trnoise` is the same. The density of such a current is 2 rms^2 grid_step up to half of 1 / grid_step,
one-sided. Of a transistor it is

    S = 2 q I thermal,   thermal = (4/3 c - 1/3) / c^2,   c = I / (g_m I_over_gm), 1 in weak inversion,

with the current that it carries at the beginning of an interval of the grid (cosim.technology.noise). With `every` it
is 2 q (I thermal + 2 U_T g_ds), which is 2 q (I_F + I_R) in weak inversion and 4 k T g_ds at V_DS = 0; I_F and I_R are
the currents that enter at either end (C. C. Enz and E. A. Vittoz, Charge-based MOS Transistor Modeling, 2006, ch. 6;
in strong inversion it is up to 8 % too much between the two). A resistor has 4 k T / R.

A number is a hash of the bench's key, the source and the grid point, the finaliser of SplitMix64 (G. L. Steele, D. Lea
and C. H. Flood, OOPSLA 2014), made normal as G. E. P. Box and M. E. Muller did (Ann. Math. Statist. 29 (1958) 610): it
depends on nothing beside the lane. Steps end at the grid's points, and keep their order of BDF there.

In all kernels s, p, v, m and saved are those of `transient`, and n is the noise of the tile (`NoiseState`).
"""

from collections.abc import Mapping, Sequence
from math import cos, log, sqrt, tau
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import Q_ELECTRON
from cosim.circuit.bench import TransientNoise
from cosim.circuit.elements import GROUND, Resistor, Source
from cosim.engines.batch.arrays import BEGINS_STEP, FOUR_TERMINAL_ROWS, NEXT_BREAKPOINT, NEXT_STEP, NOW, STEP
from cosim.engines.batch.assemble import AssembledCircuit
from cosim.engines.batch.circuit import FlatCircuit, TabulatedDevice, devices_of
from cosim.engines.batch.compiled import cached_jit, inlined_jit, jit
from cosim.engines.batch.evaluate import three_terminal_current
from cosim.engines.batch.lanes import (
    LANES,
    absolute,
    aligned_zeros,
    each_lane,
    load,
    maximum,
    minimum,
    not_less,
    select,
    splat,
    store,
)
from cosim.engines.batch.step_control import begin_step
from cosim.engines.batch.transient import may_continue, newton_iteration, set_sources

Array = NDArray[np.float64]
NetPair = tuple[str, str]  # nets that a noise current flows between
_GOLDEN, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(11)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3, _SOURCE_SHIFT = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_NEAR = 1e-3  # of a step of the grid: a point so near is this one
_INVERTED = 50.0  # largest slope of a device over that in weak inversion


class NoiseState(NamedTuple):
    """The device noise of a tile's benches in the batched engine, from n current sources.

    grid_step: s; source: index of each in `TileValues.source`, (n,); fixed_density: A^2/Hz, (n,); device_start (n + 1,)
    into device and i_over_gm: the three-terminal devices whose noise a source has, and their I / g_m in weak inversion,
    V; four_start, four, four_i_over_gm: the same of four-terminal devices; thermal_voltage: V; every: see
    `TransientNoise`; key: of each lane's bench, (LANES,); interval: of the grid, in which each lane is, (LANES,);
    start_current, end_current: at the ends of that interval, (n, LANES), A; density: (n, LANES), A^2/Hz.
    """

    grid_step: float
    source: NDArray[np.int64]
    fixed_density: Array
    device_start: NDArray[np.int64]
    device: NDArray[np.int64]
    i_over_gm: Array
    four_start: NDArray[np.int64]
    four: NDArray[np.int64]
    four_i_over_gm: Array
    thermal_voltage: float
    every: bool
    key: NDArray[np.uint64]
    interval: NDArray[np.int64]
    start_current: Array
    end_current: Array
    density: Array


def add_noise_sources(flat: Sequence[FlatCircuit], noise: TransientNoise) -> list[FlatCircuit]:
    """Return the circuits to simulate with a current source of 0 A added between each two nets that have noise."""
    fixed = [(net, GROUND) for net, _ in noise.sources]
    devices = devices_of(flat[0].elements) if noise.slopes else ()
    own = [_drain_and_source(one) for one in devices if noise.every or not one.kind.four_terminal]
    if noise.every:
        fixed += [(one.a, one.b) for one in flat[0].shared if isinstance(one, Resistor)]
    pairs = dict.fromkeys([*fixed, *own])
    added = tuple(Source(_source_name(pair), "i", *pair, 0.0) for pair in pairs)
    return [FlatCircuit(one.shared, (*one.sources, *added)) for one in flat]


def _drain_and_source(device: TabulatedDevice) -> NetPair:
    return device.drain, device.source


def _source_name(pair: NetPair) -> str:
    return f"noise {pair[0]} {pair[1]}"


def noise_state(circuit: AssembledCircuit, noise: TransientNoise, thermal_voltage: float) -> NoiseState:
    """Return the state of a tile's simulated device noise before its first bench.

    circuit: with the sources of `add_noise_sources`; thermal_voltage: V.
    """
    fixed: dict[NetPair, float] = {(net, GROUND): 2 * rms**2 * noise.step for net, rms in noise.sources}
    if noise.every:
        names, arrays = circuit.nets.names, circuit.arrays
        for (a, b), siemens in zip(arrays.resistors.tolist(), arrays.conductance.tolist(), strict=True):
            pair = names[a], names[b]
            if f"i{_source_name(pair)}" in circuit.source:  # the others stand for gmin
                fixed[pair] = fixed.get(pair, 0.0) + 4 * Q_ELECTRON * thermal_voltage * siemens
    three, four = (circuit.three_terminal, circuit.four_terminal if noise.every else ()) if noise.slopes else ((), ())
    pairs = sorted(
        {*fixed, *map(_drain_and_source, (*three, *four))}, key=lambda pair: circuit.source[f"i{_source_name(pair)}"]
    )
    i_over_gm = {kind: slope * thermal_voltage for kind, slope in zip("np", noise.slopes or (), strict=False)}
    return NoiseState(
        noise.step,
        np.array([circuit.source[f"i{_source_name(pair)}"] for pair in pairs], dtype=np.int64),
        np.array([fixed.get(pair, 0.0) for pair in pairs]),
        *_by_pair(three, pairs, i_over_gm),
        *_by_pair(four, pairs, i_over_gm),
        thermal_voltage=thermal_voltage,
        every=noise.every,
        key=np.zeros(LANES, dtype=np.uint64),
        interval=np.zeros(LANES, dtype=np.int64),
        start_current=aligned_zeros(len(pairs)),
        end_current=aligned_zeros(len(pairs)),
        density=aligned_zeros(len(pairs)),
    )


def _by_pair(
    devices: Sequence[TabulatedDevice], pairs: Sequence[NetPair], i_over_gm: Mapping[str, float]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return where the devices of each pair of nets begin, the devices' numbers in that order, and their I / g_m, V."""
    own: dict[NetPair, list[int]] = {}
    for k, device in enumerate(devices):
        own.setdefault(_drain_and_source(device), []).append(k)
    lists = [own.get(pair, []) for pair in pairs]
    numbers = [k for few in lists for k in few]
    return (
        np.cumsum([0, *map(len, lists)], dtype=np.int64),
        np.array(numbers, dtype=np.int64),
        np.array([i_over_gm[devices[k].kind.polarity] for k in numbers], dtype=np.float64),
    )


def begin_noise(state: NoiseState, lane: int, noise: TransientNoise) -> None:
    """Begin the device noise of a bench in a lane of the batched engine; it is 0 at the first point of the grid."""
    state.key[lane] = np.uint64(noise.key)
    state.interval[lane] = 0
    state.start_current[:, lane] = state.end_current[:, lane] = 0.0


@cached_jit
def advance_noisy_transient(
    s: Any, p: Any, v: Any, m: Any, n: Any, saved: Any, has_deviations: bool, waiting: bool
) -> None:
    """Advance the noisy transients of all lanes until none may continue, see `transient.may_continue`."""
    while may_continue(m, saved, waiting):
        if _lanes_at_grid_points(m, n) > 0:
            _set_densities(s, v, n)
        for lane in each_lane():
            if m.step[BEGINS_STEP, lane] > 0.0:
                _begin_interval(m, n, lane)
                begin_step(m, lane)
                set_sources(s, v, m, lane)
                _set_noise_sources(v, m, n, lane)
        newton_iteration(s, p, v, m, saved, has_deviations)


@jit
def _interval(m: Any, n: Any, lane: int) -> int:
    return int(m.clock[NOW, lane] / n.grid_step + _NEAR)


@jit
def _lanes_at_grid_points(m: Any, n: Any) -> int:
    """Return the number of lanes that begin a new interval of the noise grid with their next step."""
    count = 0
    for lane in each_lane():
        if m.step[BEGINS_STEP, lane] > 0.0 and _interval(m, n, lane) != n.interval[lane]:
            count += 1
    return count


@jit
def _set_densities(s: Any, v: Any, n: Any) -> None:
    """Set the one-sided noise density of every source in all lanes, A^2/Hz, by the present currents."""
    for k in range(n.source.size):
        total = splat(n.fixed_density[k])
        for e in range(n.device_start[k], n.device_start[k + 1]):
            device = n.device[e]
            current, gm = three_terminal_current(s, v, device), load(v.three_terminal_tangent, 3 * device + 1)
            shot = absolute(current) * _thermal(current, gm, n.i_over_gm[e])
            if n.every:
                signed = select(not_less(current, splat(0.0)), shot, splat(0.0) - shot)
                shot = _with_reverse(signed, load(v.three_terminal_tangent, 3 * device + 2), n.thermal_voltage)
            total = total + shot * (2.0 * Q_ELECTRON)
        for e in range(n.four_start[k], n.four_start[k + 1]):
            device = n.four[e]
            at, size = device * FOUR_TERMINAL_ROWS, s.four_terminal_size[device]
            current, gm = load(v.four_terminal_tangent, at + 3), load(v.four_terminal_tangent, at + 4)
            shot = absolute(current) * _thermal(current, gm, n.four_i_over_gm[e])
            forward = not_less(current, splat(0.0))
            at_source, at_drain = load(v.four_terminal_tangent, at + 5), load(v.four_terminal_tangent, at + 6)
            higher = select(forward, at_drain, splat(0.0) - at_source)
            total = total + _with_reverse(shot, higher, n.thermal_voltage) * (size * 2.0 * Q_ELECTRON)
        store(n.density, k, total)


@inlined_jit
def _thermal(current: Any, gm: Any, i_over_gm: float) -> Any:
    """Return a device's noise density in saturation over 2 q I; i_over_gm: of it in weak inversion, V."""
    inverted = maximum(absolute(gm * splat(i_over_gm)), splat(1e-24))
    slope = minimum(maximum(absolute(current) / inverted, splat(1.0)), splat(_INVERTED))
    return (slope * (4.0 / 3.0) - 1.0 / 3.0) / (slope * slope)


@inlined_jit
def _with_reverse(shot: Any, conductance: Any, thermal_voltage: float) -> Any:
    """Return a device's noise density over 2 q, A, with that of the current from its other end.

    shot: I thermal, negative for a current from source to drain; conductance: dI/dV of the end to which the current
    flows, S.
    """
    return maximum(shot + conductance * (2.0 * thermal_voltage), splat(0.0))


@jit
def _begin_interval(m: Any, n: Any, lane: int) -> None:
    """Draw the noise at the end of a lane's interval where it is a new one, and fit the next step into that interval.

    What is left of the interval is divided evenly, so that no step passes its end or leaves a sliver.
    """
    here = _interval(m, n, lane)
    if here != n.interval[lane]:
        for k in range(n.source.size):
            n.start_current[k, lane] = n.end_current[k, lane]
            rms = sqrt(n.density[k, lane] / (2.0 * n.grid_step))
            n.end_current[k, lane] = rms * _standard_normal(n.key[lane], np.uint64(here + 1), np.uint64(k))
        n.interval[lane] = here
    left = (here + 1) * n.grid_step - m.clock[NOW, lane]
    step = min(m.clock[NEXT_STEP, lane], m.longest_step[int(m.clock[NEXT_BREAKPOINT, lane]), lane])
    parts = int(left / step) + 1 if step < left else 1
    m.clock[NEXT_STEP, lane] = left / parts


@jit
def _set_noise_sources(v: Any, m: Any, n: Any, lane: int) -> None:
    """Set a lane's noise currents, A, to the end of the step that it begins."""
    part = (m.clock[NOW, lane] + m.clock[STEP, lane]) / n.grid_step - n.interval[lane]
    for k in range(n.source.size):
        start = n.start_current[k, lane]
        v.source[n.source[k], lane] = start + (n.end_current[k, lane] - start) * part


@jit
def _standard_normal(key: Any, point: Any, source: Any) -> float:
    """Return a standard normal number that is a hash of a bench's key, a point of the grid and a source."""
    mixed = _mix_bits(_mix_bits((source << _SOURCE_SHIFT) + point + _GOLDEN) * _GOLDEN + key)
    other = _mix_bits(mixed + _GOLDEN)
    radius = sqrt(-2.0 * log((float(mixed >> _SHIFT) + 0.5) / 9007199254740992.0))
    return radius * cos(tau * (float(other >> _SHIFT) / 9007199254740992.0))


@jit
def _mix_bits(value: Any) -> Any:
    """Return SplitMix64's finaliser of a number of 64 bits, by which the batched engine hashes its noise."""
    value = (value ^ (value >> _SHIFT_1)) * _MULTIPLIER_1
    value = (value ^ (value >> _SHIFT_2)) * _MULTIPLIER_2
    return value ^ (value >> _SHIFT_3)
