"""Netlists in SPICE's language: each construct is read and written again; what is wrong is refused by its line."""

import re

import pytest

from cosim.base.errors import InputError
from cosim.circuit.bench import Dc, Op, Tran
from cosim.circuit.deck import format_circuit
from cosim.circuit.elements import Capacitor, Instance, Resistor, Source
from cosim.circuit.spice import read_netlist

TEXT = """* every construct
.param bias=2n ratio='1+1' supply={0.9*2}
.subckt mirror in out vdd times=4
m1 in in vdd vdd generic180_p w=2u l=5u
m2 out in vdd vdd generic180_p w=2u
+ l=5u m=times   $ on two lines
.ends mirror
.subckt pair a b vdd
x1 a n vdd mirror times=3
x2 n b vdd mirror
.ends
VDD vdd gnd DC {supply}
ib in 0 {bias*ratio} ; a comment
x3 in out vdd pair
x4 in out2 vdd mirror times=ratio
cl out 0 c=1p
rl out 0 10meg
vp ck 0 pulse(0 {supply} 1u 0.1u 0.1u 2u 5u)
ip out2 0 pwl(1u 0 2u {bias})
.tran 10n 8u 0 5n
.meas tran level find v(out) at=8u
.meas tran twice param='2*level*ratio'
.end
what follows the end is not read
"""


@pytest.fixture(scope="module")
def read(technology):
    return lambda text, **given: read_netlist(text, "a.sp", technology, **given)


def by_name(netlist):
    return {element.letter + element.name: element for element in netlist.circuit.elements}


def test_every_construct_is_read(read):
    netlist = read(TEXT)
    found = by_name(netlist)
    assert netlist.run == Tran(5e-9, 8e-6)
    assert found["vdd"] == Source("dd", "v", "vdd", "0", 1.8)
    assert found["ib"] == Source("b", "i", "in", "0", 4e-9)
    assert found["cl"] == Capacitor("l", "out", "0", 1e-12)
    assert found["rl"] == Resistor("l", "out", "0", 1e7)
    assert found["ip"].value == ((0.0, 0.0), (1e-6, 0.0), (2e-6, 2e-9))
    assert isinstance(found["x3"], Instance) and found["x3"].nets == ("in", "out", "vdd")
    times = sorted(mos.m for mos in netlist.circuit.flatten())
    assert times == [1, 1, 1, 2, 3, 4]  # as given by each instance, and the default
    assert {mos.w for mos in netlist.circuit.flatten()} == {2e-6}


def test_a_pulse_is_its_corners_up_to_the_end(read):
    """Two periods begin before 8 us, at 1 and at 6 us; 0.1 us of edges around 2 us."""
    times, values = zip(*by_name(read(TEXT))["vp"].value, strict=True)
    assert times == pytest.approx([0, 1e-6, 1.1e-6, 3.1e-6, 3.2e-6, 6e-6, 6.1e-6, 8.1e-6, 8.2e-6])
    assert values == pytest.approx([0, 0, 1.8, 1.8, 0, 0, 1.8, 1.8, 0])


def test_parameters_may_be_given_from_outside(read):
    netlist = read(TEXT, given={"bias": 1e-9, "supply": 1.5})
    assert by_name(netlist)["ib"].value == pytest.approx(2e-9)
    assert by_name(netlist)["vdd"].value == 1.5
    with pytest.raises(InputError, match=r"a\.sp must have a \.param vias, which is given a value; it has bias, ratio"):
        read(TEXT, given={"vias": 1.0})


def test_lines_and_subcircuits_are_remembered(read):
    netlist = read(TEXT)
    assert netlist.lines["mirror", "m2"] == 5 and netlist.lines["", "rl"] == 17
    assert set(netlist.blocks.values()) == {"mirror", "pair"}
    assert [one.name for one in netlist.measures] == ["level", "twice"]


