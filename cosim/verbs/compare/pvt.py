"""A comparison over process, supply and temperature (PVT): its conditions, run, worst conditions, page and figure."""

# the stubs of matplotlib are partial
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, TwoSlopeNorm
from matplotlib.ticker import NullLocator

from cosim.base.errors import InputError, SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically
from cosim.cells.blocks import OUTSIDE, outside_of
from cosim.circuit.deck import device_sizes
from cosim.compiler.design import Design
from cosim.engines.engine import Outcome, Progress, Run, part_of
from cosim.engines.simulation.audit import Audit, AuditableRun, audit_conditions
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.table import simulator_beside
from cosim.results.figures import (
    BLACK,
    BLUE_TO_RED,
    DOUBLE,
    FONT,
    REDS,
    Axes,
    Figure,
    few_ticks,
    picture_of,
    styled,
)
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds
from cosim.results.kept_page import write_page
from cosim.results.metrics import Estimate, percent, within
from cosim.results.page import Page, Section, Table
from cosim.tasks.testset import Clipping, TestSet, find_clipping
from cosim.technology.conditions import ConditionGrid, at, format_conditions
from cosim.technology.foundry import device_cards, read_section
from cosim.technology.types import Technology
from cosim.verbs.bias import WORDS, Bias, bias_words, biased
from cosim.verbs.compare.agreement import ComparisonSummary, compare_engines, summarize_comparison
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.samples import clear_failures, simulate_test_set, tabulate_samples
from cosim.verbs.trust import say_audit

_NAMED = 6  # conditions that are named, where there are more
_LEAST = 700  # pixels under which the picture's words cannot be read
_DARK = 0.6  # of the colours: beyond, digits are white
_WHITE = 1e-12  # per cent


@dataclass(frozen=True)
class PvtCondition:
    """Results in one condition: corner, temperature, degree Celsius, and supply, V.

    power_w: mean supply power, W; elsewhere: number of samples that something else ran in the simulator's place;
    measured: metric -> estimate, for specs. Where every simulation failed, agreements are 0, and interval, accuracy and
    power None.
    """

    corner: str
    celsius: float
    supply_v: float
    samples: int
    failed: int
    state_agreement: float
    task_agreement: float
    task_agreement_interval: IntervalEnds | None
    accuracy: float | None
    power_w: float | None
    elsewhere: int = 0
    measured: dict[str, Estimate] = field(default_factory=dict[str, Estimate])


@dataclass(frozen=True)
class Sweep:
    """Results of a comparison in every condition, and the worst of these conditions.

    worst: empty if all conditions have equal agreements; failed: number of failed simulations; audit: ngspice's check
    of some samples; bias_assumed: phrase that says where the bias currents are assumed to come from.
    """

    bias: Bias
    clipped: Clipping | None
    conditions: tuple[PvtCondition, ...]
    worst: tuple[PvtCondition, ...]
    failed: int
    power_outside: tuple[str, ...]
    audit: Audit | None = None
    bias_assumed: str = WORDS["constant"]


