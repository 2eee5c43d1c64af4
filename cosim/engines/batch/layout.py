"""Data that the kernels share: the arrays of a circuit and of a tile, and what an evaluation is asked for."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Whole = NDArray[np.int64]
# what an evaluation is asked for; of a plain int numba would compile each kernel again for its value. MATRIX: the
# matrix, and what unknowns need; WHOLE: all currents and charges; NEARBY: the same, as tangents: no device moved far
MATRIX, WHOLE, NEARBY = np.int64(0), np.int64(1), np.int64(2)
GROUND = 0  # its net
# March.clock, of each lane: now, end, the last two steps, the one to try next, the one in course, steps since a corner,
# the corner ahead, Newton's turns, whether the step ends at the corner, rows saved, how it stands, and counts
NOW, END, LAST, BEFORE, NEXT, STEP, SINCE, AHEAD, TURN, CORNERED, ROWS, STANDS, STEPS, REFUSED, SOLVED = range(15)
CLOCKS = 15
RUNNING, DONE, STUCK = 0.0, 1.0, 2.0  # how a lane stands: on its way, at the end, or no step converged
# March.pace, of each lane's step in course: factors of the charges now and before, 1/s; of the last three solutions in
# the prediction; the share of the distance to it that is error; Newton's last move, V; error over what it may be;
# whether the lane accepts its step, and whether it begins one
SLOPE, FIRST, SECOND, GUESS, SHARE, FAR, ERROR, ACCEPTED, BEGINS = 0, 1, 2, 3, 6, 7, 8, 9, 10
PACES = 11


class Structure(NamedTuple):
    """The circuit that all instances share. Nets are indices, rows of unknowns too; the last row is ground's.

    row (nets,); offsets (n, 2) net and source, offset_sign; currents (n, 3) two nets and a source;
    capacitor_at (nets + 1,) into capacitor_net and farad: the charge of each net is the sum of farad times the voltages
    of these; constant (entries,): farad in the matrix;
    gates, drains (n, 7): net, source net, table, four places; gate_sign, gate_size: n or p, and total multiplicity;
    gate_alone: its source's voltage is known;
    tied (n, 10): gate line, drain line, drain net, source net, six places; tied_sign, tied_size; in three groups that
    end at `groups`: only the drain is unknown; the source is unknown; neither is. Its last number: how many of the
    first have their source on ground; they come first. cascode: whether it is two in series.
    floating (n, 14): nets of gate, drain, source and bulk, table, nine places;
    gate_table, drain_table, response_table, float_table: all tables in one; *_at: (tables, ...) where they begin.
    """

    row: Whole
    offsets: Whole
    offset_sign: Array
    currents: Whole
    capacitor_at: Whole
    capacitor_net: Whole
    farad: Array
    constant: Array
    gates: Whole
    gate_sign: Array
    gate_size: Array
    gate_alone: NDArray[np.bool_]
    drains: Whole
    drain_sign: Array
    drain_size: Array
    drain_alone: NDArray[np.bool_]
    tied: Whole
    tied_sign: Array
    tied_size: Array
    cascode: NDArray[np.bool_]
    groups: Whole
    floating: Whole
    float_sign: Array
    float_size: Array
    gate_table: Single
    drain_table: Single
    response_table: Single
    gate_at: Whole
    gate_axis: Array
    drain_at: Whole
    drain_axis: Array
    response_at: Whole
    float_table: Single
    float_at: Whole
    float_axis: Array


class TileValues(NamedTuple):
    """Quantities of a tile, each (rows, LANES): unknowns, net voltages, currents out of nets and charges on them,
    matrix.

    x has a row of zeros behind the unknowns; matrix has SPARE behind its entries, where those of ground fall.
    gate: RANK values and RANK derivatives a line; response: RESPONSES values and derivatives; drain as gate;
    *_kept: at which voltage a line was evaluated, *_apart: how far it is from there, *_charge: value and derivative;
    *_version: how often a line was evaluated, and at which of its two lines a device was;
    tied_kept: current and two conductances a device; kept: FLOAT_KEPT rows a floating device.
    tied_drawn (devices 4, LANES): V and ln of the current factor of the lower device, then of a cascode;
    float_drawn (devices 2, LANES): V and the factor.
    """

    x: Array
    offset: Array
    volt: Array
    current: Array
    charge: Array
    matrix: Single
    source: Array
    gate: Single
    response: Single
    drain: Single
    gate_kept: Array
    gate_apart: Array
    gate_charge: Array
    gate_version: Whole
    drain_kept: Array
    drain_apart: Array
    drain_charge: Array
    drain_version: Whole
    tied_kept: Single
    tied_version: Whole
    tied_drawn: Single
    float_drawn: Array
    kept: Array


class Solver(NamedTuple):
    """The LU program, by place in the matrix: for pivot k, entries below it, and for each what it takes from the row.

    pivot (n,); below_at (n + 1,) into below; right_at (n + 1,) into right, the row of pivot k; target_at (below + 1,)
    into target: where each product lands. below_row, right_row: rows of the unknowns that these entries belong to.
    seen_at (n + 1,) into seen and seen_row: for unknown k the entries of others' rows, before any fill.
    """

    pivot: Whole
    below_at: Whole
    below: Whole
    below_row: Whole
    right_at: Whole
    right: Whole
    right_row: Whole
    target: Whole
    target_at: Whole
    seen_at: Whole
    seen: Whole
    seen_row: Whole


class Saved(NamedTuple):
    """Quantities saved at each step: kind (n,) 0 a voltage, 1 a source, 2 a transistor; which (n,) net, or device;

    nets_at (n + 1,) into nets: those behind a source. time (LANES, rows); values (LANES, rows, n); found (n, LANES).
    """

    kind: Whole
    which: Whole
    sign: Array
    nets_at: Whole
    nets: Whole
    time: Array
    values: Array
    found: Array


BEYOND = 0.6  # V beyond the rails: a latch that floats is lifted so far; from 0.1 V on a device is its table's tangent


class March(NamedTuple):
    """State of a tile's lanes in time, each at its own. clock (CLOCKS, LANES), pace (PACES, LANES): see the constants;

    corner (n, LANES) s; sources (n, sources, LANES): at the corners; x0, x1, x2: solutions now and before; guess: the
    predicted one; q0, q1: charges; residual, inverse: rows of work; low, high: V by net; weight: see `newton._weigh`;
    held (n, 2): row and siemens that pull it to hold (n, LANES), V;
    limits: Newton's V, error of a step V, largest step s, first step s, error of a step over the step's change, and
    highest voltage, V.
    """

    clock: Array
    pace: Array
    corner: Array
    sources: Array
    x0: Array
    x1: Array
    x2: Array
    guess: Array
    q0: Array
    q1: Array
    low: Array
    high: Array
    weight: Array
    inverse: Array
    residual: Array
    held: Array
    hold: Array
    limits: Array
