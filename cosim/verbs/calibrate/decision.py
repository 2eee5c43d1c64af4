"""The decision node of a clocked 9T cell, measured in ngspice: small signals, currents of M6, and the clock's edge.

Small signals are measured while the cell tracks and while it decides, M6 at the latch voltages at which it carries two
currents. Of the clock's edge, the points at which gates turn, and the step of the hold node by the sample gate.
"""

from dataclasses import replace

import numpy as np

from cosim.base.errors import SimulationError
from cosim.cells.benches import bias_lines, clocked_bench, supply_of
from cosim.cells.bias import bias_diode
from cosim.cells.clocked import CLOCKED, LATCH_NODE, clocked_schmitt
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import DECISION_NODE
from cosim.circuit.bench import Voltage
from cosim.circuit.deck import format_number
from cosim.circuit.elements import GROUND, Circuit, Instance, Source
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.engines.engine import Failure, Vectors
from cosim.engines.ngspice.noise import analyse
from cosim.engines.table import NGSPICE, simulator_named
from cosim.technology.noise import DECISION_CURRENTS, DecisionNode
from cosim.technology.types import Technology

_V0, _LATCH, _HOLD, _LOOP = (f"xcell.{net}" for net in (DECISION_NODE, LATCH_NODE, "hold", "fb"))
_AT = 0.25  # of V_DD, about where the decision node stands at a threshold
_UNITS = 8  # of the output diode, which hangs on none of these nets
_ONE, _LARGE = 1e-9, 1e-7  # A; of the threshold, and a width that does not limit M6
_SLOW, _DECIDING, _FAST = 10.0, 3e3, 1e5  # Hz, below and above the poles of the nets in question, at 1 nA
_BELOW = 0.4  # V, under the supply, of the feedback's line where it conducts
_SWITCHED = (3e-12, 3e-10)  # A, of M6
_STEPS, _APART = 200, 1e-3  # of the sweep of a clock's edge; V across the sample gate
_EXCESS = 0.9  # of the threshold: a candidate that leaves the cell off


def measure_decision(technology: Technology, slope: float) -> DecisionNode:
    """Measure the decision node of a technology's clocked cell; slope: I / (g_m U_T) of the cell's transistor M1.

    Raises SimulationError where ngspice fails, MissingToolError if ngspice is missing.
    """
    found = [_small(technology, current, high=True) for current in DECISION_CURRENTS]
    at_one = DECISION_CURRENTS.index(_ONE)
    tracking, frozen = found[at_one], _small(technology, _ONE, high=False)
    joined = _farad(frozen, _DECIDING)
    kick = float(np.real(frozen[_HOLD][0]))
    farad = _farad(tracking, _SLOW)
    return DecisionNode(
        outputs=tuple(
            float(-np.real(one["vtest#branch"][0])) / current
            for one, current in zip(found, DECISION_CURRENTS, strict=True)
        ),
        tracking=farad,
        joined=joined,
        loop=_loop(technology),
        kick=kick,
        pedestal=_pedestal(technology, kick),
        switch=_switched(technology),
        freezes=_freezes(technology, _candidate(technology), slope),
        joins=_joins(technology, joined - farad),
    )


def _circuit(technology: Technology, current: float, width: float, clocks: tuple[float, float] | None) -> Circuit:
    """Return a clocked cell with its candidate, its bias lines and its supply.

    clocks: voltages of clk and clkb, V; None where the caller adds sources for both.
    """
    pins = {"thresh": current, "width": width, "gain": current}
    gates = zip(("clk", "clkb"), clocks or (), strict=False)
    elements = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *bias_lines(pins),
        *(Source(net, "v", net, GROUND, volt) for net, volt in gates),
        Source("resetb", "v", "resetb", GROUND, technology.supply),
        Instance("cell", ("cand", *pins, "out", "clk", "clkb", "resetb", "vdd"), CLOCKED),
    )
    blocks = candidate_diode(technology), bias_diode(technology), clocked_schmitt(technology, _UNITS)
    return Circuit("decision node", blocks, elements).flat()


def _volt(name: str, net: str, volt: float, more: str = "") -> str:
    return f"v{name} {net} 0 dc {format_number(volt)}{more}"


def _simulate(
    technology: Technology,
    lines: list[str],
    analysis: str,
    *,
    current: float = _ONE,
    width: float = 0.0,
    high: bool = True,
) -> Vectors:
    """Simulate a clocked cell with constant clocks; lines: further lines of the deck.
    analysis: line of ngspice; current: of candidate, threshold and level, A; width: bias current of the width, A; high:
    whether clk is high."""
    clocks = (technology.supply, 0.0) if high else (0.0, technology.supply)
    (found,) = analyse(_circuit(technology, current, width, clocks), technology, lines, [analysis])
    return found


def _small(technology: Technology, current: float, *, high: bool) -> Vectors:
    """Simulate the small signals of a cell with 1 V ac on its decision node; high: whether clk is high.

    With clk high the latch is floating; with clk low the hold node is floating.
    """
    hertz = _SLOW * current / _ONE if high else _DECIDING
    floats = f"rlatch {_LATCH} 0 1e15" if high else f"rhold {_HOLD} cand 1e12"
    lines = [_volt("test", _V0, _AT * technology.supply, " ac 1"), floats]
    return _simulate(technology, lines, _single(hertz), current=current, high=high)


