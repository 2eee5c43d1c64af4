"""Waveforms of one inference: which signals can be recorded, their recording, and the files that hold them.

A simulator saves only what it is asked for, so signals are chosen before the run: names of units and weights, as in the
graph and the mapping.

waveforms.npz: `time_s`, every vector, state and clock under its name, and `units`, JSON. waveforms.raw: the binary
format of SPICE 3 as ngspice writes and loads it, doubles point by point (ngspice manual, chapter "Binary raw file
format"). waveforms.vcd: states and clocks as IEEE 1364 value changes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError
from cosim.base.seal import seal_npz
from cosim.base.text import shown
from cosim.cells.assembly import StateCurrent
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, DrainCurrent, Voltage
from cosim.circuit.elements import Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import NO_CLASS, Run, Waveforms, chosen_class
from cosim.engines.simulation.inference import run_bench
from cosim.engines.simulation.read import drawn_power, read_plan
from cosim.engines.simulation.testbench import encode_sample, inference_bench
from cosim.engines.table import engine_entry, reference_simulator
from cosim.network.ir.nodes import InputCurrent, Memory, Output, Rectifier
from cosim.network.ir.states import States
from cosim.network.reference import pool_readout, run_reference
from cosim.network.types import Network
from cosim.tasks.testset import TestSet
from cosim.units.builder import instance, net
from cosim.verbs.words import network_name

Array = NDArray[np.float64]
Devices = Mapping[str, str]  # name of a vector -> the transistor whose drain current it is
MOST = 400  # currents that one run saves: more would fill the memory with what nobody looks at
_LISTED = 24
FILES = ("waveforms.npz", "waveforms.raw", "waveforms.vcd")
_KINDS = {"A": "current", "W": "power", "1": "notype"}
_NANO = 1e9
_FIRST, _CODES = 33, 94  # printable characters, of which value changes make their identifiers
Waves = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class ProbedInference:
    """The recorded waveforms of one inference; time: s, (time,).

    vectors: name -> values, `power` in W, currents in A; states: memory -> whole-numbered state; logic: clocks,
    decisions, pulses and reset, 0 or 1; lines: which class lines of the chip's own decision are high at the end,
    (outputs,), empty for a chip without one.
    """

    time: Array
    vectors: Mapping[str, Array]
    states: Mapping[str, NDArray[np.int16]]
    logic: Mapping[str, NDArray[np.int16]]
    lines: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def units(self) -> dict[str, str]:
        """Return the unit of every recorded vector: name -> "W" or "A"."""
        return {name: "W" if name == "power" else "A" for name in self.vectors}


def watchable(design: Design) -> dict[str, Devices]:
    """Return the signals that can be recorded: name -> vectors, each with the transistor whose current it is.

    A memory has a candidate and a state, a rectifier its current, a learned weight the current of its transistors.
    Inputs and outputs are always recorded, so they have no vectors here.
    """
    roles = design.assembly.circuit.roles()
    found: dict[str, Devices] = {}
    for node in design.graph.of(InputCurrent, Rectifier, Memory, Output):
        name, stem = node.name, net(node.name)
        match node:
            case Memory():
                candidate, state = instance(f"cand_{stem}"), instance(f"cell_{stem}")
                found[name] = {
                    f"{name}.candidate": roles[candidate, "candidate"],
                    f"{name}.state": roles[state, "output"],
                }
            case Rectifier():
                found[name] = {name: instance(f"relu_{stem}.diode")}
            case _:
                found[name] = {}
    for edge, element in design.assembly.weights.items():
        origin, (first, *others) = design.graph.weights[edge].origin, map(_device, element.split(" and "))
        found[origin] = {origin: first, **{f"{origin} {k}": device for k, device in enumerate(others, start=2)}}
    return found


def _device(element: str) -> str:
    """Convert a transistor's name in the netlist to the name used here: `xnetwork.xrow.mw2` to `network.row.w2`."""
    return ".".join(part[1:] for part in element.split("."))


