"""Results of a Monte Carlo run as data: figures of each chip and of all, and which transistors make chips differ.

A chip is one random draw of the deviations of all transistors. Field names are the keys of chips.jsonl, summary.json
and contributions.json (`json_object`). Shares are fractions of 1, powers are in W.
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
    """Figures of one circuit on the samples of a run: CHIP_METRICS, and those below, None where there are none.

    rmse: error of real-valued answers, in the unit of their targets. margin: of classes, the smallest difference over
    all samples between the two largest pooled readouts, A; votes have none. energy: of an inference, J; latency: s;
    area: um2.
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
    """Figures of one chip by one engine.

    decisions: the class decided for each sample, empty for real-valued answers; unreset: names of the cells that the
    reset does not turn off.
    """

    decisions: tuple[int, ...]
    unreset: tuple[str, ...]


@dataclass(frozen=True)
class ChipRecord:
    """Record of one chip: supply, V, temperature, draws of mismatch (`pack_draws`), and figures by each engine.

    behavioral: figures by the behavioral model, with noise if the run has noise; quiet: figures by the behavioral model
    without noise, only in a run with noise. simulated: figures by a circuit simulator, with noise likewise; in
    chips.jsonl this key is the name of the engine, such as ngspice. decks: hash of the simulator's netlists. certainty:
    smallest margin of each sample (`pack_certainty`), if measured. elsewhere: number of samples that another simulator
    had to run, by a text that says which one and why.

    Where the simulation of a chip failed, `reason` and `detail` say why, and the figures of that engine are missing.
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
        """Return the chip's figures by an engine, which must have run the chip successfully."""
        found = self.behavioral if engine == BEHAVIORAL else self.simulated
        assert found is not None, f"chip {self.chip} was not run by {engine}"
        return found

    def outcome(self, engine: str) -> Figures | None:
        """Return the chip's figures by an engine, or None if the simulation of the chip failed."""
        return self.by(engine) if self.status == "ok" else None


@dataclass(frozen=True)
class Statistic:
    """One figure over many chips: mean with its 95 % interval (Student's t), standard deviation, and quantiles.

    quantiles: percentage, such as "95" -> value.
    """

    mean: float
    mean_interval: IntervalEnds | None
    sd: float
    quantiles: dict[str, float]


@dataclass(frozen=True)
class UnresetCount:
    """A count of the chips that have a cell which the reset cannot turn off.

    meet_spec: how many of these chips would meet every spec; cells: name of a cell -> chips in which it does not reset.
    """

    chips: int
    meet_spec: int
    cells: dict[str, int]


@dataclass(frozen=True)
class Yield:
    """The share of chips that work, `passed` of `chips`, with its interval.

    confidence: that of the interval, such as 0.95; method: statistical method of the interval.
    """

    value: float
    interval: IntervalEnds
    confidence: float
    passed: int
    chips: int
    method: str


@dataclass(frozen=True)
class SpecYield:
    """The share of chips that meet every spec; a chip whose simulation failed counts as not working.

    without_failed: yield without chips whose simulation failed, None if all failed.
    """

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
    """Comparison of one figure between the behavioral model and a simulator, on the same chips.

    bias: mean of behavioral minus simulated, interval by Student's t; difference_sd: standard deviation of this
    difference; correlation: over chips, interval by Fisher's z, None if one engine sees no spread or there are fewer
    than LEAST_PAIRED chips.
    """

    chips: int
    bias: float
    bias_interval: IntervalEnds
    difference_sd: float
    correlation: float | None
    correlation_interval: IntervalEnds | None


@dataclass(frozen=True)
class VarianceShare:
    """The share of a figure's variance that the mismatch of one group of transistors explains, with its 95 % interval.

    transistors: how many are in the group.
    """

    group: str
    transistors: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Division:
    """Shares of the variance, for groups that together contain every transistor.

    r2: sum of the shares (R2). chips_needed: about how many chips would make every interval narrower than WIDEST; 0 if
    all intervals are narrow enough.
    """

    r2: float
    shares: tuple[VarianceShare, ...]
    chips_needed: int = 0


@dataclass(frozen=True)
class Contribution:
    """Origin of the spread of one figure over chips: its variance divided by block and by kind of transistor.

    figure: statistic of the figure itself.
    """

    figure: Statistic
    block: Division
    kind: Division

    @property
    def divisions(self) -> dict[str, Division]:
        """Return both divisions of the variance by their names, "block" and "kind"."""
        return {"block": self.block, "kind": self.kind}


@dataclass(frozen=True)
class ChipNoise:
    """Effect of device noise on the chips of a run, by the behavioral model with and without noise; means over chips.

    seed: seed of the noise; passed: how many of `chips` meet the spec without noise; decisions: share of decisions that
    noise changes, None for real-valued answers; accuracy, task_agreement, state_agreement: value with noise minus value
    without.
    """

    seed: int
    chips: int
    passed: int
    decisions: Interval | None
    accuracy: Interval
    task_agreement: Interval
    state_agreement: Interval


@dataclass(frozen=True)
class SpecVerdict:
    """A spec (limit of a figure) with the measured value and the verdict.

    low, high: ends of the value's 95 % interval, None where it has none; met: the value keeps the limit; sure: the
    limit lies outside the interval.
    """

    spec: str
    metric: str
    value: float
    low: float | None
    high: float | None
    met: bool
    sure: bool


@dataclass(frozen=True)
class Cure:
    """A way to raise the yield, and the share of a run's first chips that would work with it, by the behavioral model.

    name: "area" for devices of three times the area, "trim" for two trim bits at each bias pin; passed: how many of
    `chips` would work.
    """

    name: str
    value: float
    low: float
    high: float
    passed: int
    chips: int


@dataclass(frozen=True, kw_only=True)
class ChipSummary:
    """Summary of all chips of a run by one engine, with software and nominal circuit on the same samples.

    The statistics of CHIP_METRICS are None where every simulation failed. paired: metric -> both engines compared, None
    if only the behavioral model ran; elsewhere: number of samples that another simulator had to run, by which one and
    why; audit: check of some samples in ngspice; undecided: count of samples with a decision that an error of the
    engine could turn; noise: effect of noise; gradient: sigma of the slope across the die of threshold voltages, V/m,
    and of current factors, 1/m; verdicts: on specs of all chips, such as a yield; cures: what would raise a low yield.
    """

    chips: int
    failed: int
    reasons: dict[str, int]
    unreset: UnresetCount
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
        """Return metric -> statistic over chips, for the metrics that this run has."""
        return {metric: found for metric in (*CHIP_METRICS, RMSE) if (found := getattr(self, metric)) is not None}
