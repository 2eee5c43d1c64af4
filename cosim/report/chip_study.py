"""A run of chips with everything that its page shows, and how its figures are named and written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.design import Design
from cosim.report.chip_figures import Waves, YieldCurve
from cosim.study.chips import ChipRecord, ChipSummary, Contribution, Figures
from cosim.study.waveforms import WaveLabels
from cosim.technology.types import Technology

POWER = "power"
BEHAVIORAL, TRANSISTORS = "behavioral model", "chip on transistors"  # keys of Failure.decided


@dataclass(frozen=True)
class Failure:
    """One sample that the worst chip decided wrong, on its transistors and on the nominal ones.

    sample: its index in the full test set; decided: what each of software, behavioral model, chip's transistors and
    nominal transistors decides; waves and labels as `record_waveforms` gives them.
    """

    chip: int
    figures: Figures
    sample: int
    wanted: int
    decided: Mapping[str, int]
    waves: Waves
    nominal: Waves
    labels: WaveLabels


@dataclass(frozen=True)
class ChipStudy:
    """A run of chips with all that its page shows.

    settings: what the run depends on, as its table shows it; records, passes: of the chips that the summary counts;
    limits: metric -> limit of the spec on it; blocks: power of the nominal circuit, W; contributions: by metric, None
    without; failure: a text says why there is none.
    """

    design: Design
    technology: Technology
    timing: Timing
    summary: ChipSummary
    settings: Mapping[str, object]
    records: tuple[ChipRecord, ...]
    passes: tuple[bool, ...]
    limits: Mapping[str, float]
    curve: YieldCurve
    blocks: dict[str, float]
    contributions: Mapping[str, Contribution] | None
    failure: Failure | str


def figures_of(study: ChipStudy, metric: str, engine: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A figure of the chips that were simulated, and which of them meet the spec."""
    found = [(record.outcome(engine), passed) for record, passed in zip(study.records, study.passes, strict=True)]
    good = [(figures[metric], passed) for figures, passed in found if figures is not None]
    return np.array([value for value, _ in good]), np.array([passed for _, passed in good], bool)


def scale_of(study: ChipStudy, metric: str) -> tuple[float, str]:
    """What makes a figure's values numbers for an axis, and their unit."""
    return watts_of(study.summary.figures[POWER].mean) if metric == POWER else (100.0, "%")


def watts_of(power: float) -> tuple[float, str]:
    """The same for a power in W."""
    for factor, unit in ((1e12, "pW"), (1e9, "nW"), (1e6, "uW")):
        if factor * power < 1000:
            return factor, unit
    return 1e3, "mW"


def format_spec(texts: Sequence[str]) -> str:
    """Specs in words."""
    return " and ".join(text.replace("_", " ").replace(">=", " ≥ ").replace("<=", " ≤ ") for text in texts)
