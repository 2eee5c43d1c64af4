"""Checks of a graph after a pass of the compiler. Each raises MappingError with parameter, value, limit and repair."""

from collections.abc import Iterator

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.circuit.waveforms import LAST_CLOSE
from cosim.compiler.settings import CompilationJob, Target
from cosim.network.ir.graph import LoweredGraph, ScaledGraph
from cosim.network.ir.nodes import PEDESTAL, And, Memory
from cosim.units.sizing import PULSE_END, SetPoint, largest_count
from cosim.units.table import UNITS, unit_of


def check_weights(graph: LoweredGraph, job: CompilationJob) -> None:
    """Raise MappingError if weights exceed the largest mirror and `saturate` is off; names the worst one."""
    if job.settings.saturate:
        return
    units = job.units
    counts = ((largest_count(source), weight) for (source, _), weight in graph.weights.items() if source != PEDESTAL)
    beyond = [(abs(weight.target) * units / largest, largest, weight) for largest, weight in counts]
    if beyond := [one for one in beyond if one[0] > 1]:
        _, largest, weight = max(beyond, key=lambda one: one[0])
        limit = f"+-{largest / units:g} ({largest} unit devices at 1/{units})"
        raise MappingError(
            f"{job.origin}: {weight.origin} must lie within {limit}, not {weight.target:g}{_among(len(beyond))}; clip "
            "it in training, or compile with `saturate` to cut it and have it listed",
            where=weight.origin, value=weight.target, limit=largest / units,
        )  # fmt: skip


def _among(count: int) -> str:
    return f", the worst of {count}" if count > 1 else ""


def check_pulls(graph: LoweredGraph, job: CompilationJob) -> None:
    """Raise MappingError if a weight on an And node is negative: Ands become current sources, which only pull."""
    for (source, _), weight in graph.weights.items():
        if isinstance(graph.nodes[source], And) and weight.target < 0:
            raise MappingError(
                f"{job.origin}: {weight.origin} reads {source}, an AND, whose current only pulls, so it must not be "
                f"negative, not {weight.target:g}; use a layer of kind relu for the AND"
            )


def check_stages(graph: LoweredGraph, job: CompilationJob) -> None:
    """Raise MappingError if a unit's pulse is not over when the next stage of the compiled graph decides."""
    stages = 1 + max(node.stage for node in graph.memories)
    early = next((node for node in graph.memories if unit_of(node).updates_in_pulse and node.stage < stages - 1), None)
    if early is not None and LAST_CLOSE / stages < PULSE_END:
        epsilon = next(getattr(layer, "epsilon", None) for layer in job.network.layers if layer.name == early.layer)
        kind = "moves in a pulse" if epsilon is None else f"has epsilon {epsilon:g}"
        raise MappingError(
            f"{job.origin}: {early.layer} {kind} and stands before the last of {stages} recurrent "
            f"layers in a row: its pulse ends {PULSE_END:g} of a frame after its decision, but the next layer decides "
            f"{LAST_CLOSE / stages:.2g} after it; use at most {int(LAST_CLOSE / PULSE_END)} layers in a row, or such "
            "units in the last one only"
        )


def check_comparators(graph: LoweredGraph, job: CompilationJob) -> None:
    """Raise MappingError if `comparator_devices` is over 1 and no unit of the network has a comparator."""
    if job.settings.comparator_devices > 1 and not any(unit_of(node).has_comparators for node in graph.memories):
        raise MappingError(
            f"{job.origin}: `comparator_devices` is for units behind comparators, which ladders, counters, toggles, "
            "reflectors and registers are, and there is none; leave it out, or draw larger cells in the technology's "
            "file"
        )


def check_feedback(graph: LoweredGraph, job: CompilationJob) -> None:
    """Raise MappingError if a state depends on itself, but its unit's equations cannot start from a given state."""
    deaf = (
        next((node for node in graph.memories if not unit_of(node).resumes_from_state), None)
        if graph.feeds_back
        else None
    )
    if deaf is not None:
        raise MappingError(
            f"{job.origin}: {deaf.layer}: a network that feeds back must be of units that go on from a state, and "
            f"{type(deaf).__name__} does not; let it read no late source of its own or of a layer behind it"
        )


def check_units_work(graph: ScaledGraph, target: Target) -> None:
    """Raise MappingError if a kind of unit cannot work with the target's unit current, frame and time constant.

    Also if a time constant is set and no unit has one.
    """
    how, origin = target.settings, target.origin
    kinds = [unit for unit in UNITS if any(isinstance(node, unit) for node in graph.memories)]
    if how.tau is not None and not any(unit.has_time_constant for unit in kinds):
        raise MappingError(
            f"{origin}: tau is that of ladders and tau-cells, and there is none of either; leave `tau` out"
        )
    for unit in kinds:
        unit.check_timing(graph.i_unit, how.t_step, how.slow, target.calibration, origin)


def check_set_points(graph: ScaledGraph, job: CompilationJob) -> None:
    """Raise MappingError if a threshold, width or level of the scaled graph cannot be built; names the worst one."""
    beyond = [(node.name, point) for node, point in set_points(graph) if point.excess > 1]
    if beyond:
        name, worst = max(beyond, key=lambda one: one[1].excess)
        found = f"{job.origin}: {name}: {worst}{_among(len(beyond))}"
        kind, text = (UnitCurrentError, found) if worst.current > 0 else (MappingError, f"{found}; {worst.repair}")
        raise kind(text, where=name, value=worst.current, limit=worst.limit, unit="A")


def set_points(graph: ScaledGraph) -> Iterator[tuple[Memory, SetPoint]]:
    """Yield (memory, current) for all currents of a scaled graph that have limits, ampere."""
    for node in graph.memories:
        moving = bool(graph.into(node.name, "beta"))
        for point in unit_of(node).set_points(graph.currents[node.name], moving=moving):
            yield node, point


def check_signals(graph: ScaledGraph, target: Target) -> None:
    """Raise UnitCurrentError if the currents of a compiled graph's signals leave the range in which mirrors work."""
    origin, calibration, i_unit, pedestal = target.origin, target.calibration, graph.i_unit, target.settings.pedestal
    low, high = calibration.current_min, calibration.current_max
    if pedestal and pedestal * i_unit < low:
        raise UnitCurrentError(
            f"{origin}: `i_unit` must be at least {low / pedestal:.3g} A on {calibration.technology}, not "
            f"{i_unit:.3g} A: a signal of 0 carries {pedestal:g} of it, and mirrors need {low * 1e12:g} pA",
            where="i_unit", value=i_unit, limit=low / pedestal, unit="A",
        )  # fmt: skip
    if (1 + pedestal) * i_unit > high:
        raise UnitCurrentError(
            f"{origin}: `i_unit` must be at most {high / (1 + pedestal):.3g} A on {calibration.technology}, not "
            f"{i_unit:.3g} A: mirrors keep their gain up to {high * 1e9:g} nA",
            where="i_unit", value=i_unit, limit=high / (1 + pedestal), unit="A",
        )  # fmt: skip
