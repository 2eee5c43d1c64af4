"""A designer's changes to transistors and bias currents: what a file may say, and what becomes of the circuit."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError
from cosim.base.resources import trained_network_path
from cosim.circuit.dialects.table import DIALECTS
from cosim.circuit.elements import GROUND, Circuit, Instance, Mos, Subcircuit
from cosim.compiler.overrides import (
    BiasOverride,
    Overrides,
    TransistorOverride,
    format_overrides,
    matches,
    override_transistors,
    read_overrides,
)
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.exchange.checkpoint import load_network
from cosim.mask.record import _whose
from cosim.tasks.testset import TestSet
from cosim.units.schmitt import Schmitt
from cosim.variation.draws import VariationPlan, varying_devices
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.montecarlo.run import run_settings
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.trim.trim import measure_behavioral, measure_cell

WEIGHT = "network.row_layer1_0.w2"
OWN = Overrides(
    (
        TransistorOverride(mirror="bias_thresh_#", times=2),
        TransistorOverride(name=WEIGHT, w=2e-6, l=10e-6, m=3),
        TransistorOverride(name="network.cell_layer2_?.*", role="level", l=6e-6),
    ),
    (BiasOverride(pin="bias_width_0", current=1.5e-9), BiasOverride(pin="bias_gain_*", factor=1.25)),
)


@pytest.fixture(scope="module")
def network():
    return load_network(trained_network_path("digits_d4"))


@pytest.fixture(scope="module")
def compiled(network, technology, calibration):
    """Overrides -> design of a small network."""

    def build(overrides=Overrides(), **settings):
        return compile_network(
            network, technology, calibration, CompilerSettings(overrides=overrides, **settings), "net.pt"
        )

    return build


def test_a_file_is_read_as_it_was_written(tmp_path):
    (tmp_path / "own.toml").write_text(format_overrides(OWN))
    assert read_overrides(tmp_path / "own.toml") == OWN
    (tmp_path / "own.toml").write_text('[[transistors]]\nw = "2u"\nl = 1e-5\n[[bias]]\npin = "a"\ncurrent = "1.2 nA"\n')
    read = read_overrides(tmp_path / "own.toml")
    assert (read.transistors[0].w, read.transistors[0].l, read.bias[0].current) == (2e-6, 1e-5, 1.2e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have an entry or more"),
        ("x = [", "TOML"),
        ("[[devices]]\nw = 1\n", "'devices' is no list of entries"),
        ("transistors = 3\n", "transistors must be entries, each under [[transistors]], not 3"),
        ("bias = [3]\n", "bias[0] must be an entry under [[bias]], not 3"),
        ('[[transistors]]\nm = 2\n[[transistors]]\nwide = "2u"\n', "transistors[1]: wide is no field"),
        ('[[transistors]]\nname = "a"\n', "transistors[0]: must have w, l, and m or times"),
        ("[[transistors]]\nm = 2\ntimes = 2\n", "m and times exclude each other"),
        ("[[transistors]]\nm = 0\n", "transistors[0]: m must lie in 1 to 10000, not 0"),
        ("[[transistors]]\nm = 1.5\n", "transistors[0]: m must be"),
        ('[[transistors]]\nw = "2 A"\n', "transistors[0]: w must be a number in m such as"),
        ('[[transistors]]\nw = "2"\n', "transistors[0]: w must lie in 1e-08 to 0.001 m, not 2 m"),
        ("[[transistors]]\nl = nan\n", "transistors[0]: l must lie in"),
        ('[[transistors]]\nrole = "thresh"\nm = 2\n', "transistors[0]: role must be a known value, not 'thresh'"),
        ("[[bias]]\nfactor = 2\n", "bias[0]: must have the field pin"),
        ('[[bias]]\npin = "a"\n', "bias[0]: must have a current or a factor"),
        ('[[bias]]\npin = "a"\nfactor = 2.0\ncurrent = 1e-9\n', "bias[0]: must have a current or a factor, one"),
        ('[[bias]]\npin = "a"\ncurrent = 0\n', "bias[0]: current must lie in 1e-13 to 1e-06 A, not 0 A"),
        ('[[bias]]\npin = "a"\nfactor = 1e9\n', "bias[0]: factor must lie in 0.01 to 100, not 1e+09"),
        ('[[bias]]\npin = "a\\u007f"\nfactor = 2\n', "bias[0]: pin must be printable ASCII text of 1 to 200"),
        ('[[transistors]]\nmirror = ""\nm = 2\n', "transistors[0]: mirror must be printable ASCII text of 1 to"),
        ('[[transistors]]\nname = "\u00e9"\nm = 2\n', "transistors[0]: name must be printable ASCII text"),
    ],
)
def test_what_a_file_may_not_say(tmp_path, text, message):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_overrides(tmp_path / "own.toml")
    assert "own.toml" in str(caught.value) and message in str(caught.value)


def test_only_what_is_meant_is_changed(compiled):
    """The circuit without subcircuits is that of before, with the sizes and currents that the entries give."""
    before, after = compiled(), compiled(OWN)
    old = {one.name: one for one in before.flat.elements if isinstance(one, Mos)}
    new = {one.name: one for one in after.flat.elements if isinstance(one, Mos)}
    assert old.keys() == new.keys()
    wanted = dict(old)
    for name, mos in old.items():
        if mos.match.startswith("bias_thresh_"):
            wanted[name] = replace(mos, m=2 * mos.m)
        if mos.role == "level" and name.startswith("network.cell_layer2_"):
            wanted[name] = replace(mos, l=6e-6)
    wanted[WEIGHT] = replace(old[WEIGHT], w=2e-6, l=10e-6, m=3)
    assert new == wanted and sum(new[name] != old[name] for name in old) == 2 * 8 + 4 + 1
    factors = {"bias_gain_0": 1.25, "bias_width_0": 1.5e-9 / before.assembly.bias_pins["bias_width_0"]}
    for pin, current in before.assembly.bias_pins.items():
        assert after.assembly.bias_pins[pin] == pytest.approx(factors.get(pin, 1) * current, rel=1e-12)
    assert compiled().compiled is None and after.compiled.circuit == before.assembly.circuit


def test_equal_instances_share_a_subcircuit(compiled):
    """Cells of layer 2 have another level: one more definition of the cell, and the rest are those of before."""
    before, after = compiled().assembly.circuit, compiled(OWN).assembly.circuit
    old, new = ([block.name for block in one.subcircuits] for one in (before, after))
    (cell,) = (name for name in old if name.startswith("schmitt"))
    assert [name for name in new if name not in old] == ["bias_diode_changed_1", f"{cell}_changed_1"]
    assert new[-1] == "network"
    used = {one.name: one.subcircuit for one in after.subcircuits[-1].elements if isinstance(one, Instance)}
    assert used["cell_layer1_0"] == cell and used["cell_layer2_3"] == f"{cell}_changed_1"
    text = format_netlist(compiled(OWN))
    assert text.count(f".subckt {cell}") == 2 and text.index(f"{cell}_changed_1 ") < text.index(".subckt network")


def test_every_dialect_writes_a_changed_circuit(compiled):
    for dialect in DIALECTS:
        assert "_changed_1" in format_netlist(compiled(OWN), dialect), dialect.name


def nested(cascode=True):
    """A block of two mirrors in a block; the mirror's devices are self-cascodes."""

    def pair(name, match):
        lower = Mos(name, "mid", "g", GROUND, GROUND, "n", 1e-6, 5e-6, match=match, role="level")
        return (lower, replace(lower, name=f"{name}c", w=5e-6, l=1e-6, match=f"{match}.upper"))

    mirror = Subcircuit("mirror", ("g",), pair("a", "g") if cascode else pair("a", "g")[:1])
    outer = Subcircuit("outer", ("g",), (Instance("one", ("g",), "mirror"), Instance("two", ("g",), "mirror")))
    return Circuit("t", (mirror, outer), (Instance("x", ("in",), "outer"), Instance("y", ("other",), "outer")))


