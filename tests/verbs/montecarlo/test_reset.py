"""Cells that a chip's reset does not turn off: found on transistors and by the model, and never by luck."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.read import read_inference, read_plan
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.simulation.testbench import inference_bench
from cosim.verbs.montecarlo.spec import meets_specs, parse_spec, passes_specs
from cosim.verbs.montecarlo.trial import run_behavioral_chip, run_chip
from cosim.verbs.trim.trim import measure_behavioral

CELL, DIODE = "layer1.1", "network.bias_width_6.diode"
WIDER = 0.03  # V: the copy of a diode of so much more threshold carries exp(30 mV / 35 mV) = 2.3 times the current


@pytest.fixture(scope="module")
def nominal(trial):
    return replace(trial, plan=replace(trial.plan, kind="none")).chip(0)


@pytest.fixture(scope="module")
def stuck(nominal):
    """Nominal but for one transistor: CELL, whose width is 0.67 of its threshold, has a lower threshold below 0."""
    shift = np.array([WIDER if device.name == DIODE else 0.0 for device in nominal.devices])
    assert shift.sum() == WIDER
    return replace(nominal, vt_shift=shift)


def find_unreset(trial, chip):
    """By the transistors."""
    run = replace(trial.run(chip), engine="ngspice")
    return engine_named("ngspice").unreset(trial.design, trial.test_set, run)


def test_the_model_names_the_cell(trial, nominal, stuck):
    assert run_behavioral_chip(trial, nominal).unreset == ()
    assert run_behavioral_chip(trial, stuck).unreset == (CELL,)


@pytest.mark.ngspice
def test_so_do_the_transistors(trial, nominal, stuck):
    assert find_unreset(trial, nominal) == ()
    assert find_unreset(trial, stuck) == (CELL,)


@pytest.mark.ngspice
def test_figures_do_not_depend_on_the_operating_point_that_is_found(trial, stuck):
    """Led to either state by .nodeset, it begins in the one that it cannot leave; without its preset it would not."""
    design = trial.design
    begun = inference_bench(design, trial.test_set.x[0, :2], trial.timing, chip=stuck)
    free = replace(begun, preset=())
    (node,) = design.assembly.decisions[CELL]

    def states(bench, volt):
        found = run_bench(replace(bench, start=((node, volt), (f"{node[:-5]}v0", volt))))
        assert not isinstance(found, Failure)
        return read_inference(found, read_plan(design, 2, trial.timing)).states

    np.testing.assert_array_equal(states(begun, 0.0), states(begun, 1.8))
    assert states(begun, 0.0)[0, list(design.assembly.decisions).index(CELL)] == 1
    assert (states(free, 0.0) != states(free, 1.8)).any()


@pytest.mark.ngspice
def test_both_engines_name_the_same_cells_of_chips(trial):
    """But for cells within 30 pA of no lower threshold: calibrated thresholds are right within some picoampere."""
    small = replace(trial, plan=replace(trial.plan, area=0.05))
    seen = 0
    for chip in map(small.chip, (0, 1, 3, 9)):
        found = find_unreset(small, chip)
        points = measure_behavioral(small, chip)
        for cell in set(run_behavioral_chip(small, chip).unreset) ^ set(found):
            assert abs(points[cell].fall) < 30e-12
        seen += len(found)
    assert seen > 0


@pytest.mark.ngspice
def test_such_a_chip_has_its_record_and_does_not_count(trial):
    small = replace(trial, engine="ngspice", plan=replace(trial.plan, area=0.05), test_set=trial.test_set.take(1, 0))
    record = run_chip(small, 5)
    assert record.status == "ok" and record.simulated.unreset == (CELL,)
    anything = [parse_spec("accuracy>=0")]
    assert meets_specs(record.simulated, anything) and not passes_specs(record.outcome("ngspice"), anything)
