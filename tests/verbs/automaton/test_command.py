"""`cosim automaton`: the network and its strings, through the other verbs; and what is refused."""

import json

import numpy as np
import pytest

from cosim.exchange.checkpoint import load_network
from cosim.network.reference import run_reference
from cosim.tasks.testset import load_test_set


def check(path):
    """The network decides every string as it should; how many there are."""
    network = load_network(path)
    test_set = load_test_set(network, path.with_suffix(".strings.npz"))
    found = run_reference(network, test_set.x, test_set.lengths)
    np.testing.assert_array_equal(found.decisions, test_set.y)
    return len(test_set.y)


def test_an_expression(cosim_main, tmp_path):
    path = tmp_path / "abb.npz"
    code, out, _ = cosim_main("automaton", "(a|b)*abb", "-o", path, "--strings", 20)
    assert code == 0 and "4 states, 2 symbols, 8 transitions" in out and "1 take every transition, 20 are random" in out
    _, shown, _ = cosim_main("inspect", path)
    assert "bits_1 is bits 1 frame before" in shown  # the form of the smallest area
    assert check(path) == 21 and load_network(path).labels == ("no", "yes")
    kept = path.read_bytes(), path.with_suffix(".strings.npz").read_bytes()
    assert cosim_main("automaton", "(a|b)*abb", "-o", path, "--strings", 20)[0] == 0
    assert kept == (path.read_bytes(), path.with_suffix(".strings.npz").read_bytes())


def test_a_counter_and_a_table(cosim_main, tmp_path):
    assert cosim_main("automaton", "--modulo", 3, "-o", tmp_path / "three.npz")[0] == 0
    assert check(tmp_path / "three.npz") == 101
    follow = {"even": {"output": "0", "next": {"0": "even", "1": "odd"}}, "odd": {"output": "1", "next": {"0": "odd"}}}
    follow["odd"]["next"]["1"] = "even"
    (tmp_path / "parity.json").write_text(json.dumps({"symbols": ["0", "1"], "start": "even", "states": follow}))
    assert cosim_main("automaton", tmp_path / "parity.json", "-o", tmp_path / "parity.npz")[0] == 0
    assert check(tmp_path / "parity.npz") == 101


def test_what_a_network_follows(cosim_main, tmp_path):
    assert cosim_main("automaton", "(a|b)*abb", "-o", tmp_path / "abb.npz")[0] == 0
    code, out, _ = cosim_main("automaton", tmp_path / "abb.npz", "-o", tmp_path / "again.npz")
    assert code == 0 and "of 100 others the automaton answers 0 otherwise" in out and "4 states, 2 symbols" in out
    assert check(tmp_path / "again.npz") == 101


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give one of REGEX, TABLE.json, CHECKPOINT, --modulo and --train"),
        (("a*", "--modulo", 3), "give one of REGEX, TABLE.json, CHECKPOINT, --modulo and --train"),
        (("(a",), "that nothing closes, at character 3"),
        (("nothing.json",), "nothing.json: must be a file, but is missing"),
        (("a", "-o", "net.txt"), "must be named .pt or .npz"),
    ],
)
def test_what_is_refused(cosim_main, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    code, out, err = cosim_main("automaton", *words)
    assert code == 2 and text in err and not out
    assert not list(tmp_path.iterdir())


def test_what_blocks_learn(cosim_main, tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "sum.npz"
    code, out, err = cosim_main("automaton", "--train", "sum", "--modulo", 3, "--blocks", "2x6", "-o", path)
    assert code == 0 and "sum of 3: 3 states, 3 symbols, 9 transitions" in out and "at least 3 states are needed" in out
    assert "100.00% right at length 500" in err
    assert check(path) == 101


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("a*", "--train", "sum"), "give one of REGEX, TABLE.json, CHECKPOINT, --modulo and --train"),
        (("--modulo", 3, "--blocks", "4x8"), "--blocks says what is trained, and needs --train"),
        (("--train", "sum", "--blocks", "4"), "must be 1 to 16 blocks of 2 to 64 states each, such as 4x8, not 4"),
        (("--train", "sum", "--blocks", "0x8"), "must be 1 to 16 blocks"),
    ],
)
def test_what_is_not_trained(cosim_main, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    code, out, err = cosim_main("automaton", *words)
    assert code == 2 and text in err and not out
    assert not list(tmp_path.iterdir())
