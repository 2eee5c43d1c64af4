"""Datasheets of public circuits: the batched engine against ngspice on the same chips, and the time that each takes.

    python benchmarks/bench_datasheet.py                1,000 chips of each circuit, 100 of them also in ngspice
    python benchmarks/bench_datasheet.py ota ring       only these, of netlists/public
    python benchmarks/bench_datasheet.py noise          the noise of two of them, see below

For each measure of a sheet: mean and sigma of both engines with their 95 % intervals, all over sigma the largest and
the rms difference on the same chips and its mean; then the processor time for a chip of both, one process each: medians
of ROUNDS runs in turn, because a shared machine's speed may change by a factor of two from one second to the next.
Device tables are measured before the clock starts, and the first chip is run. ngspice reads the deck of every chip.

noise: 3,000 runs without mismatch against closed forms. A follower of one stage has the output noise 2 n th kT/C: n is
the slope I / (g_m U_T) of its pair, th the mean thermal part of its four transistors (cosim.technology.noise). th is 1
with shot noise, which ngspice runs with a `trnoise` source for each transistor. A stage of a ring oscillator has
sigma_td^2 = S t_d / (2 I^2) + kT C / I^2 (A. A. Abidi, IEEE J. Solid-State Circuits 41 (2006) 1803), with the shot
noise S = 2 q I; its delay t_d = C V / (2 I) is a tenth of the period, and I is the current from the supply.
"""

import sys
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

from cosim.base.quantities import Q_ELECTRON
from cosim.circuit.bench import PRECISE, Voltage
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.spice import read_netlist
from cosim.engines.engine import Failure
from cosim.engines.ngspice import process
from cosim.engines.processor import processor_time
from cosim.technology.catalog import load_technology
from cosim.variation.draws import VariationPlan
from cosim.verbs.datasheet.noise import run_noise
from cosim.verbs.datasheet.sheet import Datasheet, DatasheetCondition, SheetMeasure, read_sheet
from cosim.verbs.datasheet.statistics import audit_of, named_values, spread_of
from cosim.verbs.datasheet.study import (
    DatasheetChip,
    DatasheetStudy,
    chip_bench,
    datasheet_bench,
    datasheet_study,
    run_chips,
)

Array = NDArray[np.float64]
FOLDER = Path(__file__).resolve().parents[1] / "netlists" / "public"
CIRCUITS = ("ota", "strongarm", "ring", "dpi", "wta", "sram", "ncurve", "ptat")
CHIPS, IN_NGSPICE, CHUNK = 1000, 100, 64
ROUNDS, IN_A_ROUND, IN_NGSPICE_A_ROUND = 9, 128, 12
NOISE_RUNS, NOISE_IN_NGSPICE = 3000, 1000
TIMEOUT = 600.0
# Of the follower: I / (g_m U_T) of its pair, that of its pair and of its mirror over that in weak inversion, and the
# nets and currents of its transistors, all by ngspice at the operating point.
SLOPE, INVERSION = 1.41, (1.092, 1.242)
SHOT = {
    "m1": ("x tail", 4.92e-9),
    "m2": ("out tail", 4.94e-9),
    "m3": ("x 0", 4.92e-9),
    "m4": ("out 0", 4.94e-9),
    "m5": ("tail 0", 9.85e-9),
    "m6": ("b 0", 10e-9),
}
RING_MEASURES = """.meas tran drawn avg i(vdd) from=2m to=5.3138m
.meas tran period trig v(n5) val='supply/2' rise=2 targ v(n5) val='supply/2' rise=3
.end
"""


def run_in_chunks(study: DatasheetStudy, count: int) -> list[DatasheetChip]:
    """Run the first chips of a study in the batched engine, in chunks as `cosim datasheet` does."""
    chunks = (range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK))
    return [one for chunk in chunks for one in run_chips(study, "batch", chunk)]


def timed_batch(study: DatasheetStudy, count: int) -> float:
    """Return the processor time of the batched engine for a chip, s, with drawing it and taking its measures."""
    begin = process_time()
    run_in_chunks(study, count)
    return (process_time() - begin) / count


def timed_ngspice(study: DatasheetStudy, numbers: range) -> float:
    """Return the processor time of ngspice for a chip, s; decks are written before, and no measure is taken."""
    decks = [format_bench(chip_bench(study, number, "ngspice")) for number in numbers]
    process.run_deck(decks[0], TIMEOUT)
    child = process._process  # pyright: ignore[reportPrivateUsage] - its time is not this process's
    assert child is not None
    begin = processor_time(child.pid) or 0.0
    for deck in decks:
        process.run_deck(deck, TIMEOUT)
    return ((processor_time(child.pid) or 0.0) - begin) / len(decks)


def described(measure: SheetMeasure, values: list[float | None]) -> str:
    found = spread_of(measure, values, None)
    if found.mean is None or found.sigma is None or found.sigma_interval is None:
        return "no value"
    mean, ends = found.mean, found.sigma_interval
    return (
        f"mean {mean.mean:.5g} ({mean.low:.5g} to {mean.high:.5g}), sigma {found.sigma:.4g} ({ends.low:.4g} to "
        f"{ends.high:.4g}), {found.missing} without a value"
    )


