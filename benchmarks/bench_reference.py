"""The current reference in each condition: what one output gives, and what its supply takes.

python benchmarks/bench_reference.py [technology]      generic180
"""

import sys

from smoke import shrink

from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import at
from cosim.verbs.bias import measure_reference


def main() -> None:
    technology = load_technology((sys.argv[1:] or [DEFAULT_TECHNOLOGY])[0])
    nominal, supply = measure_reference(technology)
    print(f"{technology.name}: {1e9 * nominal:.2f} nA, {1e9 * supply:.1f} nA from the supply")
    conditions = {
        "0 C": at(technology, celsius=0.0),
        "60 C": at(technology, celsius=60.0),
        "95 % supply": at(technology, supply=0.95 * technology.supply),
        "105 % supply": at(technology, supply=1.05 * technology.supply),
        "ss": at(technology, "ss"),
        "ff": at(technology, "ff"),
    }
    for name, there in conditions.items():
        current, _ = measure_reference(there)
        print(f"{name:12s} {100 * (current / nominal - 1):+.1f} %")


if __name__ == "__main__":
    shrink(globals())
    main()
