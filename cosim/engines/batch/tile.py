"""Room for LANES benches of a circuit that march side by side, and what the solver is exact to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.engines.batch.assemble import Assembled
from cosim.engines.batch.floating import FLOAT_KEPT
from cosim.engines.batch.lanes import LANES, blank, blank_single
from cosim.engines.batch.layout import (
    AHEAD,
    BEGINS,
    BEYOND,
    CLOCKS,
    DONE,
    END,
    NEXT,
    PACES,
    RUNNING,
    STANDS,
    STUCK,
    March,
    TileValues,
)
from cosim.engines.batch.lines import NEAR, NOWHERE
from cosim.engines.batch.structure import SPARE
from cosim.engines.batch.tables import RANK, RESPONSES

Array = NDArray[np.float64]
_NEWTON = 150.0  # V per reltol: what is left behind a move d, 15 mV, is d^2 / (2 n U_T), and the next steps take it up
_ERROR = 10.0  # V of a step's error per reltol
_SHARE = 0.05  # of a step's change, which its error may be besides
_LONGEST, _FIRST = 4.0, 0.04  # of the step that is asked for: the longest one, and that behind a corner
ACCURACY = {
    "newton_V_per_reltol": _NEWTON,
    "step_error_V_per_reltol": _ERROR,
    "step_error_share": _SHARE,
    "tangent_V": NEAR,
}


class Ramps(NamedTuple):
    """All sources of a bench: corner (n,), s; values (n, sources)."""

    corner: Array
    values: Array


class TileDraws(NamedTuple):
    """Deviations that a bench's transistors drew: tied (4 each,) and floating (2 each,), see `layout.Values`."""

    tied: Array
    floating: Array


@dataclass(frozen=True, eq=False)
class Rest:
    """A bench at rest at time 0. x (rows + 1,), V; charge (nets,), C; rests: whether it does come to rest."""

    ramps: Ramps
    drawn: TileDraws
    x: Array
    charge: Array
    rests: bool


@dataclass(frozen=True, eq=False)
class BenchTile:
    """LANES places where benches march. varied: whether chips deviate."""

    circuit: Assembled
    values: TileValues
    march: March
    varied: bool

    def load(self, lane: int, rest: Rest) -> None:
        """Put a bench where it begins."""
        values, march, clock = self.values, self.march, self.march.clock
        values.x[:, lane] = march.x0[:, lane] = march.x1[:, lane] = march.x2[:, lane] = rest.x
        march.q0[:, lane] = march.q1[:, lane] = rest.charge
        values.tied_drawn[:, lane], values.float_drawn[:, lane] = rest.drawn
        forget(values, lane)
        count = len(rest.ramps.corner)
        march.corner[:count, lane], march.sources[:count, :, lane] = rest.ramps
        march.low[:, lane], march.high[:, lane] = np.inf, -np.inf
        clock[:, lane] = 0.0
        clock[[END, AHEAD, NEXT], lane] = rest.ramps.corner[-1], 1.0, march.limits[3]
        clock[STANDS, lane] = RUNNING if rest.rests else STUCK
        march.pace[BEGINS, lane] = 1.0


def tile_for(circuit: Assembled, bench: Bench, rests: Sequence[Rest], lanes: int = LANES) -> BenchTile:
    """Room for these benches; each lane holds one, running or not."""
    corners = max(len(one.ramps.corner) for one in rests)
    tile = empty_tile(circuit, bench, corners, [one.drawn for one in rests], lanes)
    for lane in range(lanes):
        tile.load(lane, rests[0])
        tile.march.clock[STANDS, lane] = DONE  # it stands there because a lane must hold something
    return tile


def empty_tile(
    circuit: Assembled, bench: Bench, corners: int, drawn: Iterable[TileDraws], lanes: int = LANES
) -> BenchTile:
    """Room, with nothing in it."""
    rows, nets, sources = circuit.nets.unknowns, len(circuit.nets.names), len(circuit.source)
    step, highest = bench.transient.step, bench.technology.supply + BEYOND
    error = _ERROR * bench.tolerances.reltol
    march = March(
        clock=blank(CLOCKS, lanes),
        pace=blank(PACES, lanes),
        corner=blank(corners, lanes),
        sources=blank(corners * sources, lanes).reshape(corners, sources, lanes),
        x0=blank(rows + 1, lanes),
        x1=blank(rows + 1, lanes),
        x2=blank(rows + 1, lanes),
        guess=blank(rows + 1, lanes),
        q0=blank(nets, lanes),
        q1=blank(nets, lanes),
        low=blank(nets, lanes),
        high=blank(nets, lanes),
        weight=blank(rows + 1, lanes),
        inverse=blank(rows + 1, lanes),
        residual=blank(rows + 1, lanes),
        held=np.zeros((0, 2)),
        hold=np.zeros((0, lanes)),
        limits=np.array([_NEWTON * bench.tolerances.reltol, error, _LONGEST * step, _FIRST * step, _SHARE, highest]),
    )
    return BenchTile(circuit, _values(circuit, lanes), march, any(one.tied.any() for one in drawn))


def _values(circuit: Assembled, lanes: int) -> TileValues:
    s, nets, rows = circuit.structure, len(circuit.nets.names), circuit.nets.unknowns + 1
    found = TileValues(
        x=blank(rows, lanes),
        offset=blank(nets, lanes),
        volt=blank(nets, lanes),
        current=blank(nets, lanes),
        charge=blank(nets, lanes),
        matrix=blank_single(circuit.program.size + SPARE, lanes),
        source=blank(len(circuit.source), lanes),
        gate=blank_single(len(s.gates) * 2 * RANK, lanes),
        response=blank_single(len(s.gates) * 2 * RESPONSES, lanes),
        drain=blank_single(len(s.drains) * 2 * RANK, lanes),
        gate_kept=blank(len(s.gates), lanes),
        gate_apart=blank(len(s.gates), lanes),
        gate_charge=blank(2 * len(s.gates), lanes),
        gate_version=np.zeros(len(s.gates), dtype=np.int64),
        drain_kept=blank(len(s.drains), lanes),
        drain_apart=blank(len(s.drains), lanes),
        drain_charge=blank(2 * len(s.drains), lanes),
        drain_version=np.zeros(len(s.drains), dtype=np.int64),
        tied_kept=blank_single(3 * len(s.tied), lanes),
        tied_version=np.zeros(len(s.tied), dtype=np.int64),
        tied_drawn=blank_single(4 * len(s.tied), lanes),
        float_drawn=blank(2 * len(s.floating), lanes),
        kept=blank(len(circuit.floating) * FLOAT_KEPT, lanes),
    )
    for lane in range(lanes):
        forget(found, lane)
    return found


def forget(values: TileValues, lane: int) -> None:
    """Evaluate every device of a lane anew, wherever it stood: nothing may depend on what was there before."""
    values.gate_kept[:, lane] = values.drain_kept[:, lane] = NOWHERE
    values.kept[::FLOAT_KEPT, lane] = NOWHERE
