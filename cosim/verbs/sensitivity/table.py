"""Table of the transistors that decide a sample, as text: what fits a terminal."""

from collections.abc import Sequence

from cosim.base.quantities import format_quantity
from cosim.verbs.sensitivity.study import Decision, Sensitivities

_NAME = 24  # columns
_PINS = 5  # that are shown


def format_sensitivities(found: Sensitivities, top: int) -> list[str]:
    """Return the lines on a margin or output, its spread, the `top` most decisive transistors and the bias pins.

    Lines have at most 80 columns.
    """
    decided, *other = found.outputs
    over = f" over {other[0]}" if other else ""
    value, sigma = format_quantity(found.value_a, "A"), format_quantity(found.sigma_a, "A")
    lines = [
        f"output {decided}{over}: {value}; mismatch moves it by {sigma} (1 sigma)",
        f"{len(found.devices)} transistors; share of the variance, and of it what these explain together:",
        "",
        f"{'transistor':{_NAME}} {'block':7} {'role':9} {'1 mV':>9} {'1 % width':>9} {'sigma':>8} {'share':>6}",
    ]
    total = 0.0
    for one in found.devices[:top]:
        by_volt, by_width = (format_quantity(amp, "A") for amp in (1e-3 * one.vt_shift, 1e-2 * one.ln_beta))
        total += one.share
        lines.append(
            f"{_short(one.device):{_NAME}} {one.block:7} {one.role or '':9} {by_volt:>9} {by_width:>9} "
            f"{format_quantity(one.sigma_a, 'A'):>8} {100 * one.share:>4.1f} %"
        )
    lines += [f"{'together':{_NAME}} {'':47} {100 * total:>4.1f} %", *_format_decisions(found.decisions)]
    pins = sorted(found.pins.items(), key=lambda pin: -abs(pin[1]))
    return [*lines, "", "bias pins, A per A:", *(f"{pin:{_NAME}} {slope:+.4g}" for pin, slope in pins[:_PINS])]


def _format_decisions(decisions: Sequence[Decision]) -> list[str]:
    """Return a row for each of the least certain decisions, with its most decisive transistor; nothing without
    decisions."""
    if not decisions:
        return []
    lines = ["", f"{'decision':14} {'frame':>5} {'margin':>9} {'sigma':>8} {'flips':>7}  most by"]
    for one in decisions:
        margin, sigma = format_quantity(one.margin_a, "A"), format_quantity(one.sigma_a, "A")
        by = f"{_short(one.devices[0].device)} {100 * one.devices[0].share:.0f} %"
        lines.append(f"{one.cell:14} {one.frame:>5} {margin:>9} {sigma:>8} {100 * one.flips:>5.1f} %  {by}")
    return lines


def _short(name: str) -> str:
    """Return a name without the network's, cut at the front where it is long."""
    name = name.partition(".")[2]
    return name if len(name) <= _NAME else f"..{name[2 - _NAME :]}"
