"""A transient run of a compiled netlist as an input file of each simulator, with the tolerances by its own names.

               ngspice             hspice              xyce                spectre           vacask
    gmin       gmin                gmin and gmindc     device gmin         gmin              gmin
    reltol     reltol              reltol, reli,       timeint reltol,     reltol            reltol
                                   relmos              nonlin reltol
    abstol     abstol              abstol, absmos      nonlin abstol       iabstol           abstol
    vntol      vntol               vntol               timeint abstol      vabstol           vntol
    charge     chgtol, trtol       chgtol, trtol with  none                none              chgtol, tran_lteratio
                                   runlvl=0
    ringing    xmu                 mu                  method=gear         method=gear2only  tran_xmu
    save       .save v(x.n) i(v)   .probe tran ..      .print tran V(X:N)  save x.n v:p      save v('x:n') i(v)

What of it has been run: docs/dialects.md. Sources as in cosim.circuit.dialects.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from cosim.circuit.brackets import SPECTRE, VACASK, bracket_elements
from cosim.circuit.deck import device_sizes, fold, format_elements, format_number
from cosim.circuit.dialects import Dialect, files_of, format_devices, format_network
from cosim.circuit.elements import Circuit, Element
from cosim.engines.ngspice.options import SimulatorOptions, format_options
from cosim.technology.types import Technology


@dataclass(frozen=True)
class Bench:
    """What is run: elements around the netlist, saved v(net) and i(source) as ngspice writes them, step, end in s.

    preset: nets that begin at the supply. notes: comments under the title. started: in ngspice it begins at the point
    that stands in START_FILE.
    """

    title: str
    elements: tuple[Element, ...]
    saved: tuple[str, ...]
    step: float
    end: float
    preset: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    started: bool = False


START_FILE = "start.sp"  # the operating point that an ngspice testbench begins at
Writer = Callable[[Bench, Technology, SimulatorOptions], list[str]]


def format_bench(bench: Bench, technology: Technology, options: SimulatorOptions, dialect: Dialect) -> str:
    """A complete input file beside netlist and cards (`files_of`)."""
    return "\n".join(_WRITERS[dialect](bench, technology, options)) + "\n"


def _ngspice(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    files, step = files_of("ngspice"), format_number(bench.step)
    return [
        f"* {bench.title}",
        *(f"* {note}" for note in bench.notes),
        f".include {files.netlist}",
        f".include {files.devices}",
        *([f".include {START_FILE}"] if bench.started else []),
        *format_elements(bench.elements, technology),
        *format_options(options, technology, bench.started).splitlines(),
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
        *bracket_elements(bench.elements, technology, SPECTRE),
        *fold(settings),
        *fold(run),
        *fold(f"save {' '.join(vector_name(vector, 'spectre') for vector in bench.saved)}"),
    ]


def _vacask(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    files = files_of("vacask")
    includes = (f'include "{name}"' for name in (files.devices, files.netlist))
    return [f"// {bench.title}", *includes, *vacask_run(bench, technology, options)]


def vacask_run(bench: Bench, technology: Technology, options: SimulatorOptions) -> list[str]:
    """What follows netlist and cards: built-in devices, the elements of a bench, and how VACASK runs them."""
    step = format_number(bench.step)
    settings = " ".join(f"{name}={value}" for name, value in vacask_options(technology, options).items())
    run = f"analysis {VACASK_RUN} tran step={step} stop={format_number(bench.end)} maxstep={step}"
    if bench.preset:
        supply = format_number(technology.supply)
        starts = "; ".join(f'"{net.replace(".", ":")}"; {supply}' for net in bench.preset)
        run += f' icmode="op" ic=[{starts}]'
    return [
        'load "capacitor.osdi"',
        "model capacitor capacitor",
        "model vsource vsource",
        "model isource isource",
        "ground 0",
        *bracket_elements(bench.elements, technology, VACASK),
        "control",
        *(f"  {line}" for line in VACASK.fold(f"options {settings}")),
        *(f"  {line}" for line in VACASK.fold(f"save {' '.join(_vacask_save(vector) for vector in bench.saved)}")),
        "  elaborate circuit",
        *(f"  {line}" for line in VACASK.fold(run)),
        "endc",
    ]


def vacask_options(technology: Technology, options: SimulatorOptions) -> dict[str, str]:
    """The options that a deck sets, by VACASK's names."""
    value = _values(options)
    renamed = {"trtol": "tran_lteratio", "xmu": "tran_xmu"}
    settings = {renamed.get(name, name): number for name, number in value.items()}
    return {"temp": format_number(technology.celsius), **settings}


VACASK_RUN = "run"  # the analysis; its results are in a raw file of this name


def _vacask_save(vector: str) -> str:
    kind, name = vector[0], vector[2:-1]
    return f"v('{name.replace('.', ':')}')" if kind == "v" else f"i({name[0]}_{name[1:]})"


def format_vacask(circuit: Circuit, bench: Bench, technology: Technology, options: SimulatorOptions) -> str:
    """One self-contained deck for VACASK: cards, the circuit's blocks, and the bench."""
    netlist = format_network(Circuit(circuit.title, circuit.subcircuits), technology, "vacask")
    cards = format_devices(technology, device_sizes(circuit), "vacask")
    return "\n".join([f"// {bench.title}", cards, netlist, *vacask_run(bench, technology, options)]) + "\n"


def _values(options: SimulatorOptions) -> dict[str, str]:
    return {name: format_number(number) for name, number in asdict(options).items()}


def vector_name(vector: str, dialect: Dialect) -> str:
    """What v(net) and i(source) are called where a simulator prints them; Spectre: a net, a source's first terminal."""
    kind, name = vector[0], vector[2:-1]
    match dialect:
        case "xyce":
            return vector.replace(".", ":").upper()
        case "spectre":
            return name if kind == "v" else f"{name[0]}_{name[1:]}:p"
        case "vacask":
            return name.replace(".", ":") if kind == "v" else f"{name[0]}_{name[1:]}:flow(br)"
        case _:
            return vector


_WRITERS: Mapping[Dialect, Writer] = {
    "ngspice": _ngspice, "hspice": _hspice, "xyce": _xyce, "spectre": _spectre, "vacask": _vacask,
}  # fmt: skip
