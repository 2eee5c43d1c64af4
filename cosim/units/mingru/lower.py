"""From a minGRU layer to its nodes: a row for the candidate, a rectifier for the gate."""

import numpy as np

from cosim.cells.tau_cell import gate_charge
from cosim.errors import MappingError
from cosim.ir.nodes import Rectifier, Weight
from cosim.network.layers import MinGruLayer, RecurrentLayer
from cosim.technology.calibration import Calibration
from cosim.units.ladder.points import TAU_FRAMES
from cosim.units.mingru.node import MinGru, MinGruPins, fit_of
from cosim.units.placing import Parameter, Placing
from cosim.units.pulse import PULSE_BEGIN, PULSE_END
from cosim.units.sizing import SizingInput

GATED = PULSE_END - PULSE_BEGIN  # of a frame, in which the state moves
LEAST, MOST = 0.5e-12, 20e-12  # F: below, charge sharing is more than 1 % a frame; above, it is larger than the cells


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer is a minGRU."""
    return isinstance(layer, MinGruLayer)


def lower_mingru(layer: MinGruLayer, placing: Placing) -> None:
    """A tau-cell for every unit, and a rectifier for its gate."""
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    weight_gate, bias_gate = placing.sources.folded(layer.weight_gate, layer.bias_gate)
    moving = next((tap.name for tap in placing.sources.taps if tap.late), None)
    if moving is not None:
        raise MappingError(
            f"{placing.origin}: {layer.name} reads {moving} late, which may turn within the pulse in which a minGRU "
            "moves, and its candidate must stand still then; let it read what is not late"
        )
    tops = placing.largest_signals()
    for i in range(layer.width):
        full = full_scale(placing, i, float(np.maximum(weight[i], 0.0) @ tops + max(bias[i], 0.0)))
        top = None if layer.top is None else float(layer.top[i])
        node = MinGru(f"{layer.name}.{i}", layer.name, i, placing.stage, full, 0.0, full, top)
        gate = f"{node.name}.gate"
        placing.graph.add(Rectifier(gate, layer.name, i), node)
        placing.add_row(gate, weight_gate[i], bias_gate[i], Parameter(layer.name, i, "_gate"))
        placing.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))
        placing.graph.connect(gate, node.name, Weight(1.0, f"{layer.name}.gate[{i}]", "rate"))


def full_scale(placing: Placing, index: int, bound: float) -> float:
    """The largest h over the training data, where known; else the bound of the candidate; 1 where neither is."""
    seen = 0.0 if placing.ranges is None else float(placing.ranges[1, index])
    return next((value for value in (seen, bound) if value > 0), 1.0)


def solve_mingru(node: MinGru, sizing: SizingInput) -> MinGruPins:
    """One pin for its ratio gate, whose currents are those of one unit device; its level is the candidate's."""
    return MinGruPins(None if node.top is None else node.top * sizing.graph.i_unit / sizing.calibration.units)


def capacitance(calibration: Calibration, i_unit: float, tau: float) -> float:
    """C in farad, at which a gate of one unit makes z = 1 - 1/e in the pulse; tau: the slow units', of the frame."""
    gated = GATED * tau / TAU_FRAMES
    return gate_charge(i_unit, calibration.units, gated) / fit_of(calibration).swing


def check_frame(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
    """Raises MappingError for a time constant of its own, and a capacitor that cannot hold or cannot be built."""
    if abs(tau / (TAU_FRAMES * t_step) - 1) > 1e-6:
        raise MappingError(
            f"{origin}: a minGRU takes its time constant from the frame and the gate, so tau must be {TAU_FRAMES:g} of "
            f"the frame, {TAU_FRAMES * t_step:.3g} s, not {tau:.3g} s; leave --tau out"
        )
    found = capacitance(calibration, i_unit, tau)
    if not LEAST <= found <= MOST:
        wanted = "longer frame or a larger" if found < LEAST else "shorter frame or a smaller"
        raise MappingError(
            f"{origin}: the capacitor of a minGRU or of a line must lie in {LEAST * 1e12:g} to {MOST * 1e12:g} pF, not "
            f"{found * 1e12:.3g} pF: it goes with --t-step times --i-unit; use a {wanted} --i-unit"
        )
