"""cosim calibrate: measure a technology's cells."""

from pathlib import Path

import click

from cosim.base.bounds import Bounds
from cosim.cli.options import FILE, engine_option, pdk_root_option, technology_option
from cosim.cli.progress import say
from cosim.cli.settings import RunVerb, keep_settings
from cosim.cli.types import Integer
from cosim.engines.table import cell_simulators
from cosim.technology.scale import DEFAULT_UNITS, MAX_UNITS


@click.command(cls=RunVerb)
@technology_option
@pdk_root_option
@click.option("--units", type=Integer(Bounds(1, MAX_UNITS)), default=DEFAULT_UNITS, help="Unit devices per 1.0.")
@engine_option("Simulator of the transistors.", cell_simulators)
@click.option("-o", "--output", type=FILE, help="File [default: the cache that compile reads].")
def command(technology: str, pdk_root: Path | None, units: int, engine: str, output: Path | None) -> None:
    """Measure mirrors and 9T cell, fit their errors and write the calibration that the compiler inverts."""
    from cosim.base.claim import check_replaceable
    from cosim.base.settings import is_settings, settings_beside
    from cosim.base.store import make_cached_path
    from cosim.base.write import check_writable
    from cosim.technology.calibration import is_calibration, write_calibration
    from cosim.technology.catalog import load_technology
    from cosim.verbs.calibrate.find import cached_name, calibrate

    process = load_technology(technology, pdk_root)
    path = output or make_cached_path(cached_name(process.name, units))
    if output is None:
        check_writable(path)
    else:
        check_replaceable({output: is_calibration, settings_beside(output): is_settings})
    calibration = calibrate(process, units, say, engine)
    write_calibration(path, calibration)
    if output is not None:
        keep_settings(output)
    fit, mirror = calibration.schmitt, calibration.mirror
    click.echo(f"{process.name}, {units} units, {calibration.simulator}")
    click.echo(f"  mirror trim             {mirror.trim:.4f}")
    click.echo(f"  path gain, 0.1 to 2 nA  n {min(mirror.gain_n[2:7]):.4f} .. {max(mirror.gain_n[2:7]):.4f}")
    click.echo(f"                          p {min(mirror.gain_p[2:7]):.4f} .. {max(mirror.gain_p[2:7]):.4f}")
    low, high = calibration.current_min, calibration.current_max
    click.echo(f"  usable currents         {low * 1e12:g} pA .. {high * 1e9:g} nA")
    click.echo(f"  leakage of a weight 1   {calibration.leakage * 1e15:.3g} fA")
    click.echo(f"  upper threshold         {fit.rise[1]:.4f} I_thresh {1e3 * fit.rise[0]:+.2f} pA")
    click.echo(
        f"  lower threshold         {fit.fall[1]:.4f} I_thresh {fit.fall[2]:+.4f} I_width {1e3 * fit.fall[0]:+.2f} pA"
    )
    click.echo(f"  level                   {fit.level[1]:.4f} I_gain {1e3 * fit.level[0]:+.2f} pA")
    click.echo(f"  largest fit error       {100 * fit.error:.2f} %")
    click.echo(f"  written                 {path}")
