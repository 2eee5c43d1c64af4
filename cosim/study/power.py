"""Supply power by block and by rail: what ngspice measures beside what the behavioral equations say.

    P          mean over the frames of V_DD times what a block draws from its own supply
    static     P where the circuit stands still, held over the span between two edges (`settled_windows`)
    dynamic    (P - static) t_step, an energy per frame: what currents that lag behind an edge take less or more
    energy     P t_step per frame, P t_step frames per inference

A charged gate line costs no C V^2 here: the signal that charges it is drawn in any case, and only its copies lag, by
the charge C dV each. So dynamic energy has either sign and belongs to the edge, not to the frame's length.
Drivers of clocks, pulses and reset deliver from V_DD and take back to ground: V_DD times what flows out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cosim.cells.blocks import BLOCKS, OUTSIDE
from cosim.design import Design, behavioral_power, run_behavioral
from cosim.outputs import block_areas
from cosim.simulation.inference import Inference, Outcome
from cosim.simulation.metering import meters_of, settled_windows
from cosim.simulation.testbench import Timing
from cosim.tasks.testset import TestSet

CONFIDENCE = 0.95
MOST = 1000  # samples that one would simulate to know a sign
TOTAL = "total"
DRIVERS = ("clocks", "reset", "pulses")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class PowerStudy:
    """Mean power of n samples in watt, (n,) by block or by rail; frames (n,) of each sample.

    total, static and rails come from ngspice; without a simulator they are None.
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


def study_power(
    design: Design, test_set: TestSet, outcomes: Sequence[Outcome] | None, timing: Timing = Timing()
) -> PowerStudy:
    """Power of the samples from the outcomes of `meter_samples`; only those that succeeded count, on both sides.

    Without outcomes, or if all failed, the behavioral side alone.
    """
    good = [k for k, outcome in enumerate(outcomes or ()) if isinstance(outcome, Inference)]
    failed = len(outcomes or ()) - len(good)
    chosen = good or list(range(len(test_set.y)))
    lengths = test_set.lengths[chosen]
    behavioral = _behavioral(design, test_set.x[chosen], lengths, timing)
    if not good:
        return PowerStudy(lengths, behavioral, failed=failed)
    inferences = [outcome for outcome in outcomes or () if isinstance(outcome, Inference)]
    supply, names = design.technology.supply, tuple(meters_of(design.assembly))
    total, static = [], []
    for inference, frames in zip(inferences, lengths, strict=True):
        delivered = supply * inference.delivered
        _, weights = settled_windows(timing, design.assembly, int(frames))
        total.append(delivered[:frames].mean(axis=0))
        static.append((weights @ delivered[frames:]).mean(axis=0))
    mean = dict(zip(names, np.array(total).T, strict=True))
    settled = dict(zip(names, np.array(static).T, strict=True))
    return PowerStudy(
        lengths, behavioral, _blocks(design, mean), _blocks(design, settled), _rails(design, mean), failed
    )


def _blocks(design: Design, metered: dict[str, Array]) -> dict[str, Array]:
    """BLOCKS from `meters_of`: the readout's source got back what outputs push."""
    blocks = {block: metered[block] for block in BLOCKS}
    return blocks | {"readout": blocks["readout"] + _pushed(design, metered)}


def _pushed(design: Design, metered: dict[str, Array]) -> Array:
    return sum((metered[pin] for pin in design.assembly.outputs), np.zeros(len(metered["vground"])))


def _behavioral(design: Design, x: Array, lengths: NDArray[np.int64], timing: Timing) -> dict[str, Array]:
    valid = np.arange(x.shape[1])[None, :] < lengths[:, None]
    blocks = behavioral_power(design, run_behavioral(design, x), timing)
    return {block: (power * valid).sum(axis=1) / lengths for block, power in blocks.items()}


def _rails(design: Design, mean: dict[str, Array]) -> dict[str, Array]:
    assembly, nothing = design.assembly, np.zeros(len(mean["vground"]))
    pulses = [pin for pair in assembly.pulses.values() for pin in pair]
    rails = {
        "vdd": sum((mean[block] for block in BLOCKS), nothing) + mean["vground"],
        "vground": _pushed(design, mean) - mean["vground"],
        "clocks": sum((mean[pin] for pair in assembly.clocks for pin in pair), nothing),
        "reset": mean["resetb"],
    }
    return rails | ({"pulses": sum((mean[pin] for pin in pulses), nothing)} if pulses else {})


