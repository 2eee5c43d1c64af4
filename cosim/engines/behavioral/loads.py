"""Loads of the nets whose noise counts in a compiled circuit: capacitances, and the pins that make currents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cosim.base.errors import InputError
from cosim.cells.builder import instance, net
from cosim.circuit.elements import GROUND, Capacitor, Mos
from cosim.compiler.design import Design
from cosim.network.ir.nodes import Memory
from cosim.technology.noise import DeviceNoise, NoiseFit
from cosim.technology.types import Geometry, Polarity, Technology
from cosim.units.table import unit_of

_RAILS = (GROUND, "vdd")
_TRIMMED = 2.0  # largest ratio of a trimmed length to the nominal one


@dataclass(frozen=True)
class CandidateLoad:
    """Loads of a sampled candidate, for behavioral noise.

    They are the capacitance of its diode's net, and of that behind its sample gate, farad.
    """

    candidate: float
    hold: float


@dataclass(frozen=True)
class Loads:
    """Loads of a design's nets, from which behavioral noise follows.

    farads: net -> capacitance; held: memory -> its candidate; diodes: bias pin -> devices of its diode; levels, sinks:
    memory -> the pin of its level and of its pedestal, where it has them.
    """

    farads: Mapping[str, float]
    held: Mapping[str, CandidateLoad]
    diodes: Mapping[str, int]
    levels: Mapping[str, str]
    sinks: Mapping[str, str]

    def of(self, name: str) -> float:
        """Return the capacitance of a net of the network for behavioral noise, F, by its own name, port or not."""
        return self.farads[name] if name in self.farads else self.farads[f"xnetwork.{name}"]


@lru_cache(maxsize=4)
def loads_of(design: Design, fit: NoiseFit) -> Loads:
    """Compute the loads of a design's nets for behavioral noise.

    Raises InputError that names a unit whose candidate is never frozen.
    """
    devices = [element for element in design.flat.elements if isinstance(element, Mos)]
    carriers, farads, kinds = _carriers(devices), defaultdict[str, float](float), _kinds(design.technology)
    for mos in carriers:
        if (kind := _kind(mos, kinds)) is not None:
            for end, farad in _ends(mos, fit.devices[kind]):
                farads[end] += mos.m * farad
    for element in design.flat.elements:
        if isinstance(element, Capacitor):
            for end in {element.a, element.b} - set(_RAILS):
                farads[end] += element.value
    memories = tuple(design.graph.memories)
    return Loads(
        dict(farads),
        {node.name: _held(design, node, devices, farads) for node in memories},
        {mos.gate: mos.m for mos in carriers if mos.role == "bias"},
        _pins(carriers, {node.name: instance(f"cell_{net(node.name)}") for node in memories}, "level"),
        _pins(carriers, {node.name: instance(f"pedestal_{net(node.name)}") for node in memories}, "sink"),
    )


def _carriers(devices: Sequence[Mos]) -> list[Mos]:
    """Return the transistors that make a current, a self-cascode as one."""
    uppers = {mos.name: mos for mos in devices if mos.match.endswith(".upper")}
    return [
        replace(mos, drain=uppers[f"{mos.name}c"].drain) if f"{mos.name}c" in uppers else mos
        for mos in devices
        if mos.role != "switch" and mos.name not in uppers
    ]


def _kinds(technology: Technology) -> dict[tuple[Polarity, float], tuple[str, float]]:
    """Return (polarity, width) of a device that carries a current -> its kind and length; metre."""
    sizing = technology.sizing
    drawn: dict[Polarity, dict[str, Geometry]] = {
        "n": {"mirror_n": sizing.mirror_n, "cell_n": sizing.cell_n},
        "p": {"mirror_p": sizing.mirror_p, "cell_p": sizing.cell_p},
    }
    return {(polarity, size.w): (kind, size.l) for polarity, sizes in drawn.items() for kind, size in sizes.items()}


def _kind(mos: Mos, kinds: Mapping[tuple[Polarity, float], tuple[str, float]]) -> str | None:
    found, length = kinds.get((mos.polarity, mos.w), (None, 0.0))
    return found if found is not None and length / _TRIMMED < mos.l < length * _TRIMMED else None


def _ends(mos: Mos, device: DeviceNoise) -> list[tuple[str, float]]:
    """Return the nets that a device loads, and each one's load, F; a diode's net has the load of gate and drain."""
    return [(mos.gate, device.diode)] if mos.gate == mos.drain else [(mos.gate, device.gate), (mos.drain, device.drain)]


def _held(design: Design, node: Memory, devices: Sequence[Mos], farads: Mapping[str, float]) -> CandidateLoad:
    if not unit_of(node).samples_candidate:
        raise InputError(
            f"{node.name} holds an analog state, and noise is modelled where a sample gate "
            "freezes a candidate that is compared; leave --noise and --margins out for this network"
        )
    candidate = design.assembly.candidates[node.name]
    hold = next(mos.drain for mos in devices if mos.role == "switch" and mos.source == candidate)
    return CandidateLoad(farads[candidate], farads[hold])


def _pins(carriers: Sequence[Mos], instances: Mapping[str, str], role: str) -> dict[str, str]:
    """Memory -> the gate line of the first device of a role in its instance, where there is one."""
    lines = [(mos.name, mos.gate) for mos in carriers if mos.role == role]
    found = {
        name: next((gate for device, gate in lines if device.startswith(f"{path}.")), None)
        for name, path in instances.items()
    }
    return {name: gate for name, gate in found.items() if gate is not None}
