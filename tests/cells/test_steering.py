"""Steering AND and symbol comparator in ngspice: a current where all bits are on, leakage elsewhere; rails."""

import itertools

import numpy as np
import pytest

from cosim.cells.bias import BIAS_DIODE
from cosim.cells.rectifier import CANDIDATE
from cosim.cells.steering import steering_and, symbol_comparator
from cosim.circuit.elements import GROUND, Circuit, Instance, Source

pytestmark = pytest.mark.ngspice

UNITS = 8
DIODE = "@m.xcand.mdiode[id]"


@pytest.fixture
def steered(run_bench, supply, signal_blocks, technology, calibration):
    """(bits at 0 or 1, level in A) -> what the AND pulls from a candidate diode."""

    def run(bits, level):
        gates = tuple(f"b{k}" for k in range(len(bits)))
        elements = (
            supply,
            Source("gain", "i", "vdd", "gain", calibration.schmitt.solve_gain(level)),
            Instance("gain", ("gain",), BIAS_DIODE),
            *(Source(gate, "v", gate, GROUND, bit * technology.supply) for gate, bit in zip(gates, bits, strict=True)),
            Instance("and", ("cand", "gain", *gates), steering_and(technology, len(bits)).name),
            Instance("cand", ("cand", "vdd"), CANDIDATE),
        )
        circuit = Circuit("steering", (*signal_blocks, steering_and(technology, len(bits))), elements)
        return abs(float(run_bench(circuit, ".op", DIODE)[DIODE][0]))

    return run


@pytest.mark.parametrize("level", [0.1e-9, 1e-9, 4e-9])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_product_of_bits(steered, level, count):
    """The calibrated level of a 9T cell is that of M5 under one switch: each switch more takes some 4 mV (U_T ln 2 in
    the worst case, 18 mV) from a source whose output conductance is 2.9 %/V at most. What is off leaks less than 1 pA,
    a twentieth of the pedestal."""
    for bits in itertools.product((0, 1), repeat=count):
        expected = level if all(bits) else 0.0
        assert steered(bits, level) == pytest.approx(expected, rel=0.005 + 0.018 * 0.029 * count, abs=1e-12)


def test_products_on_one_node_add_up(run_bench, supply, signal_blocks, technology, calibration):
    """Two that are on and one that is off: twice the level, less what the node's fall to 2 nA takes, 2.9 %/V."""
    elements = (
        supply,
        Source("gain", "i", "vdd", "gain", calibration.schmitt.solve_gain(1e-9)),
        Instance("gain", ("gain",), BIAS_DIODE),
        *(
            Instance(f"and{k}", ("cand", "gain", "vdd", bit), "steering_and_2")
            for k, bit in enumerate(("vdd", "vdd", "0"))
        ),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
    )
    circuit = Circuit("plane", (*signal_blocks, steering_and(technology, 2)), elements)
    assert abs(run_bench(circuit, ".op", DIODE)[DIODE][0]) == pytest.approx(2e-9, rel=0.01)


def test_a_comparator_stands_at_a_rail(run_bench, supply, signal_blocks, signals, technology):
    """Threshold at half of one. Off the threshold by 10 % the node is within 0.1 V of a rail: either device
    has 2.9 %/V, so 10 % more current than the other can take is 3 V of drain voltage."""
    elements = (
        supply,
        *signals(x=0.0),
        Source("thresh", "i", "vdd", "thresh", 0.5e-9),
        Instance("thresh", ("thresh",), BIAS_DIODE),
        Instance("bit", ("x_p", "thresh", "out", "vdd"), f"symbol_comparator_{UNITS}"),
    )
    circuit = Circuit("symbol", (*signal_blocks, symbol_comparator(technology, UNITS)), elements)
    waves = run_bench(circuit, ".dc ix 0 1.05n 0.05n", "v(out)")
    current, out = np.arange(22) * 0.05e-9, waves["out"]
    assert (out[current < 0.45e-9] < 0.1).all()
    assert (out[current > 0.55e-9] > technology.supply - 0.1).all()
