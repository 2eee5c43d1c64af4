"""Devices of sg13g2: device tables against VACASK, and VACASK's currents against the foundry's library in ngspice.

    python benchmarks/bench_psp.py [NGSPICE [SAMPLES]]

For each corner and temperature: the largest relative error of the batched engine's tables off their points, of unit
devices (source on its bulk) and of switches; and, with NGSPICE, a program of version 44 or newer, the largest relative
difference of drain currents from 1 pA to 100 nA between the kit's own devices there and cosim's cards in VACASK.
ngspice loads the compiled model of VACASK's package. One parameter, `dta`, is taken out of a copy of the kit's file,
because this release of the model has it on cards only.

SAMPLES: that many digits of `digits_d4` in both simulators; prints states that differ, and the difference of readouts.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from smoke import shrink

from cosim.base.errors import MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.bench import Bench, Current, Dc, Tolerances
from cosim.circuit.dialects.ngspice import format_bench, saved_name
from cosim.circuit.elements import GROUND, Circuit, Mos, Source
from cosim.compiler.passes import compile_network
from cosim.engines.batch.device_fit import MeasurementSetup, fit_table
from cosim.engines.batch.device_tables import DeviceKind
from cosim.engines.engine import Description, Inference, Run, Waveforms
from cosim.engines.simulation.inference import BenchGroup, infer_tile, run_bench
from cosim.engines.simulation.simulated import planned_samples
from cosim.engines.table import simulator_named
from cosim.engines.vacask.program import find_vacask
from cosim.engines.vacask.simulator import read_raw
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.models.psp103 import COMPILED
from cosim.technology.scale import units_for
from cosim.technology.types import Technology
from cosim.verbs.calibrate.find import find_calibration

SIZES = ((1e-6, 5e-6), (4e-6, 8e-6), (0.4e-6, 1e-6))
CORNERS, CELSIUS = ("tt", "ff", "ss", "fs", "sf"), (0.0, 27.0, 60.0)
GATES, DRAIN = (0.1, 1.0, 0.05), 0.9  # V: first, last and step; V_DS
SIGNAL = (1e-12, 1e-7)  # A
KINDS = 4  # of units, and of switches
TIGHT = Tolerances(abstol=1e-18, vntol=1e-9, reltol=1e-6)


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        find_vacask()
        technology = load_technology("sg13g2")
    except MissingToolError as error:
        print(error)
        return
    for corner in CORNERS:
        for celsius in CELSIUS:
            there = at(technology, corner, celsius)
            units, switches = (table_error(there, kinds) for kinds in kinds_of(there))
            print(f"{corner} {celsius:3g} C: tables {units:.1e}, of switches {switches:.1e}", end="", flush=True)
            if program:
                kit, cards = in_ngspice(program, there), in_vacask(there)
                inside = (cards > SIGNAL[0]) & (cards < SIGNAL[1])
                print(f"; currents differ by at most {np.abs(kit / cards - 1)[inside].max():.1e}", end="")
            print()
    if len(sys.argv) > 2:
        compare_samples(program, technology, int(sys.argv[2]))


def compare_samples(program: str, technology: Technology, count: int) -> None:
    """Run samples of a network in ngspice and in VACASK, and print how many states differ."""
    network = load_network(trained_network_path("digits_d4.pt"))
    design = compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))
    benches, plans = planned_samples(design, load_test_set(network, None).take(count, 0), Run())
    frames, differ, squares = 0, 0, []
    for k, (bench, plan) in enumerate(zip(benches, plans, strict=True)):
        group = BenchGroup((k,), (bench,), (plan,))
        ours, theirs = (infer_tile(one, group, 3600.0)[0] for one in (Program(program), simulator_named("vacask")))
        assert isinstance(ours, Inference), ours
        assert isinstance(theirs, Inference), theirs
        frames, differ = frames + ours.states.size, differ + int((ours.states != theirs.states).sum())
        squares.append(np.mean((ours.readout - theirs.readout) ** 2))
        print(
            f"{k + 1} samples: {differ} of {frames} states differ; readouts by {np.mean(squares) ** 0.5:.1e} A",
            flush=True,
        )


@dataclass(frozen=True)
class Program:
    """A program `ngspice` that loads compiled models, as a simulator."""

    path: str
    name: str = "ngspice program"
    grace: float = 0.0
    lanes: int = 1

    def write(self, bench: Bench) -> str:
        """Return the deck of a bench."""
        return format_bench(bench)

    def run(self, bench: Bench, timeout: float) -> Waveforms:
        """Simulate a bench in a folder of its own, and return its waveforms."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / ".spiceinit").write_text(f"osdi {compiled_model()}\n")
            (folder / "deck.sp").write_text(format_bench(bench))
            command = [self.path, "-b", "-r", "out.raw", "deck.sp"]
            subprocess.run(command, cwd=folder, capture_output=True, timeout=timeout, check=False)
            vectors = read_raw((folder / "out.raw").read_bytes())
        return Waveforms(vectors["time"].real, {one: vectors[saved_name(one)].real for one in bench.probes})

    def check(self) -> None:
        """Raise nothing: the program was named."""

    def describe(self, technology: Technology) -> Description:
        """Return that it is a program."""
        return Description("program", {})


