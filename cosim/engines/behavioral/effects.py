"""Effects of deviating transistors on the currents of the behavioral model.

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
    rung of a ladder       as a 9T cell, and what the driver and the neighbours' DPIs add to its candidate
    pedestal of a state    + sink - bias diode
    weight on an And       + its current source - bias diode
    symbol comparator      + M1 - M2 + bias diode

Steering switches, gates and the upper device of a self-cascode carry what they are given, so they have no effect here.
n is `DeviceModel.response` at the current that the transistor carries, which is on its way to moderate inversion: at
8 nA a cell's device answers 15 % less than in weak inversion.
Source: E. Vittoz and J. Fellrath, IEEE J. Solid-State Circuits 12 (1977) 224.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp
from typing import Any

import numpy as np

from cosim.circuit.elements import Mos, Role
from cosim.compiler.design import Design
from cosim.network.ir.graph import Edge
from cosim.network.ir.nodes import PEDESTAL_STRENGTH, And, Memory, Node, Output, Pedestal, Rectifier
from cosim.technology.types import Technology
from cosim.units.builder import (
    instance,
    net,
    steering_instance,
    symbol_instance,
    weight_device,
)
from cosim.units.kind import CellDevices, Effect, Key, effect
from cosim.units.table import unit_of
from cosim.variation.draws import Chip

Roles = Mapping[tuple[str, Role], str]
Factor = float | tuple[float, ...]


@dataclass(frozen=True)
class Deviations:
    """Factors of the behavioral model's currents on one drawn chip; an entry that is absent is 1, that is, nominal.

    lines_p, lines_n: signal -> factor of the current that its gate line p or n delivers
    weights: (source, target) -> factor of that weight
    cells: memory -> factors of its kind of unit
    betas: (source, memory) -> factors of the current into either line that beta moves
    pedestals: memory -> factor of the current that a state of 0 carries
    symbols: input or memory -> factor of its line p over the threshold, in its symbol comparator
    """

    lines_p: Mapping[str, float] = field(default_factory=dict[str, float])
    lines_n: Mapping[str, float] = field(default_factory=dict[str, float])
    weights: Mapping[Edge, float] = field(default_factory=dict[Edge, float])
    cells: Mapping[str, object] = field(default_factory=dict[str, object])
    betas: Mapping[Edge, tuple[float, float]] = field(default_factory=dict[Edge, tuple[float, float]])
    pedestals: Mapping[str, float] = field(default_factory=dict[str, float])
    symbols: Mapping[str, float] = field(default_factory=dict[str, float])


@lru_cache(maxsize=2)
def effects_of(design: Design) -> tuple[Effect, ...]:
    """Return all factors of currents in a design's behavioral model, each with the transistors that make it."""
    technology = design.technology
    found = {element.name: element for element in design.flat.elements if isinstance(element, Mos)}

    def slope(device: str, current: float) -> float:
        mos = found[device]
        return technology.device(mos.polarity).response_at(current * mos.l / (mos.m * mos.w))

    effects = _effects(design, design.assembly.circuit.roles())
    return tuple(replace(one, slopes=tuple(slope(device, one.current) for device, _ in one.devices)) for one in effects)


def _effects(design: Design, roles: Roles) -> Iterator[Effect]:
    graph = design.graph
    for name, node in graph.nodes.items():
        if not isinstance(node, Output | And):
            yield from _lines(node, design, roles)
        if (half := graph.half(name)) is not None:
            yield from _symbol(name, half, design, roles)
        if isinstance(node, Memory):
            circuit = CellDevices(name, design.assembly.cell_bias[name], graph.currents[name], roles)
            unit = unit_of(node)
            yield from (
                replace(one, factors=unit.factors_type) for one in unit.mismatch_effects(graph.biases[name], circuit)
            )
            yield from _pedestal(node, design, roles)
            yield from _betas(design, node)
        for index, (source, _) in enumerate(graph.into(name)):
            mirror = graph.mirrors[source, name]
            if pin := design.assembly.steering.get((source, name)):
                device = roles[instance(steering_instance(name, index)), "level"]
                diode, current = roles[instance(pin), "bias"], graph.steered[source, name]
                yield effect("weights", (source, name), current, (device, 1), (diode, -1))
            elif mirror.count:
                current = abs(mirror.realised) * _typical(graph.nodes[source], design)
                yield effect("weights", (source, name), current, (weight_device(f"row_{net(name)}", index), 1))


