"""Datasheets of public circuits: the batched engine against ngspice on the same chips, and the time that each takes.

    python benchmarks/bench_datasheet.py                1,000 chips of each circuit, 100 of them also in ngspice
    python benchmarks/bench_datasheet.py ota ring       only these, of netlists/public

For each measure of a sheet: mean and sigma of both engines with their 95 % intervals, all over sigma the largest and
the rms difference on the same chips and its mean; then the processor time for a chip of both, one process each. Device
tables are measured before the clock starts, and the first chip is run. ngspice reads the deck of every chip.
"""

import sys
from dataclasses import replace
from pathlib import Path
from time import process_time

from smoke import shrink

from cosim.circuit.dialects.ngspice import format_bench
from cosim.engines.ngspice import process
from cosim.engines.processor import processor_time
from cosim.variation.draws import VariationPlan
from cosim.verbs.datasheet.sheet import SheetMeasure, read_sheet
from cosim.verbs.datasheet.statistics import audit_of, named_values, spread_of
from cosim.verbs.datasheet.study import DatasheetStudy, chip_bench, datasheet_study, run_chips

FOLDER = Path(__file__).resolve().parents[1] / "netlists" / "public"
CIRCUITS = ("ota", "strongarm", "ring", "dpi", "wta", "sram", "ncurve", "ptat")
CHIPS, IN_NGSPICE, CHUNK = 1000, 100, 64
TIMEOUT = 600.0


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
    begin, quick = process_time(), []
    for first in range(0, CHIPS, CHUNK):
        quick += run_chips(study, "batch", range(first, min(first + CHUNK, CHIPS)))
    batch_time = (process_time() - begin) / CHIPS
    slow = run_chips(study, "ngspice", range(IN_NGSPICE))
    ngspice_time = timed_ngspice(study, range(IN_NGSPICE))
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
        f"{ngspice_time / batch_time:.0f} times as long",
        flush=True,
    )


def main() -> None:
    for name in sys.argv[1:] or CIRCUITS:
        compare(name)


if __name__ == "__main__":
    shrink(globals(), "ota", CHIPS=4, IN_NGSPICE=2)
    main()
