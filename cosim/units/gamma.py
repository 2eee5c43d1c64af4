"""The dispersive delay line: tau-cells in a row, whose mean delay is a bias current. In its pulse all n move at once:

    dy_k/dt = r_k (g_k y_{k-1} - y_k),   y_0 = u + FLOOR,   r the measured rate of I_tau, g the gain of the mirrors

which is linear in y_k / (g_1 ... g_k) as long as the gains stand: they are taken at the currents before the pulse.
Between pulses every y_k decays as the minGRU's state (cosim.units.mingru).

Its supply current is that of every cell: the copies of its input, I_tau twice, what M4 carries, and its output.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.assembly import Carried
from cosim.cells.blocks import CELLS
from cosim.cells.tau_cell import REST_STRENGTH, gate_charge, tau_cell_gated
from cosim.network.gamma import GammaLayer, line_step
from cosim.network.ir.nodes import PEDESTAL_UNITS, Memory, Rectifier
from cosim.network.ir.states import States
from cosim.network.layers import RecurrentLayer
from cosim.units.builder import NETWORK, Builder, instance, net
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    PinRow,
    UnitKind,
    effect,
)
from cosim.units.mingru import GATED_SHARE, TAU_CELL_MIRRORS, capacitance, check_timing, full_scale, tau_cell_fit
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import SizingInput

_ROUNDS = 5  # of a fixed point whose error shrinks tenfold in each: rates lie within 0.84 to 1.44 from 0.02 to 4


@dataclass(frozen=True)
class Gamma(Memory):
    """A dispersive delay line as a kind of recurrent unit.

    `order` filters in a row, of n / p time constants in a frame each; h = step s, s = 1: full scale. Its cells stand on
    a floor: a tau-cell follows no current that is next to 0.
    """

    tolerance: ClassVar[float] = 0.03
    floor: ClassVar[int] = 3

    order: int = 1
    position: float = 1.0


@dataclass(frozen=True)
class GammaPins:
    """Pin currents of a delay line unit.

    i_tau: of all its cells, ampere, which is the position; i_rest: of the gate line that the reset puts them on.
    """

    i_tau: float
    i_rest: float


@dataclass(frozen=True)
class GammaFactors:
    """A chip's factors of each cell of a delay line unit; empty where all are nominal.

    targets: settled value over input; rates: I_tau.
    """

    targets: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()


FLOOR = Gamma.floor * PEDESTAL_UNITS  # units
GammaCell = CellEquations[Gamma, GammaPins, GammaFactors]


def compute_states(cell: GammaCell, candidate: Array) -> States:
    """Return the states of a delay line unit (n, time), over full scale and above the floor.

    candidate: (n, time), ampere.
    """
    return (run_line(cell, candidate)[:, :, -1] - _floor(cell)) / cell.set_points[2]


def run_line(cell: GammaCell, candidate: Array) -> Array:
    """Return the current of each cell of a delay line unit at the end of each frame, ampere, (n, time, cells).

    candidate: (n, time), ampere.
    """
    order, units = cell.node.order, cell.calibration.units
    i_unit, ones = cell.set_points[2] / cell.node.level, (1.0,) * order
    targets, rates = (np.array(found or ones) for found in (cell.factors.targets, cell.factors.rates))
    rate, decay, fit = order / cell.node.position, 1.0, None
    if not cell.ideal:
        fit = tau_cell_fit(cell.calibration)
        nominal_rate = cell.bias.i_tau * units / i_unit
        rate = nominal_rate * float(fit.rate(np.array(nominal_rate * i_unit)))
        decay = float(np.exp(-fit.leak / gate_charge(i_unit, units, GATED_SHARE)))
    kept, taken = line_step(rate * rates)
    given, line = candidate + _floor(cell), np.full((len(candidate), order), _floor(cell))
    found = np.empty((*candidate.shape, order))
    for t in range(candidate.shape[1]):
        read = np.column_stack([given[:, t], line[:, :-1]])
        gain = np.cumprod(targets * (1.0 if fit is None else fit.gain(read)) * np.ones_like(read), axis=1)
        line = gain * ((decay * line / gain) @ kept.T + given[:, t, None] * taken)
        found[:, t] = line
    return found


def output_current(cell: GammaCell, states: States) -> Array:
    """Return the output current of a delay line unit (n, time), ampere."""
    return np.asarray(cell.set_points[2] * states + _floor(cell), dtype=np.float64)


def _floor(cell: GammaCell) -> float:
    """Return the smallest current that the cells of a line carry, ampere."""
    return FLOOR * cell.set_points[2] / cell.node.level


def supply_current(cell: GammaCell, signals: CellSignals) -> Array:
    """Return the supply current of a delay line unit with its output and its pedestal, ampere, (n, time)."""
    mirror, held = cell.calibration.mirror, output_current(cell, signals.states)
    inside = run_line(cell, signals.candidate)[:, :, :-1].sum(axis=2)
    given = signals.candidate + _floor(cell)
    copies = mirror.push * (given + inside) * (1 + mirror.sink)
    return signals.output_current + held + copies + 2 * inside + 2 * cell.node.order * cell.bias.i_tau


def accepts(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes delay line units: it is one of dispersive delays."""
    return isinstance(layer, GammaLayer)


