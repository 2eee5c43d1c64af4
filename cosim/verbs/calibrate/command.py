"""Command `cosim calibrate`: measure a technology's cells and write the calibration that the compiler uses."""

from dataclasses import dataclass
from pathlib import Path

from cosim.base.bounds import Bounds
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import RunVerb
from cosim.cli.types import Integer
from cosim.cli.verb import FILE, Result, option, verb
from cosim.engines.table import cell_simulators
from cosim.technology.scale import DEFAULT_UNITS, MAX_UNITS
from cosim.verbs.common import (
    chosen_engine,
    engine_option,
    pdk_root_option,
    technology_option,
)


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions:
    """Options of `cosim calibrate`: technology, number of unit devices, simulator, and file of the calibration."""

    technology: str = technology_option()
    pdk_root: Path | None = pdk_root_option()
    units: int = option("Unit devices per 1.0.", Integer(Bounds(1, MAX_UNITS)), DEFAULT_UNITS)
    engine: str | None = engine_option("Simulator of the transistors.", cell_simulators)
    output: Path | None = option("File [default: the cache that compile reads].", FILE, flags=("-o", "--output"))


def run(options: CalibrateOptions, session: VerbSession) -> Result:
    """Measure mirrors and 9T cell, fit their errors and write the calibration that the compiler inverts."""
    from cosim.base.claim import check_replaceable
    from cosim.base.settings import is_settings, settings_beside
    from cosim.base.store import make_cached_path
    from cosim.base.write import check_writable
    from cosim.technology.calibration import is_calibration, write_calibration
    from cosim.technology.catalog import load_technology
    from cosim.verbs.calibrate.find import cached_name
    from cosim.verbs.calibrate.measure import calibrate

    units, output = options.units, options.output
    process = load_technology(options.technology, options.pdk_root)
    path = output or make_cached_path(cached_name(process.name, units))
    if output is None:
        check_writable(path)
    else:
        check_replaceable({output: is_calibration, settings_beside(output): is_settings})
    calibration = calibrate(process, units, say, chosen_engine(options.engine, process))
    write_calibration(path, calibration)
    if output is not None:
        session.keep_settings(output)
    fit, mirror = calibration.schmitt, calibration.mirror
    low, high = calibration.current_min, calibration.current_max
    lines = [
        f"{process.name}, {units} units, {calibration.simulator}",
        f"  mirror trim             {mirror.trim:.4f}",
        f"  path gain, 0.1 to 2 nA  n {min(mirror.gain_n[2:7]):.4f} .. {max(mirror.gain_n[2:7]):.4f}",
        f"                          p {min(mirror.gain_p[2:7]):.4f} .. {max(mirror.gain_p[2:7]):.4f}",
        f"  usable currents         {low * 1e12:g} pA .. {high * 1e9:g} nA",
        f"  leakage of a weight 1   {calibration.leakage * 1e15:.3g} fA",
        f"  upper threshold         {fit.rise[1]:.4f} I_thresh {1e3 * fit.rise[0]:+.2f} pA",
        f"  lower threshold         {fit.fall[1]:.4f} I_thresh {fit.fall[2]:+.4f} I_width {1e3 * fit.fall[0]:+.2f} pA",
        f"  level                   {fit.level[1]:.4f} I_gain {1e3 * fit.level[0]:+.2f} pA",
        f"  largest fit error       {100 * fit.error:.2f} %",
        f"  written                 {path}",
    ]
    return Result(lines=lines)


command = verb(CalibrateOptions, run, RunVerb)
