"""Simulates a compiled network on transistors at given parameters, and gives the gradient of a sum by all of these.

    forward   samples -> readout r and candidates u at the moments of the decisions; each cell's thresholds; ampere
    back      dJ/dr, dJ/du, dJ/dthresholds -> dJ by all that the network learned, by bias currents and by areas

J is any function of readouts, candidates and thresholds, such as a loss; its derivatives by them are given. All states
are constants on the way back: what a flip of a state would change is left to the caller. V is the deviation of a
transistor's threshold voltage, e that of ln of its current factor.

    weight      The transistors of a weight W carry W times a signal: dJ/dW = dJ/de / W, e common to these transistors.
                A signal of 0 is a pedestal current, cancelled by another weight W' of the row; so dJ/dW' is subtracted
                from dJ/dW of each signal with a pedestal. A weight of 0 has no transistor: its derivative is the sum
                over frames of dJ/du or dJ/dr times the signal, without frames in which a candidate is 0.
    bias pin    With the current I: dJ/dln(I) of the simulated currents, plus K^T dJ/d(thresholds) for each cell on the
                pin, where K is the derivative of a cell's two thresholds by ln of the currents that it gets from its
                two pins.
    threshold   The compiler turns a cell's learned thresholds into these two currents. D = dln(I)/d(learned thresholds)
                is taken by steps of 1e-3 of the unit current to both sides, or to the only side that can be calibrated:
                D^T dJ/dln(I), with both parts of the pin's derivative.
    area        V and e are proportional to 1 / sqrt(area): dJ/dln(area) = -1/2 sum(V dJ/dV + e dJ/de).
    constant    A cell that no input changes is not built, and its own parameters have the derivative 0. A weight that
                reads it has h times that of its row's bias, with the cell's constant h.

The compiler rounds weights to whole devices, cuts those beyond the largest mirror if it is asked to, and moves
thresholds to the middle between two candidates; derivatives pass straight through all three. Derivatives of simulated
currents are those of `engines.batch.sensitivity`. Thresholds, which are no current of the simulation, and their
derivatives are those of the behavioral equations (`engines.behavioral.effects`). Law of areas: M. J. M. Pelgrom, A. C.
J. Duinmaijer and A. P. G. Welbers, IEEE J. Solid-State Circuits 24 (1989) 1433.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import CHIPS, SEED
from cosim.base.errors import InputError, MappingError, SimulationError, UnitCurrentError
from cosim.base.text import listed, shown
from cosim.circuit.bench import Current, DrainCurrent
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.compiler.mapping import learned_arrays
from cosim.compiler.passes import compile_network
from cosim.engines.batch.circuit import Unsupported
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.sensitivity import Reading, RecordedTile, gradients, record
from cosim.engines.batch.simulator import SimulationTimeout
from cosim.engines.behavioral.effects import effects_of
from cosim.engines.behavioral.evaluate import cell_of
from cosim.engines.chip import deviations_of
from cosim.engines.engine import DEFAULT_TIMEOUT, Run
from cosim.engines.simulation.read import (
    Margin,
    ReadPlan,
    decision_margins,
    read_inference,
    read_plan,
    with_candidates,
    with_margins,
)
from cosim.engines.simulation.testbench import encode_sample, inference_bench
from cosim.network.ir.graph import Edge, ScaledGraph
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT, InputCurrent, Memory, Output, Pedestal, UnitCurrent, Weight
from cosim.network.layers import SignedLayer
from cosim.network.types import Network, check_network
from cosim.units.builder import net, weight_device
from cosim.units.schmitt import Schmitt, SchmittFactors
from cosim.units.sizing import SizingInput
from cosim.variation.draws import Chip, VariationPlan, draw_chip, varying_devices

Array = NDArray[np.float64]
_STEP = 1e-4  # of ln(I), over which a threshold's derivative is taken; thresholds are smooth in it
_THRESHOLD_STEP = 1e-3  # of the unit current: the same for the compiler's bias currents
_OFF = 1e-3  # of the unit current: a candidate below it is no longer moved by its row
READOUT = "readout"
_FIXED = (".alpha", ".initial")  # ends of the names of arrays without derivatives here: levels and first states
_EFFECTS = ("thresh", "width", "compared")  # factors of a cell that move its thresholds


class StateLinks(NamedTuple):
    """Links from a simulated circuit's states to candidates and outputs, by the network's equations, software units.

    into_cells (cells, cells), into_outputs (outputs, cells): what a state of 1 adds to a candidate or an output; stages
    (cells,): in which each cell decides; start (cells,): first states; zero, step (cells,): h is zero + step times the
    state.
    """

    into_cells: Array
    into_outputs: Array
    stages: Array
    start: Array
    zero: Array
    step: Array


@dataclass(frozen=True, eq=False)
class ParameterGradients:
    """Gradients of a sum of simulated currents, by name of the parameter.

    learned: by arrays, in software units; pins: by ln of bias pins' currents; area: by ln of the area of each role.
    """

    learned: dict[str, Array]
    pins: dict[str, float]
    area: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Job:
    """Samples to simulate, each on its chip, None for one without mismatch; margins: how to measure each decision."""

    design: Design
    condition: Condition
    timing: Timing
    samples: tuple[Array, ...]
    chips: tuple[Chip | None, ...]
    margins: tuple[Margin, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the names of the cells of a simulation, in the order of their states."""
        return tuple(self.design.assembly.decisions)

    @property
    def valid(self) -> Array:
        """Return 1 for the frames of each simulated sample, 0 behind its end, (n, frames)."""
        lengths = np.array([len(x) for x in self.samples])
        return np.asarray(np.arange(lengths.max()) < lengths[:, None], dtype=np.float64)

    def plan(self, frames: int) -> ReadPlan:
        """Return what to read from the simulation of a sample of so many frames."""
        plan = read_plan(self.design, frames, self.timing, self.condition)
        return with_margins(plan, self.margins, Run(timing=self.timing, condition=self.condition))

    def thresholds(self) -> "dict[Chip | None, _ChipThresholds]":
        """Return the thresholds on each chip that is simulated."""
        return {chip: _chip_thresholds(self.design, self.condition, chip) for chip in dict.fromkeys(self.chips)}