def choose(design: Design, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the signals that patterns of --probe select, each once.

    A pattern is a name, or has * and ?; it then selects the units that fit, or, if no unit fits, weights. Raises
    InputError for a pattern that selects nothing.
    """
    watched = watchable(design)
    names = tuple(watched)
    units = [name for name in names if name in design.graph.nodes]
    chosen: dict[str, None] = {}
    for pattern in patterns:
        literal = pattern.replace("[", "[[]")  # brackets are part of the names of weights
        found = [pattern] if pattern in names else [name for name in units if fnmatchcase(name, literal)]
        found = found or [name for name in names if fnmatchcase(name, literal)]
        if not found:
            raise InputError(_unknown(pattern, names, units))
        chosen |= dict.fromkeys(found)
    if sum(len(watched[name]) for name in chosen) > MOST:
        raise InputError(
            f"--probe: {len(chosen)} names are more than the {MOST} currents that a run saves; choose fewer"
        )
    return tuple(chosen)


def _unknown(pattern: str, names: Sequence[str], units: Sequence[str]) -> str:
    near = get_close_matches(pattern, names, n=3)
    mean = f"; near it: {', '.join(near)}" if near else ""
    more = f" and {len(units) - _LISTED} more" if len(units) > _LISTED else ""
    return (
        f"--probe {shown(pattern)}: no unit and no weight has this name{mean}; the units are "
        f"{', '.join(units[:_LISTED])}{more}, the weights those of mapping.csv"
    )


def record_signals(design: Design, x: Array, names: Sequence[str], run: Run) -> ProbedInference:
    """Simulate one raw sample (time, features), and record the named signals.

    names: as in `watchable`. Inputs, outputs, power, states and clocks are recorded in any case. Raises SimulationError
    when the run fails.
    """
    there = watchable(design)
    devices = {vector: device for name in names for vector, device in there[name].items()}
    bench = inference_bench(design, x, run.timing, run.condition, run.chip)
    added = tuple(dict.fromkeys(map(DrainCurrent, devices.values())))
    bench = replace(bench, probes=(*bench.probes, *(probe for probe in added if probe not in bench.probes)))
    engine = run.engine if engine_entry(run.engine).simulator else reference_simulator(bench.technology)
    waves = run_bench(bench, f"waveforms of {', '.join(names[:3]) or 'a sample'}", engine)
    plan = read_plan(design, len(x), run.timing, run.standing(design))
    vectors = {
        **dict(_inputs(design, x, run, waves.time)),
        **{vector: waves.drain(device) for vector, device in devices.items()},
        **{node.name: waves.through(net(node.name)) for node in design.graph.of(Output)},
        "power": drawn_power(waves, plan.supplies),
    }
    threshold = STATE_LEVEL * bench.technology.supply
    states, logic = _states(design, waves, threshold), _logic(design, bench, waves.time)
    lines = np.array([waves.voltage(one)[-1] for one in plan.lines]) > threshold
    return ProbedInference(waves.time, vectors, dict(states), dict(logic), lines)


def _inputs(design: Design, x: Array, run: Run, time: Array) -> Iterator[tuple[str, Array]]:
    """Yield (name, current over time in A) of each input, as steps without the pedestal."""
    inputs, timing = encode_sample(design, x), run.timing
    frames = np.clip(((time - timing.start) / timing.t_step).astype(int), 0, len(inputs) - 1)
    for node in design.graph.of(InputCurrent):
        yield node.name, design.i_unit * inputs[frames, node.index] * (time >= timing.start)


def _states(design: Design, waves: Waveforms, threshold: float) -> Iterator[tuple[str, NDArray[np.int16]]]:
    """Yield (memory, whole-numbered states over time); analog states are left out, they are recorded as currents."""
    for name, nets in design.assembly.decisions.items():
        if not isinstance(nets, StateCurrent):
            high = (waves.probes[Voltage(one)] > threshold for one in nets)
            yield name, np.sum(np.stack(list(high)), axis=0).astype(np.int16)


def _logic(design: Design, bench: Bench, time: Array) -> Iterator[tuple[str, NDArray[np.int16]]]:
    """Yield (name, logic levels (time,)) of the reset and of the clocks that the testbench drives; no complements."""
    assembly = design.assembly
    pairs = (*assembly.clocks, *assembly.decides.values(), *assembly.pulses.values())
    wanted = ("resetb", *(first for first, _ in pairs))
    for source in bench.circuit.elements:
        if isinstance(source, Source) and source.name in wanted and isinstance(source.value, tuple):
            times, values = zip(*source.value, strict=True)
            yield source.name, (np.interp(time, times, values) > bench.technology.supply / 2).astype(np.int16)


@dataclass(frozen=True)
class WaveLabels:
    """The labels of a memory's waveforms in a figure.

    unit: name of the memory; i_rise, i_fall: thresholds asked for, A, 0 if it compares nothing; outputs, inputs: names;
    own: (upper, lower) threshold on one chip, A; i_pedestal: current of a state of 0, A; stage: number of the stage in
    which it decides, of `stages`; verdict: what the engines decided.
    """

    unit: str
    i_rise: float
    i_fall: float
    outputs: list[str]
    title: str
    own: tuple[float, float] | None = None
    i_pedestal: float = 0.0
    stage: int = 0
    stages: int = 1
    inputs: tuple[str, ...] = ()
    verdict: "SampleDecisions | None" = None

    @property
    def compares(self) -> bool:
        """Tell whether the memory has thresholds; one with an analog state has none."""
        return self.i_rise > 0

    def class_of(self, decision: int) -> str:
        """Return the name of the output that was decided, `none` for NO_CLASS."""
        return "none" if decision == NO_CLASS else self.outputs[decision]


@dataclass(frozen=True)
class SampleDecisions:
    """The decisions on one sample: its class and the decision of each engine, as indices of outputs.
    sample: number in the full test set; wanted: class; decided: engine -> decision, NO_CLASS where the chip shows none.
    """

    sample: int
    wanted: int
    decided: Mapping[str, int]


def record_waveforms(
    design: Design, x: NDArray[np.float64], cell: str, run: Run = Run()
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Simulate one raw sample (time, features); return the waveforms and labels that `draw_waveforms` needs.

    cell: the memory to show. Its candidate is read at the candidate's diode, because M1 leaves saturation once the cell
    is set. Raises SimulationError when the run fails.
    """
    return waves_of(design, record_signals(design, x, (cell,), run), cell, run)


def waves_of(
    design: Design, recorded: ProbedInference, cell: str, run: Run
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Return the waveforms and labels of a memory in a recorded run, as `draw_waveforms` needs them."""
    found = recorded.vectors
    waves = {"candidate": found[f"{cell}.candidate"], "state": found[f"{cell}.state"]}
    return waves | shared_waves(design, recorded), labels_of(design, cell, run)


def shared_waves(design: Design, recorded: ProbedInference) -> dict[str, NDArray[np.float64]]:
    """Return the waveforms that every figure shows: `time`, `power`, `input.0`, ..., `output.0`, ..."""
    found, graph = recorded.vectors, design.graph
    return {
        "time": recorded.time,
        "power": found["power"],
        **{f"input.{k}": found[node.name] for k, node in enumerate(graph.of(InputCurrent))},
        **{f"output.{k}": found[node.name] for k, node in enumerate(graph.of(Output))},
    }


def labels_of(design: Design, cell: str, run: Run) -> WaveLabels:
    """Return the labels of a memory's waveforms, without decisions."""
    graph, currents, shown = design.graph, design.graph.currents[cell], design.assembly.decisions[cell]
    rest = shown.rest if isinstance(shown, StateCurrent) else graph.i_pedestal
    encoding = design.network.encoding
    return WaveLabels(
        unit=cell,
        i_rise=currents.i_rise,
        i_fall=currents.i_fall,
        outputs=list(design.network.labels) or [str(k) for k in range(len(design.assembly.outputs))],
        title=f"{network_name(design.network)} on {design.assembly.transistors} transistors",
        i_pedestal=run.standing(design).bias_scale * rest,
        stage=next(node.stage for node in graph.memories if node.name == cell),
        stages=len(design.assembly.clocks),
        inputs=(*map(str, range(encoding.features)), *(() if encoding.ramp_steps is None else ("ramp",))),
    )


def judge_sample(
    design: Design, test_set: TestSet, position: int, recorded: ProbedInference, run: Run
) -> SampleDecisions | None:
    """Return how software, behavioral equations and the run's engine decide the sample at `position`.

    recorded: the run of the engine; class lines, if any, override its readout. None where targets are real numbers.
    """
    if test_set.tolerance is not None:
        return None
    frames = int(test_set.lengths[position])
    x, network = test_set.x[position : position + 1, :frames], design.network
    decided = {
        "software": decide(network, run_reference(network, x).readout[0]),
        "behavioral": decide(network, run_behavioral(design, x, run.condition, run.chip).readout[0]),
        run.engine: recorded_decision(design, recorded, run.timing, frames),
    }
    return SampleDecisions(int(test_set.indices[position]), int(test_set.y[position]), decided)


def recorded_decision(design: Design, recorded: ProbedInference, timing: Timing, frames: int) -> int:
    """Return the class that a recorded run decides: that of the chip's class lines, or without them of its readout.

    It is NO_CLASS where a chip with class lines shows none.
    """
    chosen = chosen_class(recorded.lines)
    return (
        decide(design.network, read_outputs(shared_waves(design, recorded), timing, frames))
        if chosen is None
        else chosen
    )


def read_outputs(waves: Waves, timing: Timing, frames: int) -> NDArray[np.float64]:
    """Return the readout (frames, outputs), A, that waveforms have at the moments of reading."""
    times, outputs = timing.sample_times(frames), sum(name.startswith("output.") for name in waves)
    return np.stack([np.interp(times, waves["time"], waves[f"output.{k}"]) for k in range(outputs)], axis=1)


def decide(network: Network, readout: NDArray[np.float64]) -> int:
    """Return the decision on a sample, the index of an output, from its readout (frames, outputs)."""
    pooled = pool_readout(readout[None], np.array([len(readout)]), network.readout.pooling)
    return int(pooled[0].argmax())


def liveliest_cell(cells: tuple[str, ...], states: States) -> str:
    """Return the cell whose state changes most often, the first of equals; states: (time, cells)."""
    changes = (states[1:] != states[:-1]).sum(axis=0)
    return cells[int(changes.argmax())]


def format_waveforms(recorded: ProbedInference, title: str) -> dict[str, bytes]:
    """Return the files of recorded waveforms: name -> bytes; the same waveforms give the same bytes."""
    formats = (format_npz(recorded), format_raw(recorded, title), format_vcd(recorded).encode())
    return dict(zip(FILES, formats, strict=True))


def format_npz(recorded: ProbedInference) -> bytes:
    """Return all recorded vectors, states and clocks by name, with `units`, as the content of an .npz file."""
    digital = {**recorded.states, **recorded.logic}
    units = {"time_s": "s", **recorded.units, **dict.fromkeys(digital, "1")}
    arrays = {"time_s": recorded.time, **recorded.vectors, **digital, "units": np.array(json.dumps(units))}
    return seal_npz(arrays)


def format_raw(recorded: ProbedInference, title: str) -> bytes:
    """Return recorded waveforms as an ngspice raw file: time, vectors, states, clocks, named as by `plain_names`."""
    columns: dict[str, tuple[str, NDArray[np.float64]]] = {"time": ("time", recorded.time)}
    columns |= {name: (_KINDS[recorded.units[name]], values) for name, values in recorded.vectors.items()}
    columns |= {f"{name} s": (_KINDS["1"], values.astype(float)) for name, values in recorded.states.items()}
    columns |= {name: (_KINDS["1"], values.astype(float)) for name, values in recorded.logic.items()}
    names = plain_names(tuple(columns))
    lines = [
        f"Title: {_one_line(title)}",
        "Date: none",
        "Plotname: Transient Analysis",
        "Flags: real",
        f"No. Variables: {len(columns)}",
        f"No. Points: {len(recorded.time)}",
        "Variables:",
        *(f"\t{k}\t{names[name]}\t{kind}" for k, (name, (kind, _)) in enumerate(columns.items())),
        "Binary:",
    ]
    points = np.stack([values for _, values in columns.values()], axis=1)
    return ("\n".join(lines) + "\n").encode("ascii") + points.astype("<f8").tobytes()


def format_vcd(recorded: ProbedInference) -> str:
    """Return recorded states and clocks as a VCD file with a time unit of 1 ns, only changes."""
    signals = {**recorded.logic, **recorded.states}
    names = plain_names(tuple(signals))
    codes = {name: _code(k) for k, name in enumerate(signals)}
    widths = {name: max(1, int(values.max(initial=0)).bit_length()) for name, values in signals.items()}
    lines = ["$timescale 1 ns $end", "$scope module network $end"]
    lines += [f"$var wire {widths[name]} {codes[name]} {names[name]} $end" for name in signals]
    lines += ["$upscope $end", "$enddefinitions $end"]
    ticks = np.rint(_NANO * recorded.time).astype(np.int64)
    changes: dict[int, list[str]] = {}
    for name, values in signals.items():
        turns = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]
        for turn in turns:
            changes.setdefault(int(ticks[turn]), []).append(_value(int(values[turn]), widths[name], codes[name]))
    for tick in sorted(changes):
        lines += [f"#{tick}", *changes[tick]]
    return "\n".join([*lines, f"#{int(ticks[-1])}", ""])


def plain_names(names: Sequence[str]) -> Mapping[str, str]:
    """Return a name for each vector that ngspice accepts in expressions: letters, digits and _, original -> plain.

    `layer1.weight[0,3]` becomes `layer1_weight_0_3`; if two names would become one, they are numbered.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        stem = plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "vector"
        count = 1
        while plain in used:
            count += 1
            plain = f"{stem}_{count}"
        used.add(plain)
        found[name] = plain
    return found


def _value(value: int, width: int, code: str) -> str:
    return f"{value}{code}" if width == 1 else f"b{value:b} {code}"


def _code(number: int) -> str:
    """Return the short VCD identifier of a number: !, ", ... then two characters."""
    code = chr(_FIRST + number % _CODES)
    return code if number < _CODES else _code(number // _CODES - 1) + code


def _one_line(text: str) -> str:
    return " ".join(ascii(text)[1:-1].split())
