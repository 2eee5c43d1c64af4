"""Comparison of two Monte Carlo runs: yield and figures, chips whose verdict turned and by which unit, and samples.

A chip counts if it meets the specs. `find_cause` names the unit whose transistors turn the verdict on a chip. Both runs
have the same circuit, so the chip that fails can be given the transistors of the chip that counts, unit by unit:

    failing chip, with the transistors of unit u from the chip that counts  ->  counts (u alone is the cause), or not

It runs the behavioral model on the run's samples, as `cosim montecarlo --contributions` does when it freezes groups.
The unit that turns the verdict comes first; of several, the one with the highest accuracy. If none turns it alone, the
one comes first that leaves the fewest cells that do not reset, then the one with the highest accuracy. A bias line that
cells share is a unit of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.compiler.design import Design
from cosim.engines.engine import Progress
from cosim.results.metrics import CHIP_METRICS, METRICS
from cosim.technology.types import Technology
from cosim.units.builder import instance, net
from cosim.variation.draws import Chip
from cosim.verbs.diff.difference import (
    APART,
    PAIRED,
    Cause,
    Change,
    ChangedUnit,
    ChipFlip,
    ChipTurn,
    Difference,
    Pairing,
    Scatter,
    Verdict,
    names_of,
    pair_things,
    rank,
)
from cosim.verbs.diff.runs import ChipRun
from cosim.verbs.montecarlo.chip_study import stored_chip
from cosim.verbs.montecarlo.chips import ChipRecord, Figures
from cosim.verbs.montecarlo.contributions import mixed_chip
from cosim.verbs.montecarlo.keep import Places, load_trial
from cosim.verbs.montecarlo.spec import Spec, parse_spec, passes_specs
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

CAUSES = 20  # chips whose cause is looked for: about a second each
_DRAWS = ("kind", "seed", "sampling", "replicates")  # of a plan: where they are the same, so is a chip of one number


def find_cause(
    fails: Trial, failing: ChipRecord, counts: Trial, counting: ChipRecord, specs: Sequence[Spec]
) -> Cause | None:
    """Return the unit whose transistors explain why a chip fails in one run and counts (meets specs) in another.

    fails, counts: the two runs; failing, counting: the chip in each. The unit's draws, taken from the chip that counts,
    do most to make the failing chip count. None where both chips have the same draws.
    """
    own, other = stored_chip(fails, failing), stored_chip(counts, counting)
    differs = (own.vt_shift != other.vt_shift) | (own.beta_factor != other.beta_factor)
    found: list[Cause] = []
    for unit, places in units_of(fails).items():
        if not differs[places].any():
            continue
        chosen = np.zeros(len(differs), dtype=bool)
        chosen[places] = True
        figures = run_behavioral_chip(fails, mixed_chip(other, own, chosen))
        alone = passes_specs(figures, specs)
        largest = _largest(own, other, places, fails.technology)
        found.append(Cause(unit, alone, figures.accuracy, figures.unreset, *largest))
    return min(found, key=lambda one: (not one.alone, len(one.unreset), -one.accuracy), default=None)


def units_of(trial: Trial) -> Mapping[str, NDArray[np.int64]]:
    """Return the transistors of each unit, or of each shared bias line, in a run of chips: name -> places.

    Places are indices into the netlist's devices, which draws of mismatch use as well.
    """
    owners = _owners(trial.design)
    found: dict[str, list[int]] = defaultdict(list)
    for place, device in enumerate(trial.devices):
        found[_owner(device.name.split(".")[1], owners)].append(place)
    order = {name: k for k, name in enumerate(trial.design.graph.nodes)}
    names = sorted(found, key=lambda name: (order.get(name, len(order)), name))
    return {name: np.array(found[name]) for name in names}


def _owner(name: str, owners: Mapping[str, str]) -> str:
    """Return the unit that an instance belongs to, as `layer0_1` for `beta_row_layer0_1`; else the instance."""
    words = name.split("_")
    ends = ("_".join(words[first:]) for first in range(len(words)))
    return next((owners[end] for end in ends if end in owners), name)


def _owners(design: Design) -> dict[str, str]:
    """Return the unit for each net stem of a node, and for each instance of a bias line that only one cell uses."""
    owners = {net(name): name for name in design.graph.nodes}
    cells: dict[str, list[str]] = defaultdict(list)
    for cell, pins in design.assembly.cell_bias.items():
        for pin in pins:
            cells[pin].append(cell)
    own = {pin: names[0] for pin, names in cells.items() if len(set(names)) == 1}
    return owners | own


def _largest(own: Chip, other: Chip, places: NDArray[np.int64], technology: Technology) -> tuple[str, float]:
    """Return the transistor whose current differs most between two chips, and its threshold shift, other - own, V.
    places: the transistors to look at; switches are left out."""
    devices = [own.devices[place] for place in places.tolist()]
    shift = (other.vt_shift - own.vt_shift)[places]
    slopes = [technology.device(device.polarity).slope_factor * technology.thermal_voltage for device in devices]
    current = np.abs(np.log(other.beta_factor[places] / own.beta_factor[places]) - shift / slopes)
    place = int(np.where([device.role == "switch" for device in devices], -1.0, current).argmax())
    return devices[place].name.removeprefix(instance("")), float(shift[place])


def diff_drawn(a: ChipRun, b: ChipRun, specs: Sequence[str], places: Places, progress: Progress) -> Difference:
    """Compare two Monte Carlo runs, without their settings.

    specs: replace each run's own; places: where a run's technology is now; progress: of the search for causes.
    """
    pairing, notes = _pair(a, b)
    count = pairing.paired or None
    one, other = (
        replace(run, records=run.records[:count], specs=tuple(map(parse_spec, specs or run.summary.yield_.spec)))
        for run in (a, b)
    )
    if [spec.text for spec in one.specs] != [spec.text for spec in other.specs]:
        texts = [" and ".join(spec.text for spec in side.specs) for side in (one, other)]
        notes.append(
            f"each run's chips are counted by its own limits, {texts[0]} and {texts[1]}; --spec gives both one"
        )
    whole = Difference(*names_of(a, b), settings=(), pairings=(pairing,), changes=(), notes=tuple(notes))
    if not pairing.paired:
        return replace(whole, changes=_changes(one, other, None))
    both = [(x, y) for x, y in zip(one.figures, other.figures, strict=True) if x is not None and y is not None]
    turns, causes = _turns(one, other, places, progress)
    units = Counter(turn.cause.unit for turn in turns if turn.cause is not None)
    return replace(
        whole,
        changes=_changes(one, other, both),
        units=rank([ChangedUnit(unit, "cause", chips, len(turns)) for unit, chips in units.items()]),
        notes=(*notes, *causes),
        scatter=_scatter(both),
        chips=turns,
        chip_flips=_flips(a, b, both),
    )


def _pair(a: ChipRun, b: ChipRun) -> tuple[Pairing, list[str]]:
    plans = [vars(run.summary.variation) for run in (a, b)]
    grids = [plan["sampling"] != "random" and plan["chips"] for plan in plans]
    other = [name for name in _DRAWS if plans[0][name] != plans[1][name]] + (["chips"] if grids[0] != grids[1] else [])
    if other:
        apart = f"drawn with another {' and '.join(other)}: chips of one number are others"
        return Pairing("chips", 0, len(a.records), len(b.records), apart), []
    notes = []
    if a.facts.made["network"] != b.facts.made["network"]:
        notes.append("of other networks, transistors of the same name have the same draws, in standard deviations")
    elif plans[0]["area"] != plans[1]["area"]:
        notes.append("draws are the same in standard deviations; those are smaller with more area")
    if any(plans[0][name] != plans[1][name] for name in ("celsius", "supplies")):
        notes.append(
            "the runs draw supplies and temperatures from different ranges; a chip lies at the same place in both"
        )
    if a.facts.made["samples_hash"] != b.facts.made["samples_hash"]:
        notes.append("the runs' chips saw other samples, so their accuracies differ by these, too")
    return pair_things("chips", range(len(a.records)), range(len(b.records)), "one run has more"), notes


def _changes(a: ChipRun, b: ChipRun, pairs: Sequence[tuple[Figures, Figures]] | None) -> tuple[Change, ...]:
    """Return by how much the chips' figures changed; pairs: figures of chips that ran in both, None if apart."""
    fractions, shares, means = APART if pairs is None else PAIRED
    if pairs is None:
        good = [[figures for figures in side.figures if figures is not None] for side in (a, b)]
    else:
        good = [[pair[k] for pair in pairs] for k in range(2)]
    found = [Change("yield", "%", fractions(a.passes, b.passes))]
    for name in CHIP_METRICS if all(good) else ():
        first, second = (np.array([figures[name] for figures in side]) for side in good)
        metric, contrast = METRICS[name], shares if METRICS[name].is_share else means
        found.append(Change(metric.title, metric.unit, contrast(first, second)))
    return tuple(found)


