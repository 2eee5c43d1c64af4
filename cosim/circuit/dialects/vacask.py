"""VACASK: nets in brackets, a control block, colons in hierarchical names."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from cosim.circuit.bench import Bench, Current, Dc, DrainCurrent, Op, Probe, SmallSignalBench, Tolerances, Tran, Voltage
from cosim.circuit.deck import BRACKETS, device_sizes, format_elements, format_number
from cosim.circuit.dialects.dialect import Dialect, FileNames, tolerance_texts, transistor_name
from cosim.circuit.elements import Circuit
from cosim.technology.foundry import model_family
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily
from cosim.technology.types import Technology

RUN = "run"  # the analysis; its results are in a raw file of this name
SWEPT = "swept"  # the value that a sweep sets, in that file
# Of the time between two breakpoints (corners of sources), the largest share that a step may take. A little above 1/50,
# so that the 50th step is cut at the breakpoint; at 1/50 it may end just before it, and VACASK then halves it.
STEP_SHARE = "0.0201"
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


POINT, SIGNALS, NOISE = "point", "signals", "noise"  # analyses of a small-signal deck, and names of their raw files


def format_small_signals(bench: SmallSignalBench, tolerances: Tolerances) -> str:
    """Format a small-signal bench as one self-contained deck for VACASK."""
    circuit, drive = bench.circuit, bench.drive
    value = format_number(float(np.asarray(drive.value)))
    start = f" nodeset={{{_listed(bench.start)}}}" if bench.start else ""
    values = f"values=[{', '.join(map(format_number, bench.hertz))}]"
    noisy = bench.noisy.replace(".", ":")
    noise = [f'analysis {NOISE} noise out="{noisy}" in="{drive.kind}_{drive.name}" {values}']
    analyses = [
        f"analysis {POINT} op{start}",
        f"analysis {SIGNALS} ac {values}",
        *(noise if noisy else []),
    ]
    nets = _LANGUAGE.joined(drive.a, drive.b)
    driven = f"{drive.kind}_{drive.name} {nets} {drive.kind}source dc={value} mag=1"
    elements = [*format_elements(circuit.elements, bench.technology, _LANGUAGE), driven]
    lines = _top_level(elements, option_texts(tolerances, bench.technology), ["elaborate circuit", *analyses])
    cards = VACASK.devices(bench.technology, device_sizes(circuit))
    return "\n".join([f"// {circuit.title}", cards, *lines]) + "\n"


def option_texts(tolerances: Tolerances, technology: Technology) -> dict[str, str]:
    """Return the options that a VACASK deck sets, VACASK's name -> value as text.

    VACASK's Newton iteration can also require that the currents into each net cancel to `abstol`. With an `abstol` of
    1e-17 A that ends the transient of a clocked cell on gf180mcu, because at its smallest steps a clock's current still
    changes by 2e-15 A an iteration; 1e-16 A does not. So below the default `abstol` that requirement is switched off.

    VACASK accepts the first step behind a breakpoint without an estimate of its error, and by default lets every step
    take a quarter of the time between two breakpoints. Within a clock's edge that first step shifts the voltage that a
    sample gate leaves on its capacitor: by up to 0.18 mV on sg13g2 at 6 nA, 0.5 % of the current. With `STEP_SHARE` the
    shift is 0.001 mV, and a comparator's bench takes a third longer. Decks with `xmu` 0 integrate by backward Euler and
    only measure charges. There the current at a step's end times its length is exactly the change of charge, however
    long the step, so they need no limit.
    """
    renamed = {"trtol": "tran_lteratio", "xmu": "tran_xmu"}
    settings = {renamed.get(name, name): value for name, value in tolerance_texts(tolerances).items()}
    by_voltage = {"nr_residualcheck": "0"} if tolerances.abstol < Tolerances().abstol else {}
    steps = {} if tolerances.xmu == 0.0 else {"tran_fbr": STEP_SHARE}
    return {"temp": format_number(technology.celsius), **settings, **by_voltage, **steps}


def _testbench(bench: Bench) -> list[str]:
    files = VACASK.files
    includes = (f'include "{name}"' for name in (files.devices, files.netlist))
    return [f"// {bench.circuit.title}", *includes, *_run(bench)]


def _run(bench: Bench) -> list[str]:
    """Return the lines after netlist and cards: built-in devices, the top level, and the analysis for VACASK."""
    family = model_family(bench.technology)
    control = (
        f"save {' '.join(_saved(probe, family) for probe in bench.probes)}",
        "elaborate circuit",
        *_analysis(bench),
    )
    elements = format_elements(bench.circuit.elements, bench.technology, _LANGUAGE)
    return _top_level(elements, option_texts(bench.tolerances, bench.technology), control)


def _top_level(elements: Iterable[str], options: Mapping[str, str], control: Iterable[str]) -> list[str]:
    """Return the lines of a VACASK deck after its cards and subcircuits; control: statements after the options."""
    statements = (f"options {' '.join(f'{name}={value}' for name, value in options.items())}", *control)
    return [
        'load "capacitor.osdi"',
        "model capacitor capacitor",
        'load "resistor.osdi"',
        "model resistor resistor",
        "model vsource vsource",
        "model isource isource",
        "ground 0",
        *elements,
        "control",
        *(f"  {line}" for statement in statements for line in _LANGUAGE.fold(statement)),
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
    return f'{run} icmode="op" ic={{{_listed(bench.preset)}}}' if bench.preset else run


def _listed(voltages: Iterable[tuple[str, float]]) -> str:
    """Return voltages of nets as VACASK's list of them."""
    return ", ".join(f'"{net.replace(".", ":")}", {format_number(value)}' for net, value in voltages)


def _saved(probe: Probe, family: ModelFamily) -> str:
    match probe:
        case DrainCurrent():
            return f"p('{transistor_name(probe).replace('.', ':')}',{_drain(family)})"
        case Voltage(net):
            return f"v('{net.replace('.', ':')}')"
        case Current(source):
            return f"i(v_{source})"


def _drain(family: ModelFamily) -> str:
    return family.forms[VACASK.name].drain


def printed(probe: Probe, family: ModelFamily = BSIM4) -> str:
    """Return a probe's name in VACASK's raw file: a net, a source's branch, or the current of a family's transistor."""
    match probe:
        case DrainCurrent():
            return f"{transistor_name(probe).replace('.', ':')}.{_drain(family)}"
        case Voltage(net):
            return net.replace(".", ":")
        case Current(source):
            return f"v_{source}:flow(br)"


VACASK = Dialect(
    "vacask", _LANGUAGE, _testbench, printed,
    FileNames("network.inc", "devices.inc", "testbench.sim"),
)  # fmt: skip