def run_pvt(
    design: Design,
    test_set: TestSet,
    run: Run,
    progress: Progress,
    grid: ConditionGrid,
    *,
    audit: int = 0,
    bias: Bias = "constant",
    finished: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Simulate the samples in every condition; write pvt.json, pvt.png and the page, and return the first's content.

    The network is compiled once, at the nominal point. progress: (samples done, total) of all conditions and the audit;
    audit: number of samples, over all conditions, that ngspice runs as well; bias: how bias currents change with the
    condition, as in `biased`; finished: called with a line of text after each condition and after the audit.
    """
    conditions = pvt_grid(design.technology, grid)
    sizes = device_sizes(design.assembly.circuit)
    for technology in conditions:
        device_cards(technology, sizes)  # what a library does not have is said before the first run
    write_texts(run.place, {})
    clear_failures(run.place)
    summaries: list[ComparisonSummary | None] = []
    runs: list[AuditableRun] = []
    found: dict[str, list[Outcome] | None] = {}
    count = len(test_set.y)
    total = len(conditions) * count + min(audit, len(conditions) * count)
    for k, technology in enumerate(conditions):
        name = format_conditions(technology)
        where = f"{k + 1}/{len(conditions)} {name}"
        try:
            there = replace(run, condition=biased(design, technology, bias, simulator_beside(run.engine, technology)))
        except SimulationError as error:
            summaries.append(None)
            found[name] = None
            finished(f"{where}: {error}")
            continue
        found[name] = outcomes = simulate_test_set(design, test_set, there, part_of(progress, k * count, total))
        runs.append(AuditableRun(design, test_set, outcomes, there))
        comparison = compare_engines(design, test_set, outcomes, there)
        summaries.append(None if comparison is None else summarize_comparison(comparison))
        finished(where)
    sweep = replace(
        summarize_pvt(conditions, summaries, count, bias),
        clipped=find_clipping(design.network.encoding, test_set),
        power_outside=outside_of(design.assembly.blocks),
        bias_assumed=bias_words(design, bias),
    )
    if audit:
        audited = part_of(progress, len(conditions) * count, total)
        sweep = replace(sweep, audit=audit_conditions(runs, audit, audited))
        finished(f"audit of {audit}")
    rows = tabulate_samples(design, test_set, found, run.engine)
    write_atomically(run.place / "pvt.npz", seal_npz({**rows, "conditions": np.array(tuple(found))}))
    _write_sweep(design, sweep, run)
    return sweep


def _write_sweep(design: Design, sweep: Sweep, run: Run) -> None:
    version = engine_named(run.engine).describe(run.standing(design).technology).version
    page = pvt_page(design, sweep, {run.engine: version})
    write_results(run.place, {"design.json": summarize(design), "pvt.json": sweep})
    write_atomically(run.place / "pvt.png", page.pictures[0].content)
    write_page(run.place, page)


def pvt_grid(technology: Technology, grid: ConditionGrid = ConditionGrid()) -> tuple[Technology, ...]:
    """Return the technology in each condition of a grid, such as those of `cosim compare --pvt`, each once.

    Raises InputError when the technology lacks one of the corners, its devices are not made for one of the supplies, or
    the section of a corner is missing in the library.
    """
    most = round(max(grid.supplies) * technology.supply, 6)
    if most > technology.supply_max:
        raise InputError(
            f"the grid of conditions has a supply of {most:g} V; {technology.name} takes at most "
            f"{technology.supply_max:g} V. Choose lower supplies for the grid, or lower the technology's supply"
        )
    library = technology.library
    corners = [at(technology, corner).corner for corner in grid.corners or library.sections]
    for corner in corners:
        read_section(library.file, library.sections[corner], library.also)
    places = product(corners, grid.celsius, grid.supplies)
    found = (at(technology, corner, celsius, round(share * technology.supply, 6)) for corner, celsius, share in places)
    return tuple({(one.corner, one.celsius, one.supply): one for one in found}.values())


def summarize_pvt(
    conditions: Sequence[Technology],
    summaries: Sequence[ComparisonSummary | None],
    samples: int,
    bias: Bias = "constant",
) -> Sweep:
    """Summarize a sweep: one row for each condition, and the worst conditions.

    summaries: of the comparison in each condition, None if every simulation failed; samples: number that should run in
    each condition. The worst condition has the smallest task agreement, then the smallest state agreement; both are 0
    where all simulations failed.
    """
    rows = tuple(_condition(there, summary, samples) for there, summary in zip(conditions, summaries, strict=True))
    ranks = [(row.task_agreement, row.state_agreement) for row in rows]
    worst = tuple(row for row, rank in zip(rows, ranks, strict=True) if rank == min(ranks))
    shown = worst if len(worst) < len(rows) else ()
    return Sweep(bias, None, rows, shown, sum(row.failed for row in rows), OUTSIDE, bias_assumed=WORDS[bias])


def middle_condition(sweep: Sweep) -> PvtCondition | None:
    """Return the first corner's condition at the middle temperature and supply; None where its power is unknown.

    In the default grid it is the nominal condition.
    """
    celsius, supplies = (sorted({getattr(row, name) for row in sweep.conditions}) for name in ("celsius", "supply_v"))
    wanted = sweep.conditions[0].corner, celsius[(len(celsius) - 1) // 2], supplies[(len(supplies) - 1) // 2]
    found = (row for row in sweep.conditions if (row.corner, row.celsius, row.supply_v) == wanted)
    return next((row for row in found if row.power_w is not None), None)


def _condition(there: Technology, found: ComparisonSummary | None, samples: int) -> PvtCondition:
    where = there.corner, there.celsius, there.supply
    if found is None:
        return PvtCondition(*where, 0, samples, 0.0, 0.0, None, None, None)
    same = found.state_agreement, found.task_agreement, found.task_agreement_interval
    right, power = found.accuracy[found.simulator], found.power_w[found.simulator]
    return PvtCondition(
        *where, found.samples, found.failed, *same, right, power, sum(found.elsewhere.values()), found.measured
    )


def pvt_page(design: Design, sweep: Sweep, made_with: dict[str, str]) -> Page:
    """Return the page of a sweep over conditions. made_with: simulator -> version."""
    subject, rows = subject_of(design), sweep.conditions
    one = (sweep.worst or rows)[0]
    bounds = within(one.task_agreement_interval or IntervalEnds(0.0, 1.0))
    count, simulator = len(rows), ", ".join(made_with)
    powers = [row.power_w for row in rows if row.power_w is not None]
    span = " to ".join(format_quantity(power, "W") for power in (min(powers), max(powers))) if powers else "none"
    verdict = f"at worst {percent(one.task_agreement)} of decisions as software {bounds}"
    return Page(
        verb="compare --pvt",
        subject=subject,
        title=f"{subject.name} on {design.technology.name} in {count} conditions, {sweep.bias} bias: {verdict}",
        lead=f"{one.samples + one.failed} test samples in each of {count} corners, temperatures and supplies, by "
        f"{simulator} on {design.assembly.transistors} transistors compiled once; {sweep.failed} simulations failed.",
        answer=f"{say_worst(sweep)} Assumed: {say_basis(sweep)}.",
        cards=(
            (percent(one.task_agreement), f"decisions as software at worst {bounds}"),
            (percent(min(row.state_agreement for row in rows), 2), "of the states equal the software's at worst"),
            (span, "mean supply power"),
            (str(sweep.failed), "simulations failed"),
        ),
        notes=() if sweep.clipped is None else (f"{sweep.clipped}.",),
        sections=(
            Section("States and decisions equal to the software's", (_picture(sweep),)),
            Section("Every condition", (condition_table(sweep), f"Not in power: {', '.join(sweep.power_outside)}.")),
            Section("Audit", tuple(f"{line}." for line in say_audit(sweep.audit))),
            circuit_section(design),
        ),
        provenance=origins(design, made_with),
    )


def say_worst(sweep: Sweep) -> str:
    """Return a sentence that names the worst conditions of a sweep."""
    if not sweep.worst:
        return "All conditions have equal figures."
    places = [", ".join(_place(row)) for row in sweep.worst]
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"Worst: {'; '.join(places[:_NAMED])}{more}."


def _picture(sweep: Sweep) -> Picture:
    caption = (
        "A column for each corner: states that differ from the software's, on a logarithmic scale; samples decided "
        "otherwise than the software decides; power over that of the framed condition."
    )
    alt = f"{caption} {say_worst(sweep)}"
    return picture_of(draw_pvt(sweep), alt, caption, _LEAST, "png")


def condition_table(sweep: Sweep) -> Table:
    """Return the table with the figures of every condition of a sweep."""
    head = ("corner", "temperature", "supply", "states", "decisions", "95 % interval", "accuracy", "power")
    return Table(head, tuple(map(_cells, sweep.conditions)), tuple(range(1, len(head))))


def _place(row: PvtCondition) -> tuple[str, str, str]:
    return row.corner, f"{row.celsius:g} °C", f"{row.supply_v:.4g} V"


def _cells(row: PvtCondition) -> tuple[str, ...]:
    if row.accuracy is None or row.power_w is None or row.task_agreement_interval is None:
        return (*_place(row), "failed", "", "", "", "")
    same = percent(row.state_agreement, 2), percent(row.task_agreement), within(row.task_agreement_interval)
    return (*_place(row), *same, percent(row.accuracy), format_quantity(row.power_w, "W"))


def say_basis(sweep: Sweep) -> str:
    """Return in words where a sweep's bias currents come from; for ideal sources also which options change that."""
    ideal = sweep.bias_assumed == WORDS["constant"]
    return sweep.bias_assumed + ("; for those of a chip, add --bias reference or --bias tracking" if ideal else "")


@dataclass(frozen=True)
class _Layer:
    """One row of heat maps, which shows one figure in every condition.

    name: label of its colour bar; value: the figure of a condition, None if unknown; text: formats the figure; colors,
    norm: colour map and scale; whole: the figure is a whole number.
    """

    name: str
    value: Callable[[PvtCondition], float | None]
    text: Callable[[float], str]
    colors: LinearSegmentedColormap
    norm: Normalize
    whole: bool = False


@styled
def draw_pvt(sweep: Sweep) -> Figure:
    """Draw wrong states, changed decisions and power of each condition as heat maps, with one column for each corner.

    The scale of wrong states is logarithmic, so that one in a thousand is visible next to one in ten. Power is relative
    to the middle condition, which has a frame, in per cent. A condition where every simulation failed is crossed out.
    """
    corners = list(dict.fromkeys(row.corner for row in sweep.conditions))
    layers = _layers(sweep)
    columns = len(corners) * len({row.celsius for row in sweep.conditions})
    height = 0.8 * len(layers) + 0.2 * len(layers) * len({row.supply_v for row in sweep.conditions})
    figure = Figure(figsize=(max(DOUBLE, 1.2 + 0.4 * columns), 0.8 + height), layout="constrained")
    panels = figure.subplots(len(layers), len(corners), sharex=True, sharey=True, squeeze=False)
    for layer, axes in zip(layers, panels, strict=True):
        for axis, corner in zip(axes, corners, strict=True):
            _draw_layer(axis, layer, sweep, corner)
        bar = figure.colorbar(axes[0].collections[0], ax=list(axes), pad=0.01, aspect=14)
        bar.set_label(layer.name, fontsize=FONT)
        bar.ax.tick_params(labelsize=FONT)
        bar.outline.set_visible(False)
        _mark_bar(bar.ax, layer)
        axes[0].set_ylabel("supply (V)")
    for axis, corner in zip(panels[0], corners, strict=True):
        axis.set_title(corner, fontsize=9)
    figure.supxlabel("temperature (°C)", fontsize=FONT)
    middle, samples = middle_condition(sweep), max(row.samples for row in sweep.conditions)
    power = f"; framed: {', '.join(_place(middle))}, {format_quantity(middle.power_w or 0.0, 'W')}" if middle else ""
    figure.suptitle(f"{samples} samples in each of {len(sweep.conditions)} conditions{power}", fontsize=9)
    return figure


def _mark_bar(axis: Axes, layer: _Layer) -> None:
    """Write numbers at a colour bar, in plain decimals instead of powers of ten."""
    if isinstance(layer.norm, LogNorm):
        low, high = axis.get_ylim()
        found = [digit * 10.0**power for power in range(-6, 3) for digit in (1, 2, 5)]
        axis.set_yticks([value for value in found if low <= value <= high])
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        few_ticks(axis, "y", 4, integer=layer.whole)


def _draw_layer(axis: Axes, layer: _Layer, sweep: Sweep, corner: str) -> None:
    celsius = sorted({row.celsius for row in sweep.conditions})
    supplies = sorted({row.supply_v for row in sweep.conditions})
    middle = middle_condition(sweep)
    grid = np.full((len(supplies), len(celsius)), np.nan)
    for row in (row for row in sweep.conditions if row.corner == corner):
        y, x = supplies.index(row.supply_v), celsius.index(row.celsius)
        value = layer.value(row)
        if value is None:
            axis.plot(x, y, "x", color=BLACK, ms=8)
            continue
        grid[y, x] = value
        share = float(layer.norm(value)) if value > 0 or not isinstance(layer.norm, LogNorm) else 0.0
        dark = abs(share - 0.5) > 0.4 if layer.colors is BLUE_TO_RED else share > _DARK
        axis.text(x, y, layer.text(value), ha="center", va="center", fontsize=FONT, color="white" if dark else BLACK)
        if row is middle:
            axis.plot(
                x + np.array([-1, 1, 1, -1, -1]) * 0.47, y + np.array([-1, -1, 1, 1, -1]) * 0.47, color=BLACK, lw=1.4
            )
    axis.pcolormesh(
        np.arange(len(celsius) + 1) - 0.5, np.arange(len(supplies) + 1) - 0.5, np.ma.masked_invalid(grid),
        cmap=layer.colors, norm=layer.norm, zorder=0, edgecolors="white", linewidths=1.2,
    )  # fmt: skip
    axis.set_xticks(range(len(celsius)), [f"{t:g}" for t in celsius])
    axis.set_yticks(range(len(supplies)), [f"{v:g}" for v in supplies])
    axis.tick_params(labelsize=FONT, length=0)
    axis.spines[:].set_visible(False)


def _layers(sweep: Sweep) -> tuple[_Layer, ...]:
    """Return the rows of heat maps, each with a colour scale that fits its values."""
    middle = middle_condition(sweep)
    reference = middle.power_w if middle else None

    def wrong(row: PvtCondition) -> float | None:
        return None if row.accuracy is None else 100 * (1 - row.state_agreement)

    def changed(row: PvtCondition) -> float | None:
        return None if row.accuracy is None else float(row.samples - round(row.task_agreement * row.samples))

    def power(row: PvtCondition) -> float | None:
        return None if row.power_w is None or not reference else 100 * (row.power_w / reference - 1)

    found = [value for row in sweep.conditions if (value := wrong(row)) is not None and value > _WHITE]
    low, high = (min(found), max(found)) if found else (0.1, 1.0)
    decisions = [value for row in sweep.conditions if (value := changed(row)) is not None]
    spread = max([abs(value) for row in sweep.conditions if (value := power(row)) is not None] or [0.0]) or 1.0
    samples = max(row.samples for row in sweep.conditions)
    return (
        _Layer("wrong states (%)", wrong, _short, REDS, LogNorm(low / 1.5, max(high, 1.5 * low))),
        _Layer(
            f"decisions changed\nof {samples}",
            changed,
            "{:.0f}".format,
            REDS,
            Normalize(0, max([*decisions, 1.0])),
            whole=True,
        ),
        _Layer("power over\nframed (%)", power, _signed, BLUE_TO_RED, TwoSlopeNorm(0.0, -spread, spread)),
    )


def _short(value: float) -> str:
    """Format a share, given in per cent, with at most four characters."""
    if value < _WHITE:
        return "0"
    return (
        "<.01" if value < 0.005 else f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"
    )


def _signed(value: float) -> str:
    """Format a change, given in per cent, with its sign."""
    text = "0" if abs(value) < 0.05 else f"{value:+.1f}" if abs(value) < 10 else f"{value:+.0f}"
    return text.replace("-", "\N{MINUS SIGN}")
