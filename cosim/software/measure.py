"""What a backbone is trained for and judged by: loss, and the figures of a set of samples."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from cosim.software.backbone import Backbone
from cosim.software.sources import Samples

CHUNK = 256  # samples at a time, for the sake of memory


def to_tensors(samples: Samples, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """x, y and lengths on a device, cut after the longest sample."""
    longest = int(samples.lengths.max())
    x, y = samples.x[:, :longest], samples.y
    if y.ndim == 2 and y.dtype.kind in "iu":  # a class for every step
        y = y[:, :longest]
    parts = (x, y, samples.lengths)
    found = [torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in parts]
    return found[0], found[1], found[2]


def valid_scores(scores: Tensor, y: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and targets as rows: of scores at every step those of the valid steps."""
    if scores.ndim == 2:
        return scores, y
    valid = torch.arange(scores.shape[1], device=scores.device)[None, :] < lengths[:, None]
    return scores[valid], y[valid]


def loss_of(scores: Tensor, y: Tensor, *, classes: bool) -> Tensor:
    """Cross entropy of classes, else mean squared error; of rows."""
    scores = scores.float() if scores.dtype in (torch.bfloat16, torch.float16) else scores
    return cross_entropy(scores, y) if classes else mse_loss(scores, y.to(scores.dtype))


@torch.no_grad()
def measure(model: Backbone, samples: Samples, *, classes: bool, mixed: bool = False) -> dict[str, float]:
    """`loss`, and `accuracy` of classes or `mae`, the mean absolute error: means over rows, in evaluation."""
    device, training = model.output.weight.device, model.training
    model.eval()
    sums, rows = torch.zeros(2, dtype=torch.float64), 0
    for start in range(0, len(samples.lengths), CHUNK):
        part = samples.take(np.arange(start, min(start + CHUNK, len(samples.lengths))))
        x, y, lengths = to_tensors(part, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            scores = model(x, lengths)
        scores, y = valid_scores(scores, y, lengths)
        right = (scores.argmax(dim=1) == y) if classes else (scores - y).abs().mean(dim=1)
        sums += torch.stack([loss_of(scores, y, classes=classes).double() * len(y), right.double().sum()]).cpu()
        rows += len(y)
    model.train(training)
    loss, judged = (sums / rows).tolist()
    return {"loss": loss, "accuracy" if classes else "mae": judged}


def score_of(figures: dict[str, float]) -> list[float]:
    """What is better is larger: the task's own metric, and among equals the loss."""
    return [figures["accuracy"] if "accuracy" in figures else -figures["mae"], -figures["loss"]]
