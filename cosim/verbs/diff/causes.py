"""Causes why a chip counts in one run and fails in the other: the unit whose transistors turn its verdict.

Both runs have the same circuit, so a chip of one run can be given the transistors of the other, unit by unit:

    chip that fails, with the transistors of unit u of the chip that counts  ->  counts (alone), or how near it comes

by the behavioral model on the run's samples, as `cosim montecarlo --contributions` freezes groups. The unit that turns
the verdict comes first; where several do, that with the highest accuracy; where none does alone, that which leaves
the fewest cells that do not reset, then that with the highest accuracy. A bias line that cells share is a unit of its
own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import instance, net
from cosim.compiler.design import Design
from cosim.technology.types import Technology
from cosim.variation.draws import Chip
from cosim.verbs.diff.difference import Cause
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.contributions import mixed_chip
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip
from cosim.verbs.montecarlo.write import stored_chip


@dataclass(frozen=True)
class Judged:
    """A run's trial, and what its chips must do."""

    trial: Trial
    specs: Sequence[Spec]


def find_cause(fails: Judged, failing: ChipRecord, counts: Judged, counting: ChipRecord) -> Cause | None:
    """Return the unit that explains why a chip works in one of two runs and fails in the other.

    It is the one whose draws, taken from the chip that counts, do most to make the failing one count; None where the
    draws of both are the same.
    """
    own, other = stored_chip(fails.trial, failing), stored_chip(counts.trial, counting)
    differs = (own.vt_shift != other.vt_shift) | (own.beta_factor != other.beta_factor)
    found: list[Cause] = []
    for unit, places in units_of(fails.trial).items():
        if not differs[places].any():
            continue
        chosen = np.zeros(len(differs), dtype=bool)
        chosen[places] = True
        figures = run_behavioral_chip(fails.trial, mixed_chip(other, own, chosen))
        alone = passes_specs(figures, fails.specs)
        found.append(
            Cause(unit, alone, figures.accuracy, figures.unreset, *_largest(own, other, places, fails.trial.technology))
        )
    return min(found, key=lambda one: (not one.alone, len(one.unreset), -one.accuracy), default=None)


def units_of(trial: Trial) -> Mapping[str, NDArray[np.int64]]:
    """Return unit of a run of chips that is compared with another, or shared bias line -> places of its transistors.

    Places are those among the devices of the netlist, as draws of mismatch have them.
    """
    owners = _owners(trial.design)
    found: dict[str, list[int]] = defaultdict(list)
    for place, device in enumerate(trial.devices):
        name = device.name.split(".")[1]
        found[owners.get(name, owners.get(name.partition("_")[2], name))].append(place)
    order = {name: k for k, name in enumerate(trial.design.graph.nodes)}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return {name: np.array(found[name]) for name in names}


def _owners(design: Design) -> dict[str, str]:
    """Return net stem of a node, or instance of a bias line -> the unit."""
    owners = {net(name): name for name in design.graph.nodes}
    cells: dict[str, list[str]] = defaultdict(list)
    for cell, pins in design.assembly.cell_bias.items():
        for pin in pins:
            cells[pin].append(cell)
    own = {pin: names[0] for pin, names in cells.items() if len(set(names)) == 1}
    return owners | own


def _largest(own: Chip, other: Chip, places: NDArray[np.int64], technology: Technology) -> tuple[str, float]:
    """Return the transistor whose current differs most, and its threshold's shift, other - own, V."""
    devices = [own.devices[place] for place in places.tolist()]
    shift = (other.vt_shift - own.vt_shift)[places]
    slopes = [technology.device(device.polarity).slope_factor * technology.thermal_voltage for device in devices]
    current = np.abs(np.log(other.beta_factor[places] / own.beta_factor[places]) - shift / slopes)
    place = int(np.where([device.role == "switch" for device in devices], -1.0, current).argmax())
    return devices[place].name.removeprefix(instance("")), float(shift[place])