def sizes(circuit):
    return {mos.name: (round(1e6 * mos.w, 3), round(1e6 * mos.l, 3), mos.m) for mos in circuit.flatten()}


def test_the_upper_device_of_a_self_cascode_follows_in_number_alone(technology):
    def changed(**entry):
        return sizes(override_transistors(nested(), Overrides((TransistorOverride(**entry),)), technology, "net"))

    plain, upper = (1, 5, 1), (5, 1, 1)
    found = changed(mirror="in", times=3, w=2e-6)
    assert found["x.one.a"] == (2, 5, 3) and found["x.two.ac"] == (5, 1, 3) and found["y.one.ac"] == upper
    assert changed(name="x.one.ac", w=8e-6)["x.one.ac"] == (8, 1, 1)
    found = changed(name="?.one.*", l=6e-6)
    assert (
        found["x.one.a"] == found["y.one.a"] == (1, 6, 1) and found["x.one.ac"] == upper and found["x.two.a"] == plain
    )


def test_a_subcircuit_that_no_instance_needs_as_it_was_is_not_written_twice(technology):
    every = override_transistors(nested(), Overrides((TransistorOverride(times=2),)), technology, "net")
    assert [block.name for block in every.subcircuits] == ["mirror", "outer"]
    one = override_transistors(nested(), Overrides((TransistorOverride(name="x.two.a", m=7),)), technology, "net")
    assert [block.name for block in one.subcircuits] == ["mirror", "mirror_changed_1", "outer", "outer_changed_1"]
    assert sizes(one)["x.two.a"] == (1, 5, 7) and sizes(one)["y.two.a"] == (1, 5, 1)


