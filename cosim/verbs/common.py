"""Options that several verbs share, each declared by a function as a dataclass field (see `cosim.cli.verb`); checks."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import (
    AUDIT,
    CELSIUS,
    COMPARATOR_DEVICES,
    HEADROOM,
    I_UNIT,
    JOBS,
    SEED,
    SUPPLY,
    T_STEP,
    TAU,
    TIMEOUT,
    TOLERANCE,
    UNITS,
)
from cosim.base.bounds import SAMPLES as MOST_SAMPLES
from cosim.base.errors import InputError, MissingToolError
from cosim.cli.help import OptionGroup
from cosim.cli.progress import say
from cosim.cli.types import EngineName, Integer, Number, Quantity, QuantityList, read_celsius
from cosim.cli.verb import FILE, Declared, argument, one_of, option, switch
from cosim.engines.table import Entry, check_models, engine_entry, reference_simulator, simulators

if TYPE_CHECKING:
    from cosim.compiler.design import Condition, Design
    from cosim.compiler.settings import CompilerSettings
    from cosim.engines.engine import Run
    from cosim.engines.simulation.audit import Audit
    from cosim.tasks.testset import TestSet
    from cosim.technology.types import Flicker, Technology
    from cosim.units.placement import Circuit as Cell
    from cosim.variation.noise import NoiseSimulation
    from cosim.verbs.loading import TargetTechnology

SAMPLES = 100  # where a simulator takes seconds for each


TECHNOLOGY_GROUP = OptionGroup("Technology and conditions", shared=True)
COMPILING_GROUP = OptionGroup("Compiling", shared=True)
RUNNING_GROUP = OptionGroup("Running", shared=True)


def network_argument() -> Declared:
    """Declare the argument that verbs share for the file of the network."""
    return argument("NETWORK", FILE)


def output_option(default: str, text: str = "Folder.") -> Declared:
    """Declare the option that verbs share for the folder, or the file, that they write."""
    return option(text, FILE, Path(default), flags=("-o", "--output"))


def json_option() -> Declared:
    """Declare --json, the file that also gets a verb's figures; the field is called `json_file`."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return option("Write the figures to this file, too.", kind, flags=("--json",))


def technology_option() -> Declared:
    """Declare the option that verbs share for the technology, by its name or its file."""
    return option(
        "generic180, gf180mcu, sg13g2, sg13g2_1v2, sky130 or FILE.toml.", None, "generic180", TECHNOLOGY_GROUP
    )


def pdk_root_option() -> Declared:
    """Declare the option that verbs share for the folder of the foundry kits."""
    return option("Folder of the foundry kits [default: $PDK_ROOT].", FILE, None, TECHNOLOGY_GROUP)


def t_step_option() -> Declared:
    """Declare the option that verbs share for the duration of a frame in seconds."""
    return option("Duration of one frame.", Quantity(T_STEP), "10m", COMPILING_GROUP)


def tau_option() -> Declared:
    """Declare the option that verbs share for the time constant of ladders in seconds."""
    return option("Time constant of the ladders [default: a quarter frame].", Quantity(TAU), None, COMPILING_GROUP)


def bias_option() -> Declared:
    """Declare the option that verbs share for the source of bias currents."""
    text = "Bias currents: ideal, as the reference cell gives them, or that with inputs that follow."
    return one_of(("constant", "reference", "tracking"), text)


def temperatures_option(text: str) -> Declared:
    """Declare --temps, temperatures in celsius with commas between them; text: what happens at them."""
    return option(text, QuantityList(CELSIUS), None, TECHNOLOGY_GROUP, multiple=True)


def supplies_option(text: str) -> Declared:
    """Declare --supplies, supplies in volt with commas between them; text: what happens at them."""
    return option(text, QuantityList(SUPPLY), None, TECHNOLOGY_GROUP, multiple=True)


def data_option() -> Declared:
    """Declare the option that verbs share for the test data."""
    return option("Test data: an .npz (x_test, y_test) or the task's folder.", FILE, None, RUNNING_GROUP)


def tolerance_option() -> Declared:
    """Declare the option that verbs share for the largest error at which a real-valued answer counts as right."""
    text = "Error of a real-valued answer that is right [default: a tenth of the targets' range]."
    return option(text, Number(TOLERANCE), None, RUNNING_GROUP)


def probe_option() -> Declared:
    """Declare the option that verbs share for the units and weights whose waveforms are recorded."""
    text = (
        "What the waveforms show: a unit or a weight by its name in mapping.csv; * and ? stand for any; repeat it for "
        "more [default: the cell that changes most often]."
    )
    return option(text, None, None, RUNNING_GROUP, multiple=True, metavar="NAME")


def noise_option() -> Declared:
    """Declare the switch that verbs share for device noise."""
    return switch("What device noise changes: behavioral, and in batch.", RUNNING_GROUP)


def extracted_option(text: str) -> Declared:
    """Declare the option for the folder of a layout; text: what happens to its wires, as in "whose wires are ..."."""
    return option(f"Folder of cosim layout, whose wires are {text}.", FILE, None, RUNNING_GROUP)


