"""Search for the nets that turn states when others move them, by the roles of the devices on them, not by names."""

from collections.abc import Iterable
from dataclasses import dataclass

from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.mask.blocks import VDD

CLOCK, DECISION, LOAD, HELD, STEADY = 96, 16, 4, 3, 1  # of a micrometre on the next track, over one of wire


@dataclass(frozen=True)
class Manners:
    """Classes of nets that wires are kept apart for: clocks; decisions, which swing from rail to rail as well; what
    capacitors hold; and nets that hardly move: ports and supplies. compared: what comparators decide on, which swings,
    too, but not while what a capacitor holds is a sample; integrated: what a capacitor holds and a diode charges;
    urgent: what comparators decide on without a clock, slow with a load."""

    clocks: frozenset[str] = frozenset()
    decisions: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    steady: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    integrated: frozenset[str] = frozenset()
    urgent: frozenset[str] = frozenset()

    def harm(self, net: str, other: str) -> int:
        """Return the cost of a micrometre of two wires side by side, over the cost of one of wire; 0 if harmless."""
        if (net in self.clocks) != (other in self.clocks):
            return CLOCK
        if net == other:
            return 0
        if net not in self.held and other not in self.held:
            if net in self.urgent or other in self.urgent:
                return LOAD
            return HELD if net in self.decisions and other in self.decisions else 0
        if net in self.decisions or other in self.decisions:
            return DECISION
        if (net in self.compared and other in self.integrated) or (other in self.compared and net in self.integrated):
            return DECISION
        if net in self.steady or other in self.steady:
            return 0 if {net, other} & {VDD, GROUND} else STEADY
        return HELD

    def rank(self, net: str) -> int:
        """Return a net's place in the order of wiring: clocks, then what capacitors hold, then decisions, then all
        others."""
        kinds = (self.clocks, self.held, self.decisions)
        return next((k for k, kind in enumerate(kinds) if net in kind), len(kinds))


def manners(circuit: Circuit, ports: Iterable[str]) -> Manners:
    """Return the classes of a flat circuit's nets that wires of the layout are kept apart for."""
    devices = [one for one in circuit.elements if isinstance(one, Mos)]
    ticks = clocks(devices, ports)
    decisions = {mos.gate for mos in devices if mos.role == "switch"} - ticks
    kept = held(circuit)
    return Manners(
        ticks,
        frozenset(decisions),
        kept,
        frozenset({*ports, VDD, GROUND} - ticks),
        frozenset(mos.drain for mos in devices if mos.role == "compare") - decisions,
        kept & {mos.gate for mos in devices if mos.gate == mos.drain},
        unclocked(circuit),
    )


def clocks(devices: Iterable[Mos], ports: Iterable[str]) -> frozenset[str]:
    """Return the ports whose wires are routed as clocks: they turn switches on and off, and drive nothing else."""
    devices = list(devices)
    ends = {net for mos in devices for net in (mos.drain, mos.source)}
    return frozenset(({mos.gate for mos in devices if mos.role == "switch"} & set(ports)) - ends)


def held(circuit: Circuit) -> frozenset[str]:
    """Return the nets that a capacitor holds, samples and integrators, whose wires are kept from those that swing."""
    nets = {net for one in circuit.elements if isinstance(one, Capacitor) for net in (one.a, one.b)}
    return frozenset(nets - {GROUND, VDD})


def unclocked(circuit: Circuit) -> frozenset[str]:
    """Return the nets by which comparators turn switches themselves, with no clock between: slow with a load."""
    devices = [one for one in circuit.elements if isinstance(one, Mos)]
    compared = {mos.drain for mos in devices if mos.role == "compare"}
    return frozenset(compared & {mos.gate for mos in devices if mos.role == "switch"})


def sensitive(circuit: Circuit, ports: Iterable[str]) -> frozenset[str]:
    """Return the nets whose wires the layout protects: of clocks and candidate diodes, and those with capacitors."""
    devices = [one for one in circuit.elements if isinstance(one, Mos)]
    return clocks(devices, ports) | held(circuit) | {mos.gate for mos in devices if mos.role == "candidate"}
