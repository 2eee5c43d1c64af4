"""Size: weights become integer counts of unit devices, thresholds become calibrated bias currents."""

from dataclasses import replace

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.network.ir.graph import Edge, LoweredGraph, ScaledGraph, SizedGraph
from cosim.network.ir.nodes import (
    PEDESTAL,
    PEDESTAL_UNITS,
    And,
    Memory,
    MemoryCurrents,
    Mirror,
    Output,
    Pedestal,
    Rectifier,
    ThresholdUnit,
    Weight,
)
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MAX_RISE
from cosim.units.sizing import SizingInput, largest_count, pedestals_of
from cosim.units.table import unit_of


def size(
    graph: ScaledGraph, calibration: Calibration, *, origin: str = "network", pedestal: float = PEDESTAL_UNITS
) -> SizedGraph:
    """Size a graph, a pass of the compiler: whole unit devices for its weights, bias currents for its memories.

    pedestal: current of a signal of 0, in software units, see `Pedestal`. A weight beyond MAX_COUNT (a bias:
    MAX_BIAS_COUNT) unit devices is cut. Raises MappingError that names the parameter, its value, the limit and the
    repair.
    """
    units, sizing = calibration.units, SizingInput(graph, calibration)
    risen = next((node.name for node in graph.memories if node.floor and pedestal != PEDESTAL_UNITS), None)
    if risen is not None:
        raise MappingError(
            f"{origin}: {risen} stands on a floor of pedestals of {PEDESTAL_UNITS:g}, and these are {pedestal:g}; "
            "leave `pedestal` out"
        )
    ands = {node.name for node in graph.of(And)}
    mirrors = {
        edge: Mirror(0, weight.target) if ands & {*edge} else _mirror(edge[0], weight, units)
        for edge, weight in graph.weights.items()
    }
    biases = {node.name: _bias(node, sizing, origin) for node in graph.memories}
    sized = SizedGraph(
        graph.nodes, graph.weights, graph.i_unit, graph.currents, units, pedestal * graph.i_unit, mirrors, biases,
        _steer(graph, calibration, origin), left_out=graph.left_out, comparator_devices=graph.comparator_devices,
    )  # fmt: skip
    return _with_pedestal(sized) if pedestal else sized


def _bias(node: Memory, sizing: SizingInput, origin: str) -> object:
    """Return the bias currents of a memory's unit. Raises UnitCurrentError with the memory's name if none do."""
    try:
        return unit_of(node).solve_bias(sizing)
    except UnitCurrentError as error:
        raise error.reworded(f"{origin}: {node.name}: {error}") from None


def _mirror(source: str, weight: Weight, units: int) -> Mirror:
    largest = largest_count(source)
    count = max(-largest, min(round(weight.target * units), largest))
    return Mirror(count, count / units)


def _steer(graph: ScaledGraph, calibration: Calibration, origin: str) -> dict[Edge, float]:
    """Return edge -> bias current, ampere, for each weight on an And node.

    Raises UnitCurrentError for a current beyond the calibrated range.
    """
    found: dict[Edge, float] = {}
    for (source, target), weight in graph.weights.items():
        if isinstance(graph.nodes[source], And) and weight.target:
            level = weight.target * graph.i_unit
            if level > MAX_RISE:
                raise UnitCurrentError(
                    f"{origin}: {weight.origin} must be at most {MAX_RISE / graph.i_unit:g} at {graph.i_unit:.3g} A, "
                    f"not {weight.target:g}: an AND is a source of at most {MAX_RISE * 1e9:g} nA",
                    where=weight.origin, value=weight.target, limit=MAX_RISE / graph.i_unit,
                )  # fmt: skip
            found[source, target] = calibration.schmitt.solve_gain(level)
    return found


def _with_pedestal(graph: SizedGraph) -> SizedGraph:
    """Return the graph with one more weight in each row, which subtracts the pedestals of the row's sources.

    The subtraction is exact, because counts of unit devices are integers.
    """
    weights, mirrors = dict(graph.weights), dict(graph.mirrors)
    for node in graph.of(Rectifier, Memory, Output):
        count = -sum(
            pedestals_of(graph.nodes[source]) * graph.mirrors[source, node.name].count
            for source, _ in graph.into(node.name)
        )
        edge, built = (PEDESTAL, node.name), Mirror(count, count / graph.units)
        weights[edge], mirrors[edge] = Weight(built.realised, f"{node.name}: pedestal of its sources"), built
    return replace(graph, nodes={**graph.nodes, PEDESTAL: Pedestal()}, weights=weights, mirrors=mirrors)


def scale(graph: LoweredGraph, i_unit: float, comparator_devices: int = 1) -> ScaledGraph:
    """Scale a graph to ampere, a pass of the compiler: signals by `i_unit`, and the set-points of its memories.

    i_unit: ampere per software 1.0; comparator_devices: devices in parallel in each comparator.
    """
    currents: dict[str, MemoryCurrents] = {}
    for node in graph.memories:
        rise, fall = (node.rise, node.fall) if isinstance(node, ThresholdUnit) else (0.0, 0.0)
        currents[node.name] = MemoryCurrents(rise * i_unit, fall * i_unit, node.level * i_unit)
    return ScaledGraph(
        graph.nodes, graph.weights, i_unit, currents, left_out=graph.left_out, comparator_devices=comparator_devices
    )
