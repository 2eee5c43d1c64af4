"""Testbench of a compiled network: frames of input currents, the frame clock, reset, bias pins, virtual ground.

One frame of t_step seconds, as fractions:

    0         edge                open[s]                        SAMPLE  CLOSE    1
    |--inputs--|                     |                              |      |       |
    |  move    | feed-forward settles| stage s looks and may flip   | read | hold  |

Stage s + 1 opens after stage s has had its time. The reset in front of frame 0 takes half a frame: inputs at 0, every
candidate clamped to 0, so every cell starts in state 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assemble import Assembly
from cosim.circuit.deck import format_circuit, format_elements, format_number
from cosim.circuit.elements import GROUND, Circuit, Element, Source
from cosim.simulation.options import DEFAULT_OPTIONS, SimulatorOptions, format_deck
from cosim.technology.types import Technology

SAMPLE_AT = 0.95
CLOSE_AT = 0.96
FIRST_OPEN = 0.35
RESET_FRAMES = 0.5


@dataclass(frozen=True)
class Timing:
    """Frame timing. t_step in second; edge and clock_edge as fractions of it.

    sampled False keeps every sample switch closed for good: the circuit without its protection against frame-edge
    glitches, for measuring what the switch is worth.
    """

    t_step: float = 10e-3
    edge: float = 0.01
    clock_edge: float = 0.01
    sampled: bool = True
    t_max_step: float = 0.02  # largest solver step over t_step

    def opens(self, stages: int) -> tuple[float, ...]:
        """When each stage's switch opens, as a fraction of the frame."""
        return tuple(FIRST_OPEN + (CLOSE_AT - FIRST_OPEN) * stage / stages for stage in range(stages))

    @property
    def start(self) -> float:
        """When frame 0 begins, in second."""
        return RESET_FRAMES * self.t_step

    def sample_times(self, frames: int) -> NDArray[np.float64]:
        """When states and outputs are read, in second."""
        return self.start + (np.arange(frames) + SAMPLE_AT) * self.t_step


def input_elements(assembly: Assembly, inputs: NDArray[np.float64], i_unit: float, timing: Timing) -> list[Element]:
    """Current sources that draw inputs (time, width), in units, from the input pins."""
    return [
        Source(pin, "i", pin, GROUND, _staircase(i_unit * inputs[:, j], timing))
        for j, pin in enumerate(assembly.input_pins)
    ]


def control_elements(
    assembly: Assembly, technology: Technology, v_node: float, i_unit: float, frames: int, timing: Timing
) -> list[Element]:
    """Supply, reset, frame clocks, bias pins, unit current and the readout's virtual ground with one sense each."""
    supply = technology.supply
    elements: list[Element] = [
        Source("dd", "v", "vdd", GROUND, supply),
        Source("ground", "v", "vdd", "vground", v_node),
        Source("resetb", "v", "resetb", GROUND, _reset(supply, timing)),
        Source("unit", "i", assembly.unit_pin, GROUND, i_unit),
    ]
    opens = timing.opens(len(assembly.clocks))
    for (clk, clkb), opening in zip(assembly.clocks, opens, strict=True):
        high, low = _clock(supply, opening, frames, timing)
        elements += [Source(clk, "v", clk, GROUND, high), Source(clkb, "v", clkb, GROUND, low)]
    elements += [Source(pin, "i", "vdd", pin, current) for pin, current in assembly.bias_pins.items()]
    elements += [Source(pin, "v", "vground", pin, 0.0) for pin in assembly.outputs]
    return elements


def format_testbench(
    assembly: Assembly,
    technology: Technology,
    v_node: float,
    i_unit: float,
    inputs: NDArray[np.float64],
    timing: Timing = Timing(),
    options: SimulatorOptions = DEFAULT_OPTIONS,
    probes: tuple[str, ...] = (),
) -> str:
    """The self-contained deck of one inference; inputs (time, width) in units.

    Saves the decision nodes, the readout currents, every supply's current and the extra `probes`.
    """
    frames = len(inputs)
    elements = control_elements(assembly, technology, v_node, i_unit, frames, timing)
    elements += input_elements(assembly, inputs, i_unit, timing)
    netlist = format_circuit(assembly.circuit, technology)
    netlist += "\n".join(["", "* testbench", *format_elements(elements, technology)])
    end = timing.start + frames * timing.t_step
    step = timing.t_max_step * timing.t_step
    analysis = f".tran {format_number(step)} {format_number(end)} 0e+00 {format_number(step)}"
    return format_deck(netlist, technology, options, analysis, " ".join(saved_vectors(assembly) + probes))


def saved_vectors(assembly: Assembly) -> tuple[str, ...]:
    """What every testbench saves, as ngspice writes it in `.save`."""
    supplies = ("vdd", "vground", *(f"v{pin}" for pair in assembly.clocks for pin in pair))
    return (
        *(f"v({node})" for node in assembly.decisions.values()),
        *(f"i(v{pin})" for pin in assembly.outputs),
        *(f"i({supply})" for supply in supplies),
    )


def _staircase(levels: NDArray[np.float64], timing: Timing) -> tuple[tuple[float, float], ...]:
    """0 during reset, then one level a frame, each reached after an edge."""
    points, previous = [(0.0, 0.0)], 0.0
    for k, level in enumerate(levels):
        if level != previous:
            begin = timing.start + k * timing.t_step
            points += [(begin, previous), (begin + timing.edge * timing.t_step, float(level))]
            previous = float(level)
    return tuple(points)


def _reset(supply: float, timing: Timing) -> tuple[tuple[float, float], ...]:
    begin = 0.85 * timing.start
    return ((0.0, 0.0), (begin, 0.0), (begin + timing.clock_edge * timing.t_step, supply))


def _clock(
    supply: float, opening: float, frames: int, timing: Timing
) -> tuple[tuple[tuple[float, float], ...] | float, tuple[tuple[float, float], ...] | float]:
    """clk and clkb: on during reset, off before it ends, then on from `opening` to CLOSE_AT in every frame."""
    if not timing.sampled:
        return supply, 0.0
    edge = timing.clock_edge * timing.t_step
    moments = [0.6 * timing.start]
    for k in range(frames):
        begin = timing.start + k * timing.t_step
        moments += [begin + opening * timing.t_step, begin + CLOSE_AT * timing.t_step]
    value, points = 1.0, [(0.0, 1.0)]
    for moment in moments:
        points += [(moment, value), (moment + edge, 1.0 - value)]
        value = 1.0 - value
    high = tuple((time, supply * level) for time, level in points)
    low = tuple((time, supply * (1.0 - level)) for time, level in points)
    return high, low
