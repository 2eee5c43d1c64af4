"""The table of supply power in the terminal: power and area by block, energies, rails."""

from collections.abc import Iterator, Sequence

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.results.intervals import MOST, Interval, samples_to_sign, shows_sign
from cosim.verbs.power.study import PowerRow, PowerSummary, RailRow
from cosim.verbs.tables import format_outside
from cosim.verbs.trust import format_elsewhere

TOO_FEW = "too few"
_WIDE, _NARROW = 21, 12  # columns with and without an interval


def format_power(summary: PowerSummary) -> list[str]:
    """Return the tables of `summarize_power`, under 100 columns: power and area, energies, rails.

    A mean whose interval includes 0 is no figure; how many samples would make it one is said below.
    """
    rows, engines, simulated = summary.rows, summary.engines, len(summary.engines) > 1
    counts = f"{summary.samples} samples of {summary.frames:g} frames of {format_quantity(summary.t_step_s, 's')}"
    lines = [
        f"{counts}, {summary.failed} failed; {summary.transistors} transistors; means with 95 % intervals",
        "",
        _columns("power", engines, (*(("differs",) if simulated else ()), "gates", "capacitors")),
    ]
    for name, row in rows.items():
        powers = [format_mean(row.power_w[engine], "W") for engine in engines]
        differs = [f"{100 * row.difference.mean:+.2f} %"] if row.difference else []
        areas = [f"{area:.0f} um2" for area in (row.gate_area_um2, row.capacitor_area_um2)]
        lines.append(_columns(name, powers, [*differs, *areas]))
    parts = ("static", "dynamic, a frame") if simulated else ()
    lines += ["", _columns("energy", (*parts, "a frame", "an inference"))]
    for name, row in rows.items():
        parts = [format_mean(row.static_w, "W"), format_signed(row.dynamic_frame_j, "J")] if simulated else []
        energies = [format_mean(found[engines[0]], "J") for found in (row.energy_frame_j, row.energy_inference_j)]
        lines.append(_columns(name, [*parts, *energies]))
    if simulated:
        lines += ["", _columns("rail", ("power", "a frame"))]
        for rail, row in summary.rails.items():
            lines.append(_columns(rail, (format_mean(row.power_w, "W"), format_mean(row.energy_frame_j, "J"))))
    last = format_elsewhere(summary.elsewhere) + format_outside(summary.power_outside)
    noisy = [] if summary.noise is None else [f"noise             of the devices, seed {summary.noise}"]
    return [*lines, "", *noisy, *format_few(summary, lines), *last]


def format_few(summary: PowerSummary, lines: Sequence[str]) -> list[str]:
    """Return the line that explains TOO_FEW, with how many samples would be enough; none where no line has it."""
    if not any(TOO_FEW in line for line in lines):
        return []
    if summary.samples == 1:
        return [f"{TOO_FEW:18}one sample has no interval, so an energy's sign is not known; give more --samples"]
    rows = [*summary.rows.values(), *summary.rails.values()]
    means = [mean for row in rows for mean in _means(row) if not shows_sign(mean)]
    needed = [samples_to_sign(mean, summary.samples) for mean in means]
    known = [count for count in needed if count is not None]
    beyond = f", {len(needed) - len(known)} of {len(needed)} not even {MOST}" if len(known) < len(needed) else ""
    most = f"; about --samples {max(known)} would show it{beyond}" if known else ""
    return [f"{TOO_FEW:18}samples: the interval of the mean holds 0{most}"]


def _means(row: PowerRow | RailRow) -> Iterator[Interval]:
    """Yield every mean of a row that a table shows."""
    if isinstance(row, RailRow):
        yield from (row.power_w, row.energy_frame_j)
        return
    engines = (row.power_w, row.energy_frame_j, row.energy_inference_j)
    found = (row.static_w, row.dynamic_frame_j, *(mean for means in engines for mean in means.values()))
    yield from (mean for mean in found if mean is not None)


def _columns(name: str, wide: Sequence[str], narrow: Sequence[str] = ()) -> str:
    cells = [f"{cell:>{_WIDE}}" for cell in wide] + [f"{cell:>{_NARROW}}" for cell in narrow]
    return f"{name:8}" + "".join(cells)


def format_signed(found: Interval | None, unit: str) -> str:
    """Format a mean that may have either sign: without an interval it has none that is known."""
    return format_mean(found, unit) if found is not None and shows_sign(found) else TOO_FEW


def format_mean(found: Interval | None, unit: str) -> str:
    """Format a mean as 8.58 +- 0.21 nW; TOO_FEW where the interval includes 0."""
    assert found is not None
    mean, high = found.mean, found.high
    if high is not None and not shows_sign(found):
        return TOO_FEW
    number, prefixed = format_quantity(mean, unit).split(" ")
    if high is None:
        return f"{number} {prefixed}"
    half = (high - mean) / parse_quantity(f"1 {prefixed}", unit)
    return f"{number} +- {half:.{0 if half >= 10 else 1 if half >= 1 else 2}f} {prefixed}"
