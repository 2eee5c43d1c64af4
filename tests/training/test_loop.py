"""The training loop on a problem of one line: it descends, keeps the best, ends early, and goes on to the bit."""

import signal
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.claim import own_file  # noqa: E402
from cosim.base.errors import InputError, TrainingError  # noqa: E402
from cosim.training.config import state_path  # noqa: E402
from cosim.training.loop import Descent, Measurement, Problem, TrainingLoop  # noqa: E402


class Line(Problem):
    """A weight for noisy samples of y = 3 x; every fifth iteration ranks its distance from `wanted`."""

    def __init__(self, wanted: float = 3.0, iterations: int = 60) -> None:
        self.seed, self.rng, self.wanted = 1, np.random.default_rng(1), wanted
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            self.model = torch.nn.Linear(1, 1, bias=False)
        self.descent = Descent(iterations, 0.3, constant=True)
        self.settings = {"iterations": iterations, "wanted": wanted}

    def loss(self, iteration: int) -> torch.Tensor:
        x = torch.from_numpy(self.rng.normal(size=(8, 1))).float()
        return ((self.model(x) - 3 * x) ** 2).mean()

    def measure(self, iteration: int, loss: float, best: tuple) -> Measurement:
        error = abs(self.model.weight.item() - self.wanted)
        return Measurement(rank=(error, 0.0) if iteration % 5 == 0 else None, finished=error < 1e-6)


def trained(problem: Problem, *where: object) -> TrainingLoop:
    loop = TrainingLoop(problem)
    loop.run(*where)
    return loop


def test_it_descends_and_takes_the_best() -> None:
    """On its way to 3 the weight passes 1; what ranks first is the measured weight that was nearest to that."""
    loop = trained(Line(wanted=1.0))
    assert loop.iteration == 60 and abs(loop.problem.model.weight.item() - 3) < 0.1
    loop.take_best()
    assert abs(loop.problem.model.weight.item() - 1.0) == loop.rank[0] < 1


def test_a_problem_may_end_the_training() -> None:
    class Short(Line):
        def measure(self, iteration: int, loss: float, best: tuple) -> Measurement:
            return Measurement(finished=iteration == 7)

    assert trained(Short()).iteration == 7


@pytest.mark.parametrize("iteration", [1, 30, 60])
def test_a_stopped_training_goes_on_to_the_same_bytes(tmp_path: Path, iteration: int) -> None:
    """The generator's place in its sequence is part of the state."""
    path, whole = tmp_path / "model.pt", trained(Line())

    def stop(done: int, values: dict[str, float]) -> None:
        if done == iteration:
            signal.raise_signal(signal.SIGINT)

    with own_file(path):
        with pytest.raises(KeyboardInterrupt):
            trained(Line(), state_path(path), stop)
        with pytest.raises(InputError, match="belongs to other settings: wanted 3.0 not 2.0; go on with"):
            trained(Line(wanted=2.0), state_path(path))
        heard = []
        found = trained(Line(), state_path(path), lambda done, _: heard.append(done))
    assert heard == list(range(iteration + 1, 61)) and (found.rank, found.iteration) == (whole.rank, 60)
    for loop in (found, whole):
        loop.take_best()
    assert torch.equal(found.problem.model.weight, whole.problem.model.weight)
    assert torch.equal(found.recorder.rows, whole.recorder.rows)


def test_a_loss_that_is_no_number_names_seed_and_iteration() -> None:
    class Lost(Line):
        def loss(self, iteration: int) -> torch.Tensor:
            return super().loss(iteration) * (float("nan") if iteration == 3 else 1.0)

    with pytest.raises(
        TrainingError, match="seed 1: the loss must be a finite number, not nan, as it is in iteration 4"
    ):
        trained(Lost())
