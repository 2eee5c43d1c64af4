"""ngspice's dialect: netlist, device models, options, what to save, one analysis, as a deck or as a testbench."""

import re

from cosim.base.errors import InputError
from cosim.base.text import shown
from cosim.circuit.bench import (
    Analysis,
    Bench,
    Current,
    Dc,
    DrainCurrent,
    Op,
    Probe,
    Tolerances,
    Tran,
    TransientNoise,
    Voltage,
)
from cosim.circuit.deck import SPICE, device_sizes, fold, format_circuit, format_elements, format_number
from cosim.circuit.dialects.dialect import START_FILE, Dialect, spice_probe, tolerance_texts, transistor_name
from cosim.circuit.elements import Circuit
from cosim.technology.foundry import model_family
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily
from cosim.technology.types import Technology

_PATH = re.compile(r"[\w./+:@%~-]+")  # of a file that a deck names
_SEEDS = 2**31 - 2  # of its generator


def format_bench(bench: Bench) -> str:
    """Format a circuit's bench as one self-contained deck (input text) for ngspice."""
    nested = bool(bench.circuit.subcircuits)
    family = model_family(bench.technology)
    saved = " ".join(saved_name(probe, family, nested=nested) for probe in bench.probes) or "all"
    lines: list[str] = []
    if bench.preset:
        lines += fold(f".ic {_voltages(bench.preset)}")
    if bench.start:
        lines += format_point(bench.start)
    if bench.noise is not None:
        lines += _noise(bench.noise)
    analysis = "\n".join([*lines, _analysis(bench.analysis)])
    options = format_options(bench.tolerances, bench.technology, skip_still=bench.skip_still)
    return format_deck(bench.circuit, bench.technology, options, analysis, saved)


def _noise(noise: TransientNoise) -> list[str]:
    """Format a bench's white noise sources for an ngspice deck, and the seed that they share.

    Raises InputError for noise of transistors, which ngspice's decks do not have.
    """
    if noise.slopes is not None:
        raise InputError("ngspice has no noise of transistors in a transient; use --engine batch")
    step = format_number(noise.step)
    sources = (
        f"inoise{k} {net} 0 dc 0 trnoise({format_number(rms)} {step} 0 0)" for k, (net, rms) in enumerate(noise.sources)
    )
    return [*sources, f".options seed={noise.key % _SEEDS + 1}"]


def format_deck(circuit: Circuit, technology: Technology, options: str, analysis: str, saved: str) -> str:
    """Format a deck for ngspice: netlist, device models, `options`, what to save, and one analysis.

    options: the lines of `format_options`; analysis, saved: text of the two statements.
    """
    netlist, devices = format_circuit(circuit, technology), NGSPICE.devices(technology, device_sizes(circuit))
    return f"{netlist}\n{devices}\n{options}.save {saved}\n{analysis}\n.end\n"


def format_options(tolerances: Tolerances, technology: Technology, *, skip_still: bool = False) -> str:
    """Return the `.options` and `.temp` lines of an ngspice deck.

    They set num_threads, because ngspice's default of two threads costs five times the processor time of one thread in
    circuits of this size.
    """
    settings = " ".join(f"{name}={value}" for name, value in tolerance_texts(tolerances).items())
    options = f".options {settings} bypass={int(skip_still)} num_threads=1"
    return f"{options}\n.temp {format_number(technology.celsius)}\n"


def format_point(voltages: tuple[tuple[str, float], ...]) -> list[str]:
    """Format the statement of an ngspice deck that makes these (net, V) the first guess of an operating point.

    Returns its folded lines.
    """
    return fold(f".nodeset {_voltages(voltages)}")


def _voltages(voltages: tuple[tuple[str, float], ...]) -> str:
    return " ".join(f"v({net})={format_number(value)}" for net, value in voltages)


def vector(probe: Probe, family: ModelFamily = BSIM4, *, nested: bool) -> str:
    """Return the name of a probe among ngspice's results, for transistors of a family.

    nested: whether the circuit has subcircuits; without them a transistor has its plain name.
    """
    match probe:
        case DrainCurrent(device):
            letter, drain = SPICE.osdi if family.osdi else "m", family.forms[NGSPICE.name].drain
            name = transistor_name(probe, letter) if nested else f"{letter}{device}"
            return f"@{letter}.{name}[{drain}]" if nested and "." in name else f"@{name}[{drain}]"
        case Voltage(net):
            return net
        case Current(source):
            return f"v{source}#branch"


def saved_name(probe: Probe, family: ModelFamily = BSIM4, *, nested: bool = True) -> str:
    """Return the name by which an ngspice deck saves and prints a probe. nested: see `vector`."""
    return vector(probe, family, nested=nested) if isinstance(probe, DrainCurrent) else spice_probe(probe)


def _analysis(analysis: Analysis) -> str:
    match analysis:
        case Op():
            return ".op"
        case Dc(kind, source, start, stop, step):
            return f".dc {kind}{source} {format_number(start)} {format_number(stop)} {format_number(step)}"
        case Tran(step, end):
            limit = f" 0e+00 {format_number(step)}" if step < end else ""
            return f".tran {format_number(step)} {format_number(end)}{limit}"


def _testbench(bench: Bench) -> list[str]:
    files = NGSPICE.files
    options = format_options(bench.tolerances, bench.technology, skip_still=bench.skip_still)
    return [
        f"* {bench.circuit.title}",
        *(f"* {note}" for note in bench.notes),
        f".include {files.netlist}",
        f".include {files.devices}",
        *([f".include {START_FILE}"] if bench.skip_still else []),
        *format_elements(bench.circuit.elements, bench.technology),
        *options.splitlines(),
        *(f".save {saved_name(probe, model_family(bench.technology))}" for probe in bench.probes),
        _analysis(bench.analysis),
        ".end",
    ]


def _library(technology: Technology) -> list[str]:
    """Return the statements for the foundry's library. Raises InputError for a path that ngspice cannot read."""
    library = technology.library
    paths = [str(file.resolve()) for file in (*library.also, library.file)]
    if (wrong := next((path for path in paths if not _PATH.fullmatch(path)), None)) is not None:
        raise InputError(
            f"{shown(wrong)}: ngspice takes no library whose path has a blank, a quote or another such character; "
            "move the kit, or make a link to it, and give that folder with --pdk-root"
        )
    *also, file = paths
    return [*(f".include '{path}'" for path in also), f".lib '{file}' {library.sections[technology.corner]}"]


NGSPICE = Dialect("ngspice", SPICE, _testbench, saved_name, library=_library)
