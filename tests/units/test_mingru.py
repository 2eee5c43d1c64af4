"""The minGRU: its equation in software, in torch, in the behavioral model and on transistors."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import MappingError, NetworkError
from cosim.cells.benches import STATE_DIODE, TauDrive, tau_cell_bench
from cosim.cells.tau_cell import STATE_NODE
from cosim.circuit.elements import Capacitor, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.evaluate import evaluate
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.engines.simulation.inference import run_bench, run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, MinGruLayer
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network
from cosim.results.page import format_text
from cosim.tasks.task import Task
from cosim.tasks.testset import TestSet
from cosim.units.mingru import tau_cell_fit
from cosim.variation.draws import VariationPlan
from cosim.verbs.calibrate.native import LATE_PULSE
from cosim.verbs.compare.agreement import compare_engines
from cosim.verbs.compile.schematics import RATIO, schematics_of
from cosim.verbs.inspect.page import network_page
from cosim.verbs.montecarlo.trial import Trial, run_chip

INPUTS, GATES = 3, 2  # what candidates and what gates read


TOP = 4.0
GATE = pytest.mark.parametrize("top", [None, TOP], ids=["exponential", "ratio"])


def fading_layer(width=2, top=None):
    """Candidates of up to 1, gates of 4 times one input: a from 0.02 to 4."""
    rng = np.random.default_rng(1)
    weight, gate = np.zeros((width, INPUTS + GATES)), np.zeros((width, INPUTS + GATES))
    weight[:, :INPUTS] = rng.integers(1, 3, (width, INPUTS)) / 8
    gate[np.arange(width), INPUTS + np.arange(width) % GATES] = 4.0
    tops = None if top is None else np.full(width, top)
    return MinGruLayer("fading", ("input",), weight, np.zeros(width), gate, np.zeros(width), tops)


def network_of(*layers):
    rng, names = np.random.default_rng(2), tuple(layer.name for layer in layers)
    readout = Readout(names, rng.integers(-8, 9, (2, sum(layer.width for layer in layers))) / 8, np.zeros(2))
    encoding = InputEncoding(np.zeros(INPUTS + GATES), np.ones(INPUTS + GATES))
    return check_network(Network(encoding, layers, readout, weight_grid=1 / 8))


def sequences(n, frames):
    """Inputs, those of gates so that a is spread from 0.0202 to 3.92: z from 0.02 to 0.98, behind a ratio gate 0.86."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, (n, frames, INPUTS + GATES))
    x[:, :, INPUTS:] = 0.00505 * (0.98 / 0.00505) ** x[:, :, INPUTS:]
    return x


@pytest.fixture
def design(technology, calibration):
    return compile_network(network_of(fading_layer()), technology, calibration)


@pytest.fixture(params=[None, TOP], ids=["exponential", "ratio"])
def gated(request, technology, calibration):
    """The same with either gate."""
    return compile_network(network_of(fading_layer(top=request.param)), technology, calibration)


@GATE
def test_the_layer_moves_by_z_and_goes_on_from_a_state(top):
    layer, x = fading_layer(top=top), sequences(2, 6)
    found = layer.run(x)
    rate = x @ layer.weight_gate.T
    z = 1 - np.exp(-(rate if top is None else top / (1 + np.exp(np.log(top) - np.log(rate)))))  # logistic in ln a
    wanted = np.zeros((2, 2))
    for t in range(6):
        wanted = (1 - z[:, t]) * wanted + z[:, t] * (x[:, t] @ layer.weight.T)
        np.testing.assert_allclose(found.h[:, t], wanted, atol=1e-12)
    front = layer.run(x[:, :3])
    np.testing.assert_array_equal(layer.run(x[:, 3:], front.last).h, found.h[:, 3:])


@pytest.mark.parametrize("gate", ["exponential", "ratio"])
def test_torch_is_the_layer(gate):
    torch = pytest.importorskip("torch")
    from cosim.training.cells import MinGruCell
    from cosim.training.config import Architecture

    torch.manual_seed(0)
    cell, x = MinGruCell(5, Architecture(cells=6, unit="mingru", gate=gate)), torch.rand(4, 70, 5)
    h = cell(x).h
    layer = cell.to_layer("fading", ("input",))
    assert (layer.top is None) == (gate == "exponential")
    # float32 over 70 steps of a contraction: some 1e-7 of states of up to 4
    np.testing.assert_allclose(layer.run(x.numpy().astype(np.float64)).h, h.detach().numpy(), atol=5e-6)
    h.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in cell.parameters())


@pytest.mark.parametrize(
    ("top", "words"),
    [
        (None, "fading: exponential gate; rate: weight 0 to 4, bias 0 to 0"),
        (TOP, "fading: ratio gate with tops of 4 to 4; rate: weight 0 to 4, bias 0 to 0"),
    ],
)
def test_inspect_says_what_gate_it_has(top, words):
    assert words in format_text(network_page(network_of(fading_layer(top=top)), "net.npz"))


