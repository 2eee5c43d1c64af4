"""A circuit as the solver takes it, by hand; and its LU against numpy."""

import numpy as np
import pytest

from cosim.circuit.elements import Capacitor, Mos, Source
from cosim.engines.batch.circuit import (
    SparsityPattern,
    Unsupported,
    check_driven,
    circuit_key,
    devices_of,
    minimum_degree,
    nets_of,
    symbolic_lu,
)


def nmos(name, drain, gate, source, bulk="0", **sizes):
    return Mos(name, drain, gate, source, bulk, "n", sizes.get("w", 1e-6), sizes.get("l", 1e-6), sizes.get("m", 1))


def test_a_star_is_eliminated_from_its_ends():
    """The middle of a star has every end as a neighbour: first, it would fill the matrix; last, nothing is filled."""
    star = [(0, k) for k in range(5)] + [(k, 0) for k in range(5)] + [(k, k) for k in range(5)]
    order = minimum_degree(5, star)
    assert order[:3] == [1, 2, 3] and set(order[3:]) == {0, 4}
    pattern = SparsityPattern(5)
    for i, j in star:
        pattern.at(i, j)
    assert symbolic_lu(pattern).size == len(set(star))


def test_a_program_is_the_lu_of_its_pattern():
    """Executed here entry by entry, its steps solve a random matrix of that pattern as numpy does."""
    rng, n = np.random.default_rng(1), 12
    pattern, dense = SparsityPattern(n), np.zeros((n, n))
    places = [(int(i), int(j)) for i, j in rng.integers(0, n, (30, 2))] + [(k, k) for k in range(n)]
    numbers = np.array([pattern.at(i, j) for i, j in places])
    program = symbolic_lu(pattern)
    a = np.zeros(program.size + 16)
    for (i, j), at in zip(places, program.matrix_rows(numbers), strict=True):
        value = rng.uniform(0.5, 1.0) + 10.0 * (i == j)
        dense[i, j] += value
        a[at] += value
    right = rng.uniform(-1, 1, n)
    b = np.zeros(n)
    b[program.order] = right
    solver = program.lu
    for k in range(n):
        a[solver.pivot[k]] = 1 / a[solver.pivot[k]]
        entries = solver.right[solver.right_start[k] : solver.right_start[k + 1]]
        for e in range(solver.below_start[k], solver.below_start[k + 1]):
            a[solver.below[e]] *= a[solver.pivot[k]]
            first = solver.target_start[e]
            a[solver.target[first : first + len(entries)]] -= a[solver.below[e]] * a[entries]
            b[solver.below_row[e]] -= a[solver.below[e]] * b[k]
    for k in reversed(range(n)):
        own = slice(solver.right_start[k], solver.right_start[k + 1])
        b[k] = (b[k] - a[solver.right[own]] @ b[solver.right_row[own]]) * a[solver.pivot[k]]
    # a matrix whose diagonal dominates: a few roundings, each 1e-16
    np.testing.assert_allclose(b[program.order], np.linalg.solve(dense, right), rtol=1e-12)


def test_ground_has_no_entries():
    pattern = SparsityPattern(2)
    assert pattern.pair(0, -1) == (0, -1, -1, -1)
    program = symbolic_lu(SparsityPattern(1, {(0, 0): 0}))
    assert (program.matrix_rows(np.array([-1, -1])) >= program.size).all()


def test_nets_behind_sources_are_no_unknowns():
    elements = (
        Source("dd", "v", "vdd", "0", 1.8),
        Source("up", "v", "top", "vdd", 0.1),
        Source("hold", "v", "a", "b", 0.2),
        Capacitor("c", "a", "out", 1e-12),
    )
    nets = nets_of(elements, ())
    assert nets.row["vdd"] == nets.row["top"] == nets.row["0"] == -1
    assert nets.row["a"] == nets.row["b"] >= 0 and nets.row["out"] >= 0
    assert nets.unknowns == 2
    assert nets.paths["top"] == (("dd", 1.0), ("up", 1.0))
    assert nets.behind("dd") == (("vdd", "top"), -1.0)


def test_a_loop_of_voltage_sources_is_refused():
    elements = (
        Source("x", "v", "a", "0", 1.0),
        Source("y", "v", "b", "a", 1.0),
        Source("z", "v", "b", "0", 2.0),
    )
    with pytest.raises(Unsupported, match="closes a loop of voltage sources"):
        nets_of(elements, ())


def test_a_self_cascode_is_one_device():
    """One on the other with one gate, and nothing else on the net between them."""
    lower, upper = nmos("l", "mid", "g", "0"), nmos("u", "out", "g", "mid", w=4e-6, l=0.4e-6)
    (found,) = devices_of((lower, upper))
    assert found.parts == ("l", "u") and found.kind.cascode == (4e-6, 0.4e-6)
    assert (found.drain, found.gate, found.source) == ("out", "g", "0")
    tapped = devices_of((lower, upper, Capacitor("c", "mid", "0", 1e-15)))
    assert [device.kind.four_terminal for device in tapped] == [False, True]
    unequal = devices_of((lower, nmos("u", "out", "other", "mid")))
    assert len(unequal) == 2
    twice = devices_of((nmos("l", "mid", "g", "0", m=2), upper))
    assert len(twice) == 2


def test_what_drives_a_net():
    """Sources, resistors, and ends of transistors do; the inner net of a self-cascode is no net of the circuit."""
    pair = (nmos("l", "mid", "d", "0"), nmos("u", "d", "d", "mid", w=4e-6, l=0.4e-6), Source("i", "i", "0", "d", 1e-9))
    nets = nets_of(pair, devices_of(pair))
    assert "mid" not in nets.row
    check_driven(pair, nets)
    floating = (*pair, nmos("x", "d", "loose", "0"), Capacitor("c", "loose", "0", 1e-15))
    with pytest.raises(Unsupported, match="only gates and capacitors are on the net loose"):
        check_driven(floating, nets_of(floating, devices_of(floating)))


def test_a_stack_is_no_cascode():
    """Three in series with one gate: the lowest has the table of a four-terminal device, like the others."""
    ends = ("a", "0"), ("b", "a"), ("out", "b")
    found = devices_of(nmos(f"m{k}", drain, "g", source) for k, (drain, source) in enumerate(ends))
    assert [device.parts for device in found] == [("m0",), ("m1",), ("m2",)]
    assert all(device.kind.four_terminal and device.kind.cascode is None for device in found)


def test_a_drain_on_the_bulk_is_a_source():
    (found,) = devices_of((nmos("x", "0", "g", "a"),))
    assert found.flipped and not found.kind.four_terminal and (found.drain, found.source) == ("a", "0")


def test_a_key_does_not_depend_on_what_is_driven_or_drawn():
    def key(volt, shift, farad=1e-12):
        mos = Mos("m", "d", "d", "0", "0", "n", 1e-6, 1e-6, vt_shift=shift)
        return circuit_key((mos, Source("s", "v", "d", "0", volt), Capacitor("c", "d", "0", farad)))

    assert key(1.0, 0.0) == key(0.5, 0.01)
    assert key(1.0, 0.0) != key(1.0, 0.0, 2e-12)
