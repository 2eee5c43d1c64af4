"""Options and helpers that several verbs share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cosim.cli.help import GroupedOption
from cosim.cli.progress import say
from cosim.cli.settings import keep_settings
from cosim.cli.types import Celsius, EngineName, Quantity
from cosim.engines.table import NGSPICE, engine_entry, simulators
from cosim.technology.scale import I_UNIT, MAX_UNITS

if TYPE_CHECKING:
    from cosim.compiler.settings import Settings
    from cosim.design import Condition, Design
    from cosim.engines.engine import Run
    from cosim.engines.table import Entry
    from cosim.loading import Place
    from cosim.tasks.testset import TestSet
    from cosim.technology.types import Flicker
    from cosim.units.epsilon import Circuit as Cell
    from cosim.variation.noise import Noise

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
T = TypeVar("T")


def one_of(
    name: str, words: Sequence[str], text: str, default: str | None = None, cls: type[click.Option] = click.Option
) -> Option:
    """An option that is one of some words, by default the first; `text` says what for."""
    return click.option(name, cls=cls, type=click.Choice(words), default=default or words[0], help=text)


def engine_option(text: str, entries: "Callable[[], tuple[Entry, ...]]" = simulators, default: str = NGSPICE) -> Option:
    """--engine: one of `entries`; `text` says what for."""
    return click.option("--engine", type=EngineName(entries), default=default, help=text)


class TechnologyOption(GroupedOption):
    title, shared = "Technology and conditions", True


class CompilingOption(GroupedOption):
    title, shared = "Compiling", True


class RunningOption(GroupedOption):
    title, shared = "Running", True


FILE = click.Path(path_type=Path)
network_argument = click.argument("network_file", metavar="NETWORK", type=FILE)
technology_option = click.option(
    "--technology", cls=TechnologyOption, default="generic180", help="generic180, gf180mcu, sky130, or a .toml file."
)
pdk_root_option = click.option(
    "--pdk-root", cls=TechnologyOption, type=FILE, help="Folder of the foundry kits [default: $PDK_ROOT]."
)
corner_option = click.option("--corner", cls=TechnologyOption, help="Process corner: tt, ff, ss, fs, sf [default: tt].")
celsius_option = click.option(
    "--temp",
    "celsius",
    cls=TechnologyOption,
    type=Celsius(),
    help="Temperature in celsius [default: the technology's, 27].",
)
supply_option = click.option(
    "--supply", cls=TechnologyOption, type=Quantity("V"), help="Supply [default: the technology's]."
)
i_unit_option = click.option(
    "--i-unit", cls=CompilingOption, type=Quantity("A"), default="1n", help="Current that stands for software 1.0."
)
grid_option = click.option(
    "--units",
    cls=CompilingOption,
    type=click.IntRange(1, MAX_UNITS),
    help="Unit devices per weight 1.0 [default: from the network's weight grid, else 8].",
)
saturate_option = click.option(
    "--saturate", cls=CompilingOption, is_flag=True, help="Cut weights beyond the largest mirror, and list them."
)
t_step_option = click.option(
    "--t-step", cls=CompilingOption, type=Quantity("s"), default="10m", help="Duration of one frame."
)
cell_option = one_of(
    "--cell",
    ("auto", "schmitt", "ladder"),
    "Circuit of a recurrent unit; auto takes it from epsilon.",
    cls=CompilingOption,
)
headroom_option = click.option(
    "--headroom",
    cls=CompilingOption,
    type=click.IntRange(0),
    default=1,
    help="Rungs beyond the states seen, either end.",
)
ranges_option = click.option(
    "--ranges-from", cls=CompilingOption, type=FILE, help="Samples (.npz) that show which states a ladder must hold."
)
tau_option = click.option(
    "--tau", cls=CompilingOption, type=Quantity("s"), help="Time constant of the ladders [default: a quarter frame]."
)
bias_option = one_of(
    "--bias",
    ("constant", "reference", "tracking"),
    "Bias currents: ideal, as the reference cell gives them, or that with inputs that follow.",
)
data_option = click.option(
    "--data", cls=RunningOption, type=FILE, help="Test data: an .npz (x_test, y_test) or the task's folder."
)
tolerance_option = click.option(
    "--tolerance",
    cls=RunningOption,
    type=float,
    help="Error of a real-valued answer that is right [default: a tenth of the targets' range].",
)
SAMPLES = 100  # where a simulator takes seconds for each
samples_option = click.option(
    "--samples",
    cls=RunningOption,
    type=click.IntRange(1),
    help=f"How many test samples, drawn by --seed [default: {SAMPLES}; with --engine batch all].",
)
probe_option = click.option(
    "--probe", cls=RunningOption, multiple=True, metavar="NAME",
    help="What the waveforms show: a unit or a weight by its name in mapping.csv; * and ? stand for any; repeat it for "
    "more [default: the cell that changes most often].",
)  # fmt: skip
noise_option = click.option(
    "--noise", cls=RunningOption, is_flag=True, help="What device noise changes: behavioral, and in batch."
)
seed_option = click.option(
    "--seed", cls=RunningOption, type=click.IntRange(0), default=0, help="Seed of the sample draw."
)
jobs_option = click.option(
    "--jobs", "-j", cls=RunningOption, type=click.IntRange(1), default=2, help="Worker processes."
)
json_option = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file, too."
)
timeout_option = click.option(
    "--timeout", cls=RunningOption, type=Quantity("s"), default="600", help="Longest time of one simulation."
)


def output_option(default: str) -> Option:
    """The folder that a verb writes."""
    return click.option("-o", "--output", type=FILE, default=Path(default), help="Folder.")


def options(*decorators: Option) -> Option:
    """Several options as one decorator, listed in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def collecting(**records: type[Any]) -> Option:
    """A verb's options as records: the argument of each name gets those that the fields of its dataclass name.

    They are made in this order, so one may hold those before it.
    """

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def collected(**given: object) -> object:
            for name, record in records.items():
                given[name] = take(record, given)
            return function(**given)

        return collected

    return apply


