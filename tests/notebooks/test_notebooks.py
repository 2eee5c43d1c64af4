"""Notebooks run from a clean kernel, and are committed without outputs."""

import importlib.util
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra 'notebook' is not installed")
pytest.importorskip("nbclient", reason="the extra 'notebook' is not installed")
pytest.importorskip("torch", reason="the shipped networks are .pt files")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Pictures, and words that only a run which got to its end prints.
EXPECTED = {
    "from_a_regex_to_yield": (5, ("8 of 8 transitions taken", "1000 of 1000 chips work", "chip 0: ok")),
    "from_training_to_yield": (6, ("Clopper-Pearson", "chip 1: ok", "report.html: ")),
    "from_weights_to_transistors": (4, ("upper threshold", "state bits equal, software and ngspice")),
    "native_cmru_figure_4": (1, ("nW",)),
}
LONG = ("from_training_to_yield",)  # a minute and more


def _load_runner():
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def test_every_notebook_is_expected():
    assert [path.stem for path in NOTEBOOKS] == sorted(EXPECTED)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebook_has_no_output(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)


@pytest.mark.ngspice
@pytest.mark.timeout(900)  # a minute of work each, on machines that do other work, too
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # jupyter_client and zmq, on the newest Python
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in LONG)) for path in NOTEBOOKS],
)
def test_notebook_runs(path, tmp_path):
    executed = tmp_path / path.name
    _load_runner().run_notebook(path, executed)
    cells = [cell for cell in nbformat.read(executed, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    shown = [output for cell in cells for output in cell.outputs]
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    count, words = EXPECTED[path.stem]
    assert len(pictures) == count
    text = "".join(output.get("text", "") + output.get("data", {}).get("text/html", "") for output in shown)
    assert all(word in text for word in words)
