"""Figure 4 of the seed paper: a chain of 9T cells whose DPIs couple forward only, compared with a ladder's, both ways.

The paper gives thresholds of 0.35 and 0.15 nA, alpha of 0.5 nA, a retain level of 0.25 nA, DPIs of 10 ms and an update
every 10 ms, and no wiring between the stages. Four chains get the same updates. Their DPIs couple forward only or both
ways, each with the paper's timing (the input at its level for the whole step) and with the ladder's (pulses, shorter
DPIs). Source: arXiv 2605.11855, Fig. 4 and section 7 (39.86 nW).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.base.quantities import format_quantity
from cosim.engines.engine import Progress, Run
from cosim.results.figures import BLUE, DOUBLE, GREY, Figure, picture_of, plain, styled
from cosim.results.page import Page, PageSubject, Section, Table
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology
from cosim.units.ladder import LadderTiming, ladder_currents, ladder_timing, solve_ladder
from cosim.verbs.characterize.ladder import LadderRun, LadderStudy, LadderTrace, simulate_runs
from cosim.verbs.characterize.page import sample_times
from cosim.verbs.provenance import calibration_origins
from cosim.verbs.words import say_conditions

I_UNIT = 1e-9  # A: the unit current at which a ladder has the paper's set-points
STEP, TAU = 10e-3, 10e-3  # s, of the paper
RUNGS, START = 5, 1
UPDATES = (1, 1, 0, 0, -1, 1, 1, 0, -1, -1, 0, -1)
PUBLISHED_W = 39.86e-9
_CAPTION = (
    "Output of the four chains. Grey: the levels asked for. Forward only, the first reset empties the chain: nothing "
    "holds a lower cell while the one above it is on."
)
_NANO, _MILLI = 1e9, 1e3


@dataclass(frozen=True)
class CascadeSummary:
    """The figures of one chain of Figure 4.
    backward: DPIs couple both ways; tau_s: time constant of the DPIs; pulse_s: duration of an update's pulse; levels:
    after each step, simulated; expected: by software; wrong: number of levels that differ; power_w: mean."""

    name: str
    backward: bool
    tau_s: float
    pulse_s: float
    levels: tuple[int, ...]
    expected: tuple[int, ...]
    wrong: int
    power_w: float


def cascade_studies() -> dict[str, LadderStudy]:
    """Return the plans of the four chains of Figure 4, by name: two timings, each with DPIs forward and both ways."""
    currents = ladder_currents(I_UNIT)
    timings = (("10 ms", LadderTiming(STEP, STEP, TAU)), ("2.5 ms", ladder_timing(STEP)))
    return {
        f"{'both ways' if backward else 'forward only'}, tau {tau}": LadderStudy(
            RUNGS, sequences=0, steps=len(UPDATES), seed=0, currents=currents, timing=timing, backward=backward
        )
        for tau, timing in timings
        for backward in (False, True)
    }


def run_cascades(
    technologies: Sequence[Technology],
    calibration: Calibration,
    run: Run,
    progress: Progress,
) -> list[list[LadderTrace]]:
    """Simulate the four chains of Figure 4 in every condition; return traces by condition and by chain.

    The chains are in the order of `cascade_studies`. Raises SimulationError for a failed run, whose deck is kept.
    """
    studies = cascade_studies().values()
    bias = solve_ladder(ladder_currents(I_UNIT), calibration)
    one = LadderRun("stairs", bias, START, np.array(UPDATES, dtype=np.int64))
    asked = [(study, one, technology) for technology in technologies for study in studies]
    found = simulate_runs(asked, calibration, run, progress)
    return [found[first : first + len(studies)] for first in range(0, len(found), len(studies))]


def summarize_cascades(traces: Sequence[LadderTrace]) -> tuple[CascadeSummary, ...]:
    """Summarize the four chains of Figure 4 in one condition; traces: as in `cascade_studies`."""
    return tuple(
        CascadeSummary(
            name,
            study.backward,
            study.timing.tau,
            study.timing.pulse,
            tuple(trace.levels.tolist()),
            tuple(trace.expected.tolist()),
            int((trace.levels != trace.expected).sum()),
            trace.power_w,
        )
        for (name, study), trace in zip(cascade_studies().items(), traces, strict=True)
    )


@styled
def draw_cascades(traces: Sequence[LadderTrace]) -> Figure:
    """Draw output and supply power of the four chains of Figure 4 over time, a column for each chain."""
    figure = Figure(figsize=(DOUBLE, 4.2), layout="constrained")
    axes = figure.subplots(2, len(traces), sharex=True, sharey="row", height_ratios=(2, 1))
    alpha = ladder_currents(I_UNIT).alpha
    for name, trace, above, below in zip(cascade_studies(), traces, *axes, strict=True):
        edges = _MILLI * STEP * np.arange(len(UPDATES) + 1)
        above.stairs(_NANO * alpha * trace.expected, edges, baseline=None, color=GREY, lw=2.0)
        times = _MILLI * sample_times(trace, STEP)
        above.plot(times, _NANO * trace.output, color=BLUE, lw=1.0)
        above.set_title(name.replace(", ", ",\n"), fontsize=8)
        below.plot(times, _NANO * trace.power, color=BLUE, lw=1.0)
        below.set_xlabel("time (ms)")
        for axis in (above, below):
            plain(axis)
    axes[1][0].set_ylim(bottom=0)
    axes[0][0].set_ylabel("output (nA)")
    axes[1][0].set_ylabel("power (nW)")
    return figure


def cascade_page(
    found: Sequence[tuple[Technology, Sequence[LadderTrace]]], calibration: Calibration, made_with: dict[str, str]
) -> Page:
    """Return the page of Figure 4, with a section for each condition.
    found: (technology in its condition, traces of the four chains); made_with: name of the simulator -> its version."""
    summaries = [summarize_cascades(traces) for _, traces in found]
    published, *_, ladder = (max(ones, key=lambda one: one.wrong) for ones in zip(*summaries, strict=True))
    count, name = len(UPDATES), found[0][0].name
    worst = f" The counts are those of the worst of {len(found)} conditions." if len(found) > 1 else ""
    return Page(
        verb="characterize cascade",
        subject=PageSubject("Figure 4 of the seed paper"),
        title=f"Figure 4 on {name}: {published.wrong} of {count} levels wrong as published, {ladder.wrong} as a ladder",
        lead=f"Chains of {RUNGS} cells at the paper's set-points: thresholds 0.35 and 0.15 nA, alpha 0.5 nA, retain "
        f"0.25 nA, a step of {format_quantity(STEP, 's')}. From level {START} on they get the updates "
        f"{' '.join(f'{update:+d}' if update else '0' for update in UPDATES)}.{worst}",
        cards=(
            (f"{published.wrong} of {count}", "levels wrong, forward only with the paper's timing"),
            (f"{ladder.wrong} of {count}", "levels wrong, both ways with pulses and shorter DPIs"),
            (
                format_quantity(ladder.power_w, "W"),
                f"mean power of that chain; the paper's: {_NANO * PUBLISHED_W:g} nW",
            ),
        ),
        sections=tuple(_section(*one) for one in found),
        provenance=calibration_origins(calibration, made_with),
    )


def _section(technology: Technology, traces: Sequence[LadderTrace]) -> Section:
    picture = picture_of(draw_cascades(traces), _CAPTION, _CAPTION, 600, "png")
    summaries = summarize_cascades(traces)
    asked = ("asked for", " ".join(map(str, summaries[0].expected)), "", "")
    rows = [
        (one.name, " ".join(map(str, one.levels)), str(one.wrong), format_quantity(one.power_w, "W"))
        for one in summaries
    ]
    table = Table(("chain", "level after each step", "wrong", "mean power"), (asked, *rows), (2, 3))
    return Section(say_conditions(technology), (picture, table))
