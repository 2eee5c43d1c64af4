"""What is read of a decision: a net far from its threshold has decided, a pulse of half a step has not."""

import numpy as np
import pytest

from cosim.cells.assembly import StateCurrent
from cosim.circuit.bench import Current, DrainCurrent, Voltage
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.read import Margin, Meter, ReadPlan, read_inference
from cosim.units.kind import SwitchingThresholds

TIMES = np.array([1.0, 2.0, 3.0])
THRESHOLD = 0.5


def turns(lines):
    return SwitchingThresholds((1e-9,), (1e-9,))


def read(driver):
    """Latches of one ladder of one rung that stays off, whose driver carries `driver` in three pulses."""
    margin = Margin("candidate", 0.7, turns, pulse=StateCurrent("driver", 5e-11, 2e-10))
    plan = ReadPlan(
        (("rung",),), ("out",), ((Meter("dd"), 1.8),), THRESHOLD, TIMES, (0.0, 3.0), margins=(margin,),
        closes=TIMES[None, :] - 0.5, pulsed=0.25,
    )  # fmt: skip
    time = np.concatenate([[0.0], TIMES - 0.25, [3.5]])
    flat = np.zeros(len(time))
    probes = {Voltage("rung"): flat, Current("out"): flat, Current("dd"): flat, DrainCurrent("candidate"): flat + 2e-9}
    carried = np.concatenate([driver[:1], driver, driver[-1:]])
    found = read_inference(Waveforms(time, {**probes, DrainCurrent("driver"): carried}), plan)
    np.testing.assert_allclose(found.margins[:, 0], 1e-9)
    return found.latches[:, 0]


def test_a_pulse_of_whole_steps_has_decided():
    """0 down, 1 not, 2 up: each as far as a net at ground is from its threshold."""
    np.testing.assert_allclose(read(np.array([0.5e-10, 2.5e-10, 4.5e-10])), THRESHOLD, atol=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.6, 0.1])
def test_a_pulse_of_a_part_of_a_step_hovers(share):
    found = read(5e-11 + 2e-10 * np.array([share, 1 + share, 2.0]))
    np.testing.assert_allclose(found, [*[2 * THRESHOLD * abs(share - 0.5)] * 2, THRESHOLD], atol=1e-9)
