"""cosim datasheet: measure any MOS netlist under its conditions and on chips with mismatch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.bounds import AREA, AUDIT, CHIPS, NOISE_RUNS, SEED
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer, Number
from cosim.cli.verb import FILE, Result, argument, one_of, option, verb
from cosim.engines.table import BATCH, NGSPICE, Entry, engine_entry, simulators
from cosim.verbs.common import (
    AUDITED,
    audit_count,
    check_outputs,
    engine_option,
    jobs_option,
    json_option,
    output_option,
    pdk_root_option,
    timeout_option,
)

if TYPE_CHECKING:
    from cosim.base.store import RecordStore
    from cosim.cli.progress import Progress
    from cosim.verbs.datasheet.sheet import Datasheet
    from cosim.verbs.datasheet.study import DatasheetChip, DatasheetStudy

VERB, RUN_FILE, CHIPS_FILE, TABLE_FILE, CONDITIONS_FILE, WORST_FILE, TEXT_FILE = (
    "datasheet", "run.json", "chips.jsonl", "datasheet_chips.csv", "datasheet_conditions.csv", "datasheet_worst.sp",
    "datasheet.md",
)  # fmt: skip


def _engines() -> tuple[Entry, ...]:
    return tuple(entry for entry in simulators() if entry.name in (NGSPICE, BATCH))


@dataclass(frozen=True, kw_only=True)
class DatasheetOptions:
    """Options of `cosim datasheet`: the sheet, how chips are drawn, and the engine."""

    sheet_file: Path = argument("SHEET", FILE)
    output: Path = output_option("runs/datasheet")
    chips: int = option("How many chips.", Integer(CHIPS), 200)
    variation: str = one_of(
        ("local", "process", "all"),
        "What varies: each transistor (mismatch), all of a polarity together, or both.",
    )
    seed: int = option("Seed of the chips.", Integer(SEED), 0)
    area: float = option("Device area over drawn, for mismatch alone.", Number(AREA), 1.0)
    noise: int = option("Runs of the nominal circuit with noise, in batch.", Integer(NOISE_RUNS), 0)
    engine: str = engine_option("Simulator of the chips.", _engines, BATCH)
    audit: int | None = option(
        f"How many chips of --engine batch run in ngspice, too; 0 for none [default: {AUDITED}].", Integer(AUDIT)
    )
    json_file: Path | None = json_option()
    pdk_root: Path | None = pdk_root_option()
    jobs: int = jobs_option()
    timeout: float = timeout_option()


def run(options: DatasheetOptions, session: VerbSession) -> Result:
    """Measure a MOS netlist as the file SHEET asks, and compare with its limits.

    SHEET (.toml) names a netlist in SPICE's language with .tran, .dc or .op and .meas, conditions, parameters, and
    measures with limits. Every condition runs without mismatch; then chips with mismatch run in the nominal one: mean,
    sigma and yield with intervals, the transistors that cause the spread, and a deck of the worst chip for ngspice.
    --noise also gives the sigma of white noise of transistors and resistors. The tables are in report.html, and in
    datasheet.md as markdown.

    Finished chips are kept in the folder: the same command continues an interrupted run. Conditions and noise run
    again.
    """
    from cosim.base.store import RecordStore, continue_run, settings_key, write_texts
    from cosim.base.text import shown_path
    from cosim.results.kept_page import REPORT_FILE, read_page, write_page
    from cosim.results.markdown import format_markdown
    from cosim.variation.draws import VariationPlan
    from cosim.verbs.datasheet.axes import conditions_csv
    from cosim.verbs.datasheet.noise import check_noise, with_noise
    from cosim.verbs.datasheet.outputs import chips_table, summarize_datasheet, worst_deck
    from cosim.verbs.datasheet.page import datasheet_page
    from cosim.verbs.datasheet.sheet import read_sheet
    from cosim.verbs.datasheet.study import chip_records, datasheet_bench, datasheet_study, study_settings

    output = options.output
    check_outputs(VERB, output, options.json_file)
    simulator = engine_entry(options.engine).load()
    simulator.check()
    sheet = read_sheet(options.sheet_file, options.pdk_root)
    technology = sheet.conditions[0].technology
    audited = min(audit_count(options.audit, options.engine, technology), options.chips)
    if options.noise:
        check_noise(sheet, options.engine)
    plan = VariationPlan("local", options.seed, options.chips, area=options.area)
    study = datasheet_study(sheet, options.variation, plan, options.engine, options.timeout)
    made_with = _versions(study)
    nominal = datasheet_bench(study.circuit, study.technology, study.netlist, options.engine)
    settings = study_settings(study, simulator.write(nominal), made_with)
    session.take_folder(VERB, output)
    store = RecordStore(output / CHIPS_FILE, settings_key(settings), chip_records(len(study.names)))
    continue_run(output / RUN_FILE, settings, store)
    conditions = _conditions(sheet, options)
    chips, again = _chips(study, store, options.jobs, audited)
    noisy = _noisy(study, options)
    found = with_noise(sheet, summarize_datasheet(sheet, study, conditions, chips, again), noisy)
    page = datasheet_page(sheet, study, found, (conditions, chips), made_with)
    texts = {
        TEXT_FILE: format_markdown(page),
        TABLE_FILE: chips_table(sheet, chips),
        CONDITIONS_FILE: conditions_csv(sheet, conditions),
        WORST_FILE: worst_deck(sheet, study, chips[found.worst], shown_path(Path(options.sheet_file.name))),
    }
    write_texts(output, texts)
    write_page(output, page)
    report = f"worst chip: {output / WORST_FILE}\nreport: {output / REPORT_FILE}"
    return Result(found, read_page(output), report=report)


def _versions(study: "DatasheetStudy") -> dict[str, str]:
    """Return the version of each simulator that runs a datasheet, by its name."""
    names = dict.fromkeys((study.engine, NGSPICE))
    return {name: engine_entry(name).load().describe(study.technology).version for name in names}


def _conditions(sheet: "Datasheet", options: DatasheetOptions) -> "list[DatasheetChip]":
    """Run every condition of a datasheet without mismatch and return their records in order."""
    from cosim.verbs.datasheet.study import run_conditions

    found, total = dict[int, "DatasheetChip"](), len(sheet.conditions)
    with progress_bar("conditions") as progress:
        for k, one in run_conditions(sheet, options.jobs, options.timeout):
            found[k] = one
            progress(len(found), total)
    return [found[k] for k in range(total)]


def _chips(
    study: "DatasheetStudy", store: "RecordStore[DatasheetChip]", jobs: int, audited: int
) -> "tuple[list[DatasheetChip], list[DatasheetChip]]":
    """Run the chips that the store lacks; return all chips, and the first `audited` of them as ngspice runs them."""
    from cosim.verbs.datasheet.study import keep_chips

    with progress_bar(study.engine) as progress:
        chips = keep_chips(store, study, jobs, progress)
    again = list["DatasheetChip"]()
    if audited:
        with progress_bar(f"audit in {NGSPICE}") as progress:
            again = _collected(study, audited, jobs, progress)
    return chips, again


def _collected(study: "DatasheetStudy", audited: int, jobs: int, progress: "Progress") -> "list[DatasheetChip]":
    from cosim.verbs.datasheet.study import run_numbers

    found = dict[int, "DatasheetChip"]()
    for one in run_numbers(study, range(audited), jobs, NGSPICE):
        found[one.chip] = one
        progress(len(found), audited)
    return [found[k] for k in range(audited)]


def _noisy(study: "DatasheetStudy", options: DatasheetOptions) -> "list[DatasheetChip]":
    """Run the nominal circuit of a datasheet with noise, --noise times."""
    from cosim.verbs.datasheet.noise import run_noise

    if not options.noise:
        return []
    with progress_bar("noise") as progress:
        return run_noise(study, options.noise, options.jobs, progress)


command = verb(DatasheetOptions, run, KeepingVerb)
