"""The thermometer register: software, compiler and behavioral equations alike, what is refused, and transistors."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError, MissingToolError, NetworkError
from cosim.cells.register import LEVEL_OFF, LEVEL_ON, level, register, register_blocks, register_ports
from cosim.circuit.elements import Mos
from cosim.compiler.lower import lower
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.effects import Deviations, effects_of
from cosim.engines.behavioral.evaluate import cell_of, evaluate
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.chip import deviations_of
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.ir.states import software_states
from cosim.network.layers import SignedLayer, on_levels
from cosim.network.reference import encode_inputs, run_reference, threshold_distances
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network, network_to_arrays
from cosim.tasks.testset import TestSet
from cosim.technology.catalog import load_technology
from cosim.technology.scale import units_for
from cosim.units.register import KEEP, RegisterFactors
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.calibrate.find import find_calibration

LEVELS, FRAMES = 8, 24


def registers(levels=LEVELS, **fields):
    """Two units of inputs x, w: both write +v where w is 1, -v where it is 0; v = 2 x - 1, and 5/8 + w/4 - 3 x/2."""
    layer = SignedLayer(
        "layer0", ("input",), np.array([[0.0, 2.0]] * 2), -np.ones(2), np.full(2, 0.5), np.array([-1.0, 0.625]),
        weight_alpha=np.array([[2.0, 0.0], [-1.5, 0.25]]), levels=levels,
    )  # fmt: skip
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=16)
    readout = Readout(("layer0",), np.eye(2), np.zeros(2), "last")
    return check_network(Network(encoding, (replace(layer, **fields),), readout, weight_grid=1 / 8))


def inputs(n, frames=FRAMES, seed=5):
    """x on the converter's levels, w of 0, 1/2 (nothing is written) or 1."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, 17, (n, frames)) / 16, rng.integers(0, 3, (n, frames)) / 2], axis=2)


def states_of(design, trace):
    return np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)


@pytest.fixture
def design(technology, calibration):
    return compile_network(registers(), technology, calibration)


def test_an_update_stores_the_nearest_level_and_nothing_else_changes_it():
    """By the equation, one step after the other; the start is -alpha on the grid."""
    (layer,) = registers().layers
    x = inputs(9)
    h, before = layer.run(x).h, layer.start
    np.testing.assert_array_equal(before, [1.0, -0.5])  # 1, and -0.625 between -0.75 and -0.5: the upper one
    for t in range(FRAMES):
        value = (2 * x[:, t, 1:] - 1) * (x[:, t] @ layer.weight_alpha.T + layer.alpha)
        near = -1 + np.floor((value + 1) / 0.25 + 0.5).clip(0, 8) * 0.25
        before = np.where(x[:, t, 1:] == 0.5, before, near)
        np.testing.assert_array_equal(h[:, t], before)
    assert len(np.unique(h)) == LEVELS + 1


@pytest.mark.parametrize("levels", [1, 3, 8, 12])
def test_levels(levels):
    found = on_levels(np.linspace(-1.4, 1.4, 2001), levels)
    assert len(np.unique(found)) == levels + 1
    assert found.min() == -1
    assert found.max() == 1
    inside = np.linspace(-1, 1, 2001)
    assert np.abs(on_levels(inside, levels) - inside).max() <= 1 / levels + 1e-12


@pytest.mark.parametrize("levels", [1, 3, 8])
def test_behavioral_states_are_the_softwares(levels, technology, calibration):
    """Without deviations, ideal and as calibrated, with the pins that the compiler has found."""
    network, x = registers(levels), inputs(20)
    design = compile_network(network, technology, calibration)
    wanted = software_states(design.graph, run_reference(network, x))
    assert len(np.unique(wanted)) == levels + 1
    for ideal in (True, False):
        trace = run_behavioral(design, x, ideal=ideal)
        np.testing.assert_array_equal(states_of(design, trace), wanted)
    power = sum(behavioral_power(design, trace).values())
    assert (power > 1e-9).all()
    assert (power < 1e-6).all()


