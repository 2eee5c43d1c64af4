"""cosim sensitivity: which transistors decide a sample."""

from dataclasses import dataclass
from pathlib import Path

import click

from cosim.base.bounds import AREA, NUMBER, SEED, Bounds
from cosim.cli.help import Verb
from cosim.cli.options import collecting, data_option, json_option, network_argument, timeout_option
from cosim.cli.types import Integer, Number
from cosim.verbs.common import Compiling, check_json, compile_options, load_design, write_json


@dataclass(frozen=True)
class SensitivityOptions:
    """The sample, and what is asked of it."""

    data: Path | None
    sample: int
    frame: int | None
    readout: int | None
    timeout: float


@dataclass(frozen=True)
class SampledChip:
    """The chip, and how large its devices are over drawn."""

    chip: int | None
    seed: int
    area: float


@dataclass(frozen=True)
class Showing:
    """Options on the output: how many devices are shown, and the file that has all of it."""

    top: int
    json_file: Path | None


@click.command(cls=Verb)
@network_argument
@data_option
@click.option("--sample", type=Integer(NUMBER), default=0, help="Its number in the test set.")
@click.option("--frame", type=Integer(NUMBER), help="Read this frame alone [default: as the network pools].")
@click.option("--readout", type=Integer(NUMBER), help="This output's current [default: margin of the decision].")
@click.option("--chip", type=Integer(NUMBER), help="On this chip, drawn by --seed [default: one without mismatch].")
@click.option("--seed", type=Integer(SEED), default=0, help="Seed of the chip.")
@click.option("--area", type=Number(AREA), default=1.0, help="Device area over drawn, for mismatch alone.")
@click.option("--top", type=Integer(Bounds(1, 1000)), default=10, help="How many transistors are shown.")
@json_option
@timeout_option
@compile_options
@collecting(asking=SensitivityOptions, drawing=SampledChip, showing=Showing)
def command(
    *, network_file: Path, asking: SensitivityOptions, drawing: SampledChip, showing: Showing, compiling: Compiling
) -> None:
    """Say which transistors of NETWORK decide a test sample.

    The decision margin, read out of the decided class over the runner-up, is differentiated by the threshold voltage
    and the width of every transistor and by every bias current: one run of the batch engine, and one back. With the
    technology's mismatch these are shares of the margin's variance. The states that are likeliest to flip stand below.
    """
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.engines.table import BATCH, engine_entry
    from cosim.tasks.testset import load_test_set
    from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
    from cosim.verbs.sensitivity.study import SensitivityTarget, sensitivities
    from cosim.verbs.sensitivity.table import format_sensitivities

    check_json(showing.json_file)
    engine_entry(BATCH).load()
    design, condition = load_design(network_file, compiling)
    x = load_test_set(design.network, asking.data).inputs(asking.sample)
    chip = None
    if drawing.chip is not None:
        plan = VariationPlan("local", drawing.seed, drawing.chip + 1, area=drawing.area)
        devices = varying_devices(design.assembly.circuit, condition.technology, plan)
        chip = draw_chip(devices, condition.technology, plan, drawing.chip)
    run = Run(None, 0, asking.timeout, Timing(t_step=compiling.t_step), BATCH, condition, chip)
    found = sensitivities(design, x, run, SensitivityTarget(asking.frame, asking.readout, drawing.area))
    click.echo("\n".join(format_sensitivities(found, showing.top)))
    write_json(showing.json_file, found)
