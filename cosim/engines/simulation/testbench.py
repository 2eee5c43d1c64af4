"""Testbench of a compiled network: frames of input currents, the frame clock, reset, bias pins, virtual ground.

Frames as in cosim.circuit.waveforms. Where a stage has ladders or toggles, its pulse lies within its decision: from
PULSE_BEGIN to PULSE_END after the close.

In a metered testbench every block of the network has a supply source of its own, so that ngspice measures its current:

    vdd --+-- diodes, copies, cells, bias sources         vdd_inputs --- diodes of the inputs
          +-- vground source               becomes        vdd_rails ---- copies, ...
                                                          vdd_readout -- weights of the readout, vground source

Every terminal on `vdd`, bulks and gates included, moves to the net of its device's block. All of these nets are at
the same voltage, so currents stay what they were and their sum is what `vdd` delivered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Assembly, Shown, StateCurrent
from cosim.cells.clock import CK, RESET_STEPS, RUN, TAKE
from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Tran, Voltage
from cosim.circuit.elements import GROUND, Attribution, Capacitor, Element, Instance, Mos, Resistor, Source, block_of
from cosim.circuit.waveforms import (
    DECIDED,
    Timing,
    Waveform,
    begin_waveform,
    ck_waveform,
    clock_waveforms,
    decision_waveforms,
    reset_waveform,
    run_waveform,
    sample_waveforms,
    sampled_time,
    square,
    staircase,
    take_waveform,
)
from cosim.compiler.design import Condition, Design
from cosim.engines.chip import chip_circuit, standing
from cosim.network.ir.nodes import PEDESTAL_STRENGTH
from cosim.network.reference import encode_inputs
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.variation.draws import Chip

SUPPLY = "vdd"
LONGEST_HIGH = 0.8  # of a tick, that ck is high


def input_elements(design: Design, condition: Condition, inputs: NDArray[np.float64], timing: Timing) -> list[Element]:
    """Return the sources that draw inputs and pedestal from the input pins of an engine's testbench.

    inputs: (time, width), units. On a chip with converters the sources are the bits of the inputs' codes.
    """
    if design.assembly.around.codes:
        return _code_elements(design, condition, inputs, timing)
    unit, pedestal = condition.input_scale * design.i_unit, condition.input_scale * design.graph.i_pedestal
    return [
        Source(pin, "i", pin, GROUND, staircase(unit * inputs[:, j], pedestal, timing))
        for j, pin in enumerate(design.assembly.input_pins)
    ]


def control_elements(design: Design, condition: Condition, frames: int, timing: Timing) -> list[Element]:
    """Return all sources of an engine's testbench but those of the inputs.

    They are supply, reset, clocks, bias pins, unit current and the readout's virtual ground, with one sense source for
    each output.
    """
    assembly, supply = design.assembly, condition.technology.supply
    waves = (_clock if assembly.around.ticks else _phases)(design, supply, frames, timing)
    reset, *clocks = (Source(pin, "v", pin, GROUND, wave) for pin, wave in waves.items())
    drawn: list[Element] = []
    biases: list[Element] = []
    if not assembly.around.feeds:
        drawn = _drawn_elements(design, condition.bias_scale)
        pins = design.bias_pins(condition).items()
        biases = [Source(pin, "i", "vdd", pin, condition.bias_scale * amp) for pin, amp in pins]
    into = {pin: f"{pin}_y" if assembly.around.lines else "vground" for pin in assembly.outputs}
    return [
        Source("dd", "v", "vdd", GROUND, supply),
        Source("ground", "v", "vdd", "vground", design.calibration.v_node),
        reset,
        *drawn,
        *clocks,
        *biases,
        *(Source(pin, "v", end, pin, 0.0) for pin, end in into.items()),
    ]


def _phases(design: Design, supply: float, frames: int, timing: Timing) -> dict[str, Waveform]:
    """Return the waveforms that an engine's testbench drives into the pins of the reset and of every clock phase."""
    assembly, closes = design.assembly, timing.closes(len(design.assembly.clocks))
    pairs = {
        pair: clock_waveforms(supply, close, frames, timing)
        for pair, close in zip(assembly.clocks, closes, strict=True)
    }
    for stage, pair in assembly.decides.items():
        pairs[pair] = decision_waveforms(supply, closes[stage], frames, timing)
    for stage, pair in assembly.pulses.items():
        pairs[pair] = pulse_waveforms(supply, closes[stage], frames, timing)
    found = {"resetb": reset_waveform(supply, timing)}
    found |= {pin: wave for pair, waves in pairs.items() for pin, wave in zip(pair, waves, strict=True)}
    if not assembly.around.lines:
        return found
    sampled = sampled_time(len(assembly.clocks), timing)
    sample = sample_waveforms(supply, sampled, _counted(design, frames), timing)
    return found | dict(zip(assembly.around.drivers, (*sample, begin_waveform(supply, timing)), strict=True))


