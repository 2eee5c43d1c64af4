"""The statistics of a datasheet on made-up chips, whose spread and causes are known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import SimulationError
from cosim.engines.engine import FailureKind
from cosim.variation.draws import VariationPlan
from cosim.verbs.datasheet.outputs import summarize_datasheet
from cosim.verbs.datasheet.sheet import SheetMeasure, read_sheet
from cosim.verbs.datasheet.statistics import (
    audit_of,
    causes_of,
    column_of,
    sigma_interval,
    spread_of,
    worst_chip,
    yield_of,
)
from cosim.verbs.datasheet.study import DatasheetChip, datasheet_study

NAMES = ("m1", "m2", "m3", "m1", "m2", "m3")  # thresholds, then current factors


def made(chips, seed=0):
    """Deviations of chips, and a measure 1 + 3 z(m1 vt) - 2 z(m2 vt) + z(m1 beta) + a curved rest of variance 2."""
    z = np.random.default_rng(seed).standard_normal((chips, len(NAMES)))
    return z, 1 + 3 * z[:, 0] - 2 * z[:, 1] + z[:, 3] + (z[:, 2] ** 2 - 1)


def test_causes_are_those_of_the_formula():
    """Of the variance 9 + 4 + 1 + 2 = 16. A slope's standard error is sqrt(2 / 4000) = 0.022 of 3: 4 sigma are 3 %."""
    z, y = made(4000)
    found = causes_of(NAMES, z, y.tolist())
    assert [one.name for one in found.causes] == ["m1", "m2", "m3"]
    assert [one.share for one in found.causes] == pytest.approx([10 / 16, 4 / 16, 0], abs=0.03)
    assert found.unexplained == pytest.approx(2 / 16, abs=0.03)
    assert sum(one.share for one in found.causes) + found.unexplained == pytest.approx(1.0)
    first, second, _ = found.causes
    assert (first.sigma_vt, first.sigma_beta) == pytest.approx((3, 1), abs=0.1)
    assert (second.sigma_vt, second.sigma_beta) == pytest.approx((-2, 0), abs=0.1)


def test_shares_have_no_bias_with_few_chips():
    """Without the standard errors, six numbers of 32 chips would claim 6 / 31 of a variance that has no cause."""
    found = [causes_of(NAMES, z, np.random.default_rng(seed + 500).standard_normal(32).tolist())
             for seed in range(300) for z in (made(32, seed)[0],)]  # fmt: skip
    claimed = [1 - one.unexplained for one in found]
    assert abs(np.mean(claimed)) < 3 * np.std(claimed) / math.sqrt(len(claimed)) + 0.03


def test_chips_without_a_value_are_left_out_of_causes():
    z, y = made(200)
    values = y.tolist()
    values[3] = None
    known = np.arange(200) != 3
    assert causes_of(NAMES, z, values) == causes_of(NAMES, z[known], y[known].tolist())
    assert causes_of(NAMES, z[:31], values[:31]) is None  # too few
    assert causes_of(NAMES, z, [1.0] * 200) is None  # nothing varies


