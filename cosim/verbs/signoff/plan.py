"""Plan of a sign-off: its checks and limits by default, and a TOML file that says otherwise.

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
from typing import Any, Literal

from cosim.base.bounds import AREA, AUDIT, CELSIUS, CHIPS, SAMPLES, Bounds
from cosim.base.errors import InputError
from cosim.base.text import check_known, listed, read_toml, shown, shown_path, typed
from cosim.results.metrics import METRICS
from cosim.technology.conditions import GRID_CELSIUS, GRID_SUPPLIES
from cosim.technology.types import Flicker
from cosim.verbs.montecarlo.spec import Spec, parse_spec

_REPAIR = "see docs/reference/signoff-plan.md for what a plan holds"
_MUCH = Bounds(0, 1, "V", open_low=True)
_DRAWS = Bounds(0, 1000)
_NEEDED = ("corners.celsius", "corners.supplies")
_WITHIN = "within"  # in a field's metadata: the bounds of its number, or of each of its numbers


def _number(default: Any, bounds: Bounds) -> Any:  # noqa: ANN401 - it is declared where a field has its default
    return field(default=default, metadata={_WITHIN: bounds})


@dataclass(frozen=True)
class NominalSettings:
    """Settings of a sign-off's nominal check. audit: how many samples go through ngspice, too."""

    audit: int = _number(20, AUDIT)


@dataclass(frozen=True)
class Corners:
    """Conditions of a sign-off: corners, none for all; temperatures; supplies over the nominal one.

    audit: how many samples of all conditions together go through ngspice, too. What other checks take for the slow,
    the leaky and the hot end is of these conditions, too.
    """

    audit: int = _number(20, AUDIT)
    corners: tuple[str, ...] = ()
    celsius: tuple[float, ...] = _number(GRID_CELSIUS, CELSIUS)
    supplies: tuple[float, ...] = _number(GRID_SUPPLIES, Bounds(0, 2, open_low=True, open_high=True))


@dataclass(frozen=True)
class Mismatch:
    """Chips of a sign-off. engine: what runs one, "behavioral" or a simulator; device_area: over drawn one."""

    chips: int = _number(1000, CHIPS)
    variation: Literal["local", "global", "all"] = "local"
    engine: str = "behavioral"
    device_area: float = _number(1.0, AREA)


@dataclass(frozen=True)
class NoiseSettings:
    """Noise of a sign-off. draws: runs of each sample with other numbers; flicker: the worst where there is one."""

    draws: int = _number(10, replace(_DRAWS, low=2))
    flicker: Flicker = "typical"


@dataclass(frozen=True)
class Frame:
    """Limits of a sign-off: shortest and longest frame that must work, over the one that was compiled for."""

    shortest: float = _number(0.8, Bounds(1e-3, 1))
    longest: float = _number(2.0, Bounds(1, 1000))


@dataclass(frozen=True)
class Supply:
    """Disturbances of the supply in a sign-off.

    ripple_v: from peak to peak, at each of `frequencies_hz`; step_v: up and down for a third of a sample.
    """

    ripple_v: float = _number(0.05, _MUCH)
    frequencies_hz: tuple[float, ...] = _number((100.0, 1e3, 1e4), Bounds(1e-3, 1e6, "Hz"))
    step_v: float = _number(0.1, _MUCH)


@dataclass(frozen=True)
class Clocks:
    """Disturbances of the clocks in a sign-off.

    edges: of clocks, as fractions of a frame; skew: of each clock net, likewise, either way; draws of it.
    """

    edges: tuple[float, ...] = _number((0.002, 0.05), Bounds(0, 0.1, open_low=True))
    skew: float = _number(0.03, Bounds(0, 0.1))
    draws: int = _number(3, _DRAWS)


@dataclass(frozen=True)
class Start:
    """Start of the chip in a sign-off.

    ramp: how long the supply takes to come up; reset: after how long a reset from then on all must be well, at most;
    both in frames.
    """

    ramp: float = _number(0.25, Bounds(0, 0.3, open_low=True))  # the shortest reset is 0.5
    reset: float = _number(10.0, Bounds(0.5, 100))


@dataclass(frozen=True)
class Decisions:
    """Limits of a sign-off for the weakest decisions.

    samples: looked at by adjoint; distance: of the weakest, at least, in standard deviations of mismatch; 0: not
    judged; within: share of all samples' decisions that are within three sigma of noise and what calibration leaves,
    at most; 1: not judged.
    """

    samples: int = _number(8, SAMPLES)
    distance: float = _number(0.0, Bounds(0, 1000))
    within: float = _number(1.0, Bounds(0, 1))


@dataclass(frozen=True)
class LimitSettings:
    """The settings by which a sign-off looks for voltages beyond their limits.

    samples: how many samples' voltages are looked at in each condition.
    """

    samples: int = _number(8, SAMPLES)


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
    """Settings of every check by its name; metric_limits: metric -> text, of `spec` and of checks; skip: checks that
    are not made."""

    nominal: NominalSettings = NominalSettings()
    corners: Corners = Corners()
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
        """Return the specs that a sign-off check's figures must keep: its own limits, and the common ones on other
        metrics."""
        found = {**self.metric_limits.get("spec", {}), **self.metric_limits.get(check, {})}
        return tuple(parse_spec(f"{metric} {limit}") for metric, limit in found.items())

    def own(self, check: str) -> tuple[Spec, ...]:
        """Return the specs of a sign-off check's own table alone."""
        return tuple(parse_spec(f"{metric} {limit}") for metric, limit in self.metric_limits.get(check, {}).items())


NAMES = tuple(one.name for one in fields(SignoffPlan) if one.name not in ("metric_limits", "skip"))


def read_plan(path: Path | None) -> SignoffPlan:
    """Read the sign-off plan of a TOML file, or return the default one; limits that a file does not give are the
    default ones.

    Raises InputError that names file, field, value and repair.
    """
    if path is None:
        return SignoffPlan()
    where = shown_path(path)
    content = read_toml(path, _REPAIR)
    if strange := [name for name in content if name not in ("skip", "spec", *NAMES)]:
        raise InputError(
            f"{where}: {shown(strange[0])} is no check; known are {listed(NAMES)}, [spec] and skip; {_REPAIR}"
        )
    skip = content.pop("skip", [])
    if not isinstance(skip, list) or any(name not in NAMES for name in skip):
        raise InputError(f"{where}: skip must be a list of checks, {listed(NAMES)}, not {shown(skip)}; {_REPAIR}")
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
    """Raise InputError for a number that no check could use."""
    for check, setting in [(name, one) for name in NAMES for one in fields(getattr(plan, name))]:
        name, value = f"{check}.{setting.name}", getattr(getattr(plan, check), setting.name)
        if name in _NEEDED and not value:
            raise InputError(f"{where}: {name} must be a list of one or more numbers, not empty; {_REPAIR}")
        if _WITHIN in setting.metadata:
            for number in value if isinstance(value, tuple) else (value,):
                setting.metadata[_WITHIN].check(f"{where}: {name}", number, _REPAIR)


def format_plan(plan: SignoffPlan) -> str:
    """Return the sign-off plan as TOML, every setting and limit in it; the same plan gives the same bytes."""
    lines = [f"skip = {_toml(plan.skip)}"]
    for name in ("spec", *NAMES):
        table = {} if name == "spec" else asdict(getattr(plan, name))
        table |= plan.metric_limits.get(name, {})
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
