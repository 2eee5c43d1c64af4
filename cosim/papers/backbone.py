"""The backbone of the seed paper (arXiv 2605.11855, section 4 and appendix), with exchangeable cells.

    encoder   x~ = Linear(in -> m) x^, or an embedding of tokens ;  x = x~ + MLP(x~)                      (27)
    block     x <- u1 * x + Cell~(LayerNorm(x)) ;  x <- u2 * x + MLP(LayerNorm(x))
    position  c_t = Linear([x_t ; PE(t)]), what the cell receives                                        (26)
    Cell~     LayerNorm(Linear(Cell(c))) * sigmoid(Linear(x))                                            (25)
    MLP       Linear(m -> 8 m), GLU, dropout, Linear(4 m -> m)
    decoder   y~ = Linear(m -> m) y_pool ;  y^ = Linear(m -> out)(y~ + MLP(y~))                          (28)

Where the paper is silent: PE has m numbers with periods from 2 pi to 2 pi 10^4; without positions the cell receives x;
the gate of (25) reads the normalised input of the block; (28) keeps m features up to its last Linear.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from cosim.papers.cells import (
    Drive,
    HysteresisCell,
    Lru,
    ParallelCells,
    SoftwareCell,
    SoftwareMinGru,
    Steps,
    each,
    in_full,
    joined,
    repeated,
    take_step,
    whole,
)
from cosim.papers.shape import BackboneShape
from cosim.papers.sources import Samples

_LONGEST = 10000.0


class Mlp(nn.Module):
    """The MLP of a backbone's block: Linear(Dropout(GLU(Linear(x)))), hidden width 4 m."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.dropout(nn.functional.glu(self.into(x), dim=-1)))


