"""Benches of one circuit, a tile at a time: from elements to waveforms."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Voltage
from cosim.circuit.elements import Element, Mos, Source
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.floating import FLOAT_KEPT
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.layout import AHEAD, BEYOND, END, NEXT, NOW, ROWS, March, Saved, Values
from cosim.engines.batch.lines import NEAR
from cosim.engines.batch.march import DONE, FULL, STUCK, advance, settle
from cosim.engines.batch.structure import SPARE
from cosim.engines.batch.tables import RANK, RESPONSES
from cosim.engines.batch.unsupported import Unsupported
from cosim.engines.engine import Waveforms

Array = NDArray[np.float64]
_ROWS = 2048  # of what is saved, between two looks at the clock
_NEWTON = 1e-3  # V
_CHORD = 1e-2  # V; a move so small changes conductances by a fifth at most, so the next one needs no new matrix
_ERROR = 30.0  # V of a step's error per reltol
_SHARE = 0.5  # of a step's change, which its error may be besides
_FIRST = 0.01  # of the largest step: the step behind a corner
_HOLD = 1e-3  # S
ACCURACY = {"newton_V": _NEWTON, "step_error_V_per_reltol": _ERROR, "step_error_share": _SHARE, "tangent_V": NEAR}


class Stuck(Exception):
    """No step converged at this time, s."""

    def __init__(self, time: float) -> None:
        super().__init__(time)
        self.time = time


class Late(Exception):
    """It takes longer than it may."""


def solve_tile(
    circuit: Assembled, benches: Sequence[Bench], elements: Sequence[Sequence[Element]], timeout: float
) -> list[Waveforms]:
    """Waveforms of at most LANES benches that stand in one technology; elements: those of their flat circuits.

    Raises Stuck; Late after `timeout` seconds; Unsupported for what cannot be probed, or a voltage beyond the tables.
    """
    deadline, probes = monotonic() + timeout, benches[0].probes or net_probes(circuit)
    saved, tile = room_for(circuit, probes), rest_tile(circuit, benches, elements)
    time, rows = march_tile(circuit, tile, saved, deadline)
    check_range(circuit, tile.march, benches[0])
    return _waveforms(time, rows, probes, benches)


@dataclass(frozen=True, eq=False)
class Tile:
    """LANES instances at rest at time 0. varied: whether chips deviate; held (n, 2): rows and siemens that pulled."""

    values: Values
    march: March
    varied: bool
    held: Array


def net_probes(circuit: Assembled) -> tuple[Probe, ...]:
    """The voltage of every net."""
    return tuple(Voltage(net) for net in circuit.nets.names)


def rest_tile(circuit: Assembled, benches: Sequence[Bench], elements: Sequence[Sequence[Element]]) -> Tile:
    """Bring at most LANES benches to rest; the last one fills the lanes left. Raises Stuck."""
    lanes = [min(k, len(benches) - 1) for k in range(LANES)]
    values, varied = _values(circuit), _draw(circuit, [elements[k] for k in lanes])
    march = _march(circuit, values, [benches[k] for k in lanes], [elements[k] for k in lanes])
    values = values._replace(tied_drawn=varied.tied, float_drawn=varied.floating)
    if not settle(circuit.structure, circuit.program.solver, values, march, varied.any):
        raise Stuck(0.0)
    held = march.held
    march = march._replace(held=np.zeros((0, 2)), hold=np.zeros((0, LANES)))
    march.clock[:] = 0.0
    march.clock[[END, AHEAD, NEXT]] = march.corner[-1], 1, march.limits[3]
    return Tile(values, march, varied.any, held)


def march_tile(circuit: Assembled, tile: Tile, saved: Saved, deadline: float) -> tuple[Array, Array]:
    """Time (steps,), s, and probes (steps, probes, LANES) of a tile up to its end.

    deadline: by `time.monotonic`. Raises Stuck and Late.
    """
    march = tile.march
    times, rows = [np.zeros(0)], [np.zeros((0, len(saved.kind), LANES))]
    ended = FULL
    while ended == FULL:
        march.clock[ROWS] = 0
        ended = advance(circuit.structure, circuit.program.solver, tile.values, march, saved, tile.varied)
        count = int(march.clock[ROWS])
        times.append(saved.time[:count].copy())
        rows.append(saved.values[:count].copy())
        if monotonic() > deadline:
            raise Late
    if ended == STUCK:
        raise Stuck(float(march.clock[NOW]))
    assert ended == DONE
    return np.concatenate(times), np.concatenate(rows)


def check_range(circuit: Assembled, march: March, bench: Bench) -> None:
    """Raises Unsupported where a net went beyond what the tables hold."""
    least, most = -0.99 * BEYOND, bench.technology.supply + 0.99 * BEYOND
    for name, index in circuit.net.items():
        low, high = float(march.low[index].min()), float(march.high[index].max())
        if low < least or high > most:
            beyond = low if low < least else high
            raise Unsupported(f"net {name} at {beyond:.3f} V, outside {least:.2f} to {most:.2f} V")


def _waveforms(time: Array, rows: Array, probes: tuple[Probe, ...], benches: Sequence[Bench]) -> list[Waveforms]:
    found: list[Waveforms] = []
    by_probe = np.ascontiguousarray(rows.transpose(1, 2, 0))
    shared: dict[int, Array] = {}
    for lane, bench in enumerate(benches):
        count = int(np.searchsorted(time, bench.transient.end * (1 + 1e-12), side="right"))
        traces = {probe: by_probe[k, lane, :count] for k, probe in enumerate(probes)}
        found.append(Waveforms(shared.setdefault(count, time[:count]), traces))
    return found


def _values(circuit: Assembled) -> Values:
    s, nets, rows = circuit.structure, len(circuit.nets.names), circuit.nets.unknowns + 1
    kept = blank(len(circuit.floating) * FLOAT_KEPT)
    kept[::FLOAT_KEPT] = 1e9  # evaluated nowhere yet
    return Values(
        x=blank(rows),
        offset=blank(nets),
        volt=blank(nets),
        current=blank(nets),
        charge=blank(nets),
        matrix=blank(circuit.program.size + SPARE),
        source=blank(len(circuit.source)),
        gate=blank(len(s.gates) * 2 * RANK),
        response=blank(len(s.gates) * 2 * RESPONSES),
        drain=blank(len(s.drains) * 2 * RANK),
        gate_kept=blank(len(s.gates)),
        gate_apart=blank(len(s.gates)),
        gate_charge=blank(2 * len(s.gates)),
        gate_version=np.zeros(len(s.gates), dtype=np.int64),
        drain_kept=blank(len(s.drains)),
        drain_apart=blank(len(s.drains)),
        drain_charge=blank(2 * len(s.drains)),
        drain_version=np.zeros(len(s.drains), dtype=np.int64),
        tied_kept=blank(3 * len(s.tied)),
        tied_version=np.zeros(len(s.tied), dtype=np.int64),
        tied_drawn=blank(0),
        float_drawn=blank(0),
        kept=kept,
    )


@dataclass(frozen=True, eq=False)
class _Drawn:
    tied: Array
    floating: Array
    any: bool


def _draw(circuit: Assembled, elements: Sequence[Sequence[Element]]) -> _Drawn:
    """What the transistors of each lane drew: V and ln of the factor, of a floating one the factor itself."""
    tied, floating = np.zeros((len(circuit.tied), 4, LANES)), np.zeros((len(circuit.floating), 2, LANES))
    floating[:, 1] = 1.0
    drawn: dict[int, dict[str, tuple[float, float]]] = {}
    for lane, one in enumerate(elements):
        found = drawn.get(id(one))
        if found is None:
            found = drawn[id(one)] = {
                mos.name: (mos.vt_shift, mos.beta_factor)
                for mos in one
                if isinstance(mos, Mos) and (mos.vt_shift or mos.beta_factor != 1.0)
            }
        if not found:
            continue
        for k, device in enumerate(circuit.tied):
            both = [found.get(name, (0.0, 1.0)) for name in device.parts]
            tied[k, :2, lane] = both[0][0], np.log(both[0][1])
            if len(both) > 1:
                tied[k, 2:, lane] = both[1][0] - both[0][0], np.log(both[1][1] / both[0][1])
        for k, device in enumerate(circuit.floating):
            floating[k, :, lane] = found.get(device.parts[0], (0.0, 1.0))
    return _Drawn(tied.reshape(-1, LANES), floating.reshape(-1, LANES), any(map(bool, drawn.values())))


def _march(
    circuit: Assembled, values: Values, benches: Sequence[Bench], elements: Sequence[Sequence[Element]]
) -> March:
    """Sources on the corners of all lanes, and nets that are held or begin somewhere."""
    bench = benches[0]
    corner, sources = _sources(circuit, benches, elements)
    s, rows, nets = circuit.structure, circuit.nets.unknowns, len(circuit.nets.names)
    held = [(s.row[circuit.net[net]], _HOLD) for net in bench.preset if net in circuit.net]
    for net, volt in bench.start:
        if net in circuit.net:
            values.x[s.row[circuit.net[net]]] = volt
    values.x[rows] = 0.0
    step, supply = bench.transient.step, bench.technology.supply
    error = _ERROR * bench.tolerances.reltol
    return March(
        clock=np.zeros(11),
        corner=corner,
        sources=sources,
        x0=blank(rows + 1),
        x1=blank(rows + 1),
        x2=blank(rows + 1),
        q0=blank(nets),
        q1=blank(nets),
        history=blank(nets),
        low=blank(nets) + np.inf,
        high=blank(nets) - np.inf,
        weight=blank(rows + 1),
        inverse=blank(rows + 1),
        residual=blank(rows + 1),
        held=np.array(held, dtype=np.float64).reshape(-1, 2),
        hold=np.full((len(held), LANES), supply),
        limits=np.array([_NEWTON, error, step, _FIRST * step, _SHARE, _CHORD, supply + BEYOND]),
    )


def _sources(
    circuit: Assembled, benches: Sequence[Bench], elements: Sequence[Sequence[Element]]
) -> tuple[Array, Array]:
    """The corners of all lanes' sources, s, and what each source is there (corners, sources, LANES)."""
    end = max(one.transient.end for one in benches)
    driven = [{one.name: one.value for one in lane if isinstance(one, Source)} for lane in elements]
    times = {0.0, end, *(one.transient.end for one in benches)}
    for lane in driven:
        for value in lane.values():
            if isinstance(value, tuple):
                times.update(time for time, _ in value if 0.0 < time < end)
    corner = np.array(sorted(times))
    corner = corner[np.concatenate([[True], np.diff(corner) > 1e-12 * end])]
    sources = blank(len(corner) * len(circuit.source)).reshape(len(corner), len(circuit.source), LANES)
    for lane, found in enumerate(driven):
        for name, index in circuit.source.items():
            value = found[name]
            ramp = np.array(value if isinstance(value, tuple) else ((0.0, value),), dtype=np.float64)
            sources[:, index, lane] = np.interp(corner, ramp[:, 0], ramp[:, 1])
    return corner, sources


