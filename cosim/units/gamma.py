"""The dispersive delay line: tau-cells in a row, whose mean delay is a bias current.

In its pulse all n cells move at once:

    dy_k/dt = r_k (g_k y_{k-1} - y_k),   y_0 = u + FLOOR,   r the measured rate of I_tau, g the gain of the mirrors

which is linear in y_k / (g_1 ... g_k) as long as the gains stay the same: they are taken at the currents before the
pulse. Between pulses every y_k decays as the minGRU's state does (cosim.units.mingru).

Its supply current is the sum over its cells: the copies of the input, I_tau twice, what M4 carries, and the output.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.assembly import StateCurrent
from cosim.cells.blocks import CELLS
from cosim.cells.tau_cell import REST_STRENGTH, gate_charge, tau_cell_gated
from cosim.network.gamma import GammaLayer, line_step
from cosim.network.ir.nodes import PEDESTAL_UNITS, Rectifier
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
    MappingRow,
    UnitKind,
    effect,
    pin_row,
)
from cosim.units.mingru import (
    GATED_SHARE,
    TAU_CELL_MIRRORS,
    MinGru,
    capacitance,
    check_candidate_holds,
    full_scales,
    tau_cell_fit,
)
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import SizingInput

_ROUNDS = 5  # of a fixed point whose error shrinks tenfold in each: rates lie within 0.84 to 1.44 from 0.02 to 4


@dataclass(frozen=True)
class GammaPins:
    """Pin currents of a delay line unit, ampere.

    i_tau: sets the time constant of all its cells, and so its position (mean delay); i_rest: current of the gate line
    onto which the reset puts the cells.
    """

    i_tau: float
    i_rest: float


@dataclass(frozen=True)
class GammaFactors:
    """The factors by which one chip's mismatch changes each cell of a delay line unit; () where all are 1.

    targets: settled value over input, of each cell; rates: I_tau of each cell.
    """

    targets: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()


GammaCell = CellEquations[GammaPins, GammaFactors]


@dataclass(frozen=True)
class Gamma(UnitKind[GammaPins, GammaFactors]):
    """A dispersive delay line as a kind of recurrent unit.

    It has n = `order` filters in a row, and each moves by n / p time constants in a frame, p = `position`. h = step s,
    and s = 1 is full scale. Its cells carry a floor current as well, because a tau-cell follows no current that is next
    to 0.
    """

    factors_type = GammaFactors
    layer_types = (GammaLayer,)
    updates_in_pulse = has_time_constant = True
    check_timing = staticmethod(MinGru.check_timing)

    tolerance: ClassVar[float] = 0.03
    floor: ClassVar[int] = 3

    order: int = 1
    position: float = 1.0

    @property
    def schematics(self) -> tuple[str, ...]:
        return ("tau-cell",)

    def compute_states(self, cell: GammaCell, candidate: Array) -> States:
        return (self._run_line(cell, candidate)[:, :, -1] - self._floor(cell)) / cell.set_points[2]

    def _run_line(self, cell: GammaCell, candidate: Array) -> Array:
        """Return the current of each cell of a delay line unit at the end of each frame, ampere, (n, time, cells).

        candidate: (n, time), ampere.
        """
        order, units = self.order, cell.calibration.units
        i_unit, ones = cell.set_points[2] / self.level, (1.0,) * order
        targets, rates = (np.array(found or ones) for found in (cell.factors.targets, cell.factors.rates))
        rate, decay, fit = order / self.position, 1.0, None
        if not cell.ideal:
            fit = tau_cell_fit(cell.calibration)
            nominal_rate = cell.bias.i_tau * units / i_unit
            rate = nominal_rate * float(fit.rate(np.array(nominal_rate * i_unit)))
            decay = float(np.exp(-fit.leak / gate_charge(i_unit, units, GATED_SHARE)))
        kept, taken = line_step(rate * rates)
        given, line = candidate + self._floor(cell), np.full((len(candidate), order), self._floor(cell))
        found = np.empty((*candidate.shape, order))
        for t in range(candidate.shape[1]):
            read = np.column_stack([given[:, t], line[:, :-1]])
            gain = np.cumprod(targets * (1.0 if fit is None else fit.gain(read)) * np.ones_like(read), axis=1)
            line = gain * ((decay * line / gain) @ kept.T + given[:, t, None] * taken)
            found[:, t] = line
        return found

    def output_current(self, cell: GammaCell, states: States) -> Array:
        return np.asarray(cell.set_points[2] * states + self._floor(cell), dtype=np.float64)

    def _floor(self, cell: GammaCell) -> float:
        """Return the floor, ampere: the smallest current that the cells of the delay line carry."""
        return FLOOR * cell.set_points[2] / self.level

    def supply_current(self, cell: GammaCell, signals: CellSignals) -> Array:
        mirror, held = cell.calibration.mirror, self.output_current(cell, signals.states)
        inside = self._run_line(cell, signals.candidate)[:, :, :-1].sum(axis=2)
        given = signals.candidate + self._floor(cell)
        copies = mirror.push * (given + inside) * (1 + mirror.sink)
        return signals.output_current + held + copies + 2 * inside + 2 * self.order * cell.bias.i_tau

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        return isinstance(layer, GammaLayer)

    @staticmethod
    def lower_layer(layer: GammaLayer, placement: LayerPlacement) -> None:
        """Add a delay line of tau-cells for each software unit of a layer; a floor is added to their currents."""
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        check_candidate_holds(layer, placement, "line")
        names = (tap.name for tap in placement.sources.taps)
        lit = next((name for name in names if isinstance(placement.graph.nodes[name], Rectifier)), None)
        if lit is not None:
            raise MappingError(
                f"{placement.origin}: {layer.name} reads {lit}, a rectifier, which may carry current at rest, and a "
                "delay line begins at rest; let it read the input, or states"
            )
        for i in range(layer.width):
            if bias[i] > 0:
                raise MappingError(
                    f"{placement.origin}: {layer.name}.{i} has a candidate of {bias[i]:g} while all that it reads "
                    "carries no current, and a delay line begins at rest; let it read signals that are 0 then, with "
                    "positive weights"
                )
        for i, full in enumerate(full_scales(placement, weight, bias)):
            order, position = int(layer.order[i]), float(layer.position[i])
            node = Gamma(f"{layer.name}.{i}", layer.name, i, placement.stage, full, 0.0, full, order, position)
            placement.graph.add(node)
            placement.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))

    def solve_bias(self, sizing: SizingInput) -> GammaPins:
        """Return the unit's pin currents: I_tau for n / p time constants a frame, as measured, and the reset's."""
        wanted, i_unit = self.order / self.position, sizing.graph.i_unit
        fit, rate = tau_cell_fit(sizing.calibration), wanted
        for _ in range(_ROUNDS):
            rate = wanted / float(fit.rate(np.array(rate * i_unit)))
        return GammaPins(rate * i_unit / sizing.calibration.units, REST_STRENGTH * FLOOR * i_unit)

    def build_circuit(self, builder: Builder, pins: GammaPins) -> None:
        calibration, graph, stem = builder.calibration, builder.graph, net(self.name)
        line, farad = builder.add_candidate(self), capacitance(calibration, graph.i_unit, builder.tau)
        bias = builder.bias_line("delay", pins.i_tau)
        floor = builder.bias_line("floor", pins.i_rest)
        builder.cell_bias[self.name] = (bias, floor)
        tau, rest, trim = builder.pushed(bias), builder.pushed(floor, rest=True), tau_cell_fit(calibration).trim
        for k in range(self.order):
            cell = tau_cell_gated(builder.technology, builder.units, farad, trim, place="next" if k else "first")
            out = f"{stem}_p" if k == self.order - 1 else f"{stem}_p{k}"
            nets = (line, tau, out, f"pulseb{self.stage}", "resetb", rest, "vdd")
            builder.add(cell, instance_name(stem, k, self.order), nets, CELLS, f"{self.name}: {k + 1} of {self.order}")
            line = out
        rest = (1 + self.floor) * graph.i_pedestal
        builder.decisions[self.name] = StateCurrent(f"{NETWORK}.cell_{stem}.diode", rest, self.level * graph.i_unit)
        builder.add_state_line(self)

    def report_pins(self, pins: GammaPins, learned: LearnedParameters) -> list[MappingRow]:
        pin, _ = learned.pins
        words = f"a delay of {self.position:.4g} frames by {self.order} cells"
        return [pin_row(f"{self.layer}.position[{self.index}]", pin, pins.i_tau, pins.i_tau, words)]

    def mismatch_effects(self, pins: GammaPins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on each cell of the delay line.

        `targets`: the mirrors to node d, the translinear loop, the mirror of the output; `rates`: M_tau2, and the
        devices that push I_tau.
        """
        stem, current, before = net(self.name), circuit.set_points.i_high, circuit.candidate_diode
        pin, push = circuit.bias_diode(circuit.pins[0]), instance(f"push_{circuit.pins[0]}")
        for k in range(self.order):
            cell = instance(instance_name(stem, k, self.order))
            own = ((f"{cell}.{name}", sign) for name, sign in TAU_CELL_MIRRORS)
            yield effect("targets", self.name, current, (before, -1), *own, place=k)
            pushed = (f"{cell}.tau2", 1), (f"{push}.diode", -1), (f"{push}.sink", 1), (pin, -1)
            yield effect("rates", self.name, pins.i_tau, *pushed, place=k)
            before = f"{cell}.diode"


FLOOR = Gamma.floor * PEDESTAL_UNITS  # units


def instance_name(stem: str, place: int, order: int) -> str:
    """Return the instance name of one tau-cell of a delay line unit; the last cell has the name of the state's cell.

    place: number of the cell in the line; order: number of cells.
    """
    return f"cell_{stem}" if place == order - 1 else f"cell{place}_{stem}"
