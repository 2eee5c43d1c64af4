"""What a comparison leaves in its folder: comparison.json, figures, and report.html."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim import __version__
from cosim.circuit.waveforms import Timing
from cosim.design import Design
from cosim.engines.engine import Description
from cosim.engines.table import simulator_named
from cosim.errors import SimulationError
from cosim.outputs import summarize, write_results, write_texts
from cosim.report.comparison_page import format_report
from cosim.report.figures import Figure, draw_confusion, draw_waveforms, figure_bytes, save_figure
from cosim.study.agreement import Comparison, ComparisonSummary, summarize_comparison
from cosim.study.waveforms import liveliest_cell, record_waveforms
from cosim.tasks.clipping import Clipping, find_clipping
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import format_conditions

CAPTIONS = {
    "waveforms": "One inference on transistors: inputs, one unit's candidate and state, readout, supply power.",
    "confusion": "Decisions of the three engines on the same samples; accuracy with its 95 % interval.",
}


@dataclass(frozen=True)
class Reported(ComparisonSummary):
    """What comparison.json holds. bias_scale, input_scale: bias currents and inputs over the nominal ones."""

    bias_scale: float
    input_scale: float
    clipped: Clipping | None
    made_with: Mapping[str, object]


def write_comparison(
    folder: Path, design: Design, test_set: TestSet, comparison: Comparison, timing: Timing
) -> Reported:
    """Write all of it; returns the content of comparison.json. Waveforms that cannot be had are left out."""
    made_with = simulator_named(comparison.simulator).describe(design.technology)
    found = Reported(
        **vars(summarize_comparison(comparison)),
        bias_scale=design.bias_scale,
        input_scale=design.input_scale,
        clipped=find_clipping(design.network.encoding, test_set),
        made_with=made_with.as_json(comparison.simulator),
    )
    write_results(folder, {"design.json": summarize(design), "comparison.json": found})
    settings = _settings(design, found, made_with, comparison, timing)
    labels = list(design.network.labels) or [str(k) for k in range(design.network.readout.width)]
    figures = {"confusion": draw_confusion(comparison, labels)}
    try:
        figures = {"waveforms": _draw_first(design, test_set, comparison, timing), **figures}
    except SimulationError as error:
        settings["waveforms"] = f"left out: {error}"
        (folder / "waveforms.png").unlink(missing_ok=True)  # of an earlier run
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png")
    pictures = {CAPTIONS[name]: figure_bytes(figure, "png") for name, figure in figures.items()}
    title = f"{design.network.task or 'network'}: from weights to transistors"
    write_texts(folder, {"report.html": format_report(title, found, summarize(design), settings, pictures)})
    return found


def _settings(
    design: Design, found: Reported, made_with: Description, comparison: Comparison, timing: Timing
) -> dict[str, str]:
    in_effect = ", ".join(f"{name} {value}" for name, value in made_with.options.items())
    return {
        "cosim": __version__,
        "calibration measured with": design.calibration.simulator,
        "samples, by number in the test set": ", ".join(map(str, comparison.indices)),
        "inputs": "all in the range of the network's encoding" if found.clipped is None else str(found.clipped),
        "frame": f"{timing.t_step:g} s, input edges {timing.edge:g}, clock edges {timing.clock_edge:g} of it",
        "conditions": format_conditions(design.technology),
        "bias currents and inputs": f"{found.bias_scale:.4g} and {found.input_scale:.4g} of the nominal ones",
        "simulator": f"{found.simulator} {made_with.version}, {in_effect}",
    }


def _draw_first(design: Design, test_set: TestSet, comparison: Comparison, timing: Timing) -> Figure:
    """Waveforms of the first compared sample; raises SimulationError when it fails with more probes, or has none."""
    if comparison.simulator != "ngspice":
        raise SimulationError("only ngspice is asked for currents inside a transistor")
    cell = liveliest_cell(comparison.cells, comparison.engines[comparison.simulator].states[0])
    position = int(np.flatnonzero(test_set.indices == comparison.indices[0])[0])
    sample = test_set.x[position, : test_set.lengths[position]]
    return draw_waveforms(*record_waveforms(design, sample, cell, timing), timing)