def compiled_model() -> Path:
    """Return the path of the compiled model in VACASK's package."""
    return find_vacask().parents[1] / "lib" / "vacask" / "mod" / COMPILED


def kinds_of(technology: Technology) -> tuple[list[DeviceKind], list[DeviceKind]]:
    """Return the unit devices of mirrors and cells, and the switches of both polarities."""
    sizing = technology.sizing
    units = [DeviceKind("n", one.w, one.l) for one in (sizing.mirror_n, sizing.cell_n)]
    units += [DeviceKind("p", one.w, one.l) for one in (sizing.mirror_p, sizing.cell_p)]
    gates = sizing.latch_switch, sizing.sample_switch
    return units[:KINDS], [DeviceKind(side, one.w, one.l, four_terminal=True) for one in gates for side in "np"][:KINDS]


def table_error(technology: Technology, kinds: list[DeviceKind]) -> float:
    """Return the largest error of the tables of these kinds of devices."""
    setup = MeasurementSetup(technology, simulator_named("vacask"))
    return max(fit_table(setup, kind).error for kind in kinds)


def in_vacask(technology: Technology) -> np.ndarray:
    """Return drain currents of cosim's cards, A, (devices, gates)."""
    found = []
    for sign, polarity in ((1.0, "n"), (-1.0, "p")):
        elements = [Source("g", "v", "g", GROUND, sign * GATES[0]), Source("d", "v", "d", GROUND, sign * DRAIN)]
        for k, (w, l) in enumerate(SIZES):  # noqa: E741
            elements += [
                Mos(f"{k}", f"d{k}", "g", GROUND, GROUND, polarity, w, l),
                Source(f"{k}", "v", "d", f"d{k}", 0.0),
            ]
        sweep = Dc("v", "g", *(sign * volt for volt in GATES))
        bench = Bench(Circuit("devices", (), tuple(elements)), technology, sweep,
                      tuple(Current(f"{k}") for k in range(len(SIZES))), TIGHT)  # fmt: skip
        waves = run_bench(bench, "devices")
        found += [np.abs(waves.through(f"{k}")) for k in range(len(SIZES))]
    return np.array(found)


def in_ngspice(program: str, technology: Technology) -> np.ndarray:
    """Return drain currents of the kit's own devices in ngspice, A, (devices, gates)."""
    library = technology.library
    compiled = compiled_model()
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in library.file.parent.glob("*.lib"):
            (folder / file.name).write_text(re.sub(r"(?m)^\s*\+\s*dta=trise\s*$", "", file.read_text()))
        for sign, device in ((1.0, technology.nfet.name), (-1.0, technology.pfet.name)):
            lines = ["* devices", f".lib {library.file.name} {library.sections[technology.corner]}",
                     f".temp {technology.celsius:g}", f"vg g 0 {sign * GATES[0]:g}", f"vd d 0 {sign * DRAIN:g}",
                     ".options abstol=1e-17 vntol=1e-8 reltol=1e-6 gmin=1e-16"]  # fmt: skip
            for k, (w, l) in enumerate(SIZES):  # noqa: E741
                area, rim = w * library.diffusion, 2 * (w + library.diffusion)
                lines += [f"v{k} d d{k} 0", f"x{k} d{k} g 0 0 {device} w={w:g} l={l:g} as={area:g} ad={area:g} "
                          f"ps={rim:g} pd={rim:g}"]  # fmt: skip
            values = " ".join(f"{sign * volt:g}" for volt in GATES)
            currents = " ".join(f"i(v{k})" for k in range(len(SIZES)))
            lines += [".control", f"pre_osdi {compiled}", f"dc vg {values}", "set filetype=ascii",
                      f"wrdata out.data {currents}", "quit", ".endc", ".end"]  # fmt: skip
            (folder / "deck.sp").write_text("\n".join(lines) + "\n")
            said = subprocess.run([program, "-b", "deck.sp"], cwd=folder, capture_output=True, text=True, check=False)
            if not (folder / "out.data").is_file():
                sys.exit(said.stdout[-2000:] + said.stderr[-2000:])
            found += [np.abs(column) for column in np.loadtxt(folder / "out.data")[:, 1::2].T]
            (folder / "out.data").unlink()
    return np.array(found)


if __name__ == "__main__":
    shrink(globals(), CORNERS=("tt",), CELSIUS=(27.0,), KINDS=1)
    main()
