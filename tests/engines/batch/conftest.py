"""The batch engine, compiled once for all test processes."""

import fcntl

import pytest

from cosim.circuit.bench import Bench, Tran, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Source
from cosim.engines.engine import Failure


@pytest.fixture(scope="session")
def batch(technology, tmp_path_factory):
    """The engine; whoever comes first compiles into the user's cache while the other processes wait, then they load."""
    pytest.importorskip("numba")
    from cosim.engines.batch.simulator import BatchSimulator

    elements = Source("i", "i", "0", "a", 0.0), Capacitor("c", "a", "0", 1e-12), Source("v", "v", "b", "0", 1.0)
    bench = Bench(Circuit("compiled", (), elements), technology, Tran(1e-3, 1e-2), (Voltage("b"),))
    with (tmp_path_factory.getbasetemp().parent / "batch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = BatchSimulator().run(bench, 300.0)
    assert not isinstance(ran, Failure), ran.detail
    return BatchSimulator()
