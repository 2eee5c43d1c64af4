"""`cosim train` and `cosim inspect` as a user types them."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from cosim.base.claim import own_file
from cosim.base.errors import InputError, MissingToolError, OutOfMemoryError
from cosim.base.resources import trained_network_path
from cosim.cli.session import StoppedError
from cosim.cli.verb import parse as parse_options
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.technology.catalog import load_technology
from cosim.training.config import TrainingConfig, state_path
from cosim.variation.sigma import derive_mismatch
from cosim.verbs.inspect.command import command as inspect_command
from cosim.verbs.train.command import command as train_command
from cosim.verbs.train.command import complete_config

SMALL = ["--cells", "3", "--iterations", "20", "--batch", "8"]
SHORT = [*SMALL, "--iterations", "4", "--layers", "1"]


def run(command, *arguments: object):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


def test_train_then_inspect(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    result = run(train_command, "digits", "-o", path, *SMALL, "--hidden", 5, "--unit", "signed", "--beta", "input")
    assert result.exit_code == 0, result.output
    assert re.search(r"^test: balanced accuracy [\d.]+%, accuracy [\d.]+% \(360 samples\)$", result.stdout, re.M)
    assert "warning" not in result.output
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


def test_inspect_says_which_levels_the_data_visit() -> None:
    """models/trained/README.md: 5 to 8 levels within -7 .. 6."""
    path = trained_network_path("digits_native_d8")
    visited = json.loads(run(inspect_command, path, "--json").output)["visited"]
    assert [row["unit"] for row in visited] == [f"layer1[{k}]" for k in range(8)]
    assert {row["levels"] for row in visited} == {5, 6, 7, 8}
    assert (min(row["lowest"] for row in visited), max(row["highest"] for row in visited)) == (-7, 6)
    assert "layer1[4]      -1        6       8" in run(inspect_command, path).output
    for other in ("digits_d8", "parity_d2"):  # no unit of them counts
        assert "Levels" not in run(inspect_command, trained_network_path(other)).output


def test_inspect_prints_any_history_on_one_screen(tmp_path: Path) -> None:
    """Names and texts of a history come from whoever wrote the file; none may steer the terminal."""
    network = load_network(trained_network_path("digits_d8"))
    figures = {"a\x1b[2J": "b\x07", "shares": {"": 1, "0.1": "c", "0.2": 0.5}, "list": [{"d": None}]}
    save_checkpoint(tmp_path / "model.npz", replace(network, history={"figures": figures}))
    lines = run(inspect_command, tmp_path / "model.npz").output.splitlines()
    assert all(line.isprintable() for line in lines)
    assert lines[-3].split() == ["a\\x1b[2J", "b\\x07"]
    assert lines[-1].split() == ["shares", ":", "1", "0.1:", "c", "0.2:", "50.00%"]


def test_defaults_of_the_command_are_those_of_the_library() -> None:
    assert parse() == TrainingConfig()


def test_epsilon_and_cell() -> None:
    assert parse("--cell", "bmru").epsilon == 0.0
    assert parse("--cell", "bmru", "--epsilon", "-0.5").epsilon == -0.5
    with pytest.raises(click.BadParameter, match=r"must be 'anneal' or a number in \[-1, 1\], not zero"):
        parse("--cell", "bmru", "--epsilon", "zero")


def parse(*arguments: str) -> TrainingConfig:
    return complete_config(parse_options(train_command, ["digits", *arguments])[0])


def test_variation_takes_the_technologys_mismatch() -> None:
    technology = load_technology("generic180")
    config = parse("--variation", "local", "--area", "0.5", "--grid", "0.25")
    assert config.mismatch == derive_mismatch(technology, 0.25, 0.5)
    assert parse("--variation", "none").mismatch is None
    with pytest.raises(InputError, match="--area needs --variation local, --margin-sigma or --device-noise"):
        parse("--area", "2")
    assert parse("--technology", "gf180mcu").mismatch is None  # what its compiler refuses is a bound all the same
    with pytest.raises(InputError, match="technology must be one of"):
        parse("--variation", "local", "--technology", "generic90")
    with pytest.raises(click.BadParameter, match=r"must lie in 0\.01 to 100, not 0\."):
        parse("--variation", "local", "--area", "0")


def test_training_on_chips_says_how_they_score(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = run(train_command, "digits", "-o", tmp_path / "model.pt", *SHORT, "--variation", "local")
    assert result.exit_code == 0, result.output
    assert re.search(r"64 chips that vary: accuracy [\d.]+% on average, [\d.]+% on the worst", result.output)
    shown = run(inspect_command, tmp_path / "model.pt").output
    assert re.search(r"^chips +count: 64  test_accuracy: 0\.\d+  test_accuracy_worst: 0\.\d+$", shown, re.MULTILINE)


def test_refusals_come_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--output must end in \.pt or \.npz, not 'model'"):
        run(train_command, "digits", "-o", tmp_path / "model")
    with pytest.raises(InputError, match="the folder .*nowhere must exist; create it"):
        run(train_command, "digits", "-o", tmp_path / "nowhere" / "model.pt")
    result = run(train_command, "digits", "--cells", 0)
    assert result.exit_code == 2 and "'--cells': must lie in 1 to 16384, not 0." in result.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--epsilon", 0.5), r"layer1\.epsilon must be 0 .* not 0\.5: .* \(cosim train --epsilon anneal\)"),
        (("--unit", "signed", "--cell", "alphacmru"), r"layer1 is an alphaCMRU without a grid: .* --cell cmru or bmru"),
        (("--epsilon", 1, "--layers", 4, "--range-max", 2), "layer1 has epsilon 1 .* use at most 3 layers in a row"),
    ],
)
def test_what_cannot_compile_is_said_before_the_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: tuple, reason: str
) -> None:
    """And once: the line at the end is for what only the trained network shows."""
    trainer = pytest.importorskip("cosim.training.trainer")
    said = rf"warning: this network cannot be compiled, only trained and inspected: .*model\.pt: {reason}"
    result = run(train_command, "digits", "-o", tmp_path / "model.pt", *SMALL[:2], "--iterations", 2, *options)
    assert result.exit_code == 0, result.output
    assert len(re.findall("warning:", result.output)) == 1
    assert re.search(said, result.output)

    def refuse(*_: object) -> None:
        raise InputError("the work has begun")

    monkeypatch.setattr(trainer, "run_job", refuse)
    before = CliRunner().invoke(train_command, ["digits", "-o", str(tmp_path / "model.pt"), *map(str, options)])
    assert re.search(said, before.output)


def test_what_only_the_trained_network_shows_is_said_at_the_end(tmp_path: Path) -> None:
    """copy-first-400 has 400 steps of noise: three untrained units of unlimited range pass 256 states."""
    pytest.importorskip("torch")
    native = ("--unit", "signed", "--epsilon", 1, "--layers", 1, "--cells", 3, "--iterations", 2)
    result = run(train_command, "copy-first-400", "-o", tmp_path / "model.pt", *native)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    (found,) = (index for index, line in enumerate(lines) if line.startswith("warning:"))
    assert found > lines.index(f"checkpoint: {tmp_path / 'model.pt'}")
    reason = r"layer1\[\d\]: a counter may have 8 bits at most, 256 states, .*; train with --range-max 253 \(a back"
    assert re.search(reason, lines[found])


def test_features_that_never_change_are_named_before_the_work(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(40, 5, 4)), rng.integers(0, 2, 40)
    x[:, :, 1], x[:, :, 3] = 0.5, 0.0
    lengths = np.full(40, 4)
    x[:, 4, 3] = rng.uniform(size=40)  # beyond the samples' lengths
    for name, samples in (("some", x), ("none", 0 * x)):
        path = tmp_path / f"{name}.npz"
        np.savez(path, x_train=samples, y_train=y, x_test=samples, y_test=y, len_train=lengths, len_test=lengths)
    output = [
        run(train_command, "npz", "--data", tmp_path / f"{name}.npz", "-o", tmp_path / "model.pt", *SMALL).output
        for name in ("some", "none")
    ]
    assert (
        "warning: some.npz: features of x_train that never change tell nothing and cost their mirrors: "
        "1 (always 0.5), 3 (always 0)\n" in output[0]
    )
    assert (
        "warning: none.npz: no feature of x_train ever changes, so there is nothing to learn from: "
        "0 (always 0), 1 (always 0), 2 (always 0), 3 (always 0)\n" in output[1]
    )


def test_a_stop_before_anything_is_saved_promises_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trainer = pytest.importorskip("cosim.training.trainer")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "run_job", stop)
    with pytest.raises(StoppedError, match="^interrupted; the same command begins anew$"):
        train_command.main(["digits", "-o", str(tmp_path / "model.pt")], standalone_mode=False)
    with own_file(tmp_path / "model.pt"):
        state_path(tmp_path / "model.pt").touch()
    with pytest.raises(click.Abort):  # which every verb reports: the same command goes on
        train_command.main(["digits", "-o", str(tmp_path / "model.pt")], standalone_mode=False)


@pytest.mark.parametrize(("arguments", "found"), [((), "none was given"), (("trian",), "not 'trian'")])
def test_a_missing_or_strange_task_lists_all(arguments: tuple[str, ...], found: str) -> None:
    with pytest.raises(
        InputError, match=rf"TASK must be one of digits, .*, copy-item\[-STEPS\], .*, mnist-pixels, .*, npz, {found};"
    ):
        run(train_command, *arguments)


def test_a_library_that_does_not_load_is_not_called_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an import of torch raises within 300 MB and 600 MB of address space."""

    class Short:
        error: Exception

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "cosim.training.trainer":
                raise self.error

    monkeypatch.delitem(sys.modules, "cosim.training.trainer", raising=False)
    monkeypatch.setattr(sys, "meta_path", [short := Short(), *sys.meta_path])
    short.error = ImportError("libtorch_cpu.so: failed to map segment from shared object")
    with pytest.raises(MissingToolError, match="needs a library that is there but does not load: libtorch_cpu"):
        run(train_command, "digits", "-o", tmp_path / "model.pt")
    short.error = MemoryError()
    with pytest.raises(OutOfMemoryError, match="training needs more memory than there is, to load its libraries"):
        run(train_command, "digits", "-o", tmp_path / "model.pt")


