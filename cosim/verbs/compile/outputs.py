"""Files that `cosim compile` writes: netlist, device models, testbench, expected results, mapping report, summary."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError, MissingToolError
from cosim.base.seal import seal_json
from cosim.base.text import format_csv
from cosim.cells.assembly import StateCurrent
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, Current
from cosim.circuit.deck import device_sizes
from cosim.circuit.dialects.dialect import START_FILE, Dialect
from cosim.circuit.dialects.ngspice import NGSPICE, format_point
from cosim.circuit.elements import Circuit, Mos
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design, block_areas, changes_hash, network_hash
from cosim.compiler.lower import count_zeros, has_zeros
from cosim.compiler.mapping import CUT, LEFT_OUT, ZERO, map_parameters
from cosim.compiler.overrides import changed_pins, changed_transistors
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Failure
from cosim.engines.ngspice.simulator import resting_point
from cosim.engines.simulation.testbench import inference_bench, probes_of
from cosim.network.ir.states import OFF_LEVEL, software_states
from cosim.network.reference import run_reference
from cosim.network.types import InputEncoding
from cosim.technology.foundry import model_family
from cosim.technology.types import Technology
from cosim.units.kind import MappingRow

EXERCISE_FRAMES = 8
MOST_STARTED = 10_000  # transistors whose operating point is looked for: twice them take ngspice four times as long
MOST_EDITS = 20  # of a netlist that a summary lists
SLOW = (
    "What a run costs: one to two minutes of one core for 8 frames of 1,000 transistors of a foundry kit, most of it",
    "in the device models. cosim simulate runs the same in worker processes.",
)
STARTED = "It begins at the operating point in start.sp, from where bypass=1 is safe."
EXPECTED_FIELDS = ("frame", "time_s", "signal", "vectors", "threshold_v", "software", "behavioral", "unit")
MAPPING_FIELDS = ("parameter", "element", "target", "realised", "unit", "status", "note")


@dataclass(frozen=True)
class Exercise:
    """The stimulus of a testbench: the timing of its frames, its condition and its inputs.
    condition: None for the nominal one; stimulus: raw inputs (time, features) in the network's units, None for made-up
    inputs that move every feature."""

    timing: Timing = Timing()
    condition: Condition | None = None
    stimulus: NDArray[np.float64] | None = None

    def inputs(self, design: Design) -> NDArray[np.float64]:
        """Return the raw inputs (time, features) of a design's testbench: the given ones, else made-up ones."""
        return made_up_stimulus(design.network.encoding) if self.stimulus is None else self.stimulus

    def technology(self, design: Design) -> Technology:
        """Return the technology in the testbench's condition, the design's nominal one if no condition is set."""
        return (self.condition or design.nominal).technology

    def bench(self, design: Design) -> Bench:
        """Return the testbench of a design, together with the network that it drives."""
        return inference_bench(design, self.inputs(design), self.timing, self.condition)


