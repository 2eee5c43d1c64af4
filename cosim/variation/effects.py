"""What a deviating transistor does to the currents of the behavioral model.

A transistor in weak inversion that deviates by dV_T and by the factor b carries, at the same gate voltage, exp(e) times
its current, e = ln b - dV_T / (n U_T). A diode that carries e times less at the same voltage gives its line that much
more. Every factor of `Deviations` is therefore exp of a sum of +-e over the transistors between what is given and what
arrives:

    line p of a signal     - diode                                  (what weights of negative sign see)
    line n of a signal     - diode + copy - n diode                 (what weights of positive sign see)
    weight                 + its transistor
    compared candidate     + M1 - candidate diode
    threshold, width       + M2 - bias diode,  + M8 - bias diode + M9 - M7
    level of a state       + M5 - bias diode   (of a rung: M11)
    comparator             + M2 - bias diode - M1 + candidate diode
    pedestal of a state    + sink - bias diode

Steering switches, gates and the upper device of a self-cascode carry what they are given, so they have no effect here.
n is that of weak inversion; at 1 nA a cell's device answers 2 to 4 % less, at 8 nA 15 % (benchmarks/bench_mismatch.py).
Source: E. Vittoz and J. Fellrath, IEEE J. Solid-State Circuits 12 (1977) 224.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

import numpy as np

from cosim.behavioral.evaluate import Deviations
from cosim.cells.assemble import NETWORK, Assembly, net
from cosim.design import Design
from cosim.ir.nodes import (
    InputCurrent,
    Ladder,
    Memory,
    Node,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    Toggle,
    UnitCurrent,
    edges_into,
)
from cosim.technology.types import Technology
from cosim.variation.draws import Chip

Key = str | tuple[str, str]


@dataclass(frozen=True)
class Effect:
    """One factor: the field of `Deviations`, its key, its place in a value of several, and (device, +1 or -1)."""

    field: str
    key: Key
    place: int
    devices: tuple[tuple[str, int], ...]


def effects_of(design: Design) -> tuple[Effect, ...]:
    """Every factor of a compiled network, with the transistors that make it."""
    graph, assembly = design.graph, design.assembly
    found: list[Effect] = []
    for name in graph.nodes:
        node: Node = graph.nodes[name]["node"]
        if not isinstance(node, Output):
            found += _lines(node, assembly)
        if isinstance(node, Memory):
            found += _memory(node, assembly)
            found += _betas(design, node)
        for index, (source, _) in enumerate(edges_into(graph, name)):
            if graph.edges[source, name]["mirror"].count:
                found.append(_effect("weights", (source, name), (f"row_{net(name)}.w{index}", 1)))
    return tuple(found)


def chip_deviations(effects: tuple[Effect, ...], chip: Chip, technology: Technology) -> Deviations:
    """One chip's factors; `technology` stands at the chip's temperature."""
    strengths = device_strengths(chip, technology)
    values: dict[str, dict[Key, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for effect in effects:
        total = sum(sign * strengths[device] for device, sign in effect.devices)
        values[effect.field][effect.key][effect.place] = exp(total)
    fields = {
        field: {
            key: tuple(places[k] for k in sorted(places)) if field in ("levels", "betas") else places[0]
            for key, places in keys.items()
        }
        for field, keys in values.items()
    }
    return Deviations(**fields)  # pyright: ignore[reportArgumentType] - each field's values have its own shape


def device_strengths(chip: Chip, technology: Technology) -> dict[str, float]:
    """e of every transistor: ln of its current over nominal, at the same gate voltage."""
    swing = {p: technology.device(p).slope_factor * technology.thermal_voltage for p in ("n", "p")}
    strengths = np.log(chip.beta_factor) - chip.vt_shift / [swing[device.polarity] for device in chip.devices]
    return dict(zip((device.name for device in chip.devices), strengths.tolist(), strict=True))


def _effect(field: str, key: Key, *devices: tuple[str, int], place: int = 0) -> Effect:
    return Effect(field, key, place, tuple((f"{NETWORK}.{name}", sign) for name, sign in devices))


def _lines(node: Node, assembly: Assembly) -> Iterator[Effect]:
    stem = net(node.name)
    match node:
        case InputCurrent() | UnitCurrent() | Pedestal():
            diode = f"diode_{stem}.diode"
        case Rectifier():
            diode = f"relu_{stem}.diode"
        case Schmitt():
            diode = f"cell_{stem}.4"
        case Ladder():
            diode = f"cell_{stem}.diode"
        case Toggle():
            diode = f"cell_{stem}.slave.4"
        case Output():
            return
    yield _effect("lines_p", node.name, (diode, -1))
    if node.name in assembly.rails:
        rails = f"rails_{stem}"
        yield _effect("lines_n", node.name, (diode, -1), (f"{rails}.copy", 1), (f"{rails}.diode", -1))


def _memory(node: Memory, assembly: Assembly) -> Iterator[Effect]:
    stem, pins = net(node.name), assembly.cell_bias[node.name]
    cell, candidate, gain = f"cell_{stem}", f"cand_{stem}.diode", f"{pins[-1]}.diode"
    match node:
        case Schmitt():
            thresh, width = (f"{pin}.diode" for pin in pins[:2])
            yield _effect("compared", node.name, (f"{cell}.1", 1), (candidate, -1))
            yield _effect("thresh", node.name, (f"{cell}.2", 1), (thresh, -1))
            yield _effect("width", node.name, (f"{cell}.8", 1), (width, -1), (f"{cell}.9", 1), (f"{cell}.7", -1))
            yield _effect("levels", node.name, (f"{cell}.5", 1), (gain, -1))
        case Ladder():
            for side, pin in zip(("upper", "lower"), pins, strict=False):
                yield _comparator(side, node, f"quantiser_{stem}.{side}", f"{pin}.diode", candidate)
            for k in range(1, node.rungs + 1):
                yield _effect("levels", node.name, (f"{cell}.rung{k}.11", 1), (gain, -1), place=k - 1)
        case Toggle():
            yield _comparator("upper", node, f"{cell}.master", f"{pins[0]}.diode", candidate)
            yield _effect("levels", node.name, (f"{cell}.slave.5", 1), (gain, -1))
    if assembly.pedestal_pin is not None:
        yield _effect("pedestals", node.name, (f"pedestal_{stem}.sink", 1), ("bias_pedestal_0.diode", -1))


def _comparator(side: str, node: Memory, comparator: str, bias: str, candidate: str) -> Effect:
    return _effect(side, node.name, (f"{comparator}.2", 1), (bias, -1), (f"{comparator}.1", -1), (candidate, 1))


def _betas(design: Design, node: Memory) -> Iterator[Effect]:
    stem = net(node.name)
    for index, (source, _) in enumerate(edges_into(design.graph, node.name, "beta")):
        for place, purpose in enumerate(("thresh", "width")):
            yield _effect("betas", (source, node.name), (f"{purpose}_row_{stem}.w{index}", 1), place=place)
