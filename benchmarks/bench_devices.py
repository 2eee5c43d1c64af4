"""Measure V_T, I_0, n, g_m / I_D, gain and leakage of the unit devices of mirrors and cells, by .dc sweeps in ngspice.

    python benchmarks/bench_devices.py [technology]

Of each: V_GS at 1 nA; V_T, the V_GS at 100 nA W/L; n, from the slope of ln I at 10 pA; I_0, the current at V_GS = 0 on
the line of that slope, W/L included; g_m / I_D and g_m / g_ds at 1 nA and V_DS = 0.9 V; the current at V_GS = 0 and
V_DS = 1.8 V.
"""

import sys

import numpy as np
from smoke import shrink

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE
from cosim.circuit.dialects.ngspice import format_deck, format_options
from cosim.circuit.elements import GROUND, Circuit, Source
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.technology.catalog import load_technology
from cosim.technology.types import Technology

I_UNIT = 1e-9  # A
WEAK = 10e-12  # A, in weak inversion
V_T_CURRENT = 100e-9  # A of a device of W = L
STEP = 2e-3  # V
POINTS = 601
ROWS = "V_GS at 1 nA (mV)", "V_T (mV)", "I_0 (A)", "n", "g_m / I_D (1/V)", "g_m / g_ds", "off at 1.8 V (A)"


def currents(technology: Technology, device: TransistorDesign, v_ds: float) -> np.ndarray:
    """Return |I_D| in A at |V_GS| = 0, STEP, 2 STEP, ... V of one unit device."""
    high, sign = technology.supply, 1 if device.polarity == "n" else -1
    rail, begin = (0.0, 0.0) if sign > 0 else (high, high)
    elements = (
        Source("dd", "v", "vdd", GROUND, high),
        Source("g", "v", "g", GROUND, begin),
        Source("d", "v", "d", GROUND, rail + sign * v_ds),
        *transistor("unit", device, "d", "g"),
    )
    circuit = Circuit("one unit device", (), elements)
    sweep = f".dc vg {begin:g} {begin + sign * STEP * (POINTS - 1):g} {sign * STEP:g}"
    waves = run_deck(format_deck(circuit, technology, format_options(PRECISE, technology), sweep, "i(vd)"))
    if isinstance(waves, Failure):
        sys.exit(f"{technology.name}: {waves.detail}")
    return np.abs(waves["vd#branch"])


def measure(technology: Technology, device: TransistorDesign) -> tuple[str, ...]:
    """Return the rows of one unit device as text."""
    v_gs, size = STEP * np.arange(POINTS), device.geometry.w / device.geometry.l
    i_d, above, off = (currents(technology, device, v_ds) for v_ds in (0.9, 1.0, technology.supply))
    g_m, g_ds = np.gradient(i_d, STEP), (above - i_d) / 0.1

    def at(current: float, value: np.ndarray) -> float:
        return float(np.interp(np.log(current), np.log(np.maximum.accumulate(i_d)), value))

    slope = at(WEAK, g_m / i_d)
    return (
        f"{1e3 * at(I_UNIT, v_gs):.0f}", f"{1e3 * at(V_T_CURRENT * size, v_gs):.0f}",
        f"{WEAK * np.exp(-slope * at(WEAK, v_gs)):.1e}", f"{1 / (slope * technology.thermal_voltage):.2f}",
        f"{at(I_UNIT, g_m / i_d):.1f}", f"{at(I_UNIT, g_m / g_ds):.0f}", f"{off[0]:.1e}",
    )  # fmt: skip


def main() -> None:
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    sizing = technology.sizing
    units = {"mirror_n": ("n", sizing.mirror_n), "mirror_p": ("p", sizing.mirror_p), "cell_n": ("n", sizing.cell_n),
             "cell_p": ("p", sizing.cell_p)}  # fmt: skip
    columns = [measure(technology, TransistorDesign("inner", polarity, unit)) for polarity, unit in units.values()]
    print(f"| {technology.name} | {' | '.join(units)} |")
    for row, *values in zip(ROWS, *columns, strict=True):
        print(f"| {row} | {' | '.join(values)} |")


if __name__ == "__main__":
    shrink(globals())
    main()
