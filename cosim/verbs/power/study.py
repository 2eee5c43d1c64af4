"""Supply power by block and by rail, as a simulator measures it and as the behavioral equations predict it.

    P          mean over the frames of V_DD times what a block draws from its own supply
    static     P where the circuit is settled, held over the span between two edges (`settled_windows`)
    dynamic    (P - static) t_step, an energy per frame: what currents that lag behind an edge take less or more
    energy     P t_step per frame, P t_step frames per inference

Charging a gate line costs no C V^2 here: the signal that charges the line is drawn in any case, and only its copies
lag, each by the charge C dV. Dynamic energy therefore has either sign, and depends on the edge, not on the length of
the frame. The drivers of clocks, pulses and reset deliver from V_DD and take back to ground; their power is V_DD times
the current that flows out.

`run_power` runs the study and writes its page, with power block by block, energies, areas, rails, and a figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically
from cosim.cells.blocks import outside_of
from cosim.compiler.design import Design, block_areas
from cosim.engines.behavioral.model import behavioral_power, run_samples
from cosim.engines.engine import Inference, Outcome, Progress, Run, count_elsewhere
from cosim.engines.simulation.read import meters_of, pushed_by, settled_windows
from cosim.engines.simulation.simulated import engine_named, meter_samples
from cosim.engines.table import BEHAVIORAL
from cosim.network.reference import valid_steps
from cosim.results.figures import COLORS, DOUBLE, FONT, GREY, Axes, Figure, picture_of, plain, styled
from cosim.results.html import Picture
from cosim.results.intervals import MOST, Interval, mean_interval, samples_to_sign, shows_sign
from cosim.results.kept_page import write_page
from cosim.results.page import Block, Page, Section, Table
from cosim.tasks.testset import Clipping, TestSet, find_clipping
from cosim.verbs.compile.cross_probing import cross_probe
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.compile.page import format_cells
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.samples import check_any, clear_failures, write_failures
from cosim.verbs.trust import say_elsewhere

TOTAL = "total"
DRIVERS = ("clocks", "reset", "pulses")
Array = NDArray[np.float64]
TOO_FEW = "too few"
_LEAST = 600  # pixels under which the picture's words cannot be read
_NANO = 1e9
_PICO, _MILLI2 = 1e12, 1e-6  # um2 in mm2


@dataclass(frozen=True)
class PowerStudy:
    """The mean power of each sample that counts: block or rail -> (n,), W.

    behavioral: by equations; total, static, rails: simulated, None without a simulator. Rails are: vdd, what
    transistors, capacitors and bias currents take from V_DD; vground, what pulling outputs take from V_DD through the
    readout's virtual ground, which passes the current of pushing outputs to ground; clocks, reset and pulses (of
    ladders and toggles), what their drivers take.
    """

    counted: TestSet
    behavioral: dict[str, Array]
    total: dict[str, Array] | None = None
    static: dict[str, Array] | None = None
    rails: dict[str, Array] | None = None
    failed: int = 0
    clipped: Clipping | None = None
    elsewhere: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class PowerRow:
    """The power, the energies and the areas of one block, or of all blocks.

    power_w, energy_frame_j, energy_inference_j: engine -> mean, None for an engine that did not run; difference:
    (behavioral - simulator) / mean of the simulator; static_w, dynamic_frame_j: simulated; areas: as drawn, um2.
    """

    power_w: dict[str, Interval | None]
    difference: Interval | None
    static_w: Interval | None
    dynamic_frame_j: Interval | None
    energy_frame_j: dict[str, Interval | None]
    energy_inference_j: dict[str, Interval | None]
    gate_area_um2: float
    capacitor_area_um2: float

    @property
    def means(self) -> list[Interval]:
        """Return all means of power and energy in the row."""
        by_engine = (self.power_w, self.energy_frame_j, self.energy_inference_j)
        found = (self.static_w, self.dynamic_frame_j, *(mean for means in by_engine for mean in means.values()))
        return [mean for mean in found if mean is not None]


@dataclass(frozen=True)
class RailRow:
    """The power and the energy per frame of one rail, simulated."""

    power_w: Interval
    energy_frame_j: Interval


@dataclass(frozen=True)
class PowerSummary:
    """The content of power.json; docs/how-to/power.md explains each field; frames: mean number of a sample's frames."""

    task: str
    technology: str
    corner: str
    celsius: float
    supply_v: float
    i_unit_a: float
    t_step_s: float
    transistors: int
    samples: int
    failed: int
    frames: float
    power_outside: tuple[str, ...]
    blocks: dict[str, PowerRow]
    total: PowerRow
    rails: dict[str, RailRow]
    clipped: Clipping | None
    elsewhere: dict[str, int]
    noise: int | None = None  # its seed

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the names of the engines that gave power figures."""
        return tuple(engine for engine, power in self.total.power_w.items() if power is not None)

    @property
    def rows(self) -> dict[str, PowerRow]:
        """Return the rows of all blocks by name, and TOTAL for all of them together."""
        return {**self.blocks, TOTAL: self.total}


def study_power(design: Design, test_set: TestSet, outcomes: Sequence[Outcome] | None, run: Run = Run()) -> PowerStudy:
    """Return the power of the samples, by equations and from the simulated outcomes of `meter_samples`.

    Only samples whose simulation succeeded count. Without outcomes, or if all failed, there are only the equations.
    """
    good = {k: outcome for k, outcome in enumerate(outcomes or ()) if isinstance(outcome, Inference)}
    failed, clipped = len(outcomes or ()) - len(good), find_clipping(design.network.encoding, test_set)
    counted = test_set.select(np.array([*good] or range(len(test_set.y))))
    behavioral = _behavioral(design, counted, run)
    if not good:
        return PowerStudy(counted, behavioral, failed=failed, clipped=clipped)
    supply, names = run.standing(design).technology.supply, tuple(meters_of(design.assembly))
    total, static = [], []
    for inference, frames in zip(good.values(), counted.lengths, strict=True):
        delivered = supply * inference.delivered
        _, weights = settled_windows(run.timing, design.assembly, int(frames))
        total.append(delivered[:frames].mean(axis=0))
        static.append((weights @ delivered[frames:]).mean(axis=0))
    mean = dict(zip(names, np.array(total).T, strict=True))
    settled = dict(zip(names, np.array(static).T, strict=True))
    simulated = _blocks(design, mean), _blocks(design, settled), _rails(design, mean)
    return PowerStudy(counted, behavioral, *simulated, failed, clipped, count_elsewhere([*good.values()]))


def tabulate_power(study: PowerStudy, engine: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of power.npz, name -> array: the power of every sample that counts, for `cosim diff`.

    indices, sums, lengths, y: as in `SampleTable`; figures: names such as `ngspice power cells`, made of engine,
    `power`, `static` or `rail`, and block or rail, (k,); power_w: (k, n), W.
    """
    counted = study.counted
    tables = {
        f"{BEHAVIORAL} power": study.behavioral, f"{engine} power": study.total, f"{engine} static": study.static,
        f"{engine} rail": study.rails,
    }  # fmt: skip
    rows = {f"{name} {part}": power for name, table in tables.items() for part, power in (table or {}).items()}
    blocks = {name: table for name, table in tables.items() if table and "rail" not in name}
    rows = {**{f"{name} {TOTAL}": _with_total(table)[TOTAL] for name, table in blocks.items()}, **rows}
    return {
        "indices": counted.indices,
        "sums": counted.sums,
        "lengths": counted.lengths,
        "y": counted.y,
        "figures": np.array(list(rows)),
        "power_w": np.array(list(rows.values())),
    }


