"""The minGRU: a leaky integrator whose rate is an input, in a gated tau-cell.

    I_t = I_{t-1} + z (g u - I_{t-1}),   z = 1 - exp(-f r),   f r the measured r

Between pulses the state decays by exp(-T I_leak / (C n U_T)). The length T of the frame does not matter, because C is
chosen in proportion to it. As a pulse begins, the charge of node s moves the state a little (cosim.cells.tau_cell);
these equations leave that out, a simulation of transistors has it.

The supply current of the unit is that of the copies of the candidate, g_push u (1 + g_sink), I_tau twice, what M4
carries, and the output; of a ratio gate it is a, I_b and the tail, of which I_tau is a part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.assembly import StateCurrent
from cosim.cells.blocks import CELLS
from cosim.cells.ratio_gate import ratio_gate
from cosim.cells.tau_cell import gate_charge, tau_cell_gated
from cosim.network.ir.nodes import Rectifier, Weight
from cosim.network.ir.states import States
from cosim.network.layers import MinGruLayer, RecurrentLayer
from cosim.technology.calibration import Calibration
from cosim.technology.types import interpolate_log
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
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import PULSE_BEGIN, PULSE_END, TAU_FRAMES, SizingInput

GATED_SHARE = PULSE_END - PULSE_BEGIN  # of a frame, in which the state moves
LEAST, MOST = 0.5e-12, 20e-12  # F: below, charge sharing is more than 1 % a frame; above, it is larger than the cells


@dataclass(frozen=True)
class MinGruPins:
    """Pin currents of a minGRU unit, ampere.

    i_top: of its ratio gate; None without a ratio gate, because level and rate then come by signals.
    """

    i_top: float | None = None


@dataclass(frozen=True)
class MinGruFactors:
    """The factors by which one chip's mismatch changes a minGRU unit.

    target: current to which the state settles; rate: its rate r; ratio: a over top, as its ratio gate sees them.
    """

    target: float = 1.0
    rate: float = 1.0
    ratio: float = 1.0


@dataclass(frozen=True)
class TauFit:
    """Measured behaviour of a technology's gated tau-cell, for the equations of minGRU units.

    swing: n U_T of the cell's equation at a gate current of 0.7 nA, V; trim: nominal length of its output diode over
    drawn length; gains: settled state over candidate, at `candidates`, ampere; rates: measured rate r over that of the
    equation, at `gates`, ampere; leak: current onto the capacitor between pulses, A, positive where the state decays.
    """

    swing: float
    trim: float
    candidates: Array
    gains: Array
    gates: Array
    rates: Array
    leak: float

    def gain(self, candidate: Array) -> Array:
        """Return the calibrated ratio of a minGRU unit's settled state to its candidate, for candidates in ampere."""
        return interpolate_log(candidate, self.candidates, self.gains)

    def rate(self, gate: Array) -> Array:
        """Return a minGRU unit's measured rate r over that of its equation, for gate currents in ampere."""
        return interpolate_log(gate, self.gates, self.rates)


def tau_cell_fit(calibration: Calibration) -> TauFit:
    """Return the fit of a calibration to the gated tau-cell of minGRU units."""
    own = calibration.own[MinGru.__name__]
    (swing,), (trim,), (leak,) = own["swing"], own["trim"], own["leak"]
    candidates, gains, gates, rates = (np.array(own[name]) for name in ("candidates", "gains", "gates", "rates"))
    return TauFit(swing, trim, candidates, gains, gates, rates, leak)


MinGruCell = CellEquations[MinGruPins, MinGruFactors]