def test_no_figure_says_how_near_to_a_threshold_it_is():
    pytest.importorskip("torch")
    from cosim.training.trainer import measure_figures

    x = sequences(4, 3).astype(np.float32)
    targets, lengths = np.zeros((4, 2), np.float32), np.full(4, 3)
    task = Task("fade", x, targets, x, targets, lengths, lengths, (), np.zeros(5), np.ones(5))
    assert "near_threshold" not in measure_figures(network_of(fading_layer()), task)


@GATE
def test_a_checkpoint_keeps_it(tmp_path, top):
    network = network_of(fading_layer(top=top))
    save_checkpoint(tmp_path / "net.npz", network)
    (layer,) = load_network(tmp_path / "net.npz").layers
    assert isinstance(layer, MinGruLayer) and list(layer.arrays()) == list(network.layers[0].arrays())
    for name, array in network.layers[0].arrays().items():
        np.testing.assert_array_equal(layer.arrays()[name], array)


def test_ideal_currents_give_the_software(gated):
    x = sequences(2, 20)
    trace = evaluate(gated.graph, gated.calibration, encode_inputs(gated.network.encoding, x), ideal=True)
    software = run_reference(gated.network, x).signals["fading"]
    for node in gated.graph.memories:
        np.testing.assert_allclose(node.step * trace.states[node.name], software[:, :, node.index], atol=1e-9)


def test_its_full_scale_is_the_largest_state(technology, calibration):
    """The bound of the candidate, or what the training data showed; tolerances are shares of it."""
    layer = fading_layer()
    bounds = layer.weight.sum(axis=1)
    network = network_of(layer)
    seen = replace(network, state_ranges={"fading": np.array([[0.0, 0.0], [0.3, 0.0]])})
    for one, wanted in ((network, bounds), (seen, [0.3, bounds[1]])):
        nodes = compile_network(one, technology, calibration).graph.memories
        np.testing.assert_allclose([node.step for node in nodes], wanted)


def test_what_it_refuses(technology, calibration):
    network = network_of(fading_layer())
    with pytest.raises(MappingError, match=r"tau must be 0\.25 of the frame, 0\.0025 s, not 0\.002 s; leave `tau` out"):
        compile_network(network, technology, calibration, CompilerSettings(tau=2e-3))
    with pytest.raises(
        MappingError, match=r"capacitor of a minGRU or of a line must lie in 0\.5 to 20 pF, not 0\.2.. pF"
    ):
        compile_network(network, technology, calibration, CompilerSettings(t_step=0.5e-3))
    with pytest.raises(MappingError, match="`cell=schmitt` is for layers with an epsilon, and there is none"):
        compile_network(network, technology, calibration, CompilerSettings(cell="schmitt"))
    bits = np.ones(2)
    held = FirstQuadrantLayer("held", ("input",), np.zeros((2, 5)), bits, 0.3 * bits, 0.6 * bits, bits)
    fading = replace(
        fading_layer(), sources=("input", "held_1"), weight=np.ones((2, 7)) / 8, weight_gate=np.ones((2, 7)) / 8
    )
    late = replace(network_of(held, fading_layer()), layers=(held, fading), late={"held_1": DelayedSignal("held")})
    with pytest.raises(MappingError, match="fading reads held.0 late, which may turn within the pulse"):
        compile_network(check_network(late), technology, calibration)


def test_a_largest_rate_has_its_limits():
    for top in (0.4, 17.0):
        with pytest.raises(NetworkError, match=r"fading\.top\[0\] must lie in 0\.5 to 16, not"):
            network_of(fading_layer(top=top))


def test_a_ratio_gate_has_one_pin_for_all(technology, calibration):
    """top i_unit / N, and its gate line p once."""
    design = compile_network(network_of(fading_layer(4, TOP)), technology, calibration)
    (pin,) = {pin for pins in design.assembly.cell_bias.values() for pin in pins}
    assert design.assembly.pushed == {pin}
    assert design.assembly.bias_pins[pin] == pytest.approx(TOP * design.i_unit / calibration.units)
    assert [row.element for row in map_parameters(design) if row.parameter.startswith("fading.top")] == 4 * [pin]
    assert RATIO in schematics_of(design.graph, design.assembly.circuit)
    other = compile_network(network_of(fading_layer()), technology, calibration)
    assert RATIO not in schematics_of(other.graph, other.assembly.circuit)


def test_its_chips_are_drawn(gated):
    x = sequences(2, 6)
    samples = TestSet(x, run_reference(gated.network, x).decisions, np.full(2, 6), np.arange(2))
    record = run_chip(Trial(gated, samples, VariationPlan("local", 3, 4)), 1)
    assert record.status == "ok"
    assert record.behavioral.state_agreement < 1.0  # loop and mirrors deviate by more than 3 %


