"""The units as torch modules for a training loop of one's own, and the export of such a model as a network.

    self.memory = CMRU(inputs=2, units=4)            h = self.memory(x), x and h (n, time, width)
    self.readout = GridLinear(4, 2, grid=1 / 8)
    network = export({"memory": net.memory, "readout": net.readout}, encoding, labels=("no", "yes"))
    load_({"memory": net.memory, "readout": net.readout}, network)          goes on from there

The exported network is only the parts that `export` is given, one behind the other. A GridLinear or torch.nn.Linear
that is not the readout becomes max(W x + b, 0) in the network, so call torch.relu on its output in the model.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from cosim.base.errors import InputError, NetworkError
from cosim.base.text import listed, shown
from cosim.network.layers import Array, Layer, ReluLayer
from cosim.network.types import INPUT, InputEncoding, Network, Pooling, Readout, check_network
from cosim.training.backbone import encode
from cosim.training.cells import FirstQuadrantCell, SignedCell, as_array, load_layer_
from cosim.training.cells import bound_loss as bound_loss
from cosim.training.cells import clip_ as clip_
from cosim.training.config import Architecture, TrainingConfig, check_config
from cosim.training.hardware import Chips, GridLinear, Lines, margin_penalty

READOUT = "readout"


class CMRU(nn.Module):
    """A layer of `units` recurrent units that reads x (n, time, inputs) in [0, 1] and returns states (n, time, units).

    signed: states are -1 and 1, with thresholds around 0 (arXiv 2605.11855); otherwise 0 and 1, the first-quadrant unit
    (2605.15216). grid: step of weights and biases, None for continuous ones. The hysteresis width is at least 0.2.
    epsilon begins at 1, so that the gradient passes; bring it down to 0 (a Schmitt trigger) by `set_epsilon` before the
    last part of a training. noise: relative standard deviation of weights and thresholds in training mode, drawn from
    torch's own generator. Raises InputError naming a value that is not possible.
    """

    _first_epsilon = 1.0

    def __init__(
        self,
        inputs: int,
        units: int,
        *,
        signed: bool = False,
        grid: float | None = 0.125,
        noise: float = 0.0,
    ) -> None:
        super().__init__()
        if inputs < 1:
            raise InputError(f"inputs must be at least 1, not {inputs}; give the width of what the units read")
        unit = "signed" if signed else "first-quadrant"
        architecture = Architecture(cells=units, unit=unit, grid=grid)
        check_config(TrainingConfig(architecture, noise=noise))
        self.noise = noise
        self.cell = (SignedCell if signed else FirstQuadrantCell)(inputs, architecture)
        self.epsilon = self._first_epsilon
        self._distance: Tensor | None = None

    @property
    def epsilon(self) -> float:
        """Return the epsilon of a CMRU in one's own training, the share of the old state that an update keeps."""
        return self.cell.epsilon

    @epsilon.setter
    def epsilon(self, value: float) -> None:
        if not -1 <= value <= 1:
            raise InputError(f"epsilon must lie in [-1, 1], not {value:g}")
        self.cell.epsilon = value

    @property
    def distance(self) -> Tensor:
        """Return how far the candidates of the last call are from a threshold that decides, (n, time, units).

        The nearest one counts. The distance has a gradient, for a loss of one's own training.
        """
        if self._distance is None:
            raise InputError("distance is that of the last call; call the module first")
        return self._distance

    def forward(self, x: Tensor, lines: Lines | None = None) -> Tensor:
        """Compute a CMRU's states h (n, time, units) for x (n, time, inputs) in one's own training.

        lines: gate lines of x on chips that vary, None for nominal devices; every chip gets an equal share of the n
        samples, in order, so n must be a multiple of the number of chips.
        """
        rng = torch.default_generator if self.training and self.noise else None
        output = self.cell(x, self.noise, rng, lines)
        self._distance = output.distance
        return output.h

    def draw_lines(self, chips: Chips) -> Lines:
        """Draw the gate lines of a CMRU's states on chips that vary; the next layer takes them as its `lines`."""
        return chips.draw_state_lines(self.cell.start)


class BMRU(CMRU):
    """A CMRU with epsilon 0 from the first iteration on."""

    _first_epsilon = 0.0


class Encode(nn.Module):
    """A module that encodes raw inputs (n, time, features) as currents (n, time, width) in [0, 1].

    The chip's converters encode them in the same way.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, encoding: InputEncoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.register_buffer("offset", torch.as_tensor(encoding.offset, dtype=torch.get_default_dtype()))
        self.register_buffer("scale", torch.as_tensor(encoding.scale, dtype=torch.get_default_dtype()))

    def forward(self, x: Tensor) -> Tensor:
        """Encode for one's own training raw x (n, time, features) as currents in units, (n, time, width)."""
        return encode(x, self.offset, self.scale, self.encoding)


def set_epsilon(model: nn.Module, epsilon: float) -> None:
    """Use this epsilon in every CMRU of a model from now on."""
    for module in model.modules():
        if isinstance(module, CMRU):
            module.epsilon = epsilon