def test_the_interval_of_a_sigma_covers_it():
    """2,000 sets of 20 normal values: 95 % of the intervals hold 1, within 3 sigma of a binomial share, 1.5 %."""
    sigmas = np.random.default_rng(1).standard_normal((2000, 20)).std(axis=1, ddof=1)
    held = [low < 1.0 < high for low, high in (sigma_interval(float(sigma), 20) for sigma in sigmas)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_limits_and_missing_values():
    measure = SheetMeasure("m", "V", -1.0, None, 2.0)
    assert [measure.meets(value) for value in (-1.0, 2.0, 2.1, -1.1, None)] == [True, True, False, False, False]
    assert [measure.room(value) for value in (0.0, 1.5, 3.0, None)] == [1.0, 0.5, -1.0, -math.inf]
    spread = spread_of(measure, [0.0, 1.0, None, 3.0], None)
    assert (spread.chips, spread.missing, spread.passed, spread.yield_) == (3, 1, 2, 0.5)
    assert spread.mean.mean == pytest.approx(4 / 3) and (spread.low, spread.high) == (0.0, 3.0)
    low, high = spread.yield_interval
    assert low == pytest.approx(0.0676, abs=1e-4) and high == pytest.approx(
        0.9324, abs=1e-4
    )  # Clopper, Pearson, 2 of 4
    column = column_of(measure, [0.5, 3.0, None, -2.0])
    assert (column.nominal, column.low_at, column.high_at, column.missing, column.failing) == (0.5, 3, 1, 1, 3)


def test_the_worst_chip_is_the_farthest_outside():
    wide, narrow = SheetMeasure("wide", "", -10, None, 10), SheetMeasure("narrow", "", -1, None, 1)
    chips = [{"wide": 0.0, "narrow": 0.9}, {"wide": 11.0, "narrow": 0.0}, {"wide": 0.0, "narrow": 1.5}]
    spreads = [spread_of(one, [chip[one.name] for chip in chips], None) for one in (wide, narrow)]
    assert worst_chip((wide, narrow), chips, spreads) == 2  # 0.5 / 0.75 is more than 1 / 6.4
    assert yield_of((wide, narrow), chips).passed == 1
    assert worst_chip((wide, narrow), [*chips, {"wide": None, "narrow": 0.0}], spreads) == 3


def test_a_measure_that_does_not_vary_says_nothing_of_the_worst_chip():
    offset, fixed = SheetMeasure("offset", "V", -15e-3, None, 15e-3), SheetMeasure("power", "W", None, None, 5e-9)
    chips = [{"offset": value, "power": 4e-9} for value in (0.0, 14.9e-3, -1e-3)]
    spreads = [spread_of(one, [chip[one.name] for chip in chips], None) for one in (offset, fixed)]
    assert worst_chip((offset, fixed), chips, spreads) == 1


def test_chips_lost_to_a_time_out_are_in_no_figure(sheet_of):
    """A chip that the engine left to ngspice is not audited; one that failed to converge counts as failing."""
    sheet, study = sheet_of
    late = DatasheetChip(1, (None,) * len(study.names), reason=FailureKind.TIMEOUT.value + ": after 1 s")
    stuck = DatasheetChip(2, (None,) * len(study.names), reason=FailureKind.CONVERGENCE.value + ": no")
    fine = [DatasheetChip(k, (1.0 + 0.01 * k,) * len(study.names)) for k in (0, 3)]
    moved = replace(fine[1], simulator="ngspice, because a net is too high")
    chips = [fine[0], late, stuck, moved]
    found = summarize_datasheet(sheet, study, [fine[0]], chips, [replace(one, simulator=None) for one in chips])
    assert found.yield_.chips == 3 and found.lost == 1 and [number for number, _ in found.failed] == [1, 2]
    assert found.lines[0].audit.chips == 1 and found.moved == moved.simulator and found.worst == 2
    with pytest.raises(SimulationError, match="all 1 chips were lost; the first: the run exceeded its time-out"):
        summarize_datasheet(sheet, study, [fine[0]], [replace(late, chip=0)], [])


@pytest.fixture
def sheet_of(tmp_path):
    """(sheet, study) of one resistor and one transistor, whose measures the tests make up."""
    (tmp_path / "a.sp").write_text(
        "v1 a 0 1\nr1 a b 1meg\nm1 b b 0 0 generic180_n w=5u l=5u\n.tran 1u 2u\n.meas tran x find v(b) at=1u\n"
    )
    (tmp_path / "a.toml").write_text('netlist = "a.sp"\n[[measures]]\nname = "x"\nmin = 0.5\n')
    sheet = read_sheet(tmp_path / "a.toml")
    return sheet, datasheet_study(sheet, "local", VariationPlan("local", 0, 4), "ngspice", 600.0)


def test_an_audit_is_over_sigma():
    found = audit_of([1.0, 2.0, None, 4.0], [1.1, 1.9, 3.0, None], 0.5)
    assert (found.chips, found.only_one) == (2, 2)
    assert (found.largest, found.rms, found.mean) == pytest.approx((0.2, 0.2, 0.0))
