"""VACASK: nets in brackets, a control block, colons in hierarchical names."""

import re
from dataclasses import replace

from cosim.circuit.bench import Bench, Current, Dc, DrainCurrent, Op, Probe, Tolerances, Tran, Voltage
from cosim.circuit.deck import BRACKETS, device_sizes, format_elements, format_number
from cosim.circuit.dialects.dialect import CardForm, Dialect, FileNames, tolerance_texts, transistor_name
from cosim.circuit.elements import Circuit
from cosim.technology.types import Technology

RUN = "run"  # the analysis; its results are in a raw file of this name
SWEPT = "swept"  # the value that a sweep sets, in that file
_LANGUAGE = replace(
    BRACKETS,
    ends="ends",
    multiplier="$mfactor",
    constant="{kind}source dc={value}",
    points='{kind}source type="pwl" wave=[{value}]',
    comma=", ",
    escaped=True,
    quoted=True,
)


def format_bench(bench: Bench) -> str:
    """Format a circuit's bench as one self-contained deck for VACASK: device cards, subcircuits, and the bench."""
    circuit = bench.circuit
    netlist = VACASK.network(Circuit(circuit.title, circuit.subcircuits), bench.technology)
    cards = VACASK.devices(bench.technology, device_sizes(circuit))
    return "\n".join([f"// {circuit.title}", cards, netlist, *_run(bench)]) + "\n"


def option_texts(tolerances: Tolerances, technology: Technology) -> dict[str, str]:
    """Return the options that a VACASK deck sets, VACASK's name -> value as text.

    VACASK's Newton iteration can also require that the currents into each net cancel to `abstol`. With an `abstol` of
    1e-17 A that ends the transient of a clocked cell on gf180mcu, because at its smallest steps a clock's current still
    changes by 2e-15 A an iteration; 1e-16 A does not. So below the default `abstol` that requirement is switched off.
    """
    renamed = {"trtol": "tran_lteratio", "xmu": "tran_xmu"}
    settings = {renamed.get(name, name): value for name, value in tolerance_texts(tolerances).items()}
    by_voltage = {"nr_residualcheck": "0"} if tolerances.abstol < Tolerances().abstol else {}
    return {"temp": format_number(technology.celsius), **settings, **by_voltage}


def _testbench(bench: Bench) -> list[str]:
    files = VACASK.files
    includes = (f'include "{name}"' for name in (files.devices, files.netlist))
    return [f"// {bench.circuit.title}", *includes, *_run(bench)]


def _run(bench: Bench) -> list[str]:
    """Return the lines after netlist and cards: built-in devices, the top level, and the analysis for VACASK."""
    options = option_texts(bench.tolerances, bench.technology).items()
    control = (
        f"options {' '.join(f'{name}={value}' for name, value in options)}",
        f"save {' '.join(map(_saved, bench.probes))}",
        "elaborate circuit",
        *_analysis(bench),
    )
    return [
        'load "capacitor.osdi"',
        "model capacitor capacitor",
        'load "resistor.osdi"',
        "model resistor resistor",
        "model vsource vsource",
        "model isource isource",
        "ground 0",
        *format_elements(bench.circuit.elements, bench.technology, _LANGUAGE),
        "control",
        *(f"  {line}" for statement in control for line in _LANGUAGE.fold(statement)),
        "endc",
    ]


def _analysis(bench: Bench) -> list[str]:
    match bench.analysis:
        case Op():
            return [f"analysis {RUN} op"]
        case Dc(kind, source, start, stop, step):
            values = f"from={format_number(start)} to={format_number(stop)} step={format_number(step)}"
            return [f'sweep {SWEPT} instance="{kind}_{source}" parameter="dc" {values}', f"analysis {RUN} op"]
        case Tran():
            return [_transient(bench)]


def _transient(bench: Bench) -> str:
    step = format_number(bench.transient.step)
    run = f"analysis {RUN} tran step={step} stop={format_number(bench.transient.end)} maxstep={step}"
    starts = ", ".join(f'"{net.replace(".", ":")}", {format_number(value)}' for net, value in bench.preset)
    return f'{run} icmode="op" ic={{{starts}}}' if starts else run


def _saved(probe: Probe) -> str:
    match probe:
        case DrainCurrent():
            return f"p('{transistor_name(probe).replace('.', ':')}',id)"
        case Voltage(net):
            return f"v('{net.replace('.', ':')}')"
        case Current(source):
            return f"i(v_{source})"


def printed(probe: Probe) -> str:
    """Return a probe's name in VACASK's raw file: a net, a source's branch, or a transistor's drain current."""
    match probe:
        case DrainCurrent():
            return f"{transistor_name(probe).replace('.', ':')}.id"
        case Voltage(net):
            return net.replace(".", ":")
        case Current(source):
            return f"v_{source}:flow(br)"


def _nearest_version(version: str) -> str:
    """Return the BSIM4 version for VACASK's device card that is nearest to a card's own.

    VACASK's sp_bsim4v8 knows 4.8 and its corrections; an older card runs as 4.8.0.
    """
    return version if re.fullmatch(r"4\.8(\.[0-3])?", version) else "4.8.0"


# With tnoimod=1 VACASK's BSIM4 has nets of its own behind source and drain, 1e3 S from them, in every analysis; beside
# 1e3 S the conductance of a device that is off rounds to zero. It says how thermal noise is divided, nothing else.
_CARDS = CardForm(
    _LANGUAGE, "model {name} sp_bsim4v8 (type={sign} {fields})", _nearest_version, 'version="{}"',
    ('load "spice/bsim4v8.osdi"',), replaced=(("tnoimod", 0.0),), include="",
)  # fmt: skip
VACASK = Dialect(
    "vacask", _LANGUAGE, _CARDS.format_devices, _testbench, printed,
    FileNames("network.inc", "devices.inc", "testbench.sim"),
)  # fmt: skip
