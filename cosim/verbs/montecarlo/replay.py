"""--replay: one chip of a store on transistors, with its decks."""

from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.errors import InputError
from cosim.engines.table import BEHAVIORAL, NGSPICE

if TYPE_CHECKING:
    from cosim.verbs.montecarlo.trial import Trial


def replay(trial: "Trial", number: int, store: Path) -> list[str]:
    """Simulate one chip of a Monte Carlo run on transistors; return lines that show it beside what the store says."""
    from cosim.base.store import check_settings
    from cosim.results.metrics import percent
    from cosim.verbs.montecarlo.run import replay_chip, run_settings
    from cosim.verbs.montecarlo.store import read_store

    if number >= trial.plan.chips:
        raise InputError(f"--replay must be below --chips ({trial.plan.chips}), not {number}")
    known, records = read_store(store)
    check_settings(store, known, run_settings(trial))
    folder = store / f"chip_{number}"
    record = replay_chip(trial, number, folder)
    simulator = NGSPICE if trial.engine == BEHAVIORAL else trial.engine
    lines = [f"chip {number}: {record.status}{f' {record.detail}' if record.status != 'ok' else ''}"]
    for engine, figures in ((BEHAVIORAL, record.behavioral), (simulator, record.simulated)):
        if figures is not None:
            lines.append(f"{engine:12} accuracy {percent(figures.accuracy)}")
    if number in records and records[number].simulated is not None:
        same = records[number].simulated == record.simulated
        lines.append(f"the store says {'the same' if same else 'something else'} about its transistors")
    return [*lines, f"decks: {folder}"]
