"""Lower: a network becomes a graph of non-negative currents, in software units.

First-quadrant unit (arXiv 2605.15216): u = max(W x + b, 0), thresholds beta_hi and beta_lo, level alpha.

Signed unit of the seed paper (arXiv 2605.11855, eq. 2-5) on one cell: add a common-mode offset c to the candidate and
to both thresholds, rise = c + beta, fall = c - beta. With c above every beta at which the unit may reset, fall is
positive there, and rectifying c + h_hat changes no decision: where it is negative, it is below fall.
beta = |W_b x + b_b| = max(v, 0) + max(-v, 0): two rectifiers per unit.

What a memory is depends on epsilon (eq. 7). 0: the state is replaced, a Schmitt trigger. 1: S alpha is added, and the
state stays on a lattice of step alpha: a ladder. -1: h_t = S alpha - h_{t-1}, which with S of one sign has two values:
a toggle. Its state s is a whole number and h = zero + step s; a reader sees the current level s, so its weight is
W step / level, and W zero joins its bias.
"""

from typing import Literal

import numpy as np
from scipy.optimize import linprog

from cosim.errors import MappingError
from cosim.ir.graph import Lowered, Wiring
from cosim.ir.ladder import ALPHA
from cosim.ir.nodes import (
    UNIT_CURRENT,
    InputCurrent,
    Ladder,
    Memory,
    Output,
    Rectifier,
    Schmitt,
    Toggle,
    UnitCurrent,
    Weight,
)
from cosim.network.offset import OFFSET_MARGIN, common_mode_offset
from cosim.network.types import (
    INPUT,
    LARGEST,
    Array,
    FirstQuadrantLayer,
    Layer,
    Network,
    Readout,
    RecurrentLayer,
    ReluLayer,
    SignedLayer,
)

HEADROOM = 1  # rungs beyond the range of the data, at either end
MAX_RUNGS = 32

Cell = Literal["auto", "schmitt", "ladder"]


def lower(network: Network, origin: str = "network", cell: Cell = "auto", headroom: int = HEADROOM) -> Lowered:
    """The graph of a network; every learned weight has its edge, zeros included.

    `cell`: what recurrent units become, auto chooses by epsilon; `headroom`: rungs of a ladder beyond the network's
    state ranges. Raises MappingError for units that have no circuit, with the reason and the repair.
    """
    graph = Wiring()
    for layer in network.recurrent_layers:
        _check_form(layer, origin, cell)
    signals: dict[str, list[str]] = {INPUT: [f"in.{j}" for j in range(network.encoding.width)]}
    step = None if network.encoding.levels is None else 1.0 / network.encoding.levels
    for j, name in enumerate(signals[INPUT]):
        graph.add(InputCurrent(name, j, step))
    graph.add(UnitCurrent())

    stages: dict[str, int] = {INPUT: 0}
    for layer in network.layers:
        stage = max(stages[source] for source in layer.sources)
        sources = [name for source in layer.sources for name in signals[source]]
        ranges = network.state_ranges.get(layer.name)
        _add_layer(graph, layer, sources, stage, ranges, origin, headroom)
        signals[layer.name] = [f"{layer.name}.{i}" for i in range(layer.width)]
        stages[layer.name] = stage + (not isinstance(layer, ReluLayer))
    _add_readout(graph, network.readout, signals)
    return graph.lowered()


def _check_form(layer: RecurrentLayer, origin: str, cell: Cell) -> None:
    where, epsilon = f"{origin}: {layer.name}", layer.epsilon
    if isinstance(layer, SignedLayer) and layer.weight_alpha is not None:
        raise MappingError(
            f"{where} is an alphaCMRU: its candidate and thresholds map, but the level that an update stores depends "
            "on the input, and the cells here store whole steps of a constant level; train with --cell cmru or bmru"
        )
    if epsilon not in (-1, 0, 1):
        raise MappingError(
            f"{where}.epsilon must be 0 (Schmitt trigger), 1 (ladder) or -1 (toggle), not {epsilon:g}: between them an "
            "update multiplies the stored state by epsilon, so it has no finite set of levels that a circuit could "
            "hold; anneal it to 0 in training (cosim train --epsilon anneal), or train with --epsilon 1"
        )
    if cell == "schmitt" and epsilon != 0:
        raise MappingError(
            f"{where}.epsilon must be 0 for a Schmitt trigger, not {epsilon:g}; anneal it to 0 in training (cosim "
            "train --epsilon anneal), or compile with --cell auto"
        )
    if cell == "ladder" and epsilon != 1:
        raise MappingError(
            f"{where}.epsilon must be 1 for a ladder, which adds to its state, not {epsilon:g}; train with --epsilon "
            "1, or compile with --cell auto"
        )
    if isinstance(layer, SignedLayer) and layer.weight_beta is not None and epsilon != 0:
        raise MappingError(
            f"{where} has thresholds that depend on the input, which a quantiser's two fixed thresholds cannot follow; "
            "train with --beta fixed, or anneal epsilon to 0"
        )


