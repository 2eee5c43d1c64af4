"""Command `cosim demo`: the whole flow, on the handwritten digits that come with scikit-learn."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.bounds import SAMPLES as MOST_SAMPLES
from cosim.base.bounds import SEED
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, option, verb
from cosim.verbs.common import check_outputs, describe_failed, jobs_option, output_option

if TYPE_CHECKING:
    from cosim.network.types import Network
    from cosim.training.config import TrainingConfig

CELLS = 8
SAMPLES = 60
WEIGHT_COST = 2e-4  # a small circuit for a small price in accuracy


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of `cosim demo`: folder, number of test digits, seed and worker processes."""

    output: Path = output_option("runs/demo")
    samples: int = option("Test digits to simulate.", Integer(MOST_SAMPLES), SAMPLES)
    seed: int = option("Seed of the training and of the sample draw.", Integer(SEED), 0)
    jobs: int = jobs_option()


def run(options: DemoOptions, session: VerbSession) -> Result:
    """Train a small network on handwritten digits, compile it, simulate it in ngspice and compare.

    The folder receives the checkpoint, the netlist with its mapping report, the comparison and report.html. What an
    earlier, interrupted demo has finished is used again.
    """
    from cosim.base.quantities import format_quantity
    from cosim.cli.progress import say
    from cosim.engines.engine import Run
    from cosim.results.kept_page import read_page
    from cosim.tasks.testset import load_test_set
    from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
    from cosim.verbs.compare.page import run_comparison
    from cosim.verbs.compile.outputs import summarize
    from cosim.verbs.compile.page import write_design
    from cosim.verbs.loading import compile_for

    output, seed, jobs = options.output, options.seed, options.jobs
    check_outputs("demo", output)
    session.take_folder("demo", output)
    network_file = output / "model.pt"
    session.echo(f"1  train     {CELLS} cells a layer on handwritten digits, epsilon annealed from 1 to 0")
    network = _train(network_file, seed)
    session.echo(
        f"             test accuracy in software {network.history['figures']['test_accuracy']:.1%} -> {network_file}"
    )
    design = compile_for(network, str(network_file), load_technology(DEFAULT_TECHNOLOGY), say=say)
    write_design(design, output / "netlist")
    summary = summarize(design)
    area = f"{summary['gate_area_um2']:.0f} um2 of gates"
    session.echo(f"2  compile   {summary['transistors']} transistors, {area} -> {output / 'netlist' / 'network.sp'}")
    test_set = load_test_set(network, None).take(options.samples, seed)
    session.echo(f"3  simulate  {len(test_set.y)} test digits at transistor level, {jobs} workers")
    with progress_bar("ngspice") as progress:
        result = run_comparison(design, test_set, Run(output, jobs), progress)
    session.echo(f"4  compare   {format_quantity(result.power_w['ngspice'] or 0.0, 'W')} mean supply power\n")
    return Result(
        result,
        read_page(output),
        report=f"report: {output / 'report.html'}   picture: {output / 'waveforms.png'}",
        fault=describe_failed(result.failed, output),
    )


def _train(path: Path, seed: int) -> "Network":
    from cosim.compiler.passes import check_mapping
    from cosim.exchange.checkpoint import load_network
    from cosim.tasks.load import load_task
    from cosim.training.config import Architecture, TrainingConfig, state_path
    from cosim.training.trainer import TrainingJob, run_job

    config = TrainingConfig(Architecture(cells=CELLS), weight_cost=WEIGHT_COST, seed=seed)
    if path.exists() and _is_trained_so(earlier := load_network(path), config):
        return earlier
    with progress_bar("training") as progress:
        run_job(
            TrainingJob(config, load_task("digits"), check=check_mapping),
            path,
            lambda iteration, values: progress(iteration, config.iterations, values),
            resume=state_path(path).exists(),
        )
    return load_network(path)


def _is_trained_so(network: "Network", config: "TrainingConfig") -> bool:
    """Tell whether a network was trained with this configuration, by its history, so that no new training is needed."""
    from cosim.training.config import describe_config

    settings = json.loads(json.dumps(describe_config(config)))
    accuracy = network.history.get("figures", {}).get("test_accuracy")
    return network.history.get("settings") == settings and isinstance(accuracy, float)


command = verb(DemoOptions, run, KeepingVerb)
