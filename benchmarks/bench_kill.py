"""SIGKILL at random moments of nine verbs; the same command goes on, and every byte is that of an unbroken run.

python benchmarks/bench_kill.py [ROUNDS] [VERB]...

A round: a verb is killed up to KILLS times, each at a moment drawn from the length of the run, then runs to its end.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from smoke import shrink

import cosim.cli
from cosim.cli import VERBS, _cosim
from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.types import InputEncoding, Network, Readout

KILLS = 3
PLAN = """
[mismatch]
chips = 40
[noise]
draws = 2
[nominal]
audit = 1
[corners]
audit = 1
corners = ["tt"]
celsius = [27.0]
[decisions]
samples = 2
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """The command line of each verb, on a network of three cells; what it writes is in `folder`/out."""
    net = [str(folder / "net.npz")]
    run = [*net, "--data", str(folder / "data.npz")]
    out, small = ["-o", str(folder / "out")], ["--chips", "60"]
    vary = ["--vary", "i-unit=0.5n,1n", "--vary", "cell-area=1,2", "--trials", "4", "--audit", "1"]
    return {
        "explore": ["explore", *out, *vary, *run, *small],
        "signoff": ["signoff", *run, "--plan", str(folder / "plan.toml"), "--samples", "3", *out],
        "layout": ["layout", *net, "--technology", "gf180mcu", *out],
        "calibrate": ["calibrate", "--units", "3", "-o", str(folder / "out" / "own.json")],
        "trim": ["trim", *run, *small, "--bits", "2-6", *out],
        "train": ["train", "digits", "--cells", "3", "--iterations", "150", "--seeds", "2", "--batch", "8", "-o",
                  str(folder / "out" / "model.pt")],
        "montecarlo": ["montecarlo", *run, "--chips", "400", "--contributions", *out],
        "sweep": ["sweep", *out, "montecarlo", *run, *small, "--over", "area=0.5,1,2"],
        "simulate": ["simulate", *run, "--keep-decks", *out],
    }  # fmt: skip


def make_inputs(folder: Path) -> None:
    """The network, its samples and the plan of the sign-off."""
    rng = np.random.default_rng(26)
    weights = rng.integers(-8, 9, (3, 3)) / 8
    low, high = np.full(3, 0.3), np.full(3, 0.55)
    layer = FirstQuadrantLayer("layer0", ("input",), weights, np.full(3, 0.25), low, high, np.ones(3))
    readout = Readout(("layer0",), rng.integers(-8, 9, (2, 3)) / 8, np.zeros(2), "last")
    save_checkpoint(folder / "net.npz", Network(InputEncoding(np.zeros(3), np.ones(3)), (layer,), readout))
    np.savez(folder / "data.npz", x_test=rng.uniform(size=(20, 4, 3)), y_test=rng.integers(0, 2, 20))
    (folder / "plan.toml").write_text(PLAN)


def begin(words: list[str], log: Path) -> int:
    """Run a command line in a copy of this process, which has its libraries; returns its number."""
    if (number := os.fork()) != 0:
        return number
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.argv = ["cosim", *words]
    try:
        cosim.cli.main()
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
    os._exit(3)


def kill_one(words: list[str], after: float, log: Path) -> bool:
    """Whether the command was still at work when it was killed, `after` so many seconds."""
    number = begin(words, log)
    time.sleep(after)
    os.kill(number, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(number, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones included."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def finish(words: list[str], log: Path) -> dict[str, bytes]:
    """Run to the end; the files of the run, and its exit status among them."""
    status = os.waitstatus_to_exitcode(os.waitpid(begin(words, log), 0)[1])
    out = log.parent / "out"
    return {**contents(out), "exit status": b"%d" % status}


def empty(folder: Path) -> None:
    """Make the folder of a run anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def compare(verb: str, words: list[str], folder: Path, rounds: int) -> bool:
    """Kill a verb in `rounds` rounds and print what came out; whether all bytes were the same in each."""
    rng, log, out = np.random.default_rng([len(verb), rounds]), folder / "log", folder / "out"
    empty(out)
    finish(words, log)  # what is compiled once for this machine is compiled
    empty(out)
    began = time.monotonic()
    whole, lasts = finish(words, log), time.monotonic() - began
    kills, wrong = 0, dict[str, list[str]]()
    for number in range(rounds):
        empty(out)
        for _ in range(rng.integers(1, KILLS + 1)):
            kills += kill_one(words, rng.uniform(0, lasts), log)
        found = finish(words, log)
        if differing := sorted(name for name in {*whole, *found} if whole.get(name) != found.get(name)):
            wrong[f"round {number}"] = differing
    verdict = f"DIFFERENT {wrong}" if wrong else "identical"
    ran = f"{verb:10}  {lasts:5.1f} s  exit {whole['exit status'].decode()}  {len(whole) - 1:4} files"
    print(f"{ran}  {kills:3} kills in {rounds} rounds  {verdict}", flush=True)
    if wrong or whole["exit status"] not in (b"0", b"1"):
        print(log.read_text()[-2000:], file=sys.stderr)
    return not wrong


def main() -> None:
    """Run the rounds of every verb that is asked for, or of all; exit status 1 where a byte differs."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_inputs(folder)
        known = commands(folder)
        verbs = sys.argv[2:] or list(known)
        context = _cosim.make_context("cosim", [], resilient_parsing=True)
        for verb in VERBS:
            _cosim.get_command(context, verb)  # imported before the first copy of this process
        results = [compare(verb, known[verb], folder, rounds) for verb in verbs]
    raise SystemExit(0 if all(results) else 1)


if __name__ == "__main__":
    shrink(globals(), "1", "trim", KILLS=1)
    main()
