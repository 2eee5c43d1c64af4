"""Deck text: golden text of a small circuit, exponent notation, folding, and nets through the hierarchy."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.circuit.deck import format_circuit, format_elements, format_number
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Source, Subcircuit

INNER = Subcircuit(
    "inner",
    ("a", "b"),
    (
        Mos("1", "a", "g", "0", "0", "n", 2e-6, 3e-6, 5, "layer0.weight[1,2]"),
        Mos("2", "g", "b", "vdd", "vdd", "p", 7e-6, 11e-6),
    ),
    "two transistors\nport a, port b",
)
OUTER = Subcircuit(
    "outer", ("x", "y"), (Instance("left", ("y", "mid"), "inner"), Instance("right", ("mid", "x"), "inner"))
)
CIRCUIT = Circuit(
    "golden",
    (INNER, OUTER),
    (
        Instance("top", ("in", "out"), "outer", "what it is for"),
        Capacitor("c1", "out", "0", 1.5e-12),
        Source("dd", "v", "vdd", "0", 1.8),
        Source("in", "i", "in", "0", ((0.0, 0.0), (1e-3, 2.5e-9))),
    ),
)
GOLDEN = """\
* golden

* two transistors
* port a, port b
.subckt inner a b
* layer0.weight[1,2]
m1 a g 0 0 generic180_n w=2e-06 l=3e-06 m=5
m2 g b vdd vdd generic180_p w=7e-06 l=1.1e-05 m=1
.ends inner

.subckt outer x y
xleft y mid inner
xright mid x inner
.ends outer

* what it is for
xtop in out outer
cc1 out 0 1.5e-12
vdd vdd 0 dc 1.8e+00
iin in 0 pwl(0e+00 0e+00 1e-03 2.5e-09)
"""


def test_golden_text(technology):
    assert format_circuit(CIRCUIT, technology) == GOLDEN
    assert format_circuit(CIRCUIT, technology) == GOLDEN


def test_no_top_level_means_subcircuits_only(technology):
    assert format_circuit(Circuit("golden", (INNER, OUTER)), technology) == GOLDEN[: GOLDEN.index("\n* what it is for")]


def test_flatten_keeps_nets_of_two_levels():
    found = [(m.name, m.drain, m.gate, m.source, m.polarity, m.m) for m in CIRCUIT.flatten()]
    # left: a=y=out, b=mid; right: a=mid, b=x=in; `mid` and `g` are local, ground is global.
    assert found == [
        ("top.left.1", "out", "xtop.xleft.g", "0", "n", 5),
        ("top.left.2", "xtop.xleft.g", "xtop.mid", "xtop.xleft.vdd", "p", 1),
        ("top.right.1", "xtop.mid", "xtop.xright.g", "0", "n", 5),
        ("top.right.2", "xtop.xright.g", "in", "xtop.xright.vdd", "p", 1),
    ]


def test_gate_area_counts_units():
    assert next(CIRCUIT.flatten()).gate_area == pytest.approx(5 * 2e-6 * 3e-6, rel=1e-15, abs=0)


def test_flatten_refuses_a_wrong_number_of_nets():
    circuit = Circuit("bad", (INNER,), (Instance("top", ("one",), "inner"),))
    with pytest.raises(ValueError, match="zip"):
        list(circuit.flatten())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exponents_and_read_back(value):
    text = format_number(value)
    assert re.fullmatch(r"-?\d(\.\d+)?e[+-]\d{2,3}", text)
    # 12 digits: half a unit of the twelfth, of a mantissa of at least 1 (subnormals have fewer digits of their own)
    assert float(text) == pytest.approx(value, rel=5e-12, abs=1e-300)


def test_a_waveform_of_one_point_is_constant(technology):
    """VACASK refuses such a waveform; a ladder that only holds its level is driven by one."""
    assert format_elements([Source("in", "i", "a", "0", ((0.0, 2.5e-10),))], technology) == ["iin a 0 dc 2.5e-10"]


def test_long_lines_are_folded_at_words(technology):
    points = tuple((k * 1e-3, k * 1.25e-10) for k in range(40))
    lines = format_elements([Source("in", "i", "a", "0", points)], technology)
    assert len(lines) > 3
    assert max(map(len, lines)) <= 110
    assert all(line.startswith("+ ") for line in lines[1:])
    joined = " ".join(line.removeprefix("+ ") for line in lines)
    assert joined == "iin a 0 pwl(" + " ".join(f"{format_number(t)} {format_number(v)}" for t, v in points) + ")"


@pytest.mark.ngspice
def test_ngspice_reads_folded_lines_as_one(run_bench):
    """A folded staircase of 200 points into 1 ohm: the last point arrives, so no continuation line was lost."""
    points = tuple((k * 1e-5, float(k % 7)) for k in range(200))
    circuit = Circuit("fold", (), (Source("in", "i", "0", "a", points), Source("short", "v", "a", "0", 0.0)))
    waves = run_bench(circuit, ".tran 1e-6 1.99e-3 0 1e-6", "i(vshort)")
    # Exact but for interpolation at the corners, which the solver steps on.
    for k in (1, 100, 199):
        at = abs(waves["time"] - k * 1e-5).argmin()
        assert waves["vshort#branch"][at] == pytest.approx(k % 7, abs=1e-3)