def room_for(circuit: Assembled, probes: tuple[Probe, ...]) -> Saved:
    """Where to find the probes. Raises Unsupported for one that there is nothing of."""
    saved: list[tuple[int, int, float]] = []  # kind, which, sign
    lists: list[list[int]] = []
    place = {name: k for k, device in enumerate((*circuit.tied, *circuit.floating)) for name in device.parts}
    for probe in probes:
        nets: tuple[str, ...] = ()
        match probe:
            case Voltage(net) if net in circuit.net:
                saved.append((0, circuit.net[net], 1.0))
            case Current(source) if source in circuit.source:
                nets, direction = circuit.nets.behind(source)
                saved.append((1, 0, direction))
            case DrainCurrent(device) if device in place:
                saved.append((2, place[device], 1.0))
            case _:
                raise Unsupported(f"nothing to save {probe} of")
        lists.append([circuit.net[net] for net in nets])
    return Saved(
        kind=np.array([one[0] for one in saved], dtype=np.int64),
        which=np.array([one[1] for one in saved], dtype=np.int64),
        sign=np.array([one[2] for one in saved], dtype=np.float64),
        nets_at=np.cumsum([0, *map(len, lists)], dtype=np.int64),
        nets=np.array([net for one in lists for net in one], dtype=np.int64),
        time=np.zeros(_ROWS),
        values=blank(_ROWS * len(probes)).reshape(_ROWS, len(probes), LANES),
    )
