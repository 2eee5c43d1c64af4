"""Checkpoints: what is written comes back, equal networks give equal bytes, and nothing in a file is ever run."""

import io
import json
import pickle
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError, NetworkError
from cosim.exchange.checkpoint import load_network, network_from_arrays, save_checkpoint
from cosim.exchange.state_dict import network_from_state_dict
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network, hash_network, network_to_arrays

torch = pytest.importorskip("torch")


@pytest.fixture
def network() -> Network:
    """Every layer kind once; widths 3 inputs, 5, 7, 2, 11 units and 13 outputs are distinct primes."""
    rng = np.random.default_rng(17)
    encoding = InputEncoding(rng.normal(size=2), rng.uniform(1, 2, 2), ramp_steps=19)
    relu = ReluLayer("hidden", ("input",), rng.normal(size=(5, 3)), rng.normal(size=5))
    lo = rng.uniform(0.1, 0.5, 7)
    first = FirstQuadrantLayer(
        "a", ("hidden",), rng.normal(size=(7, 5)), rng.normal(size=7), lo, lo + 0.3, np.ones(7), 0.25
    )
    constant = SignedLayer(
        "b", ("input", "a"), rng.normal(size=(2, 10)), rng.normal(size=2), rng.uniform(0.1, 1, 2), np.full(2, 0.5)
    )
    varying = SignedLayer(
        "c",
        ("b",),
        rng.normal(size=(11, 2)),
        rng.normal(size=11),
        rng.normal(size=11),
        np.ones(11),
        rng.normal(size=(11, 2)),
        rng.normal(size=(11, 2)),
        -1.0,
    )
    readout = Readout(("a", "c"), rng.normal(size=(13, 18)), rng.normal(size=13), "vote")
    labels = tuple(f"class {i}" for i in range(13))
    layers, history = (relu, first, constant, varying), {"seed": 3, "list": [1]}
    ranges = {"c": np.array([rng.integers(-5, 0, 11), rng.integers(0, 5, 11)], float)}
    return Network(encoding, layers, readout, "demo", labels, 0.125, history, ranges)


def assert_same(a: Network, b: Network) -> None:
    arrays_a, meta_a = network_to_arrays(a)
    arrays_b, meta_b = network_to_arrays(b)
    assert meta_a == meta_b
    assert arrays_a.keys() == arrays_b.keys()
    for name in arrays_a:
        np.testing.assert_array_equal(arrays_a[name], arrays_b[name], err_msg=name)


@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_round_trip(tmp_path: Path, network: Network, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    save_checkpoint(path, network, {"note": "added"})
    back = load_network(path)
    assert_same(back, replace(network, history={**network.history, "note": "added"}))
    assert [type(layer) for layer in back.layers] == [type(layer) for layer in network.layers]
    assert back.layers[2].arrays().keys() == network.layers[2].arrays().keys()
    np.testing.assert_array_equal(back.state_ranges["c"], network.state_ranges["c"])
    assert [path.name for path in tmp_path.iterdir()] == [f"model{suffix}"]  # no temporary file is left


def test_ranges_are_optional(network: Network) -> None:
    arrays, meta = network_to_arrays(network)
    assert [name for name in arrays if name.startswith("ranges.")] == ["ranges.c"]
    del arrays["ranges.c"]
    assert network_from_arrays(arrays, meta, "model.pt").state_ranges == {}


@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_equal_networks_give_equal_bytes(tmp_path: Path, network: Network, suffix: str) -> None:
    save_checkpoint(tmp_path / f"one{suffix}", network)
    save_checkpoint(tmp_path / f"two{suffix}", load_network(tmp_path / f"one{suffix}"))
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_npz_needs_no_torch(tmp_path: Path, network: Network) -> None:
    save_checkpoint(tmp_path / "model.npz", network)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from cosim.exchange.checkpoint import load_network; print(len(load_network(sys.argv[1]).layers))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "model.npz"], capture_output=True, text=True)
    assert done.stdout.strip() == "4", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is Linux's")
