"""Xyce: SPICE, with a colon in hierarchical names, which it prints in capitals."""

from cosim.circuit.bench import Bench, DrainCurrent, Probe
from cosim.circuit.deck import SPICE, fold, format_elements, format_number
from cosim.circuit.dialects.dialect import Dialect, spice_probe, tolerance_texts, transistor_name
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily

_RESIDUAL_AMPERE = 1e-12  # 2-norm over all nodes; Xyce's 1e-6 (op) and 1e-2 (transient) exceed every current here


def _testbench(bench: Bench) -> list[str]:
    value, files, run = tolerance_texts(bench.tolerances), XYCE.files, bench.transient
    residual = f"abstol={value['abstol']} reltol={value['reltol']} rhstol={format_number(_RESIDUAL_AMPERE)}"
    step = format_number(run.step)
    return [
        f"* {bench.circuit.title}",
        f'.include "{files.netlist}"',
        f'.include "{files.devices}"',
        *format_elements(bench.circuit.elements, bench.technology),
        f".options device gmin={value['gmin']} temp={format_number(bench.technology.celsius)}",
        f".options timeint method=gear reltol={value['reltol']} abstol={value['vntol']}",
        f".options nonlin {residual}",
        f".options nonlin-tran {residual}",
        *fold(f".print tran {' '.join(map(_printed, bench.probes))}"),
        f".tran {step} {format_number(run.end)} 0e+00 {step}",
        ".end",
    ]


def _printed(probe: Probe, family: ModelFamily = BSIM4) -> str:
    """Return a probe's name in Xyce; id is the lead current of the drain."""
    name = f"id({transistor_name(probe)})" if isinstance(probe, DrainCurrent) else spice_probe(probe)
    return name.replace(".", ":").upper()


XYCE = Dialect("xyce", SPICE, _testbench, _printed)
