"""A page of every verb without a simulator: figures are made up where a run would take long."""

from types import SimpleNamespace

import numpy as np

from cosim.cells.benches import LADDER_RAILS
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.results.intervals import IntervalEnds
from cosim.technology.conditions import at
from cosim.units.ladder import ladder_currents, ladder_timing
from cosim.variation.draws import VariationPlan
from cosim.verbs.characterize.ladder import LadderStudy, LadderTrace, ladder_runs, software_levels, summarize_ladder
from cosim.verbs.characterize.page import cell_page, ladder_page
from cosim.verbs.characterize.study import CellFigure, Characterisation, FigureLine
from cosim.verbs.compare.pvt import PvtCondition, Sweep, pvt_page
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.partitions.run import CutBackbone, partitions_page
from cosim.verbs.partitions.study import CompiledPartition, DeployedSummary, PartitionSummary
from cosim.verbs.power.study import power_page, study_power, summarize_power
from cosim.verbs.simulate.samples import simulation_page
from cosim.verbs.trim.page import trim_page
from cosim.verbs.trim.run import summarize_trim, trim_chip

VERSION = {"ngspice": "39"}


def power(design, test_set):
    return power_page(design, summarize_power(design, study_power(design, test_set, None)), VERSION)


def pvt(design):
    """45 conditions; in one every run failed."""
    rows = [
        PvtCondition(corner, celsius, supply, 7, 0, 0.98, 0.857, IntervalEnds(0.42, 1.0), 0.857, 1.23e-7)
        for corner in ("tt", "ff", "ss", "fs", "sf") for celsius in (0.0, 27.0, 60.0) for supply in (1.71, 1.8, 1.89)
    ]  # fmt: skip
    rows[4] = PvtCondition("tt", 27.0, 1.8, 0, 7, 0.0, 0.0, None, None, None)
    return pvt_page(design, Sweep("constant", None, tuple(rows), (rows[4],), 7, ()), VERSION)


def trim(design, test_set):
    trial = Trial(design, test_set, VariationPlan("local", 5, 3))
    records = [trim_chip(trial, number, (2, 3)) for number in range(3)]
    summary = summarize_trim(trial, (2, 3), records, [parse_spec("state_agreement>=0.5")])
    return trim_page(design, summary, {"seed": "5"})


def simulation(design, test_set):
    """The first sample as it should be, the others failed."""
    steps, cells, outputs = test_set.x.shape[1], len(design.assembly.decisions), len(design.assembly.outputs)
    good = Inference(np.zeros((steps, cells), np.int8), np.zeros((steps, outputs)), 1e-7, np.zeros((0, cells)))
    failed = Failure(FailureKind.TIMEOUT, "after 1 s", "")
    return simulation_page(design, test_set, [good] + [failed] * (len(test_set.y) - 1), Run())


def cell(technology, calibration):
    x = np.linspace(0.0, 2e-9, 9)
    rows = (
        CellFigure("push 1 nA", "pull = push", "A", 0.0, 1e-11, 1e-12, 1e-9),
        CellFigure("push 1 nA", "pull = 2 push", "A", 1e-9, float("nan"), 9.99e-10, 1e-9),
    )
    curves = tuple(FigureLine("1 nA", kind, x, x) for kind in ("measured", "calibrated", "ideal"))
    found = [Characterisation(at(technology, celsius=celsius), rows, curves) for celsius in (0.0, 27.0)]
    return cell_page("rectifier", found, calibration, VERSION)


def ladder(technology, calibration):
    """Every run as software has it."""
    study = LadderStudy(3, 1, 4, 5, ladder_currents(1e-9), ladder_timing(10e-3))
    traces = [_trace(run, study) for run in ladder_runs(study, calibration)]
    summary = summarize_ladder(study, technology, traces)
    return ladder_page(study, [(technology, traces, summary)], calibration, VERSION)


def _trace(run, study):
    levels = np.repeat(software_levels(run.start, run.updates, study.rungs), 40)
    states = (np.arange(study.rungs) < levels[:, None]).astype(np.int8)
    powers = {name: np.full(len(levels), 1e-9) for name in LADDER_RAILS}
    return LadderTrace(run, states, study.currents.alpha * levels, powers, 6e-9)


def partitions(design):
    one = PartitionSummary(
        "block1", 3, 6, 57, 2, 3, 3, (1.0, 0.5, 0.7), (1.5, 2.0, 2.5), 0.02, 900,
        {"converters": 4, "behavioral": 1, "ngspice": 1}, 0, 0.9989, {"behavioral": 1e-8, "ngspice": 1.1e-8}, 300.0,
        None, 3.7e-11, 2e-12, None, None,
    )  # fmt: skip
    levels = ("software", "converters", "behavioral", "ngspice")
    pairs = ("converters", "behavioral", "ngspice", "end_to_end")
    summary = DeployedSummary(
        "ngspice", 30, 0, dict.fromkeys(levels, 0.9), dict.fromkeys(levels, IntervalEnds(0.73, 0.98)),
        dict.fromkeys(pairs, 1.0), dict.fromkeys(pairs, IntervalEnds(0.88, 1.0)), 0.01, 900, one.wrong, 0.9989,
        one.power_w, ("wires", "pads"), None, (one,),
    )  # fmt: skip
    parts = [
        SimpleNamespace(part="encoder", where="software", parameters=1234, reason="its perceptron is gated"),
        SimpleNamespace(part="block1", where="circuit", parameters=0, reason="3 9T cells"),
    ]
    cut, source = SimpleNamespace(parts=lambda: parts), SimpleNamespace(name="made up")
    compiled = CompiledPartition(SimpleNamespace(name="block1"), design, Run())
    return partitions_page(CutBackbone(cut, source, None, "", (compiled,)), summary)
