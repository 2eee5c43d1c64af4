"""SIGKILL at random moments of a Monte Carlo run, resume, and compare with an unbroken run.

python benchmarks/bench_kill.py [kills]
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from smoke import shrink

from cosim.resources import trained_network_path

CHIPS = 600
COMMAND = [sys.executable, "-c", "from cosim.cli import main; main()", "montecarlo"]


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = np.random.default_rng()
    with tempfile.TemporaryDirectory() as name:
        whole, broken = Path(name) / "whole", Path(name) / "broken"
        command = [*COMMAND, str(trained_network_path("digits_d8")), "--chips", str(CHIPS)]
        subprocess.run([*command, "-o", str(whole)], check=True, capture_output=True)
        done = 0
        while done < kills:
            with subprocess.Popen([*command, "-o", str(broken), "--resume"], stdout=-3, stderr=-3) as process:
                size = _size(broken)
                while process.poll() is None and _size(broken) == size:
                    time.sleep(0.005)
                time.sleep(rng.uniform(0, 0.6))
                if process.poll() is not None:
                    break
                os.kill(process.pid, signal.SIGKILL)
            done += 1
            print(f"kill {done}: {_size(broken)} bytes kept", file=sys.stderr, flush=True)
        subprocess.run([*command, "-o", str(broken), "--resume"], check=True, capture_output=True)
        lines = [(folder / "chips.jsonl").read_bytes() for folder in (whole, broken)]
        summaries = [(folder / "summary.json").read_bytes() for folder in (whole, broken)]
        print(
            f"{done} kills of a run of {CHIPS} chips: records {'identical' if lines[0] == lines[1] else 'DIFFER'}, "
            f"summary {'identical' if summaries[0] == summaries[1] else 'DIFFERS'}"
        )


def _size(folder: Path) -> int:
    path = folder / "chips.jsonl"
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    shrink(globals(), "1", CHIPS=20)
    main()
