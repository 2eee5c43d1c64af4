"""Thresholds and levels of every cell of a run's chips, by the behavioral model from what the records drew."""

from collections.abc import Sequence

import numpy as np

from cosim.units.schmitt import Schmitt
from cosim.variation.draws import Chip
from cosim.verbs.montecarlo.cell_spread import CellSpread
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.record import unpack_draws
from cosim.verbs.montecarlo.run import nominal_chip
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.trim.trim import measure_behavioral


def spread_cells(trial: Trial, records: Sequence[ChipRecord]) -> CellSpread | None:
    """Return thresholds and levels, ampere, of the 9T cells with constant thresholds on every chip; None without such
    cells.

    Thresholds are those within a frame. The field `asked` has those of the chip that does not deviate, for which the
    compiler has solved its bias currents.
    """
    graph = trial.design.graph
    cells = tuple(cell for cell in graph.of(Schmitt) if not graph.into(cell.name, "beta"))
    if not cells:
        return None
    chips = (nominal_chip(trial), *(stored_chip(trial, record) for record in records))
    found = [measure_behavioral(trial, chip, in_frame=True) for chip in chips]
    points = ([points[cell.name] for cell in cells] for points in found)
    asked, *measured = [[(one.rise, one.fall, one.level) for one in row] for row in points]
    return CellSpread(tuple(cell.name for cell in cells), np.array(asked), np.array(measured))


def stored_chip(trial: Trial, record: ChipRecord) -> Chip:
    """Rebuild a chip from its record, with the draws, the supply and the temperature that it had."""
    vt_shift, beta_factor = unpack_draws(record.draws)
    return Chip(record.chip, trial.devices, vt_shift, beta_factor, record.supply_v, record.celsius)
