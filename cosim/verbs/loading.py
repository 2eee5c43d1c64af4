"""The way from a checkpoint to a compiled design in a condition, shared by command line, scripts and stores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError, warn
from cosim.base.quantities import format_quantity
from cosim.compiler.design import RESIDUE, Condition, Design, slowest_line
from cosim.compiler.passes import check_mapping, compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import measure_state_ranges
from cosim.network.types import Network, check_network
from cosim.tasks.testset import TestData, TestSet, find_clipping, load_test_set
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import at
from cosim.technology.scale import units_for
from cosim.technology.types import Technology
from cosim.verbs.calibrate.chip import find_chip
from cosim.verbs.calibrate.find import find_calibration

Say = Callable[[str], None]
LARGE = 500  # cells of a network whose steps are said: half a minute or so for 5,000 of them
SAID = 5  # edits of a netlist
LONG = 10_000  # frames of a sample that is said: a circuit simulator takes a minute or more


@dataclass(frozen=True)
class TargetTechnology:
    """The technology that a network is compiled for, and the condition in which the circuit runs.
    technology: name or .toml file; pdk_root: folder of the foundry kits; corner, celsius, supply (V): the condition,
    None for the technology's own; units: unit devices per weight 1.0, None for the number that the network's grid
    needs."""

    technology: str = DEFAULT_TECHNOLOGY
    pdk_root: Path | None = None
    corner: str | None = None
    celsius: float | None = None
    supply: float | None = None
    units: int | None = None


def load_ranged(source: Path | Network, ranges_from: TestData) -> Network:
    """Load a network from a checkpoint, or check one that is at hand.

    ranges_from: samples on which its state ranges are measured, None to leave them as they are.
    """
    network = check_network(source) if isinstance(source, Network) else load_network(source)
    if ranges_from is None:
        return network
    samples = load_test_set(network, ranges_from)
    origin = "data" if isinstance(ranges_from, Mapping) else str(Path(ranges_from))
    return replace(network, state_ranges=measure_state_ranges(network, samples.x, samples.lengths, origin))


def compile_at(
    network: Network, origin: str, place: TargetTechnology, settings: CompilerSettings, say: Say
) -> tuple[Design, Condition]:
    """Compile a network at the nominal point; return the design and the condition that `place` selects.

    Measures a calibration first where no kept one applies. origin: where the network came from, for messages; say:
    called with a line about each slow step. Warns of frames that are too short for the slowest gate line. Raises
    InputError for a condition that the technology does not have or a supply that is too low, MappingError as
    `compile_network`.
    """
    process = load_technology(place.technology, place.pdk_root)
    # Refused before a calibration that may take a minute.
    condition = Condition(at(process, place.corner, place.celsius, place.supply))
    design = compile_for(network, origin, process, settings, units=place.units, say=say)
    supply, v_node = condition.technology.supply, design.calibration.v_node
    if supply <= v_node:
        raise InputError(
            f"supply must be above {v_node:.2g} V, by which the readout's ground lies below it, not {supply:g} V; "
            "choose another with --supply"
        )
    signal, capacitance, shortest = slowest_line(design, condition)
    if settings.t_step < shortest:
        warn(
            f"frames of {format_quantity(settings.t_step, 's')} are too short: the gate line of {signal} "
            f"has {format_quantity(capacitance, 'F')} and falls from 1 to within {100 * RESIDUE:g} % of 0 in "
            f"frames of {format_quantity(shortest, 's')}; give a longer --t-step, or a larger --i-unit"
        )
    return design, condition


def compile_for(
    network: Network,
    origin: str,
    process: Technology,
    settings: CompilerSettings = CompilerSettings(),
    *,
    units: int | None = None,
    say: Say = lambda line: None,
) -> Design:
    """Compile a network for a technology at its nominal point, measuring a calibration first where no kept one applies.
    say: called with a line about each slow step. Raises MappingError as `compile_network`."""
    tell = teller(network, say)
    tell(f"making a graph of {sum(layer.width for layer in network.recurrent_layers)} cells")
    check_mapping(network, settings, origin, units)  # before a calibration that may take half a minute
    calibration = find_calibration(process, units or units_for(network.weight_grid), say)
    if settings.around:
        settings = replace(settings, fit=find_chip(process, say))
    tell("making transistors of it")
    design = compile_network(network, process, calibration, settings, origin)
    if settings.netlist is not None:
        say(say_edits(design))
    return design


def say_edits(design: Design) -> str:
    """Return a sentence on the differences between a compiled circuit and the edited netlist in its place."""
    assert design.settings.netlist is not None
    name, edits = design.settings.netlist.name, design.edits
    if not edits:
        return f"{name}: the circuit as compiled"
    unknown = sum(not one.followed for one in edits)
    rest = f"; and {more} more" if (more := len(edits) - SAID) > 0 else ""
    followed = "none" if unknown == len(edits) else f"all but {unknown}"
    blind = f"; the behavioral equations follow {followed} of them" if unknown else ""
    count = f"{len(edits)} edit{'s' if len(edits) > 1 else ''}"
    return f"{name}: {count}: {'; '.join(map(str, edits[:SAID]))}{rest}{blind}"


def teller(network: Network, say: Say) -> Say:
    """Return `say` for a network of more than LARGE cells, else a function that ignores its text.
    Small networks compile so quickly that messages about each step would only disturb."""
    cells = sum(layer.width for layer in network.recurrent_layers)
    return say if cells > LARGE else lambda line: None


def draw_samples(network: Network, data: TestData, count: int | None, seed: int, say: Say) -> TestSet:
    """Return a network's test samples: all of them, or `count` drawn with the seed.

    data: as `load_test_set` takes it; say: called when there are fewer samples than `count`. Warns where inputs are
    clipped.
    """
    test_set = load_test_set(network, data)
    if count is not None and count > (there := len(test_set.y)):
        say(f"--samples {count}: the test set has {there} sample{'s' if there > 1 else ''}; all are used")
    return _told(network, test_set.take(count, seed), say)


def pick_sample(network: Network, data: Path | None, number: int, say: Say) -> TestSet:
    """Return one test sample, by its number, as a test set.

    Raises InputError when there is no sample of that number. Warns where inputs are clipped.
    """
    test_set = load_test_set(network, data)
    test_set.inputs(number)
    return _told(network, test_set.select(np.array([number])), say)


def _told(network: Network, test_set: TestSet, say: Say) -> TestSet:
    if (clipping := find_clipping(network.encoding, test_set)) is not None:
        warn(str(clipping))
    if (frames := int(test_set.lengths.max())) > LONG:
        say(
            f"the longest sample has {frames} frames, one after the other: where a time limit ends it, give a "
            "longer --timeout, or cut it into shorter samples"
        )
    return test_set