def _blocks(design: Design, metered: dict[str, Array]) -> dict[str, Array]:
    """Return the power of each block from its meter; the readout's includes what outputs push into its source."""
    blocks = {block: metered[block] for block in design.assembly.blocks}
    return blocks | {"readout": blocks["readout"] + _pushed(design, metered)}


def _pushed(design: Design, metered: dict[str, Array]) -> Array:
    return sum((metered[pin] for pin in pushed_by(design.assembly)), np.zeros(len(metered["vground"])))


def _behavioral(design: Design, test_set: TestSet, run: Run) -> dict[str, Array]:
    lengths = test_set.lengths
    valid, trace = valid_steps(lengths, test_set.x.shape[1]), run_samples(design, test_set, run)
    blocks = behavioral_power(design, trace, run.timing, run.condition, run.chip)
    return {block: (power * valid).sum(axis=1) / lengths for block, power in blocks.items()}


def _rails(design: Design, mean: dict[str, Array]) -> dict[str, Array]:
    assembly, nothing = design.assembly, np.zeros(len(mean["vground"]))
    pulses = assembly.driven[len(assembly.phases) :]
    rails = {
        "vdd": sum((mean[block] for block in assembly.blocks), nothing) + mean["vground"],
        "vground": _pushed(design, mean) - mean["vground"],
        "clocks": sum((mean[pin] for pin in assembly.phases), nothing),
        "reset": mean[assembly.reset],
    }
    return rails | ({"pulses": sum((mean[pin] for pin in pulses), nothing)} if pulses else {})


