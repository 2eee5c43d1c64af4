"""Plan of a sign-off: the default checks and limits, and the TOML file that can change them.

skip = ["noise"]

[spec]                            # every check keeps these
task_agreement = ">= 98 %"
power = "<= 500 nW"

[corners]                         # a check: its own settings, and limits in the place of those above
task_agreement = ">= 95 %"

[supply]
ripple_v = 0.1
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

from cosim.base.bounds import AREA, AUDIT, CELSIUS, CHIPS, SAMPLES, SUPPLY_SHARE, WITHIN, Bounds, bounded
from cosim.base.errors import InputError
from cosim.base.text import check_known, listed, read_toml, shown, shown_path, typed
from cosim.results.metrics import METRICS
from cosim.technology.conditions import ConditionGrid
from cosim.technology.types import Flicker
from cosim.variation.draws import CELSIUS_RANGE, SUPPLY_RANGE
from cosim.verbs.montecarlo.spec import Spec, parse_spec

_REPAIR = "see docs/reference/signoff-plan.md for what a plan holds"
_MUCH = Bounds(0, 1, "V", open_low=True)
_DRAWS = Bounds(0, 1000)
_NEEDED = ("corners.celsius", "corners.supplies", "mismatch.celsius", "mismatch.supplies")


@dataclass(frozen=True)
class NominalSettings:
    """Settings of a sign-off's nominal check; audit: number of samples that ngspice runs as well."""

    audit: int = bounded(20, AUDIT)


@dataclass(frozen=True)
class CornerSettings(ConditionGrid):
    """The grid of conditions of a sign-off's corners; audit: number of samples, over all, that ngspice runs as well."""

    audit: int = bounded(20, AUDIT)


@dataclass(frozen=True)
class Mismatch:
    """Settings of a sign-off's chips.

    engine: "behavioral" or the simulator that runs each chip; device_area: device area over drawn area, for mismatch;
    celsius, supplies: their least and greatest are those of a chip whose temperature and supply vary, as in
    `VariationPlan`.
    """

    chips: int = bounded(1000, CHIPS)
    variation: Literal["local", "global", "all"] = "local"
    engine: str = "behavioral"
    device_area: float = bounded(1.0, AREA)
    celsius: tuple[float, ...] = bounded(CELSIUS_RANGE, CELSIUS)
    supplies: tuple[float, ...] = bounded(SUPPLY_RANGE, SUPPLY_SHARE)


@dataclass(frozen=True)
class NoiseSettings:
    """Settings of a sign-off's noise check; draws: noisy runs of each sample; flicker: typical or worst noise."""

    draws: int = bounded(10, replace(_DRAWS, low=2))
    flicker: Flicker = "typical"


@dataclass(frozen=True)
class Frame:
    """Limits of a sign-off on the frame: shortest and longest duration that must work, over the compiled one."""

    shortest: float = bounded(0.8, Bounds(1e-3, 1))
    longest: float = bounded(2.0, Bounds(1, 1000))


@dataclass(frozen=True)
class Supply:
    """Disturbances of the supply in a sign-off.

    ripple_v: amplitude from peak to peak, V, applied at each of `frequencies_hz`; step_v: step up and down, V, for a
    third of a sample.
    """

    ripple_v: float = bounded(0.05, _MUCH)
    frequencies_hz: tuple[float, ...] = bounded((100.0, 1e3, 1e4), Bounds(1e-3, 1e6, "Hz"))
    step_v: float = bounded(0.1, _MUCH)


@dataclass(frozen=True)
class Clocks:
    """Disturbances of the clocks in a sign-off.

    edges: durations of clock edges to try, as fractions of a frame; skew: largest delay of a clock net, early or late,
    as a fraction of a frame; draws: number of random sets of delays.
    """

    edges: tuple[float, ...] = bounded((0.002, 0.05), Bounds(0, 0.1, open_low=True))
    skew: float = bounded(0.03, Bounds(0, 0.1))
    draws: int = bounded(3, _DRAWS)


@dataclass(frozen=True)
class Start:
    """Settings of a sign-off's power-up, in frames.

    ramp: time in which the supply comes up; reset: longest reset that the circuit may need after it.
    """

    ramp: float = bounded(0.25, Bounds(0, 0.3, open_low=True))  # the shortest reset is 0.5
    reset: float = bounded(10.0, Bounds(0.5, 100))


@dataclass(frozen=True)
class Decisions:
    """Limits of a sign-off on the weakest decisions.

    samples: number of samples whose decisions the adjoint examines; distance: least distance of the weakest decision
    from its threshold, in standard deviations of mismatch (0: no limit); within: largest share of decisions, over all
    samples, that are within three sigma of noise and calibration error (1: no limit).
    """

    samples: int = bounded(8, SAMPLES)
    distance: float = bounded(0.0, Bounds(0, 1000))
    within: float = bounded(1.0, Bounds(0, 1))


@dataclass(frozen=True)
class LimitSettings:
    """Settings of a sign-off's check of voltages.

    samples: number of samples, in each condition, during which voltages are examined.
    """

    samples: int = bounded(8, SAMPLES)


_JUDGED = {"task_agreement": ">= 95 %", "state_agreement": ">= 99 %"}  # where something is not as it should be
DEFAULT_LIMITS: Mapping[str, Mapping[str, str]] = {
    "spec": {"task_agreement": ">= 98 %", "state_agreement": ">= 99.5 %"},
    "corners": _JUDGED,
    "mismatch": {"yield": ">= 90 %"},
    "frame": _JUDGED,
    "supply": _JUDGED,
    "clocks": _JUDGED,
    "start": _JUDGED,
}


