"""The seed paper's orderings at reduced size, section 4 and appendix G: memory that is neither faded nor gated away.

m = 32, r = 1, batch 32, 60 or 64 steps, seed 0; the figures of all cells are in docs/papers/tables.md. The bounds lie
between what the cells reach and chance, far from either: they are orderings, no third digit.
"""

import pytest

torch = pytest.importorskip("torch")

from cosim.papers.shape import BackboneShape, Training  # noqa: E402
from cosim.papers.sources import load_source  # noqa: E402
from cosim.papers.train import Setup, figures_of, metric_of, train_backbone  # noqa: E402

STEPS = 60
pytestmark = pytest.mark.slow


@pytest.fixture
def trained(tmp_path):
    """(source, cell, epsilon, state, iterations) -> accuracy or mean absolute error on test samples."""

    def train(source, cell, epsilon, state, iterations):
        training = Training(iterations=iterations, batch=32, epsilon=epsilon)
        setup = Setup(BackboneShape(1, 1, cell=cell, width=32, state=state), training, source)
        model = train_backbone(setup, tmp_path / "model.pt")
        return figures_of(model)[0][metric_of(model)]

    return train


def test_an_item_is_kept_with_epsilon_one_and_not_learned_with_zero(trained):
    source = load_source(f"copy-item-{STEPS}-published")
    assert trained(source, "cmru", 1.0, 4, 1500) >= 0.99
    assert trained(source, "bmru", 0.0, 4, 1500) <= 0.15  # chance is 1 / 15


@pytest.mark.parametrize(("keeps", "fails"), [("cmru", "bmru"), ("alphacmru", "mingru")])
def test_a_value_is_kept_in_noise_where_an_update_adds(trained, keeps, fails):
    """The mean absolute error of always saying 0 is 0.5."""
    source = load_source(f"copy-value-{STEPS}-published")
    assert trained(source, keeps, 1.0, 4, 2000) <= 0.2
    assert trained(source, fails, 0.0, 4, 2000) >= 0.4


def test_pixels_of_a_digit_are_counted_with_epsilon_one(trained):
    source = load_source("pixel-digits")
    assert trained(source, "cmru", 1.0, 8, 1500) - trained(source, "bmru", 0.0, 8, 1500) >= 0.2