def _typical(node: Node, design: Design) -> float:
    """Return the current of a behavioral signal through a weight of 1 when the signal is on, ampere."""
    return design.graph.i_pedestal if isinstance(node, Pedestal) else design.i_unit


def chip_deviations(
    effects: tuple[Effect, ...], chip: Chip | None, technology: Technology, changed: Mapping[str, float] = {}
) -> Deviations:
    """Compute the factors of the behavioral model's currents on one drawn chip.

    effects: from `effects_of`; chip: None for transistors without mismatch; technology: at the chip's temperature;
    changed: transistor -> ln of its current factor by a designer's overrides.
    """
    factors, shifts = defaultdict[str, float](float, changed), defaultdict[str, float](float)
    if chip is not None:
        names = [device.name for device in chip.devices]
        for name, factor in zip(names, np.log(chip.beta_factor).tolist(), strict=True):
            factors[name] += factor
        shifts.update(zip(names, (chip.vt_shift / technology.thermal_voltage).tolist(), strict=True))
    lines: dict[str, dict[Key, Factor]] = defaultdict(dict)
    cells: dict[str, dict[str, Factor]] = defaultdict(dict)
    kinds: dict[str, type[object]] = {}
    for one in effects:
        total = 0.0
        for (device, sign), slope in zip(one.devices, one.slopes, strict=True):
            total += sign * (factors[device] - shifts[device] / slope)
        if one.factors is None:
            _put(lines[one.field], one.key, one.place, exp(total))
        else:
            name = str(one.key)
            kinds[name] = one.factors
            _put(cells[name], one.field, one.place, exp(total))
    found = {name: kinds[name](**values) for name, values in cells.items()}
    return Deviations(cells=found, **lines)  # pyright: ignore[reportArgumentType] - each field's values have its own shape


def _put(values: dict[Any, Factor], key: Key, place: int | None, factor: float) -> None:
    """Put a factor of the behavioral engine's currents into `values`, or append it there if it has a place.

    Factors with a place must come in order.
    """
    earlier = values.get(key, ())
    values[key] = (*earlier, factor) if place is not None and isinstance(earlier, tuple) else factor


def _lines(node: Node, design: Design, roles: Roles) -> Iterator[Effect]:
    stem, current = net(node.name), _typical(node, design)
    if isinstance(node, Pedestal):
        current *= PEDESTAL_STRENGTH
    match node:
        case Rectifier():
            diode = roles[instance(f"relu_{stem}"), "diode"]
        case Memory():
            diode = roles[instance(f"cell_{stem}"), "output"]
        case _:
            diode = roles[instance(f"diode_{stem}"), "diode"]
    yield effect("lines_p", node.name, current, (diode, -1))
    if node.name in design.assembly.rails:
        copy, second = (roles[instance(f"rails_{stem}"), role] for role in ("copy", "diode"))
        yield effect("lines_n", node.name, current, (diode, -1), (copy, 1), (second, -1))


def _symbol(name: str, half: float, design: Design, roles: Roles) -> Iterator[Effect]:
    path, pin = instance(symbol_instance(name)), design.assembly.symbols[name]
    devices = (roles[path, "compare"], 1), (roles[path, "threshold"], -1), (roles[instance(pin), "bias"], 1)
    yield effect("symbols", name, half, *devices)


def _pedestal(node: Memory, design: Design, roles: Roles) -> Iterator[Effect]:
    if design.assembly.pedestal_pin is not None:
        sink, diode = roles[instance(f"pedestal_{net(node.name)}"), "sink"], roles[instance("bias_pedestal_0"), "bias"]
        yield effect("pedestals", node.name, design.graph.i_pedestal, (sink, 1), (diode, -1))


def _betas(design: Design, node: Memory) -> Iterator[Effect]:
    stem = net(node.name)
    for index, (source, _) in enumerate(design.graph.into(node.name, "beta")):
        for place, purpose in enumerate(unit_of(node).moving_lines):
            device = (weight_device(f"{purpose}_row_{stem}", index), 1)
            yield effect("betas", (source, node.name), design.i_unit, device, place=place)
