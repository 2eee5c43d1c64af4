"""The difference of two runs as data: settings, changed figures, samples and chips that turned, and units that moved.

Shares are fractions of 1, powers are in W. A is the first run, B the second; differences are B - A. Functions compare
runs of samples: those of compare, simulate, --pvt and power. For runs of chips see `cosim.verbs.diff.chips`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.engines.table import BEHAVIORAL
from cosim.network.ir.states import differ
from cosim.network.reference import valid_steps
from cosim.results.paired import (
    Contrast,
    contrast_fractions,
    contrast_fractions_apart,
    contrast_means,
    contrast_means_apart,
    contrast_shares,
)
from cosim.verbs.diff.runs import DecisionRun, PowerRun, Run
from cosim.verbs.simulate.samples import SampleTable

Verdict = Literal["counts", "fails"]
# how yes or no figures, shares and means are compared, of things that are paired, and of runs apart
PAIRED = contrast_fractions, contrast_shares, contrast_means
APART = contrast_fractions_apart, contrast_means_apart, contrast_means_apart
Places = NDArray[np.int64]
_CIRCUIT = "circuit"


@dataclass(frozen=True)
class Setting:
    """An option or input that differs between two runs; "-" where a run does not have it."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Pairing:
    """The number of samples, chips or points that two runs have in common, and that only one of them has.

    things: "samples", "chips" or "points"; apart: why some are not paired, empty if all are.
    """

    things: str
    paired: int
    only_a: int = 0
    only_b: int = 0
    apart: str = ""


@dataclass(frozen=True)
class Change:
    """A figure in two runs and its difference; where: condition or point of a sweep, empty if there is only one."""

    name: str
    unit: str
    contrast: Contrast
    where: str = ""


@dataclass(frozen=True)
class Flip:
    """A sample that two runs decide differently.
    sample: index in the test set; y: its class; a, b: decisions; where: condition."""

    sample: int
    y: int
    a: int
    b: int
    where: str = ""


@dataclass(frozen=True)
class ChipFlip:
    """A sample that `chips` of `of` chips decide differently in two runs; right_a, right_b: chips that are right."""

    sample: int
    y: int
    chips: int
    of: int
    right_a: int
    right_b: int


@dataclass(frozen=True)
class Cause:
    """The unit whose transistors turn a chip's verdict, or come nearest, if they replace those of the failing chip.

    The replacing transistors come from the same chip in the run in which it counts. alone: whether they turn the
    verdict; accuracy, unreset: of the failing chip with them, unreset being the cells that still do not reset; device:
    the unit's transistor whose current differs most, switches excepted; shift_v: by how much the magnitude of its
    threshold voltage is higher on the chip that counts, V.
    """

    unit: str
    alone: bool
    accuracy: float
    unreset: tuple[str, ...]
    device: str
    shift_v: float


@dataclass(frozen=True)
class ChipTurn:
    """A chip that counts (meets the specs) in one run and fails in the other.

    a, b: verdicts; why: reason for failing; cause: None where no cause could be looked for.
    """

    chip: int
    a: Verdict
    b: Verdict
    why: str
    cause: Cause | None = None


@dataclass(frozen=True)
class ChangedUnit:
    """A unit whose states differ between two runs.

    what: "states" (of A and B), "wrong states" (against software, in only one run), or "cause" (of chips' verdicts);
    count: frames, or chips, in which this is so; of: number of all frames, or chips.
    """

    unit: str
    what: Literal["states", "wrong states", "cause"]
    count: int
    of: int