def format_design(
    design: Design,
    exercise: Exercise = Exercise(),
    dialect: Dialect = NGSPICE,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Return the files of a compiled design for one simulator: file name -> text.

    For ngspice, an operating point is added as a file if ngspice is installed to find it; say: called with a line about
    this step.
    """
    rows, files, technology = map_parameters(design), dialect.files, exercise.technology(design)
    check_readable(design, dialect)
    summary = {**summarize(design, exercise.condition), **describe_form(dialect)}
    start = find_start(design, exercise, say) if dialect.name == NGSPICE.name else None
    texts = {
        files.netlist: format_netlist(design, dialect),
        files.devices: dialect.devices(technology, device_sizes(design.assembly.circuit)),
        files.testbench: format_exercise(design, exercise, dialect, started=start is not None),
        "expected.csv": format_expected(design, exercise, dialect),
        "mapping.csv": format_mapping(rows),
        "mapping.json": json.dumps([vars(row) for row in rows], indent=1) + "\n",
        "design.json": seal_json(summary).decode(),
    }
    return texts if start is None else {**texts, START_FILE: start}


def check_readable(design: Design, dialect: Dialect) -> None:
    """Raise InputError where a state is a transistor's current, and the transistors are the foundry's devices.

    The transistor inside such a device has a name of the foundry's choice.
    """
    currents = [cell for cell, shown in design.assembly.decisions.items() if isinstance(shown, StateCurrent)]
    if dialect.language.foundry and currents:
        raise InputError(
            f"--models foundry: the state of {currents[0]} is read as the current of a transistor, which has another "
            "name inside a foundry's device; leave --models out for networks with minGRU cells or delay lines"
        )


def describe_form(dialect: Dialect) -> dict[str, str]:
    """Return the dialect of a netlist, and the models of its transistors where these are not cards, for design.json."""
    return {"dialect": dialect.name} | ({"models": "foundry"} if dialect.language.foundry else {})


def _overridden(design: Design) -> dict[str, object]:
    """Return what a designer changed of a design, with the checksum of overrides or netlist; empty without changes."""
    if design.compiled is None:
        return {}
    if design.settings.netlist is not None:
        more = (f"and {count} more",) if (count := len(design.edits) - MOST_EDITS) > 0 else ()
        return {"edits": [*map(str, design.edits[:MOST_EDITS]), *more], "netlist": changes_hash(design)}
    return {
        "overridden_transistors": len(changed_transistors(design.compiled, design.assembly)),
        "overridden_pins": len(changed_pins(design.compiled, design.assembly)),
        "overrides": changes_hash(design),
    }


def rests_slowly(technology: Technology) -> bool:
    """Tell whether ngspice is slow to find the operating point of circuits in this technology.

    With self-cascodes, ngspice has to step gmin, and then the sources.
    """
    return any(geometry.cascode for geometry in vars(technology.sizing).values())


def find_start(design: Design, exercise: Exercise, say: Callable[[str], None]) -> str | None:
    """Find the operating point of a design's testbench at time 0; return it as ngspice text.

    Returns None where ngspice is missing or finds none, or where the circuit has more than MOST_STARTED transistors.
    """
    if (count := sum(isinstance(element, Mos) for element in design.flat.elements)) > MOST_STARTED:
        say(
            f"the testbench has to find its operating point by itself: it is looked for up to {MOST_STARTED} "
            f"transistors, and these are {count}"
        )
        return None
    if (family := model_family(design.technology)).osdi:
        say(f"the testbench has to find its operating point by itself: ngspice here has no {family.name}")
        return None
    say("finding the operating point that the testbench begins at")
    try:
        found = resting_point(exercise.bench(design))
    except MissingToolError as error:
        say(f"the testbench has to find its operating point by itself: {error}")
        return None
    if isinstance(found, Failure):
        say(f"the testbench has to find its operating point by itself: {found}")
        return None
    return "\n".join(
        [f"* node voltages of {NGSPICE.files.testbench} at time 0, found by ngspice", *format_point(found), ""]
    )


def format_netlist(design: Design, dialect: Dialect = NGSPICE) -> str:
    """Return the hierarchical netlist of a design as text in a simulator's dialect.

    The netlist has only subcircuits, `network` last; a testbench instantiates `network`.
    """
    circuit = design.assembly.circuit
    return dialect.network(Circuit(circuit.title, circuit.subcircuits), design.technology)


def made_up_stimulus(encoding: InputEncoding) -> NDArray[np.float64]:
    """Return made-up raw inputs (EXERCISE_FRAMES, features) in the network's units.

    Each feature steps through four values over its range; if features are bits, one is on at a time.
    """
    if encoding.levels == 1:
        symbols = np.random.default_rng(1).integers(max(encoding.features, 2), size=EXERCISE_FRAMES)
        return encoding.offset + encoding.scale * (symbols[:, None] == np.arange(encoding.features))
    steps = np.add.outer(np.arange(EXERCISE_FRAMES), np.arange(encoding.features)) % 4 / 3.0
    return encoding.offset + encoding.scale * steps


def format_exercise(
    design: Design, exercise: Exercise = Exercise(), dialect: Dialect = NGSPICE, *, started: bool = False
) -> str:
    """Return the testbench that `cosim compile` writes beside the netlist, as text in a simulator's dialect.

    started: whether the run begins at the operating point in START_FILE.
    """
    bench = exercise.bench(design)
    title = f"testbench of {dialect.files.netlist}; what it should show: expected.csv"
    notes = (*(SLOW if rests_slowly(bench.technology) else ()), *((STARTED,) if started else ()))
    bench = replace(bench, circuit=replace(bench.circuit, title=title), preset=(), skip_still=started, notes=notes)
    return dialect.format_testbench(bench)


def format_expected(design: Design, exercise: Exercise = Exercise(), dialect: Dialect = NGSPICE) -> str:
    """Return expected.csv of `cosim compile`: what a simulation of the written testbench should show in each frame.

    It has the columns EXPECTED_FIELDS, with every memory's state and every output's current. A state (unit 1), read at
    `time_s`, is the number of `vectors` above `threshold_v`; for an analog state s, `threshold_v` has the current
    "a + b s". The software's state is empty where it is none that the circuit could have (`software_states`).
    """
    x = exercise.inputs(design)
    reference = run_reference(design.network, x[None])
    trace = run_behavioral(design, x[None], exercise.condition)
    software, assembly = software_states(design.graph, reference)[0], design.assembly
    threshold = STATE_LEVEL * exercise.technology(design).supply
    rows: list[tuple[object, ...]] = []
    family = model_family(design.technology)
    for frame, time in enumerate(exercise.timing.sample_times(len(x)).tolist()):
        for column, (cell, shown) in enumerate(assembly.decisions.items()):
            vectors = " ".join(dialect.printed(probe, family) for probe in probes_of(shown))
            wanted, found = software[frame, column].item(), trace.states[cell][0, frame].item()
            limit = f"{shown.rest:g} + {shown.step:g} s" if isinstance(shown, StateCurrent) else threshold
            rows.append((frame, time, cell, vectors, limit, "" if wanted == OFF_LEVEL else wanted, found, "1"))
        for column, pin in enumerate(assembly.outputs):
            wanted, behavioral = design.i_unit * reference.readout[0, frame, column], trace.readout[0, frame, column]
            rows.append((frame, time, pin, dialect.printed(Current(pin), family), "", wanted, behavioral, "A"))
    return format_csv(EXPECTED_FIELDS, rows, 9)


def summarize(design: Design, condition: Condition | None = None) -> dict[str, object]:
    """Return a design's figures (name -> value): what it was made from, how large it is, and what was lost."""
    rows = map_parameters(design)
    devices = [element for element in design.flat.elements if isinstance(element, Mos)]
    calibration, technology = design.calibration, (condition or design.nominal).technology
    gates, capacitors = (sum(areas) for areas in zip(*block_areas(design).values(), strict=True))
    return {
        "network": network_hash(design),
        "task": design.network.task,
        "technology": technology.name,
        "calibration": calibration.fingerprint,
        "simulator_of_calibration": calibration.simulator,
        "i_unit_a": design.i_unit,
        "units_per_weight_1": calibration.units,
        "corner": technology.corner,
        "celsius": technology.celsius,
        "supply_v": technology.supply,
        "transistors": len(devices),
        "unit_devices": sum(device.m for device in devices),
        "gate_area_um2": round(gates * 1e12, 1),
        "capacitor_area_um2": round(capacitors * 1e12, 1),
        "bias_pins": len(design.assembly.bias_pins),
        "parameters": len(rows),
        **({} if has_zeros(design.network) else {"zero_weights": count_zeros(design.network)}),
        "statuses": dict(sorted(Counter(row.status for row in rows).items())),
        "lost": [row.parameter for row in rows if row.status in (ZERO, CUT)],
        "largest_rounding": max(
            (abs(r.realised - r.target) for r in rows if r.unit == "1" and r.status != LEFT_OUT), default=0.0
        ),
        **_overridden(design),
        **({"left_out": dict(left_out)} if (left_out := design.graph.left_out.states) else {}),
    }


def format_mapping(rows: Sequence[MappingRow]) -> str:
    """Return mapping.csv of `cosim compile` as text: each parameter's circuit element, target and realised value."""
    return format_csv(MAPPING_FIELDS, (vars(row).values() for row in rows), 9)
