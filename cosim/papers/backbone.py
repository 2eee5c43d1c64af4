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

from functools import lru_cache

import torch
from torch import Tensor, nn

from cosim.papers.cells import Drive, HysteresisCell, Lru, Parallel, SoftwareCell, SoftwareMinGru
from cosim.papers.repeated import Steps, each, in_full, joined, repeated, take_step, whole
from cosim.papers.shape import BackboneShape

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
    """x (n, time, m) to the same; with `last` (n,) only that step leaves, (n, 1, m): only the cell looks at others.

    Of repeated steps everything before the cell is computed once.
    """

    def __init__(self, width: int, cell: SoftwareCell, *, positions: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.cell = cell
        self.u1, self.u2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.norm1, self.norm2, self.cell_norm = (nn.LayerNorm(width) for _ in range(3))
        self.position = nn.Linear(2 * width, width) if positions else None
        self.readout, self.gate = nn.Linear(cell.outputs, width), nn.Linear(width, width)
        self.mlp = Mlp(width, dropout)

    def run_cell(self, x: Steps) -> Tensor:
        """Return the cell's output for the normalised input, (n, time, outputs); never in half precision, which would
        round candidates to three digits before they are compared."""
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
    """The papers' backbone: x (n, time, inputs), or tokens (n, time), to (n, outputs), unpooled (n, time, outputs).

    What is no token is taken as (x - offset) / scale, `offset` and `scale` of each input, which are not learned.
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
        """Return the backbone's cells with thresholds, by their names in the state dict."""
        return {name: part for name, part in self.named_modules() if isinstance(part, HysteresisCell)}

    def set_epsilon(self, epsilon: float) -> None:
        """Use this epsilon in every cell of the backbone that has one from now on; a BMRU has 0."""
        for cell in self.hysteresis.values():
            cell.epsilon = 0.0 if cell.settled else epsilon

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the backbone's outputs; lengths: (n,) valid steps, all by default."""
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


def make_cell(shape: BackboneShape, block: int) -> SoftwareCell:
    """Return the recurrent cell of a backbone's block 0, 1, ..."""
    kinds = shape.cells_of(block)
    cells = [_cell(kind, shape, shape.state // len(kinds)) for kind in kinds]
    return cells[0] if len(cells) == 1 else Parallel(cells)


def _cell(kind: str, shape: BackboneShape, state: int) -> SoftwareCell:
    match kind:
        case "lru":
            return Lru(shape.width, state)
        case "mingru":
            return SoftwareMinGru(shape.width, state)
        case _:
            cell = HysteresisCell(shape.width, state, threshold=shape.threshold, scaled=kind == "alphacmru")
            cell.settled = kind == "bmru"
            cell.start = "zero" if cell.scale is not None else shape.start
            cell.epsilon = 0.0 if cell.settled else 1.0
            return cell


@lru_cache(maxsize=8)
def _positions_like(steps: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return positions(steps, width).to(device, dtype)


def positions(steps: int, width: int) -> Tensor:
    """Return the backbone's position code (steps, width): sine and cosine in turn, periods 2 pi 10000^(2 i / width)."""
    pairs = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(steps, dtype=torch.float64)[:, None] * _LONGEST ** (-pairs / width)
    found = torch.empty(steps, width, dtype=torch.float64)
    found[:, 0::2], found[:, 1::2] = angle.sin(), angle[:, : width // 2].cos()
    return found


@torch.no_grad()
def record(model: Backbone, x: Tensor, lengths: Tensor | None = None) -> dict[str, tuple[Drive, Tensor]]:
    """Run a backbone on samples; return the drive of each cell with thresholds and its states, by the cell's name."""
    found, cells, training = dict[str, tuple[Drive, Tensor]](), model.hysteresis, model.training
    before = {name: cell.memory for name, cell in cells.items()}

    def listen(name: str, cell: HysteresisCell) -> None:
        memory = cell.memory or cell.decide

        def heard(drive: Drive) -> Tensor:
            states = memory(drive)
            found[name] = drive, states
            return states

        cell.memory = heard

    try:
        for name, cell in cells.items():
            listen(name, cell)
        model.eval()(x, lengths)
    finally:
        for name, cell in cells.items():
            cell.memory = before[name]
        model.train(training)
    return found
