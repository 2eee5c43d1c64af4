"""Every benchmark runs: its `--smoke`, and every script that the manual cites is one of them."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "smoke.py")
# The batched engine measures tables and compiles kernels where no cache has them; the others take ten seconds or more.
_BATCHED = "agreement", "aperture", "automata", "batch", "blocks", "dmu", "flips", "left", "register", "whole"
_LONG = "chips", "compile", "hazard", "kill", "recall", "simulator", "speed", "yield_area"
SLOW = {f"bench_{name}.py" for name in (*_BATCHED, *_LONG)}


@pytest.mark.ngspice
@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in SCRIPTS])
def test_a_benchmark_runs(name, tmp_path, monkeypatch, capfd):
    path = FOLDER / name
    assert re.search(r"shrink\(\s*globals\(\)", path.read_text()) is not None, f"{name} has no --smoke"
    if name == "bench_extraction.py":
        pytest.importorskip("fastcap2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [str(path), "--smoke"])
    ended = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:  # click's
        ended = end.code
    assert not ended
    assert capfd.readouterr().out.strip()


def test_every_script_that_is_cited_is_run():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", FOLDER / "README.md", ROOT / "CHANGELOG.md"]
    cited = {name for page in pages for name in re.findall(r"\b(?:bench_\w+|vowels)\.py\b", page.read_text())}
    assert len(cited) > 30 and cited <= set(SCRIPTS)
    listed = set(re.findall(r"python benchmarks/(\w+\.py)", (FOLDER / "README.md").read_text()))
    assert listed == set(SCRIPTS)
