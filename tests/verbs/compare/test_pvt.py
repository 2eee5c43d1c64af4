"""The sweep over corners, temperatures and supplies."""

from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest

import cosim.verbs.compare.pvt
from cosim.base.errors import InputError, SimulationError
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.results.intervals import IntervalEnds
from cosim.results.page import WIDTH, format_columns
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import GRID_CELSIUS, GRID_SUPPLIES, ConditionGrid, at
from cosim.verbs.bias import WORDS
from cosim.verbs.compare.agreement import ComparisonSummary
from cosim.verbs.compare.page import run_comparison
from cosim.verbs.compare.pvt import (
    condition_table,
    draw_pvt,
    middle_condition,
    pvt_grid,
    run_pvt,
    say_basis,
    say_worst,
    summarize_pvt,
)


def summary(states, decisions, samples=8):
    figures = dict.fromkeys(field.name for field in fields(ComparisonSummary))
    figures["elsewhere"] = {"ngspice: why": 3}
    return ComparisonSummary(**figures | {
        "samples": samples,
        "failed": 0,
        "state_agreement": states,
        "task_agreement": decisions,
        "task_agreement_interval": IntervalEnds(0.5, 1.0),
        "simulator": "ngspice",
        "accuracy": {"ngspice": 0.75},
        "power_w": {"ngspice": 3.4e-7},
    })  # fmt: skip


def test_grid_is_every_combination_once(technology):
    grid = pvt_grid(technology)
    found = {(one.corner, one.celsius, one.supply) for one in grid}
    assert found == set(product(("tt", "ff", "ss", "fs", "sf"), GRID_CELSIUS, (1.71, 1.8, 1.89)))
    assert len(grid) == 5 * len(GRID_CELSIUS) * len(GRID_SUPPLIES)


def test_worst_has_the_fewest_equal_decisions_then_states(technology):
    conditions = pvt_grid(technology)[:4]
    sweep = summarize_pvt(conditions, [summary(0.9, 1.0), summary(0.99, 0.875), summary(0.98, 0.875), summary(1, 1)], 8)
    (worst,) = sweep.worst
    assert (worst.celsius, worst.supply_v) == (conditions[2].celsius, conditions[2].supply)
    assert say_worst(sweep) == "Worst: tt, 0 °C, 1.89 V."
    assert condition_table(sweep).rows[2][3:6] == ("98.00 %", "87.5 %", "[50.0 %, 100.0 %]")
    assert [row.state_agreement for row in sweep.conditions] == [0.9, 0.99, 0.98, 1]
    assert sweep.failed == 0


def test_a_condition_without_any_result_is_the_worst(technology):
    conditions = pvt_grid(technology)[:2]
    sweep = summarize_pvt(conditions, [None, summary(0.5, 0.5)], 8)
    assert [row.supply_v for row in sweep.worst] == [conditions[0].supply]
    assert sweep.failed == 8
    assert [row[3] for row in condition_table(sweep).rows] == ["failed", "50.00 %"]


def test_none_is_the_worst_among_equals(technology):
    """Equal decisions are told apart by states; what is left equal shares the place, and all of them have none."""
    conditions = pvt_grid(technology)[:4]
    alike = summarize_pvt(conditions, [summary(0.99, 0.875), summary(1, 1), summary(0.99, 0.875), summary(1, 0.875)], 8)
    assert [row.supply_v for row in alike.worst] == [conditions[0].supply, conditions[2].supply]
    assert say_worst(alike) == "Worst: tt, 0 °C, 1.71 V; tt, 0 °C, 1.89 V."
    equal = summarize_pvt(conditions, [summary(0.99, 0.875)] * 4, 8)
    assert equal.worst == ()
    assert say_worst(equal) == "All conditions have equal figures."


def test_the_grid_says_what_the_technology_cannot_do(technology):
    with pytest.raises(
        InputError, match=r"the grid of conditions has a supply of 1\.89 V; generic180 takes at most 1\.85"
    ):
        pvt_grid(replace(technology, supply_max=1.85))
    sections = {**technology.library.sections, "sf": "slowfast"}
    with pytest.raises(InputError, match="must have the section 'slowfast'; it has"):
        pvt_grid(replace(technology, library=replace(technology.library, sections=sections)))


