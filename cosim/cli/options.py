"""Options that several verbs share: each function declares one of them as a field, see `cosim.cli.verb`."""

from pathlib import Path

import click

from cosim.base.bounds import HEADROOM, I_UNIT, JOBS, SEED, SUPPLY, T_STEP, TAU, TIMEOUT, TOLERANCE, UNITS
from cosim.base.bounds import SAMPLES as MOST_SAMPLES
from cosim.cli.help import GroupedOption
from cosim.cli.types import Celsius, Integer, Number, Quantity
from cosim.cli.verb import FILE, Declared, argument, one_of, option, switch

SAMPLES = 100  # where a simulator takes seconds for each


class TechnologyOption(GroupedOption):
    """Group of the command line's options on technology and conditions."""

    title, shared = "Technology and conditions", True


class CompilingOption(GroupedOption):
    """Group of the command line's options on the compiler."""

    title, shared = "Compiling", True


class RunningOption(GroupedOption):
    """Group of the options on how samples run."""

    title, shared = "Running", True


def network_argument() -> Declared:
    """Declare the command-line argument for the file of the network."""
    return argument("NETWORK", FILE)


def output_option(default: str, text: str = "Folder.") -> Declared:
    """Declare the command-line option for the folder, or the file, that a verb writes."""
    return option(text, FILE, Path(default), flags=("-o", "--output"))


def json_option() -> Declared:
    """Declare --json, the file that a verb's figures are written to as well; the field is called `json_file`."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return option("Write the figures to this file, too.", kind, flags=("--json",))


def technology_option() -> Declared:
    """Declare the command-line option for the technology, by its name or its file."""
    return option("generic180, gf180mcu, sky130, or a .toml file.", None, "generic180", TechnologyOption)


def pdk_root_option() -> Declared:
    """Declare the command-line option for the folder of the foundry kits."""
    return option("Folder of the foundry kits [default: $PDK_ROOT].", FILE, None, TechnologyOption)


def corner_option() -> Declared:
    """Declare the command-line option for the process corner."""
    return option("Process corner: tt, ff, ss, fs, sf [default: tt].", None, None, TechnologyOption)


def celsius_option() -> Declared:
    """Declare the command-line option for the temperature in degree Celsius."""
    text = "Temperature in celsius [default: the technology's, 27]."
    return option(text, Celsius(), None, TechnologyOption, flags=("--temp",))


def supply_option() -> Declared:
    """Declare the command-line option for the supply in volt."""
    return option("Supply [default: the technology's].", Quantity(SUPPLY), None, TechnologyOption)


def i_unit_option() -> Declared:
    """Declare the command-line option for the current of software 1.0 in ampere."""
    return option("Current that stands for software 1.0.", Quantity(I_UNIT), "1n", CompilingOption)


def units_option() -> Declared:
    """Declare the command-line option for the unit devices per weight 1.0."""
    text = "Unit devices per weight 1.0 [default: from the network's weight grid, else 8]."
    return option(text, Integer(UNITS), None, CompilingOption)


def saturate_option() -> Declared:
    """Declare the command-line switch that cuts weights beyond the largest mirror."""
    return switch("Cut weights beyond the largest mirror, and list them.", CompilingOption)


def cell_option() -> Declared:
    """Declare the command-line option for the circuit of a recurrent unit."""
    text = "Circuit of a recurrent unit; auto takes it from epsilon."
    return one_of(("auto", "schmitt", "ladder"), text, CompilingOption)


def headroom_option() -> Declared:
    """Declare the command-line option for the rungs of a ladder beyond the states seen."""
    return option("Rungs beyond the states seen, either end.", Integer(HEADROOM), 1, CompilingOption)


def ranges_option() -> Declared:
    """Declare the command-line option for the samples that show the ranges of states."""
    return option("Samples (.npz) that show which states a ladder must hold.", FILE, None, CompilingOption)


def t_step_option() -> Declared:
    """Declare the command-line option for the duration of a frame in seconds."""
    return option("Duration of one frame.", Quantity(T_STEP), "10m", CompilingOption)


def tau_option() -> Declared:
    """Declare the command-line option for the time constant of ladders in seconds."""
    return option("Time constant of the ladders [default: a quarter frame].", Quantity(TAU), None, CompilingOption)


def around_option() -> Declared:
    """Declare the command-line option for the blocks of the chip around the network."""
    text = "Of the chip, too: inputs,decision,clock,bias, or some of them."
    return option(text, None, None, CompilingOption, flags=("--with",), metavar="BLOCKS")


def bias_option() -> Declared:
    """Declare the command-line option for the source of bias currents."""
    text = "Bias currents: ideal, as the reference cell gives them, or that with inputs that follow."
    return one_of(("constant", "reference", "tracking"), text)


def data_option() -> Declared:
    """Declare the command-line option for the test data."""
    return option("Test data: an .npz (x_test, y_test) or the task's folder.", FILE, None, RunningOption)


def tolerance_option() -> Declared:
    """Declare the command-line option for the error of a real-valued answer that counts as right."""
    text = "Error of a real-valued answer that is right [default: a tenth of the targets' range]."
    return option(text, Number(TOLERANCE), None, RunningOption)


def samples_option() -> Declared:
    """Declare the command-line option for the number of test samples."""
    text = f"How many test samples, drawn by --seed [default: {SAMPLES}; with --engine batch all]."
    return option(text, Integer(MOST_SAMPLES), None, RunningOption)


def probe_option() -> Declared:
    """Declare the command-line option for the names of what waveforms show."""
    text = (
        "What the waveforms show: a unit or a weight by its name in mapping.csv; * and ? stand for any; repeat it for "
        "more [default: the cell that changes most often]."
    )
    return option(text, None, None, RunningOption, multiple=True, metavar="NAME")


def noise_option() -> Declared:
    """Declare the command-line switch for device noise."""
    return switch("What device noise changes: behavioral, and in batch.", RunningOption)


def extracted_option(text: str) -> Declared:
    """Declare the command-line option for the folder of a layout, whose wires are simulated as well."""
    return option(f"Folder of cosim layout, whose wires are {text}.", FILE, None, RunningOption)


def seed_option() -> Declared:
    """Declare the command-line option for the seed of the sample draw."""
    return option("Seed of the sample draw.", Integer(SEED), 0, RunningOption)


def jobs_option() -> Declared:
    """Declare the command-line option for the number of worker processes."""
    return option("Worker processes.", Integer(JOBS), 2, RunningOption, flags=("--jobs", "-j"))


def timeout_option() -> Declared:
    """Declare the command-line option for the longest time of one simulation in seconds."""
    return option("Longest time of one simulation.", Quantity(TIMEOUT), "600", RunningOption)