def test_comparators_of_the_window_may_have_several_devices(technology, calibration):
    design = compile_network(registers(), technology, calibration, CompilerSettings(comparator_devices=4))
    devices = {one.name: one.m for one in design.assembly.circuit.flatten()}
    effects = [effect for effect in effects_of(design) if effect.field in ("upper", "lower")]
    assert effects and all(devices[name] == 4 for effect in effects for name, _ in effect.devices)


def test_turns_stand_between_the_values():
    """Values of v = 2 x - 1 are multiples of 1/8 and of the other 1/64; a turn at one of them moves half a gap down."""
    nodes = compile_nodes()
    step = {0: 1 / 8, 1: 1 / 64}
    for node in nodes:
        np.testing.assert_allclose(node.turns, [(k + 0.5) / 4 - step[node.index] / 2 for k in range(LEVELS)])
        assert node.most == LEVELS
    assert [node.start for node in nodes] == [8, 2]


def compile_nodes():
    from cosim.compiler.centre import centre

    return list(centre(lower(registers())).memories)


def test_feedback_goes_on_from_a_state(technology, calibration):
    """A unit whose candidate reads its own level a frame late: frame by frame as the layer has it."""
    network = registers()
    (layer,) = network.layers
    fed = replace(
        layer, sources=("input", "layer0_1"), weight=np.concatenate([layer.weight, -np.eye(2)], axis=1),
        weight_alpha=np.concatenate([layer.weight_alpha, np.zeros((2, 2))], axis=1),
    )  # fmt: skip
    network = check_network(replace(network, layers=(fed,), late={"layer0_1": DelayedSignal("layer0")}))
    design, x = compile_network(network, technology, calibration), inputs(10)
    wanted = software_states(design.graph, run_reference(network, x))
    np.testing.assert_array_equal(states_of(design, run_behavioral(design, x)), wanted)
    moving = replace(fed, weight_alpha=np.ones_like(fed.weight_alpha))
    with pytest.raises(MappingError, match=r"weight_alpha\[0,\*\] reads layer0.0 late, which turns while the value"):
        lower(replace(network, layers=(moving,)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"levels": None}, "layer0 is an alphaCMRU without a grid: .* train with `levels=8`"),
        ({"epsilon": 0.5}, "layer0.epsilon must be 0 for an alphaCMRU, not 0.5"),
    ],
)
def test_what_no_register_follows_is_refused(change, text):
    with pytest.raises(MappingError, match=text):
        lower(registers(**change))


def test_a_cell_that_was_asked_for_is_not_a_register():
    with pytest.raises(MappingError, match="becomes a register, not a schmitt; compile with `cell=auto`"):
        lower(registers(), cell="schmitt")


@pytest.mark.parametrize(
    ("change", "text"),
    [({"weight_alpha": None}, "levels is for an alphaCMRU"), ({"levels": 33}, "levels must lie in 1 to 32, not 33")],
)
def test_levels_that_no_unit_has(change, text):
    with pytest.raises(NetworkError, match=text):
        registers(**change)


def test_too_many_levels_for_the_current(technology, calibration):
    text = "lowest turn must be at least 10 pA, not 7.36 pA; compile with `i_unit=330p`, which suits all cells"
    with pytest.raises(MappingError, match=text):
        compile_network(replace_levels(registers(), 32), technology, calibration, settings_of(0.2e-9))


def replace_levels(network, levels):
    (layer,) = network.layers
    return replace(network, layers=(replace(layer, levels=levels),))


def settings_of(i_unit):
    from cosim.compiler.settings import CompilerSettings

    return CompilerSettings(i_unit=i_unit)


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_a_checkpoint_keeps_the_levels(suffix, tmp_path):
    if suffix == ".pt":
        pytest.importorskip("torch")
    path = tmp_path / f"net{suffix}"
    save_checkpoint(path, registers())
    (layer,) = load_network(path).layers
    assert isinstance(layer, SignedLayer)
    assert layer.levels == LEVELS


