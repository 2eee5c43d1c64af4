"""Supply current of a network in training, for a loss that asks for little power.

The currents are those of cosim.engines.behavioral.model with ideal mirrors, averaged over all valid steps of a batch,
in units of software 1.0. The current x of a signal is its distance from its lowest value, and a row's bias makes up
for that. Inputs and states carry a pedestal on top, which each row subtracts by one more weight. Each block is a sum:

    inputs     every input, the unit current and the pedestal
    rails      every signal that some positive weight reads, the unit current and the pedestal
    rows       the positive terms of each row, max(w, 0) x
    readout    of each output what is pulled, the terms max(w, 0) x, and what is pushed beyond it, max(-y, 0)
    cells      of each unit with constant thresholds min(u + W q, upper) + W q + h; u: candidate; q: 1 if it is on, or
               0; W: hysteresis width; h: the current of its state. Of other units h alone
    bias       upper threshold and W of each of these units

Left out: bias currents of levels, sinks of pedestals, clocks, the inside of other units, the cells that shift taps, and
all of `--with`. The sum of all blocks times unit current and V_DD is the supply power.
"""

import torch
from torch import Tensor, nn

from cosim.network.ir.nodes import PEDESTAL_STRENGTH, PEDESTAL_UNITS
from cosim.network.types import INPUT
from cosim.training.backbone import BackboneOutput, HardwareNetwork
from cosim.training.cells import FirstQuadrantCell, RecurrentCell, SignedCell
from cosim.training.hardware import GridLinear


def supply_currents(model: HardwareNetwork, output: BackboneOutput, valid: Tensor) -> dict[str, Tensor]:
    """Return the mean supply current of each block of a network in training: name -> scalar with gradient, units.

    output: what the model computes for a batch; valid: True for the steps that count, (n, time).
    """
    share = valid / valid.sum()
    signals, lowest = output.signals, _lowest_values(model, output.signals, valid)
    rectified = {name for name, module in model.layers.items() if isinstance(module, GridLinear)}
    pedestals = {name: PEDESTAL_UNITS * torch.full_like(x, name not in rectified) for name, x in lowest.items()}
    means = {name: _mean(values, share) - lowest[name] + pedestals[name] for name, values in signals.items()}
    copied = {name: torch.zeros_like(zero, dtype=torch.bool) for name, zero in lowest.items()}
    both = torch.tensor(1.0 + PEDESTAL_STRENGTH * PEDESTAL_UNITS)  # unit current and pedestal
    blocks = {"inputs": both + means[INPUT].sum(), "rails": both}
    blocks |= dict.fromkeys(("rows", "readout", "cells", "bias"), torch.zeros(()))
    for name, module in (*model.layers.items(), ("readout", model.readout)):
        sources, block = model.sources[name], "readout" if name == "readout" else "rows"
        mean, zero, pedestal = (torch.cat([of[one] for one in sources]) for of in (means, lowest, pedestals))
        for row in (part for part in module.modules() if isinstance(part, GridLinear)):
            weight, bias = row.rounded()
            bias = bias + weight @ zero + _offset(module, row)
            terms = torch.relu(weight) @ mean + torch.relu(bias) + torch.relu(-weight @ pedestal)
            blocks[block] = blocks[block] + terms.sum()
            positive = (weight > 0).any(dim=0).split([len(lowest[one]) for one in sources])
            copied |= {one: copied[one] | some for one, some in zip(sources, positive, strict=True)}
        if isinstance(module, RecurrentCell):
            candidate = module.linear(torch.cat([signals[one] for one in sources], dim=2))
            state = signals[name] - lowest[name]
            drawn, bias = _unit_currents(module, candidate + _offset(module, module.linear), state)
            blocks |= {"cells": blocks["cells"] + _mean(drawn, share).sum(), "bias": blocks["bias"] + bias}
    blocks["readout"] = blocks["readout"] + _mean(torch.relu(-output.readout), share).sum()
    blocks["rails"] = blocks["rails"] + torch.stack([(means[name] * some).sum() for name, some in copied.items()]).sum()
    return blocks


def _mean(values: Tensor, share: Tensor) -> Tensor:
    """Return the mean of values (n, time, width) over the steps that count, (width,); share of each step: (n, time)."""
    return share.flatten() @ values.flatten(0, 1)


def _lowest_values(model: HardwareNetwork, signals: dict[str, Tensor], valid: Tensor) -> dict[str, Tensor]:
    """Return the value of each signal for which its circuit carries no current: name -> (width,), without gradient.

    It is the lowest state of a unit in the steps that count, its first one included, and 0 for inputs and rectifiers.
    """
    lowest = {name: torch.zeros(values.shape[2]) for name, values in signals.items()}
    for name, cell in model.cells.items():
        states = signals[name].detach().where(valid[:, :, None], torch.inf)
        lowest[name] = torch.minimum(states.amin(dim=(0, 1)), cell.start).detach()
    return lowest | {late: lowest[source.signal] for late, source in model.fed_back.items()}


def _thresholds(module: nn.Module) -> tuple[Tensor, Tensor] | None:
    """Return the lower and upper threshold of units as their circuit has them, (width,); None where they vary."""
    if isinstance(module, FirstQuadrantCell):
        return module.thresholds()
    if isinstance(module, SignedCell) and module.beta is None:
        return module.offset() - module.bias_beta(), module.offset() + module.bias_beta()
    return None


def _offset(module: nn.Module, row: GridLinear) -> Tensor | float:
    """Return what a row of a signed unit adds to its bias, units, (width,), so that its candidate is a current."""
    moved = isinstance(module, SignedCell) and module.beta is None and row is module.linear
    return module.offset() if moved else 0.0


def _unit_currents(module: RecurrentCell, candidate: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return what units draw in their cells, (n, time, width), and the sum of their bias currents, units.

    candidate, state: as currents, (n, time, width).
    """
    output, thresholds = state + PEDESTAL_UNITS, _thresholds(module)
    if thresholds is None:
        return output, torch.zeros(())
    lower, upper = thresholds
    width = upper - lower
    feedback = width * state.clamp(max=1.0)
    decision = torch.minimum(torch.relu(candidate) + feedback, upper)
    return decision + feedback + output, (upper + width).sum()