@dataclass(frozen=True, eq=False)
class _Tile:
    """Samples that were simulated side by side: their numbers, recorded steps, and plans of reading."""

    numbers: tuple[int, ...]
    recorded: RecordedTile
    plans: tuple[ReadPlan, ...]


@dataclass(frozen=True, eq=False)
class _ChipThresholds:
    """The thresholds of the cells on a chip, (cells, 2), ampere, upper one first, with their derivatives by ln(I) and
    by ln of the candidate as compared, (cells, 2, 3): thresh, width, compared."""

    values: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class SimulatedSamples:
    """Samples that ran on the transistors of a design.

    readout (n, frames, outputs), candidate (n, frames, cells), ampere; states (n, frames, cells), 0 or 1; thresholds
    (n, cells, 2): each cell's upper and lower threshold on the sample's chip, ampere. Frames behind a sample's own are
    0.
    """

    job: _Job
    tiles: tuple[_Tile, ...]
    readout: Array
    candidate: Array
    states: Array
    thresholds: Array

    @property
    def i_unit(self) -> float:
        """Return the unit current of the simulated design, ampere per software 1.0."""
        return self.job.design.i_unit

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the names of the simulated cells, in the order of their states."""
        return self.job.cells

    def links(self) -> StateLinks:
        """Return how the simulated states reach candidates and outputs by the network's equations."""
        graph = self.job.design.graph
        cells = [node for cell in self.cells if isinstance(node := graph.nodes[cell], Schmitt)]

        def into(names: Sequence[str]) -> Array:
            found = np.zeros((len(names), len(cells)))
            for i, name in enumerate(names):
                for k, node in enumerate(cells):
                    if (mirror := graph.mirrors.get((node.name, name))) is not None:
                        found[i, k] = mirror.realised * node.level
            return found

        fields = ("stage", "start", "zero", "step")
        stages, start, zero, step = (np.array([float(getattr(one, name)) for one in cells]) for name in fields)
        return StateLinks(into(self.cells), into([node.name for node in graph.of(Output)]), stages, start, zero, step)

    def pull_back(self, readout: Array, candidate: Array, thresholds: Array) -> ParameterGradients:
        """Return dJ by all parameters, from dJ by the fields of these names, each of the shape of its field."""
        valid = self.job.valid[:, :, None]
        readout, candidate = readout * valid, candidate * valid
        names, volts, factors, pins = self._adjoint(readout, candidate)
        place = {name: k for k, name in enumerate(names)}
        mirrors = _threshold_mirrors(self.job.design)
        by_mirror = factors.sum(axis=0)[[[place[one] for one in mirrors[cell]] for cell in self.cells]]
        slopes = {chip: found.slopes for chip, found in self.job.thresholds().items()}
        by_line = np.zeros((len(self.cells), 2))  # through thresholds alone
        for n, chip in enumerate(self.job.chips):
            by_effect = np.einsum("ct,cte->ce", thresholds[n], slopes[chip])
            by_line += by_effect[:, :2]
            _add_threshold_deviations(self.job, by_effect, place, (volts[n], factors[n]))
        by_edge = _by_edges(self, dict(zip(names, factors.sum(axis=0).tolist(), strict=True)), readout, candidate)
        learned = _by_weights(self.job.design, by_edge)
        _add_thresholds(self.job, by_line + by_mirror, learned)
        for k, cell in enumerate(self.cells):
            for pin, value in zip(self.job.design.assembly.cell_bias[cell][:2], by_line[k].tolist(), strict=True):
                pins[pin] += value
        return ParameterGradients(learned, pins, self._by_area(names, volts, factors))

    def _adjoint(self, readout: Array, candidate: Array) -> tuple[tuple[str, ...], Array, Array, dict[str, float]]:
        """Run all tiles backwards: return transistors, dJ by their deviations, V and e, (n, transistors), and by ln of
        the bias pins' currents."""
        job = self.job
        outputs, wanted = job.design.assembly.outputs, job.design.bias_pins(job.condition)
        names: tuple[str, ...] = ()
        volts: list[Array] = []
        factors: list[Array] = []
        pins = dict.fromkeys(wanted, 0.0)
        for tile in self.tiles:
            objective: list[list[Reading]] = []
            for n, plan in zip(tile.numbers, tile.plans, strict=True):
                frames = len(plan.times)
                terms = [Reading(Current(pin), plan.times, readout[n, :frames, k]) for k, pin in enumerate(outputs)]
                terms += [
                    Reading(DrainCurrent(margin.device), plan.closes[k], candidate[n, :frames, k])
                    for k, margin in enumerate(job.margins)
                ]
                objective.append(terms)
            found = gradients(tile.recorded, [objective])
            names = found.transistors
            volts.append(found.vt_shift[0])
            factors.append(found.ln_beta[0])
            for pin, value in zip(found.sources, found.current[0].sum(axis=0).tolist(), strict=True):
                if pin in pins:
                    pins[pin] += wanted[pin] * value
        return names, np.concatenate(volts), np.concatenate(factors), pins

    def _by_area(self, names: tuple[str, ...], volts: Array, factors: Array) -> dict[str, float]:
        """Return dJ by ln of the area of each role's transistors, from dJ by the deviations of each transistor."""
        found: dict[str, float] = {}
        for chip in dict.fromkeys(self.job.chips):
            if chip is None:
                continue
            own = [n for n, other in enumerate(self.job.chips) if other is chip]
            by_volt = dict(zip(names, volts[own].sum(axis=0).tolist(), strict=True))
            by_factor = dict(zip(names, factors[own].sum(axis=0).tolist(), strict=True))
            for k, device in enumerate(chip.devices):
                if device.role is not None:
                    moved = chip.vt_shift[k] * by_volt[device.name]
                    moved += np.log(chip.beta_factor[k]) * by_factor[device.name]
                    found[device.role] = found.get(device.role, 0.0) - 0.5 * float(moved)
        return found


