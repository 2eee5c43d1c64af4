"""What a network of hysteresis units gives up against a GRU: digits, equal width, layers, iterations and batch.

    python benchmarks/bench_gru.py [SEEDS]

The GRU is torch's, with weights and inputs of any value, on the same features and ramp, its readout pooled by the mean.
Of three learning rates the one with the smallest loss on held-out samples counts; test samples are used once.
"""

import copy
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from smoke import shrink
from torch import Tensor, nn

import cosim
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import encode_inputs, run_reference
from cosim.tasks.load import load_task

WIDTHS, ITERATIONS, BATCH = (8, 16), 6000, 128
RATES = (2e-3, 5e-3, 2e-2)
HELD, LAYERS, CHECKS = 0.1, 2, 100


class Classifier(nn.Module):
    """A GRU with a linear readout, whose scores are averaged over time."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.memory = nn.GRU(inputs, width, LAYERS, batch_first=True)
        self.readout = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(x)[0]).mean(dim=1)


def train_gru(x: Tensor, y: Tensor, width: int, seed: int, rate: float) -> tuple[float, Classifier]:
    """Return the smallest loss on held-out samples, and the network that had it."""
    torch.manual_seed(seed)
    held = torch.rand(len(x)) < HELD
    model = Classifier(x.shape[2], width, int(y.max()) + 1)
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=ITERATIONS, pct_start=0.01)
    fitted, best, kept = torch.nonzero(~held)[:, 0], np.inf, copy.deepcopy(model)
    for i in range(1, ITERATIONS + 1):
        chosen = fitted[torch.randint(len(fitted), (BATCH,))]
        loss = nn.functional.cross_entropy(model(x[chosen]), y[chosen], label_smoothing=0.05)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if i % max(1, ITERATIONS // CHECKS) == 0:
            with torch.no_grad():
                found = float(nn.functional.cross_entropy(model(x[held]), y[held]))
            if found < best:
                best, kept = found, copy.deepcopy(model)
    return best, kept


def main() -> None:
    """A line for each width and seed: accuracy and numbers that are learned, of the GRU and of cosim's network."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.set_num_threads(1)
    task = load_task("digits")
    encoding = task.encoding(ramp=True, levels=None)
    x, x_test = (torch.tensor(encode_inputs(encoding, raw).units, dtype=torch.float32)
                 for raw in (task.x_train, task.x_test))  # fmt: skip
    y, y_test = torch.tensor(task.y_train), torch.tensor(task.y_test)
    with tempfile.TemporaryDirectory() as folder:
        for width in WIDTHS:
            both = []
            for seed in range(seeds):
                _, gru = min((train_gru(x, y, width, seed, rate) for rate in RATES), key=lambda pair: pair[0])
                with torch.no_grad():
                    right = float((gru(x_test).argmax(dim=1) == y_test).double().mean())
                path = Path(folder) / f"{width}-{seed}.pt"
                cosim.train("digits", output=path, cells=width, layers=LAYERS, iterations=ITERATIONS, seed=seed)
                ours = float((run_reference(load_network(path), task.x_test).decisions == task.y_test).mean())
                both.append((right, ours))
                learned = sum(one.numel() for one in gru.parameters())
                print(f"width {width}  seed {seed}  GRU {right:.1%} ({learned} numbers)  cosim {ours:.1%}", flush=True)
            print(f"width {width}  mean    GRU {np.mean(both, axis=0)[0]:.1%}  cosim {np.mean(both, axis=0)[1]:.1%}")


if __name__ == "__main__":
    shrink(globals(), "1", WIDTHS=(3,), ITERATIONS=20, RATES=(2e-3,))
    main()
