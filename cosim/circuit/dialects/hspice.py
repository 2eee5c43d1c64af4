"""HSPICE: SPICE, with option names as published decks use them."""

from cosim.circuit.bench import Bench, DrainCurrent, Probe
from cosim.circuit.deck import SPICE, fold, format_elements, format_number
from cosim.circuit.dialects.dialect import (
    Dialect,
    spice_probe,
    tolerance_texts,
    transistor_name,
)
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily


def _testbench(bench: Bench) -> list[str]:
    value, files, run = tolerance_texts(bench.tolerances), HSPICE.files, bench.transient
    settings = (
        f".option runlvl=0 gmin={value['gmin']} gmindc={value['gmin']} abstol={value['abstol']} "
        f"absmos={value['abstol']} vntol={value['vntol']} chgtol={value['chgtol']} reltol={value['reltol']} "
        f"reli={value['reltol']} relmos={value['reltol']} trtol={value['trtol']} method=trap mu={value['xmu']} "
        f"bypass=0 delmax={format_number(run.step)}"
    )
    return [
        f"* {bench.circuit.title}",
        f".include '{files.netlist}'",
        f".include '{files.devices}'",
        *format_elements(bench.circuit.elements, bench.technology),
        "* runlvl=0: at any other level HSPICE replaces most of these tolerances by its own",
        *fold(settings),
        ".option post probe",
        f".temp {format_number(bench.technology.celsius)}",
        *fold(f".probe tran {' '.join(map(_printed, bench.probes))}"),
        f".tran {format_number(run.step)} {format_number(run.end)}",
        ".end",
    ]


def _printed(probe: Probe, family: ModelFamily = BSIM4) -> str:
    """Return a probe's name in HSPICE; i1 is the current into the first terminal, the drain."""
    return f"i1({transistor_name(probe)})" if isinstance(probe, DrainCurrent) else spice_probe(probe)


HSPICE = Dialect("hspice", SPICE, _testbench, _printed)
