"""A chip of a design, in its own conditions: factors of the behavioral model's currents, or its transistors."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cosim.circuit.elements import Circuit, Element, Mos
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.effects import Deviations, chip_deviations, effects_of
from cosim.technology.conditions import at
from cosim.units.schmitt import SchmittFactors
from cosim.variation.draws import Chip

Drawn = Mapping[str, tuple[float, float]]  # transistor -> its threshold shift in V and its current factor


def standing(design: Design, condition: Condition | None, chip: Chip | None) -> Condition:
    """Return for an engine the condition, by default the nominal one, with supply and temperature of the drawn chip if
    any."""
    condition = condition or design.nominal
    if chip is None:
        return condition
    return replace(condition, technology=at(condition.technology, celsius=chip.celsius, supply=chip.supply))


def deviations_of(design: Design, condition: Condition, chip: Chip | None) -> Deviations:
    """Return the factors of the behavioral model's currents on a drawn chip with trimmed bias pins.

    condition: as from `standing`.
    """
    drawn = Deviations() if chip is None else _drawn(design, chip, condition.technology.celsius)
    if not condition.pins:
        return drawn
    cells = {
        cell: _trimmed(drawn.cells.get(cell, SchmittFactors()), [condition.pins.get(pin, 1.0) for pin in pins])
        for cell, pins in design.assembly.cell_bias.items()
    }
    return replace(drawn, cells=cells)


@lru_cache(maxsize=2)
def _drawn(design: Design, chip: Chip, celsius: float) -> Deviations:
    return chip_deviations(effects_of(design), chip, at(design.technology, celsius=celsius))


def _trimmed(factors: object, pins: list[float]) -> SchmittFactors:
    assert isinstance(factors, SchmittFactors), "trimming is for 9T cells"
    thresh, width, gain = pins
    return replace(factors, thresh=factors.thresh * thresh, width=factors.width * width, level=gain * factors.level)


def drawn_values(chip: Chip) -> Drawn:
    """Return the deviations to run a chip's transistors with: name -> (threshold shift in V, factor of beta)."""
    pairs = zip(chip.vt_shift.tolist(), chip.beta_factor.tolist(), strict=True)
    return dict(zip((device.name for device in chip.devices), pairs, strict=True))


@lru_cache(maxsize=1)
def chip_circuit(design: Design, chip: Chip) -> Circuit:
    """Return the circuit to simulate of a design on a drawn chip.

    It is without subcircuits, because two instances of a cell differ.
    """
    return vary(design.flat, drawn_values(chip))


def vary(flat: Circuit, drawn: Drawn) -> Circuit:
    """Return a flat circuit to simulate whose transistors have the threshold shifts, V, and current factors drawn for a
    chip."""
    elements: list[Element] = []
    for element in flat.elements:
        if isinstance(element, Mos) and (pair := drawn.get(element.name)) is not None:
            element = replace(element, vt_shift=pair[0], beta_factor=pair[1])
        elements.append(element)
    return replace(flat, elements=tuple(elements))
