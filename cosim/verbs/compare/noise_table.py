"""Noise on a page, what it changes and how many sigma decisions are away; and gradients across the die."""

from cosim.base.quantities import format_quantity
from cosim.results.intervals import Interval
from cosim.results.page import Blocks, Table
from cosim.verbs.compare.noise import NoiseSummary
from cosim.verbs.montecarlo.chips import ChipNoise

_SAID = (
    "Behavioral model: one seeded number a decision, with the noise that the devices of its row have at their currents "
    "then. Inputs, bias pins and the readout are without. Shares are means over runs, their intervals Student's t over "
    "samples."
)


def chip_noise_rows(found: ChipNoise | None) -> list[tuple[str, str]]:
    """Return the rows of a page, (name, value), on how noise changes the figures of chips; none without noise."""
    if found is None:
        return []
    rows = [(f"{name}, points", _points(change)) for name, change in _changes(found)]
    if found.decisions is not None:
        rows.insert(0, ("decisions that it changes", _share(found.decisions, 2)))
    return [*rows, ("meet the spec without it", f"{found.passed} of {found.chips} chips"), ("seed", str(found.seed))]


def _changes(found: ChipNoise) -> tuple[tuple[str, Interval], ...]:
    return (
        ("accuracy", found.accuracy),
        ("task agreement", found.task_agreement),
        ("state agreement", found.state_agreement),
    )


def say_sigma(found: NoiseSummary) -> str:
    """Return the median noise of a candidate and its range, as text."""
    low, middle, high = (format_quantity(found.sigma_a[q], "A") for q in ("5", "50", "95"))
    return f"{middle} ({low} to {high})"


def noise_section(found: NoiseSummary | None) -> Blocks:
    """Return the blocks of a page on how noise changes a circuit's figures; none without noise."""
    if found is None:
        return ()
    rows = [
        ("noise of a candidate, median and 5 to 95 %", say_sigma(found)),
        ("states that it changes", _share(found.states, 3)),
        ("decisions that it changes", _share(found.answers, 2)),
        ("accuracy with noise", f"{_share(found.accuracy, 2)}; without {100 * found.quiet:.2f} %"),
        ("change of accuracy, points", _points(found.change)),
        *(
            (f"comparisons within {number} sigma of their threshold", _share(share, 2))
            for number, share in found.within.items()
        ),
        ("comparisons that noise is expected to turn", _share(found.turned, 3)),
        ("comparisons, runs, seed", f"{found.decisions}, {found.draws}, {found.seed}"),
    ]
    if (ran := found.transistors) is not None:
        rows += [
            ("states that noise of the transistors changes", _share(ran.states, 3)),
            ("decisions that it changes", _share(ran.answers, 2)),
            ("accuracy with it", f"{_share(ran.accuracy, 2)}; without {100 * ran.quiet:.2f} %"),
            ("change of accuracy, points", _points(ran.change)),
            ("samples; those that did not run", f"{ran.samples}; {ran.failed}"),
        ]
    return Table(("noise", "value"), tuple(rows), (1,)), _SAID


def _points(found: Interval) -> str:
    mean = f"{100 * found.mean:+.2f}"
    if found.low is None or found.high is None:
        return mean
    return f"{mean} [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"


def _share(found: Interval, digits: int = 1) -> str:
    mean = f"{100 * found.mean:.{digits}f} %"
    if found.low is None or found.high is None:
        return mean
    return f"{mean} [{100 * found.low:.{digits}f}, {100 * found.high:.{digits}f}]"
