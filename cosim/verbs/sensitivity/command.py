"""cosim sensitivity: name the transistors that decide a sample."""

from dataclasses import dataclass
from pathlib import Path

import click

from cosim.base.bounds import AREA, NUMBER, SEED, Bounds
from cosim.base.errors import InputError
from cosim.cli.session import VerbSession
from cosim.cli.types import Integer, Number
from cosim.cli.verb import FILE, Result, group_of, option, verb
from cosim.verbs.common import (
    Compiling,
    check_json,
    check_outputs,
    data_option,
    json_option,
    load_design,
    network_argument,
    timeout_option,
)


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """Options of `cosim sensitivity`: the sample, the figure whose derivatives are computed, the chip, and outputs."""

    network_file: Path = network_argument()
    data: Path | None = data_option()
    sample: int = option("Its number in the test set.", Integer(NUMBER), 0)
    frame: int | None = option("Read this frame alone [default: as the network pools].", Integer(NUMBER))
    readout: int | None = option("This output's current [default: margin of the decision].", Integer(NUMBER))
    chip: int | None = option("On this chip, drawn by --seed [default: one without mismatch].", Integer(NUMBER))
    seed: int = option("Seed of the chip.", Integer(SEED), 0)
    area: float = option("Device area over drawn, for mismatch alone.", Number(AREA), 1.0)
    suggest: Path | None = option(
        "Write overrides (.toml) for this sample: more devices in the mirrors that spread it most.",
        click.Path(dir_okay=False, path_type=Path),
    )
    output: Path | None = option("Folder for report.html, with the netlist.", FILE, flags=("-o", "--output"))
    top: int = option("How many transistors are shown.", Integer(Bounds(1, 1000)), 10)
    json_file: Path | None = json_option()
    timeout: float = timeout_option()
    compiling: Compiling = group_of(Compiling)


def run(options: SensitivityOptions, session: VerbSession) -> Result:
    """Say which transistors of NETWORK decide a test sample.

    The decision margin, read out of the decided class over the runner-up, is differentiated by the threshold voltage
    and the width of every transistor and by every bias current: one run of the batch engine, and one back. With the
    technology's mismatch these are shares of the margin's variance. The states that are likeliest to flip are
    listed below. --suggest writes a file for --overrides, with more devices in the mirrors that cause most of the
    variance for their area. With -o each name on the page leads to its line in the netlist.
    """
    from cosim.base.write import write_atomically
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.engines.table import BATCH, engine_entry
    from cosim.results.kept_page import REPORT_FILE, write_page
    from cosim.tasks.testset import load_test_set
    from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
    from cosim.verbs.sensitivity.study import SensitivityTarget, sensitivities, sensitivity_page
    from cosim.verbs.sensitivity.suggest import check_suggestion, format_suggestion, suggest_mirrors

    output = options.output
    if output is not None:
        check_outputs("sensitivity", output, options.json_file)
    else:
        check_json(options.json_file)
    if options.suggest is not None:
        if options.compiling.netlist is not None:
            raise InputError("--suggest writes overrides, and --netlist takes none; leave one of them out")
        check_suggestion(options.suggest)
        if options.json_file is not None and options.json_file.resolve() == options.suggest.resolve():
            raise InputError(f"{options.suggest}: --suggest and --json write the same file; give each its own")
    engine_entry(BATCH).load()
    design, condition = load_design(options.network_file, options.compiling)
    x = load_test_set(design.network, options.data).inputs(options.sample)
    chip = None
    if options.chip is not None:
        plan = VariationPlan("local", options.seed, options.chip + 1, area=options.area)
        devices = varying_devices(design.assembly.circuit, condition.technology, plan)
        chip = draw_chip(devices, condition.technology, plan, options.chip)
    timing = Timing(t_step=options.compiling.t_step)
    run = Run(None, 0, options.timeout, timing, BATCH, condition, chip)
    (found,) = sensitivities(design, [x], run, SensitivityTarget(options.frame, options.readout, options.area))
    suggestion, report = None, list[str]()
    if options.suggest is not None:
        suggestion = suggest_mirrors(design, found)
        if suggestion.times:
            write_atomically(options.suggest, format_suggestion(design, suggestion).encode())
            report.append(f"suggestion: {options.suggest}; take it with --overrides")
    page = sensitivity_page(design, options.sample, found, options.top, suggestion)
    if output is not None:
        session.take_folder("sensitivity", output)
        write_page(output, page)
        report.append(f"report: {output / REPORT_FILE}")
    return Result(found, page, report="\n".join(report))


command = verb(SensitivityOptions, run)
