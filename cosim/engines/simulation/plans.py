"""Plans of what to read from an inference, plainly or with a supply for every block."""

from dataclasses import replace

import numpy as np

from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.simulation.metering import frame_windows, meters_of, pushed_by, settled_windows, supply_source
from cosim.engines.simulation.read import Meter, ReadPlan
from cosim.engines.simulation.testbench import run_time


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
    """Return the meters of the power that outputs push, each with its voltage.

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
