"""The table of metrics, and a figure that a toy adds to it: specs, sweeps, searches and comparisons of runs have it."""

import pytest

from cosim.base.errors import InputError
from cosim.results.metrics import AGREEMENTS, CHIP_METRICS, METRICS, Estimate, Metric
from cosim.verbs.montecarlo.spec import format_verdicts, judge, parse_spec
from cosim.verbs.signoff.study import findings
from cosim.verbs.sweep.study import find_figures, format_one, unit_of


def test_what_chips_have_is_in_the_table():
    assert {*AGREEMENTS, *CHIP_METRICS} <= set(METRICS)
    assert all(METRICS[name].is_share for name in AGREEMENTS)
    assert [name for name, metric in METRICS.items() if metric.name != name] == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.98333, "98.3 %"),
        ("state_agreement", 0.99957, "99.96 %"),
        ("power", 4.2e-7, "420 nW"),
        ("area", 61234.4, "6.123e+04 um2"),
        ("rmse", 0.123456, "0.1235"),
    ],
)
def test_a_value_has_its_unit(name, value, text):
    assert METRICS[name].format(value) == text


def test_a_figure_is_declared_once(monkeypatch):
    """A charge in C, which cosim does not measure: one entry, and a spec, a finding and a sweep know it."""
    monkeypatch.setitem(METRICS, "charge", Metric("charge", "charge of an inference", "C", 1e-3, -1))
    spec = parse_spec("charge<=2nC")
    measured = {"charge": Estimate(3e-9, 2.5e-9, 3.5e-9)}
    (verdict,) = judge([spec], measured)
    assert (verdict.met, verdict.sure) == (False, True)
    assert format_verdicts([verdict])[-1].split()[1:3] == ["3", "nC"]
    (finding,) = findings([spec], measured)
    assert (finding.figure, finding.shown, finding.interval) == ("charge of an inference", "3 nC", "[2.5 nC, 3.5 nC]")
    found = dict(find_figures({"measured": {"charge": {"value": 3e-9, "low": 2.5e-9, "high": 3.5e-9}}}))
    assert found == {"measured.charge": measured["charge"]}
    assert (unit_of("measured.charge"), format_one("measured.charge", 3e-9)) == ("C", "3 nC")
    with pytest.raises(InputError, match="must be positive and at most 0.001 C, not 2000"):
        parse_spec("charge<=2000")
