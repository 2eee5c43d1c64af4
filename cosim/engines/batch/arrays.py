"""Arrays that the kernels work on: a circuit, its LU, the values and transients of a tile, and probes.

A tile is LANES benches of one circuit side by side; an array (rows, LANES) holds a row of LANES numbers for each net,
unknown or device. Arrays that list a varying number of items for each of n things have a companion `*_start` (n + 1,):
the items of k are those from start[k] to start[k + 1].
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Whole = NDArray[np.int64]

# Modes of `evaluate`. JACOBIAN: the matrix, and the currents and charges of unknown nets; FULL: currents and charges of
# all nets; TANGENT: these again without evaluating any device anew, for a solution close to the last one.
JACOBIAN, FULL, TANGENT = np.int64(0), np.int64(1), np.int64(2)  # numba would compile a kernel anew for each plain int
GROUND = 0  # index of its net
OVERRANGE = (
    0.6  # V beyond the rails: a latch that floats is lifted so far; from 0.1 V on a device is its table's tangent
)
NOT_EVALUATED = 1e9  # V: the point of a line or device that was never evaluated
FOUR_TERMINAL_ROWS = 19  # V_G, V_S, V_D where it was evaluated; I, Q_G, Q_S, Q_D, each with three derivatives

HIGHEST_ORDER = 4  # of a BDF formula; so many charges before the present one are kept, and one solution more

# Rows of TransientState.clock. Times and lengths of steps in s; NEXT_BREAKPOINT: an index; ITERATION: of the step in
# course; SAVED_ROWS: of the probes; STATUS: RUNNING, FINISHED or FAILED; the three rows behind it count since the
# beginning. AGE and the rows behind it: time from the last but one, two, ... solutions to the last one.
NOW, END, NEXT_STEP, STEP = range(4)
STEPS_SINCE_BREAKPOINT, NEXT_BREAKPOINT, ITERATION, ENDS_AT_BREAKPOINT, SAVED_ROWS, STATUS = range(4, 10)
ACCEPTED_STEPS, REFUSED_STEPS, ITERATIONS, AGE = range(10, 14)
CLOCK_ROWS = AGE + HIGHEST_ORDER
RUNNING, FINISHED, FAILED = 0.0, 1.0, 2.0  # FAILED: no step converged

# Rows of TransientState.step, the step in course. ALPHA_0: factor of the present charge in dQ/dt, 1/s; ALPHA_1 and
# the rows behind it: of those before; PREDICTOR and the rows behind it: factors of the last solutions in the
# prediction; ERROR_SHARE: local truncation error over the distance to the prediction; NEWTON_MOVE: the last update, V;
# ERROR_RATIO: the error over what it may be; ACCEPTED: the lane accepts its step; BEGINS_STEP: it begins one.
ERROR_SHARE, NEWTON_MOVE, ERROR_RATIO, ACCEPTED, BEGINS_STEP, ALPHA_0, ALPHA_1 = range(7)
PREDICTOR = ALPHA_1 + HIGHEST_ORDER
STEP_ROWS = PREDICTOR + HIGHEST_ORDER + 1

# Indices of TransientState.limits: last Newton update of a converged step, V; local truncation error of a step, V;
# first step behind a breakpoint, s; share of a step's change that its error may be; highest voltage, V; highest order
# of the BDF formula, 2 to HIGHEST_ORDER.
NEWTON_TOLERANCE, LTE_ABSOLUTE, FIRST_STEP, LTE_RELATIVE, HIGHEST_VOLTAGE, ORDER = range(6)


class CircuitArrays(NamedTuple):
    """A circuit in the batched engine, which all instances share.

    Nets are indices, rows of unknowns too; the last row is ground's.
    row (nets,): the unknown of each net; offsets (n, 2): net and voltage source above that unknown, offset_sign (n,);
    current_sources (n, 3): two nets and a source;
    capacitor_start (nets + 1,) into capacitor_net and capacitance, F: the charge of a net is the sum of capacitance
    times the voltages of these nets; capacitance_matrix (entries,): the same in the places of the matrix;
    resistors (n, 2): two nets of each, and conductance (n,), S; conductance_matrix (entries,) as capacitance_matrix;
    gate_lines, drain_lines (n, 7): net, source net, table, four entries of the matrix; *_sign: 1 for n, -1 for p;
    *_size: total multiplicity; *_source_known: the source net's voltage is known;
    three_terminal (n, 10): gate line, drain line, drain net, source net, six entries of the matrix, and *_sign, *_size.
    They come in three groups that end at three_terminal_groups: only the drain is unknown; the source is unknown;
    neither is. Its last number: how many of the first group, whose source is ground, come first.
    upper_share (n,): of the gate's area, that of the upper device of two in series, 0 for a single one;
    four_terminal (n, 14): nets of gate, drain, source and bulk, table, nine entries of the matrix;
    gate_table, drain_table, response_table, four_terminal_table: all tables in one; *_table_start: where each begins;
    *_axis (tables, 3 or 11): start, 1 / step and cells of each axis, see `assemble`.
    """

    row: Whole
    offsets: Whole
    offset_sign: Array
    current_sources: Whole
    capacitor_start: Whole
    capacitor_net: Whole
    capacitance: Array
    capacitance_matrix: Array
    resistors: Whole
    conductance: Array
    conductance_matrix: Array
    gate_lines: Whole
    gate_sign: Array
    gate_size: Array
    gate_source_known: NDArray[np.bool_]
    drain_lines: Whole
    drain_sign: Array
    drain_size: Array
    drain_source_known: NDArray[np.bool_]
    three_terminal: Whole
    three_terminal_sign: Array
    three_terminal_size: Array
    upper_share: Array
    three_terminal_groups: Whole
    four_terminal: Whole
    four_terminal_sign: Array
    four_terminal_size: Array
    gate_table: Single
    drain_table: Single
    response_table: Single
    gate_table_start: Whole
    gate_axis: Array
    drain_table_start: Whole
    drain_axis: Array
    response_table_start: Whole
    four_terminal_table: Single
    four_terminal_table_start: Whole
    four_terminal_axis: Array


class LuProgram(NamedTuple):
    """The LU eliminations of the batched solver for one sparsity pattern, by entries, in the order of the pivots.

    pivot (n,): the entry of each; below_start (n + 1,) into below: entries under a pivot; right_start (n + 1,) into
    right: entries right of it; target_start (below + 1,) into target: where each product of the two lands. below_row,
    right_row: rows of the unknowns that these entries belong to.
    neighbour_start (n + 1,) into neighbour_entry and neighbour_row: the entries in unknown k's column of the other
    rows, before any fill.
    """

    pivot: Whole
    below_start: Whole
    below: Whole
    below_row: Whole
    right_start: Whole
    right: Whole
    right_row: Whole
    target: Whole
    target_start: Whole
    neighbour_start: Whole
    neighbour_entry: Whole
    neighbour_row: Whole


class TileValues(NamedTuple):
    """Numbers that the batched engine computes with for a tile of benches, each (rows, LANES).

    x: unknowns, V, with a row of zeros behind them; offset: voltage of each net above its unknown, V; voltage: of nets;
    current: out of each net, A; charge: on each net, C; matrix: entries, A/V, and SPARE more, where those of ground
    fall; source: values of sources, V or A;
    gate_functions, drain_functions: RANK values and RANK derivatives a line; gate_responses: RESPONSES of each;
    tangent_range (3,): V, how far a line, a saturated drain line and a four-terminal device move on their tangents;
    gate_shift: mean threshold shift of the devices on a gate line, by which the gate's charge is shifted, V;
    *_point: voltage at which a line was evaluated last, *_delta: its distance from there, V; *_charge: value and
    derivative a line; *_version: how often a line was evaluated, and of a device the sum of its two lines' when it was;
    three_terminal_tangent: current, g_m and g_ds a device; four_terminal_tangent: FOUR_TERMINAL_ROWS a device;
    three_terminal_deviation (4 rows a device): threshold shift, V, and ln of the current factor, of the lower device
    and then of the upper one of a cascode over it; four_terminal_deviation (2 rows): threshold shift, V, and the
    factor.
    """

    x: Array
    offset: Array
    voltage: Array
    current: Array
    charge: Array
    matrix: Single
    source: Array
    tangent_range: Array
    gate_functions: Single
    gate_responses: Single
    gate_shift: Array
    drain_functions: Single
    gate_point: Array
    gate_delta: Array
    gate_charge: Array
    gate_version: Whole
    drain_point: Array
    drain_delta: Array
    drain_charge: Array
    drain_version: Whole
    three_terminal_tangent: Single
    three_terminal_version: Whole
    three_terminal_deviation: Single
    four_terminal_deviation: Array
    four_terminal_tangent: Array


class TransientState(NamedTuple):
    """The transients of a tile's lanes in the batched engine, each at a time of its own.

    clock (CLOCK_ROWS, LANES), step (STEP_ROWS, LANES), limits (6,): see the names of their rows above;
    breakpoint (n, LANES): corners of the sources, s; longest_step (n, LANES): before each, s; source_values
    (n, sources, LANES): at each, V or A;
    x (HIGHEST_ORDER + 1, rows, LANES): the last solutions, the latest first, V; predicted (rows, LANES): the prediction
    of the next; charge (HIGHEST_ORDER, nets, LANES): at the last solutions, C; low, high (nets, LANES): lowest and
    highest voltage so far, V;
    error_weight: how much of an error at an unknown its neighbours see, see `newton`; inverse_diagonal, residual: room
    for Newton's method; clamps (n, 2): unknowns and the conductances, S, that pull them to clamp_voltage (n, LANES), V.
    """

    clock: Array
    step: Array
    breakpoint: Array
    longest_step: Array
    source_values: Array
    x: Array
    predicted: Array
    charge: Array
    low: Array
    high: Array
    error_weight: Array
    inverse_diagonal: Array
    residual: Array
    clamps: Array
    clamp_voltage: Array
    limits: Array


class ProbeBuffer(NamedTuple):
    """The probes of the batched engine, with room for their values at every accepted step.

    kind (n,): 0 for the voltage of a net, 1 for the current of a source, 2 for that of a transistor; which (n,): index
    of the net or device; sign (n,): factor of the current; nets_start (n + 1,) into nets: nets whose currents add up to
    a source's; time (LANES, rows), s; values (LANES, rows, n), V or A; present (n, LANES): values at the present step.
    """

    kind: Whole
    which: Whole
    sign: Array
    nets_start: Whole
    nets: Whole
    time: Array
    values: Array
    present: Array