@dataclass(frozen=True)
class SimulatedCircuit:
    """A compiled network whose transistors are simulated at values of its learned arrays, bias pins and areas.

    design: with Schmitt triggers of constant thresholds and no other unit, whose states are read in their own frame;
    condition: in which it runs; timeout: seconds of processor time for each sample; chips: numbers of the chips that
    are drawn with `seed`, of which each runs an equal share of the samples, in order; none for one without mismatch.
    """

    design: Design
    condition: Condition
    timing: Timing = Timing()
    timeout: float = DEFAULT_TIMEOUT
    chips: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise MappingError that names a unit, or a signal, for which there are no derivatives."""
        assert self.condition.bias_scale == self.condition.input_scale == 1, "currents are those of the design"
        _check_graph(self.design)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Return the arrays of the simulated network that have derivatives, by name: not levels and first states."""
        every = learned_arrays(self.design.network).items()
        return {name: value for name, value in every if not name.endswith(_FIXED)}

    @property
    def features(self) -> int:
        """Return how many numbers a frame of a sample to simulate has."""
        return self.design.network.encoding.features

    @property
    def pins(self) -> tuple[str, ...]:
        """Return the names of the design's bias pins."""
        return tuple(self.design.assembly.bias_pins)

    def network(self, learned: Mapping[str, Array]) -> Network:
        """Return the network of the simulated circuit with these learned arrays in place of its own."""
        _check_names("learned array", learned, learned_arrays(self.design.network))
        fields: dict[str, dict[str, Array]] = {}
        for name, value in learned.items():
            owner, _, field = name.rpartition(".")
            fields.setdefault(owner, {})[field] = value
        network = self.design.network
        layers = tuple(replace(layer, **fields.get(layer.name, {})) for layer in network.layers)
        readout = replace(network.readout, **fields.get(READOUT, {}))
        return check_network(replace(network, layers=layers, readout=readout), "learned arrays")

    def on_chips(self, chips: Sequence[int], seed: int) -> "SimulatedCircuit":
        """Return the simulated circuit on the chips with these numbers."""
        for number in chips:
            CHIPS.check("chips", number + 1)
        SEED.check("seed", seed)
        return replace(self, chips=tuple(chips), seed=seed)

    def simulate(
        self,
        samples: Sequence[Array],
        learned: Mapping[str, Array],
        pins: Mapping[str, float],
        area: Mapping[str, float],
        *,
        keep: bool = True,
    ) -> SimulatedSamples:
        """Simulate raw samples, each (frames, features), on the transistors.

        learned: name of an array, such as `layer1.weight` -> its values, absent for those of the design's own network;
        pins: bias pin -> factor of its current; area: role of transistors -> their gate area over the drawn one, for
        mismatch alone; absent for 1. Arrays that differ from the network's are compiled anew, so that weights are whole
        numbers of devices; cells that no input changes are then left out. keep: whether to keep the steps of all
        samples for the way back, some 5 MB a sample for 700 transistors and 8 frames. Raises MappingError where the
        arrays cannot be built, InputError for names that do not exist and shares of samples that are not equal,
        SimulationError where the engine cannot run a sample.
        """
        design = self._compiled(learned)
        if pins and design is not self.design:
            raise InputError(
                "pins are those of the circuit as compiled; give other `learned` arrays or `pins`, not both"
            )
        _check_names("bias pin", pins, design.assembly.bias_pins)
        if area and not self.chips:
            raise InputError("area counts for mismatch alone; choose chips with `on_chips`, or leave `area` out")
        for kind, factors in (("pins", pins), ("area", area)):
            if wrong := next((name for name, value in factors.items() if not 0 < value < math.inf), None):
                raise InputError(
                    f"{kind}: {wrong} must be a positive factor, not {factors[wrong]:g}; 1 changes nothing"
                )
        own = self.condition.pins
        condition = replace(self.condition, pins={**own, **{pin: own.get(pin, 1.0) * pins[pin] for pin in pins}})
        chips = self._drawn(design, area, len(samples))
        margins = [one for one in decision_margins(design, Run(timing=self.timing, condition=condition)) if one]
        job = _Job(design, condition, self.timing, tuple(samples), chips, tuple(margins))
        return _read(job, (self._tile(job, first) for first in range(0, len(samples), LANES)), keep=keep)

    def _tile(self, job: _Job, first: int) -> _Tile:
        """Simulate LANES samples of a job, or as many as there are, from number `first` on."""
        numbers = tuple(range(first, min(first + LANES, len(job.samples))))
        benches = [
            with_candidates(
                inference_bench(job.design, job.samples[n], job.timing, job.condition, job.chips[n]), job.margins
            )
            for n in numbers
        ]
        which = f"samples {first} to {numbers[-1]}"
        try:
            recorded = record(benches, self.timeout * len(benches))
        except Unsupported as reason:
            raise SimulationError(f"{which}: the batch engine cannot run one of them: {reason}") from None
        except SimulationTimeout:
            raise SimulationError(f"{which} take longer than {self.timeout:g} s each; give more `timeout`") from None
        return _Tile(numbers, recorded, tuple(job.plan(len(job.samples[n])) for n in numbers))

    def _drawn(self, design: Design, area: Mapping[str, float], count: int) -> tuple[Chip | None, ...]:
        """Return the chip of each of `count` samples to simulate, None for one without mismatch."""
        if not self.chips:
            return (None,) * count
        if count % len(self.chips):
            raise InputError(f"{count} samples must be a multiple of the {len(self.chips)} chips; give others")
        technology, plan = self.condition.technology, VariationPlan("local", self.seed, max(self.chips) + 1)
        devices = varying_devices(design.assembly.circuit, technology, plan)
        _check_names("role", area, dict.fromkeys(one.role for one in devices if one.role))
        spread = np.array([area.get(one.role or "", 1.0) ** -0.5 for one in devices])
        chips = [draw_chip(devices, technology, plan, number) for number in self.chips]
        chips = [replace(chip, vt_shift=chip.vt_shift * spread, beta_factor=chip.beta_factor**spread) for chip in chips]
        return tuple(chip for chip in chips for _ in range(count // len(chips)))

    def _compiled(self, learned: Mapping[str, Array]) -> Design:
        """Return the design of the network with these arrays; the own one where they are its own."""
        own = learned_arrays(self.design.network)
        for name, value in learned.items():
            if name in own and value.shape != own[name].shape:
                raise InputError(f"{name} must have the shape {own[name].shape}, not {value.shape}")
        if all(name in own and np.array_equal(value, own[name]) for name, value in learned.items()):
            return self.design
        network, own_design = self.network(learned), self.design
        design = compile_network(network, own_design.technology, own_design.calibration, own_design.settings)
        _check_graph(design)
        return design


def _check_graph(design: Design) -> None:
    """Raise MappingError for a node whose current or state has no derivative here."""
    graph, known = design.graph, (InputCurrent, UnitCurrent, Pedestal, Output, Schmitt)
    for name, node in graph.nodes.items():
        if not isinstance(node, known) or graph.into(name, "beta"):
            raise MappingError(
                f"{name} has no derivatives through transistors: only Schmitt triggers (epsilon 0) with constant "
                "thresholds and the readout have; train the network with `cosim train --variation local`, by equations"
            )
    if late := next((edge for edge, weight in graph.weights.items() if weight.late), None):
        raise MappingError(
            f"{late[1]} reads {late[0]} a frame late, and such a network has no derivatives through transistors; train "
            "it with `cosim train`"
        )
    if design.compiled is not None:
        raise MappingError("a changed circuit has no derivatives; compile without `overrides` and `netlist`")
    if design.assembly.around.blocks:
        raise MappingError(
            f"{listed(design.assembly.around.blocks)} around the network have no derivatives; compile without `around`"
        )


def _check_names(kind: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    if strange := next((name for name in given if name not in known), None):
        raise InputError(f"there is no {kind} {shown(strange)}; there are {listed(list(known))}")


def _read(job: _Job, tiles: Iterable[_Tile], *, keep: bool) -> SimulatedSamples:
    """Simulate all tiles of a job, and read readout, candidates and states; keep: whether to keep the tiles."""
    kept: list[_Tile] = []
    shape, cells = (len(job.samples), max(map(len, job.samples))), len(job.cells)
    readout = np.zeros((*shape, len(job.design.assembly.outputs)))
    candidate, states = np.zeros((*shape, cells)), np.zeros((*shape, cells))
    for tile in tiles:
        kept += [tile] if keep else []
        for lane, (n, plan) in enumerate(zip(tile.numbers, tile.plans, strict=True)):
            waves, frames = tile.recorded.waveforms(lane), len(plan.times)
            inference = read_inference(waves, replace(plan, margins=()))
            readout[n, :frames], states[n, :frames] = inference.readout, inference.states
            for k, margin in enumerate(job.margins):
                candidate[n, :frames, k] = np.interp(plan.closes[k], waves.time, waves.drain(margin.device))
    thresholds = job.thresholds()
    return SimulatedSamples(
        job, tuple(kept), readout, candidate, states, np.stack([thresholds[chip].values for chip in job.chips])
    )


def _chip_thresholds(design: Design, condition: Condition, chip: Chip | None) -> _ChipThresholds:
    """Return the thresholds of all cells of a design on a chip, with their derivatives."""
    drawn = deviations_of(design, condition, chip).cells
    values: list[Array] = []
    slopes: list[Array] = []
    for name in design.assembly.decisions:
        node, factors = design.graph.nodes[name], drawn.get(name, SchmittFactors())
        assert isinstance(node, Schmitt)
        assert isinstance(factors, SchmittFactors)

        def at(factors: SchmittFactors, node: Schmitt = node) -> Array:
            found = node.switching_thresholds(cell_of(design.graph, node, design.calibration, factors), ())
            return np.array([float(found.while_off[0]), float(found.while_on[0])])

        values.append(at(factors))
        by: list[Array] = []
        for field in _EFFECTS:
            more, less = (
                at(replace(factors, **{field: getattr(factors, field) * np.exp(step)})) for step in (_STEP, -_STEP)
            )
            by.append((more - less) / (2 * _STEP))
        slopes.append(np.stack(by, axis=1))
    return _ChipThresholds(np.array(values), np.array(slopes))


def _add_threshold_deviations(
    job: _Job, by_effect: Array, place: Mapping[str, int], deviations: tuple[Array, Array]
) -> None:
    """Add to dJ by a sample's deviations, V and e, each (transistors,), what comes through thresholds.

    by_effect: (cells, 3), dJ by ln of thresh, width and compared.
    """
    volts, factors = deviations
    thermal = job.condition.technology.thermal_voltage
    number, kinds = {cell: k for k, cell in enumerate(job.cells)}, {name: k for k, name in enumerate(_EFFECTS)}
    for one in effects_of(job.design):
        if one.factors is None or one.field not in kinds:
            continue
        by = by_effect[number[str(one.key)], kinds[one.field]]
        for (device, sign), slope in zip(one.devices, one.slopes, strict=True):
            factors[place[device]] += sign * by
            volts[place[device]] -= sign * by / (slope * thermal)


def _signals(run: SimulatedSamples, source: str) -> Array:
    """Return the current of a node by the network's equations, over the unit current, (n, frames)."""
    graph = run.job.design.graph
    node, found, pedestal = graph.nodes[source], np.zeros(run.states.shape[:2]), graph.i_pedestal / run.i_unit
    if isinstance(node, UnitCurrent):
        return found + 1.0
    if isinstance(node, Schmitt):
        found = node.level * run.states[:, :, run.cells.index(source)]
    elif isinstance(node, InputCurrent):
        for n, x in enumerate(run.job.samples):
            found[n, : len(x)] = encode_sample(run.job.design, x)[:, node.index]
    return found + pedestal


def _by_edges(
    run: SimulatedSamples, factors: Mapping[str, float], readout: Array, candidate: Array
) -> dict[Edge, float]:
    """Return dJ by the value of each weight of the graph, in software units.

    factors: transistor -> dJ by e, of all samples; readout, candidate: dJ by the fields of these names.
    """
    graph, found = run.job.design.graph, dict[Edge, float]()
    moved = np.where(run.candidate > _OFF * run.i_unit, candidate, 0.0)
    rows = {cell: moved[:, :, k] for k, cell in enumerate(run.cells)}
    rows |= {node.name: readout[:, :, node.index] for node in graph.of(Output)}
    for target, by in rows.items():
        for index, (source, _) in enumerate(graph.into(target)):
            mirror = graph.mirrors[source, target]
            if mirror.count:
                found[source, target] = factors[weight_device(f"row_{net(target)}", index)] / mirror.realised
            else:
                found[source, target] = run.i_unit * float((by * _signals(run, source)).sum())
    return found


def _by_weights(design: Design, by_edge: Mapping[Edge, float]) -> dict[str, Array]:
    """Return dJ by the learned weights and biases, from that by the graph's weights; arrays of other names are 0."""
    graph = design.graph
    arrays = learned_arrays(design.network).items()
    found = {name: np.zeros(value.shape) for name, value in arrays if not name.endswith(_FIXED)}
    for (source, target), weight in graph.left_out.weights.items():
        if source in graph.left_out.states and (UNIT_CURRENT, target) in by_edge:  # a constant is in the row's bias
            node, (name, place) = graph.left_out.nodes[source], _learned_place(weight)
            assert isinstance(node, Memory)
            h = node.zero + node.step * graph.left_out.states[source]
            found[name][place] += h * by_edge[UNIT_CURRENT, target]
    for (source, target), by in by_edge.items():
        node = graph.nodes[source]
        if isinstance(node, Pedestal):
            continue
        gain, total = 1.0, by
        if not isinstance(node, UnitCurrent):
            total -= by_edge.get((PEDESTAL, target), 0.0)
        if isinstance(node, Schmitt):  # a learned weight is on h = zero + step s, its transistors on level s
            gain = node.step / node.level
            total = gain * total + node.zero * by_edge.get((UNIT_CURRENT, target), 0.0)
        name, place = _learned_place(graph.weights[source, target])
        found[name][place] += total
    return found


def _learned_place(weight: Weight) -> tuple[str, tuple[int, ...]]:
    """Return the learned array of a simulated weight, such as `layer1.weight`, and its place there."""
    name, _, indices = weight.origin.partition(" ")[0].rstrip("]").partition("[")
    return name, tuple(int(index) for index in indices.split(","))


def _threshold_mirrors(design: Design) -> dict[str, tuple[str, str]]:
    """Return cell -> the transistors that bring it the currents of its threshold pin and of its width pin."""
    found = {(one.key, one.field): one.devices[0][0] for one in effects_of(design) if one.factors is SchmittFactors}
    return {cell: (found[cell, "thresh"], found[cell, "width"]) for cell in design.assembly.decisions}


def _add_thresholds(job: _Job, by_line: Array, learned: dict[str, Array]) -> None:
    """Add dJ by the learned thresholds to `learned`.

    by_line: (cells, 2), dJ by ln of the currents that each cell receives from its two pins.
    """
    layers = {layer.name: layer for layer in job.design.network.layers}
    for k, cell in enumerate(job.cells):
        node = job.design.graph.nodes[cell]
        assert isinstance(node, Schmitt)
        rise, fall = job.design.i_unit * (_bias_slopes(job.design, node).T @ by_line[k])
        layer = layers[node.layer]
        if isinstance(layer, SignedLayer):
            learned[f"{layer.name}.bias_beta"][node.index] += np.sign(layer.bias_beta[node.index]) * (rise - fall)
        else:
            learned[f"{layer.name}.beta_hi"][node.index] += rise
            learned[f"{layer.name}.beta_lo"][node.index] += fall


def _bias_slopes(design: Design, node: Schmitt) -> Array:
    """Return d ln(I_thresh, I_width) of a cell's pins by its upper and lower threshold, to simulate; (2, 2), 1/A."""
    sized, asked, step = design.graph, design.graph.currents[node.name], _THRESHOLD_STEP * design.i_unit
    weights = {edge: weight for edge, weight in sized.weights.items() if edge[0] != PEDESTAL}  # as sizing has them

    def at(rise: float, fall: float) -> Array:
        moved = {**sized.currents, node.name: replace(asked, i_rise=asked.i_rise + rise, i_fall=asked.i_fall + fall)}
        graph = ScaledGraph(sized.nodes, weights, sized.i_unit, moved, comparator_devices=sized.comparator_devices)
        bias = node.solve_bias(SizingInput(graph, design.calibration))
        return np.log([bias.i_thresh, bias.i_width])

    def slope(rise: float, fall: float) -> Array:
        """Return the difference over one step; at the end of what can be calibrated, to one side."""
        for up, down in ((1, 1), (1, 0), (0, 1)):
            with suppress(UnitCurrentError):
                more, less = at(up * rise, up * fall), at(-down * rise, -down * fall)
                return (more - less) / ((up + down) * step)
        return np.zeros(2)

    return np.stack([slope(step, 0.0), slope(0.0, step)], axis=1)