def summarize_power(design: Design, study: PowerStudy, run: Run = Run()) -> PowerSummary:
    """Return a design's power and energies, in W and J, from the power of its samples."""
    technology, t_step = run.standing(design).technology, run.timing.t_step
    rows = _rows(design, study, run)
    return PowerSummary(
        task=design.network.task,
        technology=technology.name,
        corner=technology.corner,
        celsius=technology.celsius,
        supply_v=technology.supply,
        i_unit_a=design.i_unit,
        t_step_s=t_step,
        transistors=design.assembly.transistors,
        samples=len(study.counted.lengths),
        failed=study.failed,
        frames=float(study.counted.lengths.mean()),
        power_outside=outside_of(design.assembly.blocks),
        total=rows.pop(TOTAL),
        blocks=rows,
        rails={
            rail: RailRow(mean_interval(power), mean_interval(t_step * power))
            for rail, power in (study.rails or {}).items()
        },
        clipped=study.clipped,
        elsewhere=study.elsewhere,
        noise=None if run.noise is None else run.noise.seed,
    )


def _rows(design: Design, study: PowerStudy, run: Run) -> dict[str, PowerRow]:
    """Return the row of each block, and of TOTAL."""
    t_step = run.timing.t_step
    areas = {block: 1e12 * np.array(pair) for block, pair in block_areas(design).items()}
    areas[TOTAL] = np.sum(list(areas.values()), axis=0)
    behavioral, total, static = _with_total(study.behavioral), _with_total(study.total), _with_total(study.static)
    rows = {}
    for name in (*design.assembly.blocks, TOTAL):
        measured, settled = total.get(name), static.get(name)
        lag = None if measured is None or settled is None else t_step * _difference(measured, settled)
        powers = {run.engine: measured, BEHAVIORAL: behavioral[name]}
        frames = {engine: None if power is None else t_step * power for engine, power in powers.items()}
        whole = {engine: None if one is None else one * study.counted.lengths for engine, one in frames.items()}
        means = [{engine: _interval(found) for engine, found in one.items()} for one in (powers, frames, whole)]
        rows[name] = PowerRow(
            power_w=means[0],
            difference=_relative(behavioral[name], measured),
            static_w=_interval(settled),
            dynamic_frame_j=_interval(lag),
            energy_frame_j=means[1],
            energy_inference_j=means[2],
            gate_area_um2=round(float(areas[name][0]), 1),
            capacitor_area_um2=round(float(areas[name][1]), 1),
        )
    return rows


def _with_total(blocks: dict[str, Array] | None) -> dict[str, Array]:
    return {**blocks, TOTAL: np.sum(list(blocks.values()), axis=0)} if blocks else {}


def _difference(total: Array, static: Array) -> Array:
    """Return total - static, W; exactly 0 where they differ only by rounding."""
    return np.where(np.isclose(total, static, rtol=1e-9, atol=0), 0.0, total - static)


def _relative(behavioral: Array, measured: Array | None) -> Interval | None:
    """Return the relative error of the equations; None where nothing was measured, or nothing is drawn."""
    if measured is None or not measured.mean():
        return None
    return _interval((behavioral - measured) / measured.mean())


def _interval(values: Array | None) -> Interval | None:
    return None if values is None else mean_interval(values)


def power_page(design: Design, summary: PowerSummary, made_with: dict[str, str]) -> Page:
    """Return the page of a power study; made_with: name of the simulator -> its version, empty where none ran."""
    subject, total, first = subject_of(design), summary.total, summary.engines[0]
    power, energy = _mean(total.power_w[first], "W"), _mean(total.energy_inference_j[first], "J")
    frame = _mean(total.energy_frame_j[first], "J")
    engines = " beside ".join(summary.engines)
    noise = "" if summary.noise is None else f" Decisions have the noise of the devices, seed {summary.noise}."
    corner = f"{summary.corner}, {summary.celsius:g} °C, {summary.supply_v:g} V"
    differs = () if total.difference is None else ((f"{100 * total.difference.mean:+.2f} %", "behavioral beside it"),)
    page = Page(
        verb="power",
        subject=subject,
        title=f"{subject.name} on {summary.technology}: {power}, {energy} an inference",
        lead=f"Supply power of {summary.transistors} transistors of {summary.technology} ({corner}) on "
        f"{summary.samples} test samples of {summary.frames:g} frames of {format_quantity(summary.t_step_s, 's')}: "
        f"{engines}; {summary.failed} simulations failed. Means with 95 % intervals.{noise}",
        cards=(
            (power, f"mean supply power by {first}"),
            (frame, "a frame"),
            (energy, "an inference"),
            *differs,
            (f"{total.gate_area_um2:,.0f} um2", "gates as drawn"),
        ),
        notes=() if summary.clipped is None else (f"{summary.clipped}.",),
        sections=(
            Section("Power and area, block by block", (_picture(summary), _powers(summary))),
            Section("Energy", (_energies(summary), *_few(summary))),
            Section("Rails", _rail_table(summary)),
            Section("Simulated elsewhere", say_elsewhere(summary.elsewhere)),
            Section("What is not counted", (f"{', '.join(summary.power_outside)}.".capitalize(),)),
            *(Section(name, blocks, detail=True) for name, blocks in format_cells(design).items()),
            circuit_section(design),
        ),
        provenance=origins(design, made_with),
    )
    return cross_probe(page, design)


