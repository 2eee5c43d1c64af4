"""The difference of two runs as data: settings, how far figures moved, samples and chips that turned, and units.

Shares are fractions of 1, powers W. A is the first run, B the second; differences are B - A. Below are those of runs of
samples: of compare, simulate, conditions of --pvt, and power; runs of chips are in `cosim.verbs.diff.chips`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.engines.table import BEHAVIORAL
from cosim.network.ir.states import differ
from cosim.results.paired import (
    Contrast,
    contrast_fractions,
    contrast_fractions_apart,
    contrast_means,
    contrast_means_apart,
    contrast_shares,
)
from cosim.verbs.diff.runs import Metered, Sampled
from cosim.verbs.simulate.sample_table import SampleTable

Verdict = Literal["counts", "fails"]
Places = NDArray[np.int64]
_CIRCUIT = "circuit"


@dataclass(frozen=True)
class Setting:
    """An option or input of a run that differs between the two; "-" where a run does not have it."""

    name: str
    a: str
    b: str


@dataclass(frozen=True)
class Pairing:
    """Numbers of `things` (samples, chips, points) that both runs have, and that only one of them has.

    apart: why the others are not paired; empty where they are.
    """

    things: str
    paired: int
    only_a: int = 0
    only_b: int = 0
    apart: str = ""


@dataclass(frozen=True)
class Change:
    """A figure that `cosim diff` compares, under the condition or at the point `where`; of `unit`."""

    name: str
    unit: str
    contrast: Contrast
    where: str = ""


@dataclass(frozen=True)
class Flip:
    """A sample, by its index in the test set, that the runs decide otherwise; y: its class."""

    sample: int
    y: int
    a: int
    b: int
    where: str = ""


@dataclass(frozen=True)
class ChipFlip:
    """A sample that `chips` of `of` chips decide otherwise in the other run; on how many each run is right."""

    sample: int
    y: int
    chips: int
    of: int
    right_a: int
    right_b: int


@dataclass(frozen=True)
class Cause:
    """The unit whose transistors turn a chip's verdict, or come nearest to that: those of the chip that counts, put
    into the one that fails.

    alone: whether they alone turn it; of the chip that fails, accuracy with them, and the cells that still do not
    reset. device: the transistor of the unit whose current differs most between the chips, switches apart; shift_v: by
    how much the magnitude of its threshold voltage is higher on the chip that counts, V.
    """

    unit: str
    alone: bool
    accuracy: float
    unreset: tuple[str, ...]
    device: str
    shift_v: float


@dataclass(frozen=True)
class ChipTurn:
    """A chip that counts in one run and fails in the other.

    why: what fails it; cause: None where it could not be looked for.
    """

    chip: int
    a: Verdict
    b: Verdict
    why: str
    cause: Cause | None = None


@dataclass(frozen=True)
class Moved:
    """A unit whose states differ, in how many frames of how many; samples: in how many of them, or on how many chips.

    what: `states` of A and B, `wrong states` that only one of them has, or `cause` of how many chips' verdicts.
    """

    unit: str
    what: Literal["states", "wrong states", "cause"]
    count: int
    of: int


@dataclass(frozen=True)
class Scatter:
    """A figure of every pair in both runs, for a picture; `a` and `b` (pairs,), in `unit`."""

    name: str
    unit: str
    things: str
    a: tuple[float, ...]
    b: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """Two runs, A and B, of one verb.

    notes: what could not be compared, and why; points: by name, of a sweep.
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
    units: tuple[Moved, ...] = ()
    notes: tuple[str, ...] = ()
    points: "dict[str, Difference]" = field(default_factory=dict)
    scatter: Scatter | None = None

    @property
    def unchanged(self) -> bool:
        """Tell whether all figures that both runs have are equal to the last bit, and neither run has more than the
        other."""
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
        """Tell whether the runs are equal in settings and results, at every point."""
        return self.unchanged and not self.settings and all(point.nothing for point in self.points.values())


def rank(moved: Sequence[Moved]) -> tuple[Moved, ...]:
    """Return the units whose states moved between the two runs of `cosim diff`, those that moved most first."""
    return tuple(sorted((one for one in moved if one.count), key=lambda one: -one.count / max(one.of, 1)))


