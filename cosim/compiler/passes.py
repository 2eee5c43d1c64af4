"""The compiler's passes in their order, from a network to its circuit, each with checks that also run again at the end.

If a network cannot be compiled at the unit current that was asked for, the message names one at which it can. Every
limit of a cell is a current, so a smaller i_unit helps a threshold that is too high and harms one that is too low. An
i_unit that suits all cells is found by running the checks themselves at several values.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.cells.assembly import Assembly
from cosim.cells.blocks import INPUT_DIODES, RECTIFIERS
from cosim.cells.mirror import input_diode
from cosim.cells.rectifier import relu_diode
from cosim.circuit.elements import Circuit, Instance, Subcircuit
from cosim.compiler.around import surround
from cosim.compiler.centre import centre
from cosim.compiler.checks import (
    check_comparators,
    check_feedback,
    check_pulls,
    check_set_points,
    check_signals,
    check_stages,
    check_units_work,
    check_weights,
    set_points,
)
from cosim.compiler.constant import leave_out_constants
from cosim.compiler.design import Design
from cosim.compiler.edited import replace_circuit
from cosim.compiler.lower import lower
from cosim.compiler.overrides import override_bias, override_transistors
from cosim.compiler.settings import CompilationJob, CompilerSettings, Target
from cosim.compiler.size import scale, size
from cosim.network.ir.graph import LoweredGraph, SizedGraph
from cosim.network.ir.nodes import UNIT_CURRENT, InputCurrent, Memory, Output, Pedestal, Rectifier, UnitCurrent
from cosim.network.types import Network
from cosim.technology.calibration import Calibration
from cosim.technology.scale import check_units, units_for
from cosim.technology.types import Technology
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.table import unit_of

Pass = tuple[str, Callable[[Any, Any], Any], tuple[Callable[[Any, Any], None], ...]]

PASSES: tuple[Pass, ...] = (
    ("lower", lambda network, job: lower(network, job.origin, job.settings.cell, job.settings.headroom),
     (check_weights, check_pulls, check_stages, check_feedback, check_comparators)),
    ("constant", lambda graph, job: leave_out_constants(graph, job.units), (check_weights, check_stages)),
    ("centre", lambda graph, job: centre(graph), ()),
    ("scale", lambda graph, job: scale(graph, job.settings.i_unit, job.settings.comparator_devices),
     (check_units_work, check_signals, check_set_points)),
    ("size", lambda graph, job: size(graph, job.calibration, origin=job.origin, pedestal=job.settings.pedestal), ()),
    ("assemble", lambda graph, job: _design(graph, job), ()),
)  # fmt: skip
FOR_TECHNOLOGY = "scale"  # the first pass that needs one
AFTER_SIZES = "assemble"  # the first pass behind everything that may refuse the network's values


def compile_network(
    network: Network,
    technology: Technology,
    calibration: Calibration,
    settings: CompilerSettings = CompilerSettings(),
    origin: str = "network",
) -> Design:
    """Compile a trained network to a design: graph, sizes and circuit on a technology.

    Raises MappingError if the network cannot be built in the technology, or if the grid of its weights does not fit the
    calibration's unit devices. origin: file of the network, for messages.
    """
    target = Target(network, origin, settings, calibration.units, technology, calibration)
    sized = _size(target)
    design = _run(PASSES[_place(AFTER_SIZES) :], target, sized)
    assert isinstance(design, Design)
    for _, _, checks in PASSES:
        for check in checks:
            check(design.graph, target)
    return design


def check_sizes(network: Network, technology: Technology, calibration: Calibration, origin: str = "network") -> None:
    """Raise the MappingError that `compile_network` with default settings would raise, but compile no circuit."""
    _size(Target(network, origin, CompilerSettings(), calibration.units, technology, calibration))


def _size(target: Target) -> object:
    """Return the sized graph. Raises MappingError, which names a unit current that suits if there is one."""
    first, end = _place(FOR_TECHNOLOGY), _place(AFTER_SIZES)
    found, sizing = _run(PASSES[:first], target, target.network), PASSES[first:end]

    def refused(i_unit: float) -> str:
        try:
            _run(sizing, replace(target, settings=replace(target.settings, i_unit=i_unit)), found)
        except MappingError as error:
            return str(error).removeprefix(f"{target.origin}: ")
        return ""

    try:
        return _run(sizing, target, found)
    except UnitCurrentError as error:
        assert isinstance(found, LoweredGraph)
        advice = advise_unit_current(found, target.settings.i_unit, refused, target.technology.name)
        raise error.reworded(f"{error}; {advice}", MappingError) from None


def constant_cells(network: Network) -> dict[str, int]:
    """Return cell -> constant state, for cells that the compiler leaves out; empty for a network that it refuses."""
    job = CompilationJob(network, "network", CompilerSettings(saturate=True), units_for(network.weight_grid))
    try:
        found = _run(PASSES[: _place(FOR_TECHNOLOGY)], job, network)
    except MappingError:
        return {}
    assert isinstance(found, LoweredGraph)
    return dict(found.left_out.states)


def check_mapping(
    network: Network, settings: CompilerSettings = CompilerSettings(), origin: str = "network", units: int | None = None
) -> None:
    """Raise those MappingErrors of `compile_network` that need no technology: units, rungs, stages, weights.

    units: unit devices per weight 1.0; None takes them from the network's grid of weights.
    """
    job = CompilationJob(network, origin, settings, units or units_for(network.weight_grid))
    _run(PASSES[: _place(FOR_TECHNOLOGY)], job, network)


def _place(name: str) -> int:
    """Return the index of a pass, by its name, among all passes."""
    return [one for one, _, _ in PASSES].index(name)


def _run(passes: tuple[Pass, ...], job: CompilationJob, found: object) -> object:
    """Run passes in their order, with the checks of each, and return the last one's result.

    found: input of the first pass.
    """
    check_units(job.network.weight_grid, job.units, job.origin)
    for _, run, checks in passes:
        found = run(found, job)
        for check in checks:
            check(found, job)
    return found


def _design(graph: SizedGraph, job: Target) -> Design:
    """Return the design of a sized graph: its circuit with the blocks around it and with what a designer changed."""
    network, overrides = assemble(graph, job.technology, job.calibration, job.settings), job.settings.overrides
    compiled = surround(network, graph, job)
    design = Design(job.network, job.technology, job.calibration, graph, compiled, job.settings)
    if job.settings.netlist is not None:
        edited, edits = replace_circuit(compiled, job.settings.netlist, job.technology)
        return replace(design, assembly=edited, compiled=compiled, edits=edits)
    if not overrides:
        return design
    changed = surround(override_bias(network, overrides, job.origin), graph, job)
    circuit = override_transistors(changed.circuit, overrides, job.technology, job.origin)
    return replace(design, assembly=replace(changed, circuit=circuit), compiled=compiled)


def assemble(
    graph: SizedGraph, technology: Technology, calibration: Calibration, settings: CompilerSettings = CompilerSettings()
) -> Assembly:
    """Assemble a sized graph into one circuit, the compiler's last pass."""
    builder = Builder(graph, technology, calibration, settings.slow, settings.comparator_devices)
    _add_sources(builder)
    for node in graph.of(Rectifier, Memory, Output):
        match node:
            case Rectifier(name):
                builder.add_row(name, f"{net(name)}_p")
                builder.add(
                    relu_diode(technology, builder.units), f"relu_{net(name)}", (f"{net(name)}_p", "vdd"), RECTIFIERS
                )
                builder.add_rails(name)
            case Memory():
                unit_of(node).build_circuit(builder, graph.biases[node.name])
            case Output(name):
                builder.add_row(name, net(name))
    return _finish(builder)


