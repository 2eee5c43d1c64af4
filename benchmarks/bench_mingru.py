"""The minGRU's tau-cell: transistors against the behavioral model, retention, and a hybrid beside BMRU units.

python benchmarks/bench_mingru.py follow [technology] [t_step] [top]   50 frames, a from 0.02 to 4, 3 seeds
python benchmarks/bench_mingru.py hold [technology]                 drift of a state of 1 nA at z = 0
python benchmarks/bench_mingru.py hybrid FILE.npz [seed]            4 minGRU + 4 BMRU on digits, for cosim compare
"""

import sys

import numpy as np
from smoke import shrink

from cosim.cells.benches import STATE_DIODE, TauDrive, tau_cell_bench
from cosim.cells.tau_cell import gate_charge
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.simulation.inference import run_bench
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, MinGruLayer
from cosim.network.reference import run_reference
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.tasks.images import load_digits_task
from cosim.technology.catalog import load_technology
from cosim.units.mingru import GATED_SHARE, tau_cell_fit
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.native import LATE_PULSE

CELLS, CANDIDATES, GATES, FRAMES = 4, 3, 2, 50


def follow(name: str = "generic180", t_step: str = "10e-3", top: str = "") -> None:
    """Largest and mean-square difference of states in nA, in the first frame and after it; top: of ratio gates."""
    technology, timing = load_technology(name), Timing(float(t_step))
    calibration = find_calibration(technology, 8, print)
    tops = np.full(CELLS, float(top)) if top else None
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weight, gate = np.zeros((2, CELLS, CANDIDATES + GATES))
        weight[:, :CANDIDATES] = rng.integers(0, 3, (CELLS, CANDIDATES)) / 8
        weight[np.arange(CELLS), rng.integers(0, CANDIDATES, CELLS)] += 0.5
        gate[np.arange(CELLS), CANDIDATES + np.arange(CELLS) % GATES] = 4.0
        layer = MinGruLayer("fading", ("input",), weight, np.zeros(CELLS), gate, np.zeros(CELLS), tops)
        encoding = InputEncoding(np.zeros(CANDIDATES + GATES), np.ones(CANDIDATES + GATES))
        network = check_network(Network(encoding, (layer,), Readout(("fading",), np.eye(2, CELLS), np.zeros(2))))
        design = compile_network(network, technology, calibration, CompilerSettings(t_step=timing.t_step))
        x = rng.uniform(0, 1, (1, FRAMES, CANDIDATES + GATES))
        x[:, :, CANDIDATES:] = 0.00505 * (0.98 / 0.00505) ** x[:, :, CANDIDATES:]
        trace, moments = run_behavioral(design, x), timing.sample_times(FRAMES)
        waves = run_bench(inference_bench(design, x[0], timing), "minGRU")
        errors = []
        for node in design.graph.memories:
            shown = design.assembly.decisions[node.name]
            current = np.interp(moments, waves.time, np.abs(waves.drain(shown.device)))
            errors.append((current - shown.rest) / design.i_unit - node.step * trace.states[node.name][0])
        error = np.abs(errors)
        rms = np.sqrt(np.mean(np.square(error)))
        largest = max(float(trace.currents[node.name].max()) for node in design.graph.memories) * 1e9
        print(
            f"{technology.name} {1e3 * timing.t_step:g} ms seed {seed}: first frame {error[:, 0].max():.4f} nA, after "
            f"it {error[:, 1:].max():.4f}, rms {rms:.4f}, largest state {largest:.2f}"
        )


def hold(name: str = "generic180") -> None:
    """Relative change a frame of a state of 1 nA with its gate shut, by the candidate that stands in front of it."""
    technology = load_technology(name)
    calibration = find_calibration(technology, 8, print)
    fit, frames = tau_cell_fit(calibration), 20
    charge = gate_charge(1e-9, 8, GATED_SHARE * Timing().t_step)
    print(f"{name}: C {1e12 * charge / fit.swing:.2f} pF, leak {fit.leak:.2e} A, tau_max {charge / fit.leak:.3g} s")
    rest = np.full(frames, 1.0)
    swings = np.where(np.arange(frames) % 2, 2.0, 0.0)
    for what, drives in [(f"{level:g} nA", level * rest) for level in (0.0, 0.05, 0.2, 1.0, 4.0)] + [("0, 2", swings)]:
        candidates = 1e-9 * np.concatenate([[1.0, 1.0], drives])
        gates = np.concatenate([[8e-9, 8e-9], np.zeros(frames)])
        drive = TauDrive(charge / fit.swing, fit.trim, candidates, gates, LATE_PULSE)
        waves = run_bench(tau_cell_bench(technology, 8, drive), "tau-cell")
        state = np.interp(Timing().sample_times(len(gates)), waves.time, np.abs(waves.drain(STATE_DIODE)))
        steps = 100 * np.diff(np.log(state[1:]))
        print(f"  candidate {what}: {steps[0]:+.2f} % in the first frame, then {steps[1:].mean():+.3f} % a frame")


def hybrid(path: str, seed: str = "0") -> None:
    """Random recurrent layers in parallel on the digits task, a ridge regression behind them; on the mirror grid."""
    rng, task, ones = np.random.default_rng(int(seed)), load_digits_task(), np.ones(CELLS)

    def rows(spread: float) -> np.ndarray:
        return np.rint(8 * rng.normal(0, spread, (CELLS, 9))) / 8

    encoding = InputEncoding(np.asarray(task.offset, float), np.asarray(task.scale, float), ramp_steps=8, levels=16)
    fading = MinGruLayer("fading", ("input",), rows(0.5), 0.25 * ones, rows(0.6), 0.5 * ones)
    held = FirstQuadrantLayer("held", ("input",), rows(0.5), 0.5 * ones, 0.25 * ones, 0.75 * ones, ones)

    def network(weight: np.ndarray, bias: np.ndarray) -> Network:
        readout = Readout(("fading", "held"), weight, bias)
        return check_network(Network(encoding, (fading, held), readout, "digits", task.labels, 1 / 8))

    trace = run_reference(network(np.zeros((10, 8)), np.zeros(10)), np.asarray(task.x_train, float))
    states = np.concatenate([trace.signals["fading"], trace.signals["held"]], axis=2).mean(axis=1)
    features = np.concatenate([states, np.ones((len(states), 1))], axis=1)
    wanted = np.eye(10)[np.asarray(task.y_train)] - 0.1
    weights = np.linalg.solve(features.T @ features + 0.1 * np.eye(9), features.T @ wanted)
    weights = np.rint(8 * weights * 3 / np.abs(weights).max()) / 8
    save_checkpoint(path, network(weights[:8].T, weights[8]))


if __name__ == "__main__":
    shrink(globals(), "follow", FRAMES=3)
    {"follow": follow, "hold": hold, "hybrid": hybrid}[sys.argv[1]](*sys.argv[2:])
