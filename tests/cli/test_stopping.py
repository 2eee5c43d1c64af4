"""Ctrl-C and SIGTERM: one line, the right exit status, nothing from worker processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from functools import partial
from operator import call
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.cli import VERBS
from cosim.cli.session import GO_ON, Stop, StoppedError, stopping_on_signals
from cosim.engines.ngspice.process import run_deck

CONTINUES = "the same command continues where it stopped"
ANEW = "the same command begins anew"


@pytest.fixture
def stopped(tmp_path, tiny):
    """(verb, signal, line to wait for, arguments) -> (exit code, lines on stderr); all of its group get the signal."""

    def run(verb, number, wanted, *arguments):
        command = [sys.executable, "-m", "cosim", verb, *map(str, arguments)]
        heard = {signal.SIGINT: signal.SIG_DFL}  # a background job inherits that it is ignored
        with subprocess.Popen(
            command, stdout=-3, stderr=-1, text=True, process_group=0,
            preexec_fn=lambda: [signal.signal(*pair) for pair in heard.items()],
        ) as process:  # fmt: skip
            lines = []
            for line in process.stderr:
                lines.append(line)
                if line.startswith(wanted):
                    break
            os.killpg(process.pid, number)
            lines += process.stderr.readlines()
        return process.returncode, lines

    return run


def options(verb, tiny, folder):
    data = [tiny / "net.npz", "--data", tiny / "data.npz", "-j", 2, "-o", folder]
    return {
        "simulate": data,
        "montecarlo": [*data, "--chips", 1000],
        "train": ["digits", "--cells", 2, "--layers", 1, "--batch", 4, "-o", folder / "model.pt"],
    }[verb]


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("verb", "number", "wanted", "said"),
    [
        ("simulate", signal.SIGINT, "  ngspice: 0 of 5", f"interrupted; {CONTINUES}"),
        ("simulate", signal.SIGTERM, "  ngspice: 1 of 5", f"terminated; {CONTINUES}"),
        ("montecarlo", signal.SIGINT, "  chips: 0 of 1000", f"interrupted; {CONTINUES}"),
        ("train", signal.SIGTERM, "  training: 1 of", f"terminated; {CONTINUES}"),
    ],
)
def test_one_line(stopped, tiny, tmp_path, verb, number, wanted, said):
    code, lines = stopped(verb, number, wanted, *options(verb, tiny, tmp_path))
    assert (code, lines[-1]) == (128 + number, f"cosim: {said}\n"), "".join(lines)
    assert all(line.startswith("  ") for line in lines[:-1]), "".join(lines)


def test_the_hint_knows_the_verb():
    assert set(GO_ON) <= set(VERBS)
    for verb, said in {
        "compare": CONTINUES,
        "signoff": CONTINUES,
        "montecarlo": CONTINUES,
        "trim": CONTINUES,
        "layout": ANEW,
        None: ANEW,
    }.items():
        assert str(StoppedError(KeyboardInterrupt(), verb)) == f"interrupted; {said}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process(number):
    with stopping_on_signals():
        with pytest.raises(Stop) as stop:
            signal.raise_signal(number)
        assert {signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)} == {signal.SIG_DFL}
    assert StoppedError(stop.value, None).exit_code == 128 + number


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopping_on_signals():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.ngspice
def test_a_deck_that_runs_does_not_hold_it_up(capfd):
    """Who waits for ngspice hears a signal at once, and the next deck gets a new ngspice."""
    lines = ["* rc", "v1 in 0 sin(0 1 1k)", "r1 in out 1k", "c1 out 0 1u", ".save v(out)", ".tran 1u 20 0 1u", ".end"]

    short = "\n".join([*lines[:-2], ".tran 1u 1m", ".end"])
    before = run_deck(short)
    with stopping_on_signals():
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(Stop):
            run_deck("\n".join(lines))  # 20,000,000 steps take minutes
    timer.join()
    np.testing.assert_array_equal(run_deck(short)["out"], before["out"])
    assert capfd.readouterr().err == ""


def test_what_had_to_wait_does_not_come_after_the_work(monkeypatch):
    monkeypatch.setattr("cosim.cli.session._LATER", 60.0)
    lock = SimpleNamespace(acquire=None, release=None, __enter__=partial(signal.raise_signal, signal.SIGINT))
    lock.__exit__ = lambda *_: None
    before = signal.getsignal(signal.SIGINT)
    with stopping_on_signals():
        threading.Condition(lock).__enter__()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_lock_that_is_being_taken_is_not_left_behind():
    """A signal between a lock and the block that it guards would leave it taken: who joins a thread waits for ever."""
    seen = []
    lock = SimpleNamespace(
        acquire=None,
        release=None,
        __enter__=partial(signal.raise_signal, signal.SIGINT),
        __exit__=lambda *_: seen.append("left"),
    )

    def take():
        with threading.Condition(lock):
            seen.append("taken")
            time.sleep(5.0)

    with stopping_on_signals(), pytest.raises(Stop):
        take()
    assert seen == ["taken", "left"]


def test_a_lock_that_is_given_for_a_wait_is_not_given_up_twice():
    """A signal between the two would end in a RuntimeError of the block that holds it."""
    lock = threading.Lock()
    both = map(call, [lock.release, partial(signal.raise_signal, signal.SIGINT)])  # no frame of its own, as a lock's
    noisy = SimpleNamespace(
        acquire=lock.acquire,
        release=partial(deque, both, 0),
        __enter__=None,
        __exit__=None,
    )
    with stopping_on_signals(), pytest.raises(Stop), lock:
        threading.Condition(noisy).wait(5.0)
    assert not lock.locked()
