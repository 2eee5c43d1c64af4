"""Every picture as it is printed: nothing under a legend, letters that can be read, one style, the same bytes."""

from dataclasses import replace
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from cosim.cells.blocks import BIAS_TREE, BLOCKS, CLOCK_GENERATOR, CONVERTERS, DECISION
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.results.figures import COLORS, DOUBLE, SIMULATOR, SINGLE, engine_colors, figure_bytes, styled
from cosim.results.intervals import running_intervals
from cosim.verbs.characterize.page import draw_characterisation
from cosim.verbs.characterize.study import CellFigure, Characterisation, FigureLine
from cosim.verbs.compare.agreement import Comparison, EngineResult
from cosim.verbs.compare.figures import draw_confusion
from cosim.verbs.montecarlo.figures import (
    YieldCurve,
    draw_cells,
    draw_failure,
    draw_pairs,
    draw_quantiles,
    draw_running_yield,
    draw_spread,
    draw_weak,
    draw_yield_curve,
)
from cosim.verbs.montecarlo.statistics import CellSpread, rank_weak
from cosim.verbs.simulate.waveform_figure import draw_waveforms
from cosim.verbs.simulate.waveforms import SampleDecisions, WaveLabels

RNG = np.random.default_rng(3)
ACCURACY = np.round(40 * np.clip(RNG.normal(0.85, 0.08, 60), 0, 1)) / 40
PASSES = ACCURACY > 0.8
ASKED = 1e-9 * np.array([[1.0, 0.1, 1.0], [2.0, 0.5, 1.0]])
CELLS = CellSpread(("layer1.0", "layer1.1"), ASKED, ASKED + 1e-10 * RNG.normal(size=(60, 2, 3)))
LABELS = WaveLabels(
    "layer2.1", 6e-10, 3e-10, ["0", "1", "2"], "digits on 99 transistors", i_pedestal=5e-11, stage=1, stages=2,
    inputs=("0", "1", "ramp"), verdict=SampleDecisions(17, 2, {"software": 2, "behavioral": 2, "ngspice": 1}),
)  # fmt: skip


def make_waves(inputs, frames=4):
    time = np.linspace(0, (frames + 0.5) * 0.01, 400)
    waves = {
        "time": time,
        "candidate": 1e-9 * np.sin(300 * time) ** 2,
        "state": 1e-9 * (time > 0.02),
        "power": 1e-7 + 0 * time,
    }
    waves |= {f"input.{k}": 1e-9 * (time > 0.01 * k) for k in range(inputs)}
    return waves | {f"output.{k}": (k - 1) * 1e-9 * time / time[-1] for k in range(3)}


def draw_accuracy(quantum=2.5):
    marks = {"nominal": 90, "spec": 80}
    return draw_spread("accuracy (%)", 100 * ACCURACY[PASSES], 100 * ACCURACY[~PASSES], marks=marks, quantum=quantum)


def make_comparison():
    y, decisions = RNG.integers(0, 3, 40), RNG.integers(0, 3, 40)
    engines = {
        name: EngineResult(
            np.zeros((40, 1, 1), bool), np.zeros((40, 1, 3)), (decisions + (np.arange(40) < changed)) % 3
        )
        for name, changed in (("software", 0), ("behavioral", 2), ("ngspice", 5))
    }
    return Comparison(
        engines, engines["software"], np.zeros((40, 1, 1)), ("a",), np.ones((40, 1), bool), y, np.arange(40), {}, (), 1
    )


def draw_schmitt(technology):
    rows, curves = [], []
    for rise in (1e-10, 2e-9):
        group = f"{rise:g}"
        for name, value in (("upper threshold", rise), ("lower threshold", 0.5 * rise), ("level", rise)):
            rows.append(CellFigure(group, name, "A", value, 0.97 * value, 1.001 * value, value))
        x = rise * np.array([0, 1, 1, 1.3, 0.5, 0.5, 0])
        curves += [FigureLine(group, kind, x, rise * np.array([0, 0, 1, 1, 1, 0, 0])) for kind in ("measured", "ideal")]
    return draw_characterisation("schmitt", Characterisation(technology, tuple(rows), tuple(curves)))


