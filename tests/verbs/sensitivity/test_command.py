"""`cosim sensitivity` from end to end, and how it fails."""

import json
import re
from functools import partial

import pytest

from cosim.base.claim import MARKER
from cosim.base.resources import trained_network_path
from cosim.compiler.overrides import read_overrides
from cosim.results.kept_page import read_page
from cosim.results.page import WIDTH, format_pages


@pytest.mark.ngspice
def test_sensitivity(batch, cosim_main, tiny, tmp_path):
    file, folder = tmp_path / "figures.json", tmp_path / "out"
    options = ["--data", tiny / "data.npz", "--sample", 2, "--top", 3, "--chip", 1, "--json", file, "-o", folder]
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
    page = (folder / "report.html").read_text()
    assert f"report: {folder / 'report.html'}" in out and format_pages([read_page(folder)]) == page
    for device in found["devices"][:3]:
        name = device["device"].removeprefix("network.")
        (line,) = re.findall(rf'<td><a href="#(net-\d+)">{re.escape(name)}</a></td>', page)
        assert f'<tr id="{line}"><td>{line[4:]}</td><td class="code">m{name.rpartition(".")[2]} ' in page


@pytest.mark.ngspice
def test_suggested_devices_narrow_the_sample_as_predicted(batch, digits_circuit, cosim_main, tmp_path):
    """Mirrors that grow whole keep their ratios, and with them all derivatives, within a few percent."""
    file, network = tmp_path / "more.toml", trained_network_path("digits_d4")
    run = partial(cosim_main, "sensitivity", network, "--sample", 3)
    code, out, err = run("--suggest", file, "--json", tmp_path / "before.json")
    assert (code, err) == (0, "")
    overrides = read_overrides(file)
    assert overrides.transistors and all(one.mirror and one.times > 1 for one in overrides.transistors)
    predicted = re.search(r"spread by mismatch should be (\S+) pA, in (\S+) times", " ".join(out.split()))
    code, _, err = run("--overrides", file, "--json", tmp_path / "after.json")
    assert (code, err) == (0, "")
    before, after = (json.loads((tmp_path / f"{name}.json").read_text())["sigma_a"] for name in ("before", "after"))
    assert 1e-12 * float(predicted[1]) == pytest.approx(after, rel=0.03) and after < 0.85 * before
    assert 1 < float(predicted[2]) <= 1.1


def test_a_page_replaces_no_other_verb_s(cosim_main, tiny, tmp_path):
    (tmp_path / MARKER).write_text("power\n")
    code, _, err = cosim_main("sensitivity", tiny / "net.npz", "-o", tmp_path)
    assert code == 2 and "cosim power" in err


def test_a_suggestion_replaces_no_foreign_file(cosim_main, tiny, tmp_path):
    mine, other = '[[transistors]]\nmirror = "bias_gain_#"\ntimes = 2\n', tmp_path / "x"
    (tmp_path / "mine.toml").write_text(mine)
    code, _, err = cosim_main("sensitivity", tiny / "net.npz", "--suggest", tmp_path / "mine.toml")
    assert code == 2 and "choose another place with --suggest" in err
    assert (tmp_path / "mine.toml").read_text() == mine
    code, _, err = cosim_main("sensitivity", tiny / "net.npz", "--suggest", other, "--json", other)
    assert code == 2 and "--suggest and --json write the same file" in err


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
