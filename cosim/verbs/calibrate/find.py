"""Search for the calibration file that applies: the shipped one, a cached one, or one measured now."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import models_path
from cosim.base.store import cached_files, keep_in_cache
from cosim.engines.table import NGSPICE, simulator_named
from cosim.technology.calibration import Calibration, as_kept, calibration_bytes, load_calibration
from cosim.technology.types import Technology
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import Progress, measure_calibration


def shipped_path(technology: str, units: int) -> Path:
    """Return the path of the calibration that comes with the package, whether it exists or not."""
    return models_path() / "devices" / cached_name(technology, units)


def cached_name(technology: str, units: int) -> str:
    """Return the name under which a calibration that was measured on this machine is kept in the cache's folder."""
    return f"{technology}.u{units}.calibration.json"


class CalibrationFit(Protocol):
    """A measurement of a technology, with the hash of everything that it depends on."""

    @property
    def fingerprint(self) -> str:
        """Return the hash of everything that the measurement depends on."""
        ...


F = TypeVar("F", bound=CalibrationFit)


def first_fitting(paths: Iterable[Path], load: Callable[[Path], F], fingerprint: str) -> F | None:
    """Return the first file with this fingerprint, or None; absent, damaged and foreign files are skipped."""
    for path in paths:
        with suppress(InputError):
            if (found := load(path)).fingerprint == fingerprint:
                return found
    return None


def known_calibration(technology: Technology, units: int) -> Calibration | None:
    """Return the calibration that applies, without measuring one; None where there is none."""
    paths = shipped_path(technology.name, units), *cached_files(cached_name(technology.name, units))
    return first_fitting(paths, load_calibration, calibration_fingerprint(technology, units))


def find_calibration(technology: Technology, units: int, progress: Progress = lambda text: None) -> Calibration:
    """Return a calibration that fits these device models, sizes, cells and options; without one, measure and cache it.

    Where the cache cannot be written, `progress` is told and the calibration serves this once. Raises MissingToolError
    when one must be measured and ngspice is missing.
    """
    if (kept := known_calibration(technology, units)) is not None:
        return kept
    try:
        calibration = as_kept(calibrate(technology, units, progress))
    except MissingToolError as error:
        raise MissingToolError(
            f"no calibration of {technology.name} with {units} unit devices fits this version, and a new one needs "
            f"ngspice: {error}"
        ) from None
    keep_in_cache(cached_name(technology.name, units), calibration_bytes(calibration), "calibration", progress)
    return calibration


def calibrate(
    technology: Technology, units: int, progress: Progress = lambda text: None, simulator: str = NGSPICE
) -> Calibration:
    """Measure anew with a simulator of this machine. Raises MissingToolError without it."""
    version = f"{simulator}-{simulator_named(simulator).describe(technology).version}"
    return measure_calibration(technology, units, version, progress, simulator)