def _add_sources(builder: Builder) -> None:
    """Add the diodes of inputs, unit current and pedestal, with their gate lines n and symbol comparators if read."""
    for node in builder.graph.of(InputCurrent, UnitCurrent, Pedestal):
        stem = net(node.name)
        diode = input_diode(builder.technology, builder.units_of(node.name))
        builder.add(diode, f"diode_{stem}", (f"{stem}_p", "vdd"), INPUT_DIODES)
        builder.add_rails(node.name)
        builder.add_symbol(node)


def _finish(builder: Builder) -> Assembly:
    """Return the assembly: the subcircuit of all cells that the builder has collected, with its pins."""
    graph, technology = builder.graph, builder.technology
    cells = list(graph.memories)
    stages = sorted({node.stage for node in cells})
    clocks = tuple((f"clk{stage}", f"clkb{stage}") for stage in stages)
    pulsed = sorted({node.stage for node in cells if unit_of(node).updates_in_pulse})
    pulses = {stage: (f"pulse{stage}", f"pulseb{stage}") for stage in pulsed}
    replaced = {node.stage for node in cells if not unit_of(node).updates_in_pulse}  # others turn later
    decides = {stage: (f"dec{stage}", f"decb{stage}") for stage in sorted(builder.apart & replaced)}
    input_pins = tuple(f"{net(node.name)}_p" for node in graph.of(InputCurrent))
    outputs = tuple(net(node.name) for node in graph.of(Output))
    unit_pin = f"{UNIT_CURRENT}_p"
    pedestal_pin = next((f"{node.name}_p" for node in graph.of(Pedestal)), None)
    pins = (*input_pins, unit_pin, *((pedestal_pin,) if pedestal_pin else ()), *builder.bias_pins, *outputs)
    ports = ("vdd", "resetb", *(pin for pair in (*clocks, *decides.values(), *pulses.values()) for pin in pair), *pins)
    top = Subcircuit(NETWORK, ports, tuple(builder.elements), "the whole network")
    title = f"network compiled by cosim for {technology.name}"
    circuit = Circuit(title, (*builder.blocks.values(), top), (Instance(NETWORK, ports, NETWORK),))
    candidates = {node.name: f"x{NETWORK}.{net(node.name)}_cand" for node in cells}
    return Assembly(
        circuit, ports, builder.bias_pins, input_pins, unit_pin, pedestal_pin, outputs, clocks, decides, pulses,
        builder.decisions, candidates, builder.weights, builder.cell_bias, frozenset(builder.rails),
        builder.steering, builder.symbols, builder.held, frozenset(builder.pushing),
        builder.drives,
    )  # fmt: skip


