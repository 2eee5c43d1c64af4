"""What noise of a given size on every candidate changes, on a whole test set, against the circuit without noise.

    python benchmarks/bench_noise_shares.py [TECHNOLOGY] [NETWORK...]

Rows of 4, 8 and 11 pA on every candidate, and of the noise that the devices make; 10 runs each, 95 % intervals.
"""

import sys
from dataclasses import replace

from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.noise import study_noise


def shown(found, *, rest=False):
    """A share in percent, or what it leaves of 100."""
    values = [100 * value for value in (found.mean, found.low, found.high)]
    mean, low, high = [100 - values[k] for k in (0, 2, 1)] if rest else values
    return f"{mean:6.2f} [{low:6.2f}, {high:6.2f}]"


def main():
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    noise = NoiseSimulation(find_noise(technology))
    for name in sys.argv[2:] or ("digits_d8", "digits_d16"):
        network = load_network(trained_network_path(name))
        design = compile_network(network, technology, find_calibration(technology, 8))
        test = load_test_set(network, None)
        for flat in (4e-12, 8e-12, 11e-12, 0.0):
            found = study_noise(design, test, replace(noise, flat=flat), Run())
            sigma = f"{1e12 * flat:g} pA" if flat else "devices"
            low, middle, high = (f"{1e12 * found.sigma_a[q]:.3g}" for q in ("5", "50", "95"))
            print(f"{name:12} {sigma:8} states {shown(found.states, rest=True)}", end=" ")
            print(f"decisions {shown(found.answers, rest=True)}", end=" ")
            print(
                f"accuracy {shown(found.accuracy)} quiet {100 * found.quiet:.2f}; change {shown(found.change)}", end=" "
            )
            print(f"sigma {low} {middle} {high} pA", end=" ")
            print(f"within {' '.join(f'{100 * share.mean:.2f}' for share in found.within.values())}", flush=True)


if __name__ == "__main__":
    shrink(globals(), "generic180", "digits_d4", load_test_set=few(load_test_set))
    main()
