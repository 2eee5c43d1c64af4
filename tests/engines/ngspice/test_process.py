"""ngspice's own process: what ends it is named, its work is repeated, and it outlives neither parent nor limit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cosim.engines.engine import Failure, FailureKind
from cosim.engines.ngspice import process
from cosim.engines.ngspice.process import NgspiceProcess, run_analyses, run_deck
from cosim.engines.processor import format_status

pytestmark = pytest.mark.ngspice

DIVIDER = "* a divider\nv1 in 0 dc 3 ac 1\nr1 in out 1k\nr2 out 0 2k\n.save v(out)\n.op\n.end\n"
ENDLESS = "* an endless run\nv1 in 0 sin(0 1 1k)\nr1 in out 1k\nc1 out 0 1u\n.save v(out)\n.tran 1u 1000 0 1u\n.end\n"


def ngspice_pid():
    assert run_deck(DIVIDER)["out"] == pytest.approx([2.0])
    return process._process._process.pid


def gone(pid):
    """Whether a process has ended and was waited for; after 20 s at most."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def dying(monkeypatch):
    """(deaths, signal) -> nothing: so many of the next requests find ngspice dead of it."""

    def arrange(deaths, number):
        left = [deaths]
        ask = NgspiceProcess.ask

        def killed(self, *asked):
            if left[0]:
                left[0] -= 1
                os.kill(self._process.pid, number)
            return ask(self, *asked)

        monkeypatch.setattr(NgspiceProcess, "ask", killed)

    return arrange


def test_it_is_another_process_and_one_for_all_decks():
    pid = ngspice_pid()
    assert pid != os.getpid()
    assert ngspice_pid() == pid


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_death_is_named_and_the_deck_runs_again(dying, number, caplog):
    before = ngspice_pid()
    dying(1, number)
    assert run_deck(DIVIDER)["out"] == pytest.approx([2.0])
    assert [record.message for record in caplog.records] == [
        f"ngspice ended by {number.name} on a divider; a new one runs it again"
    ]
    assert gone(before)  # and waited for: a zombie would still have its number
    assert ngspice_pid() != before


def test_a_refused_deck_is_the_last_of_its_process():
    before = ngspice_pid()
    found = run_deck(DIVIDER.replace(".save", "xa in no_such_block\n.save"))
    assert isinstance(found, Failure) and found.kind is FailureKind.DECK
    assert gone(before)
    assert ngspice_pid() != before


def test_a_deck_that_kills_twice_is_a_failure(dying):
    dying(2, signal.SIGSEGV)
    found = run_deck(DIVIDER)
    assert isinstance(found, Failure)
    assert (found.kind, found.deck) == (FailureKind.CRASH, DIVIDER)
    assert found.detail == "ngspice ended by SIGSEGV, 2 times, on a divider"
    assert run_deck(DIVIDER)["out"] == pytest.approx([2.0])


def test_a_time_limit_counts_the_time_of_the_processor():
    """A process that is stopped, or that waits for its turn, uses none."""
    began = time.monotonic()
    found = run_deck(ENDLESS, 0.3)
    assert isinstance(found, Failure)
    assert (found.kind, found.detail) == (FailureKind.TIMEOUT, "after 0.3 s of processor time")
    assert time.monotonic() - began > 0.3
    pid = ngspice_pid()
    os.kill(pid, signal.SIGSTOP)
    with subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {pid}"]):
        assert run_deck(DIVIDER, 0.9)["out"] == pytest.approx([2.0])


def test_analyses_come_back_complex_as_they_are():
    point, swept = run_analyses(DIVIDER.replace(".op\n", "").replace("r2", "c1 out 0 1n\nr2"), ["op", "ac dec 1 1 1e6"])
    assert point["out"] == pytest.approx([2.0])
    pole = 1e-9 / (1 / 1e3 + 1 / 2e3)
    expected = 2 / 3 / (1 + 2j * np.pi * swept["frequency"].real * pole)
    np.testing.assert_allclose(swept["out"], expected, rtol=1e-6)


PARENT = """
import sys
from cosim.engines.ngspice import process
from cosim.engines.ngspice.process import run_deck
run_deck(sys.argv[1])
assert "PySpice" not in sys.modules
print(process._process._process.pid, flush=True)
if len(sys.argv) > 2:
    run_deck(sys.argv[2])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent_in_the_middle_of_a_deck(number):
    with subprocess.Popen([sys.executable, "-c", PARENT, DIVIDER, ENDLESS], stdout=-1, text=True) as parent:
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, number)
        parent.wait()
    assert gone(pid)


def test_it_ends_with_a_parent_that_is_done():
    done = subprocess.run([sys.executable, "-W", "error", "-c", PARENT, DIVIDER], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert gone(int(done.stdout))


def test_a_process_that_was_forked_off_has_its_own():
    pid = ngspice_pid()
    read, write = os.pipe()
    if not (child := os.fork()):
        os.write(write, f"{ngspice_pid()}".encode())
        process._process.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) != pid
    assert ngspice_pid() == pid


def test_how_a_process_ended():
    assert [format_status(status) for status in (-11, -9, 1)] == ["SIGSEGV", "SIGKILL", "exit status 1"]
