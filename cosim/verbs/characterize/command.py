"""Command `cosim characterize`: simulate a cell over its range."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import CELSIUS, SEED, SEQUENCES, STEPS, SUPPLY, Bounds
from cosim.cli.help import CONTEXT, Verb
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb, RunVerb
from cosim.cli.types import Integer, QuantityList
from cosim.cli.verb import Result, group_of, option, verb
from cosim.engines.table import cell_simulators
from cosim.technology.scale import DEFAULT_UNITS
from cosim.verbs.common import (
    check_outputs,
    chosen_engine,
    engine_option,
    jobs_option,
    json_option,
    output_option,
    pdk_root_option,
    t_step_option,
    tau_option,
    technology_option,
    timeout_option,
)

if TYPE_CHECKING:
    from cosim.results.page import Page
    from cosim.technology.calibration import Calibration
    from cosim.technology.types import Technology

I_UNIT = 1e-9  # A, at which a ladder has the set-points of arXiv 2605.11855, Fig. 4
SWEPT = {
    "schmitt": "9T Schmitt trigger: thresholds and level, hysteresis loops.",
    "dpi": "Differential pair integrator: level and time constants.",
    "mirror": "Current mirror: gain of both gate lines, transfer curves.",
    "rectifier": "Rectifier: residue and error, transfer curves.",
    "steering": "Steering AND and symbol comparator: level, leakage, threshold.",
}


Values = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class CharacterizeConditions:
    """Options for technology, corners, temperatures, supplies (every combination is run), simulator and JSON file."""

    technology: str = technology_option()
    pdk_root: Path | None = pdk_root_option()
    corners: tuple[str, ...] = option(
        "Process corner [default: tt]; once for each.", flags=("--corner",), multiple=True
    )
    temperatures: tuple[Values, ...] = option(
        "Temperatures in celsius: -20,27,85.", QuantityList(CELSIUS), flags=("--temp",), multiple=True
    )
    supplies: tuple[Values, ...] = option(
        "Supplies in volt; every combination is run.", QuantityList(SUPPLY), flags=("--supply",), multiple=True
    )
    engine: str | None = engine_option("Simulator of the transistors.", cell_simulators)
    json_file: Path | None = json_option()


@dataclass(frozen=True, kw_only=True)
class LadderOptions:
    """Options of `cosim characterize ladder`: size and timing of the ladder, random updates, folder and conditions."""

    output: Path = output_option("runs/characterize/ladder")
    rungs: int = option("Rungs of the ladder.", Integer(Bounds(1, 32)), 5)
    sequences: int = option("Random sequences.", Integer(SEQUENCES), 4)
    steps: int = option("Updates in each.", Integer(STEPS), 100)
    seed: int = option("Seed of the sequences.", Integer(SEED), 0)
    t_step: float = t_step_option()
    tau: float | None = tau_option()
    jobs: int = jobs_option()
    timeout: float = timeout_option()
    where: CharacterizeConditions = group_of(CharacterizeConditions)


@click.group(name="characterize", subcommand_metavar="CELL [OPTIONS]", context_settings=dict(CONTEXT))
def command() -> None:
    """Sweep the biases of CELL in a simulator: ideal, as drawn, and calibrated.

    Bias currents and capacitances stay those of the nominal point when corner, temperature and supply are swept.
    """


def _swept(cell: str) -> Verb:
    @dataclass(frozen=True, kw_only=True)
    class CellOptions:
        """Options of the characterisation of a cell other than a ladder: folder and conditions."""

        output: Path = output_option(f"runs/characterize/{cell}")
        where: CharacterizeConditions = group_of(CharacterizeConditions)

    def run(options: CellOptions, session: VerbSession) -> Result:
        from cosim.verbs.characterize import study as characterize
        from cosim.verbs.characterize.page import cell_page

        output, where = options.output, options.where
        check_outputs("characterize", output, where.json_file)
        technologies, calibration, engine = _conditions(where)
        measure = characterize.MEASURES[cell]
        session.take_folder("characterize", output)
        found = [measure(technology, calibration, engine) for technology in technologies]
        page = cell_page(cell, found, calibration, _made_with(engine, technologies[0]))
        pictures = [output / f"{cell}_{_stem(technology)}.png" for technology in technologies]
        return _write(output, page, pictures, characterize.summarize_cell(cell, technologies[0].name, found))

    return verb(CellOptions, run, RunVerb, words=f"characterize {cell}", help=SWEPT[cell])


for _cell in SWEPT:
    command.add_command(_swept(_cell))


def run_ladder(options: LadderOptions, session: VerbSession) -> Result:
    """Simulate a ladder: random updates, levels, retention, power.

    A simulator is held against software: sequences of set, retain and reset pulses, one a frame.

    Finished runs are kept in the folder: the same command continues an interrupted one.
    """
    from cosim.engines.engine import Run
    from cosim.units.ladder import ladder_currents, ladder_timing
    from cosim.verbs.characterize import ladder as ladder_study
    from cosim.verbs.characterize.page import ladder_page

    output, where, rungs = options.output, options.where, options.rungs
    currents, timing = ladder_currents(I_UNIT), ladder_timing(options.t_step, options.tau)
    study = ladder_study.LadderStudy(rungs, options.sequences, options.steps, options.seed, currents, timing)
    check_outputs("characterize", output, where.json_file)
    technologies, calibration, engine = _conditions(where)
    run = Run(output, options.jobs, options.timeout, engine=engine)
    ladder_study.check_study(study, technologies, calibration)
    session.take_folder("characterize", output)
    with progress_bar(engine) as progress:
        found = ladder_study.run_ladder(study, technologies, calibration, run, progress)
    summaries = [ladder_study.summarize_ladder(study, *one) for one in zip(technologies, found, strict=True)]
    pictures = [output / f"ladder_{_stem(technology)}.png" for technology in technologies]
    conditions = list(zip(technologies, found, summaries, strict=True))
    page = ladder_page(study, conditions, calibration, _made_with(engine, technologies[0]))
    return _write(output, page, pictures, ladder_study.summarize_study(study, technologies[0].name, summaries))


command.add_command(verb(LadderOptions, run_ladder, KeepingVerb, words="characterize ladder"))


@dataclass(frozen=True, kw_only=True)
class CascadeOptions:
    """Options of `cosim characterize cascade`, Figure 4 of the seed paper: folder, worker processes and conditions."""

    output: Path = output_option("runs/characterize/cascade")
    jobs: int = jobs_option()
    timeout: float = timeout_option()
    where: CharacterizeConditions = group_of(CharacterizeConditions)


def run_cascade(options: CascadeOptions, session: VerbSession) -> Result:
    """The seed paper's Figure 4: its chain of cells and DPIs, and a ladder.

    Four chains at its set-points get the same updates: with DPIs forward only
    or both ways, each with the paper's timing and with the ladder's.
    """
    from cosim.engines.engine import Run
    from cosim.verbs.characterize import cascade

    output, where = options.output, options.where
    check_outputs("characterize", output, where.json_file)
    technologies, calibration, engine = _conditions(where)
    session.take_folder("characterize", output)
    run = Run(output, options.jobs, options.timeout, engine=engine)
    with progress_bar(engine) as progress:
        found = cascade.run_cascades(technologies, calibration, run, progress)
    pictures = [output / f"cascade_{_stem(technology)}.png" for technology in technologies]
    pairs = list(zip(technologies, found, strict=True))
    page = cascade.cascade_page(pairs, calibration, _made_with(engine, technologies[0]))
    conditions = [
        {"corner": one.corner, "celsius": one.celsius, "supply_v": one.supply, "chains": cascade.summarize_cascades(of)}
        for one, of in pairs
    ]
    figures = {"cell": "cascade", "technology": technologies[0].name, "conditions": conditions}
    return _write(output, page, pictures, figures)


command.add_command(verb(CascadeOptions, run_cascade, KeepingVerb, words="characterize cascade"))


def _conditions(where: CharacterizeConditions) -> "tuple[tuple[Technology, ...], Calibration, str]":
    """Return the technology in each of the selected conditions, its calibration at the nominal one, and the engine."""
    from cosim.technology.catalog import load_technology
    from cosim.verbs.calibrate.find import find_calibration
    from cosim.verbs.characterize.study import at_conditions

    process = load_technology(where.technology, where.pdk_root)
    engine = chosen_engine(where.engine, process)
    conditions = at_conditions(process, where.corners, sum(where.temperatures, ()), sum(where.supplies, ()))
    return conditions, find_calibration(process, DEFAULT_UNITS, say), engine


def _made_with(engine: str, technology: "Technology") -> dict[str, str]:
    """Return the version of the simulator by its name, for the provenance of a page."""
    from cosim.engines.simulation.simulated import engine_named

    return {engine: engine_named(engine).describe(technology).version}


def _write(output: Path, page: "Page", pictures: list[Path], figures: dict[str, object]) -> Result:
    """Write the page and its pictures, one a condition; return the verb's result, whose text names these files."""
    from cosim.base.write import write_atomically
    from cosim.results.kept_page import REPORT_FILE, read_page, write_page

    for path, picture in zip(pictures, page.pictures, strict=True):
        write_atomically(path, picture.content)
    write_page(output, page)
    report = "\n".join([*(f"figure: {path}" for path in pictures), f"report: {output / REPORT_FILE}"])
    return Result(figures, read_page(output), report=report)


def _stem(technology: "Technology") -> str:
    return f"{technology.corner}_{technology.celsius:g}C_{technology.supply:g}V"
