"""The ratio gate in ngspice: I = I_b a / (a + I_b)."""

import numpy as np
import pytest

from cosim.cells.benches import ratio_bench
from cosim.cells.ratio_gate import ratio_gate
from cosim.engines.simulation.inference import run_bench

UNITS = 8


@pytest.mark.ngspice
@pytest.mark.parametrize("i_b", [0.25e-9, 0.5e-9, 1e-9])
def test_it_is_the_ratio(technology, i_b):
    """a from 10 pA to 2 nA, signals of 80 pA to 16 nA. The tail stands at 0.4 V where its bias diode has 0.45 V, the
    pair's drains 0.4 V apart; at 2.9 %/V each is 1.5 %, and 3 % both at once."""
    waves = run_bench(ratio_bench(technology, UNITS, i_b, 16e-9), "ratio gate")
    found = np.abs(waves.through("out"))
    a = np.linspace(0.0, 16e-9, len(found)) / UNITS
    np.testing.assert_allclose(found[1:], i_b * a[1:] / (a[1:] + i_b), rtol=0.03)
    assert found[0] < 1e-3 * i_b  # without a signal it gives leakage alone


def test_its_pairs_are_matched(technology):
    cell = ratio_gate(technology)
    groups = {match: {mos.name for mos in cell.elements if mos.match == match} for match in ("a", "b", "line", "half")}
    assert groups == {"a": {"da", "a"}, "b": {"db", "b"}, "line": {"copy"}, "half": {"half"}}
