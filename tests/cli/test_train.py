"""`cosim train` and `cosim inspect` as a user types them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cosim.cli.inspect import command as inspect_command
from cosim.cli.train import command as train_command
from cosim.cli.train import config_from_options
from cosim.errors import InputError, MissingToolError
from cosim.network.checkpoint import load_network
from cosim.technology.catalog import load_technology
from cosim.training.config import TrainingConfig
from cosim.training.mismatch import derive_mismatch

SMALL = ["--cells", "3", "--iterations", "20", "--batch", "8"]


def run(command, *arguments: object):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


def test_train_then_inspect(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    result = run(train_command, "digits", "-o", path, *SMALL, "--hidden", 5, "--unit", "signed", "--beta", "input")
    assert result.exit_code == 0, result.output
    assert "test: accuracy" in result.output
    assert f"checkpoint: {path}" in result.output
    assert [layer.width for layer in load_network(path).layers] == [5, 3, 3]

    shown = run(inspect_command, path).output
    for expected in (
        "task     digits",
        "8 features, time ramp over 8 steps",
        "signed, beta by input",
        "hidden",
        "5 x 9",
    ):
        assert expected in shown
    described = json.loads(run(inspect_command, path, "--json").output)
    assert described["layers"][1]["kind"] == "signed, beta by input"
    assert described["layers"][1]["smallest_width"] is None
    assert described["layers"][2]["shape"] == [3, 12]
    assert all(layer["off_grid"] == 0 for layer in (*described["layers"], described["readout"]))
    assert described["history"]["settings"]["architecture"]["hidden"] == 5


def test_inspect_counts_what_is_off_the_grid(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run(train_command, "digits", "-o", tmp_path / "model.npz", *SMALL, "--layers", 1, "--grid", 0)
    described = json.loads(run(inspect_command, tmp_path / "model.npz", "--json").output)
    assert described["weight_grid"] is None
    assert "off_grid" not in described["layers"][0]
    assert described["layers"][0]["smallest_width"] >= 0.2 - 1e-6
    assert "continuous weights" in run(inspect_command, tmp_path / "model.npz").output


def test_defaults_of_the_command_are_those_of_the_library() -> None:
    context = train_command.make_context("train", ["digits"])
    options = {k: v for k, v in context.params.items() if k not in ("task", "output", "data", "resume")}
    assert config_from_options(**options) == TrainingConfig()


def test_epsilon_and_cell() -> None:
    context = train_command.make_context("train", ["digits", "--cell", "bmru"])
    options = {k: v for k, v in context.params.items() if k not in ("task", "output", "data", "resume")}
    assert config_from_options(**options).epsilon == 0.0
    assert config_from_options(**{**options, "epsilon": "-0.5"}).epsilon == -0.5
    with pytest.raises(InputError, match=r"--epsilon must be 'anneal' or a number in \[-1, 1\], not 'zero'"):
        config_from_options(**{**options, "epsilon": "zero"})


def parse(*arguments: str) -> TrainingConfig:
    options = train_command.make_context("train", ["digits", *arguments]).params
    return config_from_options(**{k: v for k, v in options.items() if k not in ("task", "output", "data", "resume")})


def test_variation_takes_the_technologys_mismatch() -> None:
    technology = load_technology("generic180")
    config = parse("--variation", "local", "--area", "0.5", "--grid", "0.25")
    assert config.mismatch == derive_mismatch(technology, 0.25, 0.5)
    assert parse("--variation", "none").mismatch is None
    with pytest.raises(InputError, match="--technology and --area need --variation local: nominal training knows no"):
        parse("--area", "2")
    with pytest.raises(InputError, match="--technology and --area need --variation local"):
        parse("--technology", "gf180mcu")
    with pytest.raises(InputError, match="technology must be one of"):
        parse("--variation", "local", "--technology", "generic90")
    with pytest.raises(InputError, match="--area must be positive and finite, not 0;"):
        parse("--variation", "local", "--area", "0")


def test_training_on_chips_says_how_they_score(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = run(train_command, "digits", "-o", tmp_path / "model.pt", *SMALL, "--variation", "local")
    assert result.exit_code == 0, result.output
    assert re.search(r"64 chips that vary: accuracy [\d.]+% on average, [\d.]+% on the worst", result.output)
    shown = run(inspect_command, tmp_path / "model.pt").output
    assert re.search(r"^chips +count: 64  test_accuracy: 0\.\d+  test_accuracy_worst: 0\.\d+$", shown, re.MULTILINE)


def test_refusals_come_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--output must end in \.pt or \.npz, not 'model'"):
        run(train_command, "digits", "-o", tmp_path / "model")
    with pytest.raises(InputError, match="the folder .*nowhere must exist; create it first"):
        run(train_command, "digits", "-o", tmp_path / "nowhere" / "model.pt")
    with pytest.raises(InputError, match="--cells must be at least 1, not 0"):
        run(train_command, "digits", "--cells", 0)


@pytest.mark.parametrize("missing", ["torch", "tqdm"])
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    for name in [name for name in sys.modules if name.startswith(("cosim.training.t", "cosim.training.b"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingToolError, match=rf"training needs {missing}; pip install 'cosim-analog\[train\]'"):
        run(train_command, "digits", "-o", tmp_path / "model.pt")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, cosim.cli.train, cosim.cli.inspect\n"
        "print([name for name in ('torch', 'sklearn', 'librosa', 'tqdm', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
