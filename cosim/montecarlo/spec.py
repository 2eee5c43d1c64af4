"""What a chip must do to count: all of its cells reset, and each figure keeps its limit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cosim.errors import InputError
from cosim.quantities import parse_quantity
from cosim.study.agreement import METRICS
from cosim.study.chips import Figures, Nominal

_LARGEST_POWER = 1e-3  # W: a thousand times what any network here takes
_SPEC = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(.+?)\s*")


@dataclass(frozen=True)
class Spec:
    """`metric` must be at least (`>=`) or at most (`<=`) the limit; a fraction, or W for power."""

    text: str
    metric: str
    at_least: bool
    limit: float

    def holds(self, figures: Nominal) -> bool:
        """Whether a chip's figures meet it."""
        return figures[self.metric] >= self.limit if self.at_least else figures[self.metric] <= self.limit


def passes_specs(found: Figures | None, specs: Sequence[Spec]) -> bool:
    """Whether a chip counts by its figures: simulated (not None), reset, every spec met.

    A cell that its reset does not turn off keeps the state that it once had, so such a chip's figures are those of its
    history, whatever they are.
    """
    return found is not None and not found.unreset and meets_specs(found, specs)


def meets_specs(found: Figures, specs: Sequence[Spec]) -> bool:
    """Whether the figures of a chip that was simulated keep every limit."""
    return all(spec.holds(found) for spec in specs)


def parse_spec(text: str) -> Spec:
    """Such as `accuracy>=0.9`, `state_agreement>=99%` or `power<=400nW`.

    Raises InputError that says what it must be.
    """
    match = _SPEC.fullmatch(text)
    if match is None or match.group(1) not in METRICS:
        raise InputError(
            f"--spec must be one of {', '.join(METRICS)}, then >= or <=, then a number, such as 'accuracy>=0.9', "
            f"not {text!r}"
        )
    metric, relation, number = match.groups()
    if metric == "power":
        limit = parse_quantity(number, "W", "--spec power")
        if limit > _LARGEST_POWER:
            raise InputError(
                f"--spec power is in watt and must be at most {_LARGEST_POWER:g} W, not {number}; "
                "400 nanowatt are 400nW"
            )
    elif number.endswith("%"):
        limit = parse_quantity(number[:-1], "", f"--spec {metric}") / 100
    else:
        limit = parse_quantity(number, "", f"--spec {metric}")
    if metric != "power" and not 0 <= limit <= 1:
        raise InputError(f"--spec {metric} must be a fraction between 0 and 1, or a percentage, not {number}")
    return Spec(re.sub(r"\s", "", text), metric, relation == ">=", limit)
