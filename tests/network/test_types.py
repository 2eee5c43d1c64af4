"""check_network: every complaint names the file, the field, the value and the repair."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, NetworkError
from cosim.exchange.checkpoint import load_network
from cosim.network.layers import SignedLayer
from cosim.network.reference import run_reference
from cosim.network.types import InputEncoding, check_network, network_to_arrays


def first(network, **fields):
    return replace(network, layers=(replace(network.layers[0], **fields), *network.layers[1:]))


def reflected(network, **layers):
    """Return the network with a first layer of signed units at epsilon -1, and these ranges."""
    old, zero = network.layers[0], np.zeros(network.layers[0].width)
    layer = SignedLayer(old.name, old.sources, old.weight, old.bias, zero + 0.25, zero + 1.0, epsilon=-1.0)
    return ranges(replace(network, layers=(layer, *network.layers[1:])), **layers)


def encoding(network, offset, scale, ramp_steps=None):
    return replace(network, encoding=InputEncoding(np.array(offset), np.array(scale), ramp_steps))


def ranges(network, **layers):
    return replace(network, state_ranges=layers)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda n: encoding(n, [0.0, 0.0], [1.0] * 3),
            r"input\.offset \(2,\) and input\.scale \(3,\) must be equally long",
        ),
        (lambda n: encoding(n, [], []), "must be equally long, one number per feature"),
        (lambda n: encoding(n, [0.0, np.inf, 0.0], [1.0] * 3), r"input\.offset\[1\] must be finite, not inf"),
        (
            lambda n: encoding(n, [0.0] * 3, [1.0, 1e308, 1.0]),
            r"input\.scale\[1\] must be at most 1e\+30 in size, not 1e\+308",
        ),
        (
            lambda n: first(n, beta_hi=n.layers[0].beta_hi * -1e31),
            r"layer0\.beta_hi\[0\] must be at most 1e\+30 in size",
        ),
        (lambda n: encoding(n, [0.0] * 3, [1.0, 0.0, 1.0]), r"input\.scale must be positive, not 0"),
        (lambda n: encoding(n, [0.0] * 3, [1.0] * 3, 0), r"input\.ramp_steps must be at least 1, not 0"),
        (lambda n: replace(n, weight_grid=0.0), r"meta\.weight_grid must be positive and finite, not 0; leave it out"),
        (lambda n: first(n, bias=np.array(1.0)), r"layer0\.bias must hold one number per unit, not shape \(\)"),
        (lambda n: replace(n, layers=()), "a network needs at least one recurrent layer, found none"),
        (lambda n: replace(n, layers=(n.layers[0], n.layers[0])), "layer name 'layer0' is used twice; rename one"),
        (
            lambda n: first(n, sources=("layer1",)),
            "layer0 reads 'layer1', which is not 'input', an earlier layer or a late source",
        ),
        (
            lambda n: first(n, sources=("input", "input")),
            r"layer0\.sources must name at least one layer and each once, not \['input', 'input'\]",
        ),
        (lambda n: first(n, sources=()), r"layer0\.sources must name at least one layer and each once, not \[\]"),
        (lambda n: first(n, alpha=np.ones(4)), r"layer0\.alpha must have shape \(5,\), not \(4,\)"),
        (lambda n: first(n, weight=n.layers[0].weight.T), r"layer0\.weight must have shape \(5, 3\), not \(3, 5\)"),
        (
            lambda n: first(n, beta_hi=n.layers[0].beta_lo - np.eye(5)[3] * 0.25),
            r"layer0\.beta_hi\[3\] - layer0\.beta_lo\[3\] is the hysteresis width and must be positive, not -0\.25",
        ),
        (lambda n: first(n, epsilon=1.5), r"layer0\.epsilon must lie in \[-1, 1\], not 1\.5"),
        (lambda n: replace(n, readout=replace(n.readout, pooling="max")), "must be last, mean or vote, not 'max'"),
        (
            lambda n: ranges(n, layer7=np.zeros((2, 5))),
            r"ranges\.layer7 must be named after a recurrent layer, layer0 or layer1; remove it",
        ),
        (lambda n: ranges(n, layer0=np.zeros((5, 2))), r"ranges\.layer0 must have shape \(2, 5\), not \(5, 2\)"),
        (lambda n: ranges(n, layer1=np.full((2, 2), np.inf)), r"ranges\.layer1\[0,0\] must be finite, not inf; 4 such"),
        (
            lambda n: ranges(n, layer0=np.array([[-1.0] * 5, [3.0, 3.0, 3.0, -2.0, 3.0]])),
            r"ranges\.layer0\[0,3\] is the smallest state and must be at most ranges\.layer0\[1,3\], -2, not -1",
        ),
        (
            lambda n: reflected(n, layer0=np.array([[-1.0] * 5, [2.0] * 5, [0.0, 0.0, 0.0, 0.0, 9.0]])),
            r"ranges\.layer0\[2,4\] is the smallest state but one and must be from -1 to 2, not 9; export",
        ),
        (
            lambda n: reflected(n, layer0=np.array([[-1.0] * 5, [2.0] * 5, [0.0, -5.0, 0.0, 9.0, 0.0]])),
            r"ranges\.layer0\[2,1\] is the smallest state but one and must be from -1 to 2, not -5; export",
        ),
        (lambda n: ranges(n, layer0=np.zeros((3, 5))), r"ranges\.layer0 must have shape \(2, 5\), not \(3, 5\)"),
        (lambda n: replace(n, labels=("a", "b")), "2 labels for 7 readout outputs; give one label each"),
        (
            lambda n: replace(n, readout=replace(n.readout, bias=np.full(7, np.nan))),
            r"readout\.bias\[0\] must be finite, not nan; 7 such value",
        ),
    ],
)
def test_unsound_networks(make_network, change, text):
    network = make_network(3)
    assert check_network(network) is network
    with pytest.raises(NetworkError, match=f"model.pt: .*{text}"):
        check_network(change(network), "model.pt")


@pytest.mark.parametrize(
    "change",
    [
        lambda a, m: m["layers"][0].update(name=5),
        lambda a, m: m["layers"][0].update(name=None),
        lambda a, m: m["layers"][0].update(sources="input"),
        lambda a, m: m["layers"][0].update(sources=[["input"]]),
        lambda a, m: m["layers"][0].pop("sources"),
        lambda a, m: m["readout"].pop("sources"),
        lambda a, m: m.update(ramp_steps="many"),
        lambda a, m: m.update(weight_grid=[1]),
        lambda a, m: m.update(weight_grid=0.0),
        lambda a, m: m.update(weight_grid=-0.125),
        lambda a, m: a.update({"layers.0.bias": np.array(1.0)}),
        lambda a, m: a.update({"layers.0.weight": np.array(1.0)}),
        lambda a, m: a.update({"input.offset": np.array(1.0)}),
        lambda a, m: a.update({"ranges.layer0": np.array(1.0)}),
        lambda a, m: a.update({"ranges.": np.zeros((2, 5))}),
        lambda a, m: a.update({"readout.bias": np.zeros(0), "readout.weight": np.zeros((0, 7))}),
    ],
)
def test_odd_checkpoints_are_refused_by_name(make_network, tmp_path, change):
    arrays, meta = network_to_arrays(make_network(3))
    change(arrays, meta)
    path = tmp_path / "odd.npz"
    np.savez(path, **arrays, meta=np.array(json.dumps(meta)))
    with pytest.raises(InputError, match=r"odd\.npz: "):
        load_network(path)


def test_reference_refuses_other_features_and_odd_values(make_network):
    network = make_network(3)
    with pytest.raises(
        InputError, match=r"data: x must have shape \(samples, time, 3\) for this network, not \(2, 5, 4\)"
    ):
        run_reference(network, np.zeros((2, 5, 4)))
    x = np.zeros((2, 5, 3))
    x[1, 2, 0] = np.nan
    with pytest.raises(InputError, match="data: x holds 1 values that are not finite; remove them"):
        run_reference(network, x)


@pytest.mark.parametrize("changes", [{"task": "a\x1b[31mb"}, {"labels": ("up", "do\nwn")}])
def test_names_that_would_move_a_terminal_are_refused(make_network, changes):
    network = replace(make_network(1, outputs=2), **({"labels": ("up", "down")} | changes))
    with pytest.raises(
        NetworkError, match=r"model\.pt: meta\.(task|labels\[1\]) must be printable text, not '.*'; rename"
    ):
        check_network(network, "model.pt")
