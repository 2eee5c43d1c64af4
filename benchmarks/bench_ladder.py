"""Ladders of 2 to 16 rungs against software: random sequences, retention, levels, power; 8 rungs at other conditions.

Finished transients are kept in runs/bench_ladder: an interrupted run continues where it stopped.
"""

import sys
from pathlib import Path

from smoke import shrink

from cosim.cli.verb import write_json
from cosim.engines.engine import Run
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import format_conditions
from cosim.units.ladder import ladder_currents, ladder_timing
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.characterize.ladder import LadderStudy, run_ladder, summarize_ladder, summarize_study
from cosim.verbs.characterize.study import at_conditions

SEQUENCES, STEPS = 10, 200
TIMEOUT = 3600.0  # s a transient, for a busy machine
CONDITIONS = (
    (8, (27.0,), (1.8,)),
    (8, (-20.0, 0.0, 50.0, 85.0), (1.8,)),
    (8, (27.0,), (1.62, 1.98)),
    *((rungs, (27.0,), (1.8,)) for rungs in (2, 3, 5, 16)),
)  # rungs, temperatures in C, supplies in V
HEADER = "rungs  condition           steps  wrong  held  wrong  update ms  level error  power nW, by block"


def main(jobs: int = 1, folder: Path = Path("runs/bench_ladder")) -> None:
    technology = load_technology("generic180")
    calibration = find_calibration(technology, 8)
    print(HEADER, flush=True)
    for rungs, temperatures, supplies in CONDITIONS:
        study = LadderStudy(rungs, SEQUENCES, STEPS, 0, ladder_currents(1e-9), ladder_timing(10e-3))
        for one in at_conditions(technology, (), temperatures, supplies):
            traces = run_ladder(study, [one], calibration, Run(folder, jobs, TIMEOUT))[0]
            found = summarize_ladder(study, one, traces)
            name = f"ladder_{rungs}_{one.celsius:g}C_{one.supply:g}V.json"
            write_json(folder / name, summarize_study(study, technology.name, [found]))
            split = ", ".join(f"{block} {1e9 * watt:.1f}" for block, watt in found.power_split_w.items())
            print(
                f"{rungs:5d}  {format_conditions(one):18}{found.steps_checked:7d}{found.wrong_levels:7d}"
                f"{found.retention_steps:6d}{found.retention_wrong:7d}{1e3 * found.update_time_max_s:11.2f}"
                f"{100 * found.level_error_max:11.2f} %  {1e9 * found.power_w:.1f}: {split}",
                flush=True,
            )


if __name__ == "__main__":
    shrink(globals(), "1", SEQUENCES=1, STEPS=4, CONDITIONS=CONDITIONS[-4:-3])
    main(*map(int, sys.argv[1:]))
