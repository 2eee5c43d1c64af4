"""A simulation of samples: its run, its page, and the files of its folder: results, decks of failed runs, waveforms.

waveforms.npz: `time_s`, every vector under its name, states and clocks likewise, and `units`, JSON. waveforms.raw: the
binary format of SPICE 3 as ngspice writes and loads it, doubles point by point (ngspice manual, chapter "Binary raw
file format"). waveforms.vcd: states and clocks as IEEE 1364 value changes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically, write_together, writing_into
from cosim.compiler.design import Design
from cosim.engines.engine import Failure, Inference, Outcome, Progress, Run, count_elsewhere, decided_by
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.simulated import engine_named, simulate_samples
from cosim.engines.table import engine_entry
from cosim.network.reference import pool_readout
from cosim.results.figures import Figure, figure_bytes, save_figure
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds, interval
from cosim.results.kept_page import write_page
from cosim.results.metrics import percent, within
from cosim.results.page import Page, Section, Table
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.sample_table import STACKED, tabulate_samples
from cosim.verbs.simulate.waveform_figure import draw_units, draw_waveforms
from cosim.verbs.simulate.waveforms import (
    ProbedInference,
    ends_of,
    judge_sample,
    labels_of,
    liveliest_cell,
    record,
    waves_of,
)
from cosim.verbs.trust import say_elsewhere
from cosim.verbs.words import network_name, say_answer, say_conditions, say_target

FILES = ("waveforms.npz", "waveforms.raw", "waveforms.vcd")
_KINDS = {"A": "current", "W": "power", "1": "notype"}
_NANO = 1e9
_FIRST, _CODES = 33, 94  # printable characters, of which value changes make their identifiers
FAILED = "failed"  # folder
_LEAST = 600  # pixels under which a picture's words cannot be read
_ROWS = 400  # of the table of samples
_WAVES = "Inputs, one unit's candidate with its thresholds, its state, the readout, the supply power."


def format_waveforms(recorded: ProbedInference, title: str) -> dict[str, bytes]:
    """Return the waveform files of `cosim simulate`, name -> bytes; the same waveforms give the same bytes."""
    formats = (format_npz(recorded), format_raw(recorded, title), format_vcd(recorded).encode())
    return dict(zip(FILES, formats, strict=True))


def format_npz(recorded: ProbedInference) -> bytes:
    """Return all vectors that `cosim simulate` recorded by name, with `units`, as the content of an .npz file."""
    digital = {**recorded.states, **recorded.logic}
    units = {"time_s": "s", **recorded.units, **dict.fromkeys(digital, "1")}
    arrays = {"time_s": recorded.time, **recorded.vectors, **digital, "units": np.array(json.dumps(units))}
    return seal_npz(arrays)


def format_raw(recorded: ProbedInference, title: str) -> bytes:
    """Return what `cosim simulate` recorded as a raw file of ngspice: time first, then vectors, states and clocks;
    names as `plain_names` writes them."""
    columns: dict[str, tuple[str, NDArray[np.float64]]] = {"time": ("time", recorded.time)}
    columns |= {name: (_KINDS[recorded.units[name]], values) for name, values in recorded.vectors.items()}
    columns |= {f"{name} s": (_KINDS["1"], values.astype(float)) for name, values in recorded.states.items()}
    columns |= {name: (_KINDS["1"], values.astype(float)) for name, values in recorded.logic.items()}
    names = plain_names(tuple(columns))
    lines = [
        f"Title: {_one_line(title)}",
        "Date: none",
        "Plotname: Transient Analysis",
        "Flags: real",
        f"No. Variables: {len(columns)}",
        f"No. Points: {len(recorded.time)}",
        "Variables:",
        *(f"\t{k}\t{names[name]}\t{kind}" for k, (name, (kind, _)) in enumerate(columns.items())),
        "Binary:",
    ]
    points = np.stack([values for _, values in columns.values()], axis=1)
    return ("\n".join(lines) + "\n").encode("ascii") + points.astype("<f8").tobytes()


def format_vcd(recorded: ProbedInference) -> str:
    """Return for `cosim simulate` a VCD file with states and clocks in steps of a nanosecond, each change once."""
    signals = {**recorded.logic, **recorded.states}
    names = plain_names(tuple(signals))
    codes = {name: _code(k) for k, name in enumerate(signals)}
    widths = {name: max(1, int(values.max(initial=0)).bit_length()) for name, values in signals.items()}
    lines = ["$timescale 1 ns $end", "$scope module network $end"]
    lines += [f"$var wire {widths[name]} {codes[name]} {names[name]} $end" for name in signals]
    lines += ["$upscope $end", "$enddefinitions $end"]
    ticks = np.rint(_NANO * recorded.time).astype(np.int64)
    changes: dict[int, list[str]] = {}
    for name, values in signals.items():
        turns = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]
        for turn in turns:
            changes.setdefault(int(ticks[turn]), []).append(_value(int(values[turn]), widths[name], codes[name]))
    for tick in sorted(changes):
        lines += [f"#{tick}", *changes[tick]]
    return "\n".join([*lines, f"#{int(ticks[-1])}", ""])


def plain_names(names: Sequence[str]) -> Mapping[str, str]:
    """Return names for the files of waveforms of `cosim simulate`, in letters, digits and _, as ngspice can take them
    in an expression: `layer1.weight[0,3]` is `layer1_weight_0_3`; those that would be one name are numbered."""
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        stem = plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "vector"
        count = 1
        while plain in used:
            count += 1
            plain = f"{stem}_{count}"
        used.add(plain)
        found[name] = plain
    return found


def _value(value: int, width: int, code: str) -> str:
    return f"{value}{code}" if width == 1 else f"b{value:b} {code}"


def _code(number: int) -> str:
    """Return the short identifier of a number: !, ", ... then two characters."""
    code = chr(_FIRST + number % _CODES)
    return code if number < _CODES else _code(number // _CODES - 1) + code


def _one_line(text: str) -> str:
    return " ".join(ascii(text)[1:-1].split())


def clear_failures(folder: Path) -> None:
    """Remove the decks of an earlier `cosim simulate`: those that fail again are written again."""
    with writing_into(folder / FAILED):
        for deck in (folder / FAILED).glob("sample_*.sp"):
            deck.unlink()


def write_failures(folder: Path, test_set: TestSet, outcomes: Sequence[Outcome]) -> None:
    """Write the deck of every sample whose simulation failed, with the reason on top."""
    texts = {}
    for index, outcome in zip(test_set.indices, outcomes, strict=True):
        if isinstance(outcome, Failure):
            reason = f"* failed: {outcome.kind.value}: {outcome.detail}\n"
            texts[f"sample_{index}_{deck_hash(outcome.deck)}.sp"] = reason + outcome.deck
    if texts:
        write_texts(folder / FAILED, texts)


def check_any(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Raise SimulationError when every simulation failed."""
    if any(isinstance(outcome, Inference) for outcome in outcomes):
        return
    failure = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
    raise SimulationError(
        f"all {len(outcomes)} simulations failed; the first: {failure.kind.value}: {failure.detail}; its deck is "
        f"in {folder / FAILED}"
    )


def write_simulation(folder: Path, design: Design, test_set: TestSet, outcomes: Sequence[Outcome], run: Run) -> None:
    """Write simulation.npz; samples shorter than the longest are padded, see `lengths`."""
    steps, cells, outputs = test_set.x.shape[1], len(design.assembly.decisions), len(design.assembly.outputs)
    status = ["ok" if isinstance(outcome, Inference) else outcome.kind.name.lower() for outcome in outcomes]
    kind = next((outcome.states.dtype for outcome in outcomes if isinstance(outcome, Inference)), np.int16)
    states = np.zeros((len(outcomes), steps, cells), dtype=kind)
    readout = np.zeros((len(outcomes), steps, outputs))
    for k, outcome in enumerate(outcomes):
        if isinstance(outcome, Inference):
            frames = len(outcome.states)
            states[k, :frames], readout[k, :frames] = outcome.states, outcome.readout
    made_with = engine_named(run.engine).describe(run.standing(design).technology)
    rows = tabulate_samples(design, test_set, {"": outcomes}, run.engine)
    arrays = {
        **{name: array[0] if name in STACKED else array for name, array in rows.items()},
        "states": states, "readout_a": readout, "status": np.array(status),
        "made_with": np.array(json.dumps(made_with.as_json(run.engine))),
    }  # fmt: skip
    write_atomically(folder / "simulation.npz", seal_npz(arrays))


def draw_sample(
    design: Design, test_set: TestSet, position: int, names: Sequence[str], run: Run
) -> tuple[Figure, ProbedInference]:
    """Draw the waveforms of the sample at `position` in the test set; return the picture and all that was recorded.

    names: of what is shown, as `watchable` has them. Raises SimulationError when its run fails, or its engine saves no
    current inside a transistor.
    """
    if not engine_entry(run.engine).inside:
        raise SimulationError(f"{run.engine} is not asked for currents inside a transistor")
    recorded = record(design, test_set.inputs(position), names, run)
    cells = tuple(design.assembly.decisions)
    verdict = judge_sample(design, test_set, position, ends_of(design, recorded), run)
    if len(names) == 1 and names[0] in cells:
        waves, labels = waves_of(design, recorded, names[0], run)
        return draw_waveforms(waves, replace(labels, verdict=verdict), run.timing), recorded
    memories = [name for name in names if name in cells] or cells[:1]
    labels = [replace(labels_of(design, name, run), verdict=verdict) for name in memories]
    return draw_units(design, recorded, names, labels, run.timing), recorded


def write_waveforms(folder: Path, design: Design, index: int, drawn: tuple[Figure, ProbedInference]) -> None:
    """Write the picture of waveforms, and the waveforms as files; index: of the sample in the full test set."""
    figure, recorded = drawn
    title = f"{network_name(design.network)}, test sample {index}"
    files = format_waveforms(recorded, title)
    write_together({folder / name: content for name, content in files.items()})
    save_figure(figure, folder / "waveforms.png")


def run_samples(
    design: Design, test_set: TestSet, run: Run, progress: Progress, watched: tuple[str, ...] | None = None
) -> list[Outcome]:
    """Simulate, keeping finished samples; write simulation.npz, the decks of failed runs, the page and, unless
    `watched` is None, the waveforms of the first sample that did not fail, of these names or of its liveliest cell.

    Raises SimulationError where waveforms cannot be had.
    """
    clear_failures(run.place)
    outcomes = simulate_test_set(design, test_set, run, progress)
    write_simulation(run.place, design, test_set, outcomes, run)
    write_results(run.place, {"design.json": summarize(design, run.condition)})
    first = next(((k, found) for k, found in enumerate(outcomes) if isinstance(found, Inference)), None)
    picture = None
    if watched is not None and first is not None:
        names = watched or (liveliest_cell(tuple(design.assembly.decisions), first[1].states),)
        drawn = draw_sample(design, test_set, first[0], names, run)
        write_waveforms(run.place, design, int(test_set.indices[first[0]]), drawn)
        picture = figure_bytes(drawn[0], "png")
    write_page(run.place, simulation_page(SimulationSubject(design, test_set, outcomes, run, picture)))
    return outcomes


def simulate_test_set(design: Design, test_set: TestSet, run: Run, progress: Progress) -> list[Outcome]:
    """Simulate for `cosim simulate` the samples of a test set, keeping finished ones; write the decks of those that
    failed."""
    outcomes = simulate_samples(design, test_set, run, progress)
    write_failures(run.place, test_set, outcomes)
    return outcomes


@dataclass(frozen=True)
class SimulationSubject:
    """Samples that a simulator ran, in their order; picture: PNG of the first that did not fail, None without."""

    design: Design
    test_set: TestSet
    outcomes: Sequence[Outcome]
    run: Run
    picture: bytes | None = None

    def answers(self, outcome: Inference) -> Answers:
        """Return (1,) the class that a readout is decided as, or (1, outputs) its numbers in multiples of the
        software's 1.0."""
        readout = outcome.readout[None] / (self.run.standing(self.design).bias_scale * self.design.i_unit)
        pooled = pool_readout(readout, np.array([len(outcome.readout)]), self.design.network.readout.pooling)
        return decided_by([outcome], self.test_set.target.answers(pooled))

    def right(self, place: int, outcome: Inference) -> bool:
        """Tell whether the simulated answer to the sample at `place` is right."""
        return bool(self.test_set.target.same(self.answers(outcome), self.test_set.y[place : place + 1])[0])


def simulation_page(found: SimulationSubject) -> Page:
    """Return the page of simulated samples."""
    design, run = found.design, found.run
    subject, technology = subject_of(design), run.standing(design).technology
    good = [(k, one) for k, one in enumerate(found.outcomes) if isinstance(one, Inference)]
    right = sum(found.right(k, one) for k, one in good)
    count, total = len(good), len(found.outcomes)
    verdict, cards = f"all {total} simulations failed", [(f"{count} of {total}", "samples simulated")]
    if good:
        share = interval(right, count)
        accuracy, bounds = percent(share[0]), within(IntervalEnds(*share[1:]))
        power = format_quantity(float(np.mean([one.power_w for _, one in good])), "W")
        verdict = f"{accuracy} of {count} samples decided right {bounds}"
        cards += [(accuracy, f"accuracy of the transistors {bounds}"), (power, "mean supply power")]
    made_with = engine_named(run.engine).describe(technology)
    return Page(
        verb="simulate",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {verdict}",
        lead=f"{total} test samples by {run.engine} on {design.assembly.transistors} transistors of {technology.name} "
        f"({say_conditions(technology)}); {total - count} simulations failed.",
        cards=tuple(cards),
        sections=(
            Section("One inference", _waveforms(found)),
            Section("Every sample", _samples(found)),
            Section("Simulated elsewhere", say_elsewhere(count_elsewhere(found.outcomes))),
            circuit_section(design),
        ),
        provenance=origins(design, {run.engine: made_with.version}),
    )


def _waveforms(found: SimulationSubject) -> tuple[str | Picture, ...]:
    first = next(((k, one) for k, one in enumerate(found.outcomes) if isinstance(one, Inference)), None)
    if found.picture is None or first is None:
        return ()
    place, outcome = first
    network, test_set = found.design.network, found.test_set
    caption = (
        f"Test sample {test_set.indices[place]}, {say_target(network, test_set.y[place])}; decided: "
        f"{say_answer(network, found.answers(outcome)[0])} by {found.run.engine}. {_WAVES}"
    )
    return (Picture("png", found.picture, caption, caption, _LEAST),)


def _samples(found: SimulationSubject) -> tuple[Table | str, ...]:
    """Return a table with a row for each of the first _ROWS samples, and where the others are."""
    rows = [_row(found, k, outcome) for k, outcome in enumerate(found.outcomes[:_ROWS])]
    wanted = "class" if found.test_set.tolerance is None else "target"
    table = Table(("sample", wanted, "decided", "power"), tuple(rows), (0, 3), tall=True)
    more = len(found.outcomes) - _ROWS
    return (table, f"And {more} more: simulation.npz has all.") if more > 0 else (table,)


def _row(found: SimulationSubject, place: int, outcome: Outcome) -> tuple[str, ...]:
    test_set, network = found.test_set, found.design.network
    known = str(test_set.indices[place]), say_answer(network, test_set.y[place])
    if not isinstance(outcome, Inference):
        return (*known, f"failed: {outcome.kind.value}", "")
    return (*known, say_answer(network, found.answers(outcome)[0]), format_quantity(outcome.power_w, "W"))
