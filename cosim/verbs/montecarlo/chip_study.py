"""A run of chips with everything that its page shows, and how its figures are named and written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity, parse_quantity
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.results.metrics import RMSE
from cosim.technology.types import Technology
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary, Figures
from cosim.verbs.montecarlo.figures import YieldCurve
from cosim.verbs.montecarlo.spread import CellSpread
from cosim.verbs.simulate.waveforms import WaveLabels, Waves

POWER = "power"
BY_EQUATIONS, BY_TRANSISTORS = "behavioral model", "chip on transistors"  # keys of Failure.decided


@dataclass(frozen=True)
class WrongSample:
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

    settings: what the run depends on, as its table shows it; origins: hashes and versions of the run; records, passes:
    of the chips that the summary counts;
    limits: metric -> limit of the spec on it; blocks: power of the nominal circuit, W; failure: a text says why there
    is none; network: its file, as commands have it; cells: of every chip, None where none has constant thresholds.
    """

    design: Design
    technology: Technology
    timing: Timing
    summary: ChipSummary
    settings: Mapping[str, object]
    origins: Mapping[str, str]
    records: tuple[ChipRecord, ...]
    passes: tuple[bool, ...]
    limits: Mapping[str, float]
    curve: YieldCurve
    blocks: dict[str, float]
    failure: WrongSample | str
    network: str
    cells: CellSpread | None = None


def figures_of(study: ChipStudy, metric: str, engine: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a figure of the chips that were simulated, (chips,), and which of them meet the spec, (chips,) bool."""
    found = [(record.outcome(engine), passed) for record, passed in zip(study.records, study.passes, strict=True)]
    good = [(figures[metric], passed) for figures, passed in found if figures is not None]
    return np.array([value for value, _ in good]), np.array([passed for _, passed in good], bool)


def scale_of(study: ChipStudy, metric: str) -> tuple[float, str]:
    """Return for the page on many chips the factor that turns a metric's values into numbers for an axis, and their
    unit."""
    if metric == RMSE:
        return 1.0, "unit of the targets"
    return watts_of(study.summary.figures[POWER].mean) if metric == POWER else (100.0, "%")


def software_of(summary: ChipSummary, metric: str) -> float | None:
    """Return the software's value of a Monte Carlo run's metric; None where the software has none."""
    return {"accuracy": summary.software_accuracy, RMSE: summary.software_rmse, POWER: None}.get(metric, 1.0)


def watts_of(power: float) -> tuple[float, str]:
    """Return for the pages of montecarlo and diff the factor from W to the prefixed unit of a power, and that unit."""
    for factor, unit in ((1e12, "pW"), (1e9, "nW"), (1e6, "uW")):
        if factor * power < 1000:
            return factor, unit
    return 1e3, "mW"


def format_spec(texts: Sequence[str]) -> str:
    """Format the specs of chips in words, shares in per cent: accuracy>=0.8 becomes accuracy at least 80 %, with the
    sign for that."""
    return " and ".join(map(_format_limit, texts))


def _format_limit(text: str) -> str:
    metric, sign, limit = text.partition(">=") if ">=" in text else text.partition("<=")
    try:
        value = format_quantity(parse_quantity(limit, "W"), "W", 4) if metric == POWER else _share(limit)
    except (InputError, ValueError):
        value = limit
    mark = {">=": "\N{GREATER-THAN OR EQUAL TO}", "<=": "\N{LESS-THAN OR EQUAL TO}"}.get(sign, "")
    return f"{metric.replace('_', ' ')} {mark} {value}".strip()


def _share(limit: str) -> str:
    return f"{float(limit[:-1]):g} %" if limit.endswith("%") else f"{100 * float(limit):g} %"
