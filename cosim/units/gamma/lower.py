"""From a layer of dispersive delays to its nodes, and from a position to a current."""

import numpy as np

from cosim.cells.tau_cell import REST_STRENGTH
from cosim.errors import MappingError
from cosim.ir.nodes import PEDESTAL_UNITS, Rectifier
from cosim.network.gamma import GammaLayer
from cosim.network.layers import RecurrentLayer
from cosim.units.gamma.node import Gamma, GammaPins
from cosim.units.mingru.lower import full_scale
from cosim.units.mingru.node import fit_of
from cosim.units.placing import Parameter, Placing
from cosim.units.sizing import SizingInput

FLOOR = Gamma.floor * PEDESTAL_UNITS  # units
_ROUNDS = 5  # of a fixed point whose error shrinks tenfold in each: rates lie within 0.84 to 1.44 from 0.02 to 4


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer is one of dispersive delays."""
    return isinstance(layer, GammaLayer)


def lower_gamma(layer: GammaLayer, placing: Placing) -> None:
    """A line of tau-cells for every unit, whose currents stand on FLOOR."""
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    moving = next((tap.name for tap in placing.sources.taps if tap.late), None)
    if moving is not None:
        raise MappingError(
            f"{placing.origin}: {layer.name} reads {moving} late, which may turn within the pulse in which a line "
            "moves, and its candidate must stand still then; let it read what is not late"
        )
    lit = next((tap.name for tap in placing.sources.taps if isinstance(placing.graph.nodes[tap.name], Rectifier)), None)
    if lit is not None:
        raise MappingError(
            f"{placing.origin}: {layer.name} reads {lit}, a rectifier, which may carry current at rest, and a delay "
            "line begins at rest; let it read the input, or states"
        )
    for i in range(layer.width):
        if bias[i] > 0:
            raise MappingError(
                f"{placing.origin}: {layer.name}.{i} has a candidate of {bias[i]:g} while all that it reads carries no "
                "current, and a delay line begins at rest; let it read signals that are 0 then, with positive weights"
            )
    tops = placing.largest_signals()
    for i in range(layer.width):
        full = full_scale(placing, i, float(np.maximum(weight[i], 0.0) @ tops + max(bias[i], 0.0)))
        order, position = int(layer.order[i]), float(layer.position[i])
        node = Gamma(f"{layer.name}.{i}", layer.name, i, placing.stage, full, 0.0, full, order, position)
        placing.graph.add(node)
        placing.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))


def solve_gamma(node: Gamma, sizing: SizingInput) -> GammaPins:
    """I_tau at which the measured cell has n / p time constants in a frame, and what the reset puts cells on."""
    wanted, i_unit = node.order / node.position, sizing.graph.i_unit
    fit, rate = fit_of(sizing.calibration), wanted
    for _ in range(_ROUNDS):
        rate = wanted / float(fit.rate(np.array(rate * i_unit)))
    return GammaPins(rate * i_unit / sizing.calibration.units, REST_STRENGTH * FLOOR * i_unit)
