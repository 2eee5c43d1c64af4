"""The decision node of a clocked 9T cell, measured once: small signals, currents of M6, and the clock's edge.

Small signals are measured while the cell tracks and while it decides; of M6 the two latch voltages at which its current
exceeds that at 0 V by 3 and by 300 pA. Of the clock's edge, the points at which gates turn, and the step of the hold
node by the sample gate.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.benches import bias_lines, clocked_bench, supply_of
from cosim.cells.bias import bias_diode
from cosim.cells.clocked import CLOCKED, LATCH_NODE, clocked_schmitt
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import DECISION_NODE
from cosim.circuit.bench import SMALL_SIGNAL, Analysis, Bench, Current, Dc, Op, Probe, SmallSignalBench, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Resistor, Source
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.engines.engine import SmallSignals
from cosim.engines.simulation.inference import compute_small_signals, run_bench
from cosim.technology.noise import DECISION_CURRENTS, DecisionNode
from cosim.technology.types import Technology

_V0, _LATCH, _HOLD, _LOOP = (f"xcell.{net}" for net in (DECISION_NODE, LATCH_NODE, "hold", "fb"))
_TEST = Current("test")
_OHM = 1e6
Array = NDArray[np.float64]
_AT = 0.25  # of V_DD, about where the decision node stands at a threshold
_UNITS = 8  # of the output diode, which hangs on none of these nets
_ONE, _LARGE = 1e-9, 1e-7  # A; of the threshold, and a width that does not limit M6
_SLOW, _DECIDING, _FAST = 10.0, 3e3, 1e5  # Hz: below the poles of the nets in question at 1 nA, between, above
_BELOW = 0.4  # V, under the supply, of the feedback's line where it conducts
_SWITCHED = (3e-12, 3e-10)  # A, of M6
_STEPS, _APART = 200, 1e-3  # of the sweep of a clock's edge; V across the sample gate
_EXCESS = 0.9  # of the threshold: a candidate that leaves the cell off


def measure_decision(technology: Technology, slope: float) -> DecisionNode:
    """Measure the decision node of a technology's clocked cell; slope: I / (g_m U_T) of the cell's transistor M1.

    Raises SimulationError where the technology's reference simulator fails, MissingToolError if it is missing.
    """
    found = [_small(technology, current, high=True) for current in DECISION_CURRENTS]
    at_one = DECISION_CURRENTS.index(_ONE)
    tracking, frozen = found[at_one], _small(technology, _ONE, high=False)
    joined = _farad(frozen, _DECIDING)
    kick = float(frozen.response[Voltage(_HOLD)][0].real)
    farad = _farad(tracking, _SLOW)
    return DecisionNode(
        outputs=tuple(
            float(-one.response[_TEST][0].real) / current for one, current in zip(found, DECISION_CURRENTS, strict=True)
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


def _circuit(technology: Technology, current: float, width: float, more: tuple[Element, ...]) -> Circuit:
    """Return a clocked cell with its candidate, its bias lines and its supply.

    more: elements at its clocks and its inner nets.
    """
    pins = {"thresh": current, "width": width, "gain": current}
    elements = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *bias_lines(pins),
        Source("resetb", "v", "resetb", GROUND, technology.supply),
        Instance("cell", ("cand", *pins, "out", "clk", "clkb", "resetb", "vdd"), CLOCKED),
    )
    blocks = candidate_diode(technology), bias_diode(technology), clocked_schmitt(technology, _UNITS)
    flat = Circuit("decision node", blocks, elements).flat()
    return replace(flat, elements=(*flat.elements, *more))


def _volt(name: str, net: str, volt: float) -> Source:
    return Source(name, "v", net, GROUND, volt)


def _clocks(technology: Technology, *, high: bool) -> tuple[Source, Source]:
    """Return the sources of constant clocks; high: whether clk is high."""
    supply = technology.supply
    return _volt("clk", "clk", supply if high else 0.0), _volt("clkb", "clkb", 0.0 if high else supply)


def _small(technology: Technology, current: float, *, high: bool) -> SmallSignals:
    """Compute the small signals of a cell that 1 V ac drives at its decision node; high: whether clk is high.

    With clk high the latch is floating; with clk low the hold node is floating.
    """
    hertz = _SLOW * current / _ONE if high else _DECIDING
    floats = Resistor("latch", _LATCH, GROUND, 1e15) if high else Resistor("hold", _HOLD, "cand", 1e12)
    more = (floats, *_clocks(technology, high=high))
    return _signals(technology, current, more, _volt("test", _V0, _AT * technology.supply), hertz)


def _signals(
    technology: Technology, current: float, more: tuple[Element, ...], drive: Source, hertz: float
) -> SmallSignals:
    """Compute small signals of a cell at one frequency; more: elements beside it."""
    circuit = _circuit(technology, current, 0.0, more)
    return compute_small_signals(SmallSignalBench(circuit, technology, drive, (hertz,)))


def _farad(found: SmallSignals, hertz: float) -> float:
    return float(-found.response[_TEST][0].imag) / (2 * np.pi * hertz)


def _loop(technology: Technology) -> float:
    """Measure the capacitance of a cell's feedback line while the line conducts, F."""
    supply = technology.supply
    more = (*_clocks(technology, high=True), _volt("l", _LATCH, 0.0), _volt("d", _V0, _AT * supply))
    return _farad(_signals(technology, _ONE, more, _volt("test", _LOOP, supply - _BELOW), _FAST), _FAST)


