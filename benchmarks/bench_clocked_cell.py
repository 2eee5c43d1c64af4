"""Measure what a clocked 9T cell keeps of its candidate, and the voltages of its branches.

    python benchmarks/bench_clocked_cell.py [technology]

One cell of I_thresh = I_gain = 1 nA and I_width = 0.3 nA, in the typical corner, at 27, 85 and 125 C:

    step      what the held candidate differs by from the tracked one, once the clock has fallen: charge of the gates,
              and the kick of the decision node through M1
    droop     how fast the held candidate changes afterwards, and the current onto the hold node that does this
    branches  the voltage across the devices of each branch in state 1, at the end of the decision

The hold node's voltage is turned into a share of the candidate by its own slope: it is read at a second candidate, 2 %
above the first one, as well.
"""

import sys
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.cells.benches import CLOSE, clocked_bench
from cosim.circuit.bench import Voltage
from cosim.circuit.waveforms import Timing
from cosim.engines.simulation.inference import run_bench
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.types import Technology

THRESH, WIDTH, GAIN = 1e-9, 0.3e-9, 1e-9  # A
BELOW, ABOVE, MORE = 0.85e-9, 1.2e-9, 1.02  # A, A: candidates of state 0 and 1; the second one over the first
CELSIUS = 27.0, 85.0, 125.0
NOMINAL, LONG = Timing(), Timing(t_step=100e-3)  # the step is read in frames of 10 ms, the droop in long ones
UNITS = 8
SETTLED = 0.05  # of a frame: after the clock's edge has begun
HELD = 0.15  # of a frame: the stretch over which the droop is read
NETS = "xcell.hold", "xcell.v0", "xcell.fb", "xcell.a", "xcell.b", "out", "cand"


def frames(technology: Technology, candidate: float, timing: Timing) -> dict[str, np.ndarray]:
    """Return the voltages of NETS at four moments: tracked, held, held later; and tracked at MORE of the candidate."""
    pair = np.array([candidate, MORE * candidate])
    bench = clocked_bench(technology, UNITS, (THRESH, WIDTH, GAIN), pair, timing)
    waves = run_bench(replace(bench, probes=tuple(map(Voltage, NETS))), technology.name)
    times = timing.moments(2, CLOSE - 0.01, CLOSE + SETTLED, CLOSE + SETTLED + HELD)[:4]
    return {net: np.interp(times, waves.time, waves.voltage(net)) for net in NETS}


def changes(technology: Technology, candidate: float) -> tuple[float, float, float]:
    """Return the step of the held candidate, its droop per second (both of the candidate), and the current, A."""
    tracked, held, _, more = frames(technology, candidate, NOMINAL)["xcell.hold"]
    per_volt = np.log(MORE) / (more - tracked)
    _, first, last, _ = frames(technology, candidate, LONG)["xcell.hold"]
    per_second = (last - first) / (HELD * LONG.t_step)
    return (
        float(np.expm1(per_volt * (held - tracked))),
        float(per_volt * per_second),
        float(technology.hold_capacitance * per_second),
    )


def main() -> None:
    nominal = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    for celsius in CELSIUS:
        technology = at(nominal, celsius=celsius)
        for state, candidate in enumerate((BELOW, ABOVE)):
            step, droop, current = changes(technology, candidate)
            print(
                f"{technology.name} {celsius:g} C, candidate {1e9 * candidate:g} nA, state {state}: step "
                f"{100 * step:+.2f} %, droop {100 * droop:+.2f} %/s, {current:+.1e} A onto the hold node"
            )
        volt = {net: value[2] for net, value in frames(technology, ABOVE, NOMINAL).items()}
        branches = {
            "candidate": {"diode": technology.supply - volt["cand"], "weights n": volt["cand"]},
            "output": {"M4": technology.supply - volt["out"], "M3": volt["out"] - volt["xcell.a"],
                       "M5": volt["xcell.a"]},
            "loop": {"M7": technology.supply - volt["xcell.fb"], "M6": volt["xcell.fb"] - volt["xcell.b"],
                     "M8": volt["xcell.b"]},
        }  # fmt: skip
        for name, devices in branches.items():
            print(f"  {name}: " + ", ".join(f"{device} {1e3 * value:.0f} mV" for device, value in devices.items()))


if __name__ == "__main__":
    shrink(globals(), "generic180", CELSIUS=(27.0,))
    main()
