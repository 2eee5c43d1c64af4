"""Mapping report: every learned parameter once, its element in the netlist, and what was lost."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.mapping import CUT, EXACT, ROUNDED, ZERO, learned_arrays, map_parameters
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.network.layers import FirstQuadrantLayer, ReluLayer
from cosim.units.schmitt import Schmitt

I_UNIT = 0.5e-9


def parameters(network):
    """Names of all learned numbers."""
    names = []
    for layer in (*network.layers, network.readout):
        for field, array in layer.arrays().items():
            name = getattr(layer, "name", "readout")
            names += [f"{name}.{field}[{','.join(map(str, index))}]" for index in np.ndindex(*array.shape)]
    return names


def elements(design):
    """Names of all transistors and pins, as an ngspice user writes them."""
    found = set(design.assembly.bias_pins)
    for mos in design.assembly.circuit.flatten():
        *path, name = mos.name.split(".")
        found.add(".".join([*(f"x{part}" for part in path), f"m{name}"]))
    return found


@pytest.fixture(
    params=[{"kind": "first", "hidden": 5}, {"kind": "signed"}, {"kind": "signed_input", "hidden": 5}], ids=str
)
def design(request, make_network, technology, calibration):
    return compile_network(make_network(11, **request.param), technology, calibration, CompilerSettings(I_UNIT))


def test_every_parameter_once(design):
    """One row a number; what becomes two circuits or two pins says which in brackets, and no pair comes twice."""
    rows = [row.parameter for row in map_parameters(design)]
    assert max(Counter(rows).values()) == 1
    stems = Counter(re.sub(r" \(.*\)$", "", name) for name in rows)
    learned = parameters(design.network)
    missing = [name for name in learned if name not in stems]
    assert missing == []
    # beyond the learned ones there are the copies of beta and the offset pins of units with an input-dependent beta
    extra = {re.sub(r"\[.*", "", name) for name in stems if name not in learned}
    assert extra <= {f"layer{k}.{part}" for k in (0, 1) for part in ("beta", "offset")}
    for name in learned:
        twice = ".weight_beta" in name or ".bias_beta" in name
        assert stems[name] == (2 if twice else 1)


def test_elements_are_in_the_netlist(design):
    known = elements(design)
    rows = map_parameters(design)
    for row in rows:
        if row.unit == "1" and row.realised == 0:
            assert row.element == "none"
        else:
            for element in row.element.split(" and "):
                assert element in known, row
    weights = [row.element for row in rows if row.unit == "1" and row.element != "none"]
    assert len(set(weights)) == len(weights)  # no transistor stands for two parameters


def test_no_weight_transistor_is_unaccounted_for(design):
    listed = {element for row in map_parameters(design) for element in row.element.split(" and ")}
    rows = {name for name in elements(design) if re.search(r"row_\w+\.mw\d+$", name)}
    assert {name for name in rows - listed if name not in pedestal_elements(design)} == set()


def pedestal_elements(design):
    return {element for (source, _), element in design.assembly.weights.items() if source == "zero"}


def test_transistor_has_the_units_of_its_row(design):
    units = {}
    for mos in design.assembly.circuit.flatten():
        *path, name = mos.name.split(".")
        units[".".join([*(f"x{part}" for part in path), f"m{name}"])] = mos.m if mos.polarity == "n" else -mos.m
    for row in map_parameters(design):
        if row.unit == "1" and row.element != "none" and ".beta[" not in row.parameter:
            assert units[row.element] / design.calibration.units == pytest.approx(row.realised, rel=1e-12)


def test_statuses(make_network, technology, calibration):
    network = make_network(11, hidden=5)
    hidden = network.layers[0]
    weight = np.full_like(hidden.weight, 0.5)
    weight[0, 0], weight[1, 2], weight[2, 1], weight[3, 0] = 0.51, 0.05, 9.0, -9.0
    hidden = ReluLayer("hidden", hidden.sources, weight, hidden.bias)
    network = replace(network, layers=(hidden, *network.layers[1:]))
    design = compile_network(network, technology, calibration, CompilerSettings(I_UNIT, saturate=True))
    rows = {row.parameter: row for row in map_parameters(design)}
    assert rows["hidden.weight[0,1]"].status == EXACT
    assert rows["hidden.weight[0,0]"].status == ROUNDED
    assert rows["hidden.weight[0,0]"].realised == 0.5
    assert rows["hidden.weight[1,2]"].status == ZERO
    assert rows["hidden.weight[1,2]"].element == "none"
    for name, value in (("hidden.weight[2,1]", 8.0), ("hidden.weight[3,0]", -8.0)):
        assert (rows[name].status, rows[name].realised) == (CUT, value)
        assert rows[name].target == np.sign(value) * 9.0


def test_cell_rows_are_currents(design):
    for row in map_parameters(design):
        if row.unit == "A":
            assert row.status == "calibrated"
            pin = row.element
            assert design.assembly.bias_pins[pin] == pytest.approx(row.realised, abs=1e-15)  # pins closer are shared


def test_notes_say_how_a_bias_and_a_weight_came_from_what_was_learned(design):
    """The terms of a note add up to its target, and where a row has none, the target is what was learned."""
    arrays, explained = learned_arrays(design.network), 0
    learned = {
        f"{name}[{','.join(map(str, place))}]": float(value)
        for name, array in arrays.items()
        for place, value in np.ndenumerate(array)
    }
    for row in map_parameters(design):
        name = row.parameter.partition(" ")[0]
        if row.unit != "1" or name not in learned:
            continue
        found = re.match(r"learned (\S+?)(?:;|$)", row.note)
        value, rest = (learned[name], row.note) if found is None else (float(found[1]), row.note[found.end() :])
        assert value == pytest.approx(learned[name], rel=1e-5, abs=0)
        sign = -1 if "sign turned" in rest else 1
        parts = (
            re.fullmatch(r"common-mode offset (\S+)|(\S+) for level 0 .*", part) for part in rest.strip().split("; ")
        )
        terms = [float(part[1] or part[2]) for part in parts if part is not None]
        assert sign * value + sum(terms) == pytest.approx(row.target, rel=1e-5, abs=1e-9), row
        explained += bool(found)
    assert (explained > 0) == (not isinstance(design.network.layers[-1], FirstQuadrantLayer))


def test_the_zero_level_of_signed_states_is_in_their_readers_biases(make_network, technology, calibration):
    """W h = W (2 alpha s) - W alpha (arXiv 2605.11855 on one cell)."""
    network = make_network(11, "signed")
    design = compile_network(network, technology, calibration, CompilerSettings(I_UNIT))
    rows = {row.parameter: row for row in map_parameters(design)}
    alpha = np.concatenate([layer.alpha for layer in network.recurrent_layers])
    for k, zeros in enumerate(-network.readout.weight @ alpha):
        note = rows[f"readout.bias[{k}]"].note
        assert (f"{zeros:+g} for level 0 of the states it reads (W zero)" in note) == (zeros != 0)
        count = design.graph.mirrors["zero", f"readout.{k}"].realised
        assert (f"beside it {count:+g} on the pedestal of its sources" in note) == (count != 0)
    offset = next(design.graph.of(Schmitt)).offset
    assert f"common-mode offset {offset:+g}" in rows["layer0.bias[0]"].note
    assert f"common-mode offset {offset:g} included" in rows["layer0.bias_beta[0] (upper)"].note


def test_a_threshold_that_was_centred_says_from_where(make_network, technology, calibration):
    network = make_network(11)
    network = replace(network, encoding=replace(network.encoding, levels=16))
    learned = network.recurrent_layers[0].beta_hi[0]
    design = compile_network(network, technology, calibration, CompilerSettings(I_UNIT))
    row = next(row for row in map_parameters(design) if row.parameter == "layer0.beta_hi[0]")
    found = re.fullmatch(r"learned (\S+); ([+-]\S+) to the middle between candidates", row.note)
    assert found is not None, row
    assert float(found[1]) == pytest.approx(learned, rel=1e-5)
    assert float(found[1]) + float(found[2]) == pytest.approx(row.target / I_UNIT, abs=1e-5)
