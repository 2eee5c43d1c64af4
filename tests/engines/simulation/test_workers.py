"""Workers end with their parent, end a call on demand, and need nothing of their caller's `__main__`."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.engines.processor import ProcessDied
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.simulation.workers import WorkerPool
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.trial import Trial, run_chips

PARENT = """
import os, time
from cosim.engines.simulation.workers import WorkerPool
with WorkerPool(1) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 120)
    time.sleep(120)
"""


def alive(pid):
    """Whether a process runs; one that ended and waits for its parent does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(found) and not found.startswith("Z")


def ends(pid):
    """Whether it is gone within 20 s; a worker looks every second."""
    end = time.monotonic() + 20
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.1)
    return not alive(pid)


def test_a_killed_parent_leaves_no_orphan():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=-1, text=True) as process:
        worker = int(process.stdout.readline())
        assert alive(worker)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert ends(worker)


def test_calls_their_mistakes_and_their_ends():
    with WorkerPool(1) as pool:
        first = pool.submit(os.getpid).result()
        assert first != os.getpid()
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result()
        assert pool.submit(os.getpid).result() == first  # a mistake ends no worker
        with pytest.raises(ProcessDied, match="exit status 7"):
            pool.submit(os._exit, 7).result()
        assert pool.submit(os.getpid).result() != first
        last = pool.submit(os.getpid).result()
    assert ends(last)


def test_a_call_that_runs_is_ended_and_the_next_one_goes_on():
    with WorkerPool(1) as pool:
        worker = pool.submit(os.getpid).result()
        endless, waits = pool.submit(time.sleep, 600), pool.submit(time.sleep, 600)
        assert waits.cancel()
        with pytest.raises(CancelledError):
            waits.result()
        while not endless.running():
            time.sleep(0.01)
        endless.cancel()
        with pytest.raises(ProcessDied, match="SIGKILL"):
            endless.result()
        assert pool.submit(os.getpid).result() != worker


def test_there_are_no_more_workers_than_calls():
    """A thousand million of them would be a list of 100 GB."""
    with WorkerPool(10**9) as pool:
        assert pool.submit(abs, -1).result() == 1
        assert len(pool._workers) == 1


@pytest.mark.parametrize("started", [False, True])
def test_a_signal_while_a_worker_is_started_is_what_ends_the_pool(monkeypatch, started):
    """Ctrl-C between the making of its thread and its start, or in the start itself."""

    def interrupted(worker):
        if started:
            start(worker)
        raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), WorkerPool(1) as pool:
        pool.submit(abs, -1)


def test_a_worker_begins_with_its_preparation():
    with WorkerPool(1, os.putenv, "PREPARED", "yes") as pool:
        assert pool.submit(subprocess.getoutput, "echo $PREPARED").result() == "yes"


def test_what_cannot_be_sent_is_the_calls_mistake():
    with WorkerPool(1) as pool:
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pool.submit(lambda: None).result()
        assert pool.submit(abs, -1).result() == 1


@pytest.fixture(scope="module")
def samples(make_network, technology, calibration):
    """A design and two samples of two frames."""
    design = compile_network(make_network(11, widths=(3,), outputs=2), technology, calibration)
    x = np.random.default_rng(5).uniform(size=(2, 2, 3))
    return design, TestSet(x, np.zeros(2, dtype=np.int64), np.full(2, 2), np.arange(2))


def run_script(folder, arguments, text, content):
    """What a script with `given` unpickled prints, in a folder whose modules must not be imported by the workers."""
    (folder / "given.pickle").write_bytes(pickle.dumps(content))
    for name in ("multiprocessing", "pickle"):
        (folder / f"{name}.py").write_text(f"import sys; sys.exit('{name} of the folder was imported')\n")
    script = f"import sys; sys.path.remove('')if''in sys.path else sys.path.pop(0)\n{text}"
    if arguments == ["script.py"]:
        (folder / "script.py").write_text(script)
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], input=script, cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


SIMULATE = """
import pickle
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
with open("given.pickle", "rb") as file:
    design, test_set = pickle.load(file)
for outcome in simulate_samples(design, test_set, Run(jobs=2)):
    print(outcome.power_w.hex())
"""
CHIPS = """
import pickle
from cosim.verbs.montecarlo.execute import run_local
with open("given.pickle", "rb") as file:
    trial = pickle.load(file)
for record in run_local(trial, range(16), 2, 60.0):
    print(record.behavioral.power.hex())
"""


@pytest.mark.ngspice
def test_samples_from_a_script_without_a_guard(samples, tmp_path):
    found = run_script(tmp_path, ["script.py"], SIMULATE, samples)
    assert found == [outcome.power_w.hex() for outcome in simulate_samples(*samples, Run(jobs=1))]


def test_chips_from_standard_input(samples, tmp_path):
    """As in a notebook, there is no file that `__main__` could be read from again."""
    design, test_set = samples
    trial = Trial(design, test_set, VariationPlan("local", 2, 16))
    found = run_script(tmp_path, ["-"], CHIPS, replace(trial))
    assert sorted(found) == sorted(record.behavioral.power.hex() for record in run_chips(trial, tuple(range(16))))
