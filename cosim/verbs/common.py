"""Options that several verbs share, and how verbs load, check and write."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.bounds import AUDIT
from cosim.base.errors import InputError, MissingToolError
from cosim.cli.options import (
    SAMPLES,
    around_option,
    cell_option,
    celsius_option,
    corner_option,
    data_option,
    headroom_option,
    i_unit_option,
    jobs_option,
    pdk_root_option,
    ranges_option,
    samples_option,
    saturate_option,
    seed_option,
    supply_option,
    t_step_option,
    tau_option,
    technology_option,
    timeout_option,
    units_option,
)
from cosim.cli.progress import say
from cosim.cli.types import EngineName, Integer
from cosim.cli.verb import Declared, option
from cosim.engines.table import NGSPICE, Entry, engine_entry, simulators

if TYPE_CHECKING:
    from cosim.compiler.design import Condition, Design
    from cosim.compiler.settings import CompilerSettings
    from cosim.engines.engine import Run
    from cosim.engines.simulation.audit import Audit
    from cosim.tasks.testset import TestSet
    from cosim.technology.types import Flicker
    from cosim.units.epsilon import Circuit as Cell
    from cosim.variation.noise import NoiseSimulation
    from cosim.verbs.loading import TargetTechnology

AUDITED = 20  # instances, where the engine has models of its own


def engine_option(text: str, entries: Callable[[], tuple[Entry, ...]] = simulators, default: str = NGSPICE) -> Declared:
    """Declare --engine, which takes one of `entries`; `text` says what for."""
    return option(text, EngineName(lambda: [entry.name for entry in entries()]), default)


@dataclass(frozen=True)
class Compiling:
    """Options of a verb on the technology, its conditions, and the compiler."""

    technology: str = technology_option()
    pdk_root: Path | None = pdk_root_option()
    corner: str | None = corner_option()
    celsius: float | None = celsius_option()
    supply: float | None = supply_option()
    i_unit: float = i_unit_option()
    units: int | None = units_option()
    saturate: bool = saturate_option()
    cell: "Cell" = cell_option()
    headroom: int = headroom_option()
    ranges_from: Path | None = ranges_option()
    t_step: float = t_step_option()
    tau: float | None = tau_option()
    around: str | None = around_option()

    @property
    def place(self) -> "TargetTechnology":
        """Return the technology and conditions that a verb's options compile the network for."""
        from cosim.verbs.loading import TargetTechnology

        return TargetTechnology(self.technology, self.pdk_root, self.corner, self.celsius, self.supply, self.units)

    @property
    def settings(self) -> "CompilerSettings":
        """Return the settings of the compiler from a verb's options."""
        from cosim.compiler.settings import CompilerSettings, parse_around

        return CompilerSettings(
            self.i_unit, self.saturate, cell=self.cell, headroom=self.headroom, t_step=self.t_step, tau=self.tau,
            around=parse_around(self.around),
        )  # fmt: skip


@dataclass(frozen=True)
class Running:
    """Options of a verb on the samples, and on where they run."""

    data: Path | None = data_option()
    samples: int | None = samples_option()
    seed: int = seed_option()
    jobs: int = jobs_option()
    timeout: float = timeout_option()
    sample: int | None = None  # one by its number, in place of a draw


def load_design(network_file: Path, compiling: Compiling) -> "tuple[Design, Condition]":
    """Load and compile, calibrating first where no calibration applies; and the condition that was asked for."""
    from cosim.verbs.loading import compile_at, load_ranged

    network = load_ranged(network_file, compiling.ranges_from)
    return compile_at(network, str(network_file), compiling.place, compiling.settings, say)


def load_run(
    network_file: Path,
    folder: Path,
    compiling: Compiling,
    running: Running,
    engine: str = NGSPICE,
) -> "tuple[Design, TestSet, Run]":
    """Return a compiled network, the samples that it is tried on, and where and how they run."""
    from cosim.circuit.waveforms import Timing
    from cosim.engines.engine import Run
    from cosim.verbs.loading import draw_samples, pick_sample

    design, condition = load_design(network_file, compiling)
    if running.sample is not None:
        test_set = pick_sample(design.network, running.data, running.sample, say)
    else:
        samples = running.samples or (None if engine_entry(engine).quick else SAMPLES)
        test_set = draw_samples(design.network, running.data, samples, running.seed, say)
    timing = Timing(t_step=compiling.t_step)
    return design, test_set, Run(folder, running.jobs, running.timeout, timing, engine, condition)


def noise_of(design: "Design", seed: int, flicker: "Flicker" = "typical") -> "NoiseSimulation":
    """Return the noise of a design's devices with a seed, after measuring its technology where no figures are kept."""
    from cosim.technology.conditions import with_flicker
    from cosim.variation.noise import NoiseSimulation
    from cosim.verbs.calibrate.noise import find_noise

    return NoiseSimulation(find_noise(with_flicker(design.technology, flicker), say), seed)


def check_outputs(verb: str, folder: Path, json_file: Path | None = None) -> None:
    """Raise InputError where a verb's results could not be written, before there are any; makes nothing."""
    from cosim.base.claim import check_owner

    check_owner(folder, verb)
    if json_file is not None and (json_file.parent != folder or folder.is_dir()):
        check_json(json_file)


def check_json(path: Path | None) -> None:
    """Raise InputError where figures could not be written into a file, or would replace what is no JSON object."""
    from cosim.base.claim import check_replaceable, starts_with

    if path is not None:
        check_replaceable({path: starts_with(b"{")}, "--json")


def describe_failed(failed: int, folder: Path) -> str | None:
    """Return the complaint about runs that have failed, with where their decks are; None where none has."""
    return f"{failed} runs failed; their decks are in {folder / 'failed'}" if failed else None


def audit_option() -> Declared:
    """Declare --audit of a verb: how many samples of an engine with models of its own ngspice runs as well."""
    text = "How many samples of --engine batch run in ngspice, too, half of them the least certain; 0 for none "
    return option(f"{text}[default: {AUDITED}].", Integer(AUDIT))


def audit_count(audit: int | None, engine: str) -> int:
    """Return how many samples to audit, before anything runs. Raises InputError for an engine that is not audited,
    MissingToolError where ngspice is missing and the audit was asked for; else it is left out with a message."""
    from cosim.engines.table import simulator_named

    if not engine_entry(engine).quick:
        if audit:
            raise InputError(f"--audit is for --engine batch, not for {engine}; leave it out")
        return 0
    count = AUDITED if audit is None else audit
    try:
        if count:
            simulator_named(NGSPICE).check()
    except MissingToolError as error:
        if audit is not None:
            raise
        say(f"no audit: {error}")
        return 0
    return count


def describe_audit(audit: "Audit | None", place: Path) -> str | None:
    """Return the complaint of a verb whose audit by ngspice refuses the run; None where it does not."""
    from cosim.verbs.trust import format_refusal

    return None if audit is None or audit.passed else f"cosim: {format_refusal(audit, str(place))}"
