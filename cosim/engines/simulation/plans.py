"""Plans of what to read from an inference, plainly or with a supply for every block.

A metered testbench: every block of the network has a supply source of its own, so that ngspice measures its current.

    vdd --+-- diodes, copies, cells, bias sources         vdd_inputs --- diodes of the inputs
          +-- vground source               becomes        vdd_rails ---- copies, ...
                                                          vdd_readout -- weights of the readout, vground source

Every terminal on `vdd`, bulks and gates included, moves to the net of its device's block. All of these nets are at
the same voltage, so currents stay what they were and their sum is what `vdd` delivered.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Assembly
from cosim.cells.blocks import BLOCKS
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, Current
from cosim.circuit.elements import GROUND, Capacitor, Element, Instance, Mos, Source, block_of
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.simulation.read import Meter, ReadPlan
from cosim.engines.simulation.testbench import run_time
from cosim.units.sizing import PULSE_BEGIN, PULSE_END

SUPPLY = "vdd"
SETTLED = 0.01  # of a frame: how long before an edge the circuit is taken to stand still
Array = NDArray[np.float64]


def block_supply(block: str) -> str:
    """Return the supply net of a block in a metered testbench that an engine simulates."""
    return f"{SUPPLY}_{block}"


def supply_source(block: str) -> str:
    """Return the name of the source of a block's supply in a metered testbench that an engine simulates."""
    return block_supply(block).removeprefix("v")


def meter(bench: Bench, assembly: Assembly | None = None) -> Bench:
    """Return a testbench in which a simulator meters power: flat, one supply source for each block of the assembly.

    The default is BLOCKS. The bench saves the currents of these sources and of the reset as well.
    """
    blocks, pins = (BLOCKS, {}) if assembly is None else (assembly.blocks, assembly.around.pins)

    def on_block(element: Element) -> Element:
        match element:
            case Source(name="dd"):
                return element
            case Source(name="ground"):
                return _moved(element, block_supply("readout"))
            case Source():
                return _moved(element, block_supply(pins.get(element.name, "bias")))
            case Mos() | Capacitor():
                return _moved(element, block_supply(block_of(element.part)))
            case Instance():
                raise AssertionError("a flat circuit has no instances")

    flat, supply = bench.circuit.flat(), bench.technology.supply
    sources = tuple(Source(supply_source(block), "v", block_supply(block), GROUND, supply) for block in blocks)
    circuit = replace(flat, elements=(*map(on_block, flat.elements), *sources))
    metered = (Current("resetb" if assembly is None else assembly.reset), *(Current(source.name) for source in sources))
    return replace(bench, circuit=circuit, probes=(*bench.probes, *metered))


def _moved(element: Mos | Capacitor | Source, net: str) -> Element:
    """Return an element of a testbench to simulate, every terminal on the supply moved to a block's `net`."""
    ends = ("drain", "gate", "source", "bulk") if isinstance(element, Mos) else ("a", "b")
    return replace(element, **{end: net for end in ends if getattr(element, end) == SUPPLY})


def meters_of(assembly: Assembly) -> dict[str, Meter]:
    """Return a simulated run's meters, by name: each block, `vground`, every output, clock and pulse, and `resetb`.

    The virtual ground's source delivers the current that flows back through it: minus what is drawn through it. Outputs
    as `pushed_by` has them.
    """
    return {
        **{block: Meter(supply_source(block)) for block in assembly.blocks},
        "vground": Meter("ground"),
        **pushed_by(assembly),
        **{pin: Meter(pin, one_way=True) for pin in (*assembly.driven, assembly.reset)},
    }


def pushed_by(assembly: Assembly) -> dict[str, Meter]:
    """Return output pin -> meter that reads from a simulation the current that it pushes into the virtual ground.

    There is none where the chip's own decision sinks it to ground.
    """
    if assembly.around.lines:
        return {}
    return {pin: Meter(pin, one_way=True) for pin in assembly.outputs}


def frame_windows(timing: Timing, frames: int) -> Array:
    """Return begin and end of each simulated frame, (frames, 2), second."""
    frame = np.arange(frames, dtype=np.float64)[:, None]
    return np.asarray(timing.start + timing.t_step * (frame + np.array([0.0, 1.0])), dtype=np.float64)


def settled_windows(timing: Timing, assembly: Assembly, frames: int) -> tuple[Array, Array]:
    """Return the windows in which a simulated circuit is still, (windows, 2) in second, and their frame weights.

    The weights, (frames, windows), have rows that sum to 1: power in the windows times this is the static power of each
    frame. The circuit changes at the frame's edge, when a stage closes, and when a pulse begins or ends; between two
    such edges, counted from their middles, it is as in the SETTLED of a frame before the next one. The last of a
    frame are taken before its clock goes high again.
    """
    closes = timing.closes(len(assembly.clocks))
    pulses = (closes[stage] + edge for stage in assembly.pulses for edge in (PULSE_BEGIN, PULSE_END))
    inner = sorted({*closes, *pulses})
    looks = np.array([*inner, closes[-1] + DECIDE])  # where each span of a frame ends, and is looked at
    begins = np.array([timing.edge / 2, *(at + timing.clock_edge / 2 for at in inner)])
    spans = len(looks)
    ends = np.concatenate([[0.0], (np.arange(frames)[:, None] + looks).ravel()])
    windows = timing.start + timing.t_step * np.stack([ends - SETTLED, ends], axis=1)
    weights = np.zeros((frames, 1 + frames * spans))
    for k in range(frames):
        weights[k, k * spans : (k + 1) * spans + 1] = np.diff([0.0, *begins, 1.0])
    return windows, weights


def read_plan(design: Design, frames: int, timing: Timing = Timing(), condition: Condition | None = None) -> ReadPlan:
    """Return the plan of what to sample in a simulated inference of so many frames.

    condition: that of the bench, a chip's supply in it; None: nominal.
    """
    assembly, supply = design.assembly, (condition or design.nominal).technology.supply
    return ReadPlan(
        decisions=tuple(assembly.decisions.values()),
        outputs=assembly.outputs,
        supplies=((Meter("dd"), supply), *_readout_stage(design, supply)),
        threshold=STATE_LEVEL * supply,
        times=timing.sample_times(frames),
        window=(timing.start, timing.start + frames * timing.t_step),
        lines=assembly.around.lines,
        decided=run_time(assembly, frames, timing),
    )


def _readout_stage(design: Design, supply: float) -> list[tuple[Meter, float]]:
    """Return the meters by which a simulator's waveforms give the power that outputs push, each with its voltage.

    The testbench's virtual ground hands that current back to V_DD; a real stage sinks it to ground.
    """
    return [(meter, supply) for meter in pushed_by(design.assembly).values()]


def metered_plan(
    design: Design, frames: int, timing: Timing = Timing(), condition: Condition | None = None
) -> ReadPlan:
    """Return the plan of a simulated, metered inference: `meters_of` in every frame, then in every settled window.

    condition: as for `read_plan`.
    """
    supply = (condition or design.nominal).technology.supply
    settled, _ = settled_windows(timing, design.assembly, frames)
    return replace(
        read_plan(design, frames, timing, condition),
        supplies=(
            *((Meter(supply_source(block)), supply) for block in design.assembly.blocks),
            *_readout_stage(design, supply),
        ),
        meters=tuple(meters_of(design.assembly).values()),
        metered=np.concatenate([frame_windows(timing, frames), settled]),
    )
