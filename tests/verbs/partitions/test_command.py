"""`cosim compile` and `cosim compare` of a backbone: what is written, what is printed, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.exchange.checkpoint import load_network  # noqa: E402
from cosim.network.reference import run_reference  # noqa: E402
from cosim.network.software_only import stays_software  # noqa: E402
from cosim.papers.backbone import Backbone  # noqa: E402
from cosim.papers.file import Model, save_model  # noqa: E402
from cosim.papers.shape import BackboneShape  # noqa: E402
from cosim.results.kept_page import read_page  # noqa: E402

SHAPE = BackboneShape(
    8, 10, cell="mingru+cmru", width=8, state=3, blocks=2, threshold="fixed", start="low", pooling="mean"
)
LABELS = tuple(map(str, range(10)))


def save(folder, shape=SHAPE, epsilon=0.0, task="digits", labels=LABELS):
    torch.manual_seed(0)
    backbone = Backbone(shape)
    backbone.scale.fill_(16.0)
    backbone.set_epsilon(epsilon)
    path = folder / "b.pt"
    save_model(path, Model(backbone.eval(), task, labels, epsilon))
    return path


def test_compile_writes_a_folder_for_each_partition(cosim_main, tmp_path):
    path = save(tmp_path)
    code, out, _ = cosim_main("compile", path, "-o", tmp_path / "net", "--bits", "4")
    assert code == 0 and out.startswith("digits backbone on generic180: 3 cells on ")
    said = " ".join(out.split())
    assert "the minGRU's logistic gate" in said and "transistors in 1 partition" in said
    assert "3 of 4 bits, 15 codes" in said and "300 conversions a second" in said
    assert out.splitlines() == [
        *str(read_page(tmp_path / "net")).splitlines(),
        "",
        f"written: partitions.json and a folder for each partition in {tmp_path / 'net'}",
        f"report: {tmp_path / 'net' / 'report.html'}",
    ]
    assert '<a href="block2/report.html">' in (tmp_path / "net" / "report.html").read_text()
    found = json.loads((tmp_path / "net" / "partitions.json").read_text())
    (row,) = found["partitions"]
    assert (row["name"], row["cell"], row["cells"], row["bits"], row["codes"]) == ("block2", "blocks.1.cell", 3, 4, 15)
    assert row["conversions_per_s"] == pytest.approx(300) and 1e-9 < row["power_behavioral_w"] < 1e-7
    assert [part["where"] for part in found["parts"]].count("circuit") == 1
    folder = tmp_path / "net" / "block2"
    assert (folder / "network.sp").is_file() and (folder / "mapping.csv").is_file()
    network = load_network(folder / "network.npz")
    assert network.encoding.levels == 14 and np.array_equal(network.encoding.scale / 2, row["ranges"])
    run_reference(network, np.zeros((1, 2, 3)))


def test_compile_is_the_same_twice(cosim_main, tmp_path):
    path = save(tmp_path)
    for name in ("one", "other"):
        assert cosim_main("compile", path, "-o", tmp_path / name)[0] == 0
    for file in sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes(), file


@pytest.mark.parametrize(
    ("verb", "changed", "options", "words"),
    [
        ("compile", {"epsilon": 0.5}, (), "has epsilon 0.5, and its state is neither a bit nor a count"),
        ("compare", {"shape": replace(SHAPE, cell="lru", threshold="input", start="zero")}, (), "the LRU's complex"),
        ("compile", {}, ("--bits", "9"), "'--bits': must lie in 2 to 6, not 9"),
        ("compile", {}, ("--stimulus", "0"), "--stimulus is for a network that compiles whole"),
        ("compile", {}, ("--ranges-from", "x"), "--ranges-from is for networks of cosim train"),
        ("compare", {}, ("--pvt",), "--pvt is for a network that compiles whole"),
        ("compare", {}, ("--conversion", "0"), "must lie in (0, 1000] J, not 0 J"),
        ("compile", {"task": "flip-flop"}, (), "was trained with 8 inputs"),
        ("compile", {"task": "nothing"}, (), "TASK must be one of"),
        ("compile", {}, ("--data", "x"), "brings its own data"),
        ("compile", {}, ("--models", "foundry", "--dialect", "hspice"), "is for ngspice and spectre, not for hspice"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_line(cosim_main, tmp_path, verb, changed, options, words):
    path = save(tmp_path, **changed)
    code, out, err = cosim_main(verb, path, "-o", tmp_path / "out", *options)
    assert (code, out) == (2, "") and words in err and len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("verb", "option"), [("compile", "--bits"), ("compare", "--bits"), ("compare", "--conversion")]
)
def test_a_network_that_compiles_whole_has_no_converters(cosim_main, tiny, tmp_path, verb, option):
    assert not stays_software(tiny / "net.npz") and not stays_software(tmp_path / "none.pt")
    code, _, err = cosim_main(verb, tiny / "net.npz", "-o", tmp_path / "out", option, "4")
    assert code == 2 and f"{option} is for the converters of a backbone" in err