def test_what_is_written_is_read_again(read, technology):
    """A circuit, written as a netlist and read, is written as the same text."""
    text = format_circuit(read(TEXT).circuit, technology)
    again = format_circuit(read(text).circuit, technology)
    assert again == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1 a b c d", "'q1' is not understood; cosim reads m, n, x, c"),
        ("l1 a b 1n", "'l1' is not understood"),
        (".include other.sp", r"\.include must be left out: the technology gives"),
        (".model n nmos level=1", r"\.model must be left out"),
        (".options reltol=1", "reltol must lie in 1e-09 to 0.001, not 1"),
        (".options gmin=1e-15", r"\.options must have reltol=VALUE alone, once, as cosim sets all else"),
        (".temp 50", r"\.temp must be left out"),
        (".control", r"\.control must be left out"),
        ("m1 a b c 0 nmos w=2u l=2u", "the model must be a transistor of generic180, generic180_n and generic180_p"),
        ("m1 a b c generic180_n w=2u l=2u", "m1 must have 4 nets, not 3"),
        ("m1 a b c 0 generic180_n w=2u", "l must lie in"),
        ("m1 a b c 0 generic180_n w=2 l=2u", "w must lie in 1e-08 to 0.001 m, not 2 m"),
        ("m1 a b c 0 generic180_n w=2u l=2u m=1.5", "m must be a whole number, not 1.5"),
        ("m1 a b c 0 generic180_n w=2u l=2u nf=2", "nf must be 1"),
        ("m1 a b c 0 generic180_n w=2u l=2u vth=1", "a transistor has w, l, m and nf, not vth"),
        ("m1 a b c 0 generic180_n w=2u l=size", "parameter 'size' is used but not defined"),
        ("x1 a b none", "x1 must name a subcircuit of this netlist"),
        ("x1 a two", "x1 must have 2 nets, for two's p q, not 1"),
        ("x1 a b two k=1", "two must have the parameter k"),
        ("c1 a 0", "c1 must have two nets and one value"),
        ("c1 a 0 1", "the capacitance must lie in"),
        ("r1 a 0 0", "the resistance must lie in"),
        ("r1 a 0 1k tc=1", "r1 must have two nets and one value, and nothing else"),
        ("v1 a 0 sin(0 1 1k)", "a source must have a number, pwl with pairs"),
        ("v1 a 0 ac=1", "a source has no ac"),
        ("v1 a 0 pwl(0 0 1u)", "pwl must have pairs"),
        ("v1 a 0 pwl(1u 0 1u 1)", "pwl must have pairs of a time and a value"),
        ("v1 a 0 pulse(0 1 0 0 0 1u 2u)", "a pulse must have edges longer than 0 s"),
        ("v1 a 0 pulse(0 1 0 1n 1n 1n 3n)", "a pulse must have at most 25000 periods"),
        ("vdd a 0 1", "there must not be two of vdd; the other one is in line 2"),
        ("r-1 a 0 1k", "a name must be of letters, digits and _"),
        (".tran 0 1u", r"\.tran must have a step and an end"),
        (".tran 2u 1u", r"\.tran must have a step and an end"),
        (".dc vdd 0 1", r"\.dc must have one source, v or i, and start, stop and step"),
        (".dc vdd 0 1 0.1 va 0 1 0.1", "parameter 'va' is used but not defined"),
        (".dc temp 0 60 10", r"\.dc must have one source, v or i"),
        (".dc vdd 0 1 -0.1", r"\.dc must have a step that leads from start to stop"),
        (".dc vdd 0 1 2", r"\.dc must have a step that leads from start to stop"),
        (".dc vdd 0 1 1u", r"\.dc must have at most 100000 points, not 1000000"),
        (".dc vdd 0 200 1", "the value of a source must lie in -100 to 100"),
        (".dc vnone 0 1 0.1", r"\.dc must sweep a source of the top level, not vnone; it has vdd"),
        (".op now", r"\.op must stand alone"),
        (".ic v(none)=1", r"\.ic must name a net of the circuit, once, not 'none'"),
        (".nodeset v(vdd)=1 v(vdd)=2", r"\.nodeset must name a net of the circuit, once, not 'vdd'"),
        (".nodeset v(0)=1", r"\.nodeset must name a net of the circuit, once, not '0'"),
        (".nodeset v(vdd) 1", r"\.nodeset must have v\(net\)=value, not 'v\(vdd\) 1'"),
        (".nodeset v(vdd)=size", "parameter 'size' is used but not defined"),
        (".subckt two p q", "two is defined twice, also in line 3"),
        (".subckt generic180_n d g s b", "generic180_n must have another name"),
        (".meas tran x find v(nowhere) at=1u", "there is no nowhere"),
        (".meas dc x find v(vdd) at=1u", r"a measure must begin with \.meas tran"),
        (".meas tran", "a measure's name must be of letters"),
    ],
)
def test_what_is_wrong_is_refused_by_its_line(read, line, said):
    run = "" if line.startswith((".tran", ".dc", ".op")) else ".tran 1u 1m\n"
    text = f"* faulty\nvdd vdd 0 1\n.subckt two p q\nrp p q 1k\n.ends\n{line}\n{run}x9 vdd 0 two\n"
    with pytest.raises(InputError, match=said) as raised:
        read(text)
    assert str(raised.value).startswith("a.sp: line 6: "), raised.value
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* a\n+ m1", "line 2: a line that begins with \\+ must follow another one"),
        ("* a\n.subckt a x\nx1 x b\n.ends\n.subckt b x\nx1 x a\n.ends\nx1 n a", "a must not contain itself"),
        (
            "* a\n.subckt a x\n.subckt b y\n.ends",
            "line 3: the subcircuit a of line 2 must end with .ends before another",
        ),
        ("* a\n.subckt a x\n.ends b", "line 3: .ends must stand alone, or with the name a"),
        ("* a\nv1 a 0 pulse(0 1 0 1n 1n 1u 2u)", "line 2: a pulse needs the length of the run"),
        ("* a\nv1 a 0 1\n.meas tran x find v(a) at=0", "line 3: a measure needs a run"),
        ("* a\n.subckt open x\nr1 x 0 1", r"line 2: the subcircuit open must end with \.ends"),
        ("* a\n.subckt b x\n.tran 1u 1m\n.ends", r"line 3: \.tran must stand outside of the subcircuit b"),
        ("* a\n.op\nv1 a 0 1\n.ic v(a)=1", r"line 4: \.ic is of a transient, so there must be a \.tran"),
        ("* a\n.op\n.dc v1 0 1 0.1", r"line 3: \.dc must be given once, as the only analysis; line 2 has \.op"),
        ("* a\nv1 a 0 1\n.dc v1 0 1 0.1\n.meas tran x find v(a) at=1", r"line 4: a measure must begin with \.meas dc"),
        ("* a\n.subckt b x\n.nodeset v(x)=1\n.ends", r"line 3: \.nodeset must stand outside of the subcircuit b"),
        ("* a\n.subckt b x\n.meas tran y find v(x) at=0\n.ends", r"line 3: \.meas must stand outside"),
        (
            "* a\n.tran 1u 1m\n.tran 1u 1m",
            r"line 3: \.tran must be given once, as the only analysis; line 2 has \.tran",
        ),
    ],
)
def test_what_takes_more_than_a_line_is_refused(read, text, said):
    with pytest.raises(InputError, match=said):
        read(text)