@dataclass(frozen=True)
class SignoffPlan:
    """The plan of a sign-off: the settings of each check, in a field of the check's name.

    corners: the conditions of its check, and those from which other checks take their slow, leaky and hot extremes;
    metric_limits: "spec" or name of a check -> metric -> limit as text; skip: names of checks that are not made.
    """

    nominal: NominalSettings = NominalSettings()
    corners: CornerSettings = CornerSettings()
    mismatch: Mismatch = Mismatch()
    noise: NoiseSettings = NoiseSettings()
    frame: Frame = Frame()
    supply: Supply = Supply()
    clocks: Clocks = Clocks()
    start: Start = Start()
    decisions: Decisions = Decisions()
    limits: LimitSettings = LimitSettings()
    metric_limits: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: DEFAULT_LIMITS)
    skip: tuple[str, ...] = ()

    def specs(self, check: str) -> tuple[Spec, ...]:
        """Return the specs that a check's figures must meet: the check's own, and the common ones on other metrics."""
        found = {**self.metric_limits.get("spec", {}), **self.metric_limits.get(check, {})}
        return tuple(parse_spec(f"{metric} {limit}") for metric, limit in found.items())

    def own(self, check: str) -> tuple[Spec, ...]:
        """Return the specs of a check's own table of the plan, without the common ones."""
        return tuple(parse_spec(f"{metric} {limit}") for metric, limit in self.metric_limits.get(check, {}).items())


CHECK_NAMES = tuple(one.name for one in fields(SignoffPlan) if one.name not in ("metric_limits", "skip"))


def read_plan(path: Path | None) -> SignoffPlan:
    """Read a sign-off plan from a TOML file; None gives the default plan. Limits missing in the file are default.

    Raises InputError that names file, field, value and repair.
    """
    if path is None:
        return SignoffPlan()
    where = shown_path(path)
    content = read_toml(path, _REPAIR)
    if strange := [name for name in content if name not in ("skip", "spec", *CHECK_NAMES)]:
        raise InputError(
            f"{where}: {shown(strange[0])} is no check; known are {listed(CHECK_NAMES)}, [spec] and skip; {_REPAIR}"
        )
    skip = content.pop("skip", [])
    if not isinstance(skip, list) or any(name not in CHECK_NAMES for name in skip):
        raise InputError(f"{where}: skip must be a list of checks, {listed(CHECK_NAMES)}, not {shown(skip)}; {_REPAIR}")
    limits, settings = dict(DEFAULT_LIMITS), dict[str, object]()
    for name, table in content.items():
        if not isinstance(table, dict):
            raise InputError(f"{where}: {name} must be a table [{name}], not {shown(table)}; {_REPAIR}")
        own = {key: value for key, value in table.items() if key in METRICS}
        if own:
            limits[name] = {**limits.get(name, {}), **_limits(own, f"{where}: {name}")}
        others = {key: value for key, value in table.items() if key not in METRICS}
        if name == "spec" and others:
            raise InputError(f"{where}: spec.{next(iter(others))} is no figure; known are {listed(METRICS)}; {_REPAIR}")
        if name != "spec":
            settings[name] = others
    check_known(settings, SignoffPlan, where, _REPAIR)
    plan = replace(typed(settings, SignoffPlan, where, _REPAIR), metric_limits=limits, skip=tuple(skip))
    _check_numbers(plan, where)
    return plan


def _limits(table: Mapping[str, object], where: str) -> dict[str, str]:
    for metric, value in table.items():
        if not isinstance(value, str) or not value.strip().startswith((">=", "<=")):
            raise InputError(f'{where}.{metric} must be a text that begins with >= or <=, such as ">= 95 %", '
                             f"not {shown(value)}; {_REPAIR}")  # fmt: skip
        parse_spec(f"{metric} {value}", f"{where}.{metric}:")
    return {metric: str(value) for metric, value in table.items()}


def _check_numbers(plan: SignoffPlan, where: str) -> None:
    """Check the numbers of a plan; raises InputError for one that no check could use."""
    for check, setting in [(name, one) for name in CHECK_NAMES for one in fields(getattr(plan, name))]:
        name, value = f"{check}.{setting.name}", getattr(getattr(plan, check), setting.name)
        if name in _NEEDED and not value:
            raise InputError(f"{where}: {name} must be a list of one or more numbers, not empty; {_REPAIR}")
        if WITHIN in setting.metadata:
            for number in value if isinstance(value, tuple) else (value,):
                setting.metadata[WITHIN].check(f"{where}: {name}", number, _REPAIR)
    chips = plan.mismatch
    if chips.variation == "local" and (chips.celsius, chips.supplies) != (Mismatch.celsius, Mismatch.supplies):
        raise InputError(
            f"{where}: mismatch.celsius and mismatch.supplies are of chips whose supply and temperature vary, not of "
            f'variation = "local"; add variation = "all" or "global", or leave them out'
        )


def format_plan(plan: SignoffPlan) -> str:
    """Return a sign-off plan as TOML, with every setting and limit; the same plan gives the same bytes."""
    lines = [f"skip = {_toml(plan.skip)}"]
    for name in ("spec", *CHECK_NAMES):
        table = {} if name == "spec" else asdict(getattr(plan, name))
        table |= plan.metric_limits.get(name, {})
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