def test_too_little_memory_for_torch_is_not_called_a_missing_torch(tmp_path: Path, network: Network) -> None:
    """With 100 MB of address space more than numpy has, none of torch's libraries, over 200 MB, can be mapped."""
    save_checkpoint(tmp_path / "model.pt", network)
    code = (
        "import resource, sys\n"
        "from cosim.base.errors import CosimError\n"
        "from cosim.exchange.checkpoint import load_network\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 100_000_000\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
        "try: load_network(sys.argv[1])\n"
        "except CosimError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "model.pt"], capture_output=True, text=True)
    assert re.search(r"model\.pt: .* (does not load: |more memory than there is)", done.stdout), done.stderr
    assert "needs torch" not in done.stdout


def test_pt_without_torch_says_what_to_install(
    tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path / "model.pt", network)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingToolError, match=r"model\.pt: .* needs torch; python -m pip install .*\[train\]'"):
        load_network(tmp_path / "model.pt")


def test_malicious_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    target = tmp_path / "executed"

    class Bomb:
        def __reduce__(self) -> tuple:
            return Path.touch, (target,)

    plain, zipped = tmp_path / "plain.pt", tmp_path / "zipped.pt"
    plain.write_bytes(pickle.dumps(Bomb()))
    torch.save({"layers.0.weight": torch.ones(2, 3), "bomb": Bomb()}, zipped)
    for path in (plain, zipped):
        with pytest.raises(
            InputError, match=rf"{path.name}: .*(no checkpoint or asks to run code|must be a file of torch)"
        ):
            load_network(path)
    assert not target.exists()
    pickle.loads(plain.read_bytes())  # the bomb does go off where pickles are trusted
    assert target.exists()


def test_object_array_in_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, weight=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match=r"model\.npz: 'weight' must hold plain numbers or text, not dtype\('O'\)"):
        load_network(path)