class BackboneBlock(nn.Module):
    """A block of the backbone: a recurrent cell between linear layers, then an MLP, each with a skip around it.

    It maps x (n, time, m) to (n, time, m), or, if `last` (n,) is given, to that step of each sample, (n, 1, m). Only
    the cell sees other steps, so what comes before the cell is computed once for repeated steps.
    """

    def __init__(
        self, width: int, cell: SoftwareCell | ParallelCells, *, positions: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.cell = cell
        self.u1, self.u2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.norm1, self.norm2, self.cell_norm = (nn.LayerNorm(width) for _ in range(3))
        self.position = nn.Linear(2 * width, width) if positions else None
        self.readout, self.gate = nn.Linear(cell.outputs, width), nn.Linear(width, width)
        self.mlp = Mlp(width, dropout)

    def run_cell(self, x: Steps) -> Tensor:
        """Return the cell's output for the normalised input x, (n, time, outputs).

        The cell never runs in half precision, which would round candidates to three digits before they are compared.
        """
        given = x if isinstance(x, Tensor) else x.rows
        if self.position is not None:
            x = joined(self.position, x, _positions_like(x.shape[1], x.shape[2], given.dtype, given.device))
        with torch.autocast(given.device.type, enabled=False):
            return self.cell(in_full(x))

    def forward(self, x: Steps, last: Tensor | None = None) -> Tensor:
        steps = each(self.norm1, x)
        y = self.run_cell(steps)
        kept, normed, y = (whole(part) if last is None else take_step(part, last) for part in (x, steps, y))
        kept = self.u1 * kept + self.cell_norm(self.readout(y)) * torch.sigmoid(self.gate(normed))
        return self.u2 * kept + self.mlp(self.norm2(kept))


class Backbone(nn.Module):
    """The papers' backbone: maps x (n, time, inputs), or tokens (n, time), to (n, outputs), or without pooling to (n,
    time, outputs).

    Inputs other than tokens are normalised, (x - offset) / scale; `offset` and `scale`, (inputs,), are not learned.
    """

    offset: Tensor
    scale: Tensor

    def __init__(self, shape: BackboneShape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("offset", torch.zeros(0 if shape.tokens else shape.inputs))
        self.register_buffer("scale", torch.ones(0 if shape.tokens else shape.inputs))
        m = shape.width
        self.encoder = nn.Embedding(shape.inputs, m) if shape.tokens else nn.Linear(shape.inputs, m)
        self.encoder_mlp = Mlp(m, shape.dropout)
        self.blocks = nn.ModuleList(
            BackboneBlock(m, make_cell(shape, i), positions=shape.positions, dropout=shape.dropout)
            for i in range(shape.blocks)
        )
        self.decoder, self.decoder_mlp = nn.Linear(m, m), Mlp(m, shape.dropout)
        self.output = nn.Linear(m, shape.outputs)

    @property
    def hysteresis(self) -> dict[str, HysteresisCell]:
        """Return the cells with thresholds (BMRU, CMRU, alphaCMRU), by their names in the state dict."""
        return {name: part for name, part in self.named_modules() if isinstance(part, HysteresisCell)}

    def set_epsilon(self, epsilon: float) -> None:
        """Set epsilon, the share of the old state that an update keeps, in all cells with thresholds; a BMRU keeps
        0."""
        for cell in self.hysteresis.values():
            cell.epsilon = 0.0 if cell.settled else epsilon

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the outputs, (n, outputs), or (n, time, outputs) without pooling; lengths: valid steps, (n,),
        default all."""
        steps = torch.full((len(x),), x.shape[1], device=x.device) if lengths is None else lengths
        seen: Steps = self._encode(x)
        for block in self.blocks:
            final = block is self.blocks[-1] and self.shape.pooling == "last"
            seen = block(seen, steps - 1 if final else None)
        x = whole(seen)
        y = self.decoder(x[:, 0] if self.shape.pooling == "last" else self._pool(x, steps))
        return self.output(y + self.decoder_mlp(y))

    def _encode(self, x: Tensor) -> Steps:
        few = None if self.training and self.shape.dropout > 0 else repeated(x)  # dropout differs from step to step
        return each(self._encode_each, few or x)

    def _encode_each(self, x: Tensor) -> Tensor:
        x = self.encoder(x if self.shape.tokens else (x - self.offset) / self.scale)
        return x + self.encoder_mlp(x)

    def _pool(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.shape.pooling == "none":
            return x
        valid = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
        return (x * valid[:, :, None]).sum(dim=1) / lengths[:, None]


def make_cell(shape: BackboneShape, block: int) -> SoftwareCell | ParallelCells:
    """Return a new recurrent cell for one block of the backbone; block: its number, from 0 on."""
    kinds = shape.cells_of(block)
    cells = [_cell(kind, shape, shape.state // len(kinds)) for kind in kinds]
    return cells[0] if len(cells) == 1 else ParallelCells(cells)


def _cell(kind: str, shape: BackboneShape, state: int) -> SoftwareCell:
    match kind:
        case "lru":
            return Lru(shape.width, state)
        case "mingru":
            return SoftwareMinGru(shape.width, state)
        case _:
            scaled, levels = kind == "alphacmru", None if kind == "bmru" else shape.levels
            cell = HysteresisCell(shape.width, state, threshold=shape.threshold, scaled=scaled, levels=levels)
            cell.settled = kind == "bmru"
            cell.start = "zero" if cell.scale is not None else shape.start
            cell.epsilon = 0.0 if cell.settled else 1.0
            return cell


@lru_cache(maxsize=8)
def _positions_like(steps: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return positions(steps, width).to(device, dtype)


def positions(steps: int, width: int) -> Tensor:
    """Return the sinusoidal position code (steps, width): columns 2 i and 2 i + 1 are sine and cosine of period 2 pi
    10000^(2 i / width)."""
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(steps, dtype=torch.float64)[:, None] * _LONGEST ** (-pairs / width)
    found = torch.empty(steps, width, dtype=torch.float64)
    found[:, 0::2], found[:, 1::2] = angle.sin(), angle[:, : width // 2].cos()
    return found


@contextmanager
def listening(
    cells: Mapping[str, HysteresisCell], heard: Callable[[str, Drive], Tensor]
) -> Generator[None, None, None]:
    """Replace the memory of some cells by `heard` within a `with` block, and restore it afterwards.

    heard: called with a cell's name and its Drive, returns the cell's states (n, time, state).
    """
    before = {name: cell.memory for name, cell in cells.items()}
    try:
        for name, cell in cells.items():
            cell.memory = partial(heard, name)
        yield
    finally:
        for name, cell in cells.items():
            cell.memory = before[name]


@torch.no_grad()
def record(model: Backbone, x: Tensor, lengths: Tensor | None = None) -> dict[str, tuple[Drive, Tensor]]:
    """Run a backbone on samples and return name -> (drive, states) of each cell with thresholds."""
    found, cells, training = dict[str, tuple[Drive, Tensor]](), model.hysteresis, model.training
    memories = {name: cell.memory or cell.decide for name, cell in cells.items()}

    def heard(name: str, drive: Drive) -> Tensor:
        states = memories[name](drive)
        found[name] = drive, states
        return states

    try:
        with listening(cells, heard):
            model.eval()(x, lengths)
    finally:
        model.train(training)
    return found


CHUNK, CHUNK_STEPS = 256, 1 << 18  # samples at a time, and steps of all of them, for the sake of memory


def to_tensors(samples: Samples, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the inputs of samples, cut to the longest of them, and their lengths (n,), on a device; tokens become
    int64."""
    x, lengths = _moved(samples.x[:, : int(samples.lengths.max())], device), _moved(samples.lengths, device)
    return x.long() if x.ndim == 2 else x, lengths


def judged_rows(samples: Samples, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return a backbone's scores and the targets, one row a sample; with a mask, one row for each step that it
    selects."""
    if samples.mask is None:
        return scores, _moved(samples.y, scores.device)
    longest = int(samples.lengths.max())
    mask = _moved(samples.mask[:, :longest], scores.device)
    return scores[mask], _moved(samples.y[:, :longest], scores.device)[mask]


def _moved(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def loss_of(scores: Tensor, y: Tensor, *, classes: bool) -> Tensor:
    """Compute a backbone's loss of its scores against targets y, averaged over rows.

    It is the cross entropy of classes, else the mean squared error.
    """
    scores = scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores
    return cross_entropy(scores, y) if classes else mse_loss(scores, y.to(scores.dtype))


@torch.no_grad()
def measure(model: Backbone, samples: Samples, *, classes: bool, mixed: bool = False) -> dict[str, float]:
    """Return a backbone's `loss`, with `accuracy` for classes, else `mae`, the mean absolute error; means over all
    rows.

    A row is a sample, or a step that the mask selects. mixed: run in bfloat16 where autocast allows.
    """
    device, training = model.output.weight.device, model.training
    model.eval()
    sums, rows = torch.zeros(2, dtype=torch.float64), 0
    count = max(1, min(CHUNK, CHUNK_STEPS // samples.x.shape[1]))
    for start in range(0, len(samples.lengths), count):
        part = samples.take(np.arange(start, min(start + count, len(samples.lengths))))
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            scores = model(*to_tensors(part, device))
        scores, y = judged_rows(part, scores)
        right = (scores.argmax(dim=1) == y) if classes else (scores - y).abs().mean(dim=1)
        sums += torch.stack([loss_of(scores, y, classes=classes).double() * len(y), right.double().sum()]).cpu()
        rows += len(y)
    model.train(training)
    loss, judged = (sums / rows).tolist()
    return {"loss": loss, "accuracy" if classes else "mae": judged}


def rank_of(figures: dict[str, float]) -> tuple[float, float]:
    """Return a sort key for a backbone's figures, smaller is better: accuracy or mean absolute error, then the loss."""
    return -figures["accuracy"] if "accuracy" in figures else figures["mae"], figures["loss"]