def test_an_earlier_cosim_refuses_the_file():
    """Version 3: it would leave the levels out without a word."""
    assert network_to_arrays(registers())[1]["version"] == 3
    arrays, meta = network_to_arrays(registers(levels=None))
    assert meta["version"] == 1
    assert all("levels" not in layer for layer in meta["layers"])
    assert "layers.0.weight_alpha" in arrays


def test_report_names_every_turn(design):
    rows = {row.parameter: row for row in map_parameters(design)}
    turns = [rows[f"layer0.alpha[1] (turn {k})"] for k in range(1, LEVELS + 1)]
    assert all(row.element.startswith("bias_turn_") for row in turns)
    steps = np.diff([row.target for row in turns])
    np.testing.assert_allclose(steps, 0.25e-9, rtol=1e-9)
    weight = rows["layer0.weight_alpha[1,0] (neg)"]
    assert weight.target == 1.5
    assert weight.note == "learned -1.5; sign turned"
    assert rows["layer0.alpha[1] (pos)"].note.startswith("learned 0.625; common-mode offset +1")


def test_a_value_turns_a_level_at_its_turn_and_nowhere_else(design):
    """The turns that margins are measured from are those by which the equations decide."""
    for node in design.graph.memories:
        factors = RegisterFactors(turns=tuple(1 + 0.01 * k for k in range(LEVELS)))
        cell = cell_of(design.graph, node, design.calibration, factors)
        found = node.switching_thresholds(cell, ())
        probes = np.array([turn * (1 + side) for turn in found.turns for side in (-1e-9, 1e-9)])[None]
        for candidate, sign in ((2 * found.while_off[0], 0), (0.5 * found.while_off[1], 1)):
            values = [np.zeros_like(probes), np.zeros_like(probes)]
            values[sign] = probes
            states = node.compute_states(replace(cell, values=tuple(values)), np.full_like(probes, candidate))
            np.testing.assert_array_equal(states[0], np.repeat(np.arange(LEVELS + 1), 2)[1:-1])


def test_the_distance_of_a_written_value_counts_as_that_of_a_candidate():
    """In software: a value moved by less writes the same level, one moved by more another."""
    network, x = registers(), inputs(20)
    (layer,), trace = network.layers, run_reference(network, x)
    value = (2 * x[..., 1:] - 1) * layer.step(x)
    to_threshold = np.abs(np.abs(trace.layers["layer0"].candidate) - layer.bias_beta)
    found, written = threshold_distances(network, trace), x[..., 1:] != 0.5
    by_value = found < to_threshold
    assert by_value.mean() > 0.5
    assert not (by_value & ~written).any()
    for moved, same in ((0.999 * found, True), (1.001 * found, False)):
        near = [on_levels(value + side * moved, LEVELS) == on_levels(value, LEVELS) for side in (-1, 1)]
        assert (np.all(near, axis=0) == same)[by_value & (found > 0)].all()


def test_deviations_reach_turns_and_levels(design):
    """A turn 30 % higher is missed by a value 20 % above it; levels add up as they are."""
    x = np.tile([0.5, 1.0], (1, 3, 1))  # v = 1/8 over the offset of 1: above turns 1 to 4, the highest at 0.867
    node = list(design.graph.memories)[1]
    factors = [1.0] * LEVELS
    encoded = encode_inputs(design.network.encoding, x)
    assert evaluate(design.graph, design.calibration, encoded).states[node.name][0, -1] == 5
    factors[3] = 1.35
    moved = Deviations(cells={node.name: RegisterFactors(turns=tuple(factors))})
    assert evaluate(design.graph, design.calibration, encoded, moved).states[node.name][0, -1] == 4
    levels = Deviations(cells={node.name: RegisterFactors(levels=(1.1,) * LEVELS)})
    plain = evaluate(design.graph, design.calibration, encoded).currents[node.name][0, -1]
    more = evaluate(design.graph, design.calibration, encoded, levels).currents[node.name][0, -1]
    pedestal = design.graph.i_pedestal
    np.testing.assert_allclose(more - pedestal, 1.1 * (plain - pedestal), rtol=1e-12)