@dataclass(frozen=True)
class SampleDifferences:
    """Result of comparing the results of two runs; fields as those of `Difference`."""

    pairings: tuple[Pairing, ...]
    changes: tuple[Change, ...]
    flips: tuple[Flip, ...] = ()
    units: tuple[Moved, ...] = ()
    notes: tuple[str, ...] = ()
    scatter: Scatter | None = None
    chips: tuple[ChipTurn, ...] = ()
    chip_flips: tuple[ChipFlip, ...] = ()


@dataclass(frozen=True)
class Paired:
    """Places (k,) of the same samples in two runs, and how they were paired."""

    a: Places
    b: Places
    pairing: Pairing


@dataclass
class _Rows:
    """Differences collected condition by condition."""

    changes: list[Change] = field(default_factory=list)
    flips: list[Flip] = field(default_factory=list)
    units: list[Moved] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pair_samples(a: tuple[Places, NDArray[np.str_]], b: tuple[Places, NDArray[np.str_]]) -> Paired:
    """Pair the samples of two runs for their difference, each given by indices and sums (n,): the same ones have both
    equal."""
    first, second = ({key: k for k, key in enumerate(zip(*map(list, run), strict=True))} for run in (a, b))
    common = [key for key in first if key in second]
    places = [np.array([run[key] for key in common], dtype=np.int64) for run in (first, second)]
    only = len(first) - len(common), len(second) - len(common)
    apart = ""
    if any(only):
        shared = len(set(a[0].tolist()) & set(b[0].tolist()))
        others = shared - len(common)
        apart = (
            f"{others} samples of the same number are not the same: other test sets" if others else "drawn otherwise"
        )
    return Paired(places[0], places[1], Pairing("samples", len(common), only[0], only[1], apart))


def diff_sampled(a: Sampled, b: Sampled) -> SampleDifferences | str:
    """Compare two runs of samples; return a text that says why where they share nothing to compare."""
    common = [name for name in a.tables if name in b.tables]
    if not common:
        return "one is of all conditions (--pvt), the other of one; or they have no condition in common"
    rows, pairings = _Rows(), {}
    for where in common:
        one, other = a.tables[where], b.tables[where]
        pairings[where] = _diff_table(rows, where, one, other)
    found = next(iter(pairings.values()))
    if rows.units and a.facts.made["network"] != b.facts.made["network"]:
        rows.notes.append("of other networks, units of one name may have other parts to play")
    conditions = ()
    if list(a.tables) != [""]:
        only = len(a.tables) - len(common), len(b.tables) - len(common)
        conditions = (Pairing("conditions", len(common), *only, "the technologies have others" if any(only) else ""),)
    scatter = _scatter(a.tables[common[0]], b.tables[common[0]], found, common[0])
    units = _together(rows.units) if len(common) > 1 else rank(rows.units)
    pairs = (*conditions, found.pairing)
    return SampleDifferences(
        pairs, tuple(rows.changes), tuple(rows.flips), units, tuple(dict.fromkeys(rows.notes)), scatter
    )


def _diff_table(rows: _Rows, where: str, a: SampleTable, b: SampleTable) -> Paired:
    """Compare the samples of one condition that succeeded in both runs; add to `rows` what differs, and return the
    pairing."""
    paired = pair_samples((a.indices[a.good], a.sums[a.good]), (b.indices[b.good], b.sums[b.good]))
    a, b = (table.select(np.flatnonzero(table.good)) for table in (a, b))
    if not (len(a.y) and len(b.y)):
        rows.notes.append(f"{where or 'samples'}: every simulation failed in one of the runs")
        return paired
    if not paired.pairing.paired:
        rows.changes += _apart(where, a, b)
        return paired
    a, b = a.select(paired.a), b.select(paired.b)
    rows.changes += _together_changes(where, a, b)
    for k in np.flatnonzero(a.decisions != b.decisions).tolist():
        rows.flips.append(Flip(int(a.indices[k]), int(a.y[k]), int(a.decisions[k]), int(b.decisions[k]), where))
    if a.cells != b.cells:
        rows.notes.append("the networks have other units, so no states are held against each other")
        return paired
    rows.units += _moved(a, b)
    return paired


