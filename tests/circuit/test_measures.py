"""Measures against ngspice's own `.meas` on the same deck, and by hand where a value is known."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.bench import Bench, Current, Dc, Op, Tran, Voltage, pointed
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
from cosim.technology.parameters import Parameters

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


@pytest.fixture
def measured(technology, tmp_path, monkeypatch):
    """netlist -> measure -> value of ours and of ngspice's, and what ngspice says."""

    def run(netlist):
        monkeypatch.setenv("NGSPICE_MEAS_PRECISION", "10")
        program = shutil.which("ngspice")
        if program is None:
            pytest.skip("the program ngspice is not installed, only its library")
        bench = Bench(netlist.circuit, technology, netlist.run, probes_of(netlist.measures))
        printing = pointed(bench)
        body, end, _ = format_bench(printing).rpartition(".end\n")
        (tmp_path / "a.sp").write_text(f"{body}{format_measures(netlist.measures, printing.analysis)}{end}")
        done = subprocess.run([program, "-b", "a.sp"], cwd=tmp_path, capture_output=True, text=True, check=False)
        theirs = {
            name: float(value) for name, value in re.findall(r"^(\w+) +=  *([-\d]\S*)", done.stdout, re.MULTILINE)
        }
        waves = simulator_named("ngspice").run(bench, 60)
        return evaluate_measures(netlist.measures, waves.time, waves.probes), theirs, done.stdout + done.stderr

    return run


@pytest.mark.ngspice
def test_every_measure_is_ngspices(netlist, measured):
    """The library's run and the program's are one code with the same time points, so only printed digits differ.

    ngspice prints 7 digits of most measures, half a unit of the last one is 5e-7 of a number that begins with 1; its
    integrals take Simpson's rule where three steps are equal, which is nearer to a curve than the trapezoids here.
    """
    ours, theirs, said = measured(netlist)
    assert ours.keys() == STATEMENTS.keys() and ours.keys() <= theirs.keys(), said
    for name, value in ours.items():
        tolerance = 1e-5 if name in ("power", "charge") else 2e-6
        assert value == pytest.approx(theirs[name], rel=tolerance, abs=1e-15), name


# An inverter whose input is swept, and a divider with a characteristic of both signs.
SWEPT = """* an inverter
.param supply=0.6 half='supply/2'
vdd vdd 0 {supply}
vin in 0 pulse(0 1 0 1u 1u 1u 4u)
mn out in 0 0 generic180_n w=2u l=2u
mp out in vdd vdd generic180_p w=2u l=4u
vo out o 0
r1 o q 200g
m3 q vdd 0 0 generic180_n w=2u l=2u
iq 0 q 0
cl out 0 1p
"""
EITHER_WAY = {  # of a sweep of vin from -0.1 to 0.6 or back, in steps of 2 mV
    "atv": "find v(out) at=0.2513",
    "first": "find v(out) at=-0.1",
    "lastv": "find v(out) at={supply}",
    "atd": "find v(out,q) at=0.3",
    "ati": "find i(vdd) at=0.2",
    "trip": "when v(out)=v(in) cross=1",
    "tripv": "find v(q) when v(out)=v(in)",
    "level": "when v(out)='half' cross=last",
    "width": "trig v(out) val=0.5 cross=1 targ v(out) val=0.1 cross=1",
    "since": "trig at=0.1 targ v(out) val=0.1 cross=1",
    "mean": "avg v(out)",
    "meanw": "avg v(out) from=0.1 to=0.4",
    "below": "avg v(in) from=-0.05 to=0",
    "least": "min i(vdd) from=0 to=0.4",
    "most": "max v(out)",
    "swing": "pp v(out) from=0.1 to=0.3",
    "topat": "min_at i(vdd)",
    "whole": "rms v(out)",
    "area": "integ v(out)",
    "sum": "param='2*width+trip/supply'",
}
UPWARDS = {
    "fall": "when v(out)='half' fall=1",
    "power": "rms v(out) from=0.1 to=0.4",
    "charge": "integ i(vdd) from=0 to=0.4",
    "early": "integ v(out) from=-0.1 to=0",
}


