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
n is `DeviceModel.response` at the current that the transistor carries, which is on its way to moderate inversion: at
8 nA a cell's device answers 15 % less than in weak inversion.
Source: E. Vittoz and J. Fellrath, IEEE J. Solid-State Circuits 12 (1977) 224.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from cosim.cells.assemble import NETWORK, PEDESTAL_STRENGTH, net
from cosim.design import Design
from cosim.engines.behavioral.evaluate import Deviations
from cosim.ir.nodes import (
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    Node,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
)
from cosim.technology.types import Technology
from cosim.variation.draws import Chip

Key = str | tuple[str, str]


@dataclass(frozen=True)
class Effect:
    """One factor: the field of `Deviations`, its key, its place in a value of several, and what makes it.

    devices: (transistor, +1 or -1); current: ampere through each of them; slopes: n of each at that current.
    """

    field: str
    key: Key
    place: int
    devices: tuple[tuple[str, int], ...]
    current: float
    slopes: tuple[float, ...] = ()


def effects_of(design: Design) -> tuple[Effect, ...]:
    """Every factor of a compiled network, with the transistors that make it."""
    technology = design.technology
    found = {mos.name: mos for mos in design.assembly.circuit.flatten()}

    def slope(device: str, current: float) -> float:
        mos = found[device]
        return technology.device(mos.polarity).response_at(current * mos.l / (mos.m * mos.w))

    return tuple(
        replace(effect, slopes=tuple(slope(device, effect.current) for device, _ in effect.devices))
        for effect in _effects(design)
    )


def _effects(design: Design) -> Iterator[Effect]:
    graph = design.graph
    for name in graph.nodes:
        node = graph.nodes[name]
        if not isinstance(node, Output):
            yield from _lines(node, design)
        if isinstance(node, Memory):
            yield from _memory(node, design)
            yield from _betas(design, node)
        for index, (source, _) in enumerate(graph.into(name)):
            mirror = graph.mirrors[source, name]
            if mirror.count:
                current = abs(mirror.realised) * _typical(graph.nodes[source], design)
                yield _effect("weights", (source, name), current, (f"row_{net(name)}.w{index}", 1))


def _typical(node: Node, design: Design) -> float:
    """What a signal's weight of 1 carries when it is on, ampere."""
    return design.graph.i_pedestal if isinstance(node, Pedestal) else design.i_unit


def chip_deviations(effects: tuple[Effect, ...], chip: Chip, technology: Technology) -> Deviations:
    """One chip's factors; `technology` stands at the chip's temperature."""
    names = [device.name for device in chip.devices]
    factors = dict(zip(names, np.log(chip.beta_factor).tolist(), strict=True))
    shifts = dict(zip(names, (chip.vt_shift / technology.thermal_voltage).tolist(), strict=True))
    values: dict[str, dict[Key, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for effect in effects:
        total = 0.0
        for (device, sign), slope in zip(effect.devices, effect.slopes, strict=True):
            total += sign * (factors[device] - shifts[device] / slope)
        values[effect.field][effect.key][effect.place] = exp(total)
    fields = {
        field: {
            key: tuple(places[k] for k in sorted(places)) if field in ("levels", "betas") else places[0]
            for key, places in keys.items()
        }
        for field, keys in values.items()
    }
    return Deviations(**fields)  # pyright: ignore[reportArgumentType] - each field's values have its own shape


def _effect(field: str, key: Key, current: float, *devices: tuple[str, int], place: int = 0) -> Effect:
    return Effect(field, key, place, tuple((f"{NETWORK}.{name}", sign) for name, sign in devices), current)


def _lines(node: Node, design: Design) -> Iterator[Effect]:
    stem, current = net(node.name), _typical(node, design)
    match node:
        case Pedestal():
            diode, current = f"diode_{stem}.diode", PEDESTAL_STRENGTH * current
        case InputCurrent() | UnitCurrent():
            diode = f"diode_{stem}.diode"
        case Rectifier():
            diode = f"relu_{stem}.diode"
        case Schmitt():
            diode = f"cell_{stem}.4"
        case Ladder():
            diode = f"cell_{stem}.diode"
        case Toggle():
            diode = f"cell_{stem}.slave.4"
        case _:
            return
    yield _effect("lines_p", node.name, current, (diode, -1))
    if node.name in design.assembly.rails:
        rails = f"rails_{stem}"
        yield _effect("lines_n", node.name, current, (diode, -1), (f"{rails}.copy", 1), (f"{rails}.diode", -1))


def _memory(node: Memory, design: Design) -> Iterator[Effect]:
    name, stem, pins = node.name, net(node.name), design.assembly.cell_bias[node.name]
    asked = design.graph.currents[name]
    bias = design.graph.biases[name]
    cell, candidate, gain = f"cell_{stem}", f"cand_{stem}.diode", f"{pins[-1]}.diode"
    match bias:
        case SchmittBias():
            thresh, width = (f"{pin}.diode" for pin in pins[:2])
            yield _effect("compared", name, asked.i_rise, (f"{cell}.1", 1), (candidate, -1))
            yield _effect("thresh", name, bias.i_thresh, (f"{cell}.2", 1), (thresh, -1))
            loop = ((f"{cell}.8", 1), (width, -1), (f"{cell}.9", 1), (f"{cell}.7", -1))
            yield _effect("width", name, bias.i_width, *loop)
            yield _effect("levels", name, bias.i_gain, (f"{cell}.5", 1), (gain, -1))
        case LadderPins(ladder=rungs):
            for side, pin, current in zip(("upper", "lower"), pins, (bias.i_upper, bias.i_lower), strict=False):
                yield _comparator(side, name, current, f"quantiser_{stem}.{side}", f"{pin}.diode", candidate)
            for k in range(1, len(design.assembly.decisions[name]) + 1):
                yield _effect("levels", name, rungs.i_gain, (f"{cell}.rung{k}.11", 1), (gain, -1), place=k - 1)
        case TogglePins():
            yield _comparator("upper", name, bias.i_upper, f"{cell}.master", f"{pins[0]}.diode", candidate)
            yield _effect("levels", name, bias.i_gain, (f"{cell}.slave.5", 1), (gain, -1))
    if design.assembly.pedestal_pin is not None:
        sink = (f"pedestal_{stem}.sink", 1), ("bias_pedestal_0.diode", -1)
        yield _effect("pedestals", name, design.graph.i_pedestal, *sink)


def _comparator(side: str, name: str, current: float, comparator: str, bias: str, candidate: str) -> Effect:
    devices = (f"{comparator}.2", 1), (bias, -1), (f"{comparator}.1", -1), (candidate, 1)
    return _effect(side, name, current, *devices)


def _betas(design: Design, node: Memory) -> Iterator[Effect]:
    stem = net(node.name)
    for index, (source, _) in enumerate(design.graph.into(node.name, "beta")):
        for place, purpose in enumerate(("thresh", "width")):
            device = (f"{purpose}_row_{stem}.w{index}", 1)
            yield _effect("betas", (source, node.name), design.i_unit, device, place=place)