def test_instances_with_other_values_of_parameters_have_a_subcircuit_of_their_own(read):
    """The usual values keep the name, whether they are given or not, and a name that is taken is not given twice."""
    text = "* a\n.subckt r2 a b r=1k\nr1 a b {r}\n.ends\n.subckt r2_2 a b\nr1 a b 1\n.ends\n"
    text += "x1 p q r2 r=2k\nx2 p q r2\nx3 p q r2 r='500*2'\nx4 p q r2 r=2k\nx5 p q r2_2\n"
    netlist = read(text)
    assert [one.subcircuit for one in netlist.circuit.elements] == ["r2_3", "r2", "r2", "r2_3", "r2_2"]
    assert netlist.blocks == {"r2": "r2", "r2_3": "r2", "r2_2": "r2_2"} and netlist.values["r2_3"] == "r=2000"


def test_sweeps_and_operating_points_are_read(read):
    """A sweep ends at its last whole step; sources are what they are at time 0, unless they have a value for dc."""
    text = (
        "* a\n.param top=0.65\nv1 a 0 dc 0.3 pwl(0 1 1 2)\nv2 b 0 pwl(1u 0.2 2u 1)\nv3 c 0 pulse(0.1 1 0 1n 1n 1u 2u)\n"
    )
    text += "x1 a b s\n.subckt s p q\nr1 p n 1k\nr2 n q 1k\n.ends\n.nodeset v(a)=0.1, v(x1.n)='top/2'\n"
    swept = read(text + ".dc v2 0 {top} 0.1\n.meas dc m find v(x1.n) at=0.6\n")
    assert swept.run == Dc("v", "2", 0.0, pytest.approx(0.6), 0.1)
    assert [element.value for element in swept.circuit.elements[:3]] == [0.3, 0.2, 0.1]
    assert swept.start == (("a", 0.1), ("x1.n", 0.325)) and swept.preset == ()
    assert read(text + ".op\n").run == Op()
    run = read(text + ".tran 1u 1m\n.ic v(x1.n)=0.2\n")
    assert run.preset == (("x1.n", 0.2),) and isinstance(run.circuit.elements[0].value, tuple)


