"""The public circuits do what their comments say, in ngspice: against a closed form or a law of each."""

import math
from pathlib import Path

import pytest

from cosim.base.quantities import u_t
from cosim.circuit.measures import evaluate_measures
from cosim.circuit.spice import read_netlist
from cosim.engines.chip import vary
from cosim.engines.engine import Waveforms
from cosim.engines.table import simulator_named
from cosim.verbs.datasheet.sheet import read_sheet
from cosim.verbs.datasheet.study import datasheet_bench

FOLDER = Path(__file__).resolve().parents[3] / "netlists" / "public"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
SLOPE = 1.32  # of an n device of generic180 in weak inversion


@pytest.fixture
def measured(technology):
    """(circuit, deviations of transistors, parameters) -> measure -> value."""

    def run(name, drawn=None, **given):
        path = FOLDER / f"{name}.sp"
        netlist = read_netlist(path.read_text(), path.name, technology, given)
        bench = datasheet_bench(vary(netlist.circuit.flat(), drawn or {}), technology, netlist, "ngspice")
        waves = simulator_named("ngspice").run(bench, 120)
        assert isinstance(waves, Waveforms), waves
        return evaluate_measures(netlist.measures, waves.time, waves.probes)

    return run


@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_is_read_and_cites_its_paper(name):
    sheet = read_sheet(FOLDER / f"{name}.toml")
    assert sheet.measures and len(sheet.conditions) >= 3
    head = [line for line in (FOLDER / f"{name}.sp").read_text().splitlines() if line.startswith("*")]
    assert "Written anew from" in " ".join(head) and any(char.isdigit() for char in head[-1])


@pytest.mark.ngspice
def test_the_offset_of_the_ota_is_that_of_its_pair(measured):
    """A threshold of m1 that is 4 mV higher moves the output down by 4 mV, less 1 / gain; gain is above 20."""
    before, after = measured("ota"), measured("ota", {"1": (4e-3, 1.0)})
    assert after["offset"] - before["offset"] == pytest.approx(-4e-3, rel=0.05)
    assert before["power"] == pytest.approx(2 * 10e-9 * 1.8, rel=0.02)  # tail and its diode; output conductance


@pytest.mark.ngspice
def test_the_decision_of_the_comparator_turns_at_its_offset(measured):
    """m1 with a threshold 4 mV higher needs 4 mV more; the interpolation between steps of 2.5 mV is good to 0.2 mV."""
    assert measured("strongarm", {"1": (4e-3, 1.0)})["offset"] == pytest.approx(4e-3, abs=0.4e-3)


@pytest.mark.ngspice
def test_the_frequency_of_the_ring_is_exponential_in_the_supply(measured):
    """f = I / (C V), I = I_0 exp(V / (n U_T)); half of a delay is that of p devices, n = 1.31, so n is near 1.32.

    20 mV change the logarithm of I by 0.59; moderate inversion, which begins near 0.5 V, takes a tenth of it.
    """
    slow, fast = (measured("ring", supply=supply)["frequency"] for supply in (0.50, 0.52))
    expected = 0.02 / (SLOPE * u_t(27)) - math.log(0.52 / 0.50)
    assert math.log(fast / slow) == pytest.approx(expected, rel=0.15)


@pytest.mark.ngspice
def test_the_time_constant_of_the_synapse_is_linear(measured):
    """tau = C U_T n / i_tau with 2 pF, and 5 % more by the gates and drains on the node."""
    tau = measured("dpi")["tau"]
    assert tau == pytest.approx(2e-12 * SLOPE * u_t(27) / 100e-12, rel=0.08)
    assert measured("dpi", itau=50e-12)["tau"] == pytest.approx(2 * tau, rel=0.03)


@pytest.mark.ngspice
def test_the_winner_takes_all(measured):
    """4 mV on m1 divide its current by exp(4 mV / (n U_T)): its input must be so much smaller, 11 %."""
    before, after = measured("wta"), measured("wta", {"1": (4e-3, 1.0)})
    ratio = (1 + after["offset"]) / (1 + before["offset"])
    assert ratio == pytest.approx(math.exp(-4e-3 / (SLOPE * u_t(27))), rel=0.03)
    assert before["won"] == pytest.approx(2e-9, rel=0.01)


@pytest.mark.ngspice
def test_the_voltage_of_the_reference_is_proportional_to_the_temperature(measured):
    """U_T ln 8 without output conductance, which adds a few percent here; what the resistor takes flows in m2."""
    found = measured("ptat")
    assert found["ptat"] == pytest.approx(u_t(27) * math.log(8), rel=0.06)
    assert found["current"] == pytest.approx(found["ptat"] / 10e6, rel=0.05)  # m5 has another drain voltage
    assert measured("ptat", r=20e6)["ptat"] == pytest.approx(found["ptat"], rel=0.03)


@pytest.mark.ngspice
def test_the_n_curve_of_a_stronger_cell_is_wider(measured):
    """At a higher threshold of the access transistor ma1 the read disturbs less: q rests lower, and flips later."""
    before, after = measured("ncurve"), measured("ncurve", {"a1": (20e-3, 1.0)})
    assert 0.0 < after["rest"] < before["rest"] < 0.03
    assert after["margin"] > before["margin"] + 2e-3
    assert before["current"] == -before["push"] > 0


@pytest.mark.ngspice
def test_a_cell_that_is_read_has_less_margin(measured):
    """The margin of a cell at rest is below half its supply (Seevinck), and access transistors take most of it."""
    hold, read = measured("sram"), measured("sram", word=0.5)
    assert 0.15 < hold["margin"] < 0.25
    assert 0.02 < read["margin"] < 0.75 * hold["margin"]
    assert hold["one"] == pytest.approx(hold["zero"], rel=0.01)  # a symmetrical cell
