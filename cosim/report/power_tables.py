"""Supply power as text: what fits a terminal."""

from collections.abc import Sequence
from typing import Any

from cosim.quantities import format_quantity, parse_quantity
from cosim.report.tables import format_outside
from cosim.study.power import MOST, TOTAL, samples_to_sign, shows_sign

TOO_FEW = "too few"
_WIDE, _NARROW = 21, 12  # columns with and without an interval


def format_power(summary: dict[str, Any]) -> list[str]:
    """The tables of `summarize_power`, under 100 columns: power and area, energies, rails.

    A mean whose interval holds 0 is no figure; how many samples would make it one stands below.
    """
    rows = {**summary["blocks"], TOTAL: summary[TOTAL]}
    simulated = summary[TOTAL]["power_w"]["ngspice"] is not None
    engines = ("ngspice", "behavioral") if simulated else ("behavioral",)
    counts = (
        f"{summary['samples']} samples of {summary['frames']:g} frames of {format_quantity(summary['t_step_s'], 's')}"
    )
    lines = [
        f"{counts}, {summary['failed']} failed; {summary['transistors']} transistors; means with 95 % intervals",
        "",
        _line("power", engines, (*(("differs",) if simulated else ()), "gates", "capacitors")),
    ]
    for name, row in rows.items():
        powers = [_mean(row["power_w"][engine], "W") for engine in engines]
        differs = [f"{100 * row['difference']['mean']:+.2f} %"] if simulated else []
        areas = [f"{row[key]:.0f} um2" for key in ("gate_area_um2", "capacitor_area_um2")]
        lines.append(_line(name, powers, [*differs, *areas]))
    lines += ["", _line("energy", (*(("static", "dynamic, a frame") if simulated else ()), "a frame", "an inference"))]
    for name, row in rows.items():
        parts = [_mean(row["static_w"], "W"), _signed(row["dynamic_frame_j"], "J")] if simulated else []
        energies = [_mean(row[key][engines[0]], "J") for key in ("energy_frame_j", "energy_inference_j")]
        lines.append(_line(name, [*parts, *energies]))
    if simulated:
        lines += ["", _line("rail", ("power", "a frame"))]
        for rail, row in summary["rails"].items():
            lines.append(_line(rail, (_mean(row["power_w"], "W"), _mean(row["energy_frame_j"], "J"))))
    return [*lines, "", *_format_few(summary, lines), *format_outside()]


def _format_few(summary: dict[str, Any], lines: Sequence[str]) -> list[str]:
    """What TOO_FEW in the lines means, and how many samples its figures need."""
    if not any(TOO_FEW in line for line in lines):
        return []
    if summary["samples"] == 1:
        return [f"{TOO_FEW:18}one sample has no interval, so an energy's sign is not known; give more --samples"]
    rows = [*summary["blocks"].values(), summary[TOTAL], *summary["rails"].values()]
    means = [mean for row in rows for mean in _means(row) if mean is not None and not shows_sign(mean)]
    needed = [samples_to_sign(mean, summary["samples"]) for mean in means]
    known = [count for count in needed if count is not None]
    beyond = f", {len(needed) - len(known)} of {len(needed)} not even {MOST}" if len(known) < len(needed) else ""
    most = f"; about --samples {max(known)} would show it{beyond}" if known else ""
    return [f"{TOO_FEW:18}samples: the interval of the mean holds 0{most}"]


def _means(row: dict[str, Any]) -> list[dict[str, float | None] | None]:
    """Every mean of a row that a table shows."""
    found = [row.get(key) for key in ("power_w", "static_w", "dynamic_frame_j", "energy_frame_j", "energy_inference_j")]
    return [mean for one in found if one for mean in (one.values() if "mean" not in one else [one])]


def _line(name: str, wide: Sequence[str], narrow: Sequence[str] = ()) -> str:
    cells = [f"{cell:>{_WIDE}}" for cell in wide] + [f"{cell:>{_NARROW}}" for cell in narrow]
    return f"{name:8}" + "".join(cells)


def _signed(interval: dict[str, float | None], unit: str) -> str:
    """A mean that may have either sign: without an interval it has none that is known."""
    return _mean(interval, unit) if shows_sign(interval) else TOO_FEW


def _mean(interval: dict[str, float | None], unit: str) -> str:
    """8.58 +- 0.21 nW; TOO_FEW where the interval holds 0."""
    mean, high = interval["mean"], interval["high"]
    assert mean is not None
    if high is not None and not shows_sign(interval):
        return TOO_FEW
    number, prefixed = format_quantity(mean, unit).split(" ")
    if high is None:
        return f"{number} {prefixed}"
    half = (high - mean) / parse_quantity(f"1 {prefixed}", unit)
    return f"{number} +- {half:.{0 if half >= 10 else 1 if half >= 1 else 2}f} {prefixed}"
