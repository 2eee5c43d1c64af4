"""Chips counted: quantiles, yield with its interval, and the two engines paired chip by chip.

Yield is a binomial fraction of independent chips: Clopper and Pearson, Biometrika 26 (1934) 404. With replicates
(Latin hypercube, scrambled Sobol) chips of one replicate are not independent, replicates are: Student's t over their
yields; A. B. Owen, SIAM J. Numer. Anal. 34 (1997) 1884. With fewer than FEW replicates, or fewer than two working and
two failing chips in each on average, t covers too little (half, with two replicates of 50 chips at 99 %). There Clopper
and Pearson's interval stands, too, which stratification does not make too narrow. A chip whose simulation failed is no
working chip, and the yield without such chips stands beside it; nor is one with a cell that does not reset.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cosim.montecarlo.spec import Spec, meets_specs, passes_specs
from cosim.montecarlo.trial import EngineName, Record
from cosim.study.agreement import METRICS
from cosim.variation.draws import Plan

CONFIDENCE = 0.95
FEW = 10
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
CHECKPOINTS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class Yield:
    """`passed` of `chips`: the fraction with its interval at `confidence`, by `method`."""

    passed: int
    chips: int
    value: float
    low: float
    high: float
    method: str
    confidence: float


def count_yield(passes: Sequence[bool], plan: Plan, confidence: float = CONFIDENCE) -> Yield:
    """The yield of chips in order of their number."""
    passed, chips = sum(passes), len(passes)
    size = plan.chips // plan.replicates
    enough = plan.replicates >= FEW and min(passed, chips - passed) >= 2 * plan.replicates
    if plan.sampling != "random" and enough and chips == plan.chips:
        means = np.array([np.mean(passes[k : k + size]) for k in range(0, chips, size)])
        half = stats.t.ppf((1 + confidence) / 2, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = max(means.mean() - half, 0.0), min(means.mean() + half, 1.0)
        return Yield(passed, chips, passed / chips, float(low), float(high), "Student's t over replicates", confidence)
    found = stats.binomtest(passed, chips).proportion_ci(confidence, "exact")
    return Yield(passed, chips, passed / chips, float(found.low), float(found.high), "Clopper-Pearson", confidence)


def yield_json(found: Yield) -> dict[str, Any]:
    """A yield as it stands in a JSON file."""
    return {
        "value": found.value,
        "interval": [found.low, found.high],
        "confidence": found.confidence,
        "passed": found.passed,
        "chips": found.chips,
        "method": found.method,
    }


def summarize_chips(
    records: Sequence[Record],
    plan: Plan,
    engine: EngineName,
    specs: Sequence[Spec],
    confidence: float = CONFIDENCE,
) -> dict[str, Any]:
    """Everything that a table, a JSON file or a report prints about a run's chips.

    confidence: of the yield's intervals.
    """
    good = [record for record in records if record["status"] == "ok"]
    passes = [passes_specs(record, engine, specs) for record in records]
    without = [passes_specs(record, engine, specs) for record in good]
    summary: dict[str, Any] = {
        "chips": len(records),
        "failed": len(records) - len(good),
        "reasons": dict(Counter(record["reason"] for record in records if record["status"] != "ok")),
        "unreset": count_unreset(good, engine, specs),
        "engine": engine,
        **{metric: describe([record[engine][metric] for record in good]) for metric in METRICS if good},
        "yield": {"spec": [spec.text for spec in specs], **yield_json(count_yield(passes, plan, confidence))},
    }
    if good:
        summary["yield"]["without_failed"] = yield_json(count_yield(without, plan, confidence))
    if engine == "ngspice" and len(good) > 2:
        summary["paired"] = {
            metric: pair(
                np.array([record["behavioral"][metric] for record in good]),
                np.array([record["ngspice"][metric] for record in good]),
            )
            for metric in METRICS
        }
    return summary


def count_unreset(good: Sequence[Record], engine: EngineName, specs: Sequence[Spec]) -> dict[str, Any]:
    """How many chips have a cell that does not reset, how many of them keep all limits, and which cells, how often."""
    found = [record for record in good if record[engine]["unreset"]]
    counts = Counter(cell for record in found for cell in record[engine]["unreset"])
    return {
        "chips": len(found),
        "meet_spec": sum(meets_specs(record, engine, specs) for record in found),
        "cells": dict(counts.most_common()),
    }


def describe(values: Sequence[float]) -> dict[str, Any]:
    """Mean with its interval (Student's t), standard deviation, quantiles by their percentage."""
    x = np.asarray(values, dtype=np.float64)
    mean, sd = float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else 0.0
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 1)) * sd / len(x) ** 0.5 if len(x) > 1 else None
    return {
        "mean": mean,
        "mean_interval": None if half is None else [mean - half, mean + half],
        "sd": sd,
        "quantiles": {f"{100 * q:g}": float(np.quantile(x, q)) for q in QUANTILES},
    }


def pair(behavioral: NDArray[np.float64], ngspice: NDArray[np.float64]) -> dict[str, Any]:
    """One figure of the same chips by both engines: correlation (Fisher's z), bias = behavioral - ngspice (t)."""
    difference = behavioral - ngspice
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(difference) - 1) * difference.std(ddof=1) / len(difference) ** 0.5
    found: dict[str, Any] = {
        "chips": len(difference),
        "bias": float(difference.mean()),
        "bias_interval": [float(difference.mean() - half), float(difference.mean() + half)],
        "difference_sd": float(difference.std(ddof=1)),
        "correlation": None,
        "correlation_interval": None,
    }
    if np.ptp(behavioral) > 0 and np.ptp(ngspice) > 0 and len(difference) > 3:
        interval = stats.pearsonr(behavioral, ngspice).confidence_interval(CONFIDENCE)
        found["correlation"] = float(np.corrcoef(behavioral, ngspice)[0, 1])
        found["correlation_interval"] = [float(interval.low), float(interval.high)]
    return found


def checkpoints(chips: int) -> list[int]:
    """Numbers of chips after which a run may look whether it knows enough; the last is `chips`."""
    return [*(count for count in CHECKPOINTS if count < chips), chips]


def is_precise(passes: Sequence[bool], plan: Plan, width: float) -> bool:
    """Whether the yield's interval is no wider than `width`, at a confidence shared out over all looks (Bonferroni).

    Looking again and again would otherwise stop at a lucky moment too often.
    """
    found = count_yield(passes, plan, stop_confidence(plan))
    return found.high - found.low <= width


def stop_confidence(plan: Plan) -> float:
    """The confidence of one look, so that all looks of a run together have CONFIDENCE."""
    return 1 - (1 - CONFIDENCE) / len(checkpoints(plan.chips))
