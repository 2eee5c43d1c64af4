"""Python interface of cosim: load a trained network, compile it, simulate its transistors. `import cosim` exports it.

    net = cosim.load("model.pt")            # TrainedNetwork
    chip = net.compile("generic180")        # Compiled: a design in a condition
    chip.compare(samples=20)                # ComparisonResult: software, behavioral, simulator
    chip.montecarlo(chips=50)               # ChipsResult: chips that vary, and how many work
    cosim.power("model.pt", samples=2)      # Result: any verb of the command line, with its options and its folder

Printing a result gives the text that the command line prints; a notebook shows the result as a page. Slow steps are
announced on stderr. The underlying records are in `.network`, `.design`, `.comparison` and `.records`.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import CHIPS, JOBS, SAMPLES, SEED
from cosim.base.errors import InputError, SimulationError, importing
from cosim.base.resources import install_command
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import DEFAULT_TIMEOUT, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.table import BATCH, check_models, engine_entry, reference_simulator
from cosim.network.types import Network
from cosim.results.figures import Figure
from cosim.results.metrics import CHIP_METRICS
from cosim.results.page import Page
from cosim.tasks.testset import TestData, TestSet, check_test_set
from cosim.technology.conditions import at
from cosim.variation.draws import Kind, VariationPlan, check_coefficients, check_environment
from cosim.verbs.compare.agreement import Comparison, ComparisonSummary, compare_engines, summarize_comparison
from cosim.verbs.compare.figures import draw_confusion, draw_values
from cosim.verbs.compare.page import ComparisonSubject, comparison_page, report_comparison
from cosim.verbs.compile.page import design_page
from cosim.verbs.inspect.page import network_page
from cosim.verbs.loading import TargetTechnology, compile_at, draw_samples, load_ranged
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary
from cosim.verbs.montecarlo.execute import run_local
from cosim.verbs.montecarlo.figures import draw_spread
from cosim.verbs.montecarlo.page import summary_page
from cosim.verbs.montecarlo.run import default_spec, summarize_run
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.trial import BEHAVIORAL, Trial

if TYPE_CHECKING:
    from cosim.cli.verb import Result
    from cosim.training.transistors import TransistorCircuit

Samples = TestData | TestSet


class _PageResult(ABC):
    """A result that prints as the text of its page, and that a notebook displays as this page."""

    @property
    @abstractmethod
    def page(self) -> Page:
        """Return the page of inspect, compile, compare or montecarlo that `print` and a notebook show."""

    def __repr__(self) -> str:
        return str(self.page)

    def _repr_html_(self) -> str:
        return self.page._repr_html_()


@dataclass(frozen=True, repr=False)
class TrainedNetwork(_PageResult):
    """A trained network, and the path of the file from which it was loaded."""

    network: Network
    origin: str

    @property
    def page(self) -> Page:
        return network_page(self.network, self.origin)

    def compile(
        self,
        technology: str = "generic180",
        place: TargetTechnology = TargetTechnology(),
        settings: CompilerSettings = CompilerSettings(),
    ) -> "Compiled":
        """Compile the network for a technology, given by name or as a .toml file.

        place: foundry kit, condition and unit devices; settings: of the compiler. Raises InputError for a technology or
        condition that does not exist, MappingError where the network cannot be built, MissingToolError where a
        calibration must be measured and the technology's reference simulator is missing.
        """
        place = replace(place, technology=technology)
        return Compiled(*compile_at(self.network, self.origin, place, settings, _say), Timing(t_step=settings.t_step))


@dataclass(frozen=True, repr=False)
class Compiled(_PageResult):
    """A compiled network in a condition (corner, temperature, supply), run in frames of `timing`."""

    design: Design
    condition: Condition
    timing: Timing = Timing()

    @property
    def page(self) -> Page:
        return design_page(self.design, self.condition)

    def at(self, corner: str | None = None, celsius: float | None = None, supply: float | None = None) -> "Compiled":
        """Return the same circuit in another condition: corner, temperature in celsius, supply in V.
        None takes the technology's own value."""
        technology = at(self.design.technology, corner, celsius, supply)
        return replace(self, condition=replace(self.condition, technology=technology))

    def differentiable(self, timeout: float = DEFAULT_TIMEOUT) -> "TransistorCircuit":
        """Return the circuit as a function of torch tensors: simulated transistors, and gradients through them.

        timeout: seconds of processor time for each sample. See `cosim.training.transistors`. Raises MappingError for a
        network that is not of Schmitt triggers with constant thresholds, MissingToolError without torch or numba.
        """
        engine_entry(BATCH).load()
        with importing("a gradient", install_command("train")):
            from cosim.training.transistors import TransistorCircuit
        from cosim.engines.batch.gradients import SimulatedCircuit  # numba, which need not be there

        return TransistorCircuit(SimulatedCircuit(self.design, self.condition, self.timing, timeout))

    def compare(
        self, data: Samples = None, samples: int | None = 20, *, engine: str | None = None, seed: int = 0, jobs: int = 2
    ) -> "ComparisonResult":
        """Simulate test samples; compare the results with those of the software and of the behavioral equations.

        data: the test set as a file or folder, or as arrays with the names of a file's: {"x_test": x, "y_test": y};
        samples: how many are drawn with `seed`, None for all; engine: the simulator, None for the reference simulator
        of the technology. Raises InputError for data that do not fit the network or an engine without the technology's
        models, SimulationError when every simulation failed, MissingToolError when the simulator is not installed.
        """
        JOBS.check("jobs", jobs)
        test_set = self._samples(data, samples, seed)
        engine = engine or reference_simulator(self.design.technology)
        check_models(engine, self.design.technology)
        run = Run(jobs=jobs, timing=self.timing, engine=engine, condition=self.condition)
        outcomes = simulate_samples(self.design, test_set, run)
        comparison = compare_engines(self.design, test_set, outcomes, run)
        if comparison is None:
            raise SimulationError(f"all {len(outcomes)} simulations failed; the first: {outcomes[0]}")
        subject = ComparisonSubject(self.design, test_set, comparison, run)
        return ComparisonResult(comparison, subject)

    def montecarlo(
        self,
        data: Samples = None,
        chips: int = 100,
        *,
        variation: Kind = "local",
        samples: int | None = None,
        specs: Sequence[str] = (),
        engine: str = BEHAVIORAL,
        seed: int = 0,
        jobs: int = 2,
    ) -> "ChipsResult":
        """Simulate chips with random deviations, and count how many meet the specs, such as "accuracy>=0.9".

        variation: local (mismatch), global (process, supply, temperature) or all. By default a chip's accuracy may be
        up to 5 points below that of the nominal circuit. `cosim montecarlo` draws the same chips for the same seed.
        Raises InputError where the technology has no numbers for the variation.
        """
        CHIPS.check("chips", chips)
        JOBS.check("jobs", jobs)
        if variation not in get_args(Kind):
            raise InputError(f"variation must be one of {', '.join(get_args(Kind))}, not {variation!r}; choose one")
        plan, technology = VariationPlan(variation, seed, chips), self.condition.technology
        check_models(engine, technology)
        check_coefficients(technology, plan)
        check_environment(technology, plan)
        test_set = self._samples(data, samples, seed)
        trial = Trial(self.design, test_set, plan, engine, self.timing, self.condition)
        wanted = [parse_spec(text) for text in specs] or [default_spec(trial)]
        limit = DEFAULT_TIMEOUT * len(test_set.y)
        records = sorted(run_local(trial, range(chips), jobs, limit), key=lambda record: record.chip)
        summary = summarize_run(trial, records, wanted)
        return ChipsResult(tuple(records), summary, self)

    def _samples(self, data: Samples, count: int | None, seed: int) -> TestSet:
        if count is not None:
            SAMPLES.check("samples", count)
        SEED.check("seed", seed)
        if isinstance(data, TestSet):
            return check_test_set(data, self.design.network, "data").take(count, seed)
        return draw_samples(self.design.network, data, count, seed, _say)