def _clock(design: Design, supply: float, frames: int, timing: Timing) -> dict[str, Waveform]:
    """Return the waveforms that drive a clock generator on the chip: its reset, its clock and, with a decision, `take`.

    The clock is high for as long as outputs are to be sampled.
    """
    around, high, take = design.assembly.around, 0.5, dict[str, Waveform]()
    if around.lines:
        counted = _counted(design, frames)
        each = sampled_time(len(design.assembly.clocks), timing) / (around.sampled * len(counted))
        high = min(LONGEST_HIGH, each * around.ticks / timing.t_step)
        take = {TAKE: take_waveform(supply, counted[0], timing)}
    ck = ck_waveform(supply, around.ticks, high, run_time(design.assembly, frames, timing), timing)
    return {RUN: run_waveform(supply, around.ticks, RESET_STEPS, timing), CK: ck} | take


def _counted(design: Design, frames: int) -> Sequence[int]:
    """Return the numbers of the frames whose outputs the decision averages."""
    return range(frames) if design.network.readout.pooling == "mean" else (frames - 1,)


def _drawn_elements(design: Design, bias: float) -> list[Element]:
    """Return the sources that draw unit current and pedestal in an engine's testbench; bias: factor of currents.

    The pedestal's rail is built PEDESTAL_STRENGTH times stronger, so its current is larger by that factor.
    """
    assembly = design.assembly
    elements: list[Element] = [Source("unit", "i", assembly.unit_pin, GROUND, bias * design.i_unit)]
    if assembly.pedestal_pin is not None:
        pedestal = bias * PEDESTAL_STRENGTH * design.graph.i_pedestal
        elements.append(Source("pedestal", "i", assembly.pedestal_pin, GROUND, pedestal))
    return elements


def _code_elements(design: Design, condition: Condition, inputs: NDArray[np.float64], timing: Timing) -> list[Element]:
    """Return a source for each bit of each input's code: a logic signal over the frames, 0 or the supply."""
    supply, levels = condition.technology.supply, design.network.encoding.levels
    assert levels is not None, "converters are for inputs with levels"
    codes = np.rint(inputs * levels).astype(np.int64)
    return [
        Source(bit, "v", bit, GROUND, staircase(supply * (codes[:, j] >> k & 1).astype(np.float64), 0.0, timing))
        for j, bits in enumerate(design.assembly.around.codes)
        for k, bit in enumerate(bits)
    ]


def run_time(assembly: Assembly, frames: int, timing: Timing) -> float:
    """Return the length of the transient of an inference in an engine, with the chip's own decision if any, s."""
    decided = DECIDED if assembly.around.lines else 0.0
    return timing.start + (frames + decided) * timing.t_step


def inference_bench(
    design: Design,
    x: NDArray[np.float64],
    timing: Timing = Timing(),
    condition: Condition | None = None,
    chip: Chip | None = None,
) -> Bench:
    """Return the testbench to simulate one inference on a raw sample x (time, features)."""
    return next(inference_benches(design, (x,), timing, condition, chip))


