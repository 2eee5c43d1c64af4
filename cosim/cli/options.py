"""Options that several verbs share, and how a verb takes them as records."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cosim.base.bounds import HEADROOM, I_UNIT, JOBS, SEED, SUPPLY, T_STEP, TAU, TIMEOUT, TOLERANCE, Bounds
from cosim.base.bounds import SAMPLES as MOST_SAMPLES
from cosim.cli.help import GroupedOption
from cosim.cli.types import Celsius, EngineName, Integer, Number, Quantity
from cosim.engines.table import NGSPICE, simulators
from cosim.technology.scale import MAX_UNITS

if TYPE_CHECKING:
    from cosim.engines.table import Entry

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
T = TypeVar("T")


def one_of(
    name: str, words: Sequence[str], text: str, default: str | None = None, cls: type[click.Option] = click.Option
) -> Option:
    """Return an option that takes one of some words, by default the first; `text` says what for."""
    return click.option(name, cls=cls, type=click.Choice(words), default=default or words[0], help=text)


def engine_option(text: str, entries: "Callable[[], tuple[Entry, ...]]" = simulators, default: str = NGSPICE) -> Option:
    """Return --engine, which takes one of `entries`; `text` says what for."""
    return click.option("--engine", type=EngineName(entries), default=default, help=text)


class TechnologyOption(GroupedOption):
    """Group of the options on technology and conditions."""

    title, shared = "Technology and conditions", True


class CompilingOption(GroupedOption):
    """Group of the options on the compiler."""

    title, shared = "Compiling", True


class RunningOption(GroupedOption):
    """Group of the options on how samples run."""

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
    "--temp", "celsius", cls=TechnologyOption, type=Celsius(),
    help="Temperature in celsius [default: the technology's, 27].",
)  # fmt: skip
supply_option = click.option(
    "--supply", cls=TechnologyOption, type=Quantity(SUPPLY), help="Supply [default: the technology's]."
)
i_unit_option = click.option(
    "--i-unit", cls=CompilingOption, type=Quantity(I_UNIT), default="1n", help="Current that stands for software 1.0."
)
grid_option = click.option(
    "--units", cls=CompilingOption, type=Integer(Bounds(1, MAX_UNITS)),
    help="Unit devices per weight 1.0 [default: from the network's weight grid, else 8].",
)  # fmt: skip
saturate_option = click.option(
    "--saturate", cls=CompilingOption, is_flag=True, help="Cut weights beyond the largest mirror, and list them."
)
t_step_option = click.option(
    "--t-step", cls=CompilingOption, type=Quantity(T_STEP), default="10m", help="Duration of one frame."
)
cell_option = one_of(
    "--cell",
    ("auto", "schmitt", "ladder"),
    "Circuit of a recurrent unit; auto takes it from epsilon.",
    cls=CompilingOption,
)
headroom_option = click.option(
    "--headroom", cls=CompilingOption, type=Integer(HEADROOM), default=1,
    help="Rungs beyond the states seen, either end.",
)  # fmt: skip
ranges_option = click.option(
    "--ranges-from", cls=CompilingOption, type=FILE, help="Samples (.npz) that show which states a ladder must hold."
)
tau_option = click.option(
    "--tau", cls=CompilingOption, type=Quantity(TAU), help="Time constant of the ladders [default: a quarter frame]."
)
with_option = click.option(
    "--with",
    "around",
    cls=CompilingOption,
    metavar="BLOCKS",
    help="Of the chip, too: inputs,decision,clock,bias, or some of them.",
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
    "--tolerance", cls=RunningOption, type=Number(TOLERANCE),
    help="Error of a real-valued answer that is right [default: a tenth of the targets' range].",
)  # fmt: skip
SAMPLES = 100  # where a simulator takes seconds for each
samples_option = click.option(
    "--samples",
    cls=RunningOption,
    type=Integer(MOST_SAMPLES),
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
seed_option = click.option("--seed", cls=RunningOption, type=Integer(SEED), default=0, help="Seed of the sample draw.")
jobs_option = click.option("--jobs", "-j", cls=RunningOption, type=Integer(JOBS), default=2, help="Worker processes.")
json_option = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file, too."
)
timeout_option = click.option(
    "--timeout", cls=RunningOption, type=Quantity(TIMEOUT), default="600", help="Longest time of one simulation."
)


def output_option(default: str) -> Option:
    """Return the option of the folder that a verb writes."""
    return click.option("-o", "--output", type=FILE, default=Path(default), help="Folder.")


def options(*decorators: Option) -> Option:
    """Return several options as one decorator, listed in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def collecting(**records: type[Any]) -> Option:
    """Return a decorator that passes a verb's options as records: the argument of each name gets those that the fields
    of its dataclass name.

    Records are made in this order, so one may hold those before it.
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
    """Take the options that a record's fields name out of `given`, and return the record."""
    names = [name for name in signature(record).parameters if name in given]
    return record(**{name: given.pop(name) for name in names})
