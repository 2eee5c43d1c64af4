"""A real cluster of processes: the same records, with a worker killed in mid-run; one message for a lost scheduler."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from cosim.base.errors import SimulationError
from cosim.verbs.montecarlo.execute import BEHAVIORAL_CHUNK, dask_cluster, run_on
from cosim.verbs.montecarlo.trial import run_chips

distributed = pytest.importorskip("distributed", reason="pip install 'cosim-analog[dask]'")


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker_gives_the_same_records(trial):
    wanted = run_chips(trial, tuple(range(trial.plan.chips)))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        found = []
        for record in run_on(client.get_executor(pure=False), trial, range(trial.plan.chips), 2, 60.0):
            if not found:
                os.kill(next(iter(workers.values())), signal.SIGKILL)
            found.append(record)
    assert sorted(found, key=lambda record: record.chip) == wanted


@contextmanager
def scheduler_and_worker(folder):
    """A scheduler with one worker, each a process: the first of them and its address."""
    started = []

    def start(module, *arguments):
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    file = folder / "scheduler.json"
    try:
        scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        while not file.exists() or not file.read_text().endswith("}"):
            assert scheduler.poll() is None
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        start("dask_worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
        with distributed.Client(address) as client:
            client.wait_for_workers(1)
        yield scheduler, address
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_dies_is_one_message(trial, tmp_path, capfd):
    wanted, found = run_chips(trial, tuple(range(BEHAVIORAL_CHUNK))), []

    def run(scheduler, address):
        with dask_cluster(address) as cluster:
            assert cluster.slots == 1
            for record in run_on(cluster, trial, range(trial.plan.chips), cluster.slots, 60.0):
                if not found:
                    scheduler.kill()
                found.append(record)

    with scheduler_and_worker(tmp_path) as (scheduler, address):
        capfd.readouterr()
        words = f"--dask {address}: the scheduler does not answer any more; every chip .* kept.*same command goes on"
        with pytest.raises(SimulationError, match=words):
            run(scheduler, address)
        assert capfd.readouterr().err == ""  # none of distributed's own lines
    assert found == wanted