def inference_benches(
    design: Design,
    samples: Iterable[NDArray[np.float64]],
    timing: Timing = Timing(),
    condition: Condition | None = None,
    chip: Chip | None = None,
) -> Iterator[Bench]:
    """Yield the testbench in which an engine simulates a design, for each raw sample (time, features).

    Benches share their common parts. Each saves the probes of `saved_probes`.
    """
    there = standing(design, condition, chip)
    circuit = design.assembly.circuit if chip is None else chip_circuit(design, chip)
    held = () if chip is None else design.assembly.held.values()
    preset = tuple((one, there.technology.supply) for nets in held for one in nets)
    probes = saved_probes(design.assembly)
    controls: dict[int, list[Element]] = {}  # by the number of frames
    for x in samples:
        inputs = encode_sample(design, x)
        frames = len(inputs)
        if frames not in controls:
            controls[frames] = control_elements(design, there, frames, timing)
        driven = input_elements(design, there, inputs, timing)
        whole = replace(circuit, elements=(*circuit.elements, *controls[frames], *driven))
        run = Tran(timing.t_max_step * timing.t_step, run_time(design.assembly, frames, timing))
        start = design.assembly.around.start
        yield Bench(whole, there.technology, run, probes, preset=preset, start=start, from_rest=True)


def encode_sample(design: Design, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inputs (time, width), units, with which an engine simulates a raw sample (time, features)."""
    return encode_inputs(design.network.encoding, x[None]).units[0]


def saved_probes(assembly: Assembly) -> tuple[Probe, ...]:
    """Return the probes that every simulated testbench saves.

    They are states, class lines, and currents of outputs, supply, virtual ground and drivers.
    """
    sources = (*assembly.outputs, "dd", "ground", *assembly.driven)
    shown = (probe for shown in assembly.decisions.values() for probe in probes_of(shown))
    return (*shown, *map(Voltage, assembly.around.lines), *map(Current, sources))


def probes_of(shown: Shown) -> tuple[Probe, ...]:
    """Return the probes that show a memory's state in a testbench that an engine simulates."""
    return (
        (DrainCurrent(shown.device),) if isinstance(shown, StateCurrent) else tuple(map(Voltage, dict.fromkeys(shown)))
    )


def pulse_waveforms(supply: float, close: float, frames: int, timing: Timing) -> tuple[Waveform, Waveform]:
    """Return the waveforms of pulse and pulseb in an engine's testbench: high as the reset begins, low before it ends.

    They are then high once in each decision.
    """
    pulses = timing.moments(frames, close + PULSE_BEGIN, close + PULSE_END)
    return square(supply, 1.0, [0.4 * timing.start, *pulses], timing)


def block_supply(block: str) -> str:
    """Return the supply net of a block in a metered testbench that an engine simulates."""
    return f"{SUPPLY}_{block}"


def supply_source(block: str) -> str:
    """Return the name of the source of a block's supply in a metered testbench that an engine simulates."""
    return block_supply(block).removeprefix("v")


def meter(bench: Bench, assembly: Assembly) -> Bench:
    """Return a testbench in which a simulator meters power: flat, with one supply source for each block.

    It also saves the currents of these sources and of the reset.
    """

    def on_block(element: Element) -> Element:
        match element:
            case Source(part=Attribution(block=block)):
                return _moved(element, block_supply(block))
            case Source(name="dd"):
                return element
            case Source(name="ground"):
                return _moved(element, block_supply("readout"))
            case Source():
                return _moved(element, block_supply(assembly.around.pins.get(element.name, "bias")))
            case Mos() | Capacitor() | Resistor():
                return _moved(element, block_supply(block_of(element.part)))
            case Instance():
                raise AssertionError("a flat circuit has no instances")

    flat, supply = bench.circuit.flat(), bench.technology.supply
    sources = tuple(Source(supply_source(block), "v", block_supply(block), GROUND, supply) for block in assembly.blocks)
    circuit = replace(flat, elements=(*map(on_block, flat.elements), *sources))
    metered = (Current(assembly.reset), *(Current(source.name) for source in sources))
    return replace(bench, circuit=circuit, probes=(*bench.probes, *metered))


def _moved(element: Mos | Capacitor | Resistor | Source, net: str) -> Element:
    """Return an element of a testbench to simulate, every terminal on the supply moved to a block's `net`."""
    ends = ("drain", "gate", "source", "bulk") if isinstance(element, Mos) else ("a", "b")
    return replace(element, **{end: net for end in ends if getattr(element, end) == SUPPLY})
