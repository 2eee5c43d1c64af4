"""The thermometer register: levels right on transistors, how long they hold, chips that vary, a trained task.

    python benchmarks/bench_register.py levels [technology] [engine] [samples] [frames]
    python benchmarks/bench_register.py hold [technology] [engine] [samples] [frames]
    python benchmarks/bench_register.py yield [technology] [levels]
    python benchmarks/bench_register.py task MODEL [technology] [samples]

levels: two registers of K = 8, random values, two frames of three write; hold: the first frame alone does, and inputs
that write nothing go on. yield: chips of one register that store each of the K + 1 levels right with both signs, by the
behavioral model, from a converter of as many levels. task: mean absolute error of a trained regression in software and
in the batched engine. What docs/explanation/alpha-cmru.md has.
"""

import sys
import time

import numpy as np
from smoke import shrink

from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.evaluate import evaluate
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.chip import deviations_of
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.exchange.checkpoint import load_network
from cosim.network.ir.states import software_states
from cosim.network.layers import SignedLayer
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.results.intervals import interval
from cosim.tasks.load import load_task
from cosim.tasks.testset import TestSet
from cosim.technology.catalog import load_technology
from cosim.technology.scale import units_for
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.calibrate.find import find_calibration

LEVELS, CHIPS, SEED = 8, 400, 1
AREAS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)


def registers(width, levels=LEVELS, inputs=16):
    """Units that store +v where w is 1, -v where it is 0, nothing where it is 1/2; v = 2 x - 1, then others."""
    alpha, weight_alpha = np.array([-1.0, 0.625]), np.array([[2.0, 0.0], [-1.5, 0.25]])
    weight, bias, beta = np.array([[0.0, 2.0]] * width), -np.ones(width), np.full(width, 0.5)
    layer = SignedLayer(
        "layer0", ("input",), weight, bias, beta, alpha[:width], weight_alpha=weight_alpha[:width], levels=levels
    )
    readout = Readout(("layer0",), np.eye(width), np.zeros(width), "last")
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=inputs)
    return check_network(Network(encoding, (layer,), readout, weight_grid=1 / 8))


def compiled(network, name):
    technology = load_technology(name)
    return compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))


def simulated(design, x, engine):
    n, frames = x.shape[:2]
    test_set = TestSet(x, np.zeros(n, dtype=np.int64), np.full(n, frames), np.arange(n))
    outcomes = simulate_samples(design, test_set, Run(engine=engine))
    failed = [outcome for outcome in outcomes if not isinstance(outcome, Inference)]
    if failed:
        sys.exit(f"{len(failed)} failed: {failed[0]}")
    return outcomes


def levels(once, name="generic180", engine="batch", samples="16", frames="60"):
    rng, shape = np.random.default_rng(SEED), (int(samples), int(frames))
    x = np.stack([rng.integers(0, 17, shape) / 16, rng.integers(0, 3, shape) / 2], axis=2)
    if once:
        x[:, 0, 1], x[:, 1:, 1] = rng.integers(0, 2, shape[0]), 0.5
    design, begin = compiled(registers(2), name), time.monotonic()
    outcomes, reference = simulated(design, x, engine), run_reference(design.network, x)
    states, wanted = np.stack([one.states for one in outcomes]), software_states(design.graph, reference)
    readout = np.stack([one.readout for one in outcomes]) / design.i_unit
    model = sum(behavioral_power(design, run_behavioral(design, x)).values()).mean()
    print(
        f"{name}, {engine}: {(states != wanted).sum()} of {states.size} levels wrong; readout rms error "
        f"{np.sqrt(np.mean((readout - reference.readout) ** 2)):.4f}; {design.assembly.transistors} transistors, "
        f"{1e9 * np.mean([one.power_w for one in outcomes]):.1f} nW, behavioral {1e9 * model:.1f} nW; "
        f"{time.monotonic() - begin:.0f} s"
    )


def chips(name="generic180", number="8"):
    count = int(number)
    design = compiled(registers(1, count, count), name)
    x = np.array([[[k / count, w] for k in range(count + 1) for w in (1.0, 0.0)]])
    encoded = encode_inputs(design.network.encoding, x)
    wanted = software_states(design.graph, run_reference(design.network, x))[:, :, 0]
    for area in AREAS:
        plan, right, wrong = VariationPlan("local", SEED, CHIPS, area=area), 0, 0
        devices = varying_devices(design.assembly.circuit, design.technology, plan)
        for one in range(CHIPS):
            chip = draw_chip(devices, design.technology, plan, one)
            deviations = deviations_of(design, design.nominal, chip)
            states = evaluate(design.graph, design.calibration, encoded, deviations).states["layer0.0"]
            right += bool((states == wanted).all())
            wrong += int((states != wanted).sum())
        found = [f"{100 * value:.1f}" for value in interval(right, CHIPS)]
        print(f"{name}, {count} levels, area {area:g}: {found[0]} % of chips ({found[1]} to {found[2]}), "
              f"{100 * wrong / CHIPS / wanted.size:.2f} % of levels wrong")  # fmt: skip


def task(model, name="generic180", samples="16"):
    network = load_network(model)
    found, design = load_task(network.task, None), compiled(network, name)
    x, y = found.x_test[: int(samples)], found.y_test[: int(samples)]
    software = run_reference(network, x)
    whole = np.abs(run_reference(network, found.x_test).scores - found.y_test).mean()
    outcomes = simulated(design, np.asarray(x, dtype=np.float64), "batch")
    states = np.stack([one.states for one in outcomes])
    wrong = (states != software_states(design.graph, software)).sum()
    scores = np.stack([one.readout[-1] for one in outcomes]) / design.i_unit
    print(
        f"{model}, {name}: mean absolute error {whole:.4f} in software ({len(found.y_test)} samples), of {samples} "
        f"samples {np.abs(software.scores - y).mean():.4f}, on transistors {np.abs(scores - y).mean():.4f}; {wrong} of "
        f"{states.size} levels wrong; {design.assembly.transistors} transistors, "
        f"{1e9 * np.mean([one.power_w for one in outcomes]):.1f} nW"
    )


def main() -> None:
    match sys.argv[1:]:
        case ["levels" | "hold" as what, *options] if len(options) < 5:
            levels(what == "hold", *options)
        case ["yield", *options] if len(options) < 3:
            chips(*options)
        case ["task", model, *options] if len(options) < 3:
            task(model, *options)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    shrink(globals(), "levels", "generic180", "batch", "1", "4")
    main()
