"""The current reference in each condition: what one output gives, and what its supply takes.

python benchmarks/bench_reference.py [technology]      generic180
"""

import sys

from cosim.analysis.bias import measure_reference
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import at

CHANGES = {
    "0 C": {"celsius": 0.0},
    "60 C": {"celsius": 60.0},
    "95 % supply": {"supply": 0.95},
    "105 % supply": {"supply": 1.05},
    "ss": {"corner": "ss"},
    "ff": {"corner": "ff"},
}


def main() -> None:
    technology = load_technology((sys.argv[1:] or [DEFAULT_TECHNOLOGY])[0])
    nominal, supply = measure_reference(technology)
    print(f"{technology.name}: {1e9 * nominal:.2f} nA, {1e9 * supply:.1f} nA from the supply")
    for name, change in CHANGES.items():
        if "supply" in change:
            change = {"supply": round(change["supply"] * technology.supply, 6)}
        current, _ = measure_reference(at(technology, **change))
        print(f"{name:12s} {100 * (current / nominal - 1):+.1f} %")


if __name__ == "__main__":
    main()