def test_a_missing_torch_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith(("cosim.training.t", "cosim.training.b"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingToolError, match=r"training needs torch; python -m pip install .*\[train\]'"):
        run(train_command, "digits", "-o", tmp_path / "model.pt")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, cosim.verbs.train.command, cosim.verbs.inspect.command\n"
        "print([name for name in ('torch', 'sklearn', 'librosa', 'tqdm', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_curve_stands_beside_the_checkpoint_and_is_its_history(tmp_path: Path) -> None:
    """20 iterations are 20 points; a fifth of 1 is above the final epsilon, and the rate ends at 1 % of its peak."""
    pytest.importorskip("torch")
    for name in ("one", "two"):
        assert run(train_command, "digits", "-o", tmp_path / f"{name}.pt", *SMALL, "--layers", 1).exit_code == 0
    text = (tmp_path / "one_curve.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    columns = ["seed", "iteration", "loss", "validation_loss", "validation_accuracy", "epsilon", "learning_rate"]
    assert list(rows[0]) == columns and [int(row["iteration"]) for row in rows] == list(range(1, 21))
    assert (rows[0]["epsilon"], rows[-1]["epsilon"]) == ("1.0", "0.0")
    assert float(rows[-1]["learning_rate"]) < 0.02 * float(rows[0]["learning_rate"])
    curve = load_network(tmp_path / "one.pt").history["curve"]
    assert [[float(row[name]) for row in rows] for name in columns] == [curve[name] for name in columns]
    for ending in ("csv", "svg"):
        one, two = (tmp_path / f"{name}_curve.{ending}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_several_seeds_are_those_alone_and_the_best_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    result = run(train_command, "digits", "-o", tmp_path / "all.pt", *SHORT, "--seeds", 3, "--seed", 4)
    assert result.exit_code == 0, result.output
    assert re.search(r"^test: accuracy [\d.]+% \[[\d.]+%, [\d.]+%\] over 3 seeds", result.output, re.MULTILINE)
    history = load_network(tmp_path / "all.pt").history
    losses = {seed: figures["validation_loss"] for seed, figures in history["seeds"].items()}
    assert list(losses) == ["4", "5", "6"]
    assert str(history["settings"]["seed"]) == min(losses, key=losses.__getitem__)
    assert history["figures"] == history["seeds"][str(history["settings"]["seed"])]
    run(train_command, "digits", "-o", tmp_path / "alone.pt", *SHORT, "--seed", 5)
    assert load_network(tmp_path / "alone.pt").history["figures"] == history["seeds"]["5"]
    assert sorted(path.name for path in tmp_path.glob("all*")) == [
        "all.pt", "all.run.toml", "all_curve.csv", "all_curve.svg",
    ]  # fmt: skip


def test_a_whole_training_says_so_and_changes_no_byte(tmp_path: Path) -> None:
    """What a kill kept from being written beside it comes back; --fresh trains it again, to the same bytes."""
    pytest.importorskip("torch")
    asked = ["digits", "-o", tmp_path / "model.pt", *SHORT]
    assert run(train_command, *asked).exit_code == 0
    content = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    result = run(train_command, *asked)
    assert result.exit_code == 0 and "model.pt is there, trained so on this data; --fresh trains it" in result.output
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == content
    for name in ("model_curve.svg", "model.run.toml"):
        (tmp_path / name).unlink()
    assert run(train_command, *asked).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {k: v[0] for k, v in content.items()}
    result = run(train_command, *asked, "--fresh")
    assert (
        "is there, trained so" not in result.output and (tmp_path / "model.pt").read_bytes() == content["model.pt"][0]
    )


@pytest.mark.parametrize("name", ["model.pt", "model_curve.csv", "model_curve.svg", "model.run.toml"])
def test_no_file_of_a_user_is_replaced(tmp_path: Path, name: str) -> None:
    """A state dict of one's own, and files with the names of those that stand beside a checkpoint."""
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.ones(2)}, tmp_path / name)
    for other in ("model.lock", "model.state.pt", "model.seed0.pt"):
        (tmp_path / other).write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=f"{name}: cosim has not written it and would replace it; move it away, or"):
        run(train_command, "digits", "-o", tmp_path / "model.pt", *SHORT, "--seeds", 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / name).unlink()
    assert run(train_command, "digits", "-o", tmp_path / "model.pt", *SHORT, "--seeds", 2).exit_code == 0
    assert {path.name for path in tmp_path.iterdir() if path.read_bytes() == b"mine"} == {*before} - {name}


