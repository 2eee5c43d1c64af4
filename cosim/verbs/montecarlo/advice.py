"""Advice for a low yield: remedies chosen by what was found on the chips, each with its command."""

from cosim.verbs.montecarlo.chips import ChipSummary

ENOUGH = 0.9  # of the chips: from there on nothing is advised
LOST = 5.0  # points of accuracy
_SPENT = 3.0  # times the area of the devices, at which mismatch is 0.58 of what it was
UNRESET = (
    "a memory stays on through the reset, because mismatch has moved its lower threshold under the current that the "
    "reset leaves; such a chip begins every sample with a wrong state"
)


def advise(summary: ChipSummary, network: str = "NETWORK") -> list[tuple[str, str]]:
    """Return what helps a Monte Carlo run of low yield, with its command; none where the yield is high.

    network: its file, as a command has it.

    The nominal circuit comes first where it is worse than the software: nothing that is done about chips repairs that.
    """
    kind, technology = summary.variation.kind, f"--technology {summary.technology}"
    if summary.yield_.value >= ENOUGH or kind == "none":
        return []
    found: list[tuple[str, str]] = []
    lost = 100 * (summary.software_accuracy - summary.nominal.accuracy)
    if lost > LOST:
        found.append((f"the nominal circuit loses {lost:.1f} points; why", f"cosim compare {network} {technology}"))
    if kind in ("local", "all"):
        area = f"--area {_SPENT * summary.variation.area:g}"
        found.append(
            (f"{_SPENT:g} times the area of all devices", f"cosim montecarlo {network} {technology} {area} -o larger")
        )
    reset = ", of what does not reset, too" if summary.unreset.chips else ""
    found.append((f"converters set chip by chip{reset}", f"cosim trim {network} {technology}"))
    found.append(("training with chips that vary", f"cosim train TASK --variation {kind} {technology}"))
    return found
