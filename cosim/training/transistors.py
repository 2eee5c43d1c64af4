"""The circuit of a network as a function of torch tensors: forward by simulated transistors, backward by gradients.

    circuit = cosim.load(network).compile("gf180mcu").differentiable().on_chips(range(8))
    out = circuit(x, learned(parts))
    torch.nn.functional.cross_entropy(out.readout.mean(dim=1), y).backward()

A gradient is the sum of two parts, both of which count in every frame:

    currents   that of the simulated readouts and candidates with all states held constant (`engines.batch.gradients`)
    states     how a parameter could change a state. The step from a candidate's distance to a state has the surrogate
               derivative of training (`scan.heaviside`), and a state changes what follows by the network's equations:
               h_t = s_t + (1 - s_t - r_t) h_t-1 in its cell, with set s and reset r, and weight times level in the rows
               that read it

Values are those of the transistors alone: an equation's term v enters as v - v.detach(), which is 0 with a gradient.
Near a flip a state takes its time to settle, and gradients of currents can be very large: clip gradients.
Surrogate: arXiv 2605.11855, appendix F.8.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from cosim.base.errors import InputError
from cosim.network.types import Network
from cosim.training.cells import as_array
from cosim.training.scan import heaviside

Array = NDArray[np.float64]
Tensors: TypeAlias = Mapping[str, Tensor]
Factors: TypeAlias = Mapping[str, float]


class _Gradients(Protocol):
    """Gradients of a circuit by name, `cosim.engines.batch.gradients.ParameterGradients`."""

    @property
    def learned(self) -> Mapping[str, Array]: ...
    @property
    def pins(self) -> Mapping[str, float]: ...
    @property
    def area(self) -> Mapping[str, float]: ...


class _Simulated(Protocol):
    """Samples that ran on transistors, `cosim.engines.batch.gradients.SimulatedSamples`; training knows no engine."""

    @property
    def readout(self) -> Array: ...
    @property
    def candidate(self) -> Array: ...
    @property
    def thresholds(self) -> Array: ...
    @property
    def states(self) -> Array: ...
    @property
    def i_unit(self) -> float: ...
    @property
    def cells(self) -> tuple[str, ...]: ...
    def links(self) -> tuple[Array, ...]: ...
    def pull_back(self, readout: Array, candidate: Array, thresholds: Array) -> _Gradients: ...


class _Circuit(Protocol):
    """A compiled network that simulates samples at given values, `cosim.engines.batch.gradients.SimulatedCircuit`."""

    @property
    def arrays(self) -> Mapping[str, Array]: ...
    @property
    def features(self) -> int: ...
    @property
    def pins(self) -> tuple[str, ...]: ...
    def network(self, learned: Mapping[str, Array]) -> Network: ...
    def on_chips(self, chips: Sequence[int], seed: int) -> "_Circuit": ...
    def simulate(
        self,
        samples: Sequence[Array],
        learned: Mapping[str, Array],
        pins: Factors,
        area: Factors,
        *,
        keep: bool,
    ) -> _Simulated: ...


@dataclass(frozen=True)
class CircuitOutput:
    """The result of a batch of samples on a circuit's transistors; all in software units, with gradients.

    readout (n, time, outputs); h (n, time, cells): states, such as -1 and 1 of signed units; from_upper, from_lower (n,
    time, cells): candidate minus the upper and minus the lower threshold; distance (n, time, cells): size of whichever
    can change the state, from_lower if it was on, else from_upper, for `hardware.margin_penalty`; cells: their names.
    After a sample's last frame readout is 0 and distances are infinite. A cell that no input changes is not built, and
    is absent.
    """

    readout: Tensor
    h: Tensor
    from_upper: Tensor
    from_lower: Tensor
    distance: Tensor
    cells: tuple[str, ...]


@dataclass(frozen=True)
class TransistorCircuit:
    """A compiled network on transistors, to be called with raw samples in a training; see the module.

    circuit: as from `Compiled.differentiable`, which makes this object.
    """

    circuit: _Circuit

    def new_parameters(self) -> dict[str, Tensor]:
        """Return new tensors with what the circuit's network learned, by names such as `layer1.weight`.

        Levels and first states of units are left out, because they have no derivatives here.
        """
        return {name: torch.tensor(value, requires_grad=True) for name, value in self.circuit.arrays.items()}

    def network(self, learned: Tensors) -> Network:
        """Return the network of the circuit with what was learned, to save and to compile it.

        learned: names -> values as for a call. Raises NetworkError for values that no network can have.
        """
        return self.circuit.network({name: as_array(value) for name, value in learned.items()})

    @property
    def pins(self) -> tuple[str, ...]:
        """Return the names of the circuit's bias pins, for the factors of their currents."""
        return self.circuit.pins

    def on_chips(self, chips: Sequence[int], seed: int = 0) -> "TransistorCircuit":
        """Return the circuit on the chips with these numbers, drawn with `seed` with the technology's mismatch.

        They are the chips of `cosim montecarlo --seed`. Each chip runs an equal share of the samples, in order. No
        chips mean a circuit without mismatch.
        """
        return TransistorCircuit(self.circuit.on_chips(chips, seed))

    def __call__(
        self,
        x: Tensor,
        learned: Tensors | None = None,
        pins: Tensors | None = None,
        area: Tensors | None = None,
        lengths: Tensor | None = None,
    ) -> CircuitOutput:
        """Simulate raw samples x (n, time, features) on the transistors of the circuit.

        learned: name of a learned array -> its values, for a circuit with these (the design is compiled anew); None for
        those of the network. pins: bias pin -> factor of its current; area: role of transistors, such as `weight` or
        `compare` -> their gate area over the drawn one, which counts for mismatch alone. lengths: valid frames of each
        sample, None for all. x itself has no gradient. The output's graph holds all simulated steps, some 5 MB a sample
        for 700 transistors and 8 frames; without gradients nothing is kept. Raises MappingError for values that cannot
        be built, InputError for shapes and names that the circuit does not have, SimulationError where a sample cannot
        be simulated.
        """
        parts = (learned or {}, pins or {}, area or {})
        for kind, part in (("pins", parts[1]), ("area", parts[2])):
            if strange := next((name for name, value in part.items() if value.numel() != 1), None):
                raise InputError(f"{kind}: {strange} must be one number, not a tensor of {part[strange].numel()}")
        frames = self._frames(x, lengths)
        samples = [one[:count].detach().double().numpy() for one, count in zip(x, frames, strict=True)]
        tensors = [value for part in parts for value in part.values()]
        keep = torch.is_grad_enabled() and any(value.requires_grad for value in tensors)
        call = _Call(self.circuit, samples, tuple(tuple(part) for part in parts), keep=keep)
        found: tuple[Tensor, ...] = _Simulate.apply(call, *tensors)  # type: ignore[assignment]
        return _output(call.found, found, torch.arange(x.shape[1]) < torch.tensor(frames)[:, None])

    def _frames(self, x: Tensor, lengths: Tensor | None) -> list[int]:
        """Return how many frames of each sample are simulated. Raises InputError for shapes that do not fit."""
        if x.ndim != 3 or not x.shape[0] or not x.shape[1] or x.shape[2] != self.circuit.features:
            shape = f"(n, time, {self.circuit.features}) with at least one sample and frame"
            raise InputError(f"x must have the shape {shape}, not {tuple(x.shape)}; give a batch of raw samples")
        if lengths is None:
            return [x.shape[1]] * len(x)
        frames = [int(one) for one in lengths.reshape(-1).tolist()]
        if len(frames) != len(x) or not all(1 <= one <= x.shape[1] for one in frames):
            raise InputError(f"lengths must be {len(x)} numbers from 1 to {x.shape[1]}, not {frames}")
        return frames