def _turns(a: ChipRun, b: ChipRun, places: Places, progress: Progress) -> tuple[tuple[ChipTurn, ...], list[str]]:
    """Return the chips whose verdict turned, each with its cause if known, and notes on what cannot be known."""
    passes = a.passes
    turned = np.flatnonzero(passes != b.passes).tolist()
    trials, notes = _trials(a, b, places) if turned else ((), [])
    if trials and len(turned) > CAUSES:
        notes.append(f"causes were looked for on the first {CAUSES} of {len(turned)} chips that turned")
    turns: list[ChipTurn] = []
    for done, chip in enumerate(turned):
        fails, counts = (1, 0) if passes[chip] else (0, 1)
        verdicts: tuple[Verdict, Verdict] = ("counts", "fails") if fails else ("fails", "counts")
        turn = ChipTurn(chip, *verdicts, why=_why((a, b)[fails], chip))
        if trials and done < CAUSES:
            failing, counting = ((a, b)[k].records[chip] for k in (fails, counts))
            cause = find_cause(trials[fails], failing, trials[counts], counting, (a, b)[fails].specs)
            turn = replace(turn, cause=cause)
            progress(done + 1, min(len(turned), CAUSES))
        turns.append(turn)
    return tuple(turns), notes


def _trials(a: ChipRun, b: ChipRun, places: Places) -> tuple[Sequence[Trial], list[str]]:
    """Build the trials of both runs again; return (trials, notes), no trials where transistors cannot be exchanged."""
    names = ("network", "technology", "calibration")
    if other := [name for name in names if a.facts.made[name] != b.facts.made[name]]:
        return (), [f"no unit is named as a cause: the runs have another {' and '.join(other)}"]
    try:
        trials = [load_trial(side.facts.folder, places) for side in (a, b)]
    except InputError as error:
        return (), [f"no unit is named as a cause: {error}"]
    if [device.name for device in trials[0].devices] != [device.name for device in trials[1].devices]:
        return (), ["no unit is named as a cause: the circuits have other transistors"]
    return trials, []


