"""Testbench of a compiled network: frames of input currents, the frame clock, reset, bias pins, virtual ground.

One frame of t_step seconds, for a stage s of recurrent layers:

    0       edge                         close[s]            close[s] + DECIDE          1
    |-inputs-|                              |                       |                   |
    |  move  |  track: the candidate settles|  decide: states change|  track again      |
                                                   the last stage is read at SAMPLE_AT

Where a stage has ladders or toggles, its pulse lies within its decision: from PULSE_BEGIN to PULSE_END after the close.
Stages decide one after the other: stage s + 1 settles on what stage s has decided. The reset in front of frame 0 takes
half a frame: inputs at the pedestal, every candidate clamped to 0, so every cell starts in state 0.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assemble import PEDESTAL_STRENGTH, Assembly
from cosim.circuit.elements import GROUND, Circuit, Element, Source
from cosim.engines.exercise import Bench
from cosim.engines.ngspice.options import DEFAULT_OPTIONS, SimulatorOptions
from cosim.engines.table import SIMULATORS
from cosim.engines.vacask.program import SimulatorName
from cosim.errors import InputError
from cosim.ir.ladder import PULSE_BEGIN, PULSE_END
from cosim.technology.types import Technology

SAMPLE_AT = 0.95
LAST_CLOSE = 0.7
DECIDE = 0.27
RESET_FRAMES = 0.5
T_STEP_MIN, T_STEP_MAX = 1e-6, 1.0  # s; frames take milliseconds, and 10 is more likely 10m


@dataclass(frozen=True)
class Timing:
    """Frame timing. t_step in second; edge and clock_edge as fractions of it."""

    t_step: float = 10e-3
    edge: float = 0.01
    clock_edge: float = 0.01
    t_max_step: float = 0.02  # largest solver step over t_step

    def __post_init__(self) -> None:
        """Raises InputError for a frame that no circuit of nanoamperes could follow, or nobody would wait for."""
        if not T_STEP_MIN <= self.t_step <= T_STEP_MAX:
            raise InputError(
                f"t_step must lie in {T_STEP_MIN:g} to {T_STEP_MAX:g} s, not {self.t_step:g} s; choose another with "
                "--t-step"
            )

    def closes(self, stages: int) -> tuple[float, ...]:
        """When each stage freezes its candidates and decides, as a fraction of the frame."""
        return tuple(LAST_CLOSE * (stage + 1) / stages for stage in range(stages))

    @property
    def start(self) -> float:
        """When frame 0 begins, in second."""
        return RESET_FRAMES * self.t_step

    @property
    def reset_end(self) -> float:
        """When the clocks first open, and a cell's state is what its reset has left, in second."""
        return self.start - 2 * self.clock_edge * self.t_step

    def sample_times(self, frames: int) -> NDArray[np.float64]:
        """When states and outputs are read, in second."""
        return np.asarray(self.start + (np.arange(frames) + SAMPLE_AT) * self.t_step, dtype=np.float64)


@dataclass(frozen=True)
class Levels:
    """What a testbench supplies: i_unit and i_pedestal in A, v_node (readout ground under V_DD) in V.

    bias_scale: factor of all currents that set the network up; input_scale: of the inputs and the pedestal that rides
    on them.
    The pedestal's own rail takes PEDESTAL_STRENGTH i_pedestal into as many times more unit devices.
    """

    i_unit: float
    i_pedestal: float
    v_node: float
    bias_scale: float = 1.0
    input_scale: float = 1.0


def input_elements(assembly: Assembly, inputs: NDArray[np.float64], levels: Levels, timing: Timing) -> list[Element]:
    """Current sources that draw inputs (time, width), in units, plus the pedestal from the input pins."""
    unit, pedestal = levels.input_scale * levels.i_unit, levels.input_scale * levels.i_pedestal
    return [
        Source(pin, "i", pin, GROUND, staircase(unit * inputs[:, j], pedestal, timing))
        for j, pin in enumerate(assembly.input_pins)
    ]


def control_elements(
    assembly: Assembly, technology: Technology, levels: Levels, frames: int, timing: Timing
) -> list[Element]:
    """Supply, reset, frame clocks, bias pins, unit current and the readout's virtual ground with one sense each."""
    supply = technology.supply
    elements: list[Element] = [
        Source("dd", "v", "vdd", GROUND, supply),
        Source("ground", "v", "vdd", "vground", levels.v_node),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(supply, timing)),
        Source("unit", "i", assembly.unit_pin, GROUND, levels.bias_scale * levels.i_unit),
    ]
    if assembly.pedestal_pin is not None:
        pedestal = levels.bias_scale * PEDESTAL_STRENGTH * levels.i_pedestal
        elements.append(Source("pedestal", "i", assembly.pedestal_pin, GROUND, pedestal))
    closes = timing.closes(len(assembly.clocks))
    for (clk, clkb), close in zip(assembly.clocks, closes, strict=True):
        high, low = clock_waveforms(supply, close, frames, timing)
        elements += [Source(clk, "v", clk, GROUND, high), Source(clkb, "v", clkb, GROUND, low)]
    for stage, (pulse, pulseb) in assembly.pulses.items():
        high, low = pulse_waveforms(supply, closes[stage], frames, timing)
        elements += [Source(pulse, "v", pulse, GROUND, high), Source(pulseb, "v", pulseb, GROUND, low)]
    elements += [
        Source(pin, "i", "vdd", pin, levels.bias_scale * current) for pin, current in assembly.bias_pins.items()
    ]
    elements += [Source(pin, "v", "vground", pin, 0.0) for pin in assembly.outputs]
    return elements