class _Call:
    """A call of a circuit: its samples, the names of its tensors, and what was simulated, kept for gradients or not."""

    def __init__(
        self, circuit: _Circuit, samples: Sequence[Array], names: tuple[tuple[str, ...], ...], *, keep: bool
    ) -> None:
        self.circuit, self.samples, self.names, self.keep = circuit, samples, names, keep
        self.found: _Simulated

    def parts(self, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the values of learned arrays, pins and areas by name."""
        rest = iter(values)
        return [{name: next(rest) for name in part} for part in self.names]


class _Simulate(torch.autograd.Function):
    """Readout, candidates and thresholds of a simulated batch, over the unit current; all states are held constant in
    the derivatives."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401 - torch's own
        learned, pins, area = call.parts([one.detach().double().numpy() for one in tensors])
        factors = [{name: float(value) for name, value in part.items()} for part in (pins, area)]
        call.found = found = call.circuit.simulate(call.samples, learned, *factors, keep=call.keep)
        ctx.call = call
        ctx.save_for_backward(*tensors)
        return tuple(torch.from_numpy(one / found.i_unit) for one in (found.readout, found.candidate, found.thresholds))

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator has no types
        ctx: Any,  # noqa: ANN401 - torch's own
        *by: Tensor,
    ) -> tuple[Tensor | None, ...]:
        call: _Call = ctx.call
        # J as ampere per unit of the loss: what is passed back is dJ/dI = dJ/d(I / i_unit) / i_unit
        found = call.found.pull_back(*(one.double().numpy() / call.found.i_unit for one in by))
        tensors = ctx.saved_tensors
        values = call.parts(tensors)
        by_name: list[Any] = [found.learned.get(name) for name in values[0]]
        by_name += [found.pins[name] / float(value) for name, value in values[1].items()]
        by_name += [found.area.get(name, 0.0) / float(value) for name, value in values[2].items()]
        return None, *(
            None if one is None else torch.as_tensor(one, dtype=like.dtype).reshape(like.shape)
            for one, like in zip(by_name, tensors, strict=True)
        )


