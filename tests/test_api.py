"""`import cosim` is one way in: lazy, and the same path as the command line."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import cosim
from cosim.base.errors import InputError
from cosim.cli import main
from cosim.exchange.checkpoint import save_checkpoint
from cosim.tasks.testset import load_test_set
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.trial import Trial, run_chip


@pytest.fixture
def files(make_network, tmp_path):
    """A small network and samples for it."""
    network = make_network(3, widths=(3,), outputs=2)
    save_checkpoint(tmp_path / "net.npz", network)
    x = np.random.default_rng(5).uniform(0, 1, (9, 6, network.encoding.features))
    np.savez(tmp_path / "data.npz", x_test=x, y_test=np.arange(9) % 2)
    return tmp_path / "net.npz", tmp_path / "data.npz"


def test_the_import_brings_nothing_else():
    code = (
        "import sys, cosim; dir(cosim); "
        "assert not {'numpy', 'torch', 'scipy', 'matplotlib', 'click'} & sys.modules.keys(), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    for name in cosim.__all__:
        assert getattr(cosim, name) is not None
    with pytest.raises(AttributeError, match="module 'cosim' has no attribute 'lode'; it has .*load"):
        cosim.lode  # noqa: B018


def test_load_compile_montecarlo(files):
    """One expression; its records are those of the run that the command line makes."""
    net, data = files
    drawn = cosim.load(net).compile("generic180").montecarlo(data, chips=5, jobs=1)
    circuit = cosim.load(net).compile()
    test_set = load_test_set(circuit.design.network, data)
    trial = Trial(circuit.design, test_set, VariationPlan("local", 0, 5))
    assert drawn.records == tuple(run_chip(trial, number) for number in range(5))
    text = " ".join(str(drawn).split())
    assert "5 chips with mismatch of each transistor, each on 9 test samples. Engine: behavioral; none failed." in text


def test_a_condition_is_another_object(files):
    circuit = cosim.load(files[0]).compile()
    hot = circuit.at("ss", 60.0)
    assert (hot.condition.technology.corner, hot.condition.technology.celsius) == ("ss", 60.0)
    assert circuit.condition.technology.corner == "tt" and hot.design is circuit.design


def test_a_compiled_network_prints_as_the_command_line_prints_it(files, tmp_path, capsys, monkeypatch):
    net, _ = files
    monkeypatch.setattr("sys.argv", ["cosim", "compile", str(net), "-o", str(tmp_path / "out")])
    with pytest.raises(SystemExit):
        main()
    typed = capsys.readouterr().out.splitlines()
    circuit = cosim.load(net).compile()
    printed = str(circuit).splitlines()
    assert printed == typed[: len(printed)] and typed[len(printed)] == ""
    assert str(circuit.at("ss", 60.0)).splitlines()[2] == "generic180, ss, 60 C, 1.8 V. Nothing was simulated."


@pytest.mark.ngspice
def test_compare(files):
    compared = cosim.load(files[0]).compile().compare(files[1], samples=2, jobs=1)
    assert compared.summary.samples == 2 and compared.summary.state_agreement > 0.9
    assert "states equal the software's" in str(compared)


@pytest.mark.ngspice
def test_compare_with_arrays(files):
    """The samples of a file may be given as arrays; what the network cannot read is refused before anything runs."""
    chip = cosim.load(files[0]).compile()
    there = load_test_set(chip.design.network, files[1])
    compared = chip.compare(there.take(2, seed=0), samples=None, jobs=1)
    assert compared.summary == chip.compare(files[1], samples=2, jobs=1).summary
    with pytest.raises(InputError, match="data: classes must lie in 0..1"):
        chip.compare(replace(there, y=there.y + 7))


def test_all_show_themselves_in_a_notebook(files):
    trained = cosim.load(files[0])
    for shown, word in ((trained, "layer0"), (trained.compile(), "transistors")):
        page = shown._repr_html_()
        assert page.startswith("<pre>") and word in page and str(shown).splitlines()[0] in page
        assert repr(shown) == str(shown)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda circuit, data: circuit.montecarlo(chips=0), "chips must lie in 1 to 1000000, not 0"),
        (lambda circuit, data: circuit.montecarlo(jobs=0), "jobs must lie in 1 to 1024, not 0"),
        (lambda circuit, data: circuit.montecarlo(samples=-1), "samples must lie in 1 to 1000000, not -1"),
        (
            lambda circuit, data: circuit.montecarlo(variation="some"),
            "variation must be one of none, local, global, all, not 'some'",
        ),
        (lambda circuit, data: circuit.montecarlo(data, engine="spice"), "engine must be one of .* not 'spice'"),
        (lambda circuit, data: circuit.compare(samples=0), "samples must lie in 1 to 1000000, not 0"),
        (lambda circuit, data: circuit.compare(jobs=0), "jobs must lie in 1 to 1024, not 0"),
    ],
)
def test_a_wrong_argument_is_refused(files, call, text):
    with pytest.raises(InputError, match=text):
        call(cosim.load(files[0]).compile(), files[1])
