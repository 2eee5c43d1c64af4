"""One deck at a time in this process: exact results, failures told apart, same bytes twice, memory that stays flat."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosim.circuit.bench import PRECISE, Tolerances
from cosim.circuit.dialects.ngspice import format_options
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.ngspice.process import run_deck

pytestmark = pytest.mark.ngspice

DIVIDER = """* divider
v1 in 0 dc 3e+00
r1 in out 1e+03
r2 out 0 2e+03
.save v(out) i(v1)
.op
.end
"""
RC = """* charging
v1 in 0 pwl(0 0 1e-06 1)
r1 in out 1e+06
c1 out 0 1e-09
.options reltol=1e-05
.save v(out)
.tran 1e-05 5e-03 0 1e-05
.end
"""


def test_divider():
    waves = run_deck(DIVIDER)
    assert not isinstance(waves, Failure)
    # linear: solved in one step, but for ngspice's own gmin of 1e-12 S beside 2 kohm: 1e-9
    assert waves["out"] == pytest.approx([2.0], rel=2e-9, abs=0)
    assert waves["v1#branch"] == pytest.approx([-1e-3], rel=2e-9, abs=0)
    assert set(waves) == {"out", "v1#branch"}


def test_charging_follows_the_exponential():
    waves = run_deck(RC)
    assert not isinstance(waves, Failure)
    time, tau = waves["time"], 1e-3
    expected = 1 - np.exp(-np.maximum(time - 0.5e-6, 0) / tau)  # a ramp of 1 us is a step at its middle, to 4e-8
    # trapezoidal rule: (step / tau)^2 / 12 = 8e-6, and reltol 1e-5
    np.testing.assert_allclose(waves["out"][time > 2e-6], expected[time > 2e-6], atol=5e-5)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("m1 in in 0 0 no_such_model w=1e-06 l=1e-06", "no_such_model"),
        ("xcell in out no_such_block", "no_such_block"),
    ],
)
def test_rejected_deck(line, words):
    deck = DIVIDER.replace(".save", f"{line}\n.save")
    failure = run_deck(deck)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.DECK
    assert failure.kind.value == "the simulator rejected the deck"
    assert words in failure.detail
    assert failure.deck == deck


def test_no_convergence():
    """Two voltage sources that contradict each other: the matrix is singular."""
    failure = run_deck(DIVIDER.replace(".save", "v2 in 0 dc 4e+00\n.save"))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CONVERGENCE
    assert failure.detail


def test_no_convergence_in_a_transient():
    """A source that jumps back whenever its node crosses 0.5 V: the time step shrinks to nothing."""
    deck = RC.replace(
        "c1 out 0 1e-09", "c1 out 0 1e-09\nb1 x 0 v=(v(x) > 0.5) ? -1e3 * v(out) : 1 + v(out)\nr9 x 0 1e+03"
    )
    failure = run_deck(deck)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CONVERGENCE


def test_a_failure_leaves_no_trace():
    before = run_deck(DIVIDER)
    run_deck(DIVIDER.replace(".save", "m1 in in 0 0 no_such_model\n.save"))
    run_deck(DIVIDER.replace(".save", "v2 in 0 dc 4e+00\n.save"))
    after = run_deck(DIVIDER)
    assert not isinstance(before, Failure) and not isinstance(after, Failure)
    assert {name: values.tobytes() for name, values in before.items()} == {n: v.tobytes() for n, v in after.items()}


def test_same_deck_same_bytes():
    runs = [run_deck(RC) for _ in range(3)]
    assert len({tuple((name, values.tobytes()) for name, values in sorted(waves.items())) for waves in runs}) == 1


def test_results_do_not_share_memory_with_ngspice():
    first = run_deck(DIVIDER)
    kept = first["out"].copy()
    run_deck(DIVIDER.replace("3e+00", "9e+00"))
    np.testing.assert_array_equal(first["out"], kept)


def test_options_reach_ngspice(technology):
    """gmin across a reverse-biased diode is a current that can be read back."""
    for gmin in (1e-12, 1e-9):
        options = format_options(Tolerances(gmin=gmin, reltol=PRECISE.reltol), technology)
        deck = f"* gmin\nv1 a 0 dc -1e+00\nd1 a 0 plain\n.model plain d is=1e-20\n{options}.save i(v1)\n.op\n.end\n"
        waves = run_deck(deck)
        assert not isinstance(waves, Failure)
        assert float(waves["v1#branch"][0]) == pytest.approx(gmin, rel=1e-3, abs=0)


MEMORY = """
import sys
from cosim.engines.ngspice.process import run_deck

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

deck = sys.stdin.read()
for _ in range(30):  # libraries, caches and the allocator's arenas settle
    run_deck(deck)
before = resident()
for _ in range(int(sys.argv[1])):
    run_deck(deck)
print(resident() - before)
"""


def grown(runs):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEMORY, str(runs)], input=RC, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc/self/statm")


@needs_proc
def test_memory_stays_flat_over_200_runs():
    # A circuit that stays loaded costs 60 kB and more, that is 12 MB; the bound leaves the allocator some pages.
    assert grown(200) <= 5e6


@needs_proc
@pytest.mark.slow
def test_memory_stays_flat_over_1000_runs():
    assert grown(1000) <= 10e6


def test_too_old_ngspice_is_named(tmp_path):
    script = (
        "import cosim.engines.ngspice.library as library; library.MINIMUM_NGSPICE = 999\n"
        "import cosim.engines.ngspice.process as ngspice; ngspice.MINIMUM_NGSPICE = 999\n"
        "ngspice.run_deck('* any\\n.end\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"MissingToolError: ngspice must be at least 999, not \d+ .*NGSPICE_LIBRARY_PATH", done.stderr)
