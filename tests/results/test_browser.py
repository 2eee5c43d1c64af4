"""Pages in a real browser, on a phone, a desk and paper, light and dark: whole, readable, nothing in the console."""

import json
import re
from dataclasses import replace
from html import escape, unescape

import numpy as np
import pytest

from cosim.base.settings import RunSettings
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.results.kept_page import read_page
from cosim.results.page import format_pages
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.compare.page import run_comparison
from cosim.verbs.montecarlo.chip_study import study_chips
from cosim.verbs.montecarlo.page import chip_page
from cosim.verbs.montecarlo.trial import Trial

PHONE, DESK, PAPER = 420, 1300, 680  # px; A4 without its margins has 180 mm = 680 px
CONTRAST = 4.5  # that WCAG 2.2 asks of text, level AA
DARK = "--blink-settings=preferredColorScheme=0"
# In frames, because a browser's own window may not be as narrow as a phone.
FRAME = '<iframe class="page" width="{width}" height="900" style="border: 0" srcdoc="{page}"></iframe>'
PROBE = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body>{frames}<script>
const channels = color => color.match(/[\\d.]+/g).map(Number);
const light = color => channels(color).slice(0, 3).map(c => c / 255)
  .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
  .reduce((sum, c, k) => sum + [.2126, .7152, .0722][k] * c, 0);
