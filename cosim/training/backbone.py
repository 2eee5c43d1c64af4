"""The hardware backbone: only what has a circuit. No normalisation, no learned positions, no activation but ReLU."""

from dataclasses import dataclass, replace
from importlib import import_module

import torch
from torch import Tensor, nn

from cosim.base.errors import NetworkError
from cosim.base.text import listed, shown
from cosim.exchange.checkpoint import layer_kinds
from cosim.network.layers import Layer, RecurrentLayer, ReluLayer
from cosim.network.types import INPUT, DelayedSignal, InputEncoding, Network, Pooling, Readout, check_network
from cosim.training.cells import GammaCell, RecurrentCell, as_array, load_layer_
from cosim.training.config import Architecture
from cosim.training.hardware import Chips, GridLinear, LayerDevices, Lines
from cosim.variation.sigma import SigmaParts

LINES = "delays"
Found = tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]  # signals, distances, sigmas: BackboneOutput


@dataclass(frozen=True)
class BackboneOutput:
    """The outputs of a hardware network for a batch of samples.

    readout: at each step, (n, time, outputs); scores: pooled over valid steps, (n, outputs); signals: layer name ->
    values (n, time, width); distances, sigmas: recurrent layer name -> (n, time, width), as in CellOutput; sigmas is
    empty where none are counted.
    """

    readout: Tensor
    scores: Tensor
    signals: dict[str, Tensor]
    distances: dict[str, Tensor]
    sigmas: dict[str, Tensor]


