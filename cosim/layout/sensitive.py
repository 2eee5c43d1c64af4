"""Which nets turn states when others move them, by what hangs on them: their devices' roles, not their names."""

from collections.abc import Iterable

from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.layout.blocks import VDD


def clocks(devices: Iterable[Mos], ports: Iterable[str]) -> frozenset[str]:
    """Ports that turn switches on and off, and drive nothing else: they swing from rail to rail."""
    devices = list(devices)
    ends = {net for mos in devices for net in (mos.drain, mos.source)}
    return frozenset(({mos.gate for mos in devices if mos.role == "switch"} & set(ports)) - ends)


def held(circuit: Circuit) -> frozenset[str]:
    """What a capacitor holds: samples, and integrators."""
    nets = {net for one in circuit.elements if isinstance(one, Capacitor) for net in (one.a, one.b)}
    return frozenset(nets - {GROUND, VDD})


def candidates(devices: Iterable[Mos]) -> frozenset[str]:
    """Lines of a current that is compared: drains of candidate diodes."""
    return frozenset(mos.gate for mos in devices if mos.role == "candidate")


def sensitive(circuit: Circuit, ports: Iterable[str]) -> frozenset[str]:
    """Clocks, candidates, and what capacitors hold."""
    devices = [one for one in circuit.elements if isinstance(one, Mos)]
    return clocks(devices, ports) | held(circuit) | candidates(devices)
