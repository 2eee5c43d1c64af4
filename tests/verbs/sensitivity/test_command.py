"""`cosim sensitivity` from end to end, and how it fails."""

import json

import pytest

from cosim.results.page import WIDTH


@pytest.mark.ngspice
def test_sensitivity(batch, cosim_main, tiny, tmp_path):
    file = tmp_path / "figures.json"
    options = ["--data", tiny / "data.npz", "--sample", 2, "--top", 3, "--chip", 1, "--json", file]
    code, out, err = cosim_main("sensitivity", tiny / "net.npz", *options)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= WIDTH
    found = json.loads(file.read_text())
    assert found["value_a"] > 0
    assert sum(device["share"] for device in found["devices"]) == pytest.approx(1.0)
    for device in found["devices"][:3]:
        assert device["device"].removeprefix("network.") in out
    assert "test sample 2: output" in out and "which mismatch moves by" in " ".join(out.split())
    assert {"unit", "bias_gain_0"} <= set(found["pins"])
    assert all(0 <= decision["flips"] <= 0.5 for decision in found["decisions"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--sample", 5], "no sample 5: the test set has samples 0 to 4; choose one of them"),
        (["--frame", 3], "no frame 3: the sample has frames 0 to 2; choose one of them"),
        (["--readout", 2], "no output 2: the network has outputs 0 to 1; choose one of them"),
    ],
)
def test_what_there_is_not(cosim_main, tiny, options, text):
    arguments = [tiny / "net.npz", "--data", tiny / "data.npz", *options]
    assert cosim_main("sensitivity", *arguments) == (2, "", f"cosim: {text}\n")
