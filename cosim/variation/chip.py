"""A chip of a design: the same network, with one draw's transistors, in that draw's conditions."""

from dataclasses import replace

from cosim.design import Design
from cosim.technology.conditions import at
from cosim.variation.draws import Chip
from cosim.variation.effects import Effect, chip_deviations
from cosim.variation.netlist import vary_circuit


def behavioral_chip(design: Design, effects: tuple[Effect, ...], chip: Chip) -> Design:
    """The chip for `run_behavioral`; its circuit stays nominal. `effects` as `effects_of` gives them."""
    technology = at(design.technology, celsius=chip.celsius, supply=chip.supply)
    return replace(design, technology=technology, deviations=chip_deviations(effects, chip, technology))


def transistor_chip(design: Design, chip: Chip) -> Design:
    """The chip for `inference_deck`; its behavioral deviations stay nominal."""
    technology = at(design.technology, celsius=chip.celsius, supply=chip.supply)
    assembly = replace(design.assembly, circuit=vary_circuit(design.assembly.circuit, chip))
    return replace(design, technology=technology, assembly=assembly)
