"""Chips of a design, that is drawn deviations of all transistors, as factors of behavioral currents or as circuits."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cosim.circuit.elements import Circuit, Element, Mos
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.effects import Deviations, chip_deviations, effects_of
from cosim.network.ir.nodes import Memory
from cosim.technology.conditions import at
from cosim.units.table import unit_of
from cosim.variation.draws import Chip

Drawn = Mapping[str, tuple[float, float]]  # transistor -> its threshold shift in V and its current factor


def standing(design: Design, condition: Condition | None, chip: Chip | None) -> Condition:
    """Return the condition in which an engine runs a design on a chip.

    It is `condition`, or the nominal one for None, with the supply and temperature of the chip if there is one.
    """
    condition = condition or design.nominal
    if chip is None:
        return condition
    return replace(condition, technology=at(condition.technology, celsius=chip.celsius, supply=chip.supply))


def deviations_of(design: Design, condition: Condition, chip: Chip | None) -> Deviations:
    """Return the factors of the behavioral model's currents on a drawn chip and for its trimmed bias pins.

    condition: as from `standing`; its `pins` are the trims, bias pin -> factor. chip: None for transistors without
    mismatch, which a designer's overrides may have changed.
    """
    there = chip is not None or design.current_factors
    drawn = _drawn(design, chip, condition.technology.celsius) if there else Deviations()
    if not condition.pins:
        return drawn
    cells = dict(drawn.cells)
    for node in design.graph.memories:
        cell, pins = node.name, design.assembly.cell_bias[node.name]
        factors = cells.get(cell, unit_of(node).factors_type())
        cells[cell] = _trimmed(node, factors, [condition.pins.get(pin, 1.0) for pin in pins])
    return replace(drawn, cells=cells)


@lru_cache(maxsize=2)
def _drawn(design: Design, chip: Chip | None, celsius: float) -> Deviations:
    return chip_deviations(effects_of(design), chip, at(design.technology, celsius=celsius), design.current_factors)


def _trimmed(node: Memory, factors: object, pins: list[float]) -> object:
    """Return a unit's factors of currents, with those of its bias pins multiplied by `pins`; levels one by one."""
    found: dict[str, float | tuple[float, ...]] = {}
    for place, name in unit_of(node).trimmed:
        value: float | tuple[float, ...] = getattr(factors, name)
        factor = pins[place]
        if isinstance(value, tuple):
            value = value or (1.0,) * node.most
            found[name] = tuple(one * factor for one in value)
        else:
            found[name] = value * factor
    return replace(factors, **found)  # pyright: ignore[reportArgumentType, reportUnknownVariableType] - a kind's record


def drawn_values(chip: Chip) -> Drawn:
    """Return a chip's deviations by the name of the transistor: (threshold shift in V, factor of beta)."""
    pairs = zip(chip.vt_shift.tolist(), chip.beta_factor.tolist(), strict=True)
    return dict(zip((device.name for device in chip.devices), pairs, strict=True))


@lru_cache(maxsize=1)
def chip_circuit(design: Design, chip: Chip) -> Circuit:
    """Return the circuit of a design to simulate on a drawn chip.

    It has no subcircuits, because instances of a cell differ in their transistors.
    """
    return vary(design.flat, drawn_values(chip))


def vary(flat: Circuit, drawn: Drawn) -> Circuit:
    """Return a flat circuit to simulate with the deviations drawn for a chip in its transistors.

    drawn: transistor -> (threshold shift in V, factor of its current).
    """
    elements: list[Element] = []
    for element in flat.elements:
        if isinstance(element, Mos) and (pair := drawn.get(element.name)) is not None:
            element = replace(element, vt_shift=pair[0], beta_factor=pair[1])
        elements.append(element)
    return replace(flat, elements=tuple(elements))