const ground = part => {{
  for (; part; part = part.parentElement) {{
    const color = part.ownerDocument.defaultView.getComputedStyle(part).backgroundColor;
    if ((channels(color)[3] ?? 1) > 0) return color;
  }}
  return "rgb(255, 255, 255)";
}};
const texts = inside => {{
  const walker = inside.createTreeWalker(inside.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) if (walker.currentNode.data.trim()) found.push(walker.currentNode);
  return found;
}};
const look = frame => {{
  const inside = frame.contentDocument, view = frame.contentWindow, images = [...inside.images];
  const parts = [...inside.querySelectorAll("h1, h2, h3, p, pre, figure, .card, summary, nav, .facts, .wide, .tall")];
  const cut = [], contrasts = [];
  for (const text of texts(inside)) {{
    const range = inside.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    let host = text.parentElement;
    while (view.getComputedStyle(host).display === "inline") host = host.parentElement;
    const around = host.getBoundingClientRect(), ink = view.getComputedStyle(text.parentElement).color;
    if (box.width && (box.right > around.right + 1 || box.left < around.left - 1 || box.bottom > around.bottom + 2))
      cut.push(text.data.trim().slice(0, 40));
    const [high, low] = [light(ink), light(ground(text.parentElement))].sort((a, b) => b - a);
    contrasts.push((high + .05) / (low + .05));
  }}
  return {{
    inner: view.innerWidth, scrolled: inside.scrollingElement.scrollWidth, images: images.length, cut,
    missing: images.filter(image => !(image.complete && image.naturalWidth > 0)).length,
    spilt: images.filter(image => image.getBoundingClientRect().right
      > image.parentElement.getBoundingClientRect().right + 1).length,
    wide: parts.filter(part => part.getBoundingClientRect().right > view.innerWidth + 1).length,
    contrast: Math.min(...contrasts), ground: light(ground(inside.body)), length: inside.body.innerText.length,
  }};
}};
onload = () => {{
  document.body.dataset.found = JSON.stringify([...document.querySelectorAll(".page")].map(look));
}};
</script>"""
BROKEN = """<!doctype html><script>console.error("a broken script")</script><img src="data:image/png;base64,AAAA">
<p style="width: 2000px">wide</p><p style="width: 9px">cut</p><p style="color: #888">pale</p>"""

LONG = 300 * "w"


@pytest.fixture(scope="module")
def compiled(make_network, technology, calibration):
    """A design and samples, whose task is one long word."""
    network = replace(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), task=LONG)
    design = compile_network(network, technology, calibration)
    x = np.random.default_rng(3).uniform(size=(2, 3, 3))
    return design, TestSet(x, np.zeros(2, dtype=np.int64), np.full(2, 3), np.arange(2))


@pytest.fixture(scope="module")
def made_up(compiled, every_page, technology, calibration):
    """Name -> page, of every verb that can be shown without a simulator, and three of one network on one page."""
    design, test_set = compiled
    verbs = {
        "power": every_page.power(design, test_set),
        "pvt": every_page.pvt(design),
        "trim": every_page.trim(design, test_set),
        "simulate": every_page.simulation(design, test_set),
        "partitions": every_page.partitions(design),
        "cell": every_page.cell(technology, calibration),
        "ladder": every_page.ladder(technology, calibration),
    }
    together = format_pages(
        [
            verbs["power"],
            verbs["pvt"],
            replace(verbs["trim"], repeat=RunSettings("trim", "0.1.0", f"cosim trim {LONG}")),
        ]
    )
    return {**{name: format_pages([page]) for name, page in verbs.items()}, "together": together}


@pytest.fixture(scope="module")
def simulated(compiled, make_store, tmp_path_factory):
    """Name -> page: a comparison, and a run of chips on both engines with its worst one; a long word is in both."""
    design, test_set = compiled
    folder = tmp_path_factory.mktemp("pages")
    run_comparison(design, test_set, Run(folder / "comparison"), lambda done, total: None)
    _, decisions = Trial(design, test_set, VariationPlan("none", 0, 1)).software
    trial = Trial(design, replace(test_set, y=1 - decisions), VariationPlan("local", 5, 3), "ngspice")
    make_store(folder / "chips", trial, "state_agreement>=0.5")
    study = study_chips(folder / "chips")
    return {
        "comparison": format_pages([read_page(folder / "comparison")]),
        "chips": format_pages([chip_page(replace(study, settings={**study.settings, LONG: LONG}))]),
    }


@pytest.fixture
def look(browse, tmp_path):
    """(pages, widths, flags) -> (what each page shows at each width, lines of the console), in one browser."""

    def run(pages, widths, *flags):
        frames = "".join(FRAME.format(width=width, page=escape(page)) for page in pages for width in widths)
        probe = tmp_path / "probe.html"
        probe.write_text(PROBE.format(frames=frames))
        done = browse("--window-size=1400,900", *flags, "--dump-dom", probe.as_uri())
        (found,) = re.findall(r'data-found="(.*?)"', done.stdout)
        return json.loads(unescape(found)), [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return run


def check(look, pages, images):
    """Whole and readable in both palettes on both screens, and by the rules for paper at the width of paper.

    On screens what is folded is open; each link leads to one place.
    """
    for name, page in pages.items():
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len({*ids}) and {*re.findall(r'href="#([^"]+)"', page)} <= {*ids}, name
    unfolded = [page.replace("<details>", "<details open>") for page in pages.values()]
    for flags, dark in ((), False), ((DARK,), True):
        shown, console = look(unfolded, (PHONE, DESK), *flags)
        assert console == []
        for place, found in enumerate(shown):
            name = [*pages][place // 2], (PHONE, DESK)[place % 2], dark
            assert found["inner"] == name[1] >= found["scrolled"] > 0.9 * name[1], name  # less by a scroll bar
            assert found["images"] >= images[name[0]], name
            assert (found["missing"], found["wide"], found["cut"]) == (0, 0, []), name
            assert found["contrast"] >= CONTRAST, name
            assert (found["ground"] < 0.1) == dark, name
    printed = {name: page.replace("@media print", "@media all") for name, page in pages.items()}
    shown, console = look(printed.values(), (PAPER,))
    assert console == []
    for name, found in zip(printed, shown, strict=True):
        assert found["scrolled"] <= found["inner"] == PAPER and found["spilt"] == 0, name
        assert (found["missing"], found["wide"], found["cut"]) == (0, 0, []), name


def test_pages_of_every_verb(look, made_up):
    images = {"power": 1, "pvt": 1, "trim": 1, "cell": 2, "ladder": 1, "together": 3}
    check(look, made_up, {**dict.fromkeys(made_up, 0), **images})
    other = r'<td class="code">[^<]*|<script>.*?</script>'  # a netlist's numbers are SPICE's
    said = {name: re.sub(other, "", page, flags=re.DOTALL) for name, page in made_up.items()}
    assert not [name for name, page in said.items() if re.search(r">[^<]*\de-\d", page)]


@pytest.mark.ngspice
def test_pages_of_simulated_runs(look, simulated):
    check(look, simulated, {"comparison": 2, "chips": 12})


def test_what_is_broken_is_seen(look):
    shown, console = look([BROKEN], (PHONE, DESK))
    for found in shown:
        assert (found["images"], found["missing"], found["wide"], found["cut"]) == (1, 1, 1, ["cut"])
        assert found["scrolled"] > found["inner"]
        assert found["contrast"] == pytest.approx(3.54, abs=0.01)  # #888888 on white: 1.05 / (0.2462 + 0.05)
    assert len(console) == 2 and "a broken script" in console[0]


def test_paper_shows_what_is_folded(look, made_up):
    page = made_up["together"].replace("@media print", "@media all")
    (closed,), _ = look([page.replace("details::details-content", "nothing")], (PAPER,))
    (shown,), _ = look([page], (PAPER,))
    assert shown["length"] >= closed["length"] + len(LONG)
