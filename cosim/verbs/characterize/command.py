"""cosim characterize: sweep a cell over its range."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import CELSIUS, SEED, SEQUENCES, STEPS, SUPPLY, Bounds
from cosim.cli.options import (
    collecting,
    engine_option,
    jobs_option,
    json_option,
    options,
    output_option,
    pdk_root_option,
    t_step_option,
    tau_option,
    technology_option,
    timeout_option,
)
from cosim.cli.progress import progress_bar, say
from cosim.cli.settings import KeepingVerb, RunVerb
from cosim.cli.types import Integer, QuantityList
from cosim.engines.table import cell_simulators
from cosim.technology.scale import DEFAULT_UNITS
from cosim.verbs.common import Destination, check_outputs, take_folder, write_json

if TYPE_CHECKING:
    from cosim.technology.calibration import Calibration
    from cosim.technology.types import Technology
    from cosim.verbs.characterize.page import Origin

I_UNIT = 1e-9  # A, at which a ladder has the set-points of arXiv 2605.11855, Fig. 4
SWEPT = {
    "schmitt": "9T Schmitt trigger: thresholds and level, hysteresis loops.",
    "dpi": "Differential pair integrator: level and time constants.",
    "mirror": "Current mirror: gain of both gate lines, transfer curves.",
    "rectifier": "Rectifier: residue and error, transfer curves.",
    "steering": "Steering AND and symbol comparator: level, leakage, threshold.",
}


Values = tuple[float, ...]


@dataclass(frozen=True)
class CharacterizeConditions:
    """A technology, the conditions of which every combination is run, and the simulator that runs them."""

    technology: str
    pdk_root: Path | None
    corners: tuple[str, ...]
    temperatures: tuple[Values, ...]
    supplies: tuple[Values, ...]
    engine: str


@dataclass(frozen=True)
class Updates:
    """The ladder that is swept, what it is driven with, and where its runs are made."""

    rungs: int
    sequences: int
    steps: int
    seed: int
    t_step: float
    tau: float | None
    jobs: int
    timeout: float


condition_options = options(
    technology_option,
    pdk_root_option,
    click.option("--corner", "corners", multiple=True, help="Process corner [default: tt]; once for each."),
    click.option(
        "--temp", "temperatures", type=QuantityList(CELSIUS), multiple=True, help="Temperatures in celsius: -20,27,85."
    ),
    click.option(
        "--supply",
        "supplies",
        type=QuantityList(SUPPLY),
        multiple=True,
        help="Supplies in volt; every combination is run.",
    ),
    engine_option("Simulator of the transistors.", cell_simulators),
    json_option,
    collecting(where=CharacterizeConditions, to=Destination),
)


@click.group(name="characterize", subcommand_metavar="CELL [OPTIONS]")
def command() -> None:
    """Sweep the biases of CELL in a simulator: ideal, as drawn, and calibrated.

    Bias currents and capacitances stay those of the nominal point when corner, temperature and supply are swept.
    """


def _swept(cell: str) -> click.Command:
    @click.command(cls=RunVerb, name=cell, help=SWEPT[cell])
    @output_option(f"runs/characterize/{cell}")
    @condition_options
    def sweep(*, to: Destination, where: CharacterizeConditions) -> None:
        from cosim.results.figures import save_figure
        from cosim.results.kept_page import REPORT_FILE, write_page
        from cosim.technology.conditions import format_conditions
        from cosim.verbs.characterize import study as characterize
        from cosim.verbs.characterize.figures import draw_characterisation
        from cosim.verbs.characterize.page import cell_page

        check_outputs("characterize", to.output, to.json_file)
        technologies, calibration = _conditions(where)
        measure = getattr(characterize, f"characterize_{cell}")
        take_folder("characterize", to.output)
        found = []
        for technology in technologies:
            one = measure(technology, calibration, where.engine)
            found.append(one)
            click.echo(f"{cell}, {technology.name}, {format_conditions(technology)}")
            click.echo("\n".join(characterize.format_rows(one.rows)))
            path = to.output / f"{cell}_{_stem(technology)}.png"
            save_figure(draw_characterisation(cell, one), path)
            click.echo(f"figure: {path}\n")
        write_page(to.output, cell_page(cell, found, _origin(where, technologies[0], calibration)))
        click.echo(f"report: {to.output / REPORT_FILE}")
        write_json(to.json_file, characterize.summarize_cell(cell, technologies[0].name, found))

    return sweep


for _cell in SWEPT:
    command.add_command(_swept(_cell))


@command.command(cls=KeepingVerb)
@output_option("runs/characterize/ladder")
@click.option("--rungs", type=Integer(Bounds(1, 32)), default=5, help="Rungs of the ladder.")
@click.option("--sequences", type=Integer(SEQUENCES), default=4, help="Random sequences.")
@click.option("--steps", type=Integer(STEPS), default=100, help="Updates in each.")
@click.option("--seed", type=Integer(SEED), default=0, help="Seed of the sequences.")
@t_step_option
@tau_option
@jobs_option
@timeout_option
@condition_options
@collecting(updates=Updates)
def ladder(*, to: Destination, updates: Updates, where: CharacterizeConditions) -> None:
    """Ladder: random updates, levels, retention, power.

    A simulator is held against software: sequences of set, retain and reset pulses, one a frame.

    Finished runs are kept in the folder: the same command continues an interrupted one.
    """
    from cosim.engines.engine import Run
    from cosim.results.figures import save_figure
    from cosim.results.kept_page import REPORT_FILE, write_page
    from cosim.technology.conditions import format_conditions
    from cosim.units.ladder import ladder_currents, ladder_timing
    from cosim.verbs.characterize import ladder as ladder_study
    from cosim.verbs.characterize.figures import draw_staircase
    from cosim.verbs.characterize.page import LadderCondition, ladder_page
    from cosim.verbs.characterize.study import format_rows
    from cosim.verbs.tables import format_ladder

    currents, timing = ladder_currents(I_UNIT), ladder_timing(updates.t_step, updates.tau)
    rungs, run = updates.rungs, Run(to.output, updates.jobs, updates.timeout, engine=where.engine)
    study = ladder_study.LadderStudy(rungs, updates.sequences, updates.steps, updates.seed, currents, timing)
    output = to.output
    check_outputs("characterize", output, to.json_file)
    technologies, calibration = _conditions(where)
    ladder_study.check_study(study, technologies, calibration)
    take_folder("characterize", output)
    with progress_bar(where.engine) as progress:
        found = ladder_study.run_ladder(study, technologies, calibration, run, progress)
    conditions: list[LadderCondition] = []
    for technology, traces in zip(technologies, found, strict=True):
        summary = ladder_study.summarize_ladder(study, technology, traces)
        conditions.append(LadderCondition(technology, traces, summary))
        title = f"ladder of {rungs} rungs, {technology.name}, {format_conditions(technology)}"
        click.echo(title)
        click.echo("\n".join(format_ladder(summary)))
        click.echo("\n".join(format_rows(ladder_study.level_rows(study, traces))))
        path = output / f"ladder_{_stem(technology)}.png"
        save_figure(draw_staircase(study, traces, title), path)
        click.echo(f"figure: {path}\n")
    write_page(output, ladder_page(study, conditions, _origin(where, technologies[0], calibration)))
    click.echo(f"report: {output / REPORT_FILE}")
    summaries = [one.summary for one in conditions]
    write_json(to.json_file, ladder_study.summarize_study(study, technologies[0].name, summaries))


def _conditions(where: CharacterizeConditions) -> "tuple[tuple[Technology, ...], Calibration]":
    """Return (technology at every condition, nominal calibration)."""
    from cosim.technology.catalog import load_technology
    from cosim.verbs.calibrate.find import find_calibration
    from cosim.verbs.characterize.study import at_conditions

    process = load_technology(where.technology, where.pdk_root)
    conditions = at_conditions(process, where.corners, sum(where.temperatures, ()), sum(where.supplies, ()))
    return conditions, find_calibration(process, DEFAULT_UNITS, say)


def _origin(where: CharacterizeConditions, technology: "Technology", calibration: "Calibration") -> "Origin":
    """Return the provenance at the end of the page: calibration, simulator and its version."""
    from cosim.engines.simulation.simulated import engine_named
    from cosim.verbs.characterize.page import Origin

    return Origin(calibration, where.engine, engine_named(where.engine).describe(technology).version)


def _stem(technology: "Technology") -> str:
    return f"{technology.corner}_{technology.celsius:g}C_{technology.supply:g}V"
