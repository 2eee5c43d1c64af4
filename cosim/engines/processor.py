"""Processor time of a process, and how it ended.

A limit counts the processor's time: on a machine with other work, a clock on the wall shows how much there is of that.
"""

import os
import signal
import subprocess
from pathlib import Path
from time import monotonic

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 0.5  # s between looks
WAIT = 10  # times its limit of the processor's time: so long a process may wait for its turn, or for anything else


def processor_time(pid: int) -> float | None:
    """Return what a simulator's process, its children and theirs have used, s; None where the system does not tell.

    What has ended and was waited for counts, too. Source: proc(5), /proc/pid/stat and /proc/pid/task/tid/children.
    """
    there = Path(f"/proc/{pid}")
    try:
        fields = (there / "stat").read_text().rpartition(")")[2].split()
        children = [int(one) for path in there.glob("task/*/children") for one in path.read_text().split()]
    except (OSError, ValueError):
        return None
    return sum(map(int, fields[11:15])) / _TICKS + sum(processor_time(child) or 0.0 for child in children)


def wait_within(process: "subprocess.Popen[str]", seconds: float) -> str:
    """Return what a simulator's process prints until it ends, which is waited for.

    Killed after so many seconds of the processor, or WAIT times as long in all. Raises subprocess.TimeoutExpired.
    """
    began = monotonic()
    with process:
        while True:
            try:
                return process.communicate(timeout=min(seconds, _LOOK))[0]
            except subprocess.TimeoutExpired:
                used, waited = processor_time(process.pid), monotonic() - began
                if waited > WAIT * seconds or (waited if used is None else used) > seconds:
                    process.kill()
                    raise
            except BaseException:  # Ctrl-C leaves nothing behind
                process.kill()
                raise


def format_status(status: int) -> str:
    """Return how a simulator's process ended, by `subprocess`'s status: such as `SIGSEGV` or `exit status 1`."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"exit status {status}"
