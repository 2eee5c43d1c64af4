"""Loss of a backbone, and the figures of a set of samples."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from cosim.papers.backbone import Backbone
from cosim.papers.sources import Samples

CHUNK, CHUNK_STEPS = 256, 1 << 18  # samples at a time, and steps of all of them, for the sake of memory


@dataclass(frozen=True)
class TensorBatch:
    """Samples of a backbone as tensors."""

    x: Tensor
    y: Tensor
    lengths: Tensor
    mask: Tensor | None

    def rows(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return a backbone's scores and targets as rows; of scores at every step those of the steps that count."""
        return (scores, self.y) if self.mask is None else (scores[self.mask], self.y[self.mask])


def to_tensors(samples: Samples, device: torch.device) -> TensorBatch:
    """Return a backbone's samples on a device, cut after the longest of them; values are numbers, or tokens (int)."""
    longest = int(samples.lengths.max())
    steps = [samples.x[:, :longest], samples.y, samples.lengths]
    if samples.mask is not None:
        steps = [steps[0], samples.y[:, :longest], samples.lengths, samples.mask[:, :longest]]
    x, y, lengths, *mask = (torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in steps)
    return TensorBatch(x.long() if x.ndim == 2 else x, y, lengths, mask[0] if mask else None)


def loss_of(scores: Tensor, y: Tensor, *, classes: bool) -> Tensor:
    """Compute the backbone's loss over rows: cross entropy of classes, else the mean squared error."""
    scores = scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores
    return cross_entropy(scores, y) if classes else mse_loss(scores, y.to(scores.dtype))


@torch.no_grad()
def measure(model: Backbone, samples: Samples, *, classes: bool, mixed: bool = False) -> dict[str, float]:
    """Measure a backbone's `loss`, and `accuracy` of classes or `mae`, mean absolute error: means over rows."""
    device, training = model.output.weight.device, model.training
    model.eval()
    sums, rows = torch.zeros(2, dtype=torch.float64), 0
    count = max(1, min(CHUNK, CHUNK_STEPS // samples.x.shape[1]))
    for start in range(0, len(samples.lengths), count):
        part = to_tensors(samples.take(np.arange(start, min(start + count, len(samples.lengths)))), device)
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            scores = model(part.x, part.lengths)
        scores, y = part.rows(scores)
        right = (scores.argmax(dim=1) == y) if classes else (scores - y).abs().mean(dim=1)
        sums += torch.stack([loss_of(scores, y, classes=classes).double() * len(y), right.double().sum()]).cpu()
        rows += len(y)
    model.train(training)
    loss, judged = (sums / rows).tolist()
    return {"loss": loss, "accuracy" if classes else "mae": judged}


def rank_of(figures: dict[str, float]) -> tuple[float, float]:
    """Return the key that orders backbones, smaller is better: by the task's own metric, among equals by the loss."""
    return -figures["accuracy"] if "accuracy" in figures else figures["mae"], figures["loss"]
