"""`import cosim` is one way in: lazy, and the same path as the command line."""

import inspect
import subprocess
import sys
from dataclasses import replace

import click
import numpy as np
import pytest

import cosim
from cosim.base.errors import CosimWarning, InputError, NetworkError
from cosim.cli import VERBS, load_verb, main
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.tasks.testset import load_test_set
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.trial import Trial, run_chip

pytestmark = pytest.mark.usefixtures("unrendered_module")


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
        "import sys, cosim; assert 'click' not in sys.modules; dir(cosim); "
        "assert not {'numpy', 'torch', 'scipy', 'matplotlib'} & sys.modules.keys(), sorted(sys.modules)"
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
    """A network and samples may be at hand, without files; what the network cannot read is refused before a run."""
    network = load_network(files[0])
    chip, there = cosim.load(network).compile(), load_test_set(network, files[1])
    expected = cosim.load(files[0]).compile().compare(files[1], samples=2, jobs=1).summary
    with np.load(files[1]) as arrays:
        named = dict(arrays)
    assert chip.compare({"x_test": named["x_test"].tolist(), "y_test": named["y_test"]}, 2, jobs=1).summary == expected
    assert chip.compare(there.take(2, seed=0), samples=None, jobs=1).summary == expected
    with pytest.raises(InputError, match="data: y_test missing; it must hold x_test and y_test"):
        chip.compare({"x_test": named["x_test"]})
    with pytest.raises(InputError, match=r"data: x_test must be \(samples, time, features\)"):
        chip.compare({"x_test": named["x_test"][0], "y_test": named["y_test"]})
    with pytest.raises(InputError, match="data: x_test must be an array: .*pad samples, and give len_test"):
        chip.compare({"x_test": [[[0.5]], [[0.5], [0.5]]], "y_test": [0, 1], "x_train": [[1], [1, 2]]})
    with pytest.raises(InputError, match="data: classes must lie in 0..1"):
        chip.compare(replace(there, y=there.y + 7))


def test_a_network_at_hand_is_checked_and_ranged(files):
    network = load_network(files[0])
    with pytest.raises(NetworkError, match="network: layer0.weight must have shape"):
        cosim.load(replace(network, layers=(replace(network.layers[0], bias=network.layers[0].bias[:2]),)))
    with np.load(files[1]) as arrays:
        ranged = cosim.load(network, ranges_from=dict(arrays)).network
    assert ranged.state_ranges == cosim.load(files[0], ranges_from=files[1]).network.state_ranges


def test_all_show_themselves_in_a_notebook(files):
    trained = cosim.load(files[0])
    for shown, word in ((trained, "layer0"), (trained.compile(), "transistors")):
        page = shown._repr_html_()
        assert page.startswith("<h3>") and word in page and str(shown).splitlines()[0] in page
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


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_function_with_the_options_of_the_command_line(verb):
    """Its signature has the long name of each option with underscores; its docstring has the help."""
    function, command = getattr(cosim, verb), load_verb(verb)
    assert verb in dir(cosim) and function.__doc__.startswith(inspect.cleandoc(command.help).splitlines()[0])
    names = list(inspect.signature(function).parameters)
    if not isinstance(command, click.Group):
        options = [one for one in command.params if isinstance(one, click.Option)]
        assert len(names) == len(command.params)
        named = [f"--{name.rstrip('_').replace('_', '-')}" for name in names[len(names) - len(options) :]]
        assert named == [max(one.opts, key=len) for one in options]


def test_a_verb_from_python_prints_and_shows_its_page(files, tmp_path, cosim_main):
    net, data = files
    code, out, _ = cosim_main("montecarlo", net, "--data", data, "--chips", 5, "-o", tmp_path / "typed")
    found = cosim.montecarlo(net, data=data, chips=5, output=tmp_path / "called")
    assert code == 0 and out.startswith(f"{found}\n")
    assert found.figures.yield_.chips == 5 and "<table" in found._repr_html_()


def test_words_of_python_that_are_keywords_and_options_of_an_inner_verb(files, tmp_path):
    net, data = files
    built = cosim.compile(net, with_="decision", output=tmp_path / "chip")
    bare = cosim.compile(net, output=tmp_path / "bare")
    assert built.figures["transistors"] > bare.figures["transistors"]
    swept = cosim.sweep("montecarlo", net, data=data, chips=4, over="area=0.5,1", output=tmp_path / "sweep")
    assert [(point.values, point.status) for point in swept.figures.points] == [
        ({"area": 0.5}, "ok"),
        ({"area": 1.0}, "ok"),
    ]
    settings = [(tmp_path / "sweep" / point.folder / "run.toml").read_text() for point in swept.figures.points]
    assert all("chips = 4" in text for text in settings)


def test_a_group_of_verbs_from_python_wants_one_of_them():
    with pytest.raises(
        InputError, match="cosim characterize needs one of schmitt, .*, ladder, cascade first, not 'x'; choose"
    ):
        cosim.characterize("x")


def test_an_argument_too_many_is_refused():
    with pytest.raises(InputError, match="cosim inspect takes no further argument 'b'; give it by its name"):
        cosim.inspect("a", "b")


def test_a_warning_is_one_of_python(files, tmp_path):
    """On the command line it is a line on stderr, see tests/verbs/power."""
    net, data = files
    with np.load(data) as old:
        np.savez(tmp_path / "far.npz", x_test=old["x_test"] * 9, y_test=old["y_test"])
    with pytest.warns(CosimWarning, match="lie beyond the range"):
        cosim.load(net).compile().montecarlo(tmp_path / "far.npz", chips=1, jobs=1)


def test_chips_plot_themselves_and_hold_arrays(files):
    drawn = cosim.load(files[0]).compile().montecarlo(files[1], chips=6, jobs=1)
    accuracy = [record.behavioral.accuracy for record in drawn.records]
    assert drawn.values().tolist() == accuracy and drawn.values("power").shape == (6,)
    (axis,) = drawn.plot().axes
    assert axis.get_xlabel() == "accuracy (%)" and sum(bar.get_height() for bar in axis.patches) == 6
    with pytest.raises(InputError, match="metric must be one of accuracy, .*power, not 'speed'"):
        drawn.values("speed")


@pytest.mark.ngspice
def test_a_comparison_plots_itself(files):
    axes = cosim.load(files[0]).compile().compare(files[1], samples=2, jobs=1).plot().axes
    assert any(axis.get_xlabel() for axis in axes)
