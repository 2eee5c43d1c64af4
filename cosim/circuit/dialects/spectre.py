"""Spectre: nets in brackets."""

from dataclasses import replace

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Voltage
from cosim.circuit.deck import BRACKETS, fold, format_elements, format_number
from cosim.circuit.dialects.dialect import (
    Dialect,
    FileNames,
    tolerance_texts,
    transistor_name,
)
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily
from cosim.technology.types import Technology

_LANGUAGE = replace(
    BRACKETS,
    opening=("simulator lang=spectre",),
    constant="{kind}source type=dc dc={value}",
    points="{kind}source type=pwl wave=[{value}]",
)


def _testbench(bench: Bench) -> list[str]:
    value, files, run = tolerance_texts(bench.tolerances), SPECTRE.files, bench.transient
    settings = (
        f"tolerances options reltol={value['reltol']} vabstol={value['vntol']} iabstol={value['abstol']} "
        f"gmin={value['gmin']} temp={format_number(bench.technology.celsius)} save=selected"
    )
    analysis = (
        f"run tran stop={format_number(run.end)} maxstep={format_number(run.step)} errpreset=moderate "
        "relref=alllocal method=gear2only"
    )
    return [
        f"// {bench.circuit.title}",
        *_LANGUAGE.opening,
        "global 0",
        f'include "{files.netlist}"',
        f'include "{files.devices}"',
        *format_elements(bench.circuit.elements, bench.technology, _LANGUAGE),
        *fold(settings),
        *fold(analysis),
        *fold(f"save {' '.join(map(_printed, bench.probes))}"),
    ]


def _printed(probe: Probe, family: ModelFamily = BSIM4) -> str:
    """Return the name that Spectre prints for a probe: a net, a source's first terminal, or a transistor's drain."""
    match probe:
        case DrainCurrent():
            return f"{transistor_name(probe)}:d"
        case Voltage(net):
            return net
        case Current(source):
            return f"v_{source}:p"


def _library(technology: Technology) -> list[str]:
    """Return comments on what to include: open kits have no models for Spectre, and a designer has his own."""
    library = technology.library
    return [
        *_LANGUAGE.opening,
        "// Write here where the foundry's models for Spectre are, with the section for this corner:",
        f'// include "FILE" section={library.sections[technology.corner]}',
        f"// w and l are in units of {library.length_unit:g} m, as in {library.file.name}.",
    ]


SPECTRE = Dialect(
    "spectre", _LANGUAGE, _testbench, _printed,
    FileNames("network.scs", "devices.scs", "testbench.scs"),  # it tells its language by the ending
    _library,
)  # fmt: skip
