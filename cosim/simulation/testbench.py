"""Testbench of a compiled network: frames of input currents, the frame clock, reset, bias pins, virtual ground.

Frames as in cosim.circuit.waveforms. Where a stage has ladders or toggles, its pulse lies within its decision: from
PULSE_BEGIN to PULSE_END after the close.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Assembly, Carried, Shown
from cosim.cells.builder import PEDESTAL_STRENGTH
from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Tran, Voltage
from cosim.circuit.elements import GROUND, Element, Source
from cosim.circuit.waveforms import Timing, Waveform, clock_waveforms, reset_waveform, square, staircase
from cosim.technology.types import Technology
from cosim.units.pulse import PULSE_BEGIN, PULSE_END


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


def testbench(
    assembly: Assembly,
    technology: Technology,
    levels: Levels,
    inputs: NDArray[np.float64],
    timing: Timing,
) -> Bench:
    """The bench of one inference; inputs (time, width) in units.

    Saves the decision nodes, the readout currents and every supply's current.
    """
    elements = control_elements(assembly, technology, levels, len(inputs), timing)
    elements += input_elements(assembly, inputs, levels, timing)
    circuit = replace(assembly.circuit, elements=(*assembly.circuit.elements, *elements))
    run = Tran(timing.t_max_step * timing.t_step, timing.start + len(inputs) * timing.t_step)
    return Bench(circuit, technology, run, saved_probes(assembly), preset=assembly.preset, from_rest=True)


def saved_probes(assembly: Assembly) -> tuple[Probe, ...]:
    """What every testbench saves."""
    pairs = (*assembly.clocks, *assembly.pulses.values())
    sources = (*assembly.outputs, "dd", "ground", *(pin for pair in pairs for pin in pair))
    return (*(probe for shown in assembly.decisions.values() for probe in probes_of(shown)), *map(Current, sources))


def probes_of(shown: Shown) -> tuple[Probe, ...]:
    """What must be saved to see a state."""
    return (DrainCurrent(shown.device),) if isinstance(shown, Carried) else tuple(map(Voltage, shown))


def pulse_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """pulse and pulseb: high at the beginning of the reset, low before it ends, then high once in each decision."""
    pulses = timing.moments(frames, close + PULSE_BEGIN, close + PULSE_END)
    return square(supply, 1.0, [0.4 * timing.start, *pulses], timing)
