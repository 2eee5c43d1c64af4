"""Xyce: SPICE, with a colon in hierarchical names, which it prints in capitals."""

from cosim.circuit.bench import Bench, DrainCurrent, Probe
from cosim.circuit.deck import SPICE, fold, format_elements, format_number
from cosim.circuit.dialects.dialect import SPICE_CARD, CardForm, Dialect, spice_probe, tolerance_texts, transistor_name

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


def _printed(probe: Probe) -> str:
    """Return a probe's name in Xyce; id is the lead current of the drain."""
    name = f"id({transistor_name(probe)})" if isinstance(probe, DrainCurrent) else spice_probe(probe)
    return name.replace(".", ":").upper()


def _nearest_version(version: str) -> str:
    """Return the nearest to a card's BSIM4 version among Xyce's three; an older card runs as 4.6.1."""
    minor = int(version.partition(".")[2][:1] or "0")
    return "4.8.2" if minor >= 8 else "4.7.0" if minor == 7 else "4.6.1"


_CARDS = CardForm(SPICE, SPICE_CARD, _nearest_version)
XYCE = Dialect("xyce", SPICE, _CARDS.format_devices, _testbench, _printed)
