"""A transient run of a compiled netlist as an input file of each simulator, with the tolerances by its own names.

               ngspice              hspice               xyce                 spectre
    gmin       gmin                 gmin and gmindc      device gmin          gmin
    reltol     reltol               reltol, reli,        timeint reltol,      reltol
                                    relmos               nonlin reltol
    abstol     abstol               abstol, absmos       nonlin abstol        iabstol
    vntol      vntol                vntol                timeint abstol       vabstol
    charge     chgtol, trtol        chgtol, trtol with   none                 none
                                    runlvl=0
    ringing    xmu                  mu                   method=gear          method=gear2only
    save       .save v(x.n) i(v)    .probe tran ..       .print tran v(x:n)   save x.n v:p

What of it has been run: docs/dialects.md. Sources as in cosim.circuit.dialects.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from cosim.circuit.deck import fold, format_elements, format_number
from cosim.circuit.dialects import Dialect, files_of, spectre_elements
from cosim.circuit.elements import Element
from cosim.simulation.options import SimulatorOptions, format_options
from cosim.technology.types import Technology


@dataclass(frozen=True)
class Bench:
    """What is run: elements around the netlist, saved v(net) and i(source) as ngspice writes them, step, end in s."""

    title: str
    elements: tuple[Element, ...]
    saved: tuple[str, ...]
    step: float
    end: float


Writer = Callable[[Bench, Technology, SimulatorOptions], list[str]]


def format_bench(bench: Bench, technology: Technology, options: SimulatorOptions, dialect: Dialect) -> str:
    """A complete input file beside netlist and cards (`files_of`)."""
    return "\n".join(_WRITERS[dialect](bench, technology, options)) + "\n"


def _ngspice(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    files, step = files_of("ngspice"), format_number(bench.step)
    return [
        f"* {bench.title}",
        f".include {files.netlist}",
        f".include {files.devices}",
        *format_elements(bench.elements, technology),
        *format_options(options, technology).splitlines(),
        *(f".save {vector}" for vector in bench.saved),
        f".tran {step} {format_number(bench.end)} 0e+00 {step}",
        ".end",
    ]


def _hspice(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    value = _values(options)
    settings = (
        f".option runlvl=0 gmin={value['gmin']} gmindc={value['gmin']} abstol={value['abstol']} "
        f"absmos={value['abstol']} vntol={value['vntol']} chgtol={value['chgtol']} reltol={value['reltol']} "
        f"reli={value['reltol']} relmos={value['reltol']} trtol={value['trtol']} method=trap mu={value['xmu']} "
        f"bypass=0 delmax={format_number(bench.step)}"
    )
    return [
        f"* {bench.title}",
        ".include 'network.sp'",
        ".include 'devices.lib'",
        *format_elements(bench.elements, technology),
        "* runlvl=0: at any other level HSPICE replaces most of these tolerances by its own",
        *fold(settings),
        ".option post probe",
        f".temp {format_number(technology.celsius)}",
        *fold(f".probe tran {' '.join(bench.saved)}"),
        f".tran {format_number(bench.step)} {format_number(bench.end)}",
        ".end",
    ]


_RESIDUAL_AMPERE = 1e-12  # 2-norm over all nodes; Xyce's 1e-6 (op) and 1e-2 (transient) exceed every current here


def _xyce(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    value = _values(options)
    residual = f"abstol={value['abstol']} reltol={value['reltol']} rhstol={format_number(_RESIDUAL_AMPERE)}"
    saved = " ".join(vector_name(vector, "xyce") for vector in bench.saved)
    step = format_number(bench.step)
    return [
        f"* {bench.title}",
        '.include "network.sp"',
        '.include "devices.lib"',
        *format_elements(bench.elements, technology),
        f".options device gmin={value['gmin']} temp={format_number(technology.celsius)}",
        f".options timeint method=gear reltol={value['reltol']} abstol={value['vntol']}",
        f".options nonlin {residual}",
        f".options nonlin-tran {residual}",
        *fold(f".print tran {saved}"),
        f".tran {step} {format_number(bench.end)} 0e+00 {step}",
        ".end",
    ]


def _spectre(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    value = _values(options)
    settings = (
        f"tolerances options reltol={value['reltol']} vabstol={value['vntol']} iabstol={value['abstol']} "
        f"gmin={value['gmin']} temp={format_number(technology.celsius)} save=selected"
    )
    run = (
        f"run tran stop={format_number(bench.end)} maxstep={format_number(bench.step)} errpreset=moderate "
        "relref=alllocal method=gear2only"
    )
    return [
        f"// {bench.title}",
        "simulator lang=spectre",
        "global 0",
        'include "network.scs"',
        'include "devices.scs"',
        *spectre_elements(bench.elements, technology),
        *fold(settings),
        *fold(run),
        *fold(f"save {' '.join(vector_name(vector, 'spectre') for vector in bench.saved)}"),
    ]


def _values(options: SimulatorOptions) -> dict[str, str]:
    return {name: format_number(number) for name, number in asdict(options).items()}


def vector_name(vector: str, dialect: Dialect) -> str:
    """What v(net) and i(source) of ngspice are called; Spectre: net, and the current into a source's first terminal."""
    kind, name = vector[0], vector[2:-1]
    match dialect:
        case "xyce":
            return vector.replace(".", ":")
        case "spectre":
            return name if kind == "v" else f"{name[0]}_{name[1:]}:p"
        case _:
            return vector


_WRITERS: Mapping[Dialect, Writer] = {"ngspice": _ngspice, "hspice": _hspice, "xyce": _xyce, "spectre": _spectre}
