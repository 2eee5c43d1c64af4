"""Measures of a transient against ngspice's own `.meas` on the same deck, and by hand where a value is known."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.bench import Bench, Current, Tran, Voltage
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.measures import (
    Crossing,
    Find,
    Formula,
    Signal,
    When,
    Window,
    evaluate_measures,
    format_measures,
    parse_measure,
    probes_of,
    signals_of,
)
from cosim.circuit.spice import read_netlist
from cosim.engines.table import simulator_named
from cosim.technology.foundry import Parameters

# A damped swing: an RC ladder behind a pulse, whose signals cross levels several times.
DECK = """* two low passes behind pulses
.param high=1 half='high/2'
v1 in 0 pulse(0 {high} 1u 0.1u 0.1u 2u 5u)
r1 in a 1k
c1 a 0 0.8n
r2 a b 2k
c2 b 0 0.5n
v2 b c 0
r3 c 0 20k
.tran 20n 20u
"""
STATEMENTS = {  # name -> statement; every kind, each with what counts crossings
    "atv": "find v(a) at=2.5u",
    "atd": "find par('v(a)-v(b)') at=2.5u",
    "ati": "find i(v2) at=3u",
    "whenv": "find v(b) when v(a)='half*0.8' fall=2",
    "whent": "when v(a)='half'",
    "rise2": "when v(a)='half' rise=2",
    "fall1": "when v(b)=0.3 fall=1",
    "cross3": "when v(b)=0.3 cross=3",
    "last": "when v(a)='half' rise=last",
    "meet": "when v(a)=v(b) rise=1 td=2u",
    "meetc": "find v(a) when v(a)=v(b) cross=2 td=2u",
    "delay": "trig v(in) val='half' rise=1 targ v(b) val=0.3 rise=1",
    "width": "trig v(a) val='half' rise=2 targ v(a) val='half' fall=2",
    "late": "trig v(a) val='half' td=6u rise=1 targ v(b) val=0.3 td=6u fall=1",
    "since": "trig at=1u targ v(b) val=0.3 rise=1",
    "mean": "avg v(a) from=1u to=6u",
    "least": "min v(b) from=5u to=15u",
    "most": "max v(b)",
    "swing": "pp v(a) from=6u to=19u",
    "power": "rms v(a) from=1u to=6u",
    "charge": "integ i(v2) from=0 to=10u",
    "topat": "max_at v(b) from=0 to=5u",
    "lowat": "min_at v(b) from=6u to=15u",
    "sum": "param='2*delay+width/high'",
    "least2": "param='min(atv,most)'",
}


@pytest.fixture(scope="module")
def netlist(technology):
    text = DECK + "".join(f".meas tran {name} {text}\n" for name, text in STATEMENTS.items())
    return read_netlist(text, "rc.sp", technology)


def bench_of(netlist, technology):
    return Bench(netlist.circuit, technology, netlist.run, probes_of(netlist.measures))


@pytest.mark.ngspice
def test_every_measure_is_ngspices(netlist, technology, tmp_path, monkeypatch):
    """The library's run and the program's are one code with the same time points, so only printed digits differ.

    ngspice prints 7 digits of most measures, half a unit of the last one is 5e-7 of a number that begins with 1; its
    integrals take Simpson's rule where three steps are equal, which is nearer to a curve than the trapezoids here.
    """
    monkeypatch.setenv("NGSPICE_MEAS_PRECISION", "10")
    program = shutil.which("ngspice")
    if program is None:
        pytest.skip("the program ngspice is not installed, only its library")
    bench = bench_of(netlist, technology)
    body, end, _ = format_bench(bench).rpartition(".end\n")
    (tmp_path / "rc.sp").write_text(f"{body}{format_measures(netlist.measures, netlist.run)}{end}")
    done = subprocess.run(
        [program, "-b", "rc.sp"], cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    theirs = {name: float(value) for name, value in re.findall(r"^(\w+) +=  *(\S+)", done.stdout, re.MULTILINE)}
    waves = simulator_named("ngspice").run(bench, 60)
    ours = evaluate_measures(netlist.measures, waves.time, waves.probes)
    assert ours.keys() == STATEMENTS.keys() and ours.keys() <= theirs.keys(), done.stdout + done.stderr
    for name, value in ours.items():
        tolerance = 1e-5 if name in ("power", "charge") else 2e-6
        assert value == pytest.approx(theirs[name], rel=tolerance, abs=1e-15), name


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_measure_is_written_and_read_again(netlist, name):
    """What `format_measures` writes, `parse_measure` reads to the same measure, but for the digits of a number."""
    own = next(one for one in netlist.measures if one.name == name)
    before = tuple(one.name for one in netlist.measures[: netlist.measures.index(own)])
    line = format_measures([own], netlist.run).splitlines()[-1].removeprefix(".meas ")
    parameters = Parameters({"high": "1.0"})
    again = parse_measure(line, parameters, before, netlist.run, signals_of(netlist.circuit))
    assert type(again) is type(own) and format_measures([again], netlist.run) == format_measures([own], netlist.run)


A, B = Voltage("a"), Voltage("b")
TIME = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
WAVES = {A: np.array([0.0, 2.0, 0.0, 2.0, 0.0]), B: np.array([1.0, 1.0, 1.0, 1.0, 1.0])}


def value(measure):
    return evaluate_measures([measure], TIME, WAVES)[measure.name]


@pytest.mark.parametrize(
    ("crossing", "moment"),
    [
        (Crossing(Signal(A), 1.0, "rise", 1), 0.5),
        (Crossing(Signal(A), 1.0, "fall", 1), 1.5),
        (Crossing(Signal(A), 1.0, "cross", 3), 2.5),
        (Crossing(Signal(A), 1.0, "rise", 0), 2.5),
        (Crossing(Signal(A), 1.0, "fall", 2), 3.5),
        (Crossing(Signal(A), 0.5, "rise", 1), 0.25),
        (Crossing(Signal(A), Signal(B), "fall", 2), 3.5),
        (Crossing(Signal(A, B), 0.0, "fall", 1), 1.5),
        (Crossing(Signal(A), 1.0, "rise", 1, 1.0), 2.5),
        (Crossing(Signal(A), 1.0, "rise", 3), np.nan),
        (Crossing(Signal(A), 3.0, "cross", 1), np.nan),
        (Crossing(Signal(A), 1.0, "rise", 1, 4.0), np.nan),
    ],
)
def test_crossings_of_a_triangle(crossing, moment):
    assert crossing.moment(TIME, WAVES) == pytest.approx(moment, nan_ok=True)


def test_a_point_on_the_level_is_one_crossing():
    time, waves = np.arange(4.0), {A: np.array([0.0, 1.0, 2.0, 2.0])}
    assert Crossing(Signal(A), 1.0, "rise", 1).moment(time, waves) == 1.0
    assert np.isnan(Crossing(Signal(A), 1.0, "rise", 2).moment(time, waves))


def test_numbers_of_a_triangle():
    assert value(Window("m", "avg", Signal(A), 0.5, 1.5)) == pytest.approx(1.5)
    assert value(Window("m", "integ", Signal(A), 0.0, 4.0)) == pytest.approx(4.0)
    assert value(Window("m", "pp", Signal(A), 0.5, 3.5)) == 2.0
    assert value(Window("m", "max_at", Signal(A), 2.0, 4.0)) == 3.0
    assert value(Find("m", Signal(A), 0.25)) == 0.5
    assert np.isnan(value(Find("m", Signal(A), 5.0)))
    assert value(When("m", Crossing(Signal(A), 1.0, "fall", 1), Crossing(Signal(A), 1.0, "rise", 1))) == 1.0
    assert np.isnan(value(Formula("m", "sqrt(-1)")))


def test_a_formula_of_a_missing_measure_has_no_value():
    measures = [When("t", Crossing(Signal(A), 5.0)), Formula("f", "2*t")]
    found = evaluate_measures(measures, TIME, WAVES)
    assert np.isnan(found["t"]) and np.isnan(found["f"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ac x find v(a) at=1", "a measure must begin with .meas tran"),
        ("tran 2x find v(a) at=1", "a measure's name must be of letters"),
        ("tran old find v(a) at=1", "there must not be two of old"),
        ("tran p find v(a) at=1", "there must not be two of p"),
        ("tran x seek v(a) at=1", "a measure must be find SIGNAL .* not 'seek'"),
        ("tran x find v(q) at=1", "there is no q"),
        ("tran x find i(r1) at=1", "i must have the name of one voltage source"),
        ("tran x find i(vq) at=1", "there is no vq"),
        ("tran x find w(a) at=1", "a signal must be v"),
        ("tran x find v(0,a) at=1", "must not begin with ground"),
        ("tran x find v(a) by=1", "find must be followed by a signal and at= or when, not 'by'"),
        ("tran x find v(a) at=9", "at must lie in 0 to 4 s"),
        ("tran x find v(a) at=", "a number is missing"),
        ("tran x find v(a) at", "at must be followed by ="),
        ("tran x when v(a)", "when must be followed by a signal, = and a level"),
        ("tran x when v(a)=1 rise=0", "rise must be a whole number from 1 on"),
        ("tran x when v(a)=1 rise=1.5", "rise must be a whole number from 1 on"),
        ("tran x when v(a)=1 rise=1 fall=1", "fall must be given once, and only one of"),
        ("tran x when v(a)=1 sink=1", "'sink' is not understood behind the measure x"),
        ("tran x trig v(a) val=1 rise=1", "trig must be followed by targ"),
        ("tran x trig v(a) rise=1 targ v(b) val=1", "must have a signal and then val="),
        ("tran x trig v(a) val=1 targ at=1", "targ must be a signal with val="),
        ("tran x avg v(a) from=2 to=1", "from and to must lie in 0 to 4 s"),
        ("tran x avg v(a) to=5", "from and to must lie in 0 to 4 s"),
        ("tran x param", "param must be followed by ="),
        ("tran x param='later*2'", "the expression must use earlier measures and parameters, not later"),
        ("tran x param='old+'", "cannot evaluate"),
        ("tran x find v(a) at=unknown", "parameter 'unknown' is used but not defined"),
    ],
)
def test_what_is_not_understood_is_refused(text, said):
    probes = frozenset((A, B, Voltage("0"), Current("a")))
    with pytest.raises(InputError, match=said):
        parse_measure(text, Parameters({"p": "1"}), ("old",), Tran(1.0, 4.0), probes)