def _together_changes(where: str, a: SampleTable, b: SampleTable) -> list[Change]:
    def change(name: str, unit: str, contrast: Contrast) -> Change:
        return Change(name, "W" if unit == "W" else "%", contrast, where)

    return [
        change("software accuracy", "%", contrast_fractions(a.software == a.y, b.software == b.y)),
        change("accuracy", "%", contrast_fractions(a.decisions == a.y, b.decisions == b.y)),
        change("task agreement", "%", contrast_fractions(a.decisions == a.software, b.decisions == b.software)),
        change("state agreement", "%", contrast_shares(a.agreement, b.agreement)),
        change("power", "W", contrast_means(a.power_w, b.power_w)),
    ]


def _apart(where: str, a: SampleTable, b: SampleTable) -> list[Change]:
    return [
        Change("software accuracy", "%", contrast_fractions_apart(a.software == a.y, b.software == b.y), where),
        Change("accuracy", "%", contrast_fractions_apart(a.decisions == a.y, b.decisions == b.y), where),
        Change("state agreement", "%", contrast_means_apart(a.agreement, b.agreement), where),
        Change("power", "W", contrast_means_apart(a.power_w, b.power_w), where),
    ]


def _moved(a: SampleTable, b: SampleTable) -> list[Moved]:
    """Count the frames in which a unit's state is another one; without states, in how many more or fewer it is
    wrong."""
    if a.states is None or b.states is None or a.states.shape[1:] != b.states.shape[1:]:
        count, what = np.abs(a.wrong - b.wrong).sum(axis=0), "wrong states"
    else:
        valid = np.arange(a.states.shape[1])[None, :] < a.lengths[:, None]
        allowed = np.maximum(a.tolerances, b.tolerances)
        count, what = (differ(a.states, b.states, allowed) & valid[:, :, None]).sum(axis=(0, 1)), "states"
    total = int(a.lengths.sum())
    return [
        Moved(cell, "states" if what == "states" else "wrong states", int(frames), total)
        for cell, frames in zip(a.cells, count, strict=True)
    ]


def _together(units: Sequence[Moved]) -> tuple[Moved, ...]:
    """Return the units with their counts of several conditions added up."""
    found: dict[str, Moved] = {}
    for one in units:
        before = found.get(one.unit, Moved(one.unit, one.what, 0, 0))
        found[one.unit] = Moved(one.unit, one.what, before.count + one.count, before.of + one.of)
    return rank(tuple(found.values()))


def _scatter(a: SampleTable, b: SampleTable, paired: Paired, where: str) -> Scatter | None:
    if not paired.pairing.paired:
        return None
    powers = a.power_w[a.good][paired.a], b.power_w[b.good][paired.b]
    name = f"mean power of a sample{where and ', '}{where}"
    return Scatter(name, "W", "samples", *(tuple(power.tolist()) for power in powers))


def diff_metered(a: Metered, b: Metered) -> SampleDifferences:
    """Compare two runs of cosim power."""
    paired = pair_samples((a.indices, a.sums), (b.indices, b.sums))
    first, second = _by_role(a), _by_role(b)
    common = [name for name in first if name in second]
    if not paired.pairing.paired:
        apart = [Change(name, "W", contrast_means_apart(first[name], second[name])) for name in common]
        return SampleDifferences((paired.pairing,), tuple(apart), notes=_lacking(a, b))
    first, second = ({name: run[name][k] for name in common} for run, k in ((first, paired.a), (second, paired.b)))
    changes = [Change(name, "W", contrast_means(first[name], second[name])) for name in common]
    name = common[0]
    scatter = Scatter(f"power, {name}", "W", "samples", tuple(first[name].tolist()), tuple(second[name].tolist()))
    return SampleDifferences((paired.pairing,), tuple(changes), notes=_lacking(a, b), scatter=scatter)


def _lacking(a: Metered, b: Metered) -> tuple[str, ...]:
    """Return a note if only one of the runs was simulated."""
    ran = [any(not name.startswith(BEHAVIORAL) for name in run.figures) for run in (a, b)]
    return () if ran[0] == ran[1] else (f"only {(a, b)[ran[1]].facts.name} has figures of a simulator",)


def _by_role(run: Metered) -> dict[str, NDArray[np.float64]]:
    """Return the powers of samples (n,), W, by name: first those of the simulator, whichever it is, then those of the
    equations."""
    equations = {name: power for name, power in run.figures.items() if name.startswith(BEHAVIORAL)}
    others = {name.partition(" ")[2]: power for name, power in run.figures.items() if name not in equations}
    return {f"{_CIRCUIT} {name}": power for name, power in others.items()} | equations