def test_seeds_go_on_where_they_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trainer = pytest.importorskip("cosim.training.trainer")
    asked = ["digits", "-o", tmp_path / "all.pt", *SHORT, "--seeds", 2]
    real = trainer.run_job

    def stop(job: object, path: Path, *rest: object, **how: object) -> object:
        if path.name == "seed1.pt":
            raise KeyboardInterrupt
        return real(job, path, *rest, **how)

    monkeypatch.setattr(trainer, "run_job", stop)
    with pytest.raises(click.Abort):
        train_command.main([str(word) for word in asked], standalone_mode=False)
    monkeypatch.setattr(trainer, "run_job", real)
    with pytest.raises(InputError, match=r"\.all\.cosim/seed0\.pt: belongs to a training with other settings or data"):
        run(train_command, *asked, "--lr", 0.5)
    assert run(train_command, *asked, "--resume").exit_code == 0  # as earlier versions wanted it
    whole = [tmp_path / "whole.pt" if word == tmp_path / "all.pt" else word for word in asked]
    assert run(train_command, *whole).exit_code == 0
    assert (tmp_path / "all.pt").read_bytes() == (tmp_path / "whole.pt").read_bytes()
    assert (tmp_path / "all_curve.csv").read_bytes() == (tmp_path / "whole_curve.csv").read_bytes()