@dataclass(frozen=True)
class Scatter:
    """A figure in both runs, pair by pair, for a picture; things: what is paired; a, b: (pairs,), in `unit`."""

    name: str
    unit: str
    things: str
    a: tuple[float, ...]
    b: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """The difference between two runs, A and B, of one verb.

    a, b: names of the runs; notes: what could not be compared, and why; points: of a sweep, name -> difference.
    """

    verb: str
    a: str
    b: str
    settings: tuple[Setting, ...]
    pairings: tuple[Pairing, ...]
    changes: tuple[Change, ...]
    flips: tuple[Flip, ...] = ()
    chip_flips: tuple[ChipFlip, ...] = ()
    chips: tuple[ChipTurn, ...] = ()
    units: tuple[ChangedUnit, ...] = ()
    notes: tuple[str, ...] = ()
    points: "dict[str, Difference]" = field(default_factory=dict)
    scatter: Scatter | None = None

    @property
    def unchanged(self) -> bool:
        """Tell whether all results of the two runs are equal to the last bit, and neither run has more of them."""
        whole = all(not (pairing.only_a or pairing.only_b or pairing.apart) for pairing in self.pairings)
        turned = any((self.flips, self.chip_flips, self.chips, self.units))
        return (
            whole
            and not turned
            and all(change.contrast.same for change in self.changes)
            and all(point.unchanged for point in self.points.values())
        )

    @property
    def nothing(self) -> bool:
        """Tell whether two runs are equal in settings and in results, at every point of a sweep."""
        return self.unchanged and not self.settings and all(point.nothing for point in self.points.values())


def rank(moved: Sequence[ChangedUnit]) -> tuple[ChangedUnit, ...]:
    """Return the units that moved, those that moved in the largest share of frames first."""
    return tuple(sorted((one for one in moved if one.count), key=lambda one: -one.count / max(one.of, 1)))


def pair_things(things: str, a: Collection[object], b: Collection[object], apart: str) -> Pairing:
    """Return how many things (samples, chips) two runs have in common; apart: why only one run has some of them."""
    common = len(set(a) & set(b))
    only = len(a) - common, len(b) - common
    return Pairing(things, common, *only, apart if any(only) else "")


def pair_samples(a: SampleTable | PowerRun, b: SampleTable | PowerRun) -> tuple[Places, Places, Pairing]:
    """Return the places (k,) of the common samples in each of two runs, and how the runs were paired.

    Samples are the same if index and checksum are equal.
    """
    first, second = (
        {key: k for k, key in enumerate(zip(list(run.indices), list(run.sums), strict=True))} for run in (a, b)
    )
    common = [key for key in first if key in second]
    places = [np.array([run[key] for key in common], dtype=np.int64) for run in (first, second)]
    others = len(set(a.indices.tolist()) & set(b.indices.tolist())) - len(common)
    apart = f"{others} samples of the same number are not the same: other test sets" if others else "drawn otherwise"
    return places[0], places[1], pair_things("samples", first, second, apart)


def diff_sampled(a: DecisionRun, b: DecisionRun) -> Difference:
    """Compare two runs of samples, without their settings; both must have a condition in common."""
    changes, flips, units, notes = list[Change](), list[Flip](), list[ChangedUnit](), list[str]()
    pairings, scatter = list[Pairing](), None
    common = [name for name in a.tables if name in b.tables]
    for where in common:
        one, other, pairing = _pair_tables(a.tables[where], b.tables[where])
        pairings.append(pairing)
        if not (len(one.y) and len(other.y)):
            notes.append(f"{where or 'samples'}: every simulation failed in one of the runs")
            continue
        changes += _changes(where, one, other, paired=pairing.paired > 0)
        if not pairing.paired:
            continue
        if where == common[0]:
            powers = (tuple(table.power_w.tolist()) for table in (one, other))
            scatter = Scatter(f"mean power of a sample{where and ', '}{where}", "W", "samples", *powers)
        for k in np.flatnonzero(one.decisions != other.decisions).tolist():
            decided = int(one.decisions[k]), int(other.decisions[k])
            flips.append(Flip(int(one.indices[k]), int(one.y[k]), *decided, where))
        if one.cells != other.cells:
            notes.append("the networks have other units, so no states are held against each other")
        else:
            units += _moved(one, other)
    if units and a.facts.made["network"] != b.facts.made["network"]:
        notes.append("of other networks, units of one name may have other parts to play")
    conditions = ()
    if list(a.tables) != [""]:
        conditions = (pair_things("conditions", a.tables, b.tables, "the technologies have others"),)
    return Difference(
        *names_of(a, b),
        settings=(),
        pairings=(*conditions, pairings[0]),
        changes=tuple(changes),
        flips=tuple(flips),
        units=_together(units) if len(common) > 1 else rank(units),
        notes=tuple(dict.fromkeys(notes)),
        scatter=scatter,
    )


def names_of(a: Run, b: Run) -> tuple[str, str, str]:
    """Return the verb of the first of two runs, and the names of both runs."""
    return a.facts.verb, a.facts.name, b.facts.name