def test_files_that_are_no_checkpoint(tmp_path: Path, network: Network) -> None:
    with pytest.raises(InputError, match=r"missing\.pt: no such file; give a trained network, .* -o missing\.pt`"):
        load_network(tmp_path / "missing.pt")
    with pytest.raises(InputError, match="a checkpoint file is needed, not a folder"):
        load_network(tmp_path)
    (tmp_path / "empty.pt").touch()
    with pytest.raises(InputError, match="the file is empty"):
        load_network(tmp_path / "empty.pt")
    (tmp_path / "text.pt").write_text("hello\n" * 50)
    with pytest.raises(InputError, match=r"text\.pt: "):
        load_network(tmp_path / "text.pt")
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(InputError, match="a state dict is needed, not a list"):
        load_network(tmp_path / "list.pt")
    for suffix in (".pt", ".npz"):
        path = tmp_path / f"cut{suffix}"
        save_checkpoint(path, network)
        whole = path.read_bytes()
        for kept in (10, len(whole) // 3, len(whole) - 40):
            path.write_bytes(whole[:kept])
            with pytest.raises(InputError, match=rf"cut\{suffix}: "):
                load_network(path)


def damaged(network: Network, change) -> None:
    arrays, meta = network_to_arrays(network)
    change(arrays, meta)
    network_from_arrays(arrays, meta, "model.pt")


def set_to(mapping: dict, key: str, value: object) -> None:
    mapping[key] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, m: set_to(m, "format", "other"), r"model\.pt: meta\.format must be 'cosim-checkpoint', not 'other'"),
        (lambda a, m: set_to(m, "version", 2), r"model\.pt: meta\.version must be 1, not 2"),
        (lambda a, m: set_to(m["layers"][1], "kind", "lstm"), r"meta\.layers\[1\]\.kind must be one of .*, not 'lstm'"),
        (lambda a, m: set_to(m["layers"], slice(0, 1), ["lstm"]), r"meta\.layers\[0\] must be a table, not text"),
        (
            lambda a, m: set_to(m["layers"][1], "epsilon", "0"),
            r"layers\[1\]\.epsilon must be a number or null, not text",
        ),
        (lambda a, m: set_to(m["layers"][1], "kind", ["relu"]), r"meta\.layers\[1\]\.kind must be text, not a list"),
        (lambda a, m: set_to(m["layers"][1], "epsilon", 10**400), r"meta: layers\[1\]\.epsilon: must be .* 64 bits"),
        (
            lambda a, m: set_to(m["layers"][1], "sources", None),
            r"meta\.layers\[1\]\.sources must be a list, not null",
        ),
        (
            lambda a, m: set_to(m["readout"], "sources", [3]),
            r"readout\.sources\[0\] must be text, not a whole",
        ),
        (
            lambda a, m: set_to(a, "layers.1.weight_bta", np.ones(1)),
            r"array 'layers\.1\.weight_bta' belongs to no layer",
        ),
        (lambda a, m: set_to(a, "layers.4.weight", np.ones(1)), r"array 'layers\.4\.weight' belongs to no layer"),
        (lambda a, m: set_to(m, "labels", 5), r"meta\.labels must be a list, not a whole number"),
        (lambda a, m: m.pop("task"), r"meta must have the field task"),
        (lambda a, m: a.pop("layers.1.beta_hi"), r"model\.pt: array 'layers\.1\.beta_hi' is missing"),
        (lambda a, m: set_to(a, "layers.0.weight", np.ones((5, 4))), r"hidden\.weight must have shape \(5, 3\)"),
        (lambda a, m: set_to(a["layers.2.weight"], (1, 3), np.nan), r"b\.weight\[1,3\] must be finite, not nan"),
    ],
)
def test_damaged_content_is_named(network: Network, change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        damaged(network, change)


def test_meta_that_is_no_json_object(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, meta=np.array("{"))
    with pytest.raises(InputError, match="meta: must be JSON, but is"):
        load_network(path)
    np.savez(path, meta=np.array("[1]"))
    with pytest.raises(NetworkError, match=r"meta must be a JSON object, not \[1\]"):
        load_network(path)
    torch.save({"meta": {}, "weights": {}}, tmp_path / "model.pt")
    with pytest.raises(NetworkError, match="a checkpoint holds 'meta' and 'arrays', not meta, weights"):
        load_network(tmp_path / "model.pt")


def test_values_that_are_no_real_tensors(tmp_path: Path) -> None:
    torch.save({"layers.0.weight": 3}, tmp_path / "model.pt")
    with pytest.raises(NetworkError, match=r"layers\.0\.weight must be a tensor, not a int"):
        load_network(tmp_path / "model.pt")
    for tensor, found in (
        (torch.ones(2, 3, dtype=torch.complex64), "strided of complex64 on cpu"),
        (torch.ones(2, 3).to_sparse(), "sparse_coo of float32 on cpu"),
        (torch.ones(2, 3, device="meta"), "strided of float32 on (meta|cpu)"),
    ):
        torch.save({"layers.0.weight": tensor}, tmp_path / "model.pt")
        with pytest.raises(InputError, match=rf"layers\.0\.weight must be a dense tensor .*, not {found}"):
            load_network(tmp_path / "model.pt")
    np.savez(tmp_path / "model.npz", **{"layers.0.weight": np.ones((2, 3), dtype=complex)})
    with pytest.raises(NetworkError, match=r"layers\.0\.weight must hold real numbers, not complex128"):
        load_network(tmp_path / "model.npz")


def test_save_refuses(tmp_path: Path, network: Network) -> None:
    with pytest.raises(InputError, match=r"must be named \.pt or \.npz, not '\.onnx'"):
        save_checkpoint(tmp_path / "model.onnx", network)
    with pytest.raises(InputError, match=r"the folder .* must exist; create it"):
        save_checkpoint(tmp_path / "nowhere" / "model.pt", network)
    with pytest.raises(NetworkError, match="at least one recurrent layer"):
        save_checkpoint(tmp_path / "model.pt", replace(network, layers=network.layers[:1]))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.npz"
    save_checkpoint(path, network)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InputError, match="cannot write .*: No space left on device"):
        save_checkpoint(path, replace(network, task="other"))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("history", [{"figures": [1]}, {"settings": "none"}])
def test_a_strange_history_is_refused(tmp_path: Path, network: Network, history: dict) -> None:
    save_checkpoint(tmp_path / "model.npz", replace(network, history=history))
    with pytest.raises(NetworkError, match=r"meta\.history\.(figures|settings) must be a table; export the network"):
        load_network(tmp_path / "model.npz")


def test_what_is_no_network_is_named(tmp_path: Path) -> None:
    for module, name in (
        (torch.nn.LSTM(3, 5), "an LSTM"),
        (torch.nn.GRU(3, 5), "a GRU"),
        (torch.nn.RNNCell(3, 5), "an RNN"),
        (torch.nn.Sequential(torch.nn.LSTM(3, 5)), "an LSTM"),
    ):
        torch.save(module.state_dict(), tmp_path / "other.pt")
        with pytest.raises(NetworkError, match=rf"weight_hh\w* belongs to {name}, which has no circuit here: only"):
            load_network(tmp_path / "other.pt")
    np.savez(tmp_path / "data.npz", x_train=np.ones((3, 2, 1)), y_train=np.array(["yes", "no", "no"]))
    with pytest.raises(NetworkError, match=r"this is a data set \(x_train, y_train\), not a network; .* with --data"):
        load_network(tmp_path / "data.npz")
    (tmp_path / "text.npz").write_text("1 2 3")
    with pytest.raises(InputError, match="must be an .npz file, but is cut off or something else") as caught:
        load_network(tmp_path / "text.npz")
    assert "unsafe" not in str(caught.value) and "pickle" not in str(caught.value)


