"""Workers end with their parent, even when it is killed in the middle of their work."""

import os
import signal
import subprocess
import sys
import time

PARENT = """
import os, sys, time
from cosim.simulation.workers import worker_pool
with worker_pool(1) as pool:
    print(pool.schedule(os.getpid).result(), flush=True)
    pool.schedule(time.sleep, args=(120,))
    time.sleep(120)
"""


def alive(pid):
    """Whether a process runs; one that ended and waits for its parent does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(found) and not found.startswith("Z")


def test_a_killed_parent_leaves_no_orphan(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(f"if __name__ == '__main__':\n{''.join('    ' + line + chr(10) for line in PARENT.splitlines())}")
    with subprocess.Popen([sys.executable, str(script)], stdout=-1, text=True) as process:
        worker = int(process.stdout.readline())
        assert alive(worker)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    end = time.monotonic() + 20  # it looks every second
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(worker)