def _run(
    technology: Technology, more: tuple[Element, ...], analysis: Analysis, probe: Probe, width: float = 0.0
) -> Array:
    """Simulate a clocked cell; return the values of a probe. more: elements beside it; width: bias of the width, A."""
    circuit = _circuit(technology, _ONE, width, more)
    found = run_bench(Bench(circuit, technology, analysis, (probe,), SMALL_SIGNAL), circuit.title)
    return found.probes[probe]


def _switched(technology: Technology) -> tuple[tuple[float, float], ...]:
    """Measure the latch voltages at which M6 carries more current than with a latch at 0 V; return ((V, A), ...).

    The extra currents are those of _SWITCHED. The bias current of the width is so large that it does not limit M6.
    """
    supply = technology.supply
    more = _volt("l", _LATCH, 0.0), _volt("test", _LOOP, supply - _BELOW), _volt("d", _V0, _AT * supply)
    sweep = Dc("v", "l", 0.0, supply / 2, supply / 2 / _STEPS)
    drawn = -_run(technology, (*more, *_clocks(technology, high=True)), sweep, _TEST, _LARGE)
    volts, extra = np.linspace(0.0, supply / 2, len(drawn)), np.maximum(drawn - drawn[0], 1e-15)
    return tuple((float(np.interp(np.log(ampere), np.log(extra), volts)), ampere) for ampere in _SWITCHED)


def _candidate(technology: Technology) -> float:
    """Measure the voltage of a cell's candidate node at a current of 1 nA, V."""
    more = (_volt("d", _V0, _AT * technology.supply), Resistor("latch", _LATCH, GROUND, 1e15))
    return float(_run(technology, (*more, *_clocks(technology, high=True)), Op(), Voltage("cand"))[0])


def _edge(technology: Technology, more: tuple[Element, ...], source: str) -> Array:
    """Sweep the voltages of both clocks from one level to the other; return the current through a voltage source, A.

    The sweep has _STEPS equal steps. more: elements beside the cell, with the source; source: its name. One current
    makes both clocks' voltages, in a resistor to ground and in one to the supply, so that they turn together.
    """
    full = technology.supply / _OHM
    clocks = (
        Source("edge", "i", "clk", "clkb", 0.0),
        Resistor("clk", "vdd", "clk", _OHM),
        Resistor("clkb", "clkb", GROUND, _OHM),
    )
    return np.abs(_run(technology, (*clocks, *more), Dc("i", "edge", 0.0, full, full / _STEPS), Current(source)))


def _slew(technology: Technology) -> float:
    """Return the slope of the clock edges in frames of the default length, V/s."""
    timing = Timing()
    return technology.supply / (timing.clock_edge * timing.t_step)


def _joins(technology: Technology, latch: float) -> float:
    """Find the point of the clock's edge, 0 to 1, at which the decision gate begins to charge an empty latch.

    From this point the gate could charge the latch as fast as the gate's own voltage rises. latch: capacitance, F.
    """
    more = _volt("d", _V0, _AT * technology.supply), _volt("l", _LATCH, 0.0)
    enough = _edge(technology, more, "l") > latch * _slew(technology)
    return float(np.argmax(enough)) / _STEPS


def _freezes(technology: Technology, candidate: float, slope: float) -> float:
    """Find the point of the clock's edge, 0 to 1, at which the hold node stops following the candidate.
    The rate at which the sample gate charges the hold capacitor, g / C, is then below the rate d ln g / dt at which its
    conductance g falls."""
    more = (
        _volt("c", "cand", candidate + _APART),
        _volt("h", _HOLD, candidate),
        _volt("d", _V0, _AT * technology.supply),
    )
    conductance = _edge(technology, more, "h") / _APART
    least = technology.hold_capacitance * _slew(technology) / (slope * technology.thermal_voltage)
    return float(np.argmax(conductance < least)) / _STEPS


def _pedestal(technology: Technology, kick: float) -> float:
    """Measure the step of the hold node, V, when the clocks turn in a frame that leaves the cell off.

    kick: share of the decision node's step that couples to the hold node; it is subtracted.
    """
    timing = Timing()
    candidates = np.full(2, _EXCESS * _ONE)
    bench = clocked_bench(technology, _UNITS, (_ONE, 0.3 * _ONE, _ONE), candidates, timing)
    found = run_bench(replace(bench, probes=(Voltage(_HOLD), Voltage(_V0))), bench.circuit.title)
    close = timing.closes(2)[0]
    moments = timing.moments(2, close, close + DECIDE / 2)[-2:]
    hold, node = (np.interp(moments, found.time, found.voltage(net)) for net in (_HOLD, _V0))
    return float(np.diff(hold)[0] - kick * np.diff(node)[0])
