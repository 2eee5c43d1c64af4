"""Dispersive delay line: n tau-cells in a row, one bias line for the time constants of all. Its delay is a current.

    line p o--[tau-cell]--out p_1 --[tau-cell]--out p_2 -- ... --[tau-cell]--o out
                  |tau                  |tau                         |tau
                  +---------------------+----------------------------+------o bias

Each cell's output draws from the pMOS diode that the next one copies. The line answers a pulse by
t^(n-1) e^(-t/tau) / ((n-1)! tau^n): a delay of p = n tau in the mean, which spreads by sqrt(n) tau. So a position p
asks for I_tau = C n_s U_T n / p, n_s the slope factor. A mirror's error scales the level of what follows, not its time.
"""

import numpy as np
from numpy.typing import NDArray

from cosim.cells.benches import bias_lines, supply_of
from cosim.cells.bias import bias_diode
from cosim.cells.mirror import INPUT_DIODE, input_diode
from cosim.cells.tau_cell import TAU_CELL, TAU_LINE, tau_cell, tau_line
from cosim.circuit.bench import PRECISE, Bench, Current, Tran
from cosim.circuit.elements import GROUND, Circuit, Instance, Source, Subcircuit
from cosim.technology.types import Technology

GAMMA_LINE = "gamma_line"
BEFORE = 0.5  # of the position: how long the line rests before its input steps
BEHIND = 5.0  # positions; by then a line of four has settled to e^-20 (1 + ... + 20^3/6) = 3e-6
POINTS = 1000
Array = NDArray[np.float64]


def gamma_line(technology: Technology, units: int, order: int, capacitance: float) -> tuple[Subcircuit, ...]:
    """Build the dispersive delay line, a row of `order` tau-cells; return the cells that it is made of, then the line.

    Ports line bias out vdd; out sinks the delayed current. capacitance: of each cell, F.
    """
    elements = [Instance("bias", ("bias", "tau", "vdd"), TAU_LINE)]
    for k in range(order):
        line, out = ("line" if k == 0 else f"p{k}"), ("out" if k == order - 1 else f"p{k + 1}")
        elements.append(Instance(f"cell{k}", (line, "tau", out, "vdd"), TAU_CELL))
        if k:
            elements.append(Instance(f"diode{k}", (line, "vdd"), f"{INPUT_DIODE}_{units}"))
    line = Subcircuit(
        GAMMA_LINE, ("line", "bias", "out", "vdd"), tuple(elements), f"dispersive delay line of {order} tau-cells"
    )
    return input_diode(technology, units), tau_cell(technology, units, capacitance), tau_line(technology), line


def line_bias(technology: Technology, seconds: float, order: int, capacitance: float) -> float:
    """Return the bias current I_tau, ampere, at which a delay line of `order` tau-cells delays by `seconds` on average.

    It is C n_s U_T n / p. capacitance: of each cell, F.
    """
    return capacitance * technology.pfet.slope_factor * technology.thermal_voltage * order / seconds


def gamma_bench(
    technology: Technology, units: int, blocks: tuple[Subcircuit, ...], i_tau: float, seconds: float
) -> Bench:
    """Return a bench that tests a delay line of tau-cells by a step of its input from 0.25 to 0.5 nA; saves `out`.

    seconds: mean delay; the step comes after `BEFORE` of them.
    """
    begin, edge = BEFORE * seconds, 1e-4 * seconds
    step = ((0.0, 0.25e-9), (begin, 0.25e-9), (begin + edge, 0.5e-9))
    elements = (
        supply_of(technology),
        Source("in", "i", "p", GROUND, step),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *bias_lines({"bias": i_tau}),
        Instance("line", ("p", "bias", "node", "vdd"), GAMMA_LINE),
        Instance("load", ("out", "vdd"), f"{INPUT_DIODE}_{units}"),
        Source("out", "v", "out", "node", 0.0),
    )
    circuit = Circuit("gamma line bench", (*blocks, bias_diode(technology)), elements)
    end = (BEFORE + BEHIND) * seconds
    return Bench(circuit, technology, Tran(end / POINTS, end), (Current("out"),), PRECISE)


def step_moments(time: Array, current: Array, begin: float) -> tuple[float, float]:
    """Return mean and standard deviation, s, of a delay line's delay, from its response to a step at time `begin`.

    With 1 - s(t) the share of the step still to come, the mean is the integral of 1 - s, and the mean square twice the
    integral of t (1 - s). The current at `begin` and at the end are taken as settled.
    """
    first, last = float(np.interp(begin, time, current)), float(current[-1])
    after = time >= begin
    t = np.concatenate([[0.0], time[after] - begin])
    missing = np.concatenate([[1.0], (last - current[after]) / (last - first)])
    mean = float(np.trapezoid(missing, t))
    square = 2 * float(np.trapezoid(t * missing, t))
    return mean, max(square - mean**2, 0.0) ** 0.5
