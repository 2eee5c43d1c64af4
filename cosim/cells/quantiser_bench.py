"""Bench of the quantiser's comparator: one candidate a frame."""

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.quantiser import COMPARATOR, DRIVER, SAMPLER, comparator, driver, sampler
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.circuit.bench import PRECISE, Bench, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.circuit.waveforms import Timing, clock_waveforms, reset_waveform, staircase
from cosim.technology.types import Technology

STEPS_A_FRAME = 100


def comparator_bench(
    technology: Technology, i_thresh: float, candidates: NDArray[np.float64], base: float, delta: float
) -> Bench:
    """The upper comparator of a quantiser with its driver, always in a pulse, one candidate a frame.

    Saves the voltages of `in`, the driver's gate line n, and `half`, which carries what is half way from retain to set.
    """
    supply, frames, timing = technology.supply, len(candidates), Timing()
    high, low = clock_waveforms(supply, timing.closes(2)[0], frames, timing)
    pins = {"thresh": i_thresh, "base": base, "delta": delta, "half": base + 1.5 * delta}
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, supply),
        Source("in", "i", "cand", GROUND, staircase(candidates, 0.0, timing)),
        Source("clk", "v", "clk", GROUND, high),
        Source("clkb", "v", "clkb", GROUND, low),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(supply, timing)),
        *(Source(pin, "i", "vdd", pin, current) for pin, current in pins.items()),
        *(Instance(pin, (pin,), BIAS_DIODE) for pin in pins),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "thresh", "up", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("lower", ("hold", "thresh", "down", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("driver", ("up", "vdd", "base", "delta", "in", "vdd", GROUND, "vdd"), DRIVER),
    )
    blocks = (
        candidate_diode(technology),
        bias_diode(technology),
        sampler(technology),
        comparator(technology),
        driver(technology),
    )
    circuit = Circuit("comparator bench", blocks, elements)
    run = Tran(timing.t_step / STEPS_A_FRAME, timing.start + frames * timing.t_step)
    return Bench(circuit, technology, run, (Voltage("in"), Voltage("half")), PRECISE)
