"""What each cell is made of, without a simulator."""

import pytest

from cosim.cells.bias import bias_diode, pedestal_sink
from cosim.cells.clocked import LATCH_NODE, clocked_schmitt
from cosim.cells.linear import Term, linear_row
from cosim.cells.mirror import input_diode, signal_rails
from cosim.cells.rectifier import candidate_diode, relu_diode
from cosim.cells.schmitt import DECISION_NODE, schmitt
from cosim.circuit.elements import Capacitor, Mos


def test_nine_transistors_and_no_more(technology):
    cell = schmitt(technology, 8)
    assert sorted(mos.name for mos in cell.elements) == list("123456789")
    assert sorted(mos.name for mos in cell.elements if mos.polarity == "p") == list("1479")


def test_clocked_cell_is_the_9t_cell_with_gates(technology):
    plain = {mos.name: mos for mos in schmitt(technology, 8).elements}
    clocked = clocked_schmitt(technology, 8)
    transistors = {mos.name: mos for mos in clocked.elements if isinstance(mos, Mos)}
    assert set(transistors) - set(plain) == {"sn", "sp", "dn", "dp", "reset"}
    assert sum(isinstance(element, Capacitor) for element in clocked.elements) == 1
    for name, mos in plain.items():
        moved = {"cand": "hold"} if name == "1" else {DECISION_NODE: LATCH_NODE} if name in "36" else {}
        assert transistors[name].gate == moved.get(mos.gate, mos.gate)
        assert (transistors[name].drain, transistors[name].source) == (mos.drain, mos.source)


def test_every_net_of_a_cell_is_used_twice_or_is_a_port(technology):
    """A net with one terminal is a typing error: nothing drives it or nothing reads it."""
    cells = (
        schmitt(technology, 8), clocked_schmitt(technology, 8), signal_rails(technology, 8, 1.04),
        input_diode(technology, 8), candidate_diode(technology), relu_diode(technology, 8), bias_diode(technology),
        pedestal_sink(technology),
    )  # fmt: skip
    for cell in cells:
        terminals = []
        for element in cell.elements:
            nets = (element.a, element.b) if isinstance(element, Capacitor) else (
                element.drain, element.gate, element.source)  # fmt: skip
            terminals += nets
        for net in set(terminals) - {"0"}:
            assert net in cell.ports or terminals.count(net) > 1, (cell.name, net)
        assert set(cell.ports) <= set(terminals), cell.name


def test_bulks_are_at_the_rails(technology):
    for cell in (schmitt(technology, 8), clocked_schmitt(technology, 8), signal_rails(technology, 8, 1.0)):
        for mos in cell.elements:
            if isinstance(mos, Mos):
                assert mos.bulk == {"n": "0", "p": "vdd"}[mos.polarity]


@pytest.mark.parametrize(("count", "polarity", "gate", "rail"), [(5, "n", "line_n", "0"), (-7, "p", "line_p", "vdd")])
def test_weight_is_one_transistor_of_count_units(technology, count, polarity, gate, rail):
    (mos,) = linear_row("row", [Term("line", count, "layer0.weight[1,2]")], technology, "").elements
    assert (mos.polarity, mos.gate, mos.source, mos.drain, mos.m) == (polarity, gate, rail, "node", abs(count))
    assert mos.origin == "layer0.weight[1,2]"


def test_row_leaves_zeros_out_and_shares_gate_lines(technology):
    terms = [Term("a", 3, "w0"), Term("b", 0, "w1"), Term("a", -2, "w2"), Term("a", 5, "w3"), Term("c", 7, "w4")]
    row = linear_row("row", terms, technology, "")
    assert row.ports == ("node", "vdd", "a_n", "a_p", "c_n")
    assert [(mos.name, mos.gate, mos.m) for mos in row.elements] == [
        ("w0", "a_n", 3), ("w2", "a_p", 2), ("w3", "a_n", 5), ("w4", "c_n", 7),
    ]  # fmt: skip


def test_lengths_stay_on_the_grid(technology):
    diode = next(mos for mos in signal_rails(technology, 8, 1.038).elements if mos.name == "diode")
    assert diode.l == pytest.approx(4.815e-6, rel=1e-12, abs=0)  # 5 um / 1.038 = 4.81696 um, on the 5 nm grid
    assert diode.m == 8
    assert bias_diode(technology, 2.0).elements[0].l == pytest.approx(2 * technology.sizing.cell_n.l, rel=1e-12, abs=0)