@dataclass(frozen=True, repr=False)
class ComparisonResult(_PageResult):
    """The results of software, behavioral equations and simulator on the same samples.
    subject: the design, the samples and the run that were compared."""

    comparison: Comparison
    subject: ComparisonSubject

    @property
    def summary(self) -> ComparisonSummary:
        """Return the comparison in figures: agreements and accuracies as fractions of 1, powers in W."""
        return summarize_comparison(self.comparison)

    @property
    def page(self) -> Page:
        return comparison_page(self.subject, report_comparison(self.subject), ())

    def plot(self) -> Figure:
        """Draw the software's decisions and what the other engines change of them; return a matplotlib Figure.

        For a network with real-valued answers, draws the values of the engines instead.
        """
        if self.summary.errors is None:
            return draw_confusion(self.comparison, self.subject.labels)
        return draw_values(self.comparison)


@dataclass(frozen=True, repr=False)
class ChipsResult(_PageResult):
    """The results of simulated chips, each with its own random deviations.
    records: one for each chip; summary: yield and spread; chip: the nominal circuit and the condition of all chips."""

    records: tuple[ChipRecord, ...]
    summary: ChipSummary
    chip: Compiled

    @property
    def page(self) -> Page:
        return summary_page(self.chip.design, self.chip.condition.technology, self.summary)

    def values(self, metric: str = "accuracy") -> NDArray[np.float64]:
        """Return one figure of each chip that ran, (chips,).
        metric: accuracy, state_agreement or task_agreement (fractions of 1), or power (W). Raises InputError for
        another name."""
        if metric not in CHIP_METRICS:
            raise InputError(f"metric must be one of {', '.join(CHIP_METRICS)}, not {metric!r}; choose one")
        found = [record.outcome(self.summary.engine) for record in self.records]
        return np.array([figures[metric] for figures in found if figures is not None])

    def plot(self) -> Figure:
        """Draw a histogram of the chips' accuracy, with software and nominal circuit marked.

        Returns a matplotlib Figure.
        """
        values, quantum = 100 * self.values(), 100 / self.summary.samples
        marks = {"nominal": 100 * self.summary.nominal.accuracy, "software": 100 * self.summary.software_accuracy}
        return draw_spread("accuracy (%)", values, values[:0], marks=marks, quantum=quantum)


