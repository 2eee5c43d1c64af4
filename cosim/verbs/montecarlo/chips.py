"""Results of a run of chips as data: of one chip, of all of them, and which transistors make them differ.

Fields are the keys of chips.jsonl, summary.json and contributions.json, see `json_object`. Shares are fractions of 1,
powers in W.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cosim.base.errors import InputError
from cosim.engines.simulation.audit import Audit, UndecidedChips
from cosim.engines.table import BEHAVIORAL
from cosim.results.intervals import Interval, IntervalEnds
from cosim.results.metrics import CHIP_METRICS, RMSE
from cosim.tasks.testset import Clipping
from cosim.variation.draws import VariationPlan


@dataclass(frozen=True)
class NominalFigures:
    """CHIP_METRICS of one circuit on the samples of a run; energy of an inference, J; latency, s; area, um2.

    rmse: of real-valued answers, in the unit of their targets. margin: of classes, the smallest of all samples between
    the pooled readouts of the decided class and of the runner-up, A; None of votes, and in files of an earlier cosim.
    """

    accuracy: float
    task_agreement: float
    state_agreement: float
    power: float
    rmse: float | None = field(default=None, kw_only=True)
    margin: float | None = field(default=None, kw_only=True)
    energy: float | None = field(default=None, kw_only=True)
    latency: float | None = field(default=None, kw_only=True)
    area: float | None = field(default=None, kw_only=True)

    def __getitem__(self, metric: str) -> float:
        found = getattr(self, metric)
        if found is None:
            raise InputError(
                f"--spec {metric}: not a figure of these chips; rmse is of real-valued answers, margin of classes that "
                "are not voted for, and chips of an earlier cosim have neither"
            )
        return found


@dataclass(frozen=True)
class Figures(NominalFigures):
    """One chip by one engine: its decision of each sample, too, and the cells that its reset does not turn off."""

    decisions: tuple[int, ...]
    unreset: tuple[str, ...]


@dataclass(frozen=True)
class ChipRecord:
    """One chip: its conditions and draws (`pack_draws`), its figures by each engine that ran, a hash of its decks.

    simulated: figures by the run's engine where that is not the behavioral model; in chips.jsonl the key is the name of
    the engine, such as ngspice.
    elsewhere: how many samples another simulator ran in its place, by which and why.
    quiet: of a run with noise, by the behavioral model without it.
    certainty: the least margin of each sample (`pack_certainty`), where margins were measured.

    A failed one has the reason, with details, in place of the figures of the engine that failed.
    """

    chip: int
    status: Literal["ok", "failed"]
    supply_v: float
    celsius: float
    draws: str
    behavioral: Figures | None = None
    decks: str | None = None
    simulated: Figures | None = None
    reason: str | None = None
    detail: str | None = None
    elsewhere: dict[str, int] | None = None
    certainty: str | None = None
    quiet: Figures | None = None

    def by(self, engine: str) -> Figures:
        """Return a chip's figures by an engine that ran."""
        found = self.behavioral if engine == BEHAVIORAL else self.simulated
        assert found is not None, f"chip {self.chip} was not run by {engine}"
        return found

    def outcome(self, engine: str) -> Figures | None:
        """Return a chip's figures by an engine; None for a chip whose simulation failed."""
        return self.by(engine) if self.status == "ok" else None


@dataclass(frozen=True)
class Statistic:
    """A figure over chips: mean with its interval (Student's t), standard deviation, quantiles by their percentage."""

    mean: float
    mean_interval: IntervalEnds | None
    sd: float
    quantiles: dict[str, float]


@dataclass(frozen=True)
class Unreset:
    """Chips with a cell that does not reset, how many of them keep every limit, and how often each cell is one."""

    chips: int
    meet_spec: int
    cells: dict[str, int]


@dataclass(frozen=True)
class Yield:
    """`passed` of `chips`: the fraction with its interval at `confidence`, by `method`."""

    value: float
    interval: IntervalEnds
    confidence: float
    passed: int
    chips: int
    method: str


@dataclass(frozen=True)
class SpecYield:
    """The yield of all chips by their specs, and that without failed simulations, where a chip was simulated."""

    spec: tuple[str, ...]
    value: float
    interval: IntervalEnds
    confidence: float
    passed: int
    chips: int
    method: str
    without_failed: Yield | None = None


