"""The minGRU frame by frame: I_t = I_{t-1} + z (g u - I_{t-1}), z = 1 - exp(-f r), f r the measured r.

Between pulses the state decays by exp(-T I_leak / (C n U_T)), for which the frame does not matter: C goes with it. What
the charge of s moves as a pulse begins (cosim.cells.tau_cell) is left to ngspice.

Its supply current: the copies of the candidate, g_push u (1 + g_sink), I_tau twice, what M4 carries, and its output;
of a ratio gate a, I_b and the tail, of which I_tau is a part.
"""

from collections.abc import Iterator

import numpy as np

from cosim.cells.builder import instance, net
from cosim.cells.tau_cell import gate_charge
from cosim.ir.states import States
from cosim.units.effect import Effect, Site, effect
from cosim.units.kind import Array, CellEquations, Standing
from cosim.units.mingru.lower import GATED
from cosim.units.mingru.node import MinGru, MinGruFactors, MinGruPins, fit_of

MinGruCell = CellEquations[MinGru, MinGruPins, MinGruFactors]


def decide_mingru(cell: MinGruCell, candidate: Array) -> States:
    """States (n, time), over full scale."""
    full, factors, gate = cell.asked[2], cell.factors, np.broadcast_to(cell.beta[0], candidate.shape)
    i_unit = full / cell.node.level
    target, rate, decay = candidate / full, cell.node.rate(gate / i_unit * factors.ratio), 1.0
    if not cell.ideal:
        fit = fit_of(cell.calibration)
        target, rate = target * fit.gain(candidate), rate * fit.rate(rate * i_unit)
        decay = float(np.exp(-fit.leak / gate_charge(i_unit, cell.calibration.units, GATED)))
    target, kept = target * factors.target, np.exp(-rate * factors.rate)
    state = np.zeros(len(candidate)) if cell.before is None else np.asarray(cell.before, dtype=np.float64)
    states = np.empty_like(target)
    for t in range(target.shape[1]):
        states[:, t] = state = target[:, t] + kept[:, t] * (decay * state - target[:, t])
    return states


def deliver_mingru(cell: MinGruCell, states: States) -> Array:
    """Output current (n, time), ampere."""
    return np.asarray(cell.asked[2] * states, dtype=np.float64)


def supply_mingru(cell: MinGruCell, standing: Standing) -> Array:
    """The cell with its output and its pedestal, ampere, (n, time)."""
    mirror, held = cell.calibration.mirror, deliver_mingru(cell, standing.states)
    copies = mirror.push * standing.candidate * (1 + mirror.sink)
    total = standing.current + held + copies
    if cell.bias.i_top is None:
        return total + 2 * standing.beta / cell.calibration.units
    i_unit = cell.asked[2] / cell.node.level
    rate = cell.node.rate(np.asarray(standing.beta) / i_unit) * i_unit / cell.calibration.units
    return total + standing.beta / cell.calibration.units + 2 * cell.bias.i_top + 2 * rate


def mingru_effects(node: MinGru, pins: MinGruPins, site: Site) -> Iterator[Effect]:
    """target: the mirrors to d, the loop, the mirror of the output; rate: M_tau2 - the diode of its gate."""
    stem = net(node.name)
    current, gate = site.asked.i_high, site.roles[instance(f"relu_{net(f'{node.name}.gate')}"), "diode"]

    def device(name: str) -> str:
        return f"{instance(f'cell_{stem}')}.{name}"

    mirrors = (site.candidate, -1), *((device(name), sign) for name, sign in MIRRORS)
    yield effect("target", node.name, current, *mirrors)
    if pins.i_top is None:
        yield effect("rate", node.name, current, (device("tau2"), 1), (gate, -1))
        return
    pin, push, cell = site.bias(site.pins[0]), instance(f"push_{site.pins[0]}"), instance(f"gate_{stem}")
    own = {name: f"{cell}.{name}" for name in ("diode", "tail", *_RATIO)}
    made = (device("tau2"), 1), (own["diode"], -1), (own["tail"], 1), (pin, -1)
    yield effect("rate", node.name, pins.i_top, *made)
    shared = (gate, -1), (pin, 1), (f"{push}.sink", -1), (f"{push}.diode", 1)
    yield effect("ratio", node.name, pins.i_top, *shared, *((own[name], sign) for name, sign in _RATIO.items()))


_RATIO = {"copy": 1, "half": -1, "da": -1, "db": 1, "a": 1, "b": -1}
MIRRORS = (
    ("in", 1), ("idiode", -1), ("sink", 1), ("1", -1), ("4", 1), ("3", -1), ("2", 1), ("tau3", 1), ("tau2", -1),
    ("odiode", -1), ("osink", 1),
)  # fmt: skip
