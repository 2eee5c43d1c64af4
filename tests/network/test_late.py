"""Late sources: the reference against a loop of its own, checkpoints, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import NetworkError
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network, network_to_arrays

ENCODING = InputEncoding(np.zeros(2), np.ones(2), levels=1)


def bits(seed, frames=40, n=3):
    return np.random.default_rng(seed).integers(0, 2, (n, frames, 2)).astype(float)


def first(name, sources, weight, bias=0.0, low=0.35, high=0.55):
    weight = np.atleast_2d(np.array(weight, dtype=float))
    width = len(weight)
    return FirstQuadrantLayer(
        name, sources, weight, np.full(width, bias), np.full(width, low), np.full(width, high), np.ones(width)
    )


def feeding_back():
    """Two layers that read each other late, and the input as it was three frames before; a signed one is among them."""
    front = first("front", ("input", "behind_1", "input_3"), [[1, -0.5, 0.25, -1, 0.5, 0], [0, 1, -1, 0.5, 0, 0.25]])
    behind = SignedLayer(
        "behind", ("front", "behind_2"), np.array([[1.0, -0.5, 0.25, 0.5], [0.5, 0.5, -0.5, 0.25]]),
        np.array([-0.3, -0.2]), np.array([0.2, 0.1]), np.array([1.0, 0.5]),
    )  # fmt: skip
    readout = Readout(("behind", "front_1"), np.arange(8.0).reshape(2, 4), np.zeros(2), "last")
    late = {
        "behind_1": DelayedSignal("behind"),
        "behind_2": DelayedSignal("behind", 2),
        "front_1": DelayedSignal("front"),
        "input_3": DelayedSignal("input", 3),
    }
    return check_network(Network(ENCODING, (front, behind), readout, late=late))


def test_a_network_that_feeds_back_by_hand():
    network, x = feeding_back(), bits(1)
    trace, (front, behind) = run_reference(network, x), network.layers
    assert network.feeds_back
    for sample, (fronts, behinds) in enumerate(zip(trace.signals["front"], trace.signals["behind"], strict=True)):
        one, other = [np.zeros(2)], [-behind.alpha] * 2
        for t, now in enumerate(x[sample]):
            ago = x[sample, t - 3] if t >= 3 else np.zeros(2)
            u = front.weight @ np.concatenate([now, other[-1], ago]) + front.bias
            one.append(np.where(u >= 0.55, 1.0, np.where(u <= 0.35, 0.0, one[-1])))
            h = behind.weight @ np.concatenate([one[-1], other[-2]]) + behind.bias
            updates = np.abs(h) >= np.abs(behind.bias_beta)
            other.append(np.where(updates, np.where(h >= 0, behind.alpha, -behind.alpha), other[-1]))
            np.testing.assert_array_equal(fronts[t], one[-1])
            np.testing.assert_array_equal(behinds[t], other[-1])
            read = network.readout.weight @ np.concatenate([other[-1], one[-2]])
            np.testing.assert_allclose(trace.readout[sample, t], read, rtol=1e-12)
    assert len(np.unique(trace.signals["front"])) > 1 and len(np.unique(trace.signals["behind"])) > 2


def test_layer_by_layer_is_frame_by_frame(monkeypatch):
    """Without feedback both ways of evaluation are open."""
    layers = (first("front", ("input", "input_2"), [[1, -1, 0.5, 0.5], [0.5, 0.5, 1, -1]]),
              ReluLayer("rates", ("front_1", "input"), np.array([[1.0, -0.5, 0.25, 0.5]]), np.array([0.1])),
              first("last", ("rates", "front_1"), [[0.5, 0.5, -0.25]]))  # fmt: skip
    late = {"input_2": DelayedSignal("input", 2), "front_1": DelayedSignal("front")}
    network = check_network(Network(ENCODING, layers, Readout(("last",), np.ones((1, 1)), np.zeros(1)), late=late))
    assert not network.feeds_back
    whole = run_reference(network, bits(2))
    monkeypatch.setattr(Network, "feeds_back", True)
    again = run_reference(network, bits(2))
    for name, values in whole.signals.items():
        np.testing.assert_array_equal(values, again.signals[name])
        assert values[:, 1:].any()
    for name in ("front", "last"):
        np.testing.assert_array_equal(whole.candidates[name], again.candidates[name])


def test_later_than_the_sample_is_long():
    network = Network(ENCODING, (first("a", ("input_9",), [[1, 1]]),), Readout(("a",), np.ones((1, 1)), np.zeros(1)),
                      late={"input_9": DelayedSignal("input", 9)})  # fmt: skip
    assert not run_reference(check_network(network), np.ones((1, 4, 2))).signals["a"].any()


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_a_checkpoint_keeps_late_sources(tmp_path, suffix):
    network = feeding_back()
    save_checkpoint(tmp_path / f"net{suffix}", network)
    kept = load_network(tmp_path / f"net{suffix}")
    assert dict(kept.late) == dict(network.late)
    for one, other in zip(kept.layers, network.layers, strict=True):
        assert one.sources == other.sources
    assert network_to_arrays(network)[1]["version"] == 2
    assert network_to_arrays(replace(network, late={}))[1]["version"] == 1


def test_an_earlier_version_cannot_hold_them(tmp_path):
    arrays, meta = network_to_arrays(feeding_back())
    np.savez(tmp_path / "net.npz", **arrays, meta=np.array(json.dumps({**meta, "version": 1})))
    with pytest.raises(NetworkError, match="meta.version must be 2, not 1"):
        load_network(tmp_path / "net.npz")


@pytest.mark.parametrize(
    ("late", "text"),
    [
        ({"front": DelayedSignal("input")}, "late.front has the name of another signal"),
        ({"input": DelayedSignal("front")}, "late.input has the name of another signal"),
        ({"x y": DelayedSignal("input")}, "meta.late: name must be a lower-case letter"),
        (
            {"again": DelayedSignal("nowhere")},
            "late.again.signal must be 'input' or a layer, not 'nowhere'; known: input, front",
        ),
        ({"again": DelayedSignal("input", 0)}, "late.again.frames must lie in 1 to 4096, not 0"),
        ({"again": DelayedSignal("input", 5000)}, "must lie in 1 to 4096, not 5000"),
        ({"again": DelayedSignal("input")}, "late.again is read by no layer"),
    ],
)
def test_what_is_no_late_source(late, text):
    network = feeding_back()
    with pytest.raises(NetworkError, match=text):
        check_network(replace(network, late={**network.late, **late}))


def test_a_source_that_is_not_declared():
    with pytest.raises(NetworkError, match="reads 'behind_1', which is not 'input', an earlier layer or a late source"):
        check_network(replace(feeding_back(), late={}))