def mean_interval(values: Array) -> dict[str, float | None]:
    """Mean of a sample with its 95 % interval by Student's t; one value has none."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return {"mean": mean, "low": None, "high": None}
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * values.std(ddof=1) / np.sqrt(count))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def shows_sign(interval: dict[str, float | None]) -> bool:
    """Whether a mean's interval leaves 0 out, so that its sign is known; a single sample's does not."""
    mean, low, high = interval["mean"], interval["low"], interval["high"]
    assert mean is not None
    return low is not None and high is not None and (low > 0 or high < 0 or low == mean == high)


def samples_to_sign(interval: dict[str, float | None], samples: int) -> int | None:
    """How many samples of the same spread would show the sign of a mean; None for more than MOST, or without spread."""
    mean, high = interval["mean"], interval["high"]
    if mean is None or high is None:
        return None
    deviation = (high - mean) * np.sqrt(samples) / stats.t.ppf((1 + CONFIDENCE) / 2, samples - 1)
    counts = np.arange(2, MOST + 1)
    enough = stats.t.ppf((1 + CONFIDENCE) / 2, counts - 1) * deviation / np.sqrt(counts) < abs(mean)
    return int(counts[enough.argmax()]) if enough.any() else None


def summarize_power(design: Design, study: PowerStudy, timing: Timing = Timing()) -> dict[str, Any]:
    """Everything that power.json holds; watt, joule, square micrometre. docs/power.md says what each is."""
    technology, t_step = design.technology, timing.t_step
    areas = {block: 1e12 * np.array(pair) for block, pair in block_areas(design).items()}
    areas[TOTAL] = np.sum(list(areas.values()), axis=0)
    behavioral = _with_total(study.behavioral)
    total = None if study.total is None else _with_total(study.total)
    static = None if study.static is None else _with_total(study.static)
    rows = {}
    for name in (*BLOCKS, TOTAL):
        engines = {"ngspice": None if total is None else total[name], "behavioral": behavioral[name]}
        energies = {engine: None if power is None else t_step * power for engine, power in engines.items()}
        lag = None if total is None or static is None else t_step * _difference(total[name], static[name])
        measured = engines["ngspice"]
        rows[name] = {
            "power_w": {engine: _interval(power) for engine, power in engines.items()},
            "difference": _interval(None if measured is None else (behavioral[name] - measured) / measured.mean()),
            "static_w": _interval(None if static is None else static[name]),
            "dynamic_frame_j": _interval(lag),
            "energy_frame_j": {engine: _interval(energy) for engine, energy in energies.items()},
            "energy_inference_j": {
                engine: _interval(None if energy is None else energy * study.frames)
                for engine, energy in energies.items()
            },
            "gate_area_um2": round(float(areas[name][0]), 1),
            "capacitor_area_um2": round(float(areas[name][1]), 1),
        }
    return {
        "task": design.network.task,
        "technology": technology.name,
        "corner": technology.corner,
        "celsius": technology.celsius,
        "supply_v": technology.supply,
        "i_unit_a": design.i_unit,
        "t_step_s": t_step,
        "transistors": design.assembly.transistors,
        "samples": len(study.frames),
        "failed": study.failed,
        "frames": float(study.frames.mean()),
        "power_outside": list(OUTSIDE),
        "blocks": {name: rows[name] for name in BLOCKS},
        TOTAL: rows[TOTAL],
        "rails": {
            rail: {"power_w": mean_interval(power), "energy_frame_j": mean_interval(t_step * power)}
            for rail, power in (study.rails or {}).items()
        },
    }


def _with_total(blocks: dict[str, Array]) -> dict[str, Array]:
    return {**blocks, TOTAL: np.sum(list(blocks.values()), axis=0)}


def _difference(total: Array, static: Array) -> Array:
    """What is not static; nothing where floats alone differ."""
    return np.where(np.isclose(total, static, rtol=1e-9, atol=0), 0.0, total - static)


def _interval(values: Array | None) -> dict[str, float | None] | None:
    return None if values is None else mean_interval(values)