class HardwareNetwork(nn.Module):
    """A hardware network as torch module.

    It is the encoding, delay lines and a ReLU layer `hidden` if any, recurrent layers `layer1`, `layer2`, ..., and a
    linear readout.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, architecture: Architecture, encoding: InputEncoding, outputs: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoding = encoding
        self.register_buffer("offset", torch.as_tensor(encoding.offset, dtype=torch.get_default_dtype()))
        self.register_buffer("scale", torch.as_tensor(encoding.scale, dtype=torch.get_default_dtype()))
        widths = {INPUT: encoding.width}
        self.sources: dict[str, tuple[str, ...]] = {}
        self.layers = nn.ModuleDict()
        self.late = {f"input_{k}": DelayedSignal(INPUT, k) for k in range(1, architecture.taps + 1)}
        widths |= dict.fromkeys(self.late, encoding.width)
        previous = INPUT
        if architecture.lines:
            self.sources[LINES] = (INPUT,)
            self.layers[LINES] = GammaCell(encoding.width, replace(architecture, cells=architecture.lines))
            widths[LINES] = architecture.lines
        lines = (LINES,) if architecture.lines else ()
        if architecture.hidden:
            self.sources["hidden"] = (INPUT, *self.late, *lines)
            inputs = sum(widths[source] for source in self.sources["hidden"])
            self.layers["hidden"] = GridLinear(inputs, architecture.hidden, architecture.grid, 1.5, (0.0, 0.25))
            widths["hidden"] = architecture.hidden
            previous = "hidden"
        for i in range(architecture.layers):
            name = f"layer{i + 1}"
            skipped = (INPUT,) if architecture.skip and previous != INPUT and i > 0 else ()
            taps = (*self.late, *lines) if previous == INPUT else ()
            own = (f"{name}_1",) if architecture.feedback else ()
            widths |= dict.fromkeys(own, architecture.cells)
            self.sources[name] = (*skipped, previous, *taps, *own)
            self.layers[name] = _cell(architecture, sum(widths[source] for source in self.sources[name]))
            widths[name] = architecture.cells
            previous = name
        recurrent = tuple(f"layer{i + 1}" for i in range(architecture.layers))
        self.fed_back = {f"{name}_1": DelayedSignal(name) for name in recurrent if architecture.feedback}
        self.sources["readout"] = recurrent if architecture.skip else recurrent[-1:]
        self.readout = GridLinear(sum(widths[source] for source in self.sources["readout"]), outputs, architecture.grid)

    @property
    def cells(self) -> dict[str, RecurrentCell]:
        """Return the recurrent cells of the network in training, by the name of their layer."""
        return {name: layer for name, layer in self.layers.items() if isinstance(layer, RecurrentCell)}

    def load_(self, network: Network) -> None:
        """Set the torch module to what a network of the same architecture has learned, the inverse of `to_network`.

        Raises NetworkError that names a layer which only one of the two has, which reads other signals, or whose kind,
        shape or values differ; also for another delay, grid of weights or pooling.
        """
        for what, there, here in (
            ("delayed signals", dict(network.late), self.late | self.fed_back),
            ("a grid of weights", network.weight_grid, self.architecture.grid),
            ("a pooling", network.readout.pooling, self.architecture.pooling),
        ):
            if there != here:
                raise NetworkError(f"the network has {what} of {shown(there)}, and its settings {shown(here)}")
        parts = {**dict(self.layers.items()), "readout": self.readout}
        learned: dict[str, Layer | Readout] = {layer.name: layer for layer in network.layers}
        learned["readout"] = network.readout
        if parts.keys() != learned.keys():
            raise NetworkError(f"the network has {listed(list(learned))}, and this architecture {listed(list(parts))}")
        for name, module in parts.items():
            if learned[name].sources != self.sources[name]:
                there, here = (listed(one) for one in (learned[name].sources, self.sources[name]))
                raise NetworkError(f"{name} reads {there} in the network, and {here} in this architecture")
            load_layer_(name, module, learned[name])

    def set_epsilon(self, epsilon: float) -> None:
        """Use this epsilon in every recurrent layer for the next iterations of a training."""
        for cell in self.cells.values():
            cell.epsilon = epsilon

    def set_devices(self, spread: SigmaParts | None, drawn: SigmaParts | None) -> None:
        """Set the devices of a network in training.

        spread: distances are counted in its standard deviations, None for no count; drawn: has the noise of decisions,
        or None.
        """
        starts = {name: cell.start for name, cell in self.cells.items()}
        starts |= {name: torch.zeros(self.encoding.width) for name in self.late}
        for name, cell in self.cells.items():
            widths = [(starts.get(source), self._width(source)) for source in self.sources[name]]
            zero = torch.cat([torch.zeros(width) if start is None else start.detach() for start, width in widths])
            states = torch.cat([torch.full((width,), float(start is not None)) for start, width in widths])
            cell.devices = LayerDevices(spread, drawn, zero, states)

    def _width(self, source: str) -> int:
        """Return the number of values that a signal has at each step; source: the name of a layer or an input."""
        layer = dict(self.layers.items()).get(source)
        if isinstance(layer, GridLinear):
            return len(layer.bias)
        return len(layer.start) if isinstance(layer, RecurrentCell) else self.encoding.width

    def encode(self, x: Tensor) -> Tensor:
        """Encode raw x (n, time, features) as currents (n, time, width) of the network in training, units.

        The result is that of cosim.network.reference.encode_inputs.
        """
        return encode(x, self.offset, self.scale, self.encoding)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        noise: float = 0.0,
        rng: torch.Generator | None = None,
        chips: Chips | None = None,
    ) -> BackboneOutput:
        """Compute the outputs of a network in training for raw x (n, time, features).

        lengths: valid steps (n,), None for all; noise: relative standard deviation of weights and thresholds, drawn
        from `rng` if given; chips: newly drawn chips, which get equal shares of the samples, in order, None for nominal
        devices.
        """
        signals = {INPUT: self.encode(x)}
        signals |= {name: delayed(signals[INPUT], late.frames) for name, late in self.late.items()}
        lines: dict[str, Lines] = {} if chips is None else {INPUT: chips.draw_lines(self.encoding.width)}
        if chips is not None:
            lines |= {name: chips.draw_state_lines(torch.zeros(self.encoding.width)) for name in self.late}
        run = self._by_steps if self.fed_back else self._by_layers
        found, *judged = run(signals, lines, noise, rng)
        inputs, mirrors = _read(self.sources["readout"], found, lines)
        readout = self.readout(inputs, noise, rng, mirrors)
        lengths = torch.full((len(x),), x.shape[1]) if lengths is None else lengths
        return BackboneOutput(readout, pool(readout, lengths, self.architecture.pooling), found, *judged)

    def _by_layers(
        self,
        signals: dict[str, Tensor],
        lines: dict[str, Lines],
        noise: float,
        rng: torch.Generator | None,
        before: dict[str, Tensor] | None = None,
    ) -> Found:
        """Compute layer after layer, all steps at once: signals, distances from thresholds, and sigmas.

        `lines` gets the gate lines of each layer. before: the state of each recurrent layer before the first step, (n,
        width); None for the cell's `start`.
        """
        signals, distances, sigmas = dict(signals), dict[str, Tensor](), dict[str, Tensor]()
        for name, layer in self.layers.items():
            inputs, mirrors = _read(self.sources[name], signals, lines)
            if isinstance(layer, GridLinear):
                signals[name] = torch.relu(layer(inputs, noise, rng, mirrors))
            else:
                kept = () if before is None else (before[name],)
                output = layer(inputs, noise, rng, mirrors, *kept)
                signals[name], distances[name] = output.h, output.distance
                if output.sigmas is not None:
                    sigmas[name] = output.sigmas
            if mirrors is not None:
                lines[name] = _draw_lines(mirrors.chips, layer, signals[name])
        return signals, distances, sigmas

    def _by_steps(
        self, signals: dict[str, Tensor], lines: dict[str, Lines], noise: float, rng: torch.Generator | None
    ) -> Found:
        """Compute step after step, all layers at once; the noise of parameters is the same in all steps."""
        kept = None if rng is None else rng.get_state()
        n, steps = signals[INPUT].shape[:2]
        before = {name: cell.start.expand(n, -1) for name, cell in self.cells.items()}
        found: list[Found] = []
        for t in range(steps):
            if rng is not None and kept is not None:
                rng.set_state(kept)
            now = {name: values[:, t : t + 1] for name, values in signals.items()}
            now |= {name: before[late.signal][:, None] for name, late in self.fed_back.items()}
            found.append(self._by_layers(now, lines, noise, rng, before))
            before = {name: found[-1][0][name][:, 0] for name in before}
        signals_, distances, sigmas = (_join(list(one)) for one in zip(*found, strict=True))
        return signals_, distances, sigmas

    def total_weight(self) -> Tensor:
        """Sum |w| over all mirror weights and biases of the network in training, before they are rounded."""
        return torch.stack(
            [p.abs().sum() for m in self.modules() if isinstance(m, GridLinear) for p in m.parameters()]
        ).sum()

    def to_network(
        self,
        task: str = "",
        labels: tuple[str, ...] = (),
        history: dict | None = None,
        *,
        regression: bool = False,
    ) -> Network:
        """Return the trained torch module as a checked network of numpy data; the arguments are fields of `Network`."""
        layers: list[Layer] = []
        for name, layer in self.layers.items():
            if isinstance(layer, GridLinear):
                layers.append(ReluLayer(name, self.sources[name], *map(as_array, layer.rounded())))
            elif isinstance(layer, RecurrentCell):
                layers.append(layer.to_layer(name, self.sources[name]))
        weight, bias = map(as_array, self.readout.rounded())
        readout = Readout(self.sources["readout"], weight, bias, self.architecture.pooling)
        grid, late = self.architecture.grid, self.late | self.fed_back
        network = Network(self.encoding, tuple(layers), readout, task, labels, grid, history or {}, late=late)
        return check_network(replace(network, regression=regression))


def _read(sources: tuple[str, ...], signals: dict[str, Tensor], lines: dict[str, Lines]) -> tuple[Tensor, Lines | None]:
    """Return the signals that a layer reads, joined along the last axis, and their gate lines on chips that vary."""
    joined = Lines.join([lines[source] for source in sources]) if lines else None
    return torch.cat([signals[source] for source in sources], dim=2), joined


def _draw_lines(chips: Chips, layer: nn.Module, signal: Tensor) -> Lines:
    """Draw a layer's gate lines on chips; for states that count, a current of 0 is the lowest state in `signal`."""
    if not isinstance(layer, RecurrentCell):
        return chips.draw_lines(signal.shape[2])
    if not chips.compared:
        return chips.draw_state_lines(layer.start)
    lowest, highest = signal.detach().amin(dim=(0, 1)), signal.detach().amax(dim=(0, 1))
    steps = ((highest - lowest) / layer.increment).round()
    if layer.epsilon < 0:
        near = layer.increment / 2
        between = ((signal > lowest + near) & (signal < highest - near)).any(dim=1).any(dim=0)
        steps = torch.where(between | (lowest < layer.start - near), steps, 1.0)  # a toggle's two states: one source
    return chips.draw_state_lines(lowest, steps)


