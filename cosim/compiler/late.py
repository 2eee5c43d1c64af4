"""Late sources: which of them a row reads from the cell itself, and which from shift cells behind it.

A cell keeps its state until its stage decides. So a row whose stage decides no later finds in it the state of the
frame before, and that costs nothing. Every further frame costs a shift cell, a Schmitt trigger of its own that takes
over what it reads when its stage decides:

    cells that decide with their source    the j-th holds, once it has decided, s[t - j], and until then s[t - j - 1]
    cells that decide behind it            the first reads the source's new state: s[t - j + 1], and s[t - j]

Rows of one signal share its cells. A shift cell holds one bit, so only signals of two values can be late by more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cosim.base.errors import MappingError
from cosim.network.ir.graph import GraphBuilder
from cosim.network.ir.nodes import InputCurrent, Memory, Node, Weight
from cosim.network.layers import RecurrentLayer
from cosim.network.types import INPUT, Network
from cosim.units.placement import Tap
from cosim.units.shift import Shift, shift_cell

MOST_CELLS = 256  # shift cells of a network: 20 transistors and some nanowatts for each bit
_BEFORE = -1  # the stage of inputs: they change before any stage decides


@dataclass(frozen=True)
class Taps:
    """The late sources of a network while the compiler lowers it to a graph.

    later_nodes: nodes that are not in the graph yet; last: the last stage; origin: file, for messages.
    """

    graph: GraphBuilder
    later_nodes: Mapping[str, Node]
    last: int
    origin: str

    def tap(self, source: str, frames: int, until: int | None) -> Tap:
        """Return the tap that reads a signal so many frames late, for a row that counts until stage `until` decides.

        Adds the shift cells that it needs. until: None for a readout, which is read when all have decided. Raises
        MappingError
        where no cell can hold the signal.
        """
        node = self.graph.nodes.get(source) or self.later_nodes[source]
        stage = node.stage if isinstance(node, Memory) else _BEFORE
        if until is None:
            at = self.last if stage == _BEFORE else stage
            return Tap(self._cell(node, (stage, at), frames + (at > stage)))
        if frames == 1 and until <= stage:
            return Tap(source, late=True)
        at = max(stage, until)
        return Tap(self._cell(node, (stage, at), frames - (at == stage)), late=True)

    def _cell(self, node: Node, stages: tuple[int, int], count: int) -> str:
        """Return the name of the last of `count` shift cells in a row, and add the cells that are missing.

        stages: of the source, and of the cells.
        """
        source, (stage, at), name = self._bit(node), stages, node.name
        for k in range(1, count + 1):
            before, late = name, k > 1 or at == stage
            name = f"{node.name}.shift{k}" if at == stage else f"{node.name}.shift{k}_{at}"
            if name not in self.graph.nodes:
                self.graph.add(shift_cell(name, source, at, k - (at > stage)))
                self.graph.connect(before, name, Weight(1.0, f"{before}, a frame later", late=late))
                self._check_count()
        return name

    def _bit(self, node: Node) -> InputCurrent | Memory:
        """Return the node itself, if it has two values; else raise MappingError."""
        where = f"{self.origin}: {node.name} is read late, through shift cells, which hold one bit each"
        match node:
            case InputCurrent(step=1.0) | Memory(tolerance=0.0, most=1):
                return node
            case InputCurrent():
                raise MappingError(
                    f"{where}, and so it must be 0 or 1: meta.input_levels must be 1; train with `input_levels=1`"
                )
            case _:
                raise MappingError(
                    f"{where}, and so it must have two values: an input of one bit, or a unit with epsilon 0 or -1; "
                    "read another signal, or this one a single frame late by a layer in front of it or itself"
                )

    def _check_count(self) -> None:
        count = sum(isinstance(node, Shift) for node in self.graph.nodes.values())
        if count > MOST_CELLS:
            raise MappingError(
                f"{self.origin}: late sources must need at most {MOST_CELLS} shift cells, not more: that is a memory, "
                "for which a digital one takes less area and power; read fewer signals, or fewer frames late"
            )


def stages_of(network: Network) -> dict[str, int]:
    """Return layer -> the compiled stage in which it decides if recurrent, else the first stage that may read it."""
    stages, found = {INPUT: 0}, dict[str, int]()
    for layer in network.layers:
        found[layer.name] = max((stages[source] for source in layer.sources if source not in network.late), default=0)
        stages[layer.name] = found[layer.name] + isinstance(layer, RecurrentLayer)
    return found


def read_until(network: Network) -> dict[str, int | None]:
    """Return layer -> the last compiled stage for whose decision its inputs count; None where a readout reads it."""
    stages, found = stages_of(network), dict[str, int | None]()
    for layer in reversed(network.layers):
        if isinstance(layer, RecurrentLayer):
            found[layer.name] = stages[layer.name]
            continue
        behind = [found[reader.name] for reader in network.layers if layer.name in reader.sources]
        read_out = layer.name in network.readout.sources or None in behind
        found[layer.name] = None if read_out else max((one for one in behind if one is not None), default=0)
    return found