def _readable(graph: Wiring, sources: list[str]) -> tuple[Array, Array]:
    """Per source, (gain, zero): its value in the software is gain times its current plus zero."""
    gains, zeros = np.ones(len(sources)), np.zeros(len(sources))
    for k, source in enumerate(sources):
        node = graph.nodes[source]
        if isinstance(node, Memory):
            gains[k] = 1.0 if node.step == node.level else node.step / node.level
            zeros[k] = node.zero
    return gains, zeros


def _add_layer(
    graph: Wiring,
    layer: Layer,
    sources: list[str],
    stage: int,
    ranges: Array | None,
    origin: str,
    headroom: int,
) -> None:
    gains, zeros = _readable(graph, sources)
    weight, bias = layer.weight * gains, layer.bias + layer.weight @ zeros
    if isinstance(layer, ReluLayer):
        for i in range(layer.width):
            name = f"{layer.name}.{i}"
            graph.add(Rectifier(name, layer.name, i))
            _add_row(graph, name, sources, weight[i], bias[i], layer.name, "", i)
    elif layer.epsilon != 0:
        _add_native_layer(graph, layer, sources, weight, bias, stage, ranges, origin, headroom)
    elif isinstance(layer, FirstQuadrantLayer):
        for i in range(layer.width):
            name = f"{layer.name}.{i}"
            rise, fall, level = float(layer.beta_hi[i]), float(layer.beta_lo[i]), float(layer.alpha[i])
            graph.add(Schmitt(name, layer.name, i, stage, rise, fall, level, 0.0, level))
            _add_row(graph, name, sources, weight[i], bias[i], layer.name, "", i)
    else:
        _add_signed_layer(graph, layer, sources, weight, bias, stage)


def _add_native_layer(
    graph: Wiring,
    layer: RecurrentLayer,
    sources: list[str],
    weight: Array,
    bias: Array,
    stage: int,
    ranges: Array | None,
    origin: str,
    headroom: int,
) -> None:
    """Ladders (epsilon 1) or toggles (epsilon -1); how many levels they need is known from data alone."""
    if ranges is None:
        raise MappingError(
            f"{origin}: the range of the states of {layer.name} is not known, which decides how many rungs its ladders "
            "need; train it with cosim train, or give samples with --ranges-from FILE.npz (x_test, y_test)"
        )
    for i in range(layer.width):
        name, where = f"{layer.name}.{i}", f"{origin}: {layer.name}[{i}]"
        if isinstance(layer, FirstQuadrantLayer):
            rise, fall, unit, first = float(layer.beta_hi[i]), float(layer.beta_lo[i]), float(layer.alpha[i]) / 2, 0.0
        else:
            rise = abs(float(layer.bias_beta[i]))
            fall, unit, first = -rise, float(layer.alpha[i]), -float(layer.alpha[i])
        if isinstance(layer, FirstQuadrantLayer) and fall < 0:
            raise MappingError(
                f"{where}: beta_lo must not be negative, not {fall:g}: a rectified candidate never falls below it; "
                "raise beta_lo in training"
            )
        if not unit > 1 / LARGEST:
            raise MappingError(f"{where}: alpha must be positive, not {unit:g}; flip the sign of what reads it instead")
        steps = [round((float(end) - first) / unit) for end in ranges[:, i]]
        low, high = min(*steps, 0), max(*steps, 0)  # the state before the first step counts
        if layer.epsilon == 1:
            offset = _common_mode(-fall)
            rungs, start = max(high - low + 2 * headroom, 1), headroom - low
            if rungs > MAX_RUNGS:
                raise MappingError(
                    f"{where}: a ladder may have {MAX_RUNGS} rungs at most, not {rungs}: over the training data its "
                    f"state spans {high - low} steps of alpha; train with --range-max "
                    f"{MAX_RUNGS * unit / 2:g}, on shorter sequences or with wider thresholds"
                )
            node: Memory = Ladder(
                name, layer.name, i, stage, rise + offset, fall + offset, ALPHA, first - start * unit, unit, offset,
                rungs, start,
            )  # fmt: skip
            row, constant = weight[i], bias[i] + offset
        else:
            sign, step = _toggle_form(low, high, where)
            threshold = rise if sign > 0 else -fall
            offset = _common_mode(-threshold)
            node = Toggle(name, layer.name, i, stage, threshold + offset, 0.0, step * unit, first, step * unit, offset)
            row, constant = sign * weight[i], sign * bias[i] + offset
        graph.add(node)
        _add_row(graph, name, sources, row, constant, layer.name, "", i)