@pytest.mark.ngspice
@pytest.mark.parametrize("sweep", ["-0.1 {supply} 2m", "{supply} -0.1 -2m"])
def test_every_measure_of_a_sweep_is_ngspices(technology, measured, sweep):
    """As above; from= and to= lie on points. Simpson's rule differs by step^2 / 12 times the change of the slope."""
    statements = EITHER_WAY | (UPWARDS if sweep.startswith("-") else {"rise": "when v(out)='half' rise=1"})
    text = f"{SWEPT}.dc vin {sweep}\n" + "".join(f".meas dc {name} {text}\n" for name, text in statements.items())
    netlist = read_netlist(text, "a.sp", technology)
    ours, theirs, said = measured(netlist)
    assert ours.keys() == statements.keys() and ours.keys() <= theirs.keys(), said
    for name, value in ours.items():
        tolerance = 2e-4 if name in ("whole", "area", "power", "charge", "early") else 2e-6
        assert value == pytest.approx(theirs[name], rel=tolerance, abs=1e-15), name
    assert ours["area"] * netlist.run.step > 0


@pytest.mark.ngspice
def test_a_swept_current_and_an_operating_point_are_ngspices(technology, measured):
    swept = "iq -10n 10n 0.3n\n.meas dc atv find v(q) at=1n\n.meas dc lastv find v(q) at=9.8n\n"
    swept += ".meas dc level find v(out,q) when v(q)=0.03\n.meas dc zero when v(q)=0 cross=1\n"
    netlist = read_netlist(f"{SWEPT}.dc {swept}", "a.sp", technology)
    ours, theirs, said = measured(netlist)
    assert netlist.run.stop == pytest.approx(9.8e-9) and len(ours) == 4, said
    assert ours == {name: pytest.approx(theirs[name], rel=2e-6) for name in ours}
    point = ".op\n.meas op level find v(q)\n.meas op drawn find i(vdd)\n.meas op power param='-drawn*supply+0*half'\n"
    ours, theirs, said = measured(read_netlist(SWEPT + point, "a.sp", technology))
    assert len(ours) == 3 and ours["power"] == -0.6 * ours["drawn"]
    assert ours == {name: pytest.approx(theirs[name], rel=2e-6) for name in ours}, said


@pytest.mark.parametrize(
    ("run", "text", "said"),
    [
        (
            Dc("v", "a", 0, 1, 0.1),
            "tran x find v(a) at=1",
            r"must begin with .meas dc, because the netlist's analysis is",
        ),
        (Op(), "tran x find v(a) at=1", r"must begin with .meas op"),
        (Tran(1, 4), "dc x find v(a) at=1", r"must begin with .meas tran, .* not .meas dc"),
        (Dc("v", "a", 0, 1, 0.1), "dc x find v(a) at=1.1", "at must lie in 0 to 1, the run of .dc, not 1.1"),
        (Dc("v", "a", 1, -1, -0.1), "dc x avg v(a) from=1 to=-1", "from and to must lie in -1 to 1, from < to"),
        (Dc("v", "a", 0, 1, 0.1), "dc x when v(a)=1 td=1", "td counts in a transient, not in a sweep"),
        (Dc("i", "a", 0, 1, 0.1), "dc x max v(a)", "ngspice has max over a swept voltage source"),
        (Dc("v", "a", 1, -1, -0.1), "dc x rms v(a) from=0 to=1", "ngspice has rms from= to= of a rising sweep"),
        (Dc("v", "a", -1, 1, 0.1), "dc x integ v(a) from=-1 to=-0.5", "ngspice has integ from= to= of a rising sweep"),
        (Op(), "op x find v(a) at=1", "'at' is not understood behind the measure x"),
        (Op(), "op x when v(a)=1", "an operating point has find SIGNAL and param='EXPRESSION', not 'when'"),
    ],
)
def test_what_an_analysis_has_no_measure_of_is_refused(run, text, said):
    with pytest.raises(InputError, match=said):
        parse_measure(text, Parameters({}), (), run, frozenset((A, B)))


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