def _picture(summary: PowerSummary) -> Picture:
    caption = (
        "Power by block and engine; what of a frame's energy is dynamic, where a simulator ran; areas as drawn, "
        "without wiring."
    )
    return picture_of(draw_power(summary), caption, caption, _LEAST, "png")


def _powers(summary: PowerSummary) -> Table:
    engines = summary.engines
    differs = ("behavioral differs by",) if len(engines) > 1 else ()
    rows: list[tuple[str, ...]] = []
    for name, row in summary.rows.items():
        powers = (_mean(row.power_w[engine], "W") for engine in engines)
        other = (f"{100 * row.difference.mean:+.2f} %",) if row.difference else ("",) * len(differs)
        areas = (f"{area:,.0f} um2" for area in (row.gate_area_um2, row.capacitor_area_um2))
        rows.append((name, *powers, *other, *areas))
    return _table(("block", *(f"power, {engine}" for engine in engines), *differs, "gates", "capacitors"), rows)


def _energies(summary: PowerSummary) -> Table:
    first, simulated = summary.engines[0], len(summary.engines) > 1
    rows: list[tuple[str, ...]] = []
    for name, row in summary.rows.items():
        parts = (_mean(row.static_w, "W"), _signed(row.dynamic_frame_j, "J")) if simulated else ()
        energies = (_mean(found[first], "J") for found in (row.energy_frame_j, row.energy_inference_j))
        rows.append((name, *parts, *energies))
    parts = ("static power", "dynamic, a frame") if simulated else ()
    return _table(("block", *parts, "a frame", "an inference"), rows)


def _few(summary: PowerSummary) -> tuple[str, ...]:
    """Return a sentence that explains TOO_FEW, with the number of samples that would be enough; empty if not needed."""
    means = [mean for row in summary.rows.values() for mean in row.means]
    means += [mean for rail in summary.rails.values() for mean in (rail.power_w, rail.energy_frame_j)]
    unsure = [mean for mean in means if not shows_sign(mean)]
    if not any(TOO_FEW in cell for row in _energies(summary).rows for cell in row):
        return ()
    if summary.samples == 1:
        return ("Too few: one sample has no interval, so an energy's sign is not known; give more --samples.",)
    needed = [samples_to_sign(mean, summary.samples) for mean in unsure]
    known = [count for count in needed if count is not None]
    beyond = f", {len(needed) - len(known)} of {len(needed)} not even {MOST}" if len(known) < len(needed) else ""
    most = f"; about --samples {max(known)} would show it{beyond}" if known else ""
    return (f"Too few samples: the interval of the mean holds 0{most}.",)


def _rail_table(summary: PowerSummary) -> tuple[Block, ...]:
    rows = [(rail, _mean(row.power_w, "W"), _mean(row.energy_frame_j, "J")) for rail, row in summary.rails.items()]
    return (_table(("rail", "power", "a frame"), rows),) if rows else ()


def _signed(found: Interval | None, unit: str) -> str:
    """Format a mean that may have either sign; TOO_FEW if its interval does not show the sign."""
    return _mean(found, unit) if found is not None and shows_sign(found) else TOO_FEW


def _mean(found: Interval | None, unit: str) -> str:
    """Format a mean as "8.58 ± 0.21 nW"; TOO_FEW where the interval includes 0."""
    assert found is not None
    mean, high = found.mean, found.high
    if high is not None and not shows_sign(found):
        return TOO_FEW
    number, prefixed = format_quantity(mean, unit).split(" ")
    if high is None:
        return f"{number} {prefixed}"
    half = (high - mean) / parse_quantity(f"1 {prefixed}", unit)
    return f"{number} ± {half:.{0 if half >= 10 else 1 if half >= 1 else 2}f} {prefixed}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(head, tuple(rows), tuple(range(1, len(head))))