def test_what_no_instance_uses_is_read_and_named(read):
    assert read("* a\n.subckt b x\nr1 x 0 1\n.ends\nr1 p 0 1").unused == ("b",)
    with pytest.raises(InputError, match="line 3: m1 must have 4 nets, not 1"):
        read("* a\n.subckt b x\nm1 x nonsense\n.ends\nr1 p 0 1")


def test_a_form_feed_ends_no_line(read):
    assert len(read("* c\fr1 a b 1k\r\nr2 a b 1k\rr3 a b 1k").circuit.elements) == 2


def test_depth_and_number_of_subcircuits_are_limited(read):
    chain = "".join(f".subckt s{k} a\nx1 a s{k + 1}\n.ends\n" for k in range(60)) + ".subckt s60 a\nr1 a 0 1\n.ends\n"
    with pytest.raises(InputError, match="50 deep"):
        read(f"* a\n{chain}x1 n s0\n")
    tree = "".join(f".subckt s{k} a\nx1 a s{k + 1}\nx2 a s{k + 1}\n.ends\n" for k in range(30))
    with pytest.raises(InputError, match="has more than 1000000 elements"):
        read(f"* a\n{tree}.subckt s30 a\nr1 a 0 1\n.ends\nx1 n s0\n")
    tree = "".join(
        f".subckt s{k} a k=1\nx1 a s{k + 1} k={{2*k}}\nx2 a s{k + 1} k={{2*k+1}}\n.ends\n" for k in range(20)
    )
    with pytest.raises(InputError, match="at most 10000 subcircuits with other values"):
        read(f"* a\n{tree}.subckt s20 a k=1\nr1 a 0 {{k}}\n.ends\nx1 n s0\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("r1 a b 1_000", "cannot evaluate '1_000'"),
        ("r1 a b 0x10", "cannot evaluate '0x10'"),
        ("r1 a b \uff11", "cannot evaluate"),
        ("r1 a b r=1 r=2", "r must be given once, not twice"),
        ("r1 a b r=agauss(1,2,3)", "agauss is not read, because the verb draws chips"),
        (".param", ".param must have name=value"),
        (".param lambda=1", "a parameter cannot have the name 'lambda'"),
        (".ends", "there is no .subckt that .ends could end"),
        (".subckt", ".subckt must have a name and its ports"),
        (".subckt resistor a b", "resistor must have another name, because a simulator has a device of this one"),
        ("m", "an element must have a name behind its letter m"),
        ("v1 a 0 1e300", "the value of a source must lie in -100 to 100"),
    ],
)
def test_odd_lines_are_refused(read, line, said):
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        read(f"* odd\nr9 a 0 1\n{line}\n")
    assert str(raised.value).startswith("a.sp: line 3: ")


def test_an_expression_may_have_parentheses_and_m_the_rounding_of_one(read):
    netlist = read(
        "* a\n.param k=max(3,4) l=(2+1)*(1+1)\nr1 a b r=(k+1)*2\nm1 a a 0 0 generic180_n w=1u l=1u m='0.3/0.1'\n"
    )
    assert netlist.circuit.elements[0].value == 10 and netlist.circuit.elements[1].m == 3
