"""Processes of simulators: Python interpreters of our own, the processor time of a process, and how a process ended.

Time limits count processor time: on a machine with other work, wall time mostly measures that other work.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 0.5  # s between looks
WAIT = 10  # times its limit of the processor's time: so long a process may wait for its turn, or for anything else
_LOOK_FOR_PARENT = 1000  # ms
_LONGEST_END = 10.0  # s, for an interpreter to end once its connection has
_BOOT = """
import json, sys
from importlib import import_module
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = json.loads(connection.recv_bytes())
import_module(sys.argv[2]).serve(connection, int(sys.argv[3]), *sys.argv[4:])
"""


class ProcessDied(Exception):
    """An interpreter of ours ended in the middle of a request; status: its exit status, as `subprocess` gives it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return format_status(self.status)


class Interpreter:
    """A Python interpreter in a process of its own, in which a module's `serve(connection, parent, *arguments)` runs.

    The process is in a process group of its own and imports from this process' `sys.path`. `serve` gets the number of
    this process as `parent`. module: the name to import; stdout: as `subprocess` has it.
    """

    def __init__(
        self, module: str, *arguments: str, stdout: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._connection, there = Pipe()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(there.fileno()), module, str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL, pass_fds=[there.fileno()], process_group=0, stdout=stdout,
                env=environment,
            )  # fmt: skip
        self.alive, self.pid = True, self._process.pid
        self.send(json.dumps([os.path.abspath(path) for path in sys.path]).encode())

    def send(self, content: bytes) -> None:
        """Send a request to the interpreter. Raises ProcessDied where it has ended."""
        try:
            self._connection.send_bytes(content)
        except OSError:
            raise ProcessDied(self._ended()) from None

    def receive(self) -> bytes:
        """Wait for an answer of the interpreter and return it. Raises ProcessDied where the interpreter has ended."""
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError):
            raise ProcessDied(self._ended()) from None

    def _ended(self) -> int:
        """Return the exit status of an interpreter whose connection has ended; it is killed only if it does not end."""
        self.alive = False
        self._connection.close()
        try:
            return self._process.wait(_LONGEST_END)
        except subprocess.TimeoutExpired:
            return self.close()

    def kill(self) -> None:
        """End the interpreter at once; a caller that waits for its answer gets ProcessDied."""
        self._process.kill()

    def close(self) -> int:
        """End the interpreter at once, wait for its end, and return its exit status."""
        self.alive = False
        self.kill()
        self._connection.close()
        return self._process.wait()

    def forget(self) -> None:
        """Close this forked process' copy of the connection, and leave the interpreter to the parent process."""
        self._connection.close()
        self._process.returncode = 0  # as Popen knows one that was waited for


def end_with_parent(connection: Connection, parent: int) -> None:
    """Let this interpreter's process end when its parent process ends, even during a request; ignore SIGINT.

    A thread watches the connection's end and, each second, the parent's number: a killed parent closes nothing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business, wherever the terminal sends it
    threading.Thread(target=_end_with, args=(connection.fileno(), parent), daemon=True).start()


def _end_with(descriptor: int, parent: int) -> None:
    hung_up = select.poll()
    hung_up.register(descriptor, 0)
    while os.getppid() == parent and not hung_up.poll(_LOOK_FOR_PARENT):
        pass
    os._exit(1)


def processor_time(pid: int) -> float | None:
    """Return the processor time of a simulator's process and its descendants, s; None where it is not known.

    Descendants that have ended and were waited for count as well. Source: proc(5), /proc/pid/stat and
    /proc/pid/task/tid/children.
    """
    there = Path(f"/proc/{pid}")
    try:
        fields = (there / "stat").read_text().rpartition(")")[2].split()
        children = [int(one) for path in there.glob("task/*/children") for one in path.read_text().split()]
    except (OSError, ValueError):
        return None
    return sum(map(int, fields[11:15])) / _TICKS + sum(processor_time(child) or 0.0 for child in children)


def wait_within(process: "subprocess.Popen[str]", seconds: float) -> str:
    """Wait until a simulator's process ends, and return its output.

    seconds: of processor time; beyond it, or beyond WAIT times as much wall time, the process is killed. Raises
    subprocess.TimeoutExpired then.
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
    """Return how a simulator's process ended, such as `SIGSEGV` or `exit status 1`; status: as `subprocess` has it."""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"exit status {status}"
