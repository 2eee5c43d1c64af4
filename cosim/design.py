"""A compiled network: network -> graph -> currents -> sizes -> circuit -> deck -> inferences, each stage a function.

Each stage is a function from one typed thing to the next; the folders of the package stand in the same order.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Assembly
from cosim.cells.blocks import BLOCKS
from cosim.cells.builder import PEDESTAL_STRENGTH
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, Probe
from cosim.circuit.waveforms import LAST_CLOSE, Timing
from cosim.compiler.assemble import assemble
from cosim.compiler.centre import centre
from cosim.compiler.lower import HEADROOM, lower
from cosim.compiler.mapping import MappingRow, map_parameters
from cosim.compiler.scale import scale
from cosim.compiler.size import PEDESTAL_UNITS, check_weights, size
from cosim.engines.behavioral.evaluate import BehavioralTrace, Deviations, evaluate
from cosim.engines.behavioral.supply import Feed, estimate_power
from cosim.errors import MappingError
from cosim.ir.graph import Lowered, Sized
from cosim.ir.nodes import PEDESTAL
from cosim.network.reference import encode_inputs
from cosim.network.types import Network
from cosim.simulation.inference import DEFAULT_TIMEOUT, Meter, Outcome, Progress, ReadPlan, run_inferences
from cosim.simulation.metering import frame_windows, meter, meters_of, pushed_by, settled_windows, supply_source
from cosim.simulation.testbench import Levels, testbench
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import Calibration
from cosim.technology.scale import I_UNIT, check_units, units_for
from cosim.technology.types import Technology
from cosim.units.epsilon import Circuit
from cosim.units.ladder.points import TAU_FRAMES
from cosim.units.pulse import PULSE_END
from cosim.units.table import UNITS, unit_of


@dataclass(frozen=True)
class Design:
    """A compiled network with everything that made it.

    technology: the condition that it stands in; it is compiled for the nominal one. bias_scale, input_scale: what bias
    currents and input currents are there, over what they were compiled for. deviations: of the chip that it is; a
    varied chip's circuit carries them, too (cosim.variation.chip).
    """

    network: Network
    technology: Technology
    calibration: Calibration
    graph: Sized
    assembly: Assembly
    bias_scale: float = 1.0
    input_scale: float = 1.0
    deviations: Deviations = Deviations()

    @property
    def i_unit(self) -> float:
        """Ampere per software 1.0."""
        return self.graph.i_unit

    @property
    def levels(self) -> Levels:
        """What a testbench must supply."""
        return Levels(self.i_unit, self.graph.i_pedestal, self.calibration.v_node, self.bias_scale, self.input_scale)

    def mapping(self) -> list[MappingRow]:
        """Every learned parameter and its circuit element."""
        return map_parameters(self.network, self.graph, self.assembly.weights, self.assembly.cell_bias)


def compile_network(
    network: Network,
    technology: Technology,
    calibration: Calibration,
    i_unit: float = I_UNIT,
    saturate: bool = False,
    origin: str = "network",
    pedestal: float = PEDESTAL_UNITS,
    cell: Circuit = "auto",
    headroom: int = HEADROOM,
    t_step: float = Timing().t_step,
    tau: float | None = None,
) -> Design:
    """From trained weights to a circuit for frames of `t_step` second; `tau` of the ladders' DPIs, default by t_step.

    `cell` and `headroom` as in `lower`. Raises MappingError where the network cannot be put on the
    technology, or its grid of weights not on the calibration's unit devices.
    """
    check_units(network.weight_grid, calibration.units, origin)
    scaled = scale(centre(lower(network, origin, cell, headroom)), i_unit)
    kinds = [unit for unit in UNITS if any(isinstance(node, unit.node) for node in scaled.memories)]
    if tau is not None and not any(unit.slow for unit in kinds):
        raise MappingError(f"{origin}: tau is that of ladders, and no layer has epsilon 1; leave --tau out")
    tau = TAU_FRAMES * t_step if tau is None else tau
    for unit in kinds:
        unit.check(i_unit, t_step, tau, calibration, origin)
    _check_stages(network, scaled, origin)
    sized = size(scaled, calibration, saturate=saturate, origin=origin, pedestal=pedestal)
    return Design(network, technology, calibration, sized, assemble(sized, technology, calibration, tau))


def check_mapping(
    network: Network,
    origin: str = "network",
    cell: Circuit = "auto",
    headroom: int = HEADROOM,
    units: int | None = None,
    saturate: bool = False,
) -> None:
    """Raises the MappingError of `compile_network` as far as it needs no technology: units, rungs, stages, weights.

    `units` per weight 1.0, default by the network's grid.
    """
    units = units or units_for(network.weight_grid)
    check_units(network.weight_grid, units, origin)
    graph = lower(network, origin, cell, headroom)
    check_weights(graph, units, origin, saturate=saturate)
    _check_stages(network, graph, origin)


def _check_stages(network: Network, graph: Lowered, origin: str) -> None:
    """Refuse a unit whose pulse is not over when the stage behind it decides."""
    stages = 1 + max(node.stage for node in graph.memories)
    early = next((node for node in graph.memories if unit_of(node).pulsed and node.stage < stages - 1), None)
    if early is not None and LAST_CLOSE / stages < PULSE_END:
        epsilon = next(getattr(layer, "epsilon", 0.0) for layer in network.layers if layer.name == early.layer)
        raise MappingError(
            f"{origin}: {early.layer} has epsilon {epsilon:g} and stands before the last of {stages} recurrent layers "
            f"in a row: its pulse ends {PULSE_END:g} of a frame after its decision, but the next layer decides "
            f"{LAST_CLOSE / stages:.2g} after it; use at most {int(LAST_CLOSE / PULSE_END)} layers in a row, or such "
            "units in the last one only"
        )


def inference_bench(
    design: Design, x: NDArray[np.float64], timing: Timing = Timing(), probes: tuple[Probe, ...] = ()
) -> Bench:
    """The bench of one inference on a raw sample x (time, features), which saves these `probes`, too."""
    bench = testbench(design.assembly, design.technology, design.levels, encode_sample(design, x), timing)
    return replace(bench, probes=(*bench.probes, *probes))


def read_plan(design: Design, frames: int, timing: Timing = Timing()) -> ReadPlan:
    """What an inference of so many frames is sampled for."""
    assembly, supply = design.assembly, design.technology.supply
    return ReadPlan(
        decisions=tuple(assembly.decisions.values()),
        outputs=assembly.outputs,
        supplies=((Meter("dd"), supply), *_readout_stage(design)),
        threshold=STATE_LEVEL * supply,
        times=timing.sample_times(frames),
        window=(timing.start, timing.start + frames * timing.t_step),
    )


def _readout_stage(design: Design) -> list[tuple[Meter, float]]:
    """What outputs push: the testbench's virtual ground hands it back to V_DD, a real stage sinks it to ground."""
    return [(meter, design.technology.supply) for meter in pushed_by(design.assembly).values()]