def _join(steps: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([one[name] for one in steps], dim=1) for name in steps[0]}


def encode(x: Tensor, offset: Tensor, scale: Tensor, encoding: InputEncoding) -> Tensor:
    """Encode raw x (n, time, features) as currents in torch (n, time, width), units; offset, scale: tensors."""
    encoded = ((x - offset) / scale).clamp(0.0, 1.0)
    if encoding.ramp_steps is not None:
        ramp = torch.arange(1, x.shape[1] + 1, dtype=encoded.dtype).div(encoding.ramp_steps).clamp(max=1.0)
        encoded = torch.cat([encoded, ramp[None, :, None].expand(len(x), -1, 1)], dim=2)
    return encoded if encoding.levels is None else (encoded * encoding.levels).round() / encoding.levels


def delayed(x: Tensor, frames: int) -> Tensor:
    """Delay a tensor x (n, time, width) in training by `frames` time steps, with zeros in the first ones."""
    return nn.functional.pad(x, (0, 0, frames, 0))[:, : x.shape[1]]


def pool(readout: Tensor, lengths: Tensor, pooling: Pooling) -> Tensor:
    """Pool a torch readout (n, time, outputs) over the valid steps, lengths (n,), to scores (n, outputs)."""
    if pooling == "last":
        return readout[torch.arange(len(readout)), lengths - 1]
    if pooling == "vote":
        readout = nn.functional.one_hot(readout.argmax(dim=2), readout.shape[2]).to(readout.dtype)
    valid = torch.arange(readout.shape[1])[None, :] < lengths[:, None]
    return (readout * valid[:, :, None]).sum(dim=1) / lengths[:, None]


def _cell(architecture: Architecture, inputs: int) -> RecurrentCell:
    """Return a new cell for the architecture's kind of unit, of the class that the unit's layer names."""
    layer = layer_kinds()[architecture.unit]
    assert issubclass(layer, RecurrentLayer)
    module, _, name = layer.torch.partition(":")
    return getattr(import_module(module), name)(inputs, architecture)