_E12 = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)  # IEC 60063
_SERIES = tuple(float(f"{value}e{decade}") for decade in range(-12, -6) for value in _E12)  # of i_unit, A
_SAME = 1e-9  # relative, of rounded floats


def advise_unit_current(graph: LoweredGraph, asked: float, refused: Callable[[float], str], technology: str) -> str:
    """Return advice for a network that the compiler refuses at the i_unit `asked`, ampere: the nearest one that suits.

    If none suits, the advice is to train again. refused: function from i_unit to the compiler's objection, "" for none.
    """
    least, most = _bounds(graph)
    between = {value for value in (least, most, *_SERIES) if least <= value <= most}
    tried = sorted(between, key=lambda value: abs(math.log(value / asked)) if 0 < value < math.inf else math.inf)
    if (found := next((value for value in tried if not refused(value)), None)) is not None:
        return f"compile with `i_unit={_typed(found)}`, which suits all cells"
    nearest = most
    if least <= most:  # the geometric mean within the series
        nearest = _rounded(math.sqrt(max(least, _SERIES[0]) * min(most, _SERIES[-1])), math.floor)
    other = refused(nearest)
    why = other and f": at {_typed(nearest)}A, {other}"
    return (
        f"no `i_unit` suits all cells{why}; train it again with `train(technology={technology})`, which keeps all "
        "that it learns within what the cells can have"
    )


def _bounds(graph: LoweredGraph) -> tuple[float, float]:
    """Return the smallest and largest i_unit, ampere, at which all set-points can be built, rounded to three digits.

    If no i_unit suits all of them, the first number is the larger one.
    """
    least, most = 0.0, math.inf
    for _, point in set_points(scale(graph, 1.0)):
        if point.current > 0:  # others are refused at any
            least, most = max(least, point.least / point.current), min(most, point.most / point.current)
    return _rounded(least * (1 + _SAME), math.ceil), _rounded(most * (1 - _SAME), math.floor)


def _rounded(value: float, whole: Callable[[float], int]) -> float:
    """Round a bound on the i_unit to three digits by `whole`, floor or ceil.

    A bound that is not positive, or infinite, is returned as it is.
    """
    if not 0 < value < math.inf:
        return value
    digit = math.floor(math.log10(value)) - 2
    return float(f"{whole(value / 10.0**digit)}e{digit}")


def _typed(i_unit: float) -> str:
    """Format a current for advice on `i_unit` as a user would type it: 333p for 333e-12."""
    return f"{i_unit * 1e9:g}n" if i_unit >= 1e-9 else f"{i_unit * 1e12:g}p"
