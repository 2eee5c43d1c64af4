"""Rules for epsilon in the seed paper's unit and in its first-quadrant form (arXiv 2605.11855, eq. 7).

0: the state is replaced, a Schmitt trigger. 1: S alpha is added, and the state stays on a lattice of step alpha: a
ladder, or with many states a counter. -1: h_t = S alpha - h_{t-1}, which with S of one sign has two values: a toggle;
with both signs it has many, on the same lattice: a reflector. The state s of each is a whole number, and h = zero +
step s. A row that reads it receives the current level s, so its weight is W step / level, and W zero joins its bias.
How many states a unit needs is known from data alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cosim.base.errors import MappingError
from cosim.network.layers import OFFSET_MARGIN, EpsilonLayer, FirstQuadrantLayer, SignedLayer, common_mode_offset
from cosim.network.types import LARGEST
from cosim.units.beta import offset_on_comparators
from cosim.units.placement import Circuit, LayerPlacement

EPSILON_LAYERS = (FirstQuadrantLayer, SignedLayer)
EitherLayer = FirstQuadrantLayer | SignedLayer
_SAME = 1e-6  # of alpha


def check_epsilon(layer: EpsilonLayer, origin: str, cell: Circuit) -> None:
    """Raise MappingError if no kind of recurrent unit follows this layer's epsilon, or the requested `cell` does not.

    origin: file of the network, for the message; cell: circuit that the user asked for, or `auto`.
    """
    where, epsilon = f"{origin}: {layer.name}", layer.epsilon
    if isinstance(layer, SignedLayer) and layer.weight_alpha is not None:
        _check_stored(layer, where, cell)
    if epsilon not in (-1, 0, 1):
        raise MappingError(
            f"{where}.epsilon must be 0 (Schmitt trigger), 1 (ladder) or -1 (toggle), not {epsilon:g}: between them an "
            "update multiplies the stored state by epsilon, so it has no finite set of levels that a circuit could "
            "hold; anneal it to 0 in training (`train(epsilon=anneal)`), or train with `epsilon=1`"
        )
    if isinstance(layer, FirstQuadrantLayer) and layer.initial is not None and layer.initial.any() and epsilon:
        raise MappingError(
            f"{where}.initial must be 0 everywhere where epsilon is {epsilon:g}: only a Schmitt trigger can be reset "
            "to on; leave it out"
        )
    if cell == "schmitt" and epsilon != 0:
        raise MappingError(
            f"{where}.epsilon must be 0 for a Schmitt trigger, not {epsilon:g}; anneal it to 0 in training "
            "(`train(epsilon=anneal)`), or compile with `cell=auto`"
        )
    if cell in ("ladder", "counter") and epsilon != 1:
        raise MappingError(
            f"{where}.epsilon must be 1 for a {cell}, which adds to its state, not {epsilon:g}; train with "
            "`epsilon=1`, or compile with `cell=auto`"
        )


def _check_stored(layer: SignedLayer, where: str, cell: Circuit) -> None:
    """Raise MappingError for an alphaCMRU layer (which stores values) that no register can follow."""
    if layer.levels is None:
        raise MappingError(
            f"{where} is an alphaCMRU without a grid: what an update stores is any value of the input, and a register "
            "holds one of some levels; train with `levels=8`, or with `cell=cmru` or bmru"
        )
    if layer.epsilon != 0:
        raise MappingError(
            f"{where}.epsilon must be 0 for an alphaCMRU, not {layer.epsilon:g}: a register replaces what it holds; "
            "anneal it to 0 in training (`train(epsilon=anneal)`)"
        )
    if cell != "auto":
        raise MappingError(f"{where} is an alphaCMRU, which becomes a register, not a {cell}; compile with `cell=auto`")


@dataclass(frozen=True)
class Lattice:
    """One recurrent unit whose state is a whole number of steps.

    rise, fall: thresholds; step: of h; first: h at the start; count: h at the start in steps, from the value
    around which epsilon -1 reflects h. low, high: lowest and highest state, in steps from the start, over the data, or
    with `ended` those at which the unit itself stops. between: whether other states may occur, which the data tell at
    epsilon -1 only. where: its name in messages.
    """

    name: str
    index: int
    rise: float
    fall: float
    step: float
    first: float
    count: int
    low: int
    high: int
    where: str
    ended: bool = False
    between: bool = True

    def circuit_ends(self, headroom: int) -> tuple[int, int]:
        """Return the lowest and highest state that the unit's circuit must have, in steps from the start.

        They lie `headroom` states beyond those over the data, or are the ends at which the unit itself stops.
        """
        more = 0 if self.ended else headroom
        return self.low - more, self.high + more


def lattices(layer: EitherLayer, placement: LayerPlacement) -> Iterator[Lattice]:
    """Yield a `Lattice` for each recurrent unit of a layer with epsilon 1 or -1.

    Raises MappingError where the range of states is not known, beta_lo is negative, or alpha is not positive.
    """
    ends, ranges = layer.ends if isinstance(layer, SignedLayer) else None, placement.ranges
    if ends is None and ranges is None:
        raise MappingError(
            f"{placement.origin}: the range of the states of {layer.name} is not known, which decides how many rungs "
            "its ladders need; train it with `train()`, or give samples with `ranges_from=FILE.npz` (x_test, y_test)"
        )
    for i in range(layer.width):
        where, step = f"{placement.origin}: {layer.name}[{i}]", float(layer.increment[i])
        if isinstance(layer, FirstQuadrantLayer):
            rise, fall, first, count = float(layer.beta_hi[i]), float(layer.beta_lo[i]), 0.0, -1
        else:
            rise = 0.0 if layer.weight_beta is not None else abs(float(layer.bias_beta[i]))
            fall, first = -rise, float(layer.start[i])
            count = round(first / step) if step else 0
        if isinstance(layer, FirstQuadrantLayer) and fall < 0:
            raise MappingError(
                f"{where}: beta_lo must not be negative, not {fall:g}: a rectified candidate never falls below it; "
                "raise beta_lo in training"
            )
        if layer.epsilon == -1 and isinstance(layer, SignedLayer) and abs(count * step - first) > _SAME * abs(step):
            raise MappingError(
                f"{where}.initial must be a multiple of alpha at epsilon -1, not {first:g} with alpha {step:g}; begin "
                "at 0, or leave it out, so that the unit begins at -alpha"
            )
        if not step > 1 / LARGEST:
            raise MappingError(f"{where}: alpha must be positive, not {step:g}; flip the sign of what reads it instead")
        seen = [] if ranges is None else [round((float(end) - first) / step) for end in ranges[:, i]]
        steps = ends or seen
        low, high = min(*steps, 0), max(*steps, 0)  # the state before the first step counts
        between = len(seen) < 3 or seen[2] < high
        yield Lattice(
            f"{layer.name}.{i}", i, rise, fall, step, first, count, low, high, where, ends is not None, between
        )


def lattice_offset(unit: Lattice, layer: EitherLayer, placement: LayerPlacement) -> float:
    """Return the common-mode offset of a recurrent unit that counts, in software units; 0 if it needs none."""
    if isinstance(layer, SignedLayer) and layer.weight_beta is not None:
        return offset_on_comparators(layer, unit.index, placement)
    return lifting_offset(-unit.fall)


def lifting_offset(least: float) -> float:
    """Return the common-mode offset that lifts a unit's threshold of -`least` clear of zero; 0 if it already is."""
    return 0.0 if -least >= OFFSET_MARGIN / 4 else float(common_mode_offset(least))
