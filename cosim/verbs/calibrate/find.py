"""Search for the calibration file that applies: the shipped one, a cached one, or one measured now."""

from pathlib import Path

from cosim.base.resources import models_path
from cosim.technology.calibration import CALIBRATION_FILE, Calibration
from cosim.technology.types import Technology
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import Progress, calibrate


def shipped_path(technology: str, units: int) -> Path:
    """Return the path at which the package has a result of the verb `cosim calibrate`, so that users need not run it.

    The file may not exist.
    """
    return models_path() / "devices" / cached_name(technology, units)


def cached_name(technology: str, units: int) -> str:
    """Return the name under which `cosim calibrate` keeps a calibration measured on this machine in the cache's
    folder."""
    return f"{technology}.u{units}.calibration.json"


def known_calibration(technology: Technology, units: int) -> Calibration | None:
    """Return what `cosim calibrate` would find without measuring, the calibration that applies; None without one."""
    return CALIBRATION_FILE.known(cached_name(technology.name, units), calibration_fingerprint(technology, units))


def find_calibration(technology: Technology, units: int, progress: Progress = lambda text: None) -> Calibration:
    """Return a calibration that fits these device models, sizes, cells and options; without one, measure and cache it.

    Where the cache cannot be written, `progress` is told and the calibration serves this once. Raises MissingToolError
    when one must be measured and ngspice is missing.
    """
    return CALIBRATION_FILE.find(
        cached_name(technology.name, units),
        calibration_fingerprint(technology, units),
        lambda: calibrate(technology, units, progress),
        f"no calibration of {technology.name} with {units} unit devices fits this version, and a new one needs ngspice",
        progress,
    )
