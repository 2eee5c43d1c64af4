"""Supply current of a network in training, for a loss that asks for little power.

The currents are those of cosim.engines.behavioral.model with ideal mirrors, averaged over all valid steps of a batch,
in units of software 1.0. A signal's current x is the signal minus its lowest value; weights times that value are added
to the row's bias. Inputs and states, not rectifiers, carry a pedestal on top of x, and each row has one more weight
that subtracts it. Each block is a sum of currents:

    inputs     every input, the unit current, and the pedestal's own line
    rails      copies of each signal that some positive weight reads, of the unit current, and of the pedestal's line
    rows       all that flows into each row: max(w, 0) (x + pedestal), a positive bias, a positive pedestal weight
    readout    the same for the rows of the readout; where more flows out of an output y than in, max(-y, 0) on top
    cells      decision branch of each 9T cell, min(max(u, 0) + W q, upper), its feedback W q, and its output x +
               pedestal, where u is the candidate, W the hysteresis width, and q is 1 if the cell is on, else 0
    bias       upper threshold and W of each cell; once for all cells a level and a pedestal

This holds only for networks whose units become one 9T cell each: epsilon 0, thresholds from bias currents, no --taps
and no --feedback. Clocks are left out, and all of `--with`. Supply power is unit current times V_DD times the sum of
all blocks.
"""

import torch
from torch import Tensor, nn

from cosim.network.ir.nodes import PEDESTAL_STRENGTH, PEDESTAL_UNITS
from cosim.network.types import INPUT
from cosim.training.backbone import BackboneOutput, HardwareNetwork
from cosim.training.cells import FirstQuadrantCell, SignedCell
from cosim.training.hardware import GridLinear

Cell = FirstQuadrantCell | SignedCell


def supply_currents(model: HardwareNetwork, output: BackboneOutput, valid: Tensor) -> dict[str, Tensor]:
    """Return the mean supply current of each block of a network in training: name -> scalar with gradient, units.

    model: of 9T cells alone, as `check_config` asks of a training with a price of power; output: of the model for a
    batch; valid: True for the steps that count, (n, time).
    """
    share = valid / valid.sum()
    signals, lowest = output.signals, _lowest_values(model, output.signals, valid)
    rectified = {name for name, module in model.layers.items() if isinstance(module, GridLinear)}
    pedestals = {name: torch.full_like(x, PEDESTAL_UNITS * (name not in rectified)) for name, x in lowest.items()}
    means = {name: _mean(values, share) - lowest[name] + pedestals[name] for name, values in signals.items()}
    copied = {name: torch.zeros_like(value, dtype=torch.bool) for name, value in lowest.items()}
    constant = torch.tensor(1.0 + PEDESTAL_STRENGTH * PEDESTAL_UNITS)  # unit current and pedestal
    blocks = {"inputs": constant + means[INPUT].sum(), "rails": constant}
    blocks |= dict.fromkeys(("rows", "readout", "cells", "bias"), torch.zeros(()))
    for name, module in (*model.layers.items(), ("readout", model.readout)):
        row = module.linear if isinstance(module, Cell) else module
        assert isinstance(row, GridLinear), "only networks of 9T cells are trained with a price of power"
        sources, weight, bias = model.sources[name], *row.rounded()
        mean, low, pedestal = (torch.cat([of[one] for one in sources]) for of in (means, lowest, pedestals))
        bias = bias + weight @ low
        if isinstance(module, Cell):
            lower, upper, offset = _thresholds(module)
            bias = bias + offset
            candidate = row(torch.cat([signals[one] for one in sources], dim=2)) + offset
            drawn = _cell_currents(candidate, signals[name] - lowest[name], lower, upper, _level(module))
            blocks["cells"] = blocks["cells"] + _mean(drawn, share).sum()
            blocks["bias"] = blocks["bias"] + (2 * upper - lower).sum()
        block = "readout" if name == "readout" else "rows"
        terms = torch.relu(weight) @ mean + torch.relu(bias) + torch.relu(-weight @ pedestal)
        blocks[block] = blocks[block] + terms.sum()
        positive = (weight > 0).any(dim=0).split([len(lowest[one]) for one in sources])
        copied |= {one: copied[one] | some for one, some in zip(sources, positive, strict=True)}
    blocks["bias"] = blocks["bias"] + PEDESTAL_UNITS + max(_level(cell) for cell in model.cells.values())
    blocks["readout"] = blocks["readout"] + _mean(torch.relu(-output.readout), share).sum()
    blocks["rails"] = blocks["rails"] + torch.stack([(means[name] * some).sum() for name, some in copied.items()]).sum()
    return blocks


def _mean(values: Tensor, share: Tensor) -> Tensor:
    """Return the mean of values (n, time, width) over the steps that count, (width,); share of each step: (n, time)."""
    return share.flatten() @ values.flatten(0, 1)


def _lowest_values(model: HardwareNetwork, signals: dict[str, Tensor], valid: Tensor) -> dict[str, Tensor]:
    """Return the value of each signal for which its circuit carries no current: name -> (width,), without gradient.

    For a unit it is the lowest of its states in the steps that count and the one before the first step; for inputs and
    rectifiers it is 0.
    """
    lowest = {name: torch.zeros(values.shape[2]) for name, values in signals.items()}
    for name, cell in model.cells.items():
        states = signals[name].detach().where(valid[:, :, None], torch.inf)
        lowest[name] = torch.minimum(states.amin(dim=(0, 1)), cell.start).detach()
    return lowest


def _thresholds(cell: Cell) -> tuple[Tensor, Tensor, Tensor]:
    """Return lower and upper threshold of cells as currents, and the offset in both and in the candidate, units.

    The offset of a signed unit is a staircase in beta; its gradient is that of beta, the staircase's mean slope.
    """
    if isinstance(cell, FirstQuadrantCell):
        return *cell.thresholds(), torch.zeros(())
    beta = cell.bias_beta()
    offset = cell.offset() + (beta - beta.detach())
    return offset - beta, offset + beta, offset


def _level(cell: nn.Module) -> float:
    """Return the output current of a cell that is on, units: its upper state minus its lower one."""
    return 2.0 if isinstance(cell, SignedCell) else 1.0


def _cell_currents(candidate: Tensor, state: Tensor, lower: Tensor, upper: Tensor, level: float) -> Tensor:
    """Return what cells draw in each step, units, (n, time, width).

    candidate, state: (n, time, width); state: as a current, 0 or the level, any value until epsilon is 0.
    """
    feedback = (upper - lower) * (state / level).clamp(max=1.0)
    decision = torch.minimum(torch.relu(candidate) + feedback, upper)
    return decision + feedback + state + PEDESTAL_UNITS
