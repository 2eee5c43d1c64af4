"""The circuit of a network as a function of torch tensors: forward by simulated transistors, backward by derivatives.

    circuit = cosim.load(network).compile("gf180mcu").differentiable().on_chips(range(8))
    out = circuit(x, learned(parts))
    torch.nn.functional.cross_entropy(out.readout.mean(dim=1), y).backward()

A state is a step of the candidate's distance from a threshold, so a derivative has two parts:

    between two flips   that of the simulated currents, by the circuit's own way back (`engines.learned`)
    at a flip           the derivative of the step is training's surrogate (`scan.heaviside`); what a flipped state
                        changes behind it is computed by the network's equations: h_t = s_t + (1 - s_t - r_t) h_t-1
                        in the cell, with set s and reset r, and the weight times the level in the rows that read it

Values are always those of the transistors: each equation enters as v - v.detach(). Currents have very large derivatives
around a state that is about to flip, because it takes its time to settle; so clip gradients in a training.
Surrogate: arXiv 2605.11855, appendix F.8.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cosim.base.errors import InputError
from cosim.network.types import Network
from cosim.training.cells import as_array
from cosim.training.scan import heaviside, linear_scan

Array = NDArray[np.float64]
Tensors, Factors = Mapping[str, Tensor], Mapping[str, float]


class Derivatives(Protocol):
    """dJ by learned arrays, in software units, and by ln of bias pins' currents and of areas, by name."""

    @property
    def learned(self) -> Mapping[str, Array]: ...
    @property
    def pins(self) -> Mapping[str, float]: ...
    @property
    def area(self) -> Mapping[str, float]: ...


class SimulatedSamples(Protocol):
    """Samples that ran on transistors, `cosim.engines.learned.SimulatedSamples`; training itself knows no engine."""

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
    def pull_back(self, readout: Array, candidate: Array, thresholds: Array) -> Derivatives: ...


class Circuit(Protocol):
    """A compiled network that simulates samples at given values, `cosim.engines.learned.LearnedCircuit`."""

    @property
    def arrays(self) -> Mapping[str, Array]: ...
    @property
    def pins(self) -> tuple[str, ...]: ...
    def network(self, learned: Mapping[str, Array]) -> Network: ...
    def on_chips(self, chips: Sequence[int], seed: int) -> "Circuit": ...
    def simulate(
        self,
        samples: Sequence[Array],
        learned: Mapping[str, Array],
        pins: Factors,
        area: Factors,
    ) -> SimulatedSamples: ...


@dataclass(frozen=True)
class CircuitOutput:
    """What the transistors of a circuit did with a batch of samples; all in software units, with gradients.

    readout (n, time, outputs); h, above, below (n, time, cells): states, and the distances of their candidates from the
    upper and from the lower threshold; cells: their names. A cell that no input changes is not built, and is absent.
    """

    readout: Tensor
    h: Tensor
    above: Tensor
    below: Tensor
    cells: tuple[str, ...]

    @property
    def distance(self) -> Tensor:
        """Return the distance of each candidate from the threshold that can change the circuit's state, (n, time,
        cells).

        It is the lower one for a state that was 1, else the upper one; for `hardware.margin_penalty`.
        """
        on = torch.cat([torch.zeros_like(self.h[:, :1]), self.h[:, :-1].detach()], dim=1) > 0
        return torch.where(on, self.below, self.above).abs()


@dataclass(frozen=True)
class TransistorCircuit:
    """A compiled network on transistors, to be called with raw samples in a training; see the module.

    circuit: as from `Compiled.differentiable`, which makes this object.
    """

    circuit: Circuit

    @property
    def learned(self) -> dict[str, Tensor]:
        """Return new tensors with all that the circuit's network learned, by names such as `layer1.weight`."""
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
        sample, None for all. Raises MappingError for values that cannot be built, InputError for names that the circuit
        does not have, SimulationError where a sample cannot be simulated.
        """
        parts = (learned or {}, pins or {}, area or {})
        names = tuple(tuple(part) for part in parts)
        frames = [x.shape[1]] * len(x) if lengths is None else lengths.tolist()
        samples = [one[:count].detach().double().numpy() for one, count in zip(x, frames, strict=True)]
        if not samples:
            raise InputError("x must have at least one sample; give a batch of shape (n, time, features)")
        call = _Call(self.circuit, samples, names)
        found: tuple[Tensor, ...] = _Simulate.apply(call, *(value for part in parts for value in part.values()))  # type: ignore[assignment]
        return _soft(call.found, *found)


class _Call:
    """A call of a circuit: its samples, the names of its tensors, and what was simulated."""

    def __init__(self, circuit: Circuit, samples: Sequence[Array], names: tuple[tuple[str, ...], ...]) -> None:
        self.circuit, self.samples, self.names = circuit, samples, names
        self.found: SimulatedSamples

    def parts(self, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the values of learned arrays, pins and areas by name."""
        rest = iter(values)
        return [{name: next(rest) for name in part} for part in self.names]


class _Simulate(torch.autograd.Function):
    """Readout, candidates and thresholds of a simulated batch, over the unit current, with derivatives for constant
    states."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401 - torch's own
        learned, pins, area = call.parts([one.detach().double().numpy() for one in tensors])
        factors = [{name: float(value) for name, value in part.items()} for part in (pins, area)]
        call.found = found = call.circuit.simulate(call.samples, learned, *factors)
        ctx.call, ctx.tensors = call, tensors
        return tuple(torch.from_numpy(one / found.i_unit) for one in (found.readout, found.candidate, found.thresholds))

    @staticmethod
    def backward(ctx: Any, *by: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - torch's own
        call: _Call = ctx.call
        # J as ampere per unit of the loss: what is passed back is dJ/dI = dJ/d(I / i_unit) / i_unit
        found = call.found.pull_back(*(one.double().numpy() / call.found.i_unit for one in by))
        values = call.parts(ctx.tensors)
        by_name: list[Any] = [found.learned[name] for name in values[0]]
        by_name += [found.pins[name] / float(value) for name, value in values[1].items()]
        by_name += [found.area.get(name, 0.0) / float(value) for name, value in values[2].items()]
        pairs = zip(by_name, ctx.tensors, strict=True)
        return None, *(torch.as_tensor(one, dtype=like.dtype).reshape(like.shape) for one, like in pairs)


def _soft(found: SimulatedSamples, readout: Tensor, candidate: Tensor, thresholds: Tensor) -> CircuitOutput:
    """Add the derivatives at flips to those of the simulated currents in training."""
    into_cells, into_outputs, stages, start, zero, step = (torch.from_numpy(one) for one in found.links())
    states = soft = torch.from_numpy(found.states)
    above, below = (candidate - thresholds[:, None, :, k] for k in range(2))
    for stage in stages.unique():
        own = stages == stage
        moved = (soft - states) @ into_cells[own].T  # by states of earlier stages; its value is 0
        here, there = above[:, :, own] + moved, below[:, :, own] + moved
        above, below = _put(above, own, here), _put(below, own, there)
        sets, resets = heaviside(here), heaviside(-there)
        kept = linear_scan(1.0 - sets - resets, sets, start[own])
        soft = _put(soft, own, states[:, :, own] + (kept - kept.detach()))
    moved = (soft - states) @ into_outputs.T
    return CircuitOutput(readout + moved, zero + step * soft, above, below, found.cells)


def _put(values: Tensor, own: Tensor, new: Tensor) -> Tensor:
    """Return values (n, time, cells) with those of the cells `own` replaced by `new`, with gradients, in training."""
    found = values.clone()
    found[:, :, own] = new
    return found