def test_entries_apply_in_their_order(technology):
    twice = Overrides((TransistorOverride(m=3), TransistorOverride(name="x.*", times=2)))
    found = sizes(override_transistors(nested(), twice, technology, "net"))
    assert found["x.one.a"][2] == 6 and found["y.one.a"][2] == 3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (Overrides((TransistorOverride(name="network.cell_layr1_0.2", m=2),)),
         r"net.pt: transistors\[0\] of `overrides` .* no name network.cell_layr1_0.2, but .*cell_layer1_0"),
        (Overrides((TransistorOverride(m=2), TransistorOverride(mirror="bias_tresh_#", m=2))),
         r"transistors\[1\] .* has no mirror bias_tresh_#, but .*bias_thresh_"),
        (Overrides((TransistorOverride(role="sink", mirror="bias_thresh_0", m=2),)),
         "is for no transistor, because none has .*mirror bias_thresh_0 and role sink together"),
        (Overrides((), (BiasOverride(pin="bias_tresh_0", factor=2),)), r"bias\[0\] .* no pin bias_tresh_0, but bias_"),
        (Overrides((), (BiasOverride(pin="bias_thresh_[0]", factor=2),)), r"no pin bias_thresh_\[0\]"),
    ],
)  # fmt: skip
def test_an_entry_must_be_for_something(compiled, overrides, message):
    with pytest.raises(MappingError, match=message):
        compiled(overrides)


def test_names_are_matched_by_patterns():
    assert matches("layer#_#_p", "layer1_12_p") and not matches("layer#_#_p", "layer1_2_beta_p")
    assert matches("in_*_p", "in_0_shift1_0_p") and matches("in_?", "in_4") and not matches("in_?", "in_40")
    assert matches("*a*b", "xaabab") and matches("#1_#", "311_2") and not matches("a*b", "ba") and matches("a**", "a")
    assert not matches("*?" * 90 + "!", "network.row_layer1_0_network_" + "a" * 60)  # soon
    assert not matches("*" * 100 + "x" + "#" * 90, "network.row_layer1_0_" + "1" * 60)
    assert not matches("a.c", "abc") and not matches("[ab]", "a") and matches("*", "")


def test_sizes_have_bounds(compiled):
    with pytest.raises(InputError, match="l must be at least 4e-07 m, the smallest that cosim draws in generic180"):
        compiled(Overrides((TransistorOverride(name=WEIGHT, l=0.1e-6),)))
    often = tuple(TransistorOverride(name=WEIGHT, times=1000) for _ in range(2))
    with pytest.raises(InputError, match="devices of network.row_layer1_0.w2 in parallel must lie in 1 to 10000"):
        compiled(Overrides(often))
    with pytest.raises(InputError, match="current into bias_gain_0 must lie in 1e-13 to 1e-06 A, not"):
        compiled(Overrides((), tuple(BiasOverride(pin="bias_gain_0", factor=100.0) for _ in range(2))))


def test_sides_are_on_the_layout_grid(compiled):
    with pytest.raises(InputError, match=r"w must be a multiple of generic180's layout grid 5e-09 m.*; 2.005e-06 m is"):
        compiled(Overrides((TransistorOverride(name=WEIGHT, w=2.003e-6),)))


def test_the_equations_know_what_a_mirror_keeps(compiled, network):
    """A whole mirror of more devices has the same ratio; more devices of one weight change one output."""
    x = np.random.default_rng(2).uniform(size=(20, 8, network.encoding.features))
    plain, whole = run_behavioral(compiled(), x), run_behavioral(compiled(Overrides((TransistorOverride(times=2),))), x)
    for cell, states in plain.states.items():
        np.testing.assert_array_equal(whole.states[cell], states)
    np.testing.assert_allclose(whole.readout, plain.readout, rtol=1e-9, atol=1e-18)
    weight = next(
        one.name for one in compiled().assembly.circuit.flatten() if one.name.startswith("network.row_readout_3.")
    )
    more = run_behavioral(compiled(Overrides((TransistorOverride(name=weight, times=2),))), x).readout - plain.readout
    assert (np.abs(more[..., 3]) > 0.1e-9).all() and not np.delete(more, 3, axis=-1).any()