def _output(found: _Simulated, simulated: tuple[Tensor, ...], valid: Tensor) -> CircuitOutput:
    """Return what a circuit did, with the derivatives at flips added to those of the simulated currents.

    simulated: readout, candidate and thresholds over the unit current; valid: frames of each sample, (n, time).
    """
    readout, candidate, thresholds = simulated
    into_cells, into_outputs, stages, start, zero, step = (torch.from_numpy(one) for one in found.links())
    states = soft = torch.from_numpy(found.states)
    from_upper, from_lower = (candidate - thresholds[:, None, :, k] for k in range(2))
    for stage in stages.unique():
        own = stages == stage
        moved = (soft - states) @ into_cells[own].T  # by states of earlier stages; its value is 0
        from_upper, from_lower = (_put(one, own, one[:, :, own] + moved) for one in (from_upper, from_lower))
        soft = _put(
            soft, own, _with_surrogate(from_upper[:, :, own], from_lower[:, :, own], states[:, :, own], start[own])
        )
    on = torch.cat([start.expand(len(states), 1, -1), states[:, :-1]], dim=1) > 0
    distance = torch.where(on, from_lower, from_upper).abs()
    valid = valid[:, :, None]
    frames = (0, 0, 0, valid.shape[1] - states.shape[1])  # behind the longest sample
    readout, soft = (
        torch.nn.functional.pad(one, frames) * valid for one in (readout + (soft - states) @ into_outputs.T, soft)
    )
    distances = [
        torch.nn.functional.pad(one, frames).masked_fill(~valid, math.inf) for one in (from_upper, from_lower, distance)
    ]
    return CircuitOutput(readout, zero + step * soft, *distances, cells=found.cells)


def _with_surrogate(from_upper: Tensor, from_lower: Tensor, states: Tensor, start: Tensor) -> Tensor:
    """Return the simulated states of some cells, (n, time, cells), with the surrogate gradients of training."""
    sets, resets = heaviside(from_upper), heaviside(-from_lower)
    found, before = list[Tensor](), start.expand_as(states[:, 0])
    for t in range(states.shape[1]):
        kept = sets[:, t] + (1.0 - sets[:, t] - resets[:, t]) * before
        before = states[:, t] + (kept - kept.detach())
        found.append(before)
    return torch.stack(found, dim=1)


def _put(values: Tensor, own: Tensor, new: Tensor) -> Tensor:
    """Return values (n, time, cells) with those of the cells `own` replaced by `new`, with gradients, in training."""
    found = values.clone()
    found[:, :, own] = new
    return found