def test_a_chip_has_factors_of_all_levels(design, technology):
    plan = VariationPlan("local", 0, 6)
    chip = draw_chip(varying_devices(design.assembly.circuit, technology, plan), technology, plan, 3)
    found = deviations_of(design, design.nominal, chip)
    for node in design.graph.memories:
        factors = found.cells[node.name]
        assert len(factors.turns) == len(factors.levels) == LEVELS
        assert len({*factors.turns, *factors.levels, factors.upper, factors.lower}) == 2 * LEVELS + 2


def test_transistors(technology):
    """A level 13, a decision 10 with its comparator; in front 2 of the gates' line, 6 of `write` and `writeb`, 2 that
    switch the value, 1 output diode."""
    assert sum(isinstance(element, Mos) for element in level(technology, 8, on=False).elements) == 13
    top = register(technology, 8, LEVELS, 2)
    own = [element for element in top.elements if isinstance(element, Mos)]
    assert len(own) == 2 + 6 + 2 + 1
    kinds = [element.subcircuit for element in top.elements if not isinstance(element, Mos)]
    assert kinds.count(LEVEL_ON) == 2
    assert kinds.count(LEVEL_OFF) == LEVELS - 2


def test_every_net_is_used_twice_or_is_a_port(technology):
    """A net with one terminal is a typing error, but for `down`, which no gate of a register needs."""
    for cell in (register(technology, 8, LEVELS, 2), *register_blocks(technology, 8)):
        terminals = []
        for element in cell.elements:
            terminals += (element.drain, element.gate, element.source) if isinstance(element, Mos) else element.nets
        for net in set(terminals) - {"0", "down"}:
            assert net in cell.ports or terminals.count(net) > 1, net
        assert set(cell.ports) - {"vdd"} <= set(terminals)
    assert set(register_ports(LEVELS)) == set(register(technology, 8, LEVELS, 0).ports)


@pytest.mark.ngspice
def test_transistors_store_what_the_software_stores(batch, design):
    """Both signs, holds and both resets; half a gap of the finer lattice, 8 pA, is the nearest that a value comes to a
    turn. Power against the equations: 1 %, what the settled currents leave of the frame."""
    x = inputs(4, 16, seed=2)
    test_set = TestSet(x, np.zeros(4, dtype=np.int64), np.full(4, 16), np.arange(4))
    outcomes = simulate_samples(design, test_set, Run(engine="batch"))
    assert all(isinstance(outcome, Inference) for outcome in outcomes)
    wanted = software_states(design.graph, run_reference(design.network, x))
    np.testing.assert_array_equal(np.stack([outcome.states for outcome in outcomes]), wanted)
    assert len(np.unique(wanted)) == LEVELS + 1
    readout = np.stack([outcome.readout for outcome in outcomes]) / design.i_unit
    reference = run_reference(design.network, x).readout
    held = (
        x[:, :, 1] == 0.5
    )  # a frame behind a write all has settled; 0.3 %: the fit of a level, 8 of them, and mirrors
    held[:, 0] = False
    assert np.abs(readout - reference)[held].max() < 0.02
    np.testing.assert_allclose(
        np.mean([outcome.power_w for outcome in outcomes]),
        sum(behavioral_power(design, run_behavioral(design, x)).values()).mean(),
        rtol=0.01,
    )


