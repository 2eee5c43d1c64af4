"""Supply power by block and by rail: what a simulator measures beside what the behavioral equations say.

    P          mean over the frames of V_DD times what a block draws from its own supply
    static     P where the circuit is settled, held over the span between two edges (`settled_windows`)
    dynamic    (P - static) t_step, an energy per frame: what currents that lag behind an edge take less or more
    energy     P t_step per frame, P t_step frames per inference

A charged gate line costs no C V^2 here: the signal that charges it is drawn in any case, and only its copies lag, by
the charge C dV each. So dynamic energy has either sign and belongs to the edge, not to the frame's length.
Drivers of clocks, pulses and reset deliver from V_DD and take back to ground: V_DD times what flows out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import outside_of
from cosim.compiler.design import Design, block_areas
from cosim.engines.behavioral.model import behavioral_power, run_samples
from cosim.engines.engine import Inference, Outcome, Run
from cosim.engines.simulation.metering import meters_of, pushed_by, settled_windows
from cosim.engines.table import BEHAVIORAL
from cosim.results.intervals import Interval, mean_interval
from cosim.tasks.clipping import Clipping, find_clipping
from cosim.tasks.testset import TestSet
from cosim.verbs.compare.agreement import count_elsewhere

TOTAL = "total"
DRIVERS = ("clocks", "reset", "pulses")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class PowerStudy:
    """Mean power of n samples in watt, (n,) by block or by rail; frames (n,) of each sample.

    total, static and rails come from the simulator; without one they are None.
    vdd: what transistors, capacitors and bias currents take from V_DD; vground: what outputs that pull take from it
    through the readout's virtual ground, which sinks to ground what others push. clocks, reset, pulses (of ladders and
    toggles): their drivers.
    """

    frames: NDArray[np.int64]
    behavioral: dict[str, Array]
    total: dict[str, Array] | None = None
    static: dict[str, Array] | None = None
    rails: dict[str, Array] | None = None
    failed: int = 0
    clipped: Clipping | None = None
    elsewhere: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class PowerRow:
    """One block, or all: power and energies by engine, None for what did not run, and drawn areas, um2.

    difference: (behavioral - simulator) / mean of the simulator; static_w and dynamic_frame_j come from the simulator.
    """

    power_w: dict[str, Interval | None]
    difference: Interval | None
    static_w: Interval | None
    dynamic_frame_j: Interval | None
    energy_frame_j: dict[str, Interval | None]
    energy_inference_j: dict[str, Interval | None]
    gate_area_um2: float
    capacitor_area_um2: float


@dataclass(frozen=True)
class RailRow:
    """One rail, by the simulator."""

    power_w: Interval
    energy_frame_j: Interval


@dataclass(frozen=True)
class PowerSummary:
    """The content of power.json; docs/power.md says what each field is. frames: mean of the samples."""

    task: str
    technology: str
    corner: str
    celsius: float
    supply_v: float
    i_unit_a: float
    t_step_s: float
    transistors: int
    samples: int
    failed: int
    frames: float
    power_outside: tuple[str, ...]
    blocks: dict[str, PowerRow]
    total: PowerRow
    rails: dict[str, RailRow]
    clipped: Clipping | None
    elsewhere: dict[str, int]
    noise: int | None = None  # its seed

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the engines that ran."""
        return tuple(engine for engine, power in self.total.power_w.items() if power is not None)

    @property
    def rows(self) -> dict[str, PowerRow]:
        """Rows of every block, and TOTAL for all of them."""
        return {**self.blocks, TOTAL: self.total}


def study_power(design: Design, test_set: TestSet, outcomes: Sequence[Outcome] | None, run: Run = Run()) -> PowerStudy:
    """Return the power of the samples from the outcomes of `meter_samples`; only those that succeeded count, on both
    sides.

    Without outcomes, or if all failed, it is the behavioral side alone.
    """
    good = _simulated(outcomes)
    failed = len(outcomes or ()) - len(good)
    chosen = good or list(range(len(test_set.y)))
    counted = test_set.select(np.array(chosen))
    lengths, behavioral = counted.lengths, _behavioral(design, counted, run)
    clipped = find_clipping(design.network.encoding, test_set)
    if not good:
        return PowerStudy(lengths, behavioral, failed=failed, clipped=clipped)
    inferences = [outcome for outcome in outcomes or () if isinstance(outcome, Inference)]
    supply, names = run.standing(design).technology.supply, tuple(meters_of(design.assembly))
    total, static = [], []
    for inference, frames in zip(inferences, lengths, strict=True):
        delivered = supply * inference.delivered
        _, weights = settled_windows(run.timing, design.assembly, int(frames))
        total.append(delivered[:frames].mean(axis=0))
        static.append((weights @ delivered[frames:]).mean(axis=0))
    mean = dict(zip(names, np.array(total).T, strict=True))
    settled = dict(zip(names, np.array(static).T, strict=True))
    simulated = _blocks(design, mean), _blocks(design, settled), _rails(design, mean)
    return PowerStudy(lengths, behavioral, *simulated, failed, clipped, count_elsewhere(inferences))


def _simulated(outcomes: Sequence[Outcome] | None) -> list[int]:
    return [k for k, outcome in enumerate(outcomes or ()) if isinstance(outcome, Inference)]


