"""Command `cosim signoff`: decide, on one page, whether a circuit may go to a tape-out review."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.verb import FILE, Result, group_of, one_of, option, verb
from cosim.engines.table import BATCH, simulator_beside
from cosim.verbs.common import (
    Compiling,
    Running,
    check_outputs,
    engine_option,
    extracted_option,
    json_option,
    load_run,
    network_argument,
    output_option,
)

if TYPE_CHECKING:
    from cosim.compiler.design import Design
    from cosim.engines.engine import Run
    from cosim.verbs.bias import Bias

EVERY = "all"


@dataclass(frozen=True, kw_only=True)
class SignoffOptions:
    """Options of `cosim signoff`: network, plan, simulator, assumption on bias currents, and layout for its wires."""

    network_file: Path = network_argument()
    plan: Path | None = option("What is checked and must hold (.toml); a run writes plan.toml to begin with.", FILE)
    engine: str = engine_option("Simulator of the transistors.", default=BATCH)
    bias: "Bias | Literal['all']" = one_of(
        (EVERY, "constant", "reference", "tracking"),
        "Bias currents: each in turn, ideal, as the reference cell gives them, or that with inputs that follow.",
    )
    output: Path = output_option("runs/signoff")
    json_file: Path | None = json_option()
    extracted: Path | None = extracted_option("in all checks")
    compiling: Compiling = group_of(Compiling)
    running: Running = group_of(Running)


def run(options: SignoffOptions, session: VerbSession) -> Result:
    """Check NETWORK's circuit as a tape-out review would ask: PASS or FAIL.

    Nominal; corners, temperatures and supplies; chips with mismatch; noise; shorter and longer frames; supply ripple
    and steps; clock edges and skew; reset and power-up; the weakest decisions; voltages across every transistor. Each
    figure stands with its interval against a limit of the plan, and what was not checked is listed. The same command
    continues an interrupted run. Exit status 1 on FAIL.
    """
    from cosim.engines.simulation.simulated import engine_named
    from cosim.mask.record import extracted
    from cosim.results.kept_page import read_page
    from cosim.variation.draws import check_environment
    from cosim.verbs.compare.pvt import pvt_grid
    from cosim.verbs.signoff.checks import drawn_chips
    from cosim.verbs.signoff.plan import read_plan
    from cosim.verbs.signoff.run import sign_off, write_signoff
    from cosim.verbs.signoff.study import SignoffSubject, verdict_of

    plan, output = read_plan(options.plan), options.output
    check_outputs("signoff", output, options.json_file)
    design, test_set, run = load_run(options.network_file, output, options.compiling, options.running, options.engine)
    if options.extracted is not None:
        design = extracted(design, options.extracted)
    if "corners" not in plan.skip:
        pvt_grid(design.technology, plan.corners)
    if "mismatch" not in plan.skip:
        check_environment(run.standing(design).technology, drawn_chips(plan.mismatch, options.running.seed))
    engine_named(options.engine).check()
    run, biases, why = _with_bias(design, run, options.bias)
    session.take_folder("signoff", output)
    subject = SignoffSubject(
        design,
        test_set,
        run,
        plan,
        options.compiling.technology,
        options.compiling.pdk_root,
        seed=options.running.seed,
        extracted=options.extracted is not None,
        biases=biases,
        no_more_biases=why,
    )
    found = sign_off(subject, lambda check: session.echo(f"{check.name:11}{verdict_of(check)}"))
    session.echo("")
    report = write_signoff(subject, found)
    return Result(found, read_page(output), report=f"report: {report}", fault=None if found.passed else "")


def _with_bias(design: "Design", run: "Run", bias: "Bias | Literal['all']") -> "tuple[Run, tuple[Bias, ...], str]":
    """Return (run in the selected condition, assumptions on bias currents, why not more of them).

    Other conditions are checked under each of these assumptions.
    """
    from cosim.verbs.bias import applicable_biases, biased

    there = run.standing(design).technology
    simulator = simulator_beside(run.engine, there)
    if bias == "all":
        return run, *applicable_biases(design, there, simulator)
    return replace(run, condition=biased(design, there, bias, simulator)), (bias,), ""


command = verb(SignoffOptions, run, KeepingVerb)