FIGURES = {
    "waveforms": lambda: draw_waveforms(make_waves(3), LABELS, Timing()),
    "waveforms of many inputs": lambda: draw_waveforms(make_waves(20), LABELS, Timing()),
    "failure": lambda: draw_failure(
        make_waves(3), make_waves(3), replace(LABELS, own=(6.1e-10, -1e-11)), Timing(), [2, 1]
    ),
    "spread": draw_accuracy,
    "yield": lambda: draw_yield_curve(
        YieldCurve(
            np.array([0.7, 0.8, 0.9]), np.array([0.9, 0.7, 0.1]), np.array([0.8, 0.6, 0.0]), np.array([1, 0.8, 0.3]),
            "Clopper-Pearson", (0.8, 0.7, 0.6, 0.8),
        )
    ),
    "pairs": lambda: draw_pairs("accuracy (%)", 100 * ACCURACY, 100 * ACCURACY[::-1], "ngspice"),
    "quantiles": lambda: draw_quantiles("power (nW)", np.sort(RNG.normal(300, 9, 60))),
    "running yield": lambda: draw_running_yield(running_intervals(PASSES.tolist()), 0.95),
    "thresholds": lambda: draw_cells(CELLS, [0, 1], "threshold"),
    "levels": lambda: draw_cells(CELLS, [0, 1], "level"),
    "weak": lambda: draw_weak(rank_weak(CELLS, ACCURACY)[:3], ACCURACY, PASSES),
    "confusion": lambda: draw_confusion(make_comparison(), ["0", "1", "2"]),
}  # fmt: skip


@pytest.fixture(scope="module", params=[*FIGURES, "schmitt"])
def figure(request, technology):
    found = draw_schmitt(technology) if request.param == "schmitt" else FIGURES[request.param]()
    styled(FigureCanvasAgg(found).draw)()
    return found


def test_legends_cover_nothing(figure):
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes if axis.get_legend())]
    places = [legend.get_window_extent() for legend in legends]
    drawn = [axis.get_window_extent() for axis in figure.axes]
    for place in places:
        assert not any(place.overlaps(axis) for axis in drawn)
        assert figure.bbox.x0 - 1 <= place.x0 < place.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 - 1 <= place.y0 < place.y1 <= figure.bbox.y1 + 1
    assert not any(one.overlaps(other) for one, other in combinations(places, 2))


def test_letters_are_as_large_as_journals_want(figure):
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
    assert min(sizes) >= 8
    assert figure.get_size_inches()[0] in (SINGLE, 5.0, DOUBLE)


def test_titles_and_labels_are_inside(figure):
    """1 px of a picture at 100 dpi: a letter's box may be rounded up."""
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and not text.get_clip_on():
            box = text.get_window_extent()
            inside = figure.bbox.padded(1)
            assert inside.x0 <= box.x0 and box.x1 <= inside.x1, text.get_text()
            assert inside.y0 <= box.y0 and box.y1 <= inside.y1, text.get_text()


@pytest.mark.parametrize("name", ["waveforms", "spread", "thresholds", "confusion"])
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_figure_has_the_same_bytes_twice(name, kind):
    state = RNG.bit_generator.state
    first = figure_bytes(FIGURES[name](), kind)
    RNG.bit_generator.state = state
    assert figure_bytes(FIGURES[name](), kind) == first
    assert b"Matplotlib v" not in first


def test_the_style_stays_in_the_figures():
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 31.0, "axes.labelsize": 33.0}):
        figure_bytes(FIGURES["spread"](), "png")
        sizes = {text.get_fontsize() for text in FIGURES["spread"]().findobj(Text) if text.get_text()}
        assert matplotlib.rcParams["font.size"] == 31.0
    assert max(sizes) < 31
    assert dict(matplotlib.rcParams) == before


