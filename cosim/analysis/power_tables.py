"""Supply power as text: what fits a terminal."""

from collections.abc import Sequence
from typing import Any

from cosim.analysis.power import TOTAL
from cosim.units import format_quantity, parse_quantity

_WIDE, _NARROW = 21, 12  # columns with and without an interval


def format_power(summary: dict[str, Any]) -> list[str]:
    """The tables of `summarize_power`, under 100 columns: power and area, energies, rails."""
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
        parts = [_mean(row["static_w"], "W"), _mean(row["dynamic_frame_j"], "J")] if simulated else []
        energies = [_mean(row[key][engines[0]], "J") for key in ("energy_frame_j", "energy_inference_j")]
        lines.append(_line(name, [*parts, *energies]))
    if simulated:
        lines += ["", _line("rail", ("power", "a frame"))]
        for rail, row in summary["rails"].items():
            lines.append(_line(rail, (_mean(row["power_w"], "W"), _mean(row["energy_frame_j"], "J"))))
    return lines


def _line(name: str, wide: Sequence[str], narrow: Sequence[str] = ()) -> str:
    cells = [f"{cell:>{_WIDE}}" for cell in wide] + [f"{cell:>{_NARROW}}" for cell in narrow]
    return f"{name:8}" + "".join(cells)


def _mean(interval: dict[str, float | None], unit: str) -> str:
    """8.58 +- 0.21 nW."""
    mean, high = interval["mean"], interval["high"]
    assert mean is not None
    number, prefixed = format_quantity(mean, unit).split(" ")
    if high is None:
        return f"{number} {prefixed}"
    half = (high - mean) / parse_quantity(f"1 {prefixed}", unit)
    return f"{number} +- {half:.{0 if half >= 10 else 1 if half >= 1 else 2}f} {prefixed}"
