"""Late sources on transistors: rows that read a state a frame late, shift cells, correlators and rings."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.automata.automaton import modulo
from cosim.automata.lines import AGAIN, dilated_line, position_code, ring
from cosim.automata.network import network_of
from cosim.automata.recall import correlator
from cosim.base.resources import trained_network_path
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.elements import Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.tasks.memory import generate_flip_flop_task
from cosim.tasks.testset import TestSet

pytestmark = pytest.mark.ngspice


def wrong_states(design, x, run):
    """Of all samples, and how many there are."""
    lengths = np.full(len(x), x.shape[1])
    test_set = TestSet(x, np.zeros(len(x), dtype=int), lengths, np.arange(len(x)))
    found = list(engine_named(run.engine).infer(design, test_set, run, lambda *_: None))
    assert not any(one.elsewhere for one in found)
    states = np.stack([one.states for one in found])
    return int((states != software_states(design.graph, run_reference(design.network, x))).sum()), states.size


@pytest.mark.parametrize("t_step", [10e-3, 2e-3])
def test_every_pattern_of_eight_bits_passes_a_register(late, batch, technology, calibration, t_step):
    """A sequence that holds each of the 256 patterns once, cut into eight that overlap by a register's length."""
    design, x = compile_network(late.register(8), technology, calibration), every_pattern()
    assert wrong_states(design, x, Run(jobs=0, engine="batch", timing=Timing(t_step=t_step))) == (0, 8 * 39 * 8)


@pytest.mark.parametrize("pattern", [(1, 0, 1, 1, 0, 0, 1, 0), (1,) * 8])
def test_a_correlator_fires_behind_its_pattern_alone(batch, technology, calibration, pattern):
    """Of all 256; 7 shift cells and the cell that fires, whose row is the sum of 8 bits at most against 7."""
    network, x = correlator(pattern), every_pattern()
    fired = run_reference(network, x).signals["match"][:, 7:]
    assert fired.sum() == 1
    design = compile_network(network, technology, calibration)
    assert wrong_states(design, x, Run(jobs=0, engine="batch")) == (0, 8 * 39 * 8)


def every_pattern():
    """Eight samples of 39 frames, in which each pattern of 8 bits passes once behind the first 7."""
    bits = de_bruijn(8)
    whole = np.concatenate([bits, bits])[: 256 + 7]
    x = np.stack([whole[32 * k : 32 * k + 39] for k in range(8)])[:, :, None].astype(float)
    assert len({tuple(row[t : t + 8, 0]) for row in x for t in range(32)}) == 256
    return x


def de_bruijn(order):
    """2^order bits; every pattern of `order` is in their ring once. Prefer-one: a 1 wherever that pattern is new."""
    bits, seen = [0] * order, {(0,) * order}
    while True:
        for bit in (1, 0):
            pattern = (*bits[-order + 1 :], bit)
            if pattern not in seen:
                seen.add(pattern)
                bits.append(bit)
                break
        else:
            return np.array(bits[: 2**order])


@pytest.mark.parametrize("modulo", [2, 3])
def test_a_counter_counts_on_transistors(late, batch, technology, calibration, modulo):
    """Its states feed back through rows of its own stage: every transition is there, none is wrong."""
    design = compile_network(late.counter(modulo), technology, calibration)
    x = late.bits(modulo, frames=30, n=8)
    assert wrong_states(design, x, Run(jobs=0, engine="batch")) == (0, 8 * 30 * (modulo - 1))


def test_the_trained_flip_flop_keeps_a_bit_on_transistors(batch, technology, calibration):
    """Dense strings and sparse ones, with clock edges of 5 % of a frame.

    The weights on its taps are up to 3.6: a tap that turned while the first layer still reads it would be seen.
    """
    pytest.importorskip("torch")
    design = compile_network(load_network(trained_network_path("flip_flop_d2")), technology, calibration)
    x = generate_flip_flop_task(pairs=6, n_train=0, n_test=8, seed=8).x_test.astype(float)
    cells = len(design.assembly.decisions)
    run = Run(jobs=0, engine="batch", timing=Timing(clock_edge=0.05))
    assert wrong_states(design, x, run) == (0, 8 * (2 * 8 * 6 + 1) * cells)


def test_slow_clock_edges_and_ngspice(late, technology, calibration):
    """No race with edges of 5 % of a frame."""
    design = compile_network(late.counter(2), technology, calibration)
    x = late.bits(5, frames=12, n=1)
    assert wrong_states(design, x, Run(jobs=0, timing=Timing(clock_edge=0.05))) == (0, 12)


def skewed(bench, seconds):
    """The bench with every clkb so much later, or earlier, than its clk."""
    elements = []
    for source in bench.circuit.elements:
        if isinstance(source, Source) and source.name.startswith("clkb"):
            first, *rest = source.value
            source = replace(source, value=(first, *((time + seconds, volts) for time, volts in rest)))
        elements.append(source)
    return replace(bench, circuit=replace(bench.circuit, elements=tuple(elements)))


@pytest.mark.parametrize("share", [-0.03, 0.03])
@pytest.mark.parametrize("make", [lambda late: late.register(16), lambda late: network_of(modulo(5), "sum")])
def test_clocks_whose_phases_overlap(late, batch, technology, calibration, make, share):
    """Edges of 5 % of a frame, and clkb against clk by 3 %, 0.3 ms: dec keeps the edge and 1 % away from either. With
    clkb and clk on its gates a register failed at that skew, and a trained network at edges of 1 %."""
    design, timing = compile_network(make(late), technology, calibration), Timing(clock_edge=0.05)
    x = np.eye(5)[np.random.default_rng(7).integers(0, 5, (3, 30))]
    x = x if len(design.assembly.input_pins) == 5 else x[:, :, :1]
    benches = [skewed(inference_bench(design, one, timing), share * timing.t_step) for one in x]
    wanted = software_states(design.graph, run_reference(design.network, x))
    for waves, states in zip(engine_named("batch").simulator.run_all(benches, 600.0), wanted, strict=True):
        latches = [np.interp(timing.sample_times(30), waves.time, waves.voltage(net)) for net in decisions(design)]
        np.testing.assert_array_equal(np.stack(latches, axis=1) > STATE_LEVEL * technology.supply, states)


def decisions(design):
    return [net for (net,) in design.assembly.decisions.values()]


def test_a_ring_replays_on_transistors(batch, technology, calibration):
    """16 bits for five turns; and a line that moves every fourth frame, its clock divided by toggles."""
    bits = np.random.default_rng(0).integers(0, 2, 16)
    x = np.eye(3)[np.concatenate([bits, np.full(80, AGAIN)])][None]
    design = compile_network(ring(16), technology, calibration)
    assert wrong_states(design, x, Run(jobs=0, engine="batch")) == (0, 96 * 16)
    design = compile_network(dilated_line(4, 2), technology, calibration)
    x = np.random.default_rng(1).integers(0, 2, (4, 40, 2)).astype(float)
    x[:, :, 0] = 1.0
    assert wrong_states(design, x, Run(jobs=0, engine="batch")) == (0, 4 * 40 * 6)


def test_a_position_code_on_transistors(batch, technology, calibration):
    design = compile_network(position_code(5), technology, calibration)
    assert wrong_states(design, np.ones((1, 70, 1)), Run(jobs=0, engine="batch")) == (0, 70 * 5)
