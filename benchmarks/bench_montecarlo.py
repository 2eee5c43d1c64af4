"""Chips a minute of the behavioral engine, whole test set, with 1, 2 and 4 workers; the records must be the same.

python benchmarks/bench_montecarlo.py [network] [chips]
"""

import sys
import time

from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.variation.draws import VariationPlan
from cosim.verbs.loading import compile_for
from cosim.verbs.montecarlo.execute import run_local
from cosim.verbs.montecarlo.trial import Trial, run_chips

REPEATS, JOBS = 50, (1, 2, 4)


def main() -> None:
    name, chips = [*sys.argv[1:], *("digits_d8", "1000")[len(sys.argv) - 1 :]][:2]
    network = load_network(trained_network_path(name))
    design = compile_for(network, name, load_technology("generic180"))
    trial = Trial(design, load_test_set(network, None), VariationPlan("local", 0, int(chips)))
    run_chips(trial, (0,))
    begin = time.process_time()
    run_chips(trial, tuple(range(REPEATS)))
    print(f"{name}: {len(trial.test_set.y)} samples, {len(trial.devices)} transistors; one chip takes "
          f"{(time.process_time() - begin) / REPEATS * 1e3:.1f} ms of a core")  # fmt: skip
    first = None
    for jobs in JOBS:
        begin, busy = time.perf_counter(), 0.0
        records = []
        for record in run_local(trial, range(trial.plan.chips), jobs, 600.0):
            busy = busy or time.perf_counter()  # workers have started
            records.append(record)
        records.sort(key=lambda record: record.chip)
        first = first or records
        taken, running = time.perf_counter() - begin, time.perf_counter() - busy
        print(
            f"{jobs} workers: {taken:6.1f} s in all, {running:6.1f} s after the first chip, "
            f"{60 * len(records) / taken:7.0f} chips a minute; {'same' if records == first else 'OTHER'} records"
        )


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "4", REPEATS=2, JOBS=(1,), load_test_set=few(load_test_set))
    main()