def test_the_verdict_names_the_bias_currents_that_it_assumes(technology):
    conditions = pvt_grid(technology)[:2]
    for bias, words in WORDS.items():
        sweep = summarize_pvt(conditions, [summary(1, 1)] * 2, 8, bias)
        said = say_basis(sweep)
        assert said.startswith(words)
        assert ("add --bias reference or --bias tracking" in said) == (bias == "constant")
        assert sweep.bias_assumed == words


def test_table_fits_a_terminal(technology):
    sweep = summarize_pvt(pvt_grid(technology), [summary(0.99984, 1.0)] * 44 + [summary(1, 1)], 8)
    table = condition_table(sweep)
    assert max(map(len, format_columns(table.head, table.rows, table.numbers))) <= WIDTH
    assert "and 38 more" in say_worst(sweep)
    assert table.rows[0] == ("tt", "0 °C", "1.71 V", "99.98 %", "100.0 %", "[50.0 %, 100.0 %]", "75.0 %", "340 nW")


def test_the_figure_has_a_panel_per_corner_and_leaves_failed_conditions_blank(technology):
    conditions = pvt_grid(technology)
    summaries = [summary(0.97, 1.0), None, *[summary(0.995, 0.875)] * (len(conditions) - 2)]
    figure = draw_pvt(summarize_pvt(conditions, summaries, 8))
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    corners = len(technology.library.sections)
    assert [axis.get_title() for axis in panels[:corners]] == list(technology.library.sections)
    wrong, changed, power = (panels[row * corners] for row in range(3))
    # 3 % and 0.5 % of the states; 0 and 1 of 8 decisions; every condition has the power of the nominal one
    assert [text.get_text() for text in wrong.texts[:2]] == ["3.0", "0.50"]
    assert [text.get_text() for text in changed.texts[:2]] == ["0", "1"]
    assert {text.get_text() for text in power.texts} == {"0"}
    shown = np.ma.filled(wrong.collections[0].get_array().astype(float), np.nan)  # (supply, temperature), ascending
    assert np.isnan(shown[1, 0])
    assert (shown[0, 0], shown[2, 0]) == pytest.approx((3.0, 0.5), rel=1e-9)


def test_a_grid_has_the_corners_temperatures_and_supplies_that_are_asked_for(technology):
    """Each condition once, also where one is typed twice or a corner has two names."""
    name = technology.library.sections["ss"]
    grid = pvt_grid(technology, ConditionGrid(("ss", name, "tt"), (-40.0, 125.0, -40.0), (0.9, 1.1)))
    found = [(one.corner, one.celsius, one.supply) for one in grid]
    assert found == list(product(("ss", "tt"), (-40.0, 125.0), (1.62, 1.98)))
    with pytest.raises(InputError, match="corner must be one of tt.* not 'slow'"):
        pvt_grid(technology, ConditionGrid(corners=("slow",)))


def test_the_figure_frames_the_middle_of_any_grid(technology):
    conditions = pvt_grid(technology, ConditionGrid(("ff",), (-40.0, 85.0, 105.0, 125.0), (0.9, 1.1)))
    sweep = summarize_pvt(conditions, [summary(0.99, 1.0)] * len(conditions), 8)
    found = middle_condition(sweep)
    assert found is not None and (found.corner, found.celsius, found.supply_v) == ("ff", 85.0, 1.62)
    assert "framed: ff, 85 °C, 1.62 V, 340 nW" in draw_pvt(sweep).get_suptitle()


def test_nominal_is_the_middle_of_the_first_corner(technology):
    conditions = pvt_grid(technology)
    sweep = summarize_pvt(conditions, [summary(0.99, 1.0)] * len(conditions), 8)
    found = middle_condition(sweep)
    assert found is not None
    assert (found.corner, found.celsius, found.supply_v) == ("tt", 27.0, 1.8)
    assert middle_condition(summarize_pvt(conditions, [None] * len(conditions), 8)) is None
    assert draw_pvt(summarize_pvt(conditions, [None] * len(conditions), 8)).axes


