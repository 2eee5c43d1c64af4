"""Derivatives of a device's tables are those of its values, on the axes and beyond them."""

from collections import namedtuple
from itertools import product

import numpy as np
import pytest

pytest.importorskip("numba")
from cosim.engines.batch.compiled import jit
from cosim.engines.batch.device_tables import FOUR_TERMINAL_COLUMNS, RANK, RESPONSES
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.table_lookup import (
    LINE_WIDTH,
    RESPONSE_WIDTH,
    evaluate_gate_line,
    spline_columns,
)

CELLS, RATE = 4, 40.0  # of every axis, which begins at 0 V and ends at 0.1 V
PLACES = -0.06, 0.043, 0.17  # below an axis, on it, beyond it, V
H = 1e-6  # a difference over 2 H: error of H^2 times a third derivative (0 in a cell, as of a product of quadratics)


@jit
def columns(values, first, rows, places, rates, out):
    """spline_columns, as kernels call it."""
    return spline_columns(values, first, rows, places, rates, out)


@pytest.mark.parametrize("at", list(product(PLACES, repeat=3)))
def test_slopes_of_a_four_terminal_table(at):
    side = CELLS + 2
    beyond = np.zeros((LANES, FOUR_TERMINAL_COLUMNS))
    table = np.random.default_rng(5).standard_normal((side**3, FOUR_TERMINAL_COLUMNS))
    table = np.concatenate([table, beyond]).ravel().astype(np.float32)

    def found(voltages):
        places = np.clip(np.array(voltages) * RATE, 0, CELLS)
        cells = np.minimum(places.astype(int), CELLS - 1)
        out = np.array(voltages) - places / RATE
        first = (cells[0] * side + cells[1]) * side + cells[2]
        four = columns(table, first, (side, side), tuple(places - cells), (RATE,) * 3, tuple(np.round(out, 15)))
        return np.array(four)

    slopes = found(at)[:, 1:]
    for axis, step in enumerate(H * np.eye(3)):
        difference = (found(at + step) - found(at - step))[:, 0] / (2 * H)
        # values of up to 1e3 differ by their rounding, 1e-13, over 2 H; slopes are some 40 a volt
        np.testing.assert_allclose(slopes[:, axis], difference, rtol=1e-6, atol=1e-6)


Circuit = namedtuple("Circuit", "gate_lines gate_axis gate_table_start gate_table response_table_start response_table")
Tile = namedtuple("Tile", "gate_functions gate_charge gate_point gate_responses gate_shift")


@jit
def gate_line(s, v, x):
    """evaluate_gate_line, as kernels call it, of a device that deviates."""
    evaluate_gate_line(s, v, 0, 0, x, True)


@pytest.mark.parametrize("x", PLACES)
def test_slopes_of_a_gate_line(x):
    random = np.random.default_rng(6)
    lines = random.standard_normal((CELLS, 4, LINE_WIDTH)).ravel().astype(np.float32)
    responses = random.standard_normal((CELLS, 4, RESPONSE_WIDTH)).ravel().astype(np.float32)
    none = np.zeros(1, dtype=np.int64)
    axis = np.array([[0.0, RATE, CELLS]])
    s = Circuit(np.zeros((1, 3), dtype=np.int64), axis, none, lines, none, responses)

    def found(voltage):
        v = Tile(*(np.zeros((rows, LANES)) for rows in (2 * RANK, 2, 1, 2 * RESPONSES, 1)))
        gate_line(s, v, voltage)
        return v

    here, above, below = found(x), found(x + H), found(x - H)
    for field in "gate_functions", "gate_responses", "gate_charge":
        values, slopes = np.split(getattr(here, field)[:, 0], 2)
        difference = (getattr(above, field) - getattr(below, field))[: len(values), 0] / (2 * H)
        np.testing.assert_allclose(slopes, difference, rtol=1e-6, atol=1e-6)