@dataclass(frozen=True)
class MinGru(UnitKind[MinGruPins, MinGruFactors]):
    """A minGRU on the chip, a kind of recurrent unit.

    h_t = (1 - z) h_{t-1} + z u, z = 1 - exp(-r), from h = 0 on; h = step s, and s = 1 is full scale. The unit's `rate`
    edge delivers a; r = a, or behind a ratio gate r = top a / (top + a).
    """

    factors_type = MinGruFactors
    layer_types = (MinGruLayer,)
    updates_in_pulse = has_time_constant = True

    tolerance: ClassVar[float] = 0.03

    top: float | None = None

    def rate(self, a: Array) -> Array:
        """Return the minGRU unit's rate r for a gate signal `a`, both in software units."""
        return a if self.top is None else self.top * a / (self.top + a)

    @property
    def schematics(self) -> tuple[str, ...]:
        return ("tau-cell", "ratio gate") if self.top else ("tau-cell",)

    def compute_states(self, cell: MinGruCell, candidate: Array) -> States:
        full, factors, gate = cell.set_points[2], cell.factors, np.broadcast_to(cell.beta[0], candidate.shape)
        i_unit = full / self.level
        target, rate, decay = candidate / full, self.rate(gate / i_unit * factors.ratio), 1.0
        if not cell.ideal:
            fit = tau_cell_fit(cell.calibration)
            target, rate = target * fit.gain(candidate), rate * fit.rate(rate * i_unit)
            decay = float(np.exp(-fit.leak / gate_charge(i_unit, cell.calibration.units, GATED_SHARE)))
        target, kept = target * factors.target, np.exp(-rate * factors.rate)
        state, states = np.asarray(cell.states_before(candidate, 0.0), dtype=np.float64), np.empty_like(target)
        for t in range(target.shape[1]):
            states[:, t] = state = target[:, t] + kept[:, t] * (decay * state - target[:, t])
        return states

    def output_current(self, cell: MinGruCell, states: States) -> Array:
        return np.asarray(cell.set_points[2] * states, dtype=np.float64)

    def supply_current(self, cell: MinGruCell, signals: CellSignals) -> Array:
        mirror, held = cell.calibration.mirror, self.output_current(cell, signals.states)
        copies = mirror.push * signals.candidate * (1 + mirror.sink)
        total = signals.output_current + held + copies
        if cell.bias.i_top is None:
            return total + 2 * signals.beta / cell.calibration.units
        i_unit = cell.set_points[2] / self.level
        rate = self.rate(np.asarray(signals.beta) / i_unit) * i_unit / cell.calibration.units
        return total + signals.beta / cell.calibration.units + 2 * cell.bias.i_top + 2 * rate

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        return isinstance(layer, MinGruLayer)

    @staticmethod
    def lower_layer(layer: MinGruLayer, placement: LayerPlacement) -> None:
        """Add a minGRU unit (a tau-cell) for each software unit of a layer, and a rectifier for each one's gate."""
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        weight_gate, bias_gate = placement.sources.weights_on_currents(layer.weight_gate, layer.bias_gate)
        check_candidate_holds(layer, placement, "minGRU")
        for i, full in enumerate(full_scales(placement, weight, bias)):
            top = None if layer.top is None else float(layer.top[i])
            node = MinGru(f"{layer.name}.{i}", layer.name, i, placement.stage, full, 0.0, full, top)
            gate = f"{node.name}.gate"
            placement.graph.add(Rectifier(gate, layer.name, i), node)
            placement.add_row(gate, weight_gate[i], bias_gate[i], Parameter(layer.name, i, "_gate"))
            placement.add_row(node.name, weight[i], bias[i], Parameter(layer.name, i))
            placement.graph.connect(gate, node.name, Weight(1.0, f"{layer.name}.gate[{i}]", "rate"))

    def solve_bias(self, sizing: SizingInput) -> MinGruPins:
        """Return the current of the ratio gate's pin, that of one unit device; without the gate there is no pin."""
        return MinGruPins(None if self.top is None else self.top * sizing.graph.i_unit / sizing.calibration.units)

    @staticmethod
    def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
        """Raise MappingError if a tau of its own is asked for, or the capacitor cannot be built or cannot hold."""
        if abs(tau / (TAU_FRAMES * t_step) - 1) > 1e-6:
            raise MappingError(
                f"{origin}: a minGRU takes its time constant from the frame and the gate, so tau must be "
                f"{TAU_FRAMES:g} of the frame, {TAU_FRAMES * t_step:.3g} s, not {tau:.3g} s; leave `tau` out",
                where="tau", value=tau, limit=TAU_FRAMES * t_step, unit="s",
            )  # fmt: skip
        found = capacitance(calibration, i_unit, tau)
        if not LEAST <= found <= MOST:
            short = found < LEAST
            wanted, limit = ("longer frame or a larger", LEAST) if short else ("shorter frame or a smaller", MOST)
            raise MappingError(
                f"{origin}: the capacitor of a minGRU or of a line must lie in {LEAST * 1e12:g} to {MOST * 1e12:g} pF, "
                f"not {found * 1e12:.3g} pF: it goes with `t_step` times `i_unit`; use a {wanted} `i_unit`",
                where="capacitor", value=found, limit=limit, unit="F",
            )  # fmt: skip

    def build_circuit(self, builder: Builder, pins: MinGruPins) -> None:
        calibration, graph, stem = builder.calibration, builder.graph, net(self.name)
        builder.cell_bias[self.name] = ()
        candidate, ((gate, _),) = builder.add_candidate(self), graph.into(self.name, "rate")
        farad = capacitance(calibration, graph.i_unit, builder.tau)
        cell = tau_cell_gated(builder.technology, builder.units, farad, tau_cell_fit(calibration).trim)
        rate = f"{net(gate)}_p"
        if pins.i_top is not None:
            rate = self._add_ratio_gate(builder, rate, pins.i_top)
        nets = (candidate, rate, f"{stem}_p", f"pulseb{self.stage}", "resetb", "vdd")
        builder.add(cell, f"cell_{stem}", nets, CELLS, f"{self.name}: gate {gate}")
        copy = f"cell_{stem}.mtau2" if self.top is None else f"gate_{stem}.mcopy"
        builder.weights[gate, self.name] = f"x{NETWORK}.x{copy}"
        diode, full = f"{NETWORK}.cell_{stem}.diode", self.level * graph.i_unit
        builder.decisions[self.name] = StateCurrent(diode, graph.i_pedestal, full)
        builder.add_state_line(self)

    def _add_ratio_gate(self, builder: Builder, line: str, i_top: float) -> str:
        """Add a ratio gate between the gate line of a and the unit's tau-cell; return the line that it drives.

        line: gate line p of a; i_top: bias current I_b of the gate, ampere, whose line all ratio gates share.
        """
        stem, bias = net(self.name), builder.bias_line("top", i_top)
        half, found = builder.pushed(bias), f"{stem}_rate_p"
        builder.add(ratio_gate(builder.technology), f"gate_{stem}", (line, half, bias, found, "vdd"), CELLS, self.name)
        builder.cell_bias[self.name] = (bias,)
        return found

    def report_pins(self, pins: MinGruPins, learned: LearnedParameters) -> list[MappingRow]:
        if self.top is None or pins.i_top is None:
            return []
        (pin,) = learned.pins
        note = f"r = {self.top:g} a / ({self.top:g} + a)"
        return [pin_row(f"{self.layer}.top[{self.index}]", pin, pins.i_top, pins.i_top, note)]

    def mismatch_effects(self, pins: MinGruPins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit; `a - b` is a against b.

        target: the mirrors to node d, the translinear loop, the mirror of the output; rate: M_tau2 - the diode of its
        gate; ratio: the copies and the pair of a ratio gate.
        """
        stem = net(self.name)
        current, gate = circuit.set_points.i_high, circuit.roles[instance(f"relu_{net(f'{self.name}.gate')}"), "diode"]

        def device(name: str) -> str:
            return f"{instance(f'cell_{stem}')}.{name}"

        mirrors = (circuit.candidate_diode, -1), *((device(name), sign) for name, sign in TAU_CELL_MIRRORS)
        yield effect("target", self.name, current, *mirrors)
        if pins.i_top is None:
            yield effect("rate", self.name, current, (device("tau2"), 1), (gate, -1))
            return
        pin, push = circuit.bias_diode(circuit.pins[0]), instance(f"push_{circuit.pins[0]}")
        cell = instance(f"gate_{stem}")
        made = (device("tau2"), 1), (f"{cell}.diode", -1), (f"{cell}.tail", 1), (pin, -1)
        yield effect("rate", self.name, pins.i_top, *made)
        shared = (gate, -1), (pin, 1), (f"{push}.sink", -1), (f"{push}.diode", 1)
        own = ((f"{cell}.{name}", sign) for name, sign in _RATIO_GATE_DEVICES)
        yield effect("ratio", self.name, pins.i_top, *shared, *own)


def check_candidate_holds(layer: RecurrentLayer, placement: LayerPlacement, what: str) -> None:
    """Raise MappingError for a layer of tau-cells that reads a signal of the frame before.

    Such a signal may change in the pulse in which the cells move. what: name of the cells, for the message.
    """
    moving = next((tap.name for tap in placement.sources.taps if tap.late), None)
    if moving is not None:
        raise MappingError(
            f"{placement.origin}: {layer.name} reads {moving} late, which may turn within the pulse in which a {what} "
            "moves, and its candidate must not change then; let it read what is not late"
        )


def full_scales(placement: LayerPlacement, weight: Array, bias: Array) -> Iterator[float]:
    """Yield the full scale of each unit of a minGRU layer: its largest h over the training data.

    Where that is not known, or 0, it is the bound of the unit's candidate, or else 1. weight: (width, sources); bias:
    (width,).
    """
    tops = placement.largest_signals()
    for i in range(len(bias)):
        seen = 0.0 if placement.ranges is None else float(placement.ranges[1, i])
        bound = float(np.maximum(weight[i], 0.0) @ tops + max(bias[i], 0.0))
        yield next((value for value in (seen, bound) if value > 0), 1.0)


def capacitance(calibration: Calibration, i_unit: float, tau: float) -> float:
    """Return the capacitor of a minGRU unit, farad, at which a gate signal of 1.0 makes z = 1 - 1/e in the pulse.

    tau: time constant of slow units, s.
    """
    gated = GATED_SHARE * tau / TAU_FRAMES
    return gate_charge(i_unit, calibration.units, gated) / tau_cell_fit(calibration).swing


_RATIO_GATE_DEVICES = ("copy", 1), ("half", -1), ("da", -1), ("db", 1), ("a", 1), ("b", -1)
TAU_CELL_MIRRORS = (
    ("in", 1), ("idiode", -1), ("sink", 1), ("1", -1), ("4", 1), ("3", -1), ("2", 1), ("tau3", 1), ("tau2", -1),
    ("odiode", -1), ("osink", 1),
)  # fmt: skip
