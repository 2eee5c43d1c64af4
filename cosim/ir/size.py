"""Size: weights become integer counts of unit devices, thresholds become calibrated bias currents."""

from dataclasses import replace

import numpy as np

from cosim.errors import MappingError
from cosim.ir.graph import Lowered, Scaled, Sized
from cosim.ir.ladder import ladder_currents, solve_ladder
from cosim.ir.nodes import (
    PEDESTAL,
    UNIT_CURRENT,
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    MemoryCurrents,
    Mirror,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
    Weight,
)
from cosim.technology.calibration import Calibration

MAX_COUNT = 64  # unit devices of one weight; more belongs into a larger i_unit
MAX_BIAS_COUNT = 256  # of one bias, which may carry a common-mode offset and the offsets of the states it reads, too
MIN_WIDTH = 12e-12  # A; below about this the 9T cell shows no hysteresis (arXiv 2605.07936)
MIN_FALL = 10e-12  # A; a lower threshold must stand clear of leakage and of the rectifier's residue
MAX_RISE = 8e-9  # A; end of the calibrated range
PEDESTAL_UNITS = 0.05  # of i_unit: gate lines of a 0 then settle with C n u_t / I, about 1 ms
TYPICAL_ACTIVITY = 0.4  # mean of inputs and states over their range, for second-order corrections only
_BETA_PROBE = 0.1  # of i_unit; step at which the thresholds are linearised, so that fall - beta stays above 0


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
    units = calibration.units
    _check_signals(graph, calibration, pedestal, origin)
    check_weights(graph, units, origin, saturate=saturate)
    mirrors = {edge: _mirror(edge[0], weight, units) for edge, weight in graph.weights.items()}
    biases: dict[str, object] = {}
    for node in graph.memories:
        currents = graph.currents[node.name]
        if isinstance(node, Schmitt):
            _check_currents(node, currents, origin, dynamic=bool(graph.into(node.name, "beta")))
            biases[node.name] = _solve_bias(graph, node, currents, calibration)
        else:
            _check_native_currents(node, currents, origin)
            biases[node.name] = _solve_native(graph, node, currents, calibration)
    sized = Sized(
        graph.nodes, graph.weights, graph.i_unit, graph.currents, units, pedestal * graph.i_unit, mirrors, biases
    )
    return _with_pedestal(sized) if pedestal else sized


def _mirror(source: str, weight: Weight, units: int) -> Mirror:
    largest = _largest_count(source)
    count = int(np.clip(round(weight.target * units), -largest, largest))
    return Mirror(count, count / units)


def check_weights(graph: Lowered, units: int, origin: str, *, saturate: bool) -> None:
    """Raises MappingError for a weight beyond the largest mirror, unless it may `saturate`."""
    for (source, _), weight in graph.weights.items():
        largest = _largest_count(source)
        if abs(weight.target) * units > largest and not saturate:
            limit = f"+-{largest / units:g} ({largest} unit devices at 1/{units})"
            raise MappingError(
                f"{origin}: {weight.origin} must lie within {limit}, not {weight.target:g}; clip it in training, or "
                "compile with --saturate to cut it and have it listed"
            )


def _check_signals(graph: Scaled, calibration: Calibration, pedestal: float, origin: str) -> None:
    """Raises MappingError when signals would leave the currents for which the mirrors were found usable."""
    i_unit, low, high = graph.i_unit, calibration.current_min, calibration.current_max
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


def _largest_count(source: str) -> int:
    return MAX_BIAS_COUNT if source == UNIT_CURRENT else MAX_COUNT


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


def _check_currents(node: Schmitt, currents: MemoryCurrents, origin: str, *, dynamic: bool) -> None:
    width = currents.i_rise - currents.i_fall
    if not dynamic and width < MIN_WIDTH:
        raise MappingError(
            f"{origin}: {node.name}: hysteresis width must be at least {MIN_WIDTH * 1e12:g} pA, not {width * 1e12:.3g} "
            "pA; raise the minimum width in training (--width-min) or --i-unit"
        )
    if currents.i_fall < MIN_FALL:
        raise MappingError(
            f"{origin}: {node.name}: lower threshold must be at least {MIN_FALL * 1e12:g} pA, not "
            f"{currents.i_fall * 1e12:.3g} pA; raise beta_lo in training or --i-unit"
        )
    if currents.i_rise > MAX_RISE:
        raise MappingError(
            f"{origin}: {node.name}: upper threshold must be at most {MAX_RISE * 1e9:g} nA, not "
            f"{currents.i_rise * 1e9:.3g} nA; use a smaller --i-unit or smaller thresholds"
        )
    if not 0 < currents.i_high <= MAX_RISE:
        repair = "use a smaller --i-unit" if currents.i_high > 0 else "flip the sign of what reads it instead"
        raise MappingError(
            f"{origin}: {node.name}: state level must be positive and at most {MAX_RISE * 1e9:g} nA, not "
            f"{currents.i_high * 1e9:.3g} nA; {repair}"
        )


