"""Bench of a register of one level: a value in every frame, all of which are written."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.benches import STEPS_A_FRAME, bias_lines, supply_of
from cosim.cells.bias import bias_diode
from cosim.cells.clocked import RESET_INVERTER, reset_inverter
from cosim.cells.quantiser import sampler
from cosim.cells.rectifier import CANDIDATE, RELU, candidate_diode, relu_diode
from cosim.cells.register import REGISTER, register, register_blocks
from cosim.circuit.bench import PRECISE, Bench, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.circuit.waveforms import LAST_CLOSE, Timing, clock_waveforms, reset_waveform, square, staircase
from cosim.technology.types import Technology

LEVEL_STATE = "xregister.xlevel1.q"
_CANDIDATE, _UPPER, _LOWER, _OTHER = 3e-9, 1e-9, 0.5e-9, 1e-9  # A; the other value is never switched through
Array = NDArray[np.float64]


@dataclass(frozen=True)
class LevelDrive:
    """Inputs of the bench of a register cell's level.

    The current of a turn, what keeps a level and what ends a write, A, and a value for every frame, A; the pulse from
    and to fractions of a frame.
    """

    i_turn: float
    i_keep: float
    i_release: float
    values: Array
    pulse: tuple[float, float]


def level_bench(technology: Technology, units: int, drive: LevelDrive) -> Bench:
    """Return a bench that tests a register cell of one level, which writes `values` frame by frame.

    Its candidate is always above the window. Saves the state, LEVEL_STATE.
    """
    timing, frames = Timing(), len(drive.values)
    high, low = clock_waveforms(technology.supply, LAST_CLOSE, frames, timing)
    _, pulseb = square(technology.supply, 1.0, [0.4 * timing.start, *timing.moments(frames, *drive.pulse)], timing)
    pins = {"upper": _UPPER, "lower": _LOWER, "keep": drive.i_keep, "release": drive.i_release}
    pins |= {"gain": _OTHER, "turn": drive.i_turn}
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, _CANDIDATE),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Source("pos", "i", "pos", GROUND, staircase(drive.values, 0.0, timing)),
        Instance("pos", ("pos", "vdd"), RELU),
        Source("neg", "i", "neg", GROUND, _OTHER),
        Instance("neg", ("neg", "vdd"), RELU),
        *bias_lines(pins),
        Source("clk", "v", "clk", GROUND, high),
        Source("clkb", "v", "clkb", GROUND, low),
        Source("pulseb", "v", "pulseb", GROUND, pulseb),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(technology.supply, timing)),
        Instance("reset", ("resetb", "reset", "vdd"), RESET_INVERTER),
        Instance(
            "register",
            ("cand", "pos", "neg", *pins, "out", "clk", "clkb", "pulseb", "resetb", "reset", "vdd"),
            f"{REGISTER}_1_0",
        ),
    )
    blocks = (
        *(block(technology) for block in (candidate_diode, bias_diode, reset_inverter, sampler)),
        relu_diode(technology, units),
        *register_blocks(technology, units),
        register(technology, units, 1, 0),
    )
    run = Tran(timing.t_step / STEPS_A_FRAME, timing.start + frames * timing.t_step)
    return Bench(Circuit("register bench", blocks, elements), technology, run, (Voltage(LEVEL_STATE),), PRECISE)