def test_sigma_lines_stand_where_they_say():
    axis = FIGURES["spread"]().axes[0]
    (above,) = axis.child_axes
    mean, sd = 100 * ACCURACY.mean(), 100 * ACCURACY.std(ddof=1)
    marks = {tick.get_text(): place for tick, place in zip(above.get_xticklabels(), above.get_xticks(), strict=True)}
    assert {"mean", "+1", "\N{MINUS SIGN}1"} <= set(marks)
    low, high = axis.get_xlim()
    lines = [line.get_xdata()[0] for line in axis.lines]
    for place in marks.values():
        assert low <= mean + place * sd <= high
        assert np.isclose(lines, mean + place * sd, rtol=1e-9).any()


def test_waveforms_say_what_was_decided_and_when():
    figure = FIGURES["waveforms"]()
    title = figure.get_suptitle()
    assert "test sample 17 of class 2" in title
    assert "software 2, behavioral 2, ngspice 1" in title
    inputs, clock, candidate, state = figure.axes[:4]
    assert [text.get_text() for text in inputs.get_legend().get_texts()] == ["0", "1", "ramp"]
    close = Timing().closes(2)[1]
    spans = [(patch.get_x(), patch.get_width()) for patch in candidate.patches]  # ms, frames of 10 ms
    np.testing.assert_allclose(spans, [(10 * (frame + close), 10 * DECIDE) for frame in range(4)], rtol=1e-9)
    assert [tick.get_text() for tick in clock.get_yticklabels()] == ["stage 1", "stage 2"]
    assert "pedestal\n50 pA" in [text.get_text() for text in state.get_legend().get_texts()]
    assert "a state of 0 still carries" in " ".join(figure.get_supxlabel().split())


def test_many_inputs_are_an_image():
    inputs = FIGURES["waveforms of many inputs"]().axes[0]
    assert not inputs.lines
    assert inputs.collections[0].get_array().shape == (20, 800)


def test_confusion_writes_what_others_change():
    figure = FIGURES["confusion"]()
    texts = figure.axes[0].texts
    inks = {text.get_color() for text in texts if text.get_text().startswith(("+", "\N{MINUS SIGN}"))}
    assert SIMULATOR in inks
    assert "behavioral decides 2 otherwise, ngspice decides 5 otherwise" in figure.axes[0].get_title()
    comparison = make_comparison()
    alike = replace(comparison, engines=dict.fromkeys(comparison.engines, comparison.engines["software"]))
    assert (
        "behavioral and ngspice decide every sample the same" in draw_confusion(alike, list("abc")).axes[0].get_title()
    )


def test_any_simulator_has_one_colour():
    found = [engine_colors(["software", "behavioral", simulator]) for simulator in ("ngspice", "batch", "vacask")]
    assert {tuple(colors.values()) for colors in found} == {tuple(found[0].values())}
    assert len({*found[0].values()}) == 3


def test_thresholds_are_written_with_units(technology):
    axis = draw_schmitt(technology).axes[0]
    assert axis.get_xlabel() == "candidate (pA)"
    assert {"97 pA", "100 pA", "48.5 pA", "50 pA"} <= {text.get_text() for text in axis.texts}
    arrows = [text for text in axis.texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == 4
    upper, right = (arrows[place] for place in (1, 0))
    assert upper.xy[1] > upper.get_position()[1]  # up at the upper threshold, to the right below the loop
    assert right.xy[0] > right.get_position()[0]


def test_every_block_has_a_colour():
    around = {part.block for part in (CONVERTERS, DECISION, CLOCK_GENERATOR, BIAS_TREE)}
    assert around <= set(COLORS) and set(BLOCKS) <= set(COLORS)
    assert len(set(COLORS.values())) == len(COLORS)


def test_bars_of_shares_end_at_100_percent():
    figure = draw_spread("accuracy (%)", np.array([95.0, 100.0]), np.array([0.0]), marks={}, quantum=2.5)
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in figure.axes[0].patches if bar.get_height() > 0]
    assert min(low for low, _ in ends) == 0.0 and max(high for _, high in ends) == 100.0
