"""Thresholds and levels of a run's chips: from the records alone, and those of the chips that were drawn."""

from dataclasses import replace

import numpy as np

from cosim.units.schmitt import Schmitt
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.chip_study import spread_cells
from cosim.verbs.montecarlo.trial import drawn_record
from cosim.verbs.trim.trim import measure_behavioral


def test_cells_of_records_are_those_of_the_chips_drawn(trial):
    records = [drawn_record(trial.chip(number)) for number in range(4)]
    found = spread_cells(trial, records)
    assert found is not None
    assert found.cells == tuple(cell.name for cell in trial.design.graph.of(Schmitt))
    assert found.measured.shape == (4, len(found.cells), 3)
    for number in range(4):
        points = measure_behavioral(trial, trial.chip(number), in_frame=True)
        wanted = [(points[cell].rise, points[cell].fall, points[cell].level) for cell in found.cells]
        # records keep single precision, 6e-8, of shifts whose effect is some 30 times as large relative to u_t
        np.testing.assert_allclose(found.measured[number], wanted, rtol=1e-5, atol=1e-16)


def test_a_chip_without_deviations_has_what_was_asked(trial):
    still = replace(trial, plan=VariationPlan("none", 0, 1))
    found = spread_cells(still, [drawn_record(still.chip(0))])
    assert found is not None
    np.testing.assert_array_equal(found.measured[0], found.asked)
    assert not found.deviations().any()


def test_asked_are_the_currents_that_the_compiler_solved_for(trial):
    found = spread_cells(trial, [drawn_record(trial.chip(0))])
    assert found is not None
    currents = [trial.design.graph.currents[cell] for cell in found.cells]
    # solve_gain iterates a contraction until nothing of a double is left to gain
    np.testing.assert_allclose(found.asked[:, 2], [one.i_high for one in currents], rtol=1e-9)
    wanted = np.array([(one.i_rise, one.i_fall) for one in currents])
    # what mirrors leave of the candidate there: 1 % of 1 nA of traffic, and the candidate's own 2 %
    np.testing.assert_allclose(found.asked[:, :2], wanted, rtol=0.02, atol=1e-11)
