"""The difference of two runs as data: settings, how far figures moved, samples and chips that turned, and units.

Shares are fractions of 1, powers W. A is the first run, B the second; differences are B - A.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cosim.results.paired import Contrast

Verdict = Literal["counts", "fails"]


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
