"""Netlists of a foundry's own devices against those of cosim's cards: states, readout and power of test samples.

    python benchmarks/bench_foundry.py FOLDER gf180mcu digits_d4 20      a network that ships, or the path of a .pt

Both testbenches of `cosim compile --stimulus N`, with `--models cards` and `--models foundry`, run in ngspice, the
second against the kit's files. FOLDER keeps the netlists and the waveforms: the same command continues.
"""

import csv
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

import cosim
from cosim.base.resources import trained_network_path
from cosim.circuit.dialects.table import dialect_named
from cosim.tasks.testset import load_test_set
from cosim.verbs.compile.outputs import Exercise, format_design

RUN = """
import os
import sys
import numpy as np
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
waves = run_deck(open("testbench.sp").read())
if isinstance(waves, Failure):
    sys.exit(f"{waves.kind.value}: {waves.detail}")
np.savez("unfinished.npz", **waves)
os.replace("unfinished.npz", "waves.npz")
"""
Array = NDArray[np.float64]


def simulated(folder: Path, files: dict[str, str]) -> dict[str, Array]:
    """Return the waveforms of a testbench, vector -> values; ngspice runs in the folder, where files are written."""
    if not (folder / "waves.npz").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        subprocess.run([sys.executable, "-c", RUN], cwd=folder, check=True)
    with np.load(folder / "waves.npz") as waves:
        return dict(waves)


def figures(waves: dict[str, Array], expected: str) -> tuple[NDArray[np.int64], Array, float]:
    """Return all states, all output currents (A) of the frames, and the mean current from the supply, A."""
    states, outputs = list[int](), list[float]()
    for row in csv.DictReader(io.StringIO(expected)):
        vectors = [waves[name.removeprefix("v(").removesuffix(")")] for name in row["vectors"].split()
                   if row["unit"] == "1"]  # fmt: skip
        time = float(row["time_s"])
        if row["unit"] == "1":
            limit = float(row["threshold_v"])
            states.append(sum(np.interp(time, waves["time"], values) > limit for values in vectors))
        else:
            outputs.append(float(np.interp(time, waves["time"], waves[f"{row['vectors'][2:-1]}#branch"])))
    supply, times = waves["vdd#branch"], waves["time"]
    return np.array(states), np.array(outputs), float(np.trapezoid(-supply, times) / (times[-1] - times[0]))


def main() -> None:
    """A line for each sample, and one for all."""
    folder, technology, network, samples = sys.argv[1:]
    path = Path(network) if network.endswith(".pt") else trained_network_path(network)
    chip = cosim.load(path).compile(technology)
    test_set = load_test_set(chip.design.network, None).take(int(samples), 0)
    states, wrong, worst, powers = 0, 0, 0.0, list[tuple[float, float]]()
    for number, x, length in zip(test_set.indices.tolist(), test_set.x, test_set.lengths.tolist(), strict=True):
        found = list[tuple[NDArray[np.int64], Array, float]]()
        for foundry in (False, True):
            dialect = dialect_named("ngspice", foundry=foundry)
            files = format_design(chip.design, Exercise(chip.timing, None, x[:length]), dialect)
            place = Path(folder) / f"{technology}-{path.stem}-{number}-{'foundry' if foundry else 'cards'}"
            found.append(figures(simulated(place, files), files["expected.csv"]))
        (cards, own, current), (others, outputs, drawn) = found
        states, wrong = states + cards.size, wrong + int((cards != others).sum())
        worst = max(worst, float(np.abs(own - outputs).max()))
        powers.append((current, drawn))
        both = f"supply {1e9 * current:.4f} nA, {1e9 * drawn:.4f} nA"
        print(f"up to sample {number}: {wrong} of {states} states differ; {both}", flush=True)
    mean, other = np.mean(powers, axis=0)
    print(
        f"{technology} {path.stem}, {len(powers)} samples: {wrong} of {states} states differ, readouts by at most "
        f"{1e12 * worst:.2g} pA, mean supply current by {100 * (other / mean - 1):.2g} %"
    )


if __name__ == "__main__":
    shrink(globals(), "foundry", "generic180", "digits_d4", "1")
    main()
