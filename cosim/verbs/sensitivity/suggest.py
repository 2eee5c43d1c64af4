"""Overrides that a sample's sensitivities suggest: more devices in parallel in the mirrors that spread its figure most.

The figure's variance is the sum over transistors, sum of sigma^2. With n times as many devices in parallel in a mirror,
the variance of its mismatch, and so its part of the sum, is divided by n (M. Pelgrom et al., IEEE J. Solid-State
Circuits 24 (1989) 1433). `enlarge_mirrors` chooses n for each mirror.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cosim.compiler.design import Design
from cosim.compiler.overrides import format_overrides, line_of
from cosim.verbs.harden.mirrors import MirrorGroup, enlarge_mirrors, with_more_devices
from cosim.verbs.sensitivity.study import Sensitivities

MORE_AREA = 0.1  # over all gates of the circuit
HEAD = (
    "# Written by cosim sensitivity --suggest, which replaces files with this first line; change it to keep yours.\n\n"
)


@dataclass(frozen=True)
class MirrorSuggestion:
    """Mirrors of a circuit that should get more devices in parallel, and what that brings for one sample.

    times: gate line -> factor on its number of devices, empty where no larger mirror fits into MORE_AREA; area: of all
    gates over the present one; sigma_a: predicted spread of the sample's figure, A.
    """

    times: Mapping[str, int]
    area: float
    sigma_a: float


def check_suggestion(path: Path) -> None:
    """Raise InputError where the path holds a file that is no suggestion, or cannot be written."""
    from cosim.base.claim import check_replaceable, starts_with

    check_replaceable({path: starts_with(HEAD.encode())}, "--suggest")


def format_suggestion(design: Design, found: MirrorSuggestion) -> str:
    """Return the overrides of a design, with what is suggested behind them, as the text of a file for --overrides."""
    return HEAD + format_overrides(with_more_devices(design.settings.overrides, found.times))


def suggest_mirrors(design: Design, found: Sensitivities) -> MirrorSuggestion:
    """Return which mirrors should get more devices, so that a figure varies least in at most MORE_AREA more area.

    found: sensitivities of one sample on this design.
    """
    lines = {mos.name: (line_of(mos), 1e12 * mos.gate_area) for mos in design.assembly.circuit.flatten()}
    shares, areas, count = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, int](int)
    for one in found.devices:
        line, area = lines[one.device]
        if line:
            shares[line] += one.share
            areas[line] += area
            count[line] += 1
    whole = sum(area for _, area in lines.values())
    groups = [MirrorGroup(line, count[line], areas[line], share) for line, share in sorted(shares.items())]
    times = enlarge_mirrors(groups, MORE_AREA * whole)
    less = sum(shares[line] * (1 - 1 / n) for line, n in times.items())
    more = sum(areas[line] * (n - 1) for line, n in times.items())
    return MirrorSuggestion(times, 1 + more / whole, found.sigma_a * (1 - less) ** 0.5)
