"""The blocks around a network, each by itself in ngspice."""

import numpy as np
import pytest

from cosim.cells.average import AVERAGE, AVERAGE_BIAS, RATIO, average, average_bias
from cosim.cells.benches import bias_lines, supply_of
from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.converter import STEP, converter_bench
from cosim.cells.decision import DECISION, DECISION_CONTROLS, decision
from cosim.cells.tree import TREE_COUNTS, tree_bench
from cosim.cells.winner import winner
from cosim.circuit.bench import PRECISE, Bench, Current, Dc, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Instance, Source
from cosim.engines.simulation.inference import run_bench

LEVELS = 16
IDLE, BIAS = 0.1e-9, 2e-9
C, FRAME, WINDOW = 4e-12, 5e-3, 0.3e-3


@pytest.mark.ngspice
def test_a_converter_draws_its_code(technology):
    """Codes are whole devices, so what differs between them is where the drains stand: below a switch that carries
    1 nA in place of 1/16 nA the source has n U_T ln 16 = 0.1 V less, at 2.2 %/V 0.2 %. A code of 0 draws nothing."""
    codes = (0, 1, 2, 3, 5, 8, 13, 16)
    waves = run_bench(converter_bench(technology, LEVELS, 8, 1e-9, codes), "converter")
    drawn = np.interp(STEP * (np.arange(len(codes)) + 0.99), waves.time, waves.through("out"))
    assert abs(drawn[0]) < 1e-13
    each = drawn[1:] / np.array(codes[1:])
    np.testing.assert_allclose(each, each[-1], rtol=2e-3)


@pytest.mark.ngspice
def test_an_average_takes_a_current_of_either_sign(technology):
    """An eighth, but for the output conductance of the copy over what diode and capacitor differ by: 2.5 %/V of at most
    0.5 V. At 0 the idle current of both copies cancels to their conductances, 1 % of an eighth of it."""
    elements = (
        supply_of(technology),
        *bias_lines({"idle": IDLE}),
        Instance("low", ("idle", "low", "vdd"), AVERAGE_BIAS),
        Instance("cell", ("y", "low", "vdd", GROUND, GROUND, GROUND, "mean", "vdd"), AVERAGE),
        Source("mean", "v", "mean", GROUND, 0.9),
        Source("y", "i", "y", GROUND, 0.0),
    )
    blocks = (bias_diode(technology), average_bias(technology), average(technology, C))
    sweep, probes = Dc("i", "y", -14e-9, 14e-9, 1e-9), (Current("mean"), Voltage("y"), Current("dd"))
    waves = run_bench(Bench(Circuit("average", blocks, elements), technology, sweep, probes, PRECISE), "average")
    y, found = np.arange(-14, 15) * 1e-9, RATIO * waves.through("mean")
    away = y != 0
    np.testing.assert_allclose(found[away], y[away], rtol=1.3e-2)
    assert abs(found[14]) < 0.01 * IDLE
    assert np.ptp(waves.voltage("y")) < 0.35  # V: rows keep their drains within a third of a volt
    assert waves.delivered("dd")[0] < 4 * IDLE  # what is pushed costs no second time


@pytest.mark.ngspice
def test_the_largest_mean_has_its_line(technology):
    """Two frames, of which the second outweighs the first: 1 nA for 0.3 ms on 8 x 4 pF is 9.4 mV, and what decides here
    is 1/4 nA, 2.3 mV or 7 % of current. The other lines stay at the ground."""
    turns = np.array([[2.0, 1.0, -3.0], [-1.0, 0.25, 2.0]])  # nA; means 0.5, 0.625, -0.5
    start, end = 5e-3, 5e-3 + 2 * FRAME + 15e-3
    windows = [start + k * FRAME + 0.5 * FRAME for k in range(2)]
    gate = [(0.0, 0.0), *((at + dt, volt) for at in windows for dt, volt in _pulse(technology.supply))]
    controls = {
        "sample": tuple(gate),
        "sampleb": tuple((time, technology.supply - volt) for time, volt in gate),
        "begin": ((0.0, technology.supply), (2e-3, technology.supply), (2.1e-3, 0.0)),
        "lift": ((0.0, 0.0), (3e-3, 0.0), (3.1e-3, technology.supply)),
    }
    waves_in = [((0.0, 1e-9 * a), (start + FRAME, 1e-9 * a), (start + 1.01 * FRAME, 1e-9 * b)) for a, b in turns.T]
    nets = "idle", "bias", *DECISION_CONTROLS, "y0", "y1", "y2", "line0", "line1", "line2", "vdd"
    elements = (
        supply_of(technology),
        *bias_lines({"idle": IDLE, "bias": BIAS}),
        *(Source(name, "v", name, GROUND, wave) for name, wave in controls.items()),
        *(Source(f"y{k}", "i", f"y{k}", GROUND, wave) for k, wave in enumerate(waves_in)),
        Instance("cell", nets, f"{DECISION}_3"),
    )
    blocks = bias_diode(technology), average(technology, C), average_bias(technology), winner(technology, 3)
    circuit = Circuit("decision", (*blocks, decision(technology, 3)), elements)
    assert blocks[0].name == BIAS_DIODE
    probes = *(Voltage(f"line{k}") for k in range(3)), *(Voltage(f"xcell.mean{k}") for k in range(3))
    waves = run_bench(Bench(circuit, technology, Tran(FRAME / 50, end), probes), "decision")
    high = [waves.voltage(f"line{k}")[-1] > technology.supply / 2 for k in range(3)]
    assert high == [False, True, False]
    means = np.array([waves.voltage(f"xcell.mean{k}")[-1] for k in range(3)])
    expected = turns.sum(axis=0) * 1e-9 * WINDOW / (RATIO * C)
    np.testing.assert_allclose(means - means[0], expected - expected[0], atol=1e-3)  # charge of the switches


def _pulse(supply):
    return (0.0, 0.0), (20e-6, supply), (WINDOW, supply), (WINDOW + 20e-6, 0.0)


@pytest.mark.ngspice
def test_the_tree_makes_currents_by_counts(technology):
    """From 0.07 to 4 nA a unit gives the same but for 35 mV an e-fold of the pin's voltage, at 2.5 %/V: 0.36 % in all.
    A fine unit is 1/32 of a coarse one, but for what 0.1 V at the lines' copies is, 0.3 %, twice."""
    waves = run_bench(tree_bench(technology, 0.3), "tree")
    pins = np.array([waves.through(f"sense{count}")[-1] for count in TREE_COUNTS])
    each = pins / np.array(TREE_COUNTS)
    assert 25e-12 < each[0] < 45e-12
    assert np.all(np.diff(each) < 0) and each[0] / each[-1] - 1 < 5e-3
    assert waves.through("sense0")[-1] / 31 == pytest.approx(each[0] / 32, rel=1e-2)
