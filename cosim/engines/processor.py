"""Processes of simulators: interpreters of our own, the processor time that a process used, and how it ended.

A limit counts the processor's time: on a machine with other work, a clock on the wall shows how much there is of that.
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
    """An interpreter of ours ended in the middle of a request. status: as `subprocess` has it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return format_status(self.status)


class Interpreter:
    """A Python interpreter in a process of its own, which a module's `serve(connection, parent, *arguments)` answers.

    parent: the number of this process. It is in a group of its own, and imports from our folders.
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
        """Send a request to the interpreter. Raises ProcessDied."""
        try:
            self._connection.send_bytes(content)
        except OSError:
            raise ProcessDied(self._ended()) from None

    def receive(self) -> bytes:
        """Wait for what the interpreter sends. Raises ProcessDied."""
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError):
            raise ProcessDied(self._ended()) from None

    def _ended(self) -> int:
        """Return the exit status of an interpreter whose connection has ended: its own, not that of a kill."""
        self.alive = False
        self._connection.close()
        try:
            return self._process.wait(_LONGEST_END)
        except subprocess.TimeoutExpired:
            return self.close()

    def kill(self) -> None:
        """End the interpreter at once; whoever waits for its answer learns it."""
        self._process.kill()

    def close(self) -> int:
        """End the interpreter at once, and return its exit status once it has ended."""
        self.alive = False
        self.kill()
        self._connection.close()
        return self._process.wait()

    def forget(self) -> None:
        """Leave the interpreter to the process that this one was forked from."""
        self._connection.close()
        self._process.returncode = 0  # as Popen knows one that was waited for


def end_with_parent(connection: Connection, parent: int) -> None:
    """Let this interpreter end with its parent, in the middle of a request, too, and not by a signal of the terminal.

    It ends at once by the parent's end of the connection, else after a look: a parent that is killed stops nothing.
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
