"""Every benchmark runs: its `--smoke`, and every script that the manual cites is one of them."""

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "smoke.py")
# The batched engine measures tables and compiles kernels where no cache has them; the others take 3 s or more.
_BATCHED = (
    "agreement", "aperture", "automata", "batch", "blocks", "datasheet", "dmu", "flips", "gradients", "left",
    "override", "register", "whole",
)  # fmt: skip
_LONG = (
    "chips", "compile", "counter", "fragile", "gru", "hazard", "kill", "mismatch", "power_scaling", "process", "recall",
    "reference", "second_simulator", "simulator", "speed", "yield_area",
)  # fmt: skip
SLOW = {f"bench_{name}.py" for name in (*_BATCHED, *_LONG)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_finds_what_it_imports(name, monkeypatch):
    """Every name that it takes from the package is there, also where its smallest run is too long for here."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [name])
    text = (FOLDER / name).read_text()
    assert re.search(r"shrink\(\s*globals\(\)", text) is not None, f"{name} has no --smoke"
    taken = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = "\n".join(map(ast.unparse, taken))
    try:
        exec(lines, {})
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cosim"):
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.ngspice
@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in SCRIPTS])
def test_a_benchmark_runs(name, tmp_path, monkeypatch, capfd):
    path = FOLDER / name
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
