"""Options and helpers that several verbs share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cosim.errors import InputError
from cosim.units import parse_quantity

if TYPE_CHECKING:
    from cosim.design import Design
    from cosim.network.types import Network

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
DEFAULT_UNITS = 8
MAX_UNITS = 64


class Quantity(click.ParamType):
    """A number with a unit prefix, such as 1n or 10m, in SI."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.name = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            number = parse_quantity(str(value), self.unit, param.opts[-1] if param else "value")
        except InputError as error:
            self.fail(str(error), param, ctx)
        if number <= 0:
            self.fail(f"must be positive, not {value}", param, ctx)
        return number


network_argument = click.argument("network_file", metavar="NETWORK", type=click.Path(path_type=Path))
technology_option = click.option("--technology", default="generic180", show_default=True, help="CMOS process.")
i_unit_option = click.option(
    "--i-unit", type=Quantity("A"), default="1n", show_default=True, help="Current that stands for software 1.0."
)
grid_option = click.option(
    "--units",
    type=click.IntRange(1, MAX_UNITS),
    help="Unit devices per weight 1.0 [default: from the network's weight grid, else 8].",
)
saturate_option = click.option("--saturate", is_flag=True, help="Cut weights beyond the largest mirror, and list them.")
t_step_option = click.option(
    "--t-step", type=Quantity("s"), default="10m", show_default=True, help="Duration of one frame."
)
data_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Test data: an .npz (x_test, y_test) or the task's folder."
)
samples_option = click.option(
    "--samples", type=click.IntRange(1), default=100, show_default=True, help="How many test samples, drawn by --seed."
)
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample draw.")
jobs_option = click.option(
    "--jobs", "-j", type=click.IntRange(1), default=2, show_default=True, help="Worker processes."
)
timeout_option = click.option(
    "--timeout", type=Quantity("s"), default="600", show_default=True, help="Longest time of one simulation."
)


def output_option(default: str) -> Option:
    """The folder that a verb writes."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), default=Path(default), show_default=True, help="Folder."
    )


def options(*decorators: Option) -> Option:
    """Several options as one decorator, listed in this order."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


compile_options = options(technology_option, i_unit_option, grid_option, saturate_option)
run_options = options(data_option, samples_option, seed_option, jobs_option, t_step_option, timeout_option)


def load_design(network_file: Path, technology: str, i_unit: float, units: int | None, saturate: bool) -> "Design":
    """Load and compile, calibrating first where no calibration applies."""
    from cosim.network.checkpoint import load_network

    return compile_loaded(load_network(network_file), technology, i_unit, units, saturate, str(network_file))


def compile_loaded(
    network: "Network", technology: str, i_unit: float, units: int | None, saturate: bool, origin: str
) -> "Design":
    """Compile a loaded network with the calibration that fits."""
    from cosim.analysis.calibration_files import find_calibration
    from cosim.design import compile_network
    from cosim.technology.catalog import load_technology

    process = load_technology(technology)
    calibration = find_calibration(process, units or default_units(network), say)
    return compile_network(network, process, calibration, i_unit, saturate, origin)


def default_units(network: "Network") -> int:
    """Unit devices per 1.0 that make the network's weight grid exact, as far as there are so many."""
    return DEFAULT_UNITS if network.weight_grid is None else max(1, min(MAX_UNITS, round(1 / network.weight_grid)))


def say(text: str) -> None:
    """A line of progress on stderr, so that stdout stays for results."""
    click.echo(f"  {text}", err=True)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A tqdm bar on stderr, driven by (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=label, unit="run", leave=False) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.n = done
            bar.refresh()

        yield update


def write_json(path: Path | None, content: object) -> None:
    """Write JSON to a file, or nothing for None. Raises InputError when the file cannot be written."""
    import json

    from cosim.outputs import write_texts

    if path is not None:
        write_texts(path.parent, {path.name: json.dumps(content, indent=2) + "\n"})