def jobs_option() -> Declared:
    """Declare the option that verbs share for the number of worker processes."""
    return option("Worker processes.", Integer(JOBS), 2, RUNNING_GROUP, flags=("--jobs", "-j"))


def timeout_option() -> Declared:
    """Declare the option that verbs share for the longest time of one simulation in seconds."""
    return option("Longest time of one simulation.", Quantity(TIMEOUT), "600", RUNNING_GROUP)


AUDITED = 20  # instances, where the engine has models of its own


def engine_option(
    text: str, entries: Callable[[], tuple[Entry, ...]] = simulators, default: str | None = None
) -> Declared:
    """Declare --engine, the choice of a simulator.

    text: the help text; entries: returns the simulators to choose from; default: name of one of them, None for the
    reference simulator of the technology, see `chosen_engine`.
    """
    if default is None:
        text = f"{text.rstrip('.')} [default: ngspice; for PSP103 vacask]."
    return option(text, EngineName(lambda: [entry.name for entry in entries()]), default)


@dataclass(frozen=True)
class Compiling:
    """Options of a verb that select the technology, its corner, temperature and supply, and steer the compiler."""

    technology: str = technology_option()
    pdk_root: Path | None = pdk_root_option()
    corner: str | None = option("Process corner: tt, ff, ss, fs, sf [default: tt].", None, None, TECHNOLOGY_GROUP)
    celsius: float | None = option(
        "Temperature in celsius [default: the technology's, 27].",
        Number(CELSIUS, read_celsius),
        None,
        TECHNOLOGY_GROUP,
        flags=("--temp",),
    )
    supply: float | None = option("Supply [default: the technology's].", Quantity(SUPPLY), None, TECHNOLOGY_GROUP)
    i_unit: float = option("Current that stands for software 1.0.", Quantity(I_UNIT), "1n", COMPILING_GROUP)
    units: int | None = option(
        "Unit devices per weight 1.0 [default: from the network's weight grid, else 8].",
        Integer(UNITS), None, COMPILING_GROUP,
    )  # fmt: skip
    saturate: bool = switch("Cut weights beyond the largest mirror, and list them.", COMPILING_GROUP)
    cell: "Cell" = one_of(
        ("auto", "schmitt", "ladder", "counter"),
        "Circuit of a recurrent unit; auto takes it from epsilon.",
        COMPILING_GROUP,
    )
    headroom: int = option("Rungs beyond the states seen, either end.", Integer(HEADROOM), 1, COMPILING_GROUP)
    comparator_devices: int = option(
        "Devices in parallel in comparators of units that count or store.",
        Integer(COMPARATOR_DEVICES),
        1,
        COMPILING_GROUP,
    )
    ranges_from: Path | None = option(
        "Samples (.npz) that show which states a ladder must hold.", FILE, None, COMPILING_GROUP
    )
    overrides: Path | None = option(
        "Changes to single transistors and bias currents (.toml).", FILE, None, COMPILING_GROUP
    )
    netlist: Path | None = option(
        "Circuit in place of the compiled one: network.sp, edited.", FILE, None, COMPILING_GROUP
    )
    t_step: float = t_step_option()
    tau: float | None = tau_option()
    around: str | None = option(
        "Of the chip, too: inputs,decision,clock,bias, or some of them.",
        None, None, COMPILING_GROUP, flags=("--with",), metavar="BLOCKS",
    )  # fmt: skip

    @property
    def place(self) -> "TargetTechnology":
        """Return the technology and conditions that the options select."""
        from cosim.verbs.loading import TargetTechnology

        return TargetTechnology(self.technology, self.pdk_root, self.corner, self.celsius, self.supply, self.units)

    @property
    def settings(self) -> "CompilerSettings":
        """Return the compiler's settings that the options select."""
        from cosim.compiler.edited import read_edited
        from cosim.compiler.overrides import Overrides, read_overrides
        from cosim.compiler.settings import CompilerSettings, parse_around

        return CompilerSettings(
            self.i_unit, self.saturate, cell=self.cell, headroom=self.headroom,
            comparator_devices=self.comparator_devices, t_step=self.t_step, tau=self.tau,
            around=parse_around(self.around),
            overrides=Overrides() if self.overrides is None else read_overrides(self.overrides),
            netlist=None if self.netlist is None else read_edited(self.netlist),
        )  # fmt: skip


@dataclass(frozen=True)
class Running:
    """Options of a verb that select the test samples, the number of worker processes and the time limit."""

    data: Path | None = data_option()
    samples: int | None = option(
        f"How many test samples, drawn by --seed [default: {SAMPLES}; with --engine batch all].",
        Integer(MOST_SAMPLES), None, RUNNING_GROUP,
    )  # fmt: skip
    seed: int = option("Seed of the sample draw.", Integer(SEED), 0, RUNNING_GROUP)
    jobs: int = jobs_option()
    timeout: float = timeout_option()
    sample: int | None = None  # one by its number, in place of a draw