def compare(name: str) -> None:
    sheet = read_sheet(FOLDER / f"{name}.toml")
    plan = VariationPlan("local", 0, CHIPS)
    study = datasheet_study(replace(sheet, conditions=sheet.conditions[:1]), "local", plan, "batch", TIMEOUT)
    run_chips(study, "batch", range(1))
    run_chips(study, "ngspice", range(1))
    quick = run_in_chunks(study, CHIPS)
    slow = run_chips(study, "ngspice", range(IN_NGSPICE))
    rounds = range(ROUNDS)
    times = [(timed_batch(study, IN_A_ROUND), timed_ngspice(study, range(IN_NGSPICE_A_ROUND))) for _ in rounds]
    batch_time, ngspice_time = (median(some) for some in zip(*times, strict=True))
    ratio = median(theirs / own for own, theirs in times)
    own, other = ([named_values(sheet, one) for one in some] for some in (quick, slow))
    elsewhere = sum(one.simulator is not None for one in quick)
    print(
        f"{name}: {len(study.devices)} transistors, {CHIPS} chips, {IN_NGSPICE} in ngspice, too; {elsewhere} fell back"
    )
    for measure in sheet.measures:
        values, theirs = ([one[measure.name] for one in some] for some in (own, other))
        audit = audit_of(values[:IN_NGSPICE], theirs, spread_of(measure, values, None).sigma)
        print(f"  {measure.name}")
        print(f"    batch    {described(measure, values)}")
        print(f"    the same {described(measure, values[:IN_NGSPICE])}")
        print(f"    ngspice  {described(measure, theirs)}")
        if audit.largest is not None:
            print(
                f"    difference over sigma: largest {audit.largest:.4f}, rms {audit.rms:.4f}, mean {audit.mean:+.4f}, "
                f"with a value in one alone {audit.only_one}"
            )
    print(
        f"  processor time for a chip: batch {1e3 * batch_time:.3g} ms, ngspice {1e3 * ngspice_time:.3g} ms, "
        f"{ratio:.0f} times as long",
        flush=True,
    )


def noise_study(name: str, *changes: tuple[str, str]) -> DatasheetStudy:
    """Return the study of a public circuit whose netlist's text is changed."""
    technology, text = load_technology("generic180"), (FOLDER / f"{name}.sp").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    there = DatasheetCondition(technology, None, (), read_netlist(text, name, technology))
    plan = VariationPlan("local", 0, 1)
    return datasheet_study(Datasheet(name, (), (there,)), "local", plan, "batch", TIMEOUT)


def noisy(study: DatasheetStudy) -> dict[str, Array]:
    """Return measure -> value of each of NOISE_RUNS runs with noise."""
    runs = run_noise(study, NOISE_RUNS, 1, lambda done, total: None)
    return dict(zip(study.names, np.array([one.values for one in runs], dtype=np.float64).T, strict=True))


def shot_noise_in_ngspice(study: DatasheetStudy) -> Array:
    """Return the follower's output at the end of NOISE_IN_NGSPICE runs, V, with a source of shot noise a transistor."""
    bench = datasheet_bench(study.circuit, study.technology, study.netlist, "ngspice")
    step = bench.transient.step / 4
    run = replace(bench.transient, step=step)
    title, _, rest = format_bench(replace(bench, analysis=run, probes=(Voltage("out"),), tolerances=PRECISE)).partition(
        "\n"
    )
    sources = [
        f"in{name} {nets} dc 0 trnoise({np.sqrt(Q_ELECTRON * ampere / step):.6g} {step:.6g} 0 0)"
        for name, (nets, ampere) in SHOT.items()
    ]
    found: list[float] = []
    for seed in range(NOISE_IN_NGSPICE):
        deck = "\n".join([title, f".options seed={seed + 1}", *sources, rest])
        vectors = process.run_deck(deck, TIMEOUT)
        assert not isinstance(vectors, Failure), vectors
        found.append(float(np.real(vectors["out"][-1])))
    return np.array(found)


def noise() -> None:
    study = noise_study(
        "ota",
        ("vin in 0 pwl(0 {supply/2-0.05} 20u", "vin in 0 {supply/2}\n* (0 {supply/2-0.05} 20u"),
        (".tran 0.25u 160u", ".tran 1u 40u"),
        ("at=20u", "at=39.9u"),  # six time constants
        *((f".meas tran {name} trig", f"* {name}") for name in ("rise", "fall")),
    )
    thermal = [(4 / 3 * c - 1 / 3) / c**2 for c in INVERSION]
    shot = SLOPE * 2.0
    u_t = study.technology.thermal_voltage
    unit = np.sqrt(Q_ELECTRON * u_t / 1e-12)
    for what, values, theory in (
        ("batch", noisy(study)["offset"], shot * sum(thermal) / len(thermal)),
        ("shot noise in ngspice", shot_noise_in_ngspice(study), shot),
    ):
        spread = 1 / np.sqrt(2 * len(values))
        print(
            f"follower, {what}: sigma {values.std(ddof=1) / unit:.3f} sqrt(kT/C) +- {100 * spread:.1f} %, by formula "
            f"{np.sqrt(theory):.3f}"
        )
    values = noisy(noise_study("ring", (".end\n", RING_MEASURES)))
    period, current = values["period"], -float(values["drawn"].mean())
    delay = float(period.mean()) / 10
    by_formula = np.sqrt(10 * Q_ELECTRON * delay / current * (1 + 2 * u_t / 0.5))
    sigma, spread = 1e6 * period.std(ddof=1), 100 / np.sqrt(2 * len(period))
    print(f"ring: sigma of a period {sigma:.3f} us +- {spread:.1f} %, by formula {1e6 * by_formula:.3f}")


def main() -> None:
    for name in sys.argv[1:] or CIRCUITS:
        if name == "noise":
            noise()
        else:
            compare(name)


if __name__ == "__main__":
    shrink(
        globals(),
        "ota",
        "noise",
        CHIPS=4,
        IN_NGSPICE=2,
        ROUNDS=1,
        IN_A_ROUND=4,
        IN_NGSPICE_A_ROUND=1,
        NOISE_RUNS=3,
        NOISE_IN_NGSPICE=2,
    )
    main()