def test_tensorboard_gets_the_points_or_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    asked = ["digits", "-o", tmp_path / "model.pt", *SHORT, "--tensorboard", tmp_path / "board"]
    with monkeypatch.context() as there:
        there.setitem(sys.modules, "tensorboard", None)
        for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
            there.delitem(sys.modules, name)
        with pytest.raises(MissingToolError, match=r"--tensorboard needs tensorboard; .*\[tensorboard\]"):
            run(train_command, *asked)
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert run(train_command, *asked).exit_code == 0
    events = EventAccumulator(str(tmp_path / "board" / "seed0"))
    events.Reload()
    curve = load_network(tmp_path / "model.pt").history["curve"]
    found = events.Scalars("validation_score")
    assert [event.step for event in found] == curve["iteration"]
    # TensorBoard keeps single precision
    np.testing.assert_allclose([event.value for event in found], curve["validation_accuracy"], rtol=1e-6)


def test_a_file_of_samples_is_a_task_and_the_end_says_how_many_chips_work(tmp_path: Path) -> None:
    """The same checkpoint as by `npz --data`; of what cannot be built no chips are counted."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=(40, 5, 2)), rng.integers(0, 2, 40)
    np.savez(tmp_path / "gestures.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    given = (*SHORT, "-o", tmp_path / "model.npz")
    kept = []
    for task in (("npz", "--data", tmp_path / "gestures.npz"), (tmp_path / "gestures.npz",)):
        result = run(train_command, *task, *given, "--fresh")
        assert result.exit_code == 0, result.output
        kept.append((tmp_path / "model.npz").read_bytes())
        counted = re.search(
            r"^chips: (\d+) of 50 that vary keep an accuracy of [\d.]+%, by the equations, and draw ([\d.]+) nW",
            result.output,
            re.M,
        )
        assert counted and int(counted[1]) <= 50 and 18 < float(counted[2]) < 360  # 10 to 200 nA at 1.8 V
    assert kept[0] == kept[1]
    refused = run(train_command, tmp_path / "gestures.npz", *given, "--fresh", "--unit", "signed", "--epsilon", 0.5)
    assert "chips:" not in refused.output and "cannot be compiled" in refused.output
