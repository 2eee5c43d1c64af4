"""A toy unit with an analog state: one transistor and a capacitor, from the outside of the package.

      vdd --+-------+           A row draws u i_unit from the node, a sink the pedestal f i_unit. With the diode's
            |       |           current I = I_0 exp(V / (n U_T)) on it and Q = C n U_T,
          |diode   === C
            |       |             Q dI/dt = I ((u + f) i_unit - I),       y = I / i_unit:
    node o--+-------+             y_t = v / (1 + (v / y_{t-1} - 1) exp(-v T / q)),   v = u + f,   q = Q / i_unit

and h = y - f, from h = 0 on: a leaky integrator, faster for larger signals. It holds for u >= 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cosim.cells.assembly import StateCurrent
from cosim.cells.blocks import CELLS
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Op, Voltage
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos, Source, Subcircuit
from cosim.compiler.size import PEDESTAL_UNITS
from cosim.engines.simulation.inference import run_bench
from cosim.network.ir.states import States
from cosim.network.layers import Array, LayerTrace, RecurrentLayer
from cosim.technology.calibration import Calibration, Own
from cosim.technology.types import Technology
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.kind import CellDevices, CellEquations, CellSignals, Effect, LearnedParameters, MappingRow, UnitKind
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import TAU_FRAMES, SizingInput

FLOOR = PEDESTAL_UNITS
READ = 0.95  # of a frame, when states are read
CURRENTS = (0.4e-9, 0.6e-9)


def flow(y: Array, v: Array, frames: Array | float) -> Array:
    """y after some frames of a constant v; frames: over the time q."""
    return v / (1.0 + (v / y - 1.0) * np.exp(-v * frames))


@dataclass(frozen=True)
class LeakyLayer(RecurrentLayer):
    """h_t as above with u = max(W x + b, 0); rate (width,): a frame over q."""

    kind = "leaky"
    torch = "leaky_torch:LeakyCell"

    rate: Array

    @property
    def start(self) -> Array:
        return np.zeros(self.width)

    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        u = np.maximum(self.drive(x), 0.0)
        states, y = np.empty_like(u), FLOOR + (np.zeros(u[:, 0].shape) if before is None else before)
        for t in range(u.shape[1]):
            states[:, t] = y = flow(y, u[:, t] + FLOOR, self.rate)
        return LayerTrace(states - FLOOR, u)


@dataclass(frozen=True)
class Nothing:
    """It has no bias pins, and no factors of its own."""


LeakyCell = CellEquations[Nothing, Nothing]


@dataclass(frozen=True)
class Leaky(UnitKind[Nothing, Nothing]):
    """The integrator in the graph; rate: a frame over q."""

    factors_type = Nothing
    layer_types = (LeakyLayer,)
    has_time_constant = True

    tolerance: ClassVar[float] = 0.03

    rate: float = 1.0

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        return isinstance(layer, LeakyLayer)

    @staticmethod
    def lower_layer(layer: LeakyLayer, placement: LayerPlacement) -> None:
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        for i in range(layer.width):
            node = Leaky(f"{layer.name}.{i}", layer.name, i, placement.stage, 1.0, 0.0, 1.0, float(layer.rate[i]))
            placement.graph.add(node)
            placement.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))

    def solve_bias(self, sizing: SizingInput) -> Nothing:
        return Nothing()

    def build_circuit(self, builder: Builder, pins: Nothing) -> None:
        technology, stem, i_unit = builder.technology, net(self.name), builder.graph.i_unit
        nominal = {"swing": (technology.pfet.slope_factor * technology.thermal_voltage,)}
        (swing,) = builder.calibration.own.get("Leaky", nominal)["swing"]
        capacitance = builder.tau / TAU_FRAMES / self.rate * i_unit / swing
        devices = (*diode(technology, builder.units), Capacitor("c", "node", "vdd", capacitance))
        builder.add_row(self.name, f"{stem}_p")
        builder.add(Subcircuit(f"leaky_{stem}", ("node", "vdd"), devices), f"cell_{stem}", (f"{stem}_p", "vdd"), CELLS)
        builder.cell_bias[self.name] = ()
        builder.decisions[self.name] = StateCurrent(f"{NETWORK}.cell_{stem}.diode", builder.graph.i_pedestal, i_unit)
        builder.add_state_line(self)

    @staticmethod
    def measure_fit(technology: Technology, calibration: Calibration, simulator: str) -> Own:
        """swing: n U_T of the diode around 0.5 nA in volt, by two operating points."""
        voltages = []
        for current in CURRENTS:
            sources = Source("dd", "v", "vdd", GROUND, technology.supply), Source("in", "i", "node", GROUND, current)
            circuit = Circuit("leaky bench", (), (*diode(technology, calibration.units), *sources))
            bench = Bench(circuit, technology, Op(), (Voltage("node"),), tolerances=PRECISE)
            voltages.append(float(run_bench(bench, "leaky", simulator).voltage("node")[-1]))
        return {"swing": (float((voltages[0] - voltages[1]) / np.log(CURRENTS[1] / CURRENTS[0])),)}

    def report_pins(self, pins: Nothing, learned: LearnedParameters) -> list[MappingRow]:
        return []

    def compute_states(self, cell: LeakyCell, candidate: Array) -> States:
        """States (n, time) when they are read: the rest of a frame goes on at its input."""
        v = candidate / cell.set_points[2] + FLOOR
        states, y = np.empty_like(v), np.full(len(v), FLOOR)
        for t in range(v.shape[1]):
            states[:, t] = flow(y, v[:, t], READ * self.rate)
            y = flow(states[:, t], v[:, t], (1 - READ) * self.rate)
        return states - FLOOR

    def output_current(self, cell: LeakyCell, states: States) -> Array:
        return cell.set_points[2] * states

    def supply_current(self, cell: LeakyCell, signals: CellSignals) -> Array:
        """The pedestal: what the row draws counts with the rows."""
        return signals.output_current - self.output_current(cell, signals.states)

    def mismatch_effects(self, pins: Nothing, circuit: CellDevices) -> Iterator[Effect]:
        return iter(())


def diode(technology: Technology, units: int) -> tuple[Mos, ...]:
    return transistor("diode", TransistorDesign("output", "p", technology.sizing.mirror_p, units), "node", "node")
