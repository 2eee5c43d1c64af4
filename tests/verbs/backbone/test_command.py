"""`cosim backbone`: trains, goes on, shows its seeds, and its file is refused where a network is compiled."""

import json
import re

import pytest

torch = pytest.importorskip("torch")

SMALL = ("--width", "16", "--iterations", "10", "--batch", "8", "--epsilon", "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory, cosim_in):
    """A model file, and what the verb printed."""
    path = tmp_path_factory.mktemp("backbone") / "b.pt"
    done = cosim_in(path.parent, "backbone", "copy-item-6", *SMALL, "--seeds", "2", "--seed", "3", "-o", path)
    assert done.returncode == 0 and "training: 20 of 20" in done.stderr
    return path, done.stdout


def test_it_shows_every_seed_and_their_spread(model):
    path, out = model
    lines = out.splitlines()
    assert re.fullmatch(r"copy-item-6: cmru, \d+ parameters, 1024 test samples", lines[0])
    rows = [line.split() for line in lines[2:4]]
    assert [row[0] for row in rows] == ["3", "4"] and {row[1] for row in rows} == {"10"}
    values = [float(row[4]) for row in rows]
    mean, low, high = map(float, re.findall(r"[\d.]+", lines[4])[:3])
    assert (low, high) == (min(values), max(values)) and mean == pytest.approx(sum(values) / 2, abs=0.1)
    assert lines[5] == f"model: {path}, stays software"


@pytest.mark.parametrize(
    ("task", "unit", "samples"),
    [("listops", "accuracy", 1024), ("flip-flop-reads", "accuracy", 1024), ("lorenz", "mean absolute error", 200)],
)
def test_tokens_and_targets_at_each_step(cosim_main, tmp_path, task, unit, samples):
    """One iteration of each, without an option that says what they are."""
    small = ("--width", "4", "--state", "1", "--iterations", "1", "--batch", "2", "--epsilon", "1")
    code, out, err = cosim_main("backbone", task, *small, "-o", str(tmp_path / "b.pt"))
    assert code == 0, err
    assert out.startswith(f"{task}: cmru, ") and f"{samples} test samples" in out and f"test {unit}" in out


def test_inspect_says_what_it_is(model, cosim_main):
    path, _ = model
    code, out, _ = cosim_main("inspect", "--json", str(path))
    found = json.loads(out)
    assert code == 0 and found["shape"]["width"] == 16 and found["shape"]["cell"] == "cmru"
    assert "LayerNorm over 16 features" in found["stays software"]
    code, out, _ = cosim_main("inspect", str(path))
    assert code == 0 and f": {found['parameters']} parameters, stays software\n" in out
    assert "LayerNorm over 16 features" in " ".join(out.split())


@pytest.mark.parametrize("verb", ["simulate", "power"])
def test_what_compiles_refuses_it_in_one_line(model, cosim_main, tmp_path, verb):
    code, out, err = cosim_main(verb, str(model[0]), "-o", str(tmp_path / "out"))
    assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1
    assert "LayerNorm over 16 features" in err and "nearest: " in err and "cosim train" in err
    assert not (tmp_path / "out").exists()


def test_it_starts_from_the_weights_of_another(model, cosim_main, tmp_path):
    """One iteration at the rate of a warm-up leaves what was learned."""
    one = ("--width", "16", "--iterations", "1", "--epsilon", "1", "--batch", "8", "--lr", "1e-6")
    found = []
    for name, options in (("from", ("--from", str(model[0]))), ("alone", ())):
        path = tmp_path / f"{name}.pt"
        code, _, err = cosim_main("backbone", "copy-item-6", *one, *options, "-o", str(path))
        assert code == 0, err
        held = [torch.load(file, weights_only=True)["arrays"]["decoder.weight"] for file in (path, model[0])]
        found.append(float((held[0] - held[1]).abs().max()))
    assert found[0] < 1e-5 < found[1]
    code, out, err = cosim_main("backbone", "copy-item-7", *one, "--from", str(tmp_path), "-o", str(tmp_path / "x.pt"))
    assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1 and not (tmp_path / "x.pt").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "TASK must be one of digits, "),
        (("nothing",), "copy-value[-quiet][-STEPS], "),
        (("digit-pixels",), "npz, lorenz, delayed-product, flip-flop-reads, characters, not 'digit-pixels'"),
        (("copy-item", "-o", "x.npz"), "--output must end in .pt"),
        (("copy-item", "--cell", "bmru", "--epsilon", "1"), "--cell bmru has epsilon 0 throughout, not 1"),
        (("copy-item", "--cell", "mingru+cmru"), "needs --blocks 2; or take --wiring parallel"),
        (("copy-value-1",), "must have 2 to 10000 steps, not 1"),
        (("parity-published", "--data", "x"), "brings its own data"),
        (("lorenz", "--data", "x"), "brings its own data"),
        (("copy-item-6", "--pooling", "none"), "--pooling of copy-item-6 must be last or mean"),
        (("lorenz", "--pooling", "mean"), "--pooling of lorenz must be none, it has a target at each step"),
        (("copy-value", "--data", "x"), "brings its own data"),
        (("copy-item", "--iterations", "0"), "'--iterations': must lie in 1 to"),
        (("copy-item", "--epsilon", "two"), "'--epsilon': must be 'anneal' or"),
        (("copy-item", "--width", "0"), "'--width': must lie in 1 to"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(cosim_main, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, out, err = cosim_main("backbone", *arguments)
    assert (code, out) == (2, "") and words in err and len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