def lower_layer(layer: GammaLayer, placement: LayerPlacement) -> None:
    """Add a delay line unit of tau-cells for each software unit of a layer, whose currents stand on FLOOR."""
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    moving = next((tap.name for tap in placement.sources.taps if tap.late), None)
    if moving is not None:
        raise MappingError(
            f"{placement.origin}: {layer.name} reads {moving} late, which may turn within the pulse in which a line "
            "moves, and its candidate must not change then; let it read what is not late"
        )
    lit = next(
        (tap.name for tap in placement.sources.taps if isinstance(placement.graph.nodes[tap.name], Rectifier)), None
    )
    if lit is not None:
        raise MappingError(
            f"{placement.origin}: {layer.name} reads {lit}, a rectifier, which may carry current at rest, and a delay "
            "line begins at rest; let it read the input, or states"
        )
    for i in range(layer.width):
        if bias[i] > 0:
            raise MappingError(
                f"{placement.origin}: {layer.name}.{i} has a candidate of {bias[i]:g} while all that it reads "
                "carries no current, and a delay line begins at rest; let it read signals that are 0 then, with "
                "positive weights"
            )
    tops = placement.largest_signals()
    for i in range(layer.width):
        full = full_scale(placement, i, float(np.maximum(weight[i], 0.0) @ tops + max(bias[i], 0.0)))
        order, position = int(layer.order[i]), float(layer.position[i])
        node = Gamma(f"{layer.name}.{i}", layer.name, i, placement.stage, full, 0.0, full, order, position)
        placement.graph.add(node)
        placement.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))


def solve_bias(node: Gamma, sizing: SizingInput) -> GammaPins:
    """Return a delay line unit's I_tau, at which a cell has n / p time constants in a frame, and its reset current.

    The cell is as it was measured.
    """
    wanted, i_unit = node.order / node.position, sizing.graph.i_unit
    fit, rate = tau_cell_fit(sizing.calibration), wanted
    for _ in range(_ROUNDS):
        rate = wanted / float(fit.rate(np.array(rate * i_unit)))
    return GammaPins(rate * i_unit / sizing.calibration.units, REST_STRENGTH * FLOOR * i_unit)


def instance_name(stem: str, place: int, order: int) -> str:
    """Return the name of an instance of a delay line unit's tau-cell; the last one carries the state."""
    return f"cell_{stem}" if place == order - 1 else f"cell{place}_{stem}"


def build_circuit(builder: Builder, node: Gamma, pins: GammaPins) -> None:
    """Add a delay line unit's circuit: the candidate, n tau-cells in a row, and the lines of the last one's state."""
    calibration, graph, stem = builder.calibration, builder.graph, net(node.name)
    line, farad = builder.add_candidate(node), capacitance(calibration, graph.i_unit, builder.tau)
    bias = builder.bias_line("delay", pins.i_tau)
    floor = builder.bias_line("floor", pins.i_rest)
    builder.cell_bias[node.name] = (bias, floor)
    tau, rest, trim = builder.pushed(bias), builder.pushed(floor, rest=True), tau_cell_fit(calibration).trim
    for k in range(node.order):
        cell = tau_cell_gated(builder.technology, builder.units, farad, trim, place="next" if k else "first")
        out = f"{stem}_p" if k == node.order - 1 else f"{stem}_p{k}"
        nets = (line, tau, out, f"pulseb{node.stage}", "resetb", rest, "vdd")
        builder.add(cell, instance_name(stem, k, node.order), nets, CELLS, f"{node.name}: {k + 1} of {node.order}")
        line = out
    rest = (1 + node.floor) * graph.i_pedestal
    builder.decisions[node.name] = Carried(f"{NETWORK}.cell_{stem}.diode", rest, node.level * graph.i_unit)
    builder.add_state_line(node)


def report_pins(node: Gamma, pins: GammaPins, learned: LearnedParameters) -> list[PinRow]:
    """Return a delay line unit's row of the mapping report for its position, which is a current."""
    pin, _ = learned.pins
    words = f"a delay of {node.position:.4g} frames by {node.order} cells"
    return [PinRow(f"{node.layer}.position[{node.index}]", pin, pins.i_tau, pins.i_tau, words)]


def mismatch_effects(node: Gamma, pins: GammaPins, circuit: CellDevices) -> Iterator[Effect]:
    """Yield the mismatch effects of a delay line unit.

    targets: the mirrors to d, the loop, the mirror of the output; rates: M_tau2 and what pushes I_tau.
    """
    stem, current, before = net(node.name), circuit.set_points.i_high, circuit.candidate_diode
    pin, push = circuit.bias_diode(circuit.pins[0]), instance(f"push_{circuit.pins[0]}")
    for k in range(node.order):
        cell = instance(instance_name(stem, k, node.order))
        own = ((f"{cell}.{name}", sign) for name, sign in TAU_CELL_MIRRORS)
        yield effect("targets", node.name, current, (before, -1), *own, place=k)
        pushed = (f"{cell}.tau2", 1), (f"{push}.diode", -1), (f"{push}.sink", 1), (pin, -1)
        yield effect("rates", node.name, pins.i_tau, *pushed, place=k)
        before = f"{cell}.diode"


GAMMA = UnitKind[Gamma, GammaPins, GammaFactors](
    node_type=Gamma,
    factors_type=GammaFactors,
    layer_types=(GammaLayer,),
    accepts=accepts,
    lower_layer=lower_layer,
    solve_bias=solve_bias,
    build_circuit=build_circuit,
    report_pins=report_pins,
    compute_states=compute_states,
    output_current=output_current,
    supply_current=supply_current,
    mismatch_effects=mismatch_effects,
    schematics=lambda node: ("tau-cell",),
    updates_in_pulse=True,
    has_time_constant=True,
    check_timing=check_timing,
)