def apart(steady=0.0):
    """One unit that writes v = 2 y - 1 with the sign of h = 2 x - 1 + steady (z - 1) where that is beyond 1/4."""
    layer = SignedLayer(
        "layer0", ("input",), np.array([[2.0, 0.0, steady]]), np.array([-1.0 - steady]), np.array([0.25]),
        np.array([-1.0]), weight_alpha=np.array([[0.0, 2.0, 0.0]]), levels=LEVELS,
    )  # fmt: skip
    readout = Readout(("layer0",), np.eye(1), np.zeros(1), "last")
    return check_network(Network(InputEncoding(np.zeros(3), np.ones(3)), (layer,), readout, weight_grid=1 / 8))


@pytest.mark.ngspice
@pytest.mark.parametrize("side", [1, -1])
def test_however_close_a_decision_is_all_levels_are_written_or_none(batch, side, technology, calibration):
    """From no level on to all of them, with candidates up to 8 pA on either side of a threshold, 0.5 pA apart.

    Both are found, since calibration is better than 4 pA. Where a comparator wrote without a latch, some levels were.
    """
    design = compile_network(apart(), technology, calibration)
    h = np.array([[1.0, 0.0, side * (0.25 + step)] for step in np.arange(-0.008, 0.0081, 0.0005)])
    x = np.stack([(h + 1) / 2, np.broadcast_to([0.0, 0.5, (1 + side) / 2], h.shape), np.ones(h.shape)], axis=2)
    test_set = TestSet(x, np.zeros(len(h), np.int64), np.full(len(h), 3), np.arange(len(h)))
    states = np.stack([outcome.states for outcome in simulate_samples(design, test_set, Run(engine="batch"))])
    assert set(states[:, 1, 0]) == {0}
    assert set(states[:, 2, 0]) == {0, LEVELS}


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("devices", "steady", "side"),
    [
        (1, 0.0, -1),
        (4, 2.5, 1),
        pytest.param(1, 0.0, 1, marks=pytest.mark.slow),
        pytest.param(4, 2.5, -1, marks=pytest.mark.slow),
    ],
)
def test_both_comparators_decide_where_they_are_calibrated(side, devices, steady, technology, calibration):
    """Candidates 4 pA inside and outside of either threshold of the window, 0.75 and 0.25 nA, in the simulator that
    calibrated. The fits are read to 1 pA (`comparator_steps` of the calibration). A pMOS on the lower comparator turned
    at 3 % more, 8 pA. The candidate's diode of four devices stands 48 mV higher, where weights of 2.5 that cancel are
    apart by 6 pA: there the tables of the batched engine, good to 0.03 % of 2.5 nA, are 1 pA off."""
    design = compile_network(apart(steady), technology, calibration, CompilerSettings(comparator_devices=devices))
    inside, outside = (0.25 + step for step in (-0.004, 0.004))
    h = np.array([[1.0, 0.0, side * inside], [1.0, 0.0, side * outside]])
    x = np.stack([(h + 1) / 2, np.where(h == 1.0, 0.9, 0.5), np.ones(h.shape)], axis=2)
    wanted = software_states(design.graph, run_reference(design.network, x))[:, :, 0]
    np.testing.assert_array_equal(wanted, [[7, 7, 7], [7, 7, 4]])
    outcomes = simulate_samples(
        design, TestSet(x, np.zeros(2, np.int64), np.full(2, 3), np.arange(2)), Run(engine="ngspice")
    )
    np.testing.assert_array_equal(np.stack([outcome.states for outcome in outcomes])[:, :, 0], wanted)


