"""Where decisions break first: the digits nearest to another decision, in every corner, temperature and supply.

    python benchmarks/bench_fragile.py [network] [technology] [digits] [store]      digits_d8 generic180 2

A digit is the more fragile, the more of 200 chips decide it otherwise, by the behavioral model with mismatch of AREA
times the drawn devices: about 0.4 % of the states change then. The most fragile of the 100 that
`cosim compare --samples 100` draws are simulated in the 45 conditions of `cosim compare --pvt`; a store keeps what is
finished.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.design import Condition, Design
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import TestSet, load_test_set
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import format_conditions
from cosim.technology.scale import units_for
from cosim.variation.draws import VariationPlan
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.compare.agreement import compare_engines
from cosim.verbs.compare.pvt import pvt_grid
from cosim.verbs.montecarlo.trial import Trial, run_chips

SAMPLES, CHIPS, AREA, SEED = 100, 200, 100.0, 5


def most_fragile(design: Design, test_set: TestSet, count: int) -> NDArray[np.int64]:
    """Places of the samples that most chips decide otherwise than the software."""
    trial = Trial(design, test_set, VariationPlan("local", SEED, CHIPS, area=AREA))
    records = run_chips(trial, tuple(range(CHIPS)))
    decisions = np.array([record.behavioral.decisions for record in records])
    changed = (decisions != trial.software[1]).sum(axis=0)
    chosen = np.argsort(-changed, kind="stable")[:count]
    print("chips that decide otherwise:", dict(zip(chosen.tolist(), changed[chosen].tolist(), strict=True)))
    return chosen


def main() -> None:
    name, process, digits, *store = (*sys.argv[1:], *("digits_d8", DEFAULT_TECHNOLOGY, "2")[len(sys.argv) - 1 :])
    network, technology = load_network(trained_network_path(name)), load_technology(process)
    design = compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))
    drawn = load_test_set(network, None).take(SAMPLES, 0)
    chosen = most_fragile(design, drawn, int(digits))
    fragile = drawn.select(chosen)
    with TemporaryDirectory() as folder:
        for condition in pvt_grid(technology):
            run = Run(Path(store[0] if store else folder), 2, condition=Condition(condition))
            comparison = compare_engines(design, fragile, simulate_samples(design, fragile, run), run)
            assert comparison is not None, "every simulation failed"
            engines = comparison.engines
            wrong = np.flatnonzero(engines["software"].decisions != engines["ngspice"].decisions)
            states = 100 * comparison.state_agreement("software", "ngspice")
            named = ", ".join(str(chosen[k]) for k in wrong) or "none"
            print(f"{format_conditions(condition):28s} states {states:6.2f} %  wrong decisions: {named}", flush=True)


if __name__ == "__main__":
    shrink(
        globals(),
        "digits_d4",
        "generic180",
        "1",
        SAMPLES=2,
        CHIPS=2,
        pvt_grid=lambda technology: [technology],
        load_test_set=few(load_test_set),
    )
    main()
