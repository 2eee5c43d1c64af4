"""Mirror and linear row in ngspice: integer counts give exact ratios, currents add, and nothing is lost."""

import numpy as np
import pytest

from cosim.cells.linear import Term, linear_row
from cosim.circuit.elements import Circuit, Instance, Source

pytestmark = pytest.mark.ngspice

COUNTS = (1, 3, 8, 13, 64, -1, -3, -8, -13, -64)


def pull(waves):
    """Current that the circuit draws from the node through vhold, positive for a positive weight."""
    return float(waves["vhold#branch"][-1])


@pytest.mark.parametrize("current", [0.1e-9, 1e-9, 3e-9])
def test_ratio_is_linear_in_the_count(run_bench, supply, signal_blocks, signals, held, calibration, current):
    mirror = calibration.mirror
    gains = {}
    for count in COUNTS:
        waves = run_bench(
            Circuit("ratio", signal_blocks, (supply, *signals(x=current), *held("x", count))), ".op", "i(vhold)"
        )
        gains[count] = pull(waves) / (count / calibration.units * current)
        fit = mirror.gain_n if count > 0 else mirror.gain_p
        # The fit is exact at its own currents (reltol 1e-5). Between them ln I is interpolated linearly; at 3 nA the
        # gain's neighbours differ by 0.22 %, and its curvature leaves under 1/20 of that.
        assert gains[count] == pytest.approx(float(mirror.interpolate(fit, np.float64(current))), rel=1e-4)
    for sign in (1, -1):
        # m identical devices at the same voltages: exact but for reltol, 1e-5
        ratios = np.array([gains[count] for count in COUNTS if sign * count > 0])
        np.testing.assert_allclose(ratios, ratios[0], rtol=2e-5)


def test_both_signs_have_the_same_gain_after_the_trim(calibration):
    mirror = calibration.mirror
    # The trim is an average over 0.2 to 2 nA; layout steps of 5 nm leave 0.1 %, the spread over current +-0.3 %.
    at = np.array([0.2e-9, 0.5e-9, 1e-9, 2e-9])
    difference = mirror.interpolate(mirror.gain_n, at) - mirror.interpolate(mirror.gain_p, at)
    assert np.abs(difference).max() < 4e-3
    assert abs(difference.mean()) < 1e-3


ROW = (("a", 5), ("b", -11), ("c", 3), ("a", -2), ("d", 7), ("c", 0))
CURRENTS = {"a": 0.23e-9, "b": 0.37e-9, "c": 1.1e-9, "d": 0.05e-9}


@pytest.fixture
def row_waves(run_bench, supply, signal_blocks, signals, technology, calibration):
    terms = [Term(source, count, "") for source, count in ROW]
    row = linear_row("row", terms, technology, "")
    elements = (
        supply,
        *signals(**CURRENTS),
        Instance("row", ("node", "vdd", *row.ports[2:]), "row"),
        Source("hold", "v", "vdd", "node", calibration.v_node),
    )
    devices = [f"@m.xrow.m{mos.name}[id]" for mos in row.elements]
    waves = run_bench(Circuit("row", (*signal_blocks, row), elements), ".op", " ".join(["i(vhold)", *devices]))
    return waves, [abs(float(waves[name][-1])) for name in devices]


def test_currents_of_a_row_sum_to_zero(row_waves):
    waves, magnitudes = row_waves
    counts = [count for _, count in ROW if count]
    terms = [np.sign(count) * value for count, value in zip(counts, magnitudes, strict=True)]
    # Kirchhoff at the node, but for reltol 1e-5 of what flows, gmin 1e-16 S at 1.8 V and 1e-15 A of leakage per device
    assert abs(sum(terms) - pull(waves)) < 1e-5 * sum(magnitudes) + 5 * 1.8 * 1e-16 + 5e-15


def test_row_is_the_weighted_sum(row_waves, calibration):
    waves, _ = row_waves
    mirror, total, traffic = calibration.mirror, 0.0, 0.0
    for source, count in ROW:
        gains = mirror.gain_n if count > 0 else mirror.gain_p
        term = count / calibration.units * CURRENTS[source]
        total += term * float(mirror.interpolate(gains, np.float64(CURRENTS[source])))
        traffic += abs(term)
    # each term within the interpolation error of its gain, 1e-4
    assert pull(waves) == pytest.approx(total, abs=1e-4 * traffic)
    # and the plain sum that the network means, within 1 % of the traffic: the gains lie within 0.99 .. 1.01
    plain = sum(count / calibration.units * CURRENTS[source] for source, count in ROW)
    assert pull(waves) == pytest.approx(plain, abs=0.01 * traffic)
