"""Size: weights become integer counts of unit devices, thresholds become calibrated bias currents."""

from dataclasses import replace

import numpy as np

from cosim.errors import MappingError
from cosim.ir.graph import Lowered, Scaled, Sized
from cosim.ir.nodes import PEDESTAL, InputCurrent, Memory, Mirror, Output, Pedestal, Rectifier, Weight
from cosim.technology.calibration import Calibration
from cosim.units.sizing import Sizing, largest_count
from cosim.units.table import unit_of

PEDESTAL_UNITS = 0.05  # of i_unit: gate lines of a 0 then settle with C n u_t / I, about 1 ms


def size(
    graph: Scaled,
    calibration: Calibration,
    *,
    saturate: bool = False,
    origin: str = "network",
    pedestal: float = PEDESTAL_UNITS,
) -> Sized:
    """The graph with whole unit devices for its weights, and bias currents for its memories.

    `pedestal`, in units of i_unit, is what a signal of 0 carries; see `Pedestal`. A weight beyond MAX_COUNT
    (MAX_BIAS_COUNT) unit devices is refused, or cut with `saturate`; the mapping report lists the cut ones.
    Raises MappingError that names the parameter, its value, the limit and the repair.
    """
    units, sizing = calibration.units, Sizing(graph, calibration, origin)
    _check_signals(sizing, pedestal)
    check_weights(graph, units, origin, saturate=saturate)
    mirrors = {edge: _mirror(edge[0], weight, units) for edge, weight in graph.weights.items()}
    biases = {node.name: unit_of(node).bias(node, sizing) for node in graph.memories}
    sized = Sized(
        graph.nodes, graph.weights, graph.i_unit, graph.currents, units, pedestal * graph.i_unit, mirrors, biases
    )
    return _with_pedestal(sized) if pedestal else sized


def check_weights(graph: Lowered, units: int, origin: str, *, saturate: bool) -> None:
    """Raises MappingError for a weight beyond the largest mirror, unless it may `saturate`."""
    for (source, _), weight in graph.weights.items():
        largest = largest_count(source)
        if abs(weight.target) * units > largest and not saturate:
            limit = f"+-{largest / units:g} ({largest} unit devices at 1/{units})"
            raise MappingError(
                f"{origin}: {weight.origin} must lie within {limit}, not {weight.target:g}; clip it in training, or "
                "compile with --saturate to cut it and have it listed"
            )


def _mirror(source: str, weight: Weight, units: int) -> Mirror:
    largest = largest_count(source)
    count = int(np.clip(round(weight.target * units), -largest, largest))
    return Mirror(count, count / units)


def _check_signals(sizing: Sizing, pedestal: float) -> None:
    """Raises MappingError when signals would leave the currents for which the mirrors were found usable."""
    origin, calibration, i_unit = sizing.origin, sizing.calibration, sizing.graph.i_unit
    low, high = calibration.current_min, calibration.current_max
    if pedestal and pedestal * i_unit < low:
        raise MappingError(
            f"{origin}: --i-unit must be at least {low / pedestal:.3g} A on {calibration.technology}, not "
            f"{i_unit:.3g} A: a signal of 0 carries {pedestal:g} of it, and mirrors need {low * 1e12:g} pA"
        )
    if (1 + pedestal) * i_unit > high:
        raise MappingError(
            f"{origin}: --i-unit must be at most {high / (1 + pedestal):.3g} A on {calibration.technology}, not "
            f"{i_unit:.3g} A: mirrors keep their gain up to {high * 1e9:g} nA"
        )


def _with_pedestal(graph: Sized) -> Sized:
    """One weight more per row that takes the pedestals of its sources out again, exactly: counts are integers."""
    weights, mirrors = dict(graph.weights), dict(graph.mirrors)
    for node in graph.of(Rectifier, Memory, Output):
        count = -sum(
            graph.mirrors[source, node.name].count
            for source, _ in graph.into(node.name)
            if isinstance(graph.nodes[source], InputCurrent | Memory)
        )
        edge, built = (PEDESTAL, node.name), Mirror(count, count / graph.units)
        weights[edge], mirrors[edge] = Weight(built.realised, f"{node.name}: pedestal of its sources"), built
    return replace(graph, nodes={**graph.nodes, PEDESTAL: Pedestal()}, weights=weights, mirrors=mirrors)
