"""Layer names become net names: nothing but a plain lower-case name may pass."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import NetworkError
from cosim.exchange.checkpoint import load_network, network_from_arrays
from cosim.network.types import check_network, network_to_arrays


def renamed(network, old, new):
    def sources(names):
        return tuple(new if name == old else name for name in names)

    layers = tuple(
        replace(layer, name=new if layer.name == old else layer.name, sources=sources(layer.sources))
        for layer in network.layers
    )
    return replace(network, layers=layers, readout=replace(network.readout, sources=sources(network.readout.sources)))


HOSTILE = [
    "x; quit",
    "a b",
    "a\nb",
    "a\n.control",
    "",
    "0",
    "3layer",
    "Layer",
    "größe",
    "a.b",
    "_a",
    "a$b",
    "in",
    "readout",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_could_reach_a_deck_are_refused(make_network, name):
    network = renamed(make_network(3), "layer0", name)
    text = "model.pt: meta.layers: name must be a lower-case letter, .* not in or readout, but is .*; rename the layer"
    with pytest.raises(NetworkError, match=text) as error:
        check_network(network, "model.pt")
    assert repr(name) in str(error.value)


def test_input_as_a_name_is_taken(make_network):
    with pytest.raises(NetworkError, match="layer name 'input' is used twice; rename one"):
        check_network(renamed(make_network(3), "layer0", "input"))


@pytest.mark.parametrize("name", ["a", "layer_0", "x9_y"])
def test_plain_names_pass(make_network, name):
    network = renamed(make_network(3), "layer0", name)
    assert check_network(network) is network


def test_a_checkpoint_with_such_a_name_is_refused_on_loading(make_network, tmp_path: Path):
    arrays, meta = network_to_arrays(make_network(3))
    meta["layers"][0]["name"] = "x; quit"
    with pytest.raises(NetworkError, match=r"file\.npz: meta\.layers: name must be"):
        network_from_arrays(arrays, meta, "file.npz")
    import json

    path = tmp_path / "hostile.npz"
    np.savez(path, **arrays, meta=np.array(json.dumps(meta)))
    with pytest.raises(NetworkError, match=r"hostile\.npz: meta\.layers: name must be"):
        load_network(path)