@pytest.mark.ngspice
def test_run_pvt_simulates_each_condition_and_resumes(technology, calibration, make_network, tmp_path, monkeypatch):
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    design = compile_network(network, technology, calibration)
    x = np.array([[[0.1, 0.9, 0.4], [0.8, 0.2, 0.6]]])
    conditions = (at(technology, "ss", 0.0, 1.71), at(technology, "ff", 60.0, 1.89))
    monkeypatch.setattr(cosim.verbs.compare.pvt, "pvt_grid", lambda nominal, grid: conditions)
    seen, lines = [], []
    test_set = TestSet(x, np.array([0]), np.array([2]), np.array([0]))
    run = Run(tmp_path)
    grid = ConditionGrid()
    sweep = run_pvt(design, test_set, run, lambda done, total: seen.append((done, total)), grid, finished=lines.append)
    assert lines == ["1/2 ss, 0 C, 1.71 V", "2/2 ff, 60 C, 1.89 V"]
    assert seen[-1] == (2, 2)
    powers = [row.power_w for row in sweep.conditions]
    # Currents are set by ideal sources, so power goes with the supply; mirrors add their output conductance, some 3 %/V
    # over the 0.18 V between, and the states are the same.
    assert powers[1] / powers[0] == pytest.approx(1.89 / 1.71, rel=0.02)
    assert all(row.state_agreement == 1.0 for row in sweep.conditions)
    arrays = np.load(tmp_path / "pvt.npz")  # as docs/reference/files.md has it
    assert arrays["conditions"].tolist() == ["ss, 0 C, 1.71 V", "ff, 60 C, 1.89 V"]
    assert (arrays["decisions"].shape, arrays["power_w"].shape, arrays["wrong"].shape) == ((2, 1), (2, 1), (2, 1, 3))
    first, picture = (tmp_path / "pvt.json").read_bytes(), (tmp_path / "pvt.png").read_bytes()
    assert len(list((tmp_path / "inferences").iterdir())) == 2
    assert run_pvt(design, test_set, run, lambda done, total: None, grid) == sweep
    assert (tmp_path / "pvt.json").read_bytes() == first
    assert (tmp_path / "pvt.png").read_bytes() == picture


@pytest.mark.ngspice
def test_progress_counts_the_samples_of_an_audit_too(technology, calibration, make_network, tmp_path):
    design = compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)
    x = np.array([[[0.1, 0.9, 0.4]], [[0.8, 0.2, 0.6]]])
    test_set = TestSet(x, np.array([0, 1]), np.array([1, 1]), np.array([0, 1]))
    seen = []
    run_comparison(design, test_set, Run(tmp_path), lambda done, total: seen.append((done, total)), audit=1)
    assert {total for _, total in seen} == {3}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert (2, 3) in seen
    assert seen[-1] == (3, 3)


def test_a_corner_without_models_is_said_before_the_first_run(
    technology, calibration, make_network, tmp_path, monkeypatch
):
    text = technology.library.file.read_text()
    slow = ".param dvth_n=0.06 dvth_p=0.06 mu_n=0.95 mu_p=0.95"
    assert slow in text
    file = tmp_path / technology.library.file.name
    file.write_text(text.replace(slow, slow.replace(" mu_p=0.95", "")))
    library = replace(technology.library, file=file)
    design = compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)
    design = replace(design, technology=replace(technology, library=library))
    monkeypatch.setattr("cosim.verbs.simulate.samples.simulate_samples", lambda *a: pytest.fail("a simulation began"))
    test_set = TestSet(np.array([[[0.1, 0.9, 0.4]]]), np.array([0]), np.array([1]), np.array([0]))
    with pytest.raises(InputError, match="section ss.*mu_p"):
        run_pvt(design, test_set, Run(tmp_path / "out"), lambda done, total: None, ConditionGrid())
    assert not (tmp_path / "out").exists()


def test_a_condition_whose_reference_does_not_start_is_a_row(
    technology, calibration, make_network, tmp_path, monkeypatch
):
    design = compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)

    def refuse(technology, simulator):
        raise SimulationError("current reference: it does not start")

    monkeypatch.setattr(cosim.verbs.compare.pvt, "pvt_grid", lambda nominal, grid: (at(technology, "ss"),))
    monkeypatch.setattr(cosim.verbs.bias, "measure_reference", refuse)
    lines = []
    test_set = TestSet(np.array([[[0.1, 0.9, 0.4]]]), np.array([0]), np.array([1]), np.array([0]))
    progress, grid = lambda done, total: None, ConditionGrid()
    sweep = run_pvt(design, test_set, Run(tmp_path), progress, grid, bias="tracking", finished=lines.append)
    assert lines == ["1/1 ss, 27 C, 1.8 V: current reference: it does not start"]
    assert (sweep.failed, sweep.worst, sweep.conditions[0].accuracy) == (1, (), None)
