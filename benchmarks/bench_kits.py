"""Start-up of a technology, seconds: first simulation in a new process, and each further one in the same process.

    PDK_ROOT=... python benchmarks/bench_kits.py

first: import cosim, read the library, extract the cards, load ngspice, simulate one mirror. library: of that, reading
and extracting. further: the same deck again, whole; cards: what the deck's model cards add to it, as the difference to
the deck with the cards of generic180.
"""

import subprocess
import sys
from statistics import median
from time import perf_counter

from smoke import shrink

from cosim.base.errors import CosimError
from cosim.technology.catalog import load_technology, technology_names

REPEATS = 7
ONE = """
from time import perf_counter
begin = perf_counter()
from cosim.cells.benches import mirror_bench
from cosim.engines.ngspice.process import run_bench
from cosim.technology.catalog import load_technology
technology = load_technology({name!r})
start = perf_counter()
bench = mirror_bench(technology, 8, 1.0, 1e-9, 0.5)
library = perf_counter() - start
waves = run_bench(bench)
assert abs(waves.through("p")[-1]) > 0.9e-9
first = perf_counter() - begin
times = []
for _ in range(50):
    start = perf_counter()
    run_bench(mirror_bench(technology, 8, 1.0, 1e-9, 0.5))
    times.append(perf_counter() - start)
print(first, library, sorted(times)[25])
"""


def main() -> None:
    begin = perf_counter()
    further: dict[str, float] = {}
    for name in technology_names():
        try:
            load_technology(name)
        except CosimError as error:
            print(f"{name}: {error}")
            continue
        runs = [
            tuple(map(float, subprocess.check_output([sys.executable, "-c", ONE.format(name=name)], text=True).split()))
            for _ in range(REPEATS)
        ]
        first, library, again = (median(column) for column in zip(*runs, strict=True))
        further[name] = again
        added = 1e3 * (again - further["generic180"])
        start = f"first {first:.2f} s, library {library:.3f} s"
        print(f"{name:12} {start}, further {1e3 * again:.1f} ms, cards {added:.1f} ms")
    print(f"{REPEATS} processes each, {perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    shrink(globals(), REPEATS=1, technology_names=lambda: ("generic180",))
    main()