def compare(design, x):
    """States, in h, of software, behavioral model and ngspice; and the comparison."""
    frames = x.shape[1]
    outcomes = [run_inference(inference_bench(design, one), read_plan(design, frames)) for one in x]
    wanted = run_reference(design.network, x).decisions
    comparison = compare_engines(design, TestSet(x, wanted, np.full(len(x), frames), np.arange(len(x))), outcomes)
    assert comparison is not None
    return comparison


@pytest.mark.ngspice
def test_transistors_follow_the_equation(gated):
    """Acceptance: 3 % of full scale over 50 frames for z in 0.02 to 0.98; here of 1 nA, and 1.5 % after the first.

    The first frame begins on an empty capacitor, and M2 opens with a jolt at d that costs some 30 us of the pulse.
    """
    x = sequences(1, 50)
    comparison = compare(gated, x)
    nanoampere = np.array([node.step for node in gated.graph.memories])
    behavioral = np.stack([run_behavioral(gated, x).states[node.name] for node in gated.graph.memories], axis=2)
    error = nanoampere * np.abs(comparison.engines["ngspice"].states - behavioral)
    assert error[:, 0].max() < 0.03 and error[:, 1:].max() < 0.015
    assert np.ptp(nanoampere * behavioral) > 0.4
    np.testing.assert_allclose(comparison.power_w["behavioral"], comparison.power_w["ngspice"], rtol=0.05)


@pytest.mark.ngspice
def test_its_testbench_shows_it(cosim_main, tmp_path, monkeypatch):
    """What `cosim compile` writes: the state is the s in the current of a transistor, within 3 % of full scale."""
    save_checkpoint(tmp_path / "net.npz", network_of(fading_layer(top=TOP)))
    assert cosim_main("compile", tmp_path / "net.npz", "-o", tmp_path / "out")[0] == 0
    monkeypatch.chdir(tmp_path / "out")
    waves = run_deck(Path("testbench.sp").read_text())
    assert not isinstance(waves, Failure), waves.detail
    rows = [row for row in csv.DictReader(Path("expected.csv").read_text().splitlines()) if row["unit"] == "1"]
    wanted = np.array([float(row["behavioral"]) for row in rows])
    rest, step = np.array([row["threshold_v"].removesuffix(" s").split(" + ") for row in rows], dtype=float).T
    found = [np.interp(float(row["time_s"]), waves["time"], np.abs(waves[row["vectors"]])) for row in rows]
    assert np.ptp(wanted) > 0.3
    np.testing.assert_allclose((found - rest) / step, wanted, rtol=0, atol=0.03)


@pytest.mark.ngspice
def test_bits_beside_it_stay_exact(technology, calibration):
    """4 minGRU and 4 BMRU in parallel on one chip: every bit of the BMRU, and every other state within 3 %."""
    rng, ones = np.random.default_rng(5), np.ones(4)
    weight = rng.integers(-6, 7, (4, INPUTS + GATES)) / 8
    held = FirstQuadrantLayer("held", ("input",), weight, 0.5 * ones, 0.25 * ones, 0.75 * ones, ones)
    network = network_of(fading_layer(4), held)
    design = compile_network(network, technology, calibration)
    assert {node.stage for node in design.graph.memories} == {0}
    x = np.round(16 * sequences(1, 12)) / 16
    comparison = compare(design, x)
    software, found = (comparison.engines[name].states for name in ("software", "ngspice"))
    assert 0.1 < software[:, :, 4:].mean() < 0.9
    np.testing.assert_array_equal(found[:, :, 4:], software[:, :, 4:])
    assert np.abs(found[:, :, :4] - software[:, :, :4]).max() < 0.03


@pytest.mark.ngspice
def test_a_leak_decays_by_its_formula(technology, calibration):
    """exp(-t I_leak / (C n U_T)) for 100 fA onto the capacitor, within 20 %: n U_T is that of larger states."""
    fit, leak, seconds = tau_cell_fit(calibration), 100e-15, (1.1, 1.75)
    drive = TauDrive(5e-12, fit.trim, np.full(2, 1e-9), np.array([8e-9, 0.0]), LATE_PULSE, Timing(t_step=1.0))
    bench = tau_cell_bench(technology, calibration.units, drive)
    source = Source("leak", "i", "vdd", f"xcell.{STATE_NODE}", leak)
    waves = run_bench(
        replace(bench, circuit=replace(bench.circuit, elements=(*bench.circuit.elements, source))), "leak"
    )
    early, late = np.interp(0.5 + np.array(seconds), waves.time, np.abs(waves.drain(STATE_DIODE)))
    wanted = (seconds[1] - seconds[0]) * leak / (drive.capacitance * fit.swing)
    assert np.log(early / late) == pytest.approx(wanted, rel=0.2)


def test_its_capacitor_goes_with_the_frame(technology, calibration, design):
    short = compile_network(design.network, technology, calibration, CompilerSettings(t_step=5e-3))
    sizes = [max(one.value for one in made.flat.elements if isinstance(one, Capacitor)) for made in (design, short)]
    assert sizes[0] / sizes[1] == pytest.approx(2.0)
    assert 4e-12 < sizes[0] < 6e-12
