"""Margins in standard deviations, as lines of the terminal and as a table."""

from cosim.base.quantities import format_quantity
from cosim.results.page import Blocks, Table
from cosim.verbs.compile.margins import NEAR, Margins, Near

_NAME = 20  # columns
_HEAD = ("layer", "decisions", "noise", "calibration", "mismatch", "fewest", f"within {NEAR:g} sigma",
         "chips: fewest", f"chips: within {NEAR:g} sigma")  # fmt: skip
_SAID = (
    "The distance of each candidate from the threshold that counts, in standard deviations of that candidate, which "
    "grow with what its row adds: noise of its devices and what calibration leaves; for chips mismatch as well. The "
    "columns before have the medians. Nominal circuit, behavioral model."
)


def format_margins(found: Margins) -> list[str]:
    """Return the margins as lines of the terminal."""
    lines = [f"{found.samples} samples; the fewest sigma of a decision, and how many stand within {NEAR:g}"]
    for one in found.layers:
        lines.append(f"{one.layer}: circuit {_said(one.circuit)}; chips {_said(one.chips)}")
    return [f"{'' if k else '  margins':{_NAME}}{line}" for k, line in enumerate(lines)]


def margins_section(found: Margins) -> Blocks:
    """Return the table of margins, with what it says."""
    rows = tuple(
        (
            one.layer,
            str(one.decisions),
            *(format_quantity(value, "A") for value in (one.noise_a, one.left_a, one.mismatch_a)),
            *_cells(one.circuit),
            *_cells(one.chips),
        )
        for one in found.layers
    )
    return (f"{found.samples} samples. {_SAID}", Table(_HEAD, rows, tuple(range(1, len(_HEAD)))))


def _said(near: Near) -> str:
    return f"{near.fewest:.2f}, {100 * near.within.mean:.2f} %"


def _cells(near: Near) -> tuple[str, str]:
    within = near.within
    ends = "" if within.low is None or within.high is None else f" [{100 * within.low:.2f}, {100 * within.high:.2f}]"
    return f"{near.fewest:.2f}", f"{100 * within.mean:.2f} %{ends}"