def _solve_bias(graph: Scaled, node: Schmitt, currents: MemoryCurrents, calibration: Calibration) -> SchmittBias:
    """Thresholds are what the candidate really is where the ideal one crosses them."""
    fit = calibration.schmitt
    i_gain = fit.solve_gain(currents.i_high)
    traffic = _typical_traffic(graph, node.name, calibration.units)
    if not graph.into(node.name, "beta"):
        rise, fall = (_arriving(current, traffic, calibration) for current in (currents.i_rise, currents.i_fall))
        i_thresh, i_width = fit.solve_clocked(rise, fall)
        return SchmittBias(i_thresh, i_width, i_gain)
    probe = _BETA_PROBE * graph.i_unit
    near, far = (
        np.array(
            fit.solve_clocked(
                _arriving(currents.i_rise + beta, traffic, calibration),
                _arriving(currents.i_fall - beta, traffic, calibration),
            )
        )
        for beta in (probe, 2 * probe)
    )
    (slope_thresh, slope_width) = (far - near) / probe
    (start_thresh, start_width) = near - (far - near)
    push = calibration.mirror.push
    trim_thresh, trim_width = push / slope_thresh, 2 * push / slope_width
    return SchmittBias(
        start_thresh * trim_thresh, max(start_width * trim_width, 0.0), i_gain, float(trim_thresh), float(trim_width)
    )


def _check_native_currents(node: Memory, currents: MemoryCurrents, origin: str) -> None:
    lowest = currents.i_rise if isinstance(node, Toggle) else currents.i_fall
    if lowest < MIN_FALL or currents.i_rise > MAX_RISE or currents.i_high > MAX_RISE:
        raise MappingError(
            f"{origin}: {node.name}: thresholds and level must lie between {MIN_FALL * 1e12:g} pA and "
            f"{MAX_RISE * 1e9:g} nA, not {lowest * 1e9:.3g} to {currents.i_rise * 1e9:.3g} nA and "
            f"{currents.i_high * 1e9:.3g} nA; change --i-unit"
        )


def _solve_native(
    graph: Scaled, node: Memory, currents: MemoryCurrents, calibration: Calibration
) -> LadderPins | TogglePins:
    """Quantiser thresholds as they arrive, and the set-points that all ladders and toggles share."""
    traffic = _typical_traffic(graph, node.name, calibration.units)
    shared = ladder_currents(graph.i_unit)
    upper = calibration.comparator.solve(_arriving(currents.i_rise, traffic, calibration))
    base, delta = shared.i_reset, shared.i_retain - shared.i_reset
    if isinstance(node, Ladder):
        lower = calibration.comparator.solve(_arriving(currents.i_fall, traffic, calibration))
        return LadderPins(upper, lower, base, delta, solve_ladder(shared, calibration))
    fit = calibration.schmitt
    thresholds = fit.solve_clocked(shared.i_rise, shared.i_fall)
    return TogglePins(upper, base, delta, *thresholds, fit.solve_gain(currents.i_high))


def _arriving(current: float, traffic: float, calibration: Calibration) -> float:
    """What arrives at a candidate node when the ideal sum is `current`.

    All weights share the gain of the path. Beyond that a node that carries more than 1 nA stands lower, so its pulling
    weights give less and its pushing ones more, in proportion to all that flows through the node, `traffic`.
    """
    mirror = calibration.mirror
    slope = (mirror.slope_n + mirror.slope_p) / 2
    arriving = candidate_gain(calibration) * current - slope * traffic * float(mirror.node_drop(np.float64(current)))
    return max(arriving, current / 2)


def _typical_traffic(graph: Scaled, name: str, units: int) -> float:
    """Sum of |weight|, as far as it can be built, times current into a node, signals at their typical level, ampere."""
    total = 0.0
    for source, weight in graph.into(name):
        node = graph.nodes[source]
        level = 1.0 if isinstance(node, UnitCurrent) else TYPICAL_ACTIVITY
        if isinstance(node, Memory):
            level *= node.level * (node.rungs if isinstance(node, Ladder) else 1)
        total += min(abs(weight.target), _largest_count(source) / units) * level
    return total * graph.i_unit


def candidate_gain(calibration: Calibration) -> float:
    """Gain of a weighted current at a candidate node, common to both signs: that of line p at 1 nA."""
    mirror = calibration.mirror
    return float(mirror.interpolate(mirror.gain_p, np.float64(1e-9)))