LEAST_PAIRED = 4  # chips: Fisher's z of fewer has no interval


@dataclass(frozen=True)
class Pair:
    """One figure of the same chips by both engines: bias = behavioral - simulated (t), correlation (Fisher's z).

    Without spread in one engine, or with fewer than LEAST_PAIRED chips, there is no correlation.
    """

    chips: int
    bias: float
    bias_interval: IntervalEnds
    difference_sd: float
    correlation: float | None
    correlation_interval: IntervalEnds | None


@dataclass(frozen=True)
class VarianceShare:
    """A group's share of the variance, with its 95 % interval."""

    group: str
    transistors: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Division:
    """The groups that divide all transistors, and R2, the sum of their shares.

    chips_needed: about how many make every interval narrower than WIDEST; 0 where they are.
    """

    r2: float
    shares: tuple[VarianceShare, ...]
    chips_needed: int = 0


@dataclass(frozen=True)
class Contribution:
    """Origin of the spread of one figure: by block and by kind of transistor."""

    figure: Statistic
    block: Division
    kind: Division

    @property
    def divisions(self) -> dict[str, Division]:
        """Return the divisions of a Monte Carlo run's variance, by name."""
        return {"block": self.block, "kind": self.kind}


@dataclass(frozen=True)
class ChipNoise:
    """Effect of noise on the chips of a run. seed: of its numbers; decisions: share that differs from the same chip's
    without noise, None of real-valued answers; accuracy, task_agreement, state_agreement: with noise minus without;
    means over chips. passed: chips that meet the spec without noise, of `chips`."""

    seed: int
    chips: int
    passed: int
    decisions: Interval | None
    accuracy: Interval
    task_agreement: Interval
    state_agreement: Interval


@dataclass(frozen=True)
class SpecVerdict:
    """A spec with what was found. interval: at 95 %, None where there is none; sure: it leaves the limit out."""

    spec: str
    metric: str
    value: float
    low: float | None
    high: float | None
    met: bool
    sure: bool


@dataclass(frozen=True)
class Cure:
    """A cure, and the share of a run's first chips that work with it, `passed` of `chips`, by the behavioral model.

    name: area, three times that of all devices; trim, two bits at each bias pin.
    """

    name: str
    value: float
    low: float
    high: float
    passed: int
    chips: int


@dataclass(frozen=True, kw_only=True)
class ChipSummary:
    """The chips of a run by one engine, beside the trained network and the nominal circuit on the same samples.

    CHIP_METRICS are None where every simulation failed, pairs without a simulator. elsewhere: how many samples of all
    chips another simulator ran in its place, by which and why; audit: of some of the chips; undecided: how many samples
    on chips an error of the engine could turn a decision of; noise: what it changes; gradient: S of thresholds in V/m
    and of current factors in 1/m; verdicts: on specs of all chips, where there are; cures: what would raise a low
    yield.
    """

    chips: int
    failed: int
    reasons: dict[str, int]
    unreset: Unreset
    engine: str
    accuracy: Statistic | None = None
    task_agreement: Statistic | None = None
    state_agreement: Statistic | None = None
    power: Statistic | None = None
    rmse: Statistic | None = None
    yield_: SpecYield
    paired: dict[str, Pair] | None = None
    elsewhere: dict[str, int] = field(default_factory=dict[str, int])
    samples: int
    software_accuracy: float
    software_rmse: float | None = None
    nominal: NominalFigures
    power_outside: tuple[str, ...]
    clipped: Clipping | None
    technology: str
    variation: VariationPlan
    contributions: Mapping[str, Contribution] | None = None
    audit: Audit | None = None
    undecided: UndecidedChips | None = None
    noise: ChipNoise | None = None
    gradient: tuple[float, float] | None = None
    verdicts: tuple[SpecVerdict, ...] | None = None
    cures: tuple[Cure, ...] | None = None

    @property
    def figures(self) -> dict[str, Statistic]:
        """Return metric -> its statistic over Monte Carlo chips, of those metrics that there are."""
        return {metric: found for metric in (*CHIP_METRICS, RMSE) if (found := getattr(self, metric)) is not None}
