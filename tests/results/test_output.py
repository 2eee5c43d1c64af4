"""What people read: tables that fit a terminal, figures with the same bytes twice."""

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.waveforms import Timing
from cosim.results.figures import Figure, save_figure
from cosim.results.metrics import percent
from cosim.verbs.compare.agreement import Comparison, EngineResult, summarize_comparison
from cosim.verbs.compare.figures import draw_confusion
from cosim.verbs.compare.page import comparison_cards, engine_blocks
from cosim.verbs.simulate.waveform_figure import draw_waveforms
from cosim.verbs.simulate.waveforms import WaveLabels, liveliest_cell

HOSTILE = '<script>alert("x")</script>'
FORMULA = r"$\frac{$ \undefined_"  # what a renderer of formulas would choke on


@pytest.fixture
def comparison():
    rng = np.random.default_rng(6)
    states, readout = rng.random((13, 5, 2)) < 0.5, rng.normal(size=(13, 5, 3))
    other = states.copy()
    other[3, 2, 1] ^= True
    decisions = rng.integers(0, 3, 13)
    engines = {
        "software": EngineResult(states, readout, decisions),
        "behavioral": EngineResult(states, readout, decisions),
        "ngspice": EngineResult(other, readout + 0.01, (decisions + (np.arange(13) == 4)) % 3),
    }
    power = np.full(13, 1.234e-7)
    return Comparison(
        engines, engines["software"], np.full((13, 5, 2), 0.0123), ("a.0", "a.1"), np.ones((13, 5), bool), decisions,
        np.arange(13), {"behavioral": power, "ngspice": power}, (), 123456,
    )  # fmt: skip


@pytest.fixture
def summary(comparison):
    return summarize_comparison(comparison)


def test_a_comparison_says_what_each_engine_gets_right(summary):
    assert comparison_cards(summary)[2] == ("99.23 %", "of 130 states equal the software's")
    table, *notes = engine_blocks(summary)
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("software", ""), ("behavioral", "123 nW"), ("ngspice", "123 nW"),
    ]  # fmt: skip
    assert "an RMSE of 0.010 units" in notes[-1]


def test_percent():
    assert (percent(0.9512), percent(0.98765, 2), percent(1.0)) == ("95.1 %", "98.77 %", "100.0 %")


@pytest.mark.parametrize("suffix", ["png", "svg"])
@pytest.mark.parametrize("labels", [["0", "1", "2"], [HOSTILE, FORMULA, "größe"]])
def test_confusion_has_the_same_bytes_twice(comparison, tmp_path, suffix, labels):
    for name in ("one", "two"):
        save_figure(draw_confusion(comparison, labels), tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert len(first) > 5000


def test_waveforms_have_the_same_bytes_twice(tmp_path):
    time = np.linspace(0, 0.045, 300)
    waves = {
        "time": time,
        "candidate": 1e-9 * np.sin(300 * time) ** 2,
        "state": 1e-9 * (time > 0.02),
        "power": 1e-7 + 0 * time,
    }
    waves |= {"input.0": 1e-9 * time, "input.1": 2e-9 * time, "output.0": 1e-9 * time, "output.1": -1e-9 * time}
    labels = WaveLabels("a.0", 6e-10, 3e-10, [HOSTILE, FORMULA], FORMULA)
    for name in ("one", "two"):
        save_figure(draw_waveforms(waves, labels, Timing()), tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_liveliest_cell():
    states = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0]], bool)
    assert liveliest_cell(("a", "b", "c"), states) == "c"
    assert liveliest_cell(("a", "b", "c"), states[:, :2]) == "a"


def test_a_figure_is_whole_or_not_there(tmp_path):
    """Where a folder has its name, it cannot take it: nothing else is left behind."""
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*taken.png: .*; choose another place"):
        save_figure(Figure(), tmp_path / "taken.png")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]
