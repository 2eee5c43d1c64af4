"""Late sources on transistors: rows that read a state a frame late, and shift cells."""

import numpy as np
import pytest

from cosim.checkpoint.file import load_network
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.resources import trained_network_path
from cosim.simulation.simulated import engine_named
from cosim.tasks.flip_flop import generate_flip_flop_task
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
    design = compile_network(late.register(8), technology, calibration)
    bits = de_bruijn(8)
    whole = np.concatenate([bits, bits])[: 256 + 7]
    x = np.stack([whole[32 * k : 32 * k + 39] for k in range(8)])[:, :, None].astype(float)
    seen = {tuple(row[t : t + 8, 0]) for row in x for t in range(32)}
    assert len(seen) == 256
    assert wrong_states(design, x, Run(jobs=0, engine="batch", timing=Timing(t_step=t_step))) == (0, 8 * 39 * 8)


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
