"""A chip of a design: the same network, with one draw's transistors, in that draw's conditions."""

from dataclasses import replace

from cosim.cells.builder import NETWORK, net
from cosim.design import Design
from cosim.technology.conditions import at
from cosim.units.table import unit_of
from cosim.variation.draws import Chip
from cosim.variation.effects import Effect, chip_deviations
from cosim.variation.netlist import vary_circuit


def behavioral_chip(design: Design, effects: tuple[Effect, ...], chip: Chip) -> Design:
    """The chip for `run_behavioral`; its circuit stays nominal. `effects` as `effects_of` gives them."""
    technology = at(design.technology, celsius=chip.celsius, supply=chip.supply)
    return replace(design, technology=technology, deviations=chip_deviations(effects, chip, technology))


def transistor_chip(design: Design, chip: Chip) -> Design:
    """The chip for `inference_bench`; its behavioral deviations stay nominal.

    A cell whose lower threshold has fallen below 0 has two states even while the reset holds its candidate at 0. Which
    one it takes is history: on a chip that has run before, the state that it could not leave. So it starts there.
    """
    technology = at(design.technology, celsius=chip.celsius, supply=chip.supply)
    preset = tuple(
        f"x{NETWORK}.xcell_{net(cell.name)}.{node}" for cell in design.graph.memories for node in unit_of(cell).held
    )
    assembly = replace(design.assembly, circuit=vary_circuit(design.assembly.circuit, chip), preset=preset)
    return replace(design, technology=technology, assembly=assembly)
