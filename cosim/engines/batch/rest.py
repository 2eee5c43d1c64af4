"""Beginning of benches: what their sources do, what their transistors drew, and the operating point at time 0."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.circuit.elements import Mos, Source
from cosim.circuit.waveforms import Waveform
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.flat import Flat
from cosim.engines.batch.lanes import LANES, blank
from cosim.engines.batch.layout import BEGINS, NEXT, STANDS, STUCK
from cosim.engines.batch.march import settle
from cosim.engines.batch.structure import SPARE
from cosim.engines.batch.tile import Ramps, Rest, TileDraws, empty_tile

Array = NDArray[np.float64]
_HOLD = 1e-3  # S
_LEAK = 1e-15  # S, to its rail, of a net that only one polarity reaches: at 1 V a millionth of 1 nA
_FIRST_REST = 1e-10  # s: the first step on the way to rest


def rest_benches(circuit: Assembled, benches: Sequence[Bench], flat: Sequence[Flat]) -> list[Rest]:
    """Bring benches to rest, if they come to one; those of one chip that begin alike do so once."""
    ramps = _ramps(circuit, benches, flat)
    drawn = _draws(circuit, flat)
    keys = [
        (one.tied.tobytes(), one.floating.tobytes(), own.values[0].tobytes())
        for one, own in zip(drawn, ramps, strict=True)
    ]
    first = {key: k for k, key in reversed(list(enumerate(keys)))}
    found: dict[int, tuple[Array, Array, bool]] = {}
    unlike, held = sorted(first.values()), held_rows(circuit, benches[0], flat[0])
    for few in (unlike[at : at + LANES] for at in range(0, len(unlike), LANES)):
        found.update(zip(few, _settled(circuit, benches[0], held, [(ramps[k], drawn[k]) for k in few]), strict=True))
    return [Rest(own, one, *found[first[key]]) for own, one, key in zip(ramps, drawn, keys, strict=True)]


def _settled(
    circuit: Assembled, bench: Bench, held: Array, few: Sequence[tuple[Ramps, TileDraws]]
) -> list[tuple[Array, Array, bool]]:
    """x, charges, and whether it rests, of at most LANES."""
    tile = empty_tile(circuit, bench, 1, [one for _, one in few])
    # where nothing but a leak holds a pair of nets that a switch joins, 1e-9 of the switch, single precision loses it
    values = tile.values._replace(matrix=blank(circuit.program.size + SPARE))
    s, march = circuit.structure, tile.march
    march = march._replace(held=held[:, :2].copy(), hold=np.repeat(held[:, 2:], LANES, axis=1))
    for net, volt in bench.start:
        if net in circuit.net:
            values.x[s.row[circuit.net[net]]] = volt
    values.x[circuit.nets.unknowns] = 0.0
    for lane in range(LANES):
        ramps, drawn = few[min(lane, len(few) - 1)]
        values.source[:, lane] = ramps.values[0]
        values.tied_drawn[:, lane], values.float_drawn[:, lane] = drawn
    march.clock[NEXT], march.pace[BEGINS] = _FIRST_REST, 1.0
    settle(s, circuit.program.solver, values, march, tile.varied)
    stuck = march.clock[STANDS] == STUCK
    return [(values.x[:, k].copy(), march.q0[:, k].copy(), not stuck[k]) for k in range(len(few))]


def net_voltages(circuit: Assembled, rest: Rest) -> Array:
    """Return the voltages of all nets at the operating point, V, (nets,)."""
    s = circuit.structure
    found = rest.x[s.row]
    np.add.at(found, s.offsets[:, 0], rest.ramps.values[0][s.offsets[:, 1]] * s.offset_sign)
    return found


def held_rows(circuit: Assembled, bench: Bench, flat: Flat) -> Array:
    """Rows that are pulled on the way to rest, by how much, S, and where to, V.

    Those that the bench sets; and nets that p devices alone reach, to the supply, or n devices alone, to ground. Where
    nothing drives such a net the tables know no current that would hold it, as junctions do.
    """
    supply = bench.technology.supply
    reached: dict[str, set[str]] = {}
    for mos in flat.shared:
        if isinstance(mos, Mos):
            for net in (mos.drain, mos.source):
                reached.setdefault(net, set()).add(mos.polarity)
    rails = {frozenset("p"): supply, frozenset("n"): 0.0}
    leaks = {net: rails[frozenset(by)] for net, by in reached.items() if frozenset(by) in rails}
    pulled = [(net, _HOLD, supply) for net in bench.preset] + [(net, _LEAK, volt) for net, volt in leaks.items()]
    rows = [(circuit.structure.row[circuit.net[net]], *pull) for net, *pull in pulled if net in circuit.net]
    return np.array([one for one in rows if one[0] < circuit.nets.unknowns], dtype=np.float64).reshape(-1, 3)


def _draws(circuit: Assembled, flat: Sequence[Flat]) -> list[TileDraws]:
    """V and ln of the factor, of a floating one the factor itself."""
    found: list[TileDraws] = []
    for k, one in enumerate(flat):
        if k and one.shared is flat[k - 1].shared:
            found.append(found[-1])
        else:
            found.append(_drawn(circuit, [mos for mos in one.shared if isinstance(mos, Mos)]))
    return found


def _drawn(circuit: Assembled, transistors: Iterable[Mos]) -> TileDraws:
    tied, floating = np.zeros((len(circuit.tied), 4)), np.zeros((len(circuit.floating), 2))
    floating[:, 1] = 1.0
    drew = {mos.name: (mos.vt_shift, mos.beta_factor) for mos in transistors if mos.vt_shift or mos.beta_factor != 1.0}
    for k, device in enumerate(circuit.tied if drew else ()):
        both = [drew.get(name, (0.0, 1.0)) for name in device.parts]
        tied[k, :2] = both[0][0], np.log(both[0][1])
        if len(both) > 1:
            tied[k, 2:] = both[1][0] - both[0][0], np.log(both[1][1] / both[0][1])
    for k, device in enumerate(circuit.floating if drew else ()):
        floating[k] = drew.get(device.parts[0], (0.0, 1.0))
    return TileDraws(tied.ravel(), floating.ravel())


def _ramps(circuit: Assembled, benches: Sequence[Bench], flat: Sequence[Flat]) -> list[Ramps]:
    found: list[Ramps] = []
    inner: list[Source] = []
    for k, (bench, own) in enumerate(zip(benches, flat, strict=True)):
        if k == 0 or own.shared is not flat[k - 1].shared:
            inner = [one for one in own.shared if isinstance(one, Source)]
        found.append(_ramp(circuit, {one.name: one.value for one in (*inner, *own.sources)}, bench.transient.end))
    return found


def _ramp(circuit: Assembled, driven: Mapping[str, Waveform], end: float) -> Ramps:
    moving = {name: np.array(value).T for name, value in driven.items() if isinstance(value, tuple)}
    corner = _corners([time for time, _ in moving.values()], end)
    values = np.empty((len(corner), len(circuit.source)))
    for name, index in circuit.source.items():
        values[:, index] = np.interp(corner, *moving[name]) if name in moving else driven[name]
    return Ramps(corner, values)


def _corners(times: Sequence[Array], end: float) -> Array:
    """Return the times at which sources begin, turn and end, s."""
    found = np.unique(np.concatenate([*times, [0.0, end]]))
    found = found[(found >= 0.0) & (found <= end)]
    return found[np.concatenate([[True], np.diff(found) > 1e-12 * end])]