@styled
def draw_power(summary: PowerSummary) -> Figure:
    """Draw power by block, areas, and, if a simulator ran, dynamic energy."""
    simulated = len(summary.engines) > 1
    figure = Figure(figsize=(DOUBLE if simulated else 5.0, 3.0), layout="constrained")
    panels = figure.subplots(1, 3 if simulated else 2, width_ratios=(1.3, 1, 1) if simulated else (1.3, 1))
    _draw_stacks(panels[0], summary)
    _draw_areas(panels[-1], summary.blocks)
    if simulated:
        _draw_dynamic(panels[1], summary)
    plain(*panels)
    return figure


def _draw_stacks(axis: Axes, summary: PowerSummary) -> None:
    engines = summary.engines
    base = np.zeros(len(engines))
    for block, row in summary.blocks.items():
        powers = np.array([_NANO * found.mean for found in row.power_w.values() if found is not None])
        axis.bar(engines, powers, 0.55, base, color=COLORS[block], edgecolor=GREY, lw=0.4, label=block)
        base += powers
    intervals = [found for found in summary.total.power_w.values() if found is not None]
    halves = [_NANO * (found.high - found.mean) for found in intervals if found.high is not None]
    if halves:
        axis.errorbar(engines, base, halves, fmt="none", ecolor="black", elinewidth=0.9, capsize=3)
    axis.set_ylabel("supply power (nW)")
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.0)


def _draw_dynamic(axis: Axes, summary: PowerSummary) -> None:
    """Draw the energy per frame beyond the static one: of blocks, and of the drivers of clocks and pulses."""
    drivers = {rail: row.energy_frame_j for rail, row in summary.rails.items() if rail in DRIVERS}
    lags = {block: row.dynamic_frame_j for block, row in summary.blocks.items() if row.dynamic_frame_j is not None}
    parts = lags | drivers
    names = [name for name in parts if name not in ("bias", "reset")]  # constant; once an inference
    shown = [name in drivers or shows_sign(parts[name]) for name in names]
    means = [_PICO * parts[name].mean * known for name, known in zip(names, shown, strict=True)]
    highs = [parts[name].high if known else None for name, known in zip(names, shown, strict=True)]
    halves = [0.0 if high is None else _PICO * high - mean for high, mean in zip(highs, means, strict=True)]
    axis.barh(names, means, 0.6, xerr=halves, color=[COLORS.get(name, GREY) for name in names], error_kw={"lw": 0.9})
    for place, known in enumerate(shown):
        if not known:
            axis.text(0, place, " too few samples", va="center", fontsize=FONT)
    axis.axvline(0, color="black", lw=0.6)
    axis.invert_yaxis()
    axis.set_xlabel("dynamic energy a frame (pJ)")


def _draw_areas(axis: Axes, blocks: dict[str, PowerRow]) -> None:
    names = list(blocks)
    gates = np.array([_MILLI2 * blocks[name].gate_area_um2 for name in names])
    capacitors = np.array([_MILLI2 * blocks[name].capacitor_area_um2 for name in names])
    axis.barh(names, gates, 0.6, color=[COLORS[name] for name in names], edgecolor=GREY, lw=0.4)
    axis.barh(
        names, capacitors, 0.6, gates, color="white", edgecolor="#555555", hatch="////", lw=0.6, label="capacitors"
    )
    axis.invert_yaxis()
    axis.set_xlim(0, 1.05 * float((gates + capacitors).max()))
    axis.set_xlabel("area of gates (mm²)")
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))


def run_power(
    design: Design, test_set: TestSet, run: Run, progress: Progress, *, simulate: bool = True
) -> PowerSummary:
    """Measure the power of samples, compare it with the behavioral equations, and write power.json, figure and page.

    Returns the content of power.json. simulate: False for the behavioral equations alone. Raises SimulationError when
    every simulation failed.
    """
    write_texts(run.place, {})
    outcomes = None
    if simulate:
        clear_failures(run.place)
        outcomes = meter_samples(design, test_set, run, progress)
        write_failures(run.place, test_set, outcomes)
        check_any(outcomes, run.place)
    study = study_power(design, test_set, outcomes, run)
    summary = summarize_power(design, study, run)
    write_results(run.place, {"design.json": summarize(design, run.condition), "power.json": summary})
    write_atomically(run.place / "power.npz", seal_npz(tabulate_power(study, run.engine)))
    technology = run.standing(design).technology
    made_with = {run.engine: engine_named(run.engine).describe(technology).version} if simulate else {}
    page = power_page(design, summary, made_with)
    write_atomically(run.place / "power.png", page.pictures[0].content)
    write_page(run.place, page)
    return summary