def _why(side: ChipRun, chip: int) -> str:
    """Return the reason why a chip fails, as text; cells that do not reset are named first."""
    found = side.figures[chip]
    if found is None:
        return f"simulation failed: {side.records[chip].reason}"
    if found.unreset:
        return f"{', '.join(found.unreset)} {'does' if len(found.unreset) == 1 else 'do'} not reset"
    missed = [spec for spec in side.specs if not spec.holds(found)]
    return f"misses {' and '.join(spec.text for spec in missed)}"


def _flips(a: ChipRun, b: ChipRun, pairs: Sequence[tuple[Figures, Figures]]) -> tuple[ChipFlip, ...]:
    """Return the samples that chips decide differently in the two runs, those on most chips first."""
    if not pairs or a.facts.made["samples_hash"] != b.facts.made["samples_hash"]:
        return ()
    first, second = (np.array([pair[k].decisions for pair in pairs]) for k in range(2))
    counts = (first != second).sum(axis=0)
    right = [(decisions == a.y).sum(axis=0).tolist() for decisions in (first, second)]
    order = [k for k in np.argsort(-counts, kind="stable").tolist() if counts[k]]
    samples = a.indices.tolist(), a.y.tolist()
    return tuple(
        ChipFlip(samples[0][k], samples[1][k], int(counts[k]), len(pairs), right[0][k], right[1][k]) for k in order
    )


def _scatter(pairs: Sequence[tuple[Figures, Figures]]) -> Scatter | None:
    if not pairs:
        return None
    values = (tuple(pair[k].accuracy for pair in pairs) for k in range(2))
    return Scatter("accuracy of a chip", "%", "chips", *values)