def margin_loss(model: nn.Module, margin: float = 0.05, lengths: Tensor | None = None) -> Tensor:
    """Compute the margin loss of all CMRUs of a model, to be added to the loss of one's own training.

    It is, summed over CMRUs, the mean of max(margin - distance, 0) / margin of the last call; without it candidates end
    next to thresholds. lengths: valid steps of each padded sample, (n,); None for all.
    """
    found = [module.distance for module in model.modules() if isinstance(module, CMRU)]
    if lengths is not None:
        found = [one[torch.arange(one.shape[1])[None, :] < lengths[:, None]] for one in found]
    losses = [margin_penalty(one, margin) for one in found]
    return torch.stack(losses).sum() if losses else torch.zeros(())


def export(
    parts: Mapping[str, nn.Module],
    encoding: InputEncoding,
    labels: tuple[str, ...] = (),
    pooling: Pooling = "mean",
    sources: Mapping[str, Sequence[str]] | None = None,
) -> Network:
    """Return one's own trained modules as a checked network.

    parts: modules by name in the order of their calls, the last one `readout`. Each reads the part before it, and the
    first reads the input. sources: part -> names of the signals that it reads instead, in the order in which they are
    joined along the last axis. The network has the grid of its parts, if all have the same one. Raises NetworkError
    naming the part.
    """
    names = list(parts)
    if len(names) < 2 or names[-1] != READOUT:
        raise NetworkError(f"export: parts must be layers and, at the end, {READOUT!r}, not {listed(names)}")
    strange = next((name for name in sources or {} if name not in parts), None)
    if strange is not None:
        raise NetworkError(f"export: sources names {shown(strange)}, which is no part; known are {listed(names)}")
    read = {name: (before,) for name, before in zip(names, [INPUT, *names[:-1]], strict=True)}
    read |= {name: tuple(found) for name, found in (sources or {}).items()}
    layers = tuple(_layer(name, parts[name], read[name]) for name in names[:-1])
    weight, bias = _linear(READOUT, parts[READOUT])
    readout = Readout(read[READOUT], weight, bias, pooling)
    grids = {_grid(module) for module in parts.values()}
    grid = grids.pop() if len(grids) == 1 else None
    return check_network(Network(encoding, layers, readout, labels=labels, weight_grid=grid), "export")


def learned(parts: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Return what one's own modules have learned, with gradients, for `training.transistors.TransistorCircuit`.

    parts: as for `export`. The names are those of the exported network's arrays, such as `memory.weight`. Raises
    NetworkError naming a part that has no circuit.
    """
    found: dict[str, Tensor] = {}
    for name, module in parts.items():
        if isinstance(module, CMRU):
            arrays = module.cell.learned()
        else:
            weight, bias = _parameters("learned", name, module)
            arrays = {"weight": weight, "bias": weight.new_zeros(len(weight)) if bias is None else bias}
        found |= {f"{name}.{field}": value for field, value in arrays.items()}
    return found


def load_(parts: Mapping[str, nn.Module], network: Network) -> None:
    """Set one's own modules to what a trained network has learned, to train it further; the inverse of `export`.

    parts: a module for each layer of the network and for its readout, by name. Raises NetworkError that names the part
    where kinds or shapes differ, or where the network has a value that the module cannot have.
    """
    learned = {**{layer.name: layer for layer in network.layers}, READOUT: network.readout}
    if parts.keys() != learned.keys():
        raise NetworkError(f"load_: the network has {listed(list(learned))}; the parts are {listed(list(parts))}")
    for name, module in parts.items():
        try:
            load_layer_(name, module.cell if isinstance(module, CMRU) else module, learned[name])
        except NetworkError as error:
            raise NetworkError(f"load_: {error}") from None


def _layer(name: str, module: nn.Module, sources: tuple[str, ...]) -> Layer:
    if isinstance(module, CMRU):
        return module.cell.to_layer(name, sources)
    return ReluLayer(name, sources, *_linear(name, module))


def _linear(name: str, module: nn.Module) -> tuple[Array, Array]:
    weight, bias = _parameters("export", name, module)
    found = as_array(weight)
    return found, np.zeros(len(found)) if bias is None else as_array(bias)


def _parameters(call: str, name: str, module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Return weight and bias of a linear part of one's own model, on its grid if it has one."""
    if isinstance(module, GridLinear):
        return module.rounded()
    if isinstance(module, nn.Linear):
        return module.weight, module.bias
    raise NetworkError(
        f"{call}: {name} is a {type(module).__name__}, which has no circuit here; parts are CMRU, BMRU, GridLinear "
        f"and torch.nn.Linear, and {READOUT!r} is one of the last two"
    )


def _grid(module: nn.Module) -> float | None:
    linear = module.cell.linear if isinstance(module, CMRU) else module
    return linear.grid if isinstance(linear, GridLinear) else None