def load(path: str | PathLike[str] | Network, ranges_from: TestData = None) -> TrainedNetwork:
    """Load a trained network from a .pt or .npz file, or take one that `cosim.training.own.export` returned.

    ranges_from: samples, as `Compiled.compare` takes them, on which the states that a ladder must hold are measured.
    Raises InputError when a file cannot be read, NetworkError when its content is no valid network.
    """
    if isinstance(path, Network):
        return TrainedNetwork(load_ranged(path, ranges_from), "network")
    return TrainedNetwork(load_ranged(Path(path), ranges_from), str(path))


def run(verb: str, *arguments: object, fresh: bool = False, **options: object) -> "Result":
    """Run a verb, such as power or explore, into its folder; return its figures and its page.

    Prints nothing. arguments, options: as on the command line, by their long names with underscores, such as `t_step`;
    a text such as "10m" is read as on the command line. fresh: begin anew instead of continuing kept work. Raises
    CosimError where the command line would end without results. `fault` of the result is None, or the complaint with
    which the command line would end with exit status 1 (empty where the page has it).
    """
    from click import Group

    from cosim.cli import VERBS, load_verb
    from cosim.cli.verb import call, options_named

    name = verb.partition(" ")[0]
    if name not in VERBS:
        raise InputError(f"verb must be one of {', '.join(VERBS)}, not {verb!r}; choose one")
    command, said = load_verb(verb), list[str]()
    if isinstance(command, Group):
        cell, *rest = (str(one) for one in arguments or ("",))
        if cell not in command.commands:
            raise InputError(f"cosim {verb} needs one of {', '.join(command.commands)} first, not {cell!r}; choose one")
        return run(f"{verb} {cell}", *rest, fresh=fresh, **options)
    result = call(command, options_named(command, options, arguments), fresh=fresh, echo=said.append)
    if result.error is not None:
        raise result.error
    return replace(result, lines=[*said, *result.lines])


def verb_function(name: str) -> "Callable[..., Result]":
    """Return a verb, such as compile or power, as a Python function that returns the verb's figures and page.

    The verb's options are the parameters of the function, its help text is the docstring.
    """
    from cosim.cli import load_verb
    from cosim.cli.verb import describe_call

    def called(*arguments: object, fresh: bool = False, **options: object) -> "Result":
        return run(name, *arguments, fresh=fresh, **options)

    called.__name__ = called.__qualname__ = name
    called.__module__ = "cosim"
    called.__doc__, called.__signature__ = describe_call(load_verb(name))  # ty: what help() and an editor show
    return called


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr)
