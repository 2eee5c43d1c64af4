"""The dispersive delay line frame by frame. In its pulse all n cells move at once:

    dy_k/dt = r_k (g_k y_{k-1} - y_k),   y_0 = u + FLOOR,   r the measured rate of I_tau, g the gain of the mirrors

which is linear in y_k / (g_1 ... g_k) as long as the gains stand: they are taken at the currents before the pulse.
Between pulses every y_k decays as the minGRU's state (cosim.units.mingru.equations).

Its supply current: of every cell the copies of its input, I_tau twice, what M4 carries, and its output.
"""

from collections.abc import Iterator

import numpy as np

from cosim.cells.builder import instance, net
from cosim.cells.tau_cell import gate_charge
from cosim.ir.states import States
from cosim.network.gamma import line_step
from cosim.units.effect import Effect, Site, effect
from cosim.units.gamma.circuit import cell_name
from cosim.units.gamma.lower import FLOOR
from cosim.units.gamma.node import Gamma, GammaFactors, GammaPins
from cosim.units.kind import Array, CellEquations, Standing
from cosim.units.mingru.equations import MIRRORS
from cosim.units.mingru.lower import GATED
from cosim.units.mingru.node import fit_of

GammaCell = CellEquations[Gamma, GammaPins, GammaFactors]


def decide_gamma(cell: GammaCell, candidate: Array) -> States:
    """States (n, time), over full scale and above the floor."""
    return (run_line(cell, candidate)[:, :, -1] - _floor(cell)) / cell.asked[2]


def run_line(cell: GammaCell, candidate: Array) -> Array:
    """Return the current of each cell of a delay line at the end of each frame, ampere, (n, time, cells).

    candidate: (n, time), ampere.
    """
    order, units = cell.node.order, cell.calibration.units
    i_unit, ones = cell.asked[2] / cell.node.level, (1.0,) * order
    targets, rates = (np.array(found or ones) for found in (cell.factors.targets, cell.factors.rates))
    rate, decay, fit = order / cell.node.position, 1.0, None
    if not cell.ideal:
        fit = fit_of(cell.calibration)
        asked = cell.bias.i_tau * units / i_unit
        rate = asked * float(fit.rate(np.array(asked * i_unit)))
        decay = float(np.exp(-fit.leak / gate_charge(i_unit, units, GATED)))
    kept, taken = line_step(rate * rates)
    given, line = candidate + _floor(cell), np.full((len(candidate), order), _floor(cell))
    found = np.empty((*candidate.shape, order))
    for t in range(candidate.shape[1]):
        read = np.column_stack([given[:, t], line[:, :-1]])
        gain = np.cumprod(targets * (1.0 if fit is None else fit.gain(read)) * np.ones_like(read), axis=1)
        line = gain * ((decay * line / gain) @ kept.T + given[:, t, None] * taken)
        found[:, t] = line
    return found


def deliver_gamma(cell: GammaCell, states: States) -> Array:
    """Output current (n, time), ampere."""
    return np.asarray(cell.asked[2] * states + _floor(cell), dtype=np.float64)


def _floor(cell: GammaCell) -> float:
    """Return the smallest current that the cells of a line carry, ampere."""
    return FLOOR * cell.asked[2] / cell.node.level


def supply_gamma(cell: GammaCell, standing: Standing) -> Array:
    """The line with its output and its pedestal, ampere, (n, time)."""
    mirror, held = cell.calibration.mirror, deliver_gamma(cell, standing.states)
    inside = run_line(cell, standing.candidate)[:, :, :-1].sum(axis=2)
    given = standing.candidate + _floor(cell)
    copies = mirror.push * (given + inside) * (1 + mirror.sink)
    return standing.current + held + copies + 2 * inside + 2 * cell.node.order * cell.bias.i_tau


def gamma_effects(node: Gamma, pins: GammaPins, site: Site) -> Iterator[Effect]:
    """targets: the mirrors to d, the loop, the mirror of the output; rates: M_tau2 and what pushes I_tau."""
    stem, current, before = net(node.name), site.asked.i_high, site.candidate
    pin, push = site.bias(site.pins[0]), instance(f"push_{site.pins[0]}")
    for k in range(node.order):
        cell = instance(cell_name(stem, k, node.order))
        own = ((f"{cell}.{name}", sign) for name, sign in MIRRORS)
        yield effect("targets", node.name, current, (before, -1), *own, place=k)
        pushed = (f"{cell}.tau2", 1), (f"{push}.diode", -1), (f"{push}.sink", 1), (pin, -1)
        yield effect("rates", node.name, pins.i_tau, *pushed, place=k)
        before = f"{cell}.diode"