def _single(hertz: float) -> str:
    return f"ac lin 1 {format_number(hertz)} {format_number(hertz)}"


def _farad(found: Vectors, hertz: float) -> float:
    return float(-np.imag(found["vtest#branch"][0])) / (2 * np.pi * hertz)


def _loop(technology: Technology) -> float:
    """Measure the capacitance of a cell's feedback line while the line conducts, F."""
    supply = technology.supply
    lines = [_volt("test", _LOOP, supply - _BELOW, " ac 1"), _volt("l", _LATCH, 0.0), _volt("d", _V0, _AT * supply)]
    return _farad(_simulate(technology, lines, _single(_FAST)), _FAST)


def _switched(technology: Technology) -> tuple[tuple[float, float], ...]:
    """Measure the latch voltages at which M6 carries more current than with a latch at 0 V; return ((V, A), ...).

    The extra currents are those of _SWITCHED. The bias current of the width is so large that it does not limit M6.
    """
    supply = technology.supply
    lines = [_volt("l", _LATCH, 0.0), _volt("test", _LOOP, supply - _BELOW), _volt("d", _V0, _AT * supply)]
    sweep = f"dc vl 0 {format_number(supply / 2)} {format_number(supply / 2 / _STEPS)}"
    drawn = -_simulate(technology, lines, sweep, width=_LARGE)["vtest#branch"]
    volts, more = np.linspace(0.0, supply / 2, len(drawn)), np.maximum(drawn - drawn[0], 1e-15)
    return tuple((float(np.interp(np.log(ampere), np.log(more), volts)), ampere) for ampere in _SWITCHED)


def _candidate(technology: Technology) -> float:
    """Measure the voltage of a cell's candidate node at a current of 1 nA, V."""
    lines = [_volt("d", _V0, _AT * technology.supply), f"rlatch {_LATCH} 0 1e15"]
    return float(np.real(_simulate(technology, lines, "op")["cand"][0]))


def _edge(technology: Technology, lines: list[str], source: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Measure the current through a voltage source while the clocks turn, A, at _STEPS equal steps of the clock's edge.
    lines: of the deck, with the source; source: its name."""
    supply = technology.supply
    clocks = [_volt("edge", "clkb", 0.0), f"vtop top 0 dc {format_number(supply)}", "eclk clk 0 top clkb 1"]
    sweep = f"dc vedge 0 {format_number(supply)} {format_number(supply / _STEPS)}"
    (found,) = analyse(_circuit(technology, _ONE, 0.0, None), technology, [*clocks, *lines], [sweep])
    return np.abs(found[f"v{source}#branch"])


def _slew(technology: Technology) -> float:
    """Return the slope of the clock edges in frames of the default length, V/s."""
    timing = Timing()
    return technology.supply / (timing.clock_edge * timing.t_step)


def _joins(technology: Technology, latch: float) -> float:
    """Find the point of the clock's edge, 0 to 1, at which the decision gate begins to charge an empty latch.

    From this point the gate could charge the latch as fast as the gate's own voltage rises. latch: capacitance, F.
    """
    lines = [_volt("d", _V0, _AT * technology.supply), _volt("l", _LATCH, 0.0)]
    enough = _edge(technology, lines, "l") > latch * _slew(technology)
    return float(np.argmax(enough)) / _STEPS


def _freezes(technology: Technology, candidate: float, slope: float) -> float:
    """Find the point of the clock's edge, 0 to 1, at which the hold node stops following the candidate.
    The rate at which the sample gate charges the hold capacitor, g / C, is then below the rate d ln g / dt at which its
    conductance g falls."""
    lines = [
        _volt("c", "cand", candidate + _APART),
        _volt("h", _HOLD, candidate),
        _volt("d", _V0, _AT * technology.supply),
    ]
    conductance = _edge(technology, lines, "h") / _APART
    enough = technology.hold_capacitance * _slew(technology) / (slope * technology.thermal_voltage)
    return float(np.argmax(conductance < enough)) / _STEPS


def _pedestal(technology: Technology, kick: float) -> float:
    """Measure the step of the hold node, V, when the clocks turn in a frame that leaves the cell off.

    kick: share of the decision node's step that couples to the hold node; it is subtracted.
    """
    timing = Timing()
    candidates = np.full(2, _EXCESS * _ONE)
    bench = clocked_bench(technology, _UNITS, (_ONE, 0.3 * _ONE, _ONE), candidates, timing)
    found = simulator_named(NGSPICE).run(replace(bench, probes=(Voltage(_HOLD), Voltage(_V0))), 600.0)
    if isinstance(found, Failure):
        raise SimulationError(f"{bench.circuit.title}: {found}")
    close = timing.closes(2)[0]
    moments = timing.moments(2, close, close + DECIDE / 2)[-2:]
    hold, node = (np.interp(moments, found.time, found.voltage(net)) for net in (_HOLD, _V0))
    return float(np.diff(hold)[0] - kick * np.diff(node)[0])
