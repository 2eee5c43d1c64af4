"""A chip's deviations in its netlist: every transistor with a threshold shift and a current factor of its own."""

from dataclasses import replace

from cosim.circuit.elements import Circuit, Element, Mos
from cosim.variation.draws import Chip


def vary_circuit(circuit: Circuit, chip: Chip) -> Circuit:
    """The circuit without subcircuits, because two instances of a cell now differ; `chip` names its transistors."""
    flat = circuit.flat()
    names = [device.name for device in chip.devices]
    deviations = dict(zip(names, zip(chip.vt_shift.tolist(), chip.beta_factor.tolist(), strict=True), strict=True))

    def varied(element: Element) -> Element:
        if not isinstance(element, Mos):
            return element
        vt_shift, beta_factor = deviations[element.name]
        return replace(element, vt_shift=vt_shift, beta_factor=beta_factor)

    return replace(flat, elements=tuple(map(varied, flat.elements)))
