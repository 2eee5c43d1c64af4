"""Measure V_T, I_0, n, g_m / I_D, gain and leakage of the unit devices of mirrors and cells, by .dc sweeps.

    python benchmarks/bench_devices.py [technology]

A unit device is one of the equal transistors that mirrors and cells are made of, its self-cascode included. The columns
of the table are the unit devices, its rows, in the typical corner at 27 C and V_DS = 0.9 V:

    V_GS       of a drain current of 1 nA
    V_T        the V_GS of 100 nA times W / L
    n, I_0     of I = I_0 exp(V_GS / (n U_T)), the tangent of ln I at 10 pA; I_0 is that of the whole device
    g_m / I_D  at 1 nA
    g_m / g_ds at 1 nA, g_ds between V_DS = 0.9 V and 1.0 V
    off        the current at V_GS = 0, with V_DS the whole supply
"""

import sys

import numpy as np
from smoke import shrink

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Current, Dc
from cosim.circuit.elements import GROUND, Circuit, Source
from cosim.engines.simulation.inference import run_bench
from cosim.technology.catalog import load_technology
from cosim.technology.types import Technology

I_UNIT = 1e-9  # ampere; software 1.0
I_WEAK = 10e-12  # ampere, in weak inversion: where n and I_0 are taken
I_THRESHOLD = 100e-9  # ampere, times W / L: where V_T is taken
V_DS, V_DS_ABOVE = 0.9, 1.0  # V
STEP = 2e-3  # V
POINTS = 601
ROWS = "V_GS at 1 nA (mV)", "V_T (mV)", "I_0 (A)", "n", "g_m / I_D (1/V)", "g_m / g_ds", "off (A)"


def currents(technology: Technology, device: TransistorDesign, v_ds: float) -> np.ndarray:
    """Return the magnitude of a unit device's drain current, ampere, at each |V_GS| from 0 in steps of STEP."""
    high, sign = technology.supply, 1 if device.polarity == "n" else -1
    rail, begin = (0.0, 0.0) if sign > 0 else (high, high)
    elements = (
        Source("dd", "v", "vdd", GROUND, high),
        Source("g", "v", "g", GROUND, begin),
        Source("d", "v", "d", GROUND, rail + sign * v_ds),
        *transistor("unit", device, "d", "g"),
    )
    circuit = Circuit("one unit device", (), elements)
    sweep = Dc("v", "g", begin, begin + sign * STEP * (POINTS - 1), sign * STEP)
    return np.abs(run_bench(Bench(circuit, technology, sweep, (Current("d"),), PRECISE), technology.name).through("d"))


def measure(technology: Technology, device: TransistorDesign) -> tuple[str, ...]:
    """Return one unit device's column of the table as text, in the order of ROWS."""
    v_gs, size = STEP * np.arange(POINTS), device.geometry.w / device.geometry.l
    i_d, above, off = (currents(technology, device, v_ds) for v_ds in (V_DS, V_DS_ABOVE, technology.supply))
    g_m, g_ds = np.gradient(i_d, STEP), (above - i_d) / (V_DS_ABOVE - V_DS)

    def at(current: float, value: np.ndarray) -> float:
        """Interpolate a quantity at a drain current."""
        return float(np.interp(np.log(current), np.log(np.maximum.accumulate(i_d)), value))

    slope = at(I_WEAK, g_m / i_d)
    return (
        f"{1e3 * at(I_UNIT, v_gs):.0f}", f"{1e3 * at(I_THRESHOLD * size, v_gs):.0f}",
        f"{I_WEAK * np.exp(-slope * at(I_WEAK, v_gs)):.1e}", f"{1 / (slope * technology.thermal_voltage):.2f}",
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