def take(record: type[T], given: dict[str, object]) -> T:
    """A record of the options that its fields name, which are no longer in `given` then."""
    names = [name for name in signature(record).parameters if name in given]
    return record(**{name: given.pop(name) for name in names})


@dataclass(frozen=True)
class Compiling:
    """What `compile_options` ask for: the technology, its conditions, and what `compile_network` takes."""

    technology: str = "generic180"
    pdk_root: Path | None = None
    corner: str | None = None
    celsius: float | None = None
    supply: float | None = None
    i_unit: float = I_UNIT
    units: int | None = None
    saturate: bool = False
    cell: "Cell" = "auto"
    headroom: int = 1
    ranges_from: Path | None = None
    t_step: float = 10e-3
    tau: float | None = None

    @property
    def place(self) -> "Place":
        """What the network is put on."""
        from cosim.loading import Place

        return Place(self.technology, self.pdk_root, self.corner, self.celsius, self.supply, self.units)

    @property
    def settings(self) -> "Settings":
        """How it is compiled."""
        from cosim.compiler.settings import Settings

        return Settings(
            self.i_unit, self.saturate, cell=self.cell, headroom=self.headroom, t_step=self.t_step, tau=self.tau
        )


@dataclass(frozen=True)
class Running:
    """What `run_options` ask for: the samples, and where they run; sample: one of them, in place of a draw."""

    data: Path | None
    samples: int | None
    seed: int
    jobs: int
    timeout: float
    sample: int | None = None


@dataclass(frozen=True)
class Destination:
    """A verb's folder, and the file that its figures are written to as well."""

    output: Path
    json_file: Path | None


compile_options = options(
    technology_option,
    pdk_root_option,
    corner_option,
    celsius_option,
    supply_option,
    i_unit_option,
    grid_option,
    saturate_option,
    cell_option,
    headroom_option,
    ranges_option,
    t_step_option,
    tau_option,
    collecting(compiling=Compiling),
)
run_options = options(
    data_option, samples_option, seed_option, jobs_option, timeout_option, collecting(running=Running)
)


def destination_options(default: str) -> Option:
    """The folder that a verb writes, and --json, as a `Destination`."""
    return options(output_option(default), json_option, collecting(to=Destination))


def load_design(network_file: Path, compiling: Compiling) -> "tuple[Design, Condition]":
    """Load and compile, calibrating first where no calibration applies; and the condition that was asked for."""
    from cosim.loading import compile_at, load_ranged

    network = load_ranged(network_file, compiling.ranges_from)
    return compile_at(network, str(network_file), compiling.place, compiling.settings, say)


def load_run(
    network_file: Path, folder: Path, compiling: Compiling, running: Running, engine: str = NGSPICE
) -> "tuple[Design, TestSet, Run]":
    """A compiled network, the samples that it is tried on, and where and how they run."""
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.loading import draw_samples, pick_sample

    design, condition = load_design(network_file, compiling)
    if running.sample is not None:
        test_set = pick_sample(design.network, running.data, running.sample, say)
    else:
        samples = running.samples or (None if engine_entry(engine).quick else SAMPLES)
        test_set = draw_samples(design.network, running.data, samples, running.seed, say)
    return (
        design,
        test_set,
        Run(folder, running.jobs, running.timeout, Timing(t_step=compiling.t_step), engine, condition),
    )


def noise_of(design: "Design", seed: int, flicker: "Flicker" = "typical") -> "Noise":
    """What noise needs: the figures of the technology's devices, measured where none are kept."""
    from cosim.calibration.noise import find_noise
    from cosim.technology.conditions import with_flicker
    from cosim.variation.noise import Noise

    return Noise(find_noise(with_flicker(design.technology, flicker), say), seed)


def check_outputs(verb: str, folder: Path, json_file: Path | None = None) -> None:
    """Raises InputError where a verb's results could not be written, before there are any; makes nothing."""
    from cosim.files.claim import check_owner
    from cosim.files.write import check_writable

    check_owner(folder, verb)
    if json_file is not None and (json_file.parent != folder or folder.is_dir()):
        check_writable(json_file)


def take_folder(verb: str, folder: Path) -> None:
    """Make a verb's folder and hold it until the verb ends, see `own_folder`; says what it kept and is damaged."""
    from cosim.files.claim import own_folder
    from cosim.simulation.keep import INFERENCES, damaged_results

    click.get_current_context().with_resource(own_folder(folder, verb))
    keep_settings(folder)
    count, damaged = damaged_results(folder / INFERENCES)
    if damaged:
        say(f"{len(damaged)} of {count} results in {folder / INFERENCES}, damaged or of an earlier cosim, run again")


def say_failed(failed: int, folder: Path) -> None:
    """End a verb with exit status 1 where runs have failed, saying where their decks are."""
    if failed:
        click.echo(f"{failed} runs failed; their decks are in {folder / 'failed'}", err=True)
        raise SystemExit(1)


def write_json(path: Path | None, content: object) -> None:
    """Write a `json_object` to a file, or nothing for None. Raises InputError when the file cannot be written."""
    import json

    from cosim.files.json_form import json_object
    from cosim.files.write import write_atomically

    if path is not None:
        write_atomically(path, f"{json.dumps(json_object(content), indent=2)}\n".encode())
