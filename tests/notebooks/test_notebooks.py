"""Notebooks run from a clean kernel, and are committed with their outputs, small enough to be read on a forge."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the extra 'notebook' is not installed")
exceptions = pytest.importorskip("nbclient.exceptions", reason="the extra 'notebook' is not installed")
pytest.importorskip("torch", reason="the shipped networks are .pt files")
pytest.importorskip("librosa", reason="the extra 'audio' is not installed")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Pictures, and words that only a run which got to its end prints.
EXPECTED = {
    "from_a_regex_to_yield": (5, ("8 of 8 transitions taken", "1000 of 1000 chips work", "chip 0: ok")),
    "from_own_loop_to_yield": (3, ("90 transistors", "of 10 decisions as software", "trained on chips")),
    "from_training_to_yield": (6, ("Clopper-Pearson", "chip 1: ok", "report.html: ")),
    "from_wav_to_signoff": (
        4,
        ("yes   by 63f7a489: yes", "of 200 chips work", "FAIL in 2 of 4 checks", "of the upper threshold"),
    ),
    "from_weights_to_transistors": (4, ("upper threshold", "state bits equal, software and ngspice")),
    "native_cmru_figure_4": (1, ("nW",)),
    "ten_minutes_to_yield": (2, ("382 transistors", "of 200 chips work", "some that do not reset", "as fabricated")),
}


def _load_runner():
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "scripts" / "run_notebooks.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def test_every_notebook_is_expected():
    assert [path.stem for path in NOTEBOOKS] == sorted(EXPECTED)


MOST_BYTES = 1_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_shows_its_outputs(path):
    """Of one run from its beginning, without a failure, and without a place of the machine that made them."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == EXPECTED[path.stem][0]
    assert not any(output.output_type == "error" for output in outputs)
    text = path.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES and not re.search(r"(?<![\w.~])/(home|root|tmp|work|Users)/", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_finds_what_it_imports(path):
    """Every name that its cells take from the package is there, because the notebooks themselves run as slow tests."""
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    text = "\n".join(line for cell in cells for line in cell.splitlines() if not line.startswith(("%", "!")))
    taken = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert taken
    exec("\n".join(map(ast.unparse, taken)), {})


def test_the_runner_takes_a_clean_kernel_and_keeps_a_failure(tmp_path):
    """A name of this process is unknown there, progress on stderr is left out, and a copy shows what has failed."""
    source, target = tmp_path / "source.ipynb", tmp_path / "target.ipynb"
    texts = ("import sys; print(6 * 7); print('progress', file=sys.stderr)", "EXPECTED")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in texts]), source)
    with pytest.raises(exceptions.CellExecutionError, match="name 'EXPECTED' is not defined"):
        _load_runner().run_notebook(source, target)
    first, second = (cell.outputs for cell in nbformat.read(target, as_version=4).cells)
    assert [output.text for output in first] == ["42\n"] and second[0].ename == "NameError"


@pytest.mark.slow  # half a minute each and more
@pytest.mark.ngspice
@pytest.mark.timeout(900)  # a minute of work each, on machines that do other work, too
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # jupyter_client and zmq, on the newest Python
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
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
