"""Which transistors decide a sample, as text: what fits a terminal."""

from cosim.quantities import format_quantity
from cosim.study.sensitivity import Sensitivities

_NAME = 24  # columns


def format_sensitivities(found: Sensitivities, top: int) -> list[str]:
    """What was asked for, its spread, the `top` most decisive transistors and the bias pins, under 80 columns."""
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
        steps = (format_quantity(amp, "A") for amp in (1e-3 * one.vt_shift, 1e-2 * one.ln_beta))
        by_volt, by_width = steps
        total += one.share
        lines.append(
            f"{_short(one.device):{_NAME}} {one.block:7} {one.role or '':9} {by_volt:>9} {by_width:>9} "
            f"{format_quantity(one.sigma_a, 'A'):>8} {100 * one.share:>4.1f} %"
        )
    lines += [f"{'together':{_NAME}} {'':47} {100 * total:>4.1f} %", "", "bias pins, A per A:"]
    pins = sorted(found.pins.items(), key=lambda pin: -abs(pin[1]))
    return [*lines, *(f"{pin:{_NAME}} {slope:+.4g}" for pin, slope in pins[:top])]


def _short(name: str) -> str:
    """A name without the network's, cut at the front where it is long."""
    name = name.partition(".")[2]
    return name if len(name) <= _NAME else f"..{name[2 - _NAME :]}"