def metered_bench(design: Design, x: NDArray[np.float64], timing: Timing = Timing()) -> Bench:
    """The bench of one inference in which every block has its own supply, on a raw sample x (time, features)."""
    return meter(inference_bench(design, x, timing))


def encode_sample(design: Design, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Input currents in units, (time, width), of a raw sample x (time, features)."""
    return encode_inputs(design.network.encoding, x[None]).units[0]


def metered_plan(design: Design, frames: int, timing: Timing = Timing()) -> ReadPlan:
    """What a metered inference is read for: `meters_of` in every frame, then in every settled window."""
    supply = design.technology.supply
    settled, _ = settled_windows(timing, design.assembly, frames)
    return replace(
        read_plan(design, frames, timing),
        supplies=(
            *((Meter(supply_source(block)), supply) for block in BLOCKS),
            *_readout_stage(design),
        ),
        meters=tuple(meters_of(design.assembly).values()),
        metered=np.concatenate([frame_windows(timing, frames), settled]),
    )


def run_behavioral(design: Design, x: NDArray[np.float64], ideal: bool = False) -> BehavioralTrace:
    """The design's equations on raw inputs x (n, time, features); `ideal` leaves rounding as the only error.

    All currents of the trace are over `design.bias_scale`.
    """
    scale = 1.0 if ideal else design.input_scale / design.bias_scale
    inputs = encode_inputs(design.network.encoding, x).scaled(scale)
    return evaluate(design.graph, design.calibration, inputs, design.deviations, ideal=ideal)


def behavioral_power(
    design: Design, trace: BehavioralTrace, timing: Timing = Timing()
) -> dict[str, NDArray[np.float64]]:
    """Mean power per frame and block, watt, (n, time)."""
    assembly = design.assembly
    closes = timing.closes(len(assembly.clocks))
    bias, strength = sum(assembly.bias_pins.values()), {PEDESTAL: PEDESTAL_STRENGTH}
    feed = Feed(design.technology.supply, bias, closes, assembly.rails, strength)
    blocks = estimate_power(design.graph, design.calibration, trace, feed, design.deviations)
    return {name: design.bias_scale * power for name, power in blocks.items()}


def simulate_samples(
    design: Design,
    test_set: TestSet,
    timing: Timing = Timing(),
    jobs: int = 1,
    store: Path | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = lambda done, total: None,
    simulator: str = "ngspice",
) -> list[Outcome]:
    """Every sample through a simulator, at transistor level, in the order of the test set; see `run_inferences`."""
    benches = inference_benches(design, test_set, timing)
    plans = [read_plan(design, int(length), timing) for length in test_set.lengths]
    return run_inferences(benches, plans, jobs, store, timeout, progress, simulator)


def meter_samples(
    design: Design,
    test_set: TestSet,
    timing: Timing = Timing(),
    jobs: int = 1,
    store: Path | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress = lambda done, total: None,
) -> list[Outcome]:
    """As `simulate_samples`, with a supply for each block; outcomes hold what `metered_plan` asks for."""
    benches = [meter(bench) for bench in inference_benches(design, test_set, timing)]
    plans = [metered_plan(design, int(length), timing) for length in test_set.lengths]
    return run_inferences(benches, plans, jobs, store, timeout, progress)


def inference_benches(design: Design, test_set: TestSet, timing: Timing = Timing()) -> list[Bench]:
    """The bench of every sample, each as long as its valid steps."""
    samples = zip(test_set.x, test_set.lengths, strict=True)
    return [inference_bench(design, x[:length], timing) for x, length in samples]