def _pair_tables(a: SampleTable, b: SampleTable) -> tuple[SampleTable, SampleTable, Pairing]:
    """Return the samples of one condition that succeeded in both runs, and how they were paired.

    If none is paired, returns the samples that succeeded in each run.
    """
    a, b = (table.select(np.flatnonzero(table.good)) for table in (a, b))
    first, second, pairing = pair_samples(a, b)
    return (a.select(first), b.select(second), pairing) if pairing.paired else (a, b, pairing)


def _changes(where: str, a: SampleTable, b: SampleTable, *, paired: bool) -> list[Change]:
    fractions, shares, means = PAIRED if paired else APART
    found = {
        "software accuracy": fractions(a.software == a.y, b.software == b.y),
        "accuracy": fractions(a.decisions == a.y, b.decisions == b.y),
    }
    if paired:
        found["task agreement"] = fractions(a.decisions == a.software, b.decisions == b.software)
    found |= {"state agreement": shares(a.agreement, b.agreement), "power": means(a.power_w, b.power_w)}
    return [Change(name, "W" if name == "power" else "%", contrast, where) for name, contrast in found.items()]


def _moved(a: SampleTable, b: SampleTable) -> list[ChangedUnit]:
    """Count the frames in which each unit's states differ; if states are not kept, the change in wrong states."""
    total = int(a.lengths.sum())
    if a.states is None or b.states is None or a.states.shape[1:] != b.states.shape[1:]:
        wrong = np.abs(a.wrong - b.wrong).sum(axis=0)
        return [
            ChangedUnit(cell, "wrong states", int(frames), total) for cell, frames in zip(a.cells, wrong, strict=True)
        ]
    valid = valid_steps(a.lengths, a.states.shape[1])
    allowed = np.maximum(a.tolerances, b.tolerances)
    moved = (differ(a.states, b.states, allowed) & valid[:, :, None]).sum(axis=(0, 1))
    return [ChangedUnit(cell, "states", int(frames), total) for cell, frames in zip(a.cells, moved, strict=True)]


def _together(units: Sequence[ChangedUnit]) -> tuple[ChangedUnit, ...]:
    """Return the units that moved, with the counts of all conditions added up."""
    found: dict[str, ChangedUnit] = {}
    for one in units:
        before = found.get(one.unit, replace(one, count=0, of=0))
        found[one.unit] = ChangedUnit(one.unit, one.what, before.count + one.count, before.of + one.of)
    return rank(tuple(found.values()))


def diff_metered(a: PowerRun, b: PowerRun) -> Difference:
    """Compare two runs of cosim power, without their settings."""
    *places, pairing = pair_samples(a, b)
    first, second = _by_role(a), _by_role(b)
    common = [name for name in first if name in second]
    _, _, means = PAIRED if pairing.paired else APART
    scatter = None
    if pairing.paired:
        first, second = (
            {name: run[name][k] for name in common} for run, k in zip((first, second), places, strict=True)
        )
        powers = (tuple(run[common[0]].tolist()) for run in (first, second))
        scatter = Scatter(f"power, {common[0]}", "W", "samples", *powers)
    return Difference(
        *names_of(a, b),
        settings=(),
        pairings=(pairing,),
        changes=tuple(Change(name, "W", means(first[name], second[name])) for name in common),
        notes=_lacking(a, b),
        scatter=scatter,
    )


def _lacking(a: PowerRun, b: PowerRun) -> tuple[str, ...]:
    """Return a note if only one of two runs has simulated powers; empty if not."""
    ran = [any(not name.startswith(BEHAVIORAL) for name in run.figures) for run in (a, b)]
    return () if ran[0] == ran[1] else (f"only {(a, b)[ran[1]].facts.name} has figures of a simulator",)


def _by_role(run: PowerRun) -> dict[str, NDArray[np.float64]]:
    """Return a run's powers, (n,), W, by name: the simulator's, with its name left out, then those of the equations."""
    equations = {name: power for name, power in run.figures.items() if name.startswith(BEHAVIORAL)}
    others = {name.partition(" ")[2]: power for name, power in run.figures.items() if name not in equations}
    return {f"{_CIRCUIT} {name}": power for name, power in others.items()} | equations
