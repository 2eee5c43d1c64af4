"""Many ngspice chips in a row: memory of the workers, what is left behind.

One frame of one digit a chip, digits_d4. python benchmarks/bench_chips.py [chips]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import TestSet, load_test_set
from cosim.technology.catalog import load_technology
from cosim.variation.draws import VariationPlan
from cosim.verbs.loading import compile_for
from cosim.verbs.montecarlo.execute import run_local
from cosim.verbs.montecarlo.trial import Trial

WARM_UP = 100  # chips


def workers() -> dict[int, float]:
    """Resident MiB of the child processes that run chips."""
    text = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "pid=,rss=,args="], capture_output=True, text=True)
    rows = (line.split(None, 2) for line in text.stdout.splitlines() if "cosim.engines.simulation.workers" in line)
    return {int(pid): int(rss) / 1024 for pid, rss, _ in rows}


def main() -> None:
    chips = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    network = load_network(trained_network_path("digits_d4"))
    design = compile_for(network, "digits_d4", load_technology("generic180"))
    whole = load_test_set(network, None).take(1, 0)
    frame = TestSet(whole.x[:, :1], whole.y, np.ones(1, dtype=np.int64), whole.indices)
    trial = Trial(design, frame, VariationPlan("local", 0, chips), "ngspice")
    before = set(Path(tempfile.gettempdir()).iterdir()) | set(Path.cwd().iterdir())
    begin, first, last, failed = time.perf_counter(), {}, {}, 0
    for done, record in enumerate(run_local(trial, range(chips), 2, 600.0), start=1):
        failed += record.status != "ok"
        if done == WARM_UP:
            first = workers()
        if done % 100 == 0:
            last = workers()
            print(
                f"{done} chips: {', '.join(f'{size:.1f} MiB' for size in last.values())}", file=sys.stderr, flush=True
            )
    seconds = time.perf_counter() - begin
    print(f"{chips} chips of {design.assembly.transistors} transistors in {seconds:.0f} s, {failed} failed")
    for pid in first:
        print(f"a worker: {first[pid]:.1f} MiB after {WARM_UP} chips, {last.get(pid, float('nan')):.1f} MiB at the end")
    left = (set(Path(tempfile.gettempdir()).iterdir()) | set(Path.cwd().iterdir())) - before
    print(f"processes left: {len(workers())}; files left: {sorted(map(str, left)) or 'none'}")


if __name__ == "__main__":
    shrink(globals(), "2", WARM_UP=1)
    main()
