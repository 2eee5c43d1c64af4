"""Search for the calibration that fits a technology: the shipped one, a cached one, or one measured now."""

from pathlib import Path

from cosim.base.resources import models_path
from cosim.engines.table import reference_simulator
from cosim.technology.calibration import CALIBRATION_FILE, Calibration
from cosim.technology.types import Technology
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import Progress, calibrate


def shipped_path(technology: str, units: int) -> Path:
    """Return the path at which the package ships the calibration of a technology; the file may not exist.

    units: unit devices of a weight of 1.
    """
    return models_path() / "devices" / cached_name(technology, units)


def cached_name(technology: str, units: int) -> str:
    """Return the name of the cache's file in which `cosim calibrate` keeps a calibration.

    units: unit devices of a weight of 1.
    """
    return f"{technology}.u{units}.calibration.json"


def known_calibration(technology: Technology, units: int) -> Calibration | None:
    """Return the calibration that fits a technology if it is shipped or cached, else None; measures nothing."""
    return CALIBRATION_FILE.known(cached_name(technology.name, units), calibration_fingerprint(technology, units))


def find_calibration(technology: Technology, units: int, progress: Progress = lambda text: None) -> Calibration:
    """Return the calibration that fits a technology's devices, sizes and cells: shipped, cached, or newly measured.

    A new one is cached; if the cache cannot be written, `progress` is told and the calibration is used only this once.
    Raises MissingToolError when a calibration must be measured and the technology's reference simulator is missing.
    """
    return CALIBRATION_FILE.find(
        cached_name(technology.name, units),
        calibration_fingerprint(technology, units),
        lambda: calibrate(technology, units, progress),
        f"no calibration of {technology.name} with {units} unit devices fits this version, and a new one needs "
        f"{reference_simulator(technology)}",
        progress,
    )
