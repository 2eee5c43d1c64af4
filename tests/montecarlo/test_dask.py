"""A real cluster of processes: the same records, with a worker killed in mid-run."""

import os
import signal

import pytest

from cosim.montecarlo.execute import run_on
from cosim.montecarlo.trial import run_chips

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
    assert sorted(found, key=lambda record: record["chip"]) == wanted
