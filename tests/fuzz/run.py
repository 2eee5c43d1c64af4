"""Fuzz every loader in this process: `python tests/fuzz/run.py SEED COUNT` prints what came of it as JSON.

Each mutation must be read or be refused by a CosimError, run no code, and take at most SECONDS of processor time. One
whose checksum does not fit must not be read: it is refused, or counts as not there, or is written again as it was. A
mutation is found again by its seed and number: `python tests/fuzz/run.py SEED COUNT NUMBER` runs that one alone. A
campaign that is asked to end (SIGTERM) says what it has found until then.
"""

import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import mutate
from targets import Target, targets

from cosim.base.errors import CosimError

SECONDS = 5.0  # of processor time, for one mutation
_ADDRESSES = 4 << 30  # bytes of address space beyond what stands when the loaders are there: a bound if all others fail


OUTCOMES = "read", "refused", "measured anew", "damaged"  # damaged: not read, because its checksum does not fit
ENDING: list[int] = []  # signals to end


class TooSlow(BaseException):
    """Not an Exception, so that no loader catches it."""


def peak_memory() -> float:
    """The most memory that this process held since `clear_peak`, MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def clear_peak() -> None:
    """Leaves out what was held before, by the fuzzer itself for one."""
    Path("/proc/self/clear_refs").write_text("5")


def run_mutation(target: Target, whole: bytes, seed: int, number: int) -> str:
    """What came of one mutation: one of OUTCOMES, or the error that must not be."""
    content = target.mutate(random.Random(f"{seed} {number}"), whole)
    damaged = target.fits is not None and not target.fits(content)
    beside = set(target.path.parent.iterdir())
    target.path.write_bytes(content)
    del content
    clear_peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        outcome = "measured anew" if target.load() is None else "read"
        if damaged and outcome == "read" and target.path.read_bytes() != whole:
            return "read, and its checksum does not fit"
        return "damaged" if damaged else outcome
    except CosimError as error:
        str(error).encode()  # a message must reach a terminal
        return "damaged" if damaged else "refused"
    except (Exception, TooSlow):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for path in set(target.path.parent.iterdir()) - beside:  # of a training that came to its end
            path.unlink()
        target.path.write_bytes(whole)


def main(seed: int, count: int, only: int | None) -> dict[str, object]:
    """Counts of outcomes, what went wrong, the peak of memory and the slowest mutation."""
    warnings.simplefilter("error")  # a warning of numpy or torch on the screen is no message
    faults, outcomes, slowest, largest = [], {}, (0.0, ""), (0.0, "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        mutate.Code.target = str(folder / "canary")
        found = targets(folder)
        whole = [target.path.read_bytes() for target in found]
        for target, content in zip(found, whole, strict=True):
            target.load()  # the valid input, and all that is imported on the way
            target.path.write_bytes(content)
        clear_peak()
        start = peak_memory()
        there = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (there + _ADDRESSES, resource.RLIM_INFINITY))
        for number in range(count) if only is None else [only]:
            if ENDING:
                break
            target, content = found[number % len(found)], whole[number % len(found)]
            before = time.process_time()
            outcome = run_mutation(target, content, seed, number)
            slowest = max(slowest, (time.process_time() - before, f"{target.name}, {number}"))
            largest = max(largest, (peak_memory(), f"{target.name}, {number}"))
            kinds = outcomes.setdefault(target.name, dict.fromkeys(OUTCOMES, 0))
            if outcome in kinds:
                kinds[outcome] += 1
            else:
                faults.append(f"seed {seed}, number {number}, {target.name}:\n{outcome}")
                print(faults[-1], file=sys.stderr, flush=True)
        ran = Path(mutate.Code.target).exists()
    done = len(faults) + sum(sum(kinds.values()) for kinds in outcomes.values())
    return {
        "mutations": done, "faults": faults, "code_ran": ran, "outcomes": outcomes, "slowest_s": slowest[0],
        "slowest": slowest[1], "start_mb": start, "peak_mb": largest[0], "largest": largest[1],
    }  # fmt: skip


def stop(*_: object) -> None:
    """Ends a mutation that takes too long."""
    raise TooSlow


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGTERM, lambda number, _: ENDING.append(number))
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)))