@pytest.mark.ngspice
@pytest.mark.parametrize("before", [0.0, 1.0])
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("generic180", 128),
        pytest.param("gf180mcu", 256, marks=pytest.mark.slow),
        pytest.param("sky130", 128, marks=pytest.mark.slow),
    ],
)
def test_what_a_level_was_does_not_decide_what_it_becomes(batch, before, name, steps):
    """From no level on, and from all: values next to each turn, half a gap of 2 / steps away.

    That is 7.8 pA, in gf180mcu 3.9. Of it 1.3 are used where v0 has not yet come from the other rail (gf180mcu), 1 by
    the step of the calibration at 2 nA, and the rest by mirrors: 0.22 % of 1.9 nA in generic180, 0.1 % with cascodes. A
    turn stands between values of either sign, whose rows differ by 8.5 pA at the lowest turn of sky130: for 0.12 nA one
    pulls 0.12, the other pulls 2 and pushes 1.88, and the slope of sky130's n devices is 1.9 % a volt.
    """
    try:
        technology = load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    network = fine(steps)
    design = compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))
    near = np.array([[(k - 0.5) / LEVELS + gap / steps for k in range(1, LEVELS + 1)] for gap in (-1, 0)])
    x = np.ones((2, 2 * LEVELS, 2))
    x[:, ::2, 0], x[:, 1::2, 0] = before, near
    wanted = software_states(design.graph, run_reference(design.network, x))
    np.testing.assert_array_equal(wanted[:, 1::2, 0], [np.arange(LEVELS), np.arange(1, LEVELS + 1)])
    test_set = TestSet(x, np.zeros(2, dtype=np.int64), np.full(2, 2 * LEVELS), np.arange(2))
    outcomes = simulate_samples(design, test_set, Run(engine="batch"))
    np.testing.assert_array_equal(np.stack([outcome.states for outcome in outcomes]), wanted)
    margins = np.stack([outcome.margins for outcome in outcomes])[:, 1::2]
    np.testing.assert_allclose(margins, 1e-9 / steps, atol=5e-12)  # 0.22 % of 1.9 nA, and 1 for the rest


def fine(steps):
    """One unit that stores v = 2 x - 1, x in so many steps."""
    network = registers()
    (layer,) = network.layers
    one = replace(
        layer, weight=layer.weight[:1], bias=layer.bias[:1], bias_beta=layer.bias_beta[:1], alpha=layer.alpha[:1],
        weight_alpha=layer.weight_alpha[:1],
    )  # fmt: skip
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=steps)
    return check_network(
        replace(
            network,
            encoding=encoding,
            layers=(one,),
            readout=replace(network.readout, weight=np.eye(1), bias=np.zeros(1)),
        )
    )


def test_the_keeper_is_a_fraction_of_a_level():
    """What a level that is on costs beside its output: 3 keeps against a step of 2 / K."""
    assert 3 * KEEP < 2 / LEVELS


def test_options_of_training():
    from cosim.training.config import Architecture, TrainingConfig, check_config, describe_config

    with pytest.raises(InputError, match="--levels needs --cell alphacmru"):
        check_config(TrainingConfig(Architecture(levels=8)))
    scaled = Architecture(unit="signed", cell="alphacmru", levels=40)
    with pytest.raises(InputError, match="--levels must lie in 1 to 32, or 0 for any value, not 40"):
        check_config(TrainingConfig(scaled))
    settings = describe_config(TrainingConfig(replace(scaled, levels=8)))
    assert settings["architecture"]["levels"] == 8
    assert "levels" not in describe_config(TrainingConfig())["architecture"]


def test_the_torch_cell_stores_what_its_layer_stores():
    torch = pytest.importorskip("torch")
    from cosim.training.cells import SignedCell
    from cosim.training.config import Architecture

    torch.manual_seed(1)
    cell = SignedCell(2, Architecture(cells=3, unit="signed", cell="alphacmru", levels=LEVELS)).double()
    layer = cell.to_layer("layer0", ("input",))
    x = inputs(6)
    h = cell(torch.from_numpy(x)).h
    np.testing.assert_allclose(h.detach().numpy(), layer.run(x).h, atol=1e-12)
    h.square().sum().backward()
    assert cell.alpha is not None
    assert cell.alpha.weight.grad is not None
    assert cell.alpha.weight.grad.abs().sum() > 0  # rounding passes it straight through