def format_testbench(
    assembly: Assembly,
    technology: Technology,
    levels: Levels,
    inputs: NDArray[np.float64],
    timing: Timing = Timing(),
    options: SimulatorOptions = DEFAULT_OPTIONS,
    probes: tuple[str, ...] = (),
    simulator: SimulatorName = "ngspice",
) -> str:
    """The self-contained deck of one inference; inputs (time, width) in units.

    Saves the decision nodes, the readout currents, every supply's current and the extra `probes`.
    """
    circuit = testbench(assembly, technology, levels, inputs, timing)
    saved = (*saved_vectors(assembly), *probes)
    bench = inference_bench(circuit, len(inputs), timing, saved, assembly.preset)
    return SIMULATORS[simulator].deck(circuit, bench, technology, options)


def testbench(
    assembly: Assembly, technology: Technology, levels: Levels, inputs: NDArray[np.float64], timing: Timing
) -> Circuit:
    """The network with everything that drives it; inputs (time, width) in units."""
    elements = control_elements(assembly, technology, levels, len(inputs), timing)
    elements += input_elements(assembly, inputs, levels, timing)
    return replace(assembly.circuit, elements=(*assembly.circuit.elements, *elements))


def inference_bench(
    circuit: Circuit, frames: int, timing: Timing, saved: tuple[str, ...], preset: tuple[str, ...] = ()
) -> Bench:
    """The run of a testbench for so many frames, which saves these vectors; `preset` as in `Assembly`."""
    end, step = timing.start + frames * timing.t_step, timing.t_max_step * timing.t_step
    return Bench(circuit.title, circuit.elements, saved, step, end, preset)


def saved_vectors(assembly: Assembly) -> tuple[str, ...]:
    """What every testbench saves, as ngspice writes it in `.save`."""
    pairs = (*assembly.clocks, *assembly.pulses.values())
    supplies = ("vdd", "vground", *(f"v{pin}" for pair in pairs for pin in pair))
    return (
        *(f"v({node})" for nodes in assembly.decisions.values() for node in nodes),
        *(f"i(v{pin})" for pin in assembly.outputs),
        *(f"i({supply})" for supply in supplies),
    )


Waveform = tuple[tuple[float, float], ...] | float


def staircase(currents: NDArray[np.float64], pedestal: float, timing: Timing) -> Waveform:
    """The pedestal during reset, then one level a frame, each reached after an edge; a number where it never moves."""
    points, previous = [(0.0, pedestal)], pedestal
    for k, level in enumerate(currents + pedestal):
        if level != previous:
            begin = timing.start + k * timing.t_step
            points += [(begin, previous), (begin + timing.edge * timing.t_step, float(level))]
            previous = float(level)
    return tuple(points) if len(points) > 1 else pedestal


def reset_waveform(supply: float, timing: Timing) -> tuple[tuple[float, float], ...]:
    begin = 0.7 * timing.start
    return ((0.0, 0.0), (begin, 0.0), (begin + timing.clock_edge * timing.t_step, supply))


def clock_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """clk and clkb: low during reset, then high except for DECIDE of a frame from `close` on."""
    return _square(supply, 0.0, timing.reset_end, close, close + DECIDE, frames, timing)


def pulse_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """pulse and pulseb: high at the beginning of the reset, low before it ends, then high once in each decision."""
    return _square(supply, 1.0, 0.4 * timing.start, close + PULSE_BEGIN, close + PULSE_END, frames, timing)


def _square(
    supply: float, value: float, first: float, begin: float, end: float, frames: int, timing: Timing
) -> tuple[Waveform, Waveform]:
    """A logic signal and its complement: `value` until `first`, then the other, and `value` from begin to end."""
    edge = timing.clock_edge * timing.t_step
    moments = [first]
    for k in range(frames):
        start = timing.start + k * timing.t_step
        moments += [start + begin * timing.t_step, start + end * timing.t_step]
    points = [(0.0, value)]
    for moment in moments:
        points += [(moment, value), (moment + edge, 1.0 - value)]
        value = 1.0 - value
    high = tuple((time, supply * level) for time, level in points)
    low = tuple((time, supply * (1.0 - level)) for time, level in points)
    return high, low
