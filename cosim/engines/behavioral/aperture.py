"""Aperture of a clocked 9T cell, for a candidate's noise: what is frozen, and what its decision node remembers.

    track    C_0 dv/dt = I_1 - I_2 + J - g_0 (v - V_DD/2)
    decide   C dV/dt = I_1 - I_2 + J - g_0 (V - V_DD/2) - g_x (V - v_f),   V = (C_0 v + (C - C_0) V_latch) / C at first
             (n U_T C_f) dJ/dt = J (S(V) - J),   1/S = 1/I_width + 1/I_6(V)

I_1 is what M1 makes of the candidate, I_2 the threshold, both less by exp(-V_DS / U_T) at the rails;
g_0 = g_ds1 + g_ds2; J what M7 and M9 bring back, S what M6 and M8 let them; C_0, C and C_f the capacitances of decision
node, of it with the latch, and of the feedback's line. When the sample gate has closed, the hold node follows the
decision node through M1's gate, by `kick` volt a volt: g_x = kick g_m1. So the cell compares what is frozen with where
the decision node stood at that moment, v_f: a candidate that was low for long must be that much higher at last.

The threshold is the candidate from which on J regenerates. With a candidate that moves it is linear in it: `frozen` of
what is frozen, the rest of what the node tracked, which follows the candidate with C_0 / g, g = -C_0 d(dv/dt)/dv where
it stands. That is the impulse sensitivity of a clocked comparator: J. Kim, B. S. Leibowitz, J. Ren and C. J. Madden,
IEEE Trans. Circuits Syst. I 56 (2009) 1844. Where regeneration has time, frozen = g_0 / (g_0 + g_x).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import DECIDE, Timing
from cosim.technology.noise import NoiseFit

Array = NDArray[np.float64]
_TRACK_STEPS, _DECIDE_STEPS, _SHORTEST = 100, 200, 2e-4  # of both parts; the first step of the second over its length
_SPAN, _TRIED, _ROUNDS = 0.4, 33, 4  # of the threshold: where it is looked for, by so many at once, so often
_LEAST = 1e-18  # A, far below any leakage: a cell whose width is all in its rows has none of its own
_MOVED = 2e-3  # of the threshold, what the frozen candidate is moved by


def gate_lag(fit: NoiseFit, timing: Timing, supply: float, u_t: float) -> float:
    """Return the time in which the conductance of a closing sample gate falls to 1/e, s: n U_T over its clock's slope.

    While it closes, the hold node follows the candidate's current ever more slowly, by 1 / (lag (1 + exp(t / gate))),
    so what white noise leaves on it is S / (4 lag) / (1 + 2 gate / lag): the integral of that squared, times what is
    not forgotten.
    """
    return float(fit.devices["cell_p"].slopes[0]) * u_t * timing.clock_edge * timing.t_step / supply


@dataclass(frozen=True)
class Aperture:
    """Behavioral noise of a clocked cell at one edge, as weights.

    frozen: share of the frozen candidate; tracked: share of the candidate as a line with `lag`, s, follows it, at rest;
    ran: share of the variance of such a line that is reached while the cell tracks; after: variance added after the
    freeze, over the one-sided density of noise into the decision node, Hz.
    """

    frozen: float
    tracked: float
    lag: float
    ran: float
    after: float


@dataclass(frozen=True)
class Cells:
    """Clocked cells in frames, whose apertures the behavioral engine computes.

    thresh, width: (cells,) A; on: (cells,), the edge that turns them off; stages: of the clock; supply and u_t: V.
    """

    thresh: Array
    width: Array
    on: NDArray[np.bool_]
    stages: int
    timing: Timing
    supply: float
    u_t: float


def apertures(cells: Cells, fit: NoiseFit) -> list[Aperture]:
    """Return the behavioral aperture of each clocked cell.

    All of it is frozen where no candidate within 40 % of the threshold turns the cell.
    """
    model = _Model(cells, fit)
    base = model.threshold(np.zeros(len(cells.thresh)))
    step = _MOVED * cells.thresh
    frozen = (model.threshold(-step) - model.threshold(step)) / (2 * step)
    frozen = np.where(np.isfinite(frozen) & np.isfinite(base), np.clip(frozen, 0.0, 1.0), 1.0)
    at = np.where(np.isfinite(base), base, 0.0)
    (low, _), (high, _), (_, g) = (model.track((at + move)[:, None]) for move in (-step, step, 0 * step))
    moved = (high - low)[:, 0] / (2 * step) * g[:, 0]  # 1 where it has come to rest
    lag = model.node.tracking / g[:, 0]
    tracked = np.where(frozen < 1, (1 - frozen) / np.maximum(moved, 1e-9), 0.0)
    ran = -np.expm1(-2 * model.window / lag)
    settles = model.node.joined / model.held[:, 0]
    part = settles / model.decide_time
    mean = 2 * part * (1 + part * np.expm1(-1 / part))  # variance of a mean over the time to decide
    after = (frozen**2 * model.held[:, 0] / (4 * model.node.joined)) * mean
    columns = zip(*(x.tolist() for x in (frozen, tracked, lag, ran, after)), strict=True)
    return [Aperture(*column) for column in columns]


def turning_excess(cells: Cells, fit: NoiseFit) -> Array:
    """Return the current beyond the threshold's that turns each cell in the behavioral engine, A.

    It is less the width's for edges that reset.
    """
    model = _Model(cells, fit)
    return model.threshold(np.zeros(len(cells.thresh)))


class _Model:
    """The equations for (cells, candidates) at once; candidates as their excess over the threshold's current, A."""

    def __init__(self, cells: Cells, fit: NoiseFit) -> None:
        self.cells, self.node = cells, fit.decision
        self.i_thresh, self.i_width = cells.thresh[:, None], cells.width[:, None]
        self.back = np.where(cells.on[:, None], self.i_width, 0.0)  # J while it tracks
        self.output = self.node.output(self.i_thresh)
        first = np.maximum(self.i_thresh - self.back, 1e-13)
        slope = fit.devices["cell_p"].slope(first)
        siemens = first / (slope * cells.u_t)
        self.kicked, self.left = self.node.kick * siemens, self.node.pedestal * siemens
        self.held = self.output + self.kicked
        self.charge = slope * cells.u_t * self.node.loop
        close = cells.timing.closes(cells.stages)[0]
        self.window, self.decide_time = close * cells.timing.t_step, DECIDE * cells.timing.t_step

    def threshold(self, more: Array) -> Array:
        """Return the excess (cells,) above which cells are on, A; nan where none is found.

        more: (cells,), by how much the frozen part of the candidate is higher, A.
        """
        low, high = -_SPAN * self.i_thresh[:, 0], _SPAN * self.i_thresh[:, 0]
        rows, found = np.arange(len(low)), np.ones(len(low), dtype=np.bool_)
        for _ in range(_ROUNDS):
            tried = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _TRIED)
            on = self.decide(tried, more[:, None]) > self.i_width / 2
            first = np.argmax(on, axis=1)
            found &= (first > 0) & on[rows, first]
            first = np.maximum(first, 1)
            low, high = tried[rows, first - 1], tried[rows, first]
        return np.where(found, (low + high) / 2, np.nan)

    def net(self, volt: Array, first: Array, back: Array) -> tuple[Array, Array]:
        """Return the current into the decision node, A, and by how much it falls with the node's voltage, S."""
        supply, u_t = self.cells.supply, self.cells.u_t
        lower, upper = np.exp(-volt / u_t), np.exp((volt - supply) / u_t)
        current = (first + back) * (1 - upper) - self.i_thresh * (1 - lower) - self.output * (volt - supply / 2)
        return current, self.output + ((first + back) * upper + self.i_thresh * lower) / u_t

    def track(self, excess: Array) -> tuple[Array, Array]:
        """Return the decision node's voltage when the sample gate closes, V, and its conductance there, S."""
        supply, first = self.cells.supply, self.i_thresh - self.back + excess
        volt = np.broadcast_to(np.where(self.cells.on[:, None], supply, 0.0), excess.shape)
        step = self.window / _TRACK_STEPS
        for _ in range(_TRACK_STEPS):
            current, falls = self.net(volt, first, self.back)
            volt = np.clip(volt + current / (self.node.tracking / step + falls), 0.0, supply)
        return volt, self.net(volt, first, self.back)[1]

    def decide(self, excess: Array, more: Array) -> Array:
        """J at the end, A."""
        supply, node = self.cells.supply, self.node
        track, _ = self.track(excess)
        share, latch = node.tracking / node.joined, np.where(self.cells.on[:, None], supply, 0.0)
        volt = share * track + (1 - share) * latch
        met = np.where(self.cells.on[:, None], 0.0, volt / supply)  # the latch follows the gate until they are one
        stood = np.where(node.freezes < node.joins + met, track, volt)
        first = self.i_thresh - self.back + excess + more - self.left
        rest = np.maximum(self.charge / self.cells.timing.t_step, 0.0)  # of J, a frame after it was on
        start = np.where(self.cells.on[:, None], self.i_width, rest)
        back = np.broadcast_to(np.maximum(start, _LEAST), excess.shape)
        for step in _steps(self.decide_time):
            current, falls = self.net(volt, first, back)
            current = current - self.kicked * (volt - stood)
            volt = np.clip(volt + current / (node.joined / step + falls + self.kicked), 0.0, supply)
            switched = node.switched(volt)
            let = np.maximum(self.i_width * switched / (self.i_width + switched), _LEAST)
            back = let / (1 + np.expm1(np.log(let / back)) * np.exp(-let * step / self.charge))
        return back


def _steps(length: float) -> Sequence[float]:
    """Steps that grow."""
    return np.diff(np.geomspace(_SHORTEST, 1 + _SHORTEST, _DECIDE_STEPS + 1) * length).tolist()