def target_technology(compiling: Compiling) -> "Technology":
    """Return the technology that --technology names, without corner, temperature and supply of the options.

    Raises InputError for no such technology, MissingToolError where its kit is not installed.
    """
    from cosim.technology.catalog import load_technology

    return load_technology(compiling.technology, compiling.pdk_root)


def chosen_engine(engine: str | None, technology: "Technology") -> str:
    """Return the engine that a verb runs in a technology; engine: value of --engine, None if it is not given.

    Raises InputError for an engine that cannot run the models of the technology's devices.
    """
    name = engine or reference_simulator(technology)
    check_models(name, technology)
    return name


def load_design(network_file: Path, compiling: Compiling) -> "tuple[Design, Condition]":
    """Load and compile a network; return the design and the condition that the options select.
    Measures a calibration first where no kept one applies."""
    from cosim.verbs.loading import compile_at, load_ranged

    network = load_ranged(network_file, compiling.ranges_from)
    return compile_at(network, str(network_file), compiling.place, compiling.settings, say)


def load_run(
    network_file: Path,
    folder: Path,
    compiling: Compiling,
    running: Running,
    engine: str,
) -> "tuple[Design, TestSet, Run]":
    """Load and compile a network, and draw its test samples; return (design, samples, run).
    The run says in which folder, with which engine and in which condition the samples are simulated."""
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.verbs.loading import draw_samples, pick_sample

    check_models(engine, target_technology(compiling))
    design, condition = load_design(network_file, compiling)
    if running.sample is not None:
        test_set = pick_sample(design.network, running.data, running.sample, say)
    else:
        samples = running.samples or (None if engine_entry(engine).quick else SAMPLES)
        test_set = draw_samples(design.network, running.data, samples, running.seed, say)
    timing = Timing(t_step=compiling.t_step)
    return design, test_set, Run(folder, running.jobs, running.timeout, timing, engine, condition)


def noise_of(design: "Design", seed: int, flicker: "Flicker" = "typical") -> "NoiseSimulation":
    """Return the noise of a design's devices, to be drawn with a seed.

    Measures the technology's noise first where no kept figures apply. flicker: typical or worst flicker noise.
    """
    from cosim.technology.conditions import with_flicker
    from cosim.variation.noise import NoiseSimulation
    from cosim.verbs.calibrate.noise import find_noise

    return NoiseSimulation(find_noise(with_flicker(design.technology, flicker), say), seed)


def check_outputs(verb: str, folder: Path, json_file: Path | None = None) -> None:
    """Check, before a verb starts, that it may write its folder and its --json file; create nothing.
    Raises InputError where the folder belongs to another verb, or where `check_json` does."""
    from cosim.base.claim import check_owner

    check_owner(folder, verb)
    if json_file is not None and (json_file.parent != folder or folder.is_dir()):
        check_json(json_file)


def check_json(path: Path | None) -> None:
    """Check, before a verb starts, that it may write its figures to the file of --json; None is accepted.

    Raises InputError where the file cannot be written, or where it exists and is no JSON object.
    """
    from cosim.base.claim import check_replaceable, starts_with

    if path is not None:
        check_replaceable({path: starts_with(b"{")}, "--json")


def describe_failed(failed: int, folder: Path) -> str | None:
    """Return a message with the number of failed runs and the folder of their decks; None if no run failed."""
    return f"{failed} runs failed; their decks are in {folder / 'failed'}" if failed else None


def audit_option() -> Declared:
    """Declare --audit: the number of samples of --engine batch that the reference simulator also runs, as a check."""
    text = "How many samples of --engine batch run in ngspice, too (PSP103: vacask), half the least certain; 0: none "
    return option(f"{text}[default: {AUDITED}].", Integer(AUDIT))


def audit_count(audit: int | None, engine: str, technology: "Technology") -> int:
    """Return the number of samples that a verb audits; 0 for engines without audit.

    An audited sample also runs in the reference simulator of the technology. Raises InputError if `audit` is given for
    an engine that is not audited, MissingToolError if `audit` is given and the reference simulator is missing. If that
    is missing and `audit` is None, says so and returns 0.
    """
    from cosim.engines.table import simulator_named

    if not engine_entry(engine).quick:
        if audit:
            raise InputError(f"--audit is for --engine batch, not for {engine}; leave it out")
        return 0
    count = AUDITED if audit is None else audit
    try:
        if count:
            simulator_named(reference_simulator(technology)).check()
    except MissingToolError as error:
        if audit is not None:
            raise
        say(f"no audit: {error}")
        return 0
    return count


def describe_audit(audit: "Audit | None", place: Path) -> str | None:
    """Return the error message for a run whose audit failed; None if the audit passed or there was none.
    place: folder of the results, named in the message."""
    from cosim.verbs.trust import format_refusal

    return None if audit is None or audit.passed else f"cosim: {format_refusal(audit, str(place))}"