def test_transistors_do_what_the_equations_say(compiled, network):
    """A bias current, and a weight's number of devices: the readout in ngspice follows that of the equations.

    They agree within 0.1 units for a circuit without overrides (its calibration leaves 1 % of each of some ten terms of
    about one unit); the overrides move the equations by more than five times that.
    """
    pytest.importorskip("PySpice")
    own = Overrides((), (BiasOverride(pin="bias_gain_*", factor=1.5),))
    x = np.random.default_rng(2).uniform(size=(1, 4, network.encoding.features))
    samples = TestSet(x, np.zeros(1, dtype=np.int64), np.array([4]), np.arange(1))
    plain, changed = compiled(), compiled(own)
    before, after = (run_behavioral(one, x).readout / one.i_unit for one in (plain, changed))
    (outcome,) = simulate_samples(changed, samples, Run(jobs=0))
    assert isinstance(outcome, Inference)
    assert np.abs(after - before).max() > 0.5
    assert np.abs(outcome.readout / changed.i_unit - after[0]).max() < 0.1


def test_more_devices_vary_less(compiled, technology):
    plan = VariationPlan("local", 0, 1)
    before, after = (
        {one.name: one for one in varying_devices(design.assembly.circuit, technology, plan)}
        for design in (compiled(), compiled(Overrides((TransistorOverride(mirror="bias_thresh_#", times=4),))))
    )
    assert after["network.bias_thresh_0.diode"].sigma_vt == pytest.approx(
        before["network.bias_thresh_0.diode"].sigma_vt / 2
    )
    assert after[WEIGHT] == before[WEIGHT]


def test_a_store_of_chips_holds_one_circuit(compiled, network):
    x = np.zeros((1, 4, network.encoding.features))
    samples = TestSet(x, np.zeros(1, dtype=np.int64), np.array([4]), np.arange(1))
    bias = (Overrides((), (BiasOverride(pin="bias_gain_0", factor=factor),)) for factor in (1.1, 1.2))
    first, second, none = (
        run_settings(Trial(compiled(one), samples, VariationPlan("local", 0, 1)))["design"]
        for one in (*bias, Overrides())
    )
    assert first["overrides"] != second["overrides"] and "overrides" not in none


def test_trim_measures_the_changed_cell(compiled, network):
    """The threshold of a cell whose bias current is doubled, and whose mirror of the level has half a diode.

    Both as the equations have them, within 2 % of the slow ramp's own error (a step of it is 1 % of the threshold).
    """
    pytest.importorskip("PySpice")
    own = Overrides(
        (TransistorOverride(name="network.bias_gain_0.diode", m=2),), (BiasOverride(pin="bias_thresh_#", factor=1.5),)
    )
    x = np.random.default_rng(2).uniform(size=(1, 4, network.encoding.features))
    samples = TestSet(x, np.zeros(1, dtype=np.int64), np.array([4]), np.arange(1))
    for overrides in (Overrides(), own):
        trial = Trial(compiled(overrides), samples, VariationPlan("none", 0, 1))
        cell = next(iter(trial.design.graph.of(Schmitt)))
        wanted = measure_behavioral(trial, trial.nominal_chip)[cell.name]
        found = measure_cell(trial, trial.nominal_chip, cell, 1.3 * wanted.rise)
        assert found.rise == pytest.approx(wanted.rise, rel=0.03) and found.level == pytest.approx(
            wanted.level, rel=0.03
        )


def test_a_layout_of_another_circuit_is_no_layout_of_this_one(compiled):
    assert _whose(compiled()) != _whose(compiled(OWN)) == _whose(compiled(OWN))


def test_a_page_and_the_settings_name_what_changed(cosim_main, tmp_path):
    (tmp_path / "own.toml").write_text(format_overrides(OWN))
    network = trained_network_path("digits_d4")
    assert cosim_main("compile", network, "--overrides", tmp_path / "own.toml", "-o", tmp_path / "out")[0] == 0
    design = json.loads((tmp_path / "out" / "design.json").read_text())
    assert (design["overridden_transistors"], design["overridden_pins"]) == (21, 2)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What --overrides change" in page and "3 x 2/10 um" in page and "1.5 nA" in page
    (tmp_path / "own.toml").write_text('[[bias]]\npin = "bias_none"\nfactor = 2.0\n')
    code, _, err = cosim_main("compile", network, "--overrides", tmp_path / "own.toml", "-o", tmp_path / "new")
    assert code == 2 and "of --overrides is for nothing" in " ".join(err.split()) and not (tmp_path / "new").exists()
