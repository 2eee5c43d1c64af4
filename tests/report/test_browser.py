"""Pages in a real browser: nothing in its console, every picture drawn, no part wider than the window."""

import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.montecarlo.page import study_chips
from cosim.montecarlo.trial import Trial
from cosim.pipeline import run_comparison
from cosim.report.chip_page import format_chip_report
from cosim.tasks.testset import TestSet
from cosim.variation.draws import Plan

WIDTHS = (420, 1300)
# In frames, because a browser's own window may not be as narrow as a phone.
FRAME = '<iframe class="page" width="{width}" height="900" style="border: 0" srcdoc="{page}"></iframe>'
PROBE = """<!doctype html><meta charset="utf-8"><body>{frames}<script>onload = () => {{
  document.body.dataset.found = [...document.querySelectorAll(".page")].map(frame => {{
    const inside = frame.contentDocument, images = [...inside.images];
    const parts = [...inside.querySelectorAll("h1, h2, p, figure, .card, summary, nav, div.wide, div.tall")];
    return [
      frame.contentWindow.innerWidth, inside.scrollingElement.scrollWidth, images.length,
      images.filter(image => !(image.complete && image.naturalWidth > 0)).length,
      parts.filter(part => part.getBoundingClientRect().right > frame.contentWindow.innerWidth + 1).length,
    ].join(" ");
  }}).join(";");
}}</script>"""
BROKEN = """<!doctype html><script>console.error("a broken script")</script><img src="data:image/png;base64,AAAA">
<p style="width: 2000px">wide</p>"""

pytestmark = pytest.mark.ngspice
LONG = 300 * "w"


@pytest.fixture(scope="module")
def pages(make_network, technology, calibration, make_store, tmp_path_factory):
    """Name -> page: a comparison, and a run of chips on both engines with its worst one; a long word is in both."""
    network = replace(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), task=LONG)
    design = compile_network(network, technology, calibration)
    x = np.random.default_rng(3).uniform(size=(2, 3, 3))
    test_set = TestSet(x, np.zeros(2, dtype=np.int64), np.full(2, 3), np.arange(2))
    folder = tmp_path_factory.mktemp("pages")
    run_comparison(design, test_set, Run(folder / "comparison"), lambda done, total: None)
    _, decisions = Trial(design, test_set, Plan("none", 0, 1)).software
    trial = Trial(design, replace(test_set, y=1 - decisions), Plan("local", 5, 3), "ngspice")
    make_store(folder / "chips", trial, "state_agreement>=0.5")
    study = study_chips(folder / "chips")
    return {
        "comparison": (folder / "comparison" / "report.html").read_text(),
        "chips": format_chip_report(replace(study, settings={**study.settings, LONG: LONG})),
    }


@pytest.fixture
def look(browse, tmp_path):
    """(pages) -> (what each shows at each width, lines of the console), in one start of the browser."""

    def run(pages):
        frames = "".join(FRAME.format(width=width, page=escape(page)) for page in pages for width in WIDTHS)
        probe = tmp_path / "probe.html"
        probe.write_text(PROBE.format(frames=frames))
        done = browse("--window-size=1400,900", "--dump-dom", probe.as_uri())
        (found,) = re.findall(r'data-found="([\d ;]+)"', done.stdout)
        shown = [tuple(map(int, part.split())) for part in found.split(";")]
        return shown, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return run


def test_pages_are_whole_on_narrow_and_wide_screens(look, pages):
    shown, console = look(pages.values())
    assert console == []
    for place, (inner, scrolled, images, missing, wide) in enumerate(shown):
        name, width = [*pages][place // 2], WIDTHS[place % 2]
        assert inner == width >= scrolled > 0.9 * width, (name, width, scrolled)  # less by a scroll bar
        assert images >= {"comparison": 2, "chips": 12}[name], name
        assert (missing, wide) == (0, 0), (name, width)


def test_what_is_broken_is_seen(look):
    shown, console = look([BROKEN])
    assert [(images, missing, wide) for _, _, images, missing, wide in shown] == [(1, 1, 1)] * 2
    assert all(scrolled > inner for inner, scrolled, *_ in shown)
    assert len(console) == 2 and "a broken script" in console[0]
