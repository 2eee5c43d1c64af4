"""The ladder of Schmitt triggers behind a quantiser: the unit at epsilon = 1, whose state is added to.

    s + 1 where u >= i_rise,  s - 1 where u <= i_fall,  else kept,  within 0 ... K

A rung's window is shifted by its neighbours' DPIs. A set pulse must end before the DPI of the rung that it has set
reaches alpha - (i_set - i_rise), where the next rung would follow; by the next pulse the DPI must have got there. The
reset pulse has the same two limits for the fall to i_fall - i_reset. Derivation: docs/explanation/ladder.md.

On a chip whose transistors deviate a rung may fail to count. With f the factors of its devices, rung k compares

    u_k = f_compared (f_driven I_in + alpha (f_up,k-1 s_{k-1} + f_down,k+1 s_{k+1}))
    and turns on at f_thresh i_rise,k,  off at f_thresh i_rise,k - f_width (i_rise,k - i_fall,k)

Before the pulse, at retain, a DPI arrives at most RUNS_ON times one after the other (true at the default tau). In the
pulse the neighbours' s are those before it; after it the state is read. The state is the number of rungs that are on,
whichever they are; where a run continues from a state, and for the output, the lowest rungs count as on.

Its supply current is that of both comparators, min(g_push u, g_n I_thresh) each; of the driver's tails and their copy,
(1 + g_push) g_sink I_retain; of a rung u_k + min(g_push (u_k + I_w s), g_n I_thresh) + I_w s + 2 alpha s (own state,
DPI), with u_k = g_sink I_in + alpha (s_{k-1} + s_{k+1}). The output's alpha is counted in its signal.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MappingError
from cosim.cells.assembly import StateCurrent
from cosim.cells.blocks import CELLS, QUANTISERS
from cosim.cells.dpi import DPI, dpi_capacitance, dpi_fall_time, dpi_rise_time
from cosim.cells.ladder import LadderBias, ladder, ladder_blocks
from cosim.cells.quantiser import QUANTISER, quantiser, quantiser_blocks
from cosim.cells.rectifier import candidate_diode
from cosim.cells.schmitt import DECISION_NODE
from cosim.network.ir.nodes import ThresholdUnit
from cosim.network.ir.states import States
from cosim.network.layers import EpsilonLayer, RecurrentLayer, SignedLayer
from cosim.technology.calibration import Calibration
from cosim.units.beta import add_beta
from cosim.units.builder import NETWORK, Builder, instance, net
from cosim.units.comparator import (
    Fits,
    WindowFactors,
    WindowPins,
    WindowUnit,
    levels_current,
    memory_current,
)
from cosim.units.counter import counter_node
from cosim.units.epsilon import EPSILON_LAYERS, EitherLayer, Lattice, lattice_offset, lattices
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    MappingRow,
    effect,
    pin_row,
)
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import PULSE_BEGIN, PULSE_END, TAU_FRAMES, SizingInput

# In units of i_unit. The windows are those of arXiv 2605.11855, Fig. 4, at 1 nA.
RISE, FALL, RETAIN, ALPHA = 0.35, 0.15, 0.25, 0.5
SWING = 0.2  # set = retain + SWING, reset = retain - SWING
TAU_SHARE = 0.02  # I_tau over alpha: dead time and gain error of a DPI grow with it
_LEAST = 1e-6  # of alpha: what a DPI at rest still carries, the slowest case of its dead time
MAX_RUNGS = 32
RUNS_ON = 2  # arrivals of a DPI between two pulses: 3.4 tau, of which one takes 1.6 to 1.9


@dataclass(frozen=True)
class LadderPins(WindowPins):
    """Bias-pin currents of a ladder unit, ampere: comparators, driver (i_base, i_delta) and rungs (ladder)."""

    i_base: float
    i_delta: float
    ladder: LadderBias


@dataclass(frozen=True)
class LadderFactors(WindowFactors):
    """The factors by which one chip's mismatch changes currents of a ladder unit.

    base: the driver's reset current; step_down, step_up: its steps from reset to retain and from retain to set. The
    others have one value a rung, or () if all are 1. driven: the rung's copy of the driver's current; compared: its
    candidate; thresholds, widths: its bias currents; upward: current of its DPI into the rung above, without the last
    rung; downward: current of its DPI into the rung below, without the first rung.
    """

    base: float = 1.0
    step_down: float = 1.0
    step_up: float = 1.0
    driven: tuple[float, ...] = ()
    compared: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()
    upward: tuple[float, ...] = ()
    downward: tuple[float, ...] = ()


LadderCell = CellEquations[LadderPins, LadderFactors]


@dataclass(frozen=True)
class Ladder(WindowUnit[LadderPins, LadderFactors]):
    """A ladder, the recurrent unit at epsilon = 1: s + 1 at u >= rise, s - 1 at u <= fall, else kept.

    The state is within 0 ... rungs and starts at `first`.
    """

    factors_type = LadderFactors
    layer_types = EPSILON_LAYERS
    has_time_constant = True
    trimmed = (0, "upper"), (1, "lower"), (2, "levels"), (2, "upward"), (2, "downward")

    rungs: int = 1

    @property
    def most(self) -> int:
        return self.rungs

    @staticmethod
    def fits(calibration: Calibration) -> Fits:
        return calibration.upper, calibration.lower

    @property
    def schematics(self) -> tuple[str, ...]:
        return "9T cell", "quantiser", "ladder", "DPI"

    def compute_states(self, cell: LadderCell, candidate: Array) -> States:
        """Return how many rungs are on after each frame; on a chip with mismatch each rung turns on its own."""
        if cell.ideal or not cell.factors.driven:
            return super().compute_states(cell, candidate)
        rise, fall = self.window(cell)
        f, mirror = cell.factors, cell.calibration.mirror
        shared = ladder_currents(cell.set_points[2] / self.level)
        copied = mirror.sink**2 * mirror.push  # from a bias diode over the driver into a rung
        delta = copied * (shared.i_retain - shared.i_reset)
        reset = f.base * copied * shared.i_reset
        retain = reset + f.step_down * delta
        raised = shared.alpha * (np.arange(self.rungs) > 0)
        rises = np.array(f.thresholds) * (shared.i_rise + raised)
        falls = rises - np.array(f.widths) * (shared.i_rise - shared.i_fall)
        upward, downward = (shared.alpha * np.array(each[: self.rungs - 1]) for each in (f.upward, f.downward))

        def turned(on: NDArray[np.bool_], i_in: Array | float) -> NDArray[np.bool_]:
            u = np.multiply(f.driven, i_in) + np.zeros(on.shape)
            u[:, 1:] += upward * on[:, :-1]
            u[:, :-1] += downward * on[:, 1:]
            u *= f.compared
            return np.where(on, u > falls, u >= rises)

        on = np.arange(self.rungs) < cell.states_before(candidate, self.start)[:, None]
        driven = reset + delta * (f.step_down * (candidate > fall) + f.step_up * (candidate >= rise))
        states = np.empty(candidate.shape, dtype=np.int16)
        for t in range(candidate.shape[1]):
            for _ in range(RUNS_ON):
                on = turned(on, retain)
            on = turned(on, driven[:, t, None])
            states[:, t] = on.sum(axis=1)
        return states

    def output_current(self, cell: LadderCell, states: States) -> Array:
        return levels_current(cell, cell.bias.ladder.i_gain, self.most, states)

    def supply_current(self, cell: LadderCell, signals: CellSignals) -> Array:
        pins, calibration = cell.bias, cell.calibration
        mirror, bias, state = calibration.mirror, pins.ladder, signals.states
        total = signals.output_current + self.window_supply(cell, signals)
        tails = mirror.sink * (pins.i_base + pins.i_delta)
        total = total + (1 + mirror.push) * tails
        alpha = float(calibration.schmitt.i_high(np.float64(bias.i_gain)))
        for k in range(1, self.rungs + 1):
            below = alpha * (state >= k - 1) * (k > 1)
            above = alpha * (state >= k + 1)
            u = mirror.sink * mirror.push * tails + below + above
            thresh, width = (bias.i_thresh_1, bias.i_width_1) if k == 1 else (bias.i_thresh, bias.i_width)
            total = total + u + memory_current(calibration, u, state >= k, thresh, width) + 2 * alpha * (state >= k)
        return total

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        """Tell whether the layer's update adds to its state (epsilon 1)."""
        return isinstance(layer, EpsilonLayer) and layer.epsilon == 1

    @staticmethod
    def lower_layer(layer: EitherLayer, placement: LayerPlacement) -> None:
        """Add a ladder for each software unit of a layer, with rungs for its states over the data and headroom.

        A counter is added instead where these are too many, or where `placement.cell` asks for one.
        """
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        for unit in lattices(layer, placement):
            offset = lattice_offset(unit, layer, placement)
            rungs = _rungs(unit, placement)
            if placement.cell == "counter" or (rungs > MAX_RUNGS and placement.cell == "auto"):
                node: ThresholdUnit = counter_node(unit, layer, placement, offset)
            else:
                node = _ladder_node(unit, layer, placement, offset)
            placement.graph.add(node)
            placement.add_row(
                node.name, weight[unit.index], bias[unit.index] + offset, Parameter(layer.name, unit.index)
            )
            if isinstance(layer, SignedLayer) and layer.weight_beta is not None:
                add_beta(node, layer, placement)

    @staticmethod
    def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
        """Raise MappingError if ladder units would skip a step or take two with these currents and times."""
        dpi = calibration.dpi
        check_ladder(ladder_currents(i_unit), ladder_timing(t_step, tau), origin, dpi.rise, dpi.fall)

    def solve_bias(self, sizing: SizingInput) -> LadderPins:
        """Return the bias currents of the unit's thresholds as they arrive, and those that all ladders share."""
        shared, window = ladder_currents(sizing.graph.i_unit), self.window_bias(sizing)
        bias, delta = solve_ladder(shared, sizing.calibration), shared.i_retain - shared.i_reset
        return LadderPins(**asdict(window), i_base=shared.i_reset, i_delta=delta, ladder=bias)

    def build_circuit(self, builder: Builder, pins: LadderPins) -> None:
        technology, stem, units = builder.technology, net(self.name), builder.units
        candidate = builder.add_candidate(self, builder.comparator_devices)
        builder.define(*quantiser_blocks(technology, builder.comparator_devices))
        upper, lower = self.add_window_lines(builder, pins)
        base, delta = builder.bias_line("base", pins.i_base), builder.bias_line("delta", pins.i_delta)
        origin = f"{self.name}: rise {self.rise:.6g} fall {self.fall:.6g}"
        nets = (candidate, upper, lower, base, delta, f"{stem}_in", *self.clock_pins, "resetb", "vdd")
        builder.add(quantiser(), f"{QUANTISER}_{stem}", nets, QUANTISERS, origin)
        builder.drives[self.name] = StateCurrent(
            f"{NETWORK}.{QUANTISER}_{stem}.driver.diode_n", pins.i_base, pins.i_delta
        )

        bias = pins.ladder
        builder.define(
            candidate_diode(technology),
            *ladder_blocks(technology, units, dpi_capacitance(technology, builder.tau, bias.i_tau)),
        )
        lines = (
            builder.bias_line("thresh", bias.i_thresh_1), builder.bias_line("width", bias.i_width_1),
            builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width),
            builder.bias_line("gain", bias.i_gain), builder.strong_line("vg", bias.i_g),
            builder.strong_line("tau", bias.i_tau),
        )  # fmt: skip
        builder.cell_bias[self.name] = (upper, lower, lines[4], base, delta, *lines[:4], *lines[5:])
        origin = f"{self.name}: {self.rungs} rungs of {self.level:.6g}, starts on {self.start}"
        nets = (f"{stem}_in", *lines, f"{stem}_p", "resetb", "vdd")
        builder.add(ladder(technology, units, self.rungs, self.start), f"cell_{stem}", nets, CELLS, origin)
        builder.decisions[self.name] = tuple(
            f"x{NETWORK}.xcell_{stem}.xrung{k}.{DECISION_NODE}" for k in range(1, self.rungs + 1)
        )
        builder.add_state_line(self)

    def report_pins(self, pins: LadderPins, learned: LearnedParameters) -> list[MappingRow]:
        currents, (upper, lower, gain, *_) = learned.set_points, learned.pins
        rungs = f"{self.rungs} rungs, starts on {self.start}; readers' weights times {self.step / self.level:g}"
        return [
            pin_row(learned.upper, upper, currents.i_rise, pins.i_upper, learned.upper_note),
            pin_row(learned.lower, lower, currents.i_fall, pins.i_lower, learned.lower_note),
            pin_row(learned.alpha, gain, currents.i_high, pins.ladder.i_gain, rungs),
        ]

    def mismatch_effects(self, pins: LadderPins, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit, beside those on its two comparators; `a - b` is a against b.

        levels: M11 of each rung - bias diode; base, step_down, step_up: source - bias diode; driven: copy of a rung -
        diodes and + copy of the driver; compared: M1 of a rung - candidate diode; thresholds: M2 - bias diode; widths:
        M8 - bias diode + M9 - M7; upward, downward: source - diode and copy of the rung's own state, M2 - M1 of the
        DPI, and its two currents against their diodes.
        """
        name, bias, stem = self.name, pins.ladder, net(self.name)
        yield from self.window_effects(pins, circuit, f"{QUANTISER}_{stem}")
        driver = instance(f"{QUANTISER}_{stem}.driver")
        gain, *others = circuit.pins[2:]
        base, delta, thresh_1, width_1, thresh, width, vg, tau = map(circuit.bias_diode, others)
        delta_i = pins.i_delta
        yield effect("base", name, pins.i_base, (f"{driver}.base", 1), (base, -1))
        yield effect("step_down", name, delta_i, (f"{driver}.delta_d", 1), (delta, -1))
        yield effect("step_up", name, delta_i, (f"{driver}.delta_u", 1), (delta, -1))
        line = (f"{driver}.diode_p", -1), (f"{driver}.copy", 1), (f"{driver}.diode_n", -1)
        for k in range(1, self.rungs + 1):
            place, rung = k - 1, instance(f"cell_{stem}.rung{k}")
            own = (thresh_1, width_1, bias.i_thresh_1, bias.i_width_1)
            t, w, i_thresh, i_width = own if k == 1 else (thresh, width, bias.i_thresh, bias.i_width)
            loop = (f"{rung}.8", 1), (w, -1), (f"{rung}.9", 1), (f"{rung}.7", -1)
            source = (f"{rung}.11", 1), (circuit.bias_diode(gain), -1)
            yield effect("levels", name, bias.i_gain, *source, place=place)
            yield effect("driven", name, pins.i_base + delta_i, (f"{rung}.in", 1), *line, place=place)
            yield effect("compared", name, i_thresh, (f"{rung}.1", 1), (f"{rung}.cand.diode", -1), place=place)
            yield effect("thresholds", name, i_thresh, (f"{rung}.2", 1), (t, -1), place=place)
            yield effect("widths", name, i_width, *loop, place=place)
        for field, lowest in (("upward", 1), ("downward", 2)):
            for k in range(lowest, lowest + self.rungs - 1):
                rung, dpi = instance(f"cell_{stem}.rung{k}"), instance(f"cell_{stem}.{DPI}{k}")
                port = int(field == "upward" and k > 1)  # a DPI between two others has that to the one below first
                devices = (
                    (f"{rung}.5", 1), (circuit.bias_diode(gain), -1), (f"{rung}.4", -1), (f"{dpi}.in", 1),
                    (f"{dpi}.2", 1), (f"{dpi}.1", -1), (f"{dpi}.tau", -1), (tau, 1), (f"{dpi}.out{port}", 1), (vg, -1),
                )  # fmt: skip
                yield effect(field, name, bias.i_gain, *devices, place=k - lowest)


def _rungs(unit: Lattice, placement: LayerPlacement) -> int:
    low, high = unit.circuit_ends(placement.headroom)
    return max(high - low, 1)


def _ladder_node(unit: Lattice, layer: EitherLayer, placement: LayerPlacement, offset: float) -> Ladder:
    rungs, start = _rungs(unit, placement), -unit.circuit_ends(placement.headroom)[0]
    if rungs > MAX_RUNGS:
        why = "its ends are so far apart" if unit.ended else (
            f"over the training data its state spans {unit.high - unit.low} steps of alpha"
        )  # fmt: skip
        raise MappingError(
            f"{unit.where}: a ladder may have {MAX_RUNGS} rungs at most, not {rungs}: {why}; compile with "
            "`cell=counter`",
            where=unit.name, value=rungs, limit=MAX_RUNGS,
        )  # fmt: skip
    return Ladder(
        unit.name, layer.name, unit.index, placement.stage, ALPHA, unit.first - start * unit.step, unit.step,
        unit.rise + offset, unit.fall + offset, offset, first=start, rungs=rungs,
    )  # fmt: skip


@dataclass(frozen=True)
class LadderCurrents:
    """Set-points of a ladder unit, ampere.

    i_set, i_retain, i_reset: levels of the line that drives all rungs; i_rise, i_fall: thresholds of rung 1; alpha:
    output of one rung; i_tau: bias of the DPIs.
    """

    i_set: float
    i_retain: float
    i_reset: float
    i_rise: float
    i_fall: float
    alpha: float
    i_tau: float


@dataclass(frozen=True)
class LadderTiming:
    """Times of a ladder unit, second.

    step: from one pulse to the next; pulse: length of a set or reset pulse; tau: time constant of the DPIs.
    """

    step: float
    pulse: float
    tau: float


def ladder_currents(i_unit: float) -> LadderCurrents:
    """Return the set-points of a ladder unit, ampere, for `i_unit` ampere per software 1.0."""
    return LadderCurrents(
        (RETAIN + SWING) * i_unit,
        RETAIN * i_unit,
        (RETAIN - SWING) * i_unit,
        RISE * i_unit,
        FALL * i_unit,
        ALPHA * i_unit,
        TAU_SHARE * ALPHA * i_unit,
    )


def ladder_timing(t_step: float, tau: float | None = None) -> LadderTiming:
    """Return the times of a ladder unit that has one pulse in each frame of `t_step` second.

    tau: time constant of its DPIs, second; None means TAU_FRAMES of the frame.
    """
    return LadderTiming(t_step, (PULSE_END - PULSE_BEGIN) * t_step, TAU_FRAMES * t_step if tau is None else tau)


def solve_ladder(currents: LadderCurrents, calibration: Calibration) -> LadderBias:
    """Return the bias currents that make a ladder unit's set-points, from the technology's calibration."""
    fit, c = calibration.schmitt, currents
    return LadderBias(
        *fit.solve_thresholds(c.i_rise, c.i_fall),
        *fit.solve_thresholds(c.i_rise + c.alpha, c.i_fall + c.alpha),
        fit.solve_gain(c.alpha),
        c.i_tau * calibration.dpi.ratio(c.alpha),
        c.i_tau,
    )


def check_ladder(
    currents: LadderCurrents, timing: LadderTiming, origin: str, rise: float = 1.0, fall: float = 1.0
) -> None:
    """Raise MappingError for a ladder unit that would skip or double a step; derivation in docs/explanation/ladder.md.

    rise, fall: rise and fall time of the technology's DPIs over those of the DPI equation; origin: for the message.

    double: the shift of a neighbour's window must not arrive within the pulse, neither after a set nor after a reset.
    skip: the shift must have arrived by the next pulse. Both times follow from the DPI equation and are compared with
    the pulse and with the rest of the step. The levels must be ordered: i_reset < i_fall < i_retain < i_rise < i_set.
    """
    c = currents
    order = (c.i_reset, c.i_fall, c.i_retain, c.i_rise, c.i_set)
    if not all(a < b for a, b in pairwise(order)) or c.i_set - c.i_rise >= c.alpha:
        values = ", ".join(f"{1e9 * value:.3g}" for value in order)
        raise MappingError(
            f"{origin}: a ladder needs reset < lower threshold < retain < upper threshold < set < upper threshold + "
            f"alpha, not {values} nA with alpha {1e9 * c.alpha:.3g} nA; move the levels apart"
        )
    up, down = c.alpha - (c.i_set - c.i_rise), c.i_fall - c.i_reset  # D at which the neighbour trips
    rest = timing.step - timing.pulse
    cases = (
        ("double a set", rise * dpi_rise_time(c.i_tau, up, c.alpha, c.i_tau), timing.pulse, False),
        ("double a reset", fall * dpi_fall_time(c.alpha, down), timing.pulse, False),
        ("skip a set", rise * dpi_rise_time(_LEAST * c.alpha, up, c.alpha, c.i_tau), rest, True),
        ("skip a reset", fall * dpi_fall_time(c.alpha, down), rest, True),
    )
    for what, needed, available, must_arrive in cases:
        time = needed * timing.tau
        if (time >= available) if must_arrive else (time <= available):
            raise MappingError(
                f"{origin}: the ladder would {what}: the neighbour's window arrives after {1e3 * time:.3g} ms (tau "
                f"{1e3 * timing.tau:.3g} ms), which must be {'less' if must_arrive else 'more'} than "
                f"{1e3 * available:.3g} ms, the {'rest of the step' if must_arrive else 'pulse'}; "
                f"{'use a smaller' if must_arrive else 'use a larger'} tau",
                where=what, value=time, limit=available, unit="s",
            )  # fmt: skip