def _toggle_form(low: int, high: int, where: str) -> tuple[int, int]:
    """(sign of all updates, steps between the two levels): S = +1 alternates -alpha, 2 alpha; S = -1 -alpha, 0."""
    if low == 0 and high in (0, 3):
        return 1, 3
    if low == 0 and high == 1:
        return -1, 1
    raise MappingError(
        f"{where}: at epsilon -1 a toggle has two levels, which needs updates of one sign; over the training data the "
        f"state runs from {low:+d} to {high:+d} steps of alpha from its start, so both signs happen; train with "
        "another seed"
    )


def _common_mode(least: float) -> float:
    """The offset that lifts a threshold of -`least` clear of zero; 0 for a threshold that is."""
    if -least >= OFFSET_MARGIN / 4:
        return 0.0
    return float(common_mode_offset(least))


def _add_signed_layer(
    graph: Wiring, layer: SignedLayer, sources: list[str], weight: Array, bias: Array, stage: int
) -> None:
    gains, zeros = _readable(graph, sources)
    weight_beta = np.zeros_like(weight) if layer.weight_beta is None else layer.weight_beta * gains
    bias_beta = layer.bias_beta if layer.weight_beta is None else layer.bias_beta + layer.weight_beta @ zeros
    tops = _largest_signals(graph, sources)
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        if layer.weight_beta is None:
            beta = largest = abs(float(layer.bias_beta[i]))
        else:
            beta = 0.0
            largest = _largest_beta_at_reset(weight[i], bias[i], weight_beta[i], bias_beta[i], tops)
        offset = float(common_mode_offset(largest))
        alpha = float(layer.alpha[i])
        node = Schmitt(name, layer.name, i, stage, offset + beta, offset - beta, 2 * alpha, -alpha, 2 * alpha, offset)
        graph.add(node)
        _add_row(graph, name, sources, weight[i], bias[i] + offset, layer.name, "", i)
        if layer.weight_beta is not None:
            for sign, label in ((1.0, "pos"), (-1.0, "neg")):
                part = f"{name}.beta_{label}"
                graph.add(Rectifier(part, layer.name, i))
                weights, constant = sign * weight_beta[i], sign * bias_beta[i]
                _add_row(graph, part, sources, weights, constant, layer.name, "_beta", i, f" ({label})")
                graph.connect(part, name, Weight(1.0, f"{layer.name}.beta[{i}] ({label})", "beta"))


def _largest_beta_at_reset(weight: Array, bias: float, weight_beta: Array, bias_beta: float, tops: Array) -> float:
    """Largest beta at which h_hat <= -beta can happen, over signals in [0, top]: the offset must reach that far.

    beta = |v| with v = W_beta x + b_beta; for each sign of v: maximise |v| subject to |v| + h_hat <= 0. Also beta at
    x = 0, where the reset in front of frame 0 holds the inputs.
    """
    largest = abs(bias_beta)
    for sign in (1.0, -1.0):
        v, v_0 = sign * weight_beta, sign * bias_beta
        found = linprog(
            -v,
            A_ub=np.stack([v + weight, -v]),
            b_ub=[-(v_0 + bias), v_0],
            bounds=list(zip(np.zeros_like(tops), tops, strict=True)),
        )
        if found.status == 0:
            largest = max(largest, float(v @ found.x + v_0))
    return largest


def _largest_signals(graph: Wiring, sources: list[str]) -> Array:
    """Upper bound of each signal in units: 1 for an input, the level of a state, what can drive a rectifier."""
    found: dict[str, float] = {UNIT_CURRENT: 1.0}

    def largest(name: str) -> float:
        if name not in found:
            match graph.nodes[name]:
                case Ladder(level=level, rungs=rungs):
                    found[name] = level * rungs
                case Memory(level=level):
                    found[name] = level
                case Rectifier():
                    terms = ((source, weight.target) for source, weight in graph.lowered().into(name))
                    drive = sum(
                        target if source == UNIT_CURRENT else max(target, 0.0) * largest(source)
                        for source, target in terms
                    )
                    found[name] = max(drive, 0.0)
                case _:
                    found[name] = 1.0
        return found[name]

    return np.array([largest(source) for source in sources])


def _add_readout(graph: Wiring, readout: Readout, signals: dict[str, list[str]]) -> None:
    sources = [name for source in readout.sources for name in signals[source]]
    gains, zeros = _readable(graph, sources)
    bias = readout.bias + readout.weight @ zeros
    for k in range(readout.width):
        name = f"readout.{k}"
        graph.add(Output(name, k))
        _add_row(graph, name, sources, readout.weight[k] * gains, bias[k], "readout", "", k)


def _add_row(
    graph: Wiring,
    name: str,
    sources: list[str],
    weights: Array,
    bias: float,
    layer: str,
    suffix: str,
    row: int,
    part: str = "",
) -> None:
    for column, (source, value) in enumerate(zip(sources, weights, strict=True)):
        graph.connect(source, name, Weight(float(value), f"{layer}.weight{suffix}[{row},{column}]{part}"))
    graph.connect(UNIT_CURRENT, name, Weight(float(bias), f"{layer}.bias{suffix}[{row}]{part}"))
