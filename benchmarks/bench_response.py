"""How a threshold shift changes a cell device's current: n in d ln I = -dV_T / (n U_T), against the current at W = L.

    python benchmarks/bench_response.py [technology]

What models/devices/*.toml hold as `response`.
"""

import sys
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Current, Op
from cosim.circuit.elements import GROUND, Circuit, Source
from cosim.engines.simulation.inference import run_bench
from cosim.technology.catalog import load_technology

DENSITIES = (1e-11, 5e-11, 2e-10, 1e-9, 2e-9, 4e-9, 8e-9)  # A of a device of W = L
SHIFT = 1e-3  # V


def main() -> None:
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    for polarity, unit in (("n", technology.sizing.cell_n), ("p", technology.sizing.cell_p)):
        rows = []
        for density in DENSITIES:
            pins, device = ("vdd", "g") if polarity == "n" else ("g", GROUND), TransistorDesign("inner", polarity, unit)
            first, *rest = transistor("shifted", device, "b", "g")
            elements = (
                Source("dd", "v", "vdd", GROUND, technology.supply),
                Source("in", "i", *pins, density * unit.w / unit.l),
                *transistor("diode", device, "g", "g"),
                *transistor("copy", device, "a", "g"),
                replace(first, vt_shift=SHIFT),
                *rest,
                Source("a", "v", "a", GROUND, technology.supply / 2),
                Source("b", "v", "b", GROUND, technology.supply / 2),
            )
            circuit = Circuit("response to a threshold shift", (), elements)
            waves = run_bench(Bench(circuit, technology, Op(), (Current("a"), Current("b")), PRECISE), f"{density:g} A")
            change = np.log(abs(waves.through("b")[0] / waves.through("a")[0]))
            rows.append(f"[{density:g}, {-SHIFT / change / technology.thermal_voltage:.3f}]")
        print(f"{technology.name} {polarity}: [{', '.join(rows)}]")


if __name__ == "__main__":
    shrink(globals(), DENSITIES=(1e-9,))
    main()
