"""cosim signoff: whether a circuit may go to a tape-out review, in one command and on one page."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cosim.cli.options import FILE, RunningOption, collecting, engine_option, network_argument, one_of
from cosim.cli.progress import progress_bar
from cosim.cli.settings import KeepingVerb
from cosim.engines.table import BATCH, simulator_beside
from cosim.verbs.common import (
    Compiling,
    Destination,
    Running,
    check_outputs,
    compile_options,
    destination_options,
    load_run,
    run_options,
    take_folder,
    write_json,
)

if TYPE_CHECKING:
    from cosim.compiler.design import Design
    from cosim.engines.engine import Run
    from cosim.verbs.bias import Bias

EVERY = "all"


@dataclass(frozen=True)
class Signing:
    """The plan, the simulator of the transistors, their bias currents, and the wires."""

    plan: Path | None
    engine: str
    bias: "Bias | Literal['all']"
    extracted: Path | None


@click.command(cls=KeepingVerb)
@network_argument
@click.option("--plan", type=FILE, help="What is checked and must hold (.toml); a run writes plan.toml to begin with.")
@engine_option("What stands for the transistors.", default=BATCH)
@one_of(
    "--bias",
    (EVERY, "constant", "reference", "tracking"),
    "Bias currents: each in turn, ideal, as the reference cell gives them, or that with inputs that follow.",
)
@destination_options("runs/signoff")
@click.option(
    "--extracted", cls=RunningOption, type=FILE, help="Folder of cosim layout, whose wires are in all checks."
)
@compile_options
@run_options
@collecting(how=Signing)
def command(*, network_file: Path, to: Destination, how: Signing, compiling: Compiling, running: Running) -> None:
    """Check NETWORK's circuit as a tape-out review would ask: PASS or FAIL.

    Nominal; corners, temperatures and supplies; chips with mismatch; noise; shorter and longer frames; supply ripple
    and steps; clock edges and skew; reset and power-up; the weakest decisions; voltages across every transistor. Each
    figure stands with its interval against a limit of the plan, and what was not checked is listed. The same command
    continues an interrupted run. Exit status 1 on FAIL.
    """
    from cosim.engines.simulation.simulated import engine_named
    from cosim.layout.backannotate import extracted
    from cosim.verbs.signoff.plan import read_plan
    from cosim.verbs.signoff.run import sign_off, write_signoff
    from cosim.verbs.signoff.subject import SignoffSubject
    from cosim.verbs.signoff.table import format_check, format_signoff

    plan = read_plan(how.plan)
    check_outputs("signoff", to.output, to.json_file)
    design, test_set, run = load_run(network_file, to.output, compiling, running, how.engine)
    if how.extracted is not None:
        design = extracted(design, how.extracted)
    engine_named(how.engine).check()
    run, biases, why = _with_bias(design, run, how.bias)
    take_folder("signoff", to.output)
    subject = SignoffSubject(
        design,
        test_set,
        run,
        plan,
        asdict(compiling),
        progress_bar,
        seed=running.seed,
        extracted=how.extracted is not None,
        biases=biases,
        no_more_biases=why,
    )
    found = sign_off(subject, lambda check: click.echo("\n".join(format_check(check))))
    click.echo("\n".join(format_signoff(found)))
    report = write_signoff(subject, found)
    write_json(to.json_file, found)
    click.echo(f"\nreport: {report}")
    if not found.passed:
        raise SystemExit(1)


def _with_bias(design: "Design", run: "Run", bias: "Bias | Literal['all']") -> "tuple[Run, tuple[Bias, ...], str]":
    """Return the run in the condition that was asked for, the assumptions on bias currents under which others are
    looked at, and why not under more."""
    from cosim.verbs.bias import applicable_biases, biased

    there, simulator = run.standing(design).technology, simulator_beside(run.engine)
    if bias == "all":
        return run, *applicable_biases(design, there, simulator)
    return replace(run, condition=biased(design, there, bias, simulator)), (bias,), ""
