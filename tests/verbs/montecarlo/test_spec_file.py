"""Specs of a file and of a command line: what they hold where, and what is said of one that is wrong."""

from dataclasses import replace

import pytest

from cosim.base.errors import InputError
from cosim.results.metrics import Estimate
from cosim.technology.catalog import load_technology
from cosim.verbs.montecarlo.spec import format_verdicts, judge, parse_spec, read_specs, without_yield

FILE = """
[spec]
accuracy = ">= 80 %"
power = "<= 500 nW"
area = "<= 0.05 mm2"
yield = ">= 0.9"

[[at]]
corner = "ff"
power = "<= 600 nW"

[[at]]
corner = "ff"
temp = 60
accuracy = ">= 0.7"
"""


@pytest.fixture
def specs(tmp_path):
    (tmp_path / "specs.toml").write_text(FILE)
    return read_specs([str(tmp_path / "specs.toml"), "accuracy>=0.75", "energy<=50nJ"])


def limits(specs, **there):
    return {spec.metric: spec.limit for spec in specs.at(replace(load_technology("generic180"), **there))}


def test_a_place_takes_its_own_limits(specs):
    assert [spec.metric for spec in without_yield(specs)[1]] == ["yield"]
    specs, _ = without_yield(specs)
    everywhere = {"accuracy": 0.8, "power": 500e-9, "area": 50_000, "energy": 50e-9}
    assert limits(specs, corner="tt", celsius=27.0) == pytest.approx(everywhere)
    assert limits(specs, corner="ff", celsius=27.0) == pytest.approx(everywhere | {"power": 600e-9})
    assert limits(specs, corner="ff", celsius=60.0) == pytest.approx(everywhere | {"power": 600e-9, "accuracy": 0.7})


def test_the_tighter_of_two_holds():
    found = read_specs(["power<=4nW", "power<=3nW", "power>=1nW", "power<=5nW"]).common
    assert [spec.text for spec in found] == ["power<=3nW", "power>=1nW"]


def test_a_verdict_has_value_limit_and_whether_it_is_sure():
    measured = {
        "accuracy": Estimate(0.9, 0.82, 0.95),
        "power": Estimate(4e-7, 3.9e-7, 5.2e-7),
        "area": Estimate(6e4),
    }
    verdicts = judge([parse_spec(text) for text in ("accuracy>=0.8", "power<=500nW", "area<=5e4um2")], measured)
    assert [(one.met, one.sure) for one in verdicts] == [(True, True), (True, False), (False, True)]
    *_, accuracy, power, area = format_verdicts(verdicts)
    assert accuracy.split() == ["accuracy>=0.8", "90.0", "%", "[82.0", "%,", "95.0", "%]", "met"]
    assert power.endswith("[390 nW, 520 nW]  met, unsure") and area.split()[1:] == ["6e+04", "um2", "-", "missed"]
    with pytest.raises(InputError, match=r"--spec rmse: not a figure of this run; take one of accuracy, power, area$"):
        judge([parse_spec("rmse<=1")], measured)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[spec]\nspeed = '>= 1'", r"specs\.toml: spec\.speed: must be one of accuracy, .* not 'speed >= 1'"),
        ("[spec]\npower = '<= 5 mV'", r"specs\.toml: spec\.power: power must be a number in W .* not '5 mV'"),
        ("[spec]\npower = '<= 5'", r"spec\.power: power is in W and must be positive and at most 0\.001 W, not 5; 400"),
        ("[spec]\naccuracy = '>= 80'", r"spec\.accuracy: accuracy must be a fraction between 0 and 1, .*, not 80"),
        ("[spec]\naccuracy = 0.8", r"spec\.accuracy must be a text that begins with >= or <=, not 0\.8; write metric"),
        ("[spec]\nlatency = '<= -1 s'", r"spec\.latency: latency is in s and must be positive"),
        ("[[at]]\npower = '<= 1 nW'", r"at\[0\] must say where it holds, by corner, temp or supply; .* use \[spec\]"),
        ("[[at]]\ncorner = 3", r"at\[0\]\.corner must be the name of a corner"),
        ("[[at]]\ntemp = 'hot'", r"at\[0\]\.temp must be a number, not 'hot'; write temp = 60"),
        ("[specs]\npower = '<= 1 nW'", r"'specs' must be \[spec\] or \[\[at\]\]"),
        ("spec = 3", r"spec must be a table \[spec\], at a list of tables"),
        ("", r"specs\.toml: must hold at least one spec"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    (tmp_path / "specs.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_specs([str(tmp_path / "specs.toml")])