def tabulate_power(
    study: PowerStudy, test_set: TestSet, outcomes: Sequence[Outcome] | None, engine: str
) -> dict[str, NDArray[Any]]:
    """Return the arrays of power.npz for `cosim diff`: the power of every sample that counts.

    indices, sums, lengths, y: as in `SampleTable`; figures (k,): such as `ngspice power cells`, by engine, `power` or
    `static`, and block or rail; power_w (k, n): watt.
    """
    counted = test_set.select(np.array(_simulated(outcomes) or range(len(test_set.y))))
    tables = {
        f"{BEHAVIORAL} power": study.behavioral, f"{engine} power": study.total, f"{engine} static": study.static,
        f"{engine} rail": study.rails,
    }  # fmt: skip
    rows = {f"{name} {part}": power for name, table in tables.items() for part, power in (table or {}).items()}
    blocks = {name: table for name, table in tables.items() if table and "rail" not in name}
    rows = {**{f"{name} {TOTAL}": _with_total(table)[TOTAL] for name, table in blocks.items()}, **rows}
    return {
        "indices": counted.indices,
        "sums": counted.sums,
        "lengths": counted.lengths,
        "y": counted.y,
        "figures": np.array(list(rows)),
        "power_w": np.array(list(rows.values())),
    }


def _blocks(design: Design, metered: dict[str, Array]) -> dict[str, Array]:
    """Return the power of each block from `meters_of`; what outputs push is added to the readout's, whose source got it
    back."""
    blocks = {block: metered[block] for block in design.assembly.blocks}
    return blocks | {"readout": blocks["readout"] + _pushed(design, metered)}


def _pushed(design: Design, metered: dict[str, Array]) -> Array:
    return sum((metered[pin] for pin in pushed_by(design.assembly)), np.zeros(len(metered["vground"])))


def _behavioral(design: Design, test_set: TestSet, run: Run) -> dict[str, Array]:
    lengths = test_set.lengths
    valid, trace = np.arange(test_set.x.shape[1])[None, :] < lengths[:, None], run_samples(design, test_set, run)
    blocks = behavioral_power(design, trace, run.timing, run.condition, run.chip)
    return {block: (power * valid).sum(axis=1) / lengths for block, power in blocks.items()}


def _rails(design: Design, mean: dict[str, Array]) -> dict[str, Array]:
    assembly, nothing = design.assembly, np.zeros(len(mean["vground"]))
    pulses = assembly.driven[len(assembly.phases) :]
    rails = {
        "vdd": sum((mean[block] for block in assembly.blocks), nothing) + mean["vground"],
        "vground": _pushed(design, mean) - mean["vground"],
        "clocks": sum((mean[pin] for pin in assembly.phases), nothing),
        "reset": mean[assembly.reset],
    }
    return rails | ({"pulses": sum((mean[pin] for pin in pulses), nothing)} if pulses else {})


def summarize_power(design: Design, study: PowerStudy, run: Run = Run()) -> PowerSummary:
    """Summarize the power of a design in figures, in watt and joule."""
    technology, t_step = run.standing(design).technology, run.timing.t_step
    rows = _rows(design, study, run)
    return PowerSummary(
        task=design.network.task,
        technology=technology.name,
        corner=technology.corner,
        celsius=technology.celsius,
        supply_v=technology.supply,
        i_unit_a=design.i_unit,
        t_step_s=t_step,
        transistors=design.assembly.transistors,
        samples=len(study.frames),
        failed=study.failed,
        frames=float(study.frames.mean()),
        power_outside=outside_of(design.assembly.blocks),
        total=rows.pop(TOTAL),
        blocks=rows,
        rails={
            rail: RailRow(mean_interval(power), mean_interval(t_step * power))
            for rail, power in (study.rails or {}).items()
        },
        clipped=study.clipped,
        elsewhere=study.elsewhere,
        noise=None if run.noise is None else run.noise.seed,
    )


def _rows(design: Design, study: PowerStudy, run: Run) -> dict[str, PowerRow]:
    """Return a row for every block, and TOTAL."""
    t_step = run.timing.t_step
    areas = {block: 1e12 * np.array(pair) for block, pair in block_areas(design).items()}
    areas[TOTAL] = np.sum(list(areas.values()), axis=0)
    behavioral, total, static = _with_total(study.behavioral), _with_total(study.total), _with_total(study.static)
    rows = {}
    for name in (*design.assembly.blocks, TOTAL):
        measured, settled = total.get(name), static.get(name)
        powers = {run.engine: measured, BEHAVIORAL: behavioral[name]}
        energies = {engine: None if power is None else t_step * power for engine, power in powers.items()}
        lag = None if measured is None or settled is None else t_step * _difference(measured, settled)
        rows[name] = PowerRow(
            power_w={engine: _interval(power) for engine, power in powers.items()},
            difference=_relative(behavioral[name], measured),
            static_w=_interval(settled),
            dynamic_frame_j=_interval(lag),
            energy_frame_j={engine: _interval(energy) for engine, energy in energies.items()},
            energy_inference_j={
                engine: _interval(None if energy is None else energy * study.frames)
                for engine, energy in energies.items()
            },
            gate_area_um2=round(float(areas[name][0]), 1),
            capacitor_area_um2=round(float(areas[name][1]), 1),
        )
    return rows


def _with_total(blocks: dict[str, Array] | None) -> dict[str, Array]:
    return {**blocks, TOTAL: np.sum(list(blocks.values()), axis=0)} if blocks else {}


def _difference(total: Array, static: Array) -> Array:
    """Return total - static, W, and exactly 0 where they differ by rounding only."""
    return np.where(np.isclose(total, static, rtol=1e-9, atol=0), 0.0, total - static)


def _relative(behavioral: Array, measured: Array | None) -> Interval | None:
    """Return by how much the equations differ, relative; None where nothing was measured, or nothing is drawn."""
    if measured is None or not measured.mean():
        return None
    return _interval((behavioral - measured) / measured.mean())


def _interval(values: Array | None) -> Interval | None:
    return None if values is None else mean_interval(values)