def test_a_tensor_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    torch.save({"layers.0.weight": torch.ones(1).expand(10**6, 10**6)}, tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"layers\.0\.weight must take at most 8\.389 MB of memory, not 8e\+06 MB"):
        load_network(tmp_path / "model.pt")


def test_names_are_printable_text(tmp_path: Path) -> None:
    torch.save({("a",) * 3: torch.ones(1)}, tmp_path / "model.pt")
    with pytest.raises(NetworkError, match=r"key \('a', 'a', 'a'\) must be printable text"):
        load_network(tmp_path / "model.pt")
    np.savez(tmp_path / "model.npz", **{"a\x1b[2J": np.ones(1)})
    with pytest.raises(NetworkError, match="key 'a.*' must be printable text"):
        load_network(tmp_path / "model.npz")


def test_one_layer_is_not_given_twice() -> None:
    """`layers.00` and `layers.\u0663` once were `layers.0` and `layers.3`: of two the last one counted."""
    for name in ("layers.00.weight", "layers.\u0663.weight", f"layers.{'9' * 5000}.weight"):
        arrays = {"layers.0.weight": np.ones((1, 1)), name: np.ones((1, 1))}
        with pytest.raises(NetworkError, match=r"key 'layers\..* is not known"):
            network_from_state_dict(arrays, "model.npz")


def test_npz_meta_is_readable_text(tmp_path: Path, network: Network) -> None:
    save_checkpoint(tmp_path / "model.npz", network)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
    assert meta["format"] == "cosim-checkpoint"
    assert zipfile.ZipFile(io.BytesIO((tmp_path / "model.npz").read_bytes())).testzip() is None


def counting(**fields):
    """A network of two units at epsilon 1 that stay at their ends and begin at 0."""
    half = np.full(2, 0.5)
    layer = SignedLayer("cell", ("input",), np.eye(2), np.zeros(2), half, half, epsilon=1.0, **fields)
    readout = Readout(("cell",), np.eye(2), np.zeros(2), "last")
    return Network(InputEncoding(np.zeros(2), np.ones(2)), (layer,), readout)


@pytest.mark.parametrize(
    "fields", [{"ends": (-3, 4)}, {"initial": np.zeros(2)}, {"ends": (0, 1), "initial": np.ones(2)}]
)
def test_ends_and_starts_of_counts_come_back(tmp_path, fields):
    save_checkpoint(tmp_path / "net.npz", counting(**fields))
    found, expected = load_network(tmp_path / "net.npz"), counting(**fields)
    assert found.layers[0].ends == expected.layers[0].ends
    assert np.array_equal(found.layers[0].start, expected.layers[0].start)
    assert hash_network(found) == hash_network(expected) != hash_network(counting())
    assert network_to_arrays(found)[1]["version"] == 3 > network_to_arrays(counting())[1]["version"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ends": (1, 4)}, r"cell\.ends must have 0 between them and be 1 to 255 apart, not \[1, 4\]"),
        ({"ends": (-200, 56)}, r"cell\.ends must have 0 between them and be 1 to 255 apart"),
        ({"ends": (-3, 4), "epsilon": 0.0}, r"cell\.ends are for a state that counts, with epsilon 1"),
        ({"initial": np.zeros(2), "epsilon": 0.0}, r"cell\.initial is for a state that counts or has levels"),
        ({"initial": np.zeros(3)}, r"cell\.initial must have shape \(2,\), not \(3,\)"),
        ({"initial": np.array([np.nan, 0.0])}, r"cell\.initial\[0\] must be finite, not nan"),
    ],
    ids=["beside", "far", "bits", "begun", "shape", "nan"],
)
def test_ends_and_starts_that_no_count_has(fields, text):
    network = counting()
    wrong = replace(network, layers=(replace(network.layers[0], **fields),))
    with pytest.raises(NetworkError, match=text):
        check_network(wrong, "net")
