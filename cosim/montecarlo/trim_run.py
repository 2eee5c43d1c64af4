"""Chips before and after trimming, and what it did to the yield."""

from collections.abc import Sequence
from typing import Any

from scipy.stats import binomtest

from cosim.cells.blocks import OUTSIDE
from cosim.design import Design
from cosim.engines.outcome import Failure, FailureKind
from cosim.errors import SimulationError
from cosim.montecarlo.run import nominal_chip
from cosim.montecarlo.spec import Spec, passes_specs
from cosim.montecarlo.statistics import count_yield, describe, yield_json
from cosim.montecarlo.trial import Record, Trial, behavioral_figures, simulate_design, transistor_figures
from cosim.montecarlo.trim import (
    measure_behavioral,
    measure_transistors,
    trim_codes,
    trim_design,
    trim_ranges,
)
from cosim.study.agreement import METRICS
from cosim.tasks.clipping import summarize_clipping
from cosim.variation.chip import behavioral_chip, transistor_chip


def trim_chip(trial: Trial, number: int, bits: Sequence[int]) -> Record:
    """One chip's figures: `before`, and for each of `bits` as text. Measured and run by the trial's engine."""
    chip, transistors = trial.chip(number), trial.engine == "ngspice"
    wanted = measure_behavioral(trial, nominal_chip(trial))
    try:
        measured = (measure_transistors if transistors else measure_behavioral)(trial, chip)
    except SimulationError as error:
        return _failed(number, FailureKind.CONVERGENCE, str(error))
    design = transistor_chip(trial.design, chip) if transistors else behavioral_chip(trial.design, trial.effects, chip)
    ranges = trim_ranges(trial)
    figures: dict[str, Any] = {}
    for count in (0, *bits):
        pins = trim_codes(trial.design, measured, wanted, count, ranges) if count else {}
        one = trim_design(design, pins)
        found = _simulate(trial, one) if transistors else behavioral_figures(trial, one)
        if isinstance(found, Failure):
            return _failed(number, found.kind, found.detail)
        figures[str(count) if count else "before"] = {key: found[key] for key in (*METRICS, "unreset")}
    return {"chip": number, "status": "ok", **figures}


def _failed(number: int, kind: FailureKind, detail: str) -> Record:
    return {"chip": number, "status": "failed", "reason": kind.value, "detail": detail}


def _simulate(trial: Trial, design: Design) -> dict[str, Any] | Failure:
    outcomes = []
    for _, outcome in simulate_design(trial, design):
        outcomes.append(outcome)
        if isinstance(outcome, Failure):
            break
    return transistor_figures(trial, design, outcomes)


def summarize_trim(
    trial: Trial, bits: Sequence[int], records: Sequence[Record], specs: Sequence[Spec]
) -> dict[str, Any]:
    """Yield and figures before and after, and McNemar's exact test of each number of bits on the same chips."""
    before = [passes_specs(record, "before", specs) for record in records]
    rows = []
    for count in ("before", *map(str, bits)):
        passes = [passes_specs(record, count, specs) for record in records]
        good = [record for record in records if record["status"] == "ok"]
        won = sum(now and not then for then, now in zip(before, passes, strict=True))
        lost = sum(then and not now for then, now in zip(before, passes, strict=True))
        rows.append(
            {
                "bits": None if count == "before" else int(count),
                "yield": yield_json(count_yield(passes, trial.plan)),
                **{metric: describe([record[count][metric] for record in good]) for metric in METRICS if good},
                "won": won,
                "lost": lost,
                "p": float(binomtest(won, won + lost).pvalue) if won + lost else 1.0,
            }
        )
    return {
        "chips": len(records),
        "failed": sum(record["status"] != "ok" for record in records),
        "spec": [spec.text for spec in specs],
        "engine": trial.engine,
        "samples": len(trial.test_set.y),
        "power_outside": list(OUTSIDE),
        "clipped": summarize_clipping(trial.design.network.encoding, trial.test_set),
        "ranges": dict(zip(("thresh", "width", "gain"), trim_ranges(trial), strict=True)),
        "rows": rows,
    }
