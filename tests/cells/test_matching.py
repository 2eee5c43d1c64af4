"""Every transistor says what it is for and with which others it is matched, and matched ones are drawn alike."""

from collections import defaultdict
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.cells.average import average, average_bias
from cosim.cells.bias import bias_diode, pedestal_sink, strong_diode
from cosim.cells.blocks import BLOCKS
from cosim.cells.clocked import clocked_schmitt
from cosim.cells.converter import converter
from cosim.cells.decision import decision
from cosim.cells.dpi import dpi
from cosim.cells.ladder import rung
from cosim.cells.linear import Term, linear_row
from cosim.cells.mirror import input_diode, signal_rails
from cosim.cells.quantiser import comparator, driver, sampler
from cosim.cells.rectifier import candidate_diode, relu_diode
from cosim.cells.reference import reference
from cosim.cells.schmitt import schmitt
from cosim.cells.toggle import toggle
from cosim.cells.tree import tree, tree_source
from cosim.circuit.elements import Circuit, Mos, Role
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.network.reference import range_of_states
from cosim.technology.catalog import load_technology

TERMS = [Term("a", 3, ""), Term("b", -2, ""), Term("a", 5, "")]
CELLS = {
    "bias diode": bias_diode,
    "strong diode": strong_diode,
    "pedestal sink": pedestal_sink,
    "clocked cell": lambda technology: clocked_schmitt(technology, 8),
    "9T cell": lambda technology: schmitt(technology, 8),
    "DPI": lambda technology: dpi(technology, 8, 2, 1e-12),
    "rung": lambda technology: rung(technology, 8, on=True),
    "row": lambda technology: linear_row("row", TERMS, technology, ""),
    "input diode": lambda technology: input_diode(technology, 8),
    "rails": lambda technology: signal_rails(technology, 8, 1.04),
    "sampler": sampler,
    "comparator": comparator,
    "driver": driver,
    "candidate diode": candidate_diode,
    "rectifier": lambda technology: relu_diode(technology, 8),
    "reference": reference,
    "toggle": toggle,
    "converter": lambda technology: converter(technology, 5),
    "average": lambda technology: average(technology, 4e-12),
    "average's bias": average_bias,
    "bias tree": tree,
    "source of the tree": lambda technology: tree_source(technology, 12),
    "decision": lambda technology: decision(technology, 3),
}  # fmt: skip


def technology_named(name):
    """The technology, or a skip where its kit is not installed."""
    try:
        return load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))


TRIMMED = {"diode", "bias"}  # roles whose length a calibration may change, see cosim.cells.mirror


def check_drawn_alike(devices):
    """Matched groups by name; raises where one has two polarities, widths or, but for trims, lengths."""
    groups = defaultdict(list)
    for mos in devices:
        assert mos.role in get_args(Role), mos
        assert bool(mos.match) == (mos.role != "switch"), mos
        if mos.match:
            groups[mos.match].append(mos)
    for match, group in groups.items():
        assert len({(mos.polarity, mos.w) for mos in group}) == 1, match
        assert len({mos.l for mos in group if mos.role not in TRIMMED}) <= 1, match
        assert all(mos.m == int(mos.m) >= 1 for mos in group)
    return groups


@pytest.mark.parametrize("technology_name", ["generic180", "sky130"])
@pytest.mark.parametrize("cell", CELLS)
def test_matched_devices_of_a_cell_are_drawn_alike(cell, technology_name):
    block = CELLS[cell](technology_named(technology_name))
    check_drawn_alike(element for element in block.elements if isinstance(element, Mos))


def test_the_upper_device_of_a_self_cascode_is_matched_with_other_upper_ones():
    groups = check_drawn_alike(schmitt(technology_named("sky130"), 8).elements)
    assert {mos.name for mos in groups["fb"]} == {"7", "9"}
    assert {mos.name for mos in groups["fb.upper"]} == {"7c", "9c"}


@pytest.fixture(scope="module", params=["first", "signed_input", "ladder", "toggle"])
def network(request, make_network, technology, calibration):
    cell = {"first": "first", "signed_input": "signed_input"}.get(request.param, "signed")
    found = make_network(7, cell, hidden=2 if cell == "first" else 0, widths=(2,), outputs=2, alphas=(1.0, 1.0))
    if cell == "signed":  # updates of one sign, which a toggle needs
        (layer,) = found.layers
        layer = replace(
            layer, weight=np.abs(layer.weight) + 0.25, bias=np.abs(layer.bias) + 0.125,
            epsilon=1.0 if request.param == "ladder" else -1.0,
        )  # fmt: skip
        seen = np.array([[-1.0, -1.0], [2.0, 2.0]])
        found = replace(
            found, layers=(layer,), state_ranges={"layer0": range_of_states(seen, np.ones(2), layer.epsilon)}
        )
    return request.param, compile_network(found, technology, calibration, CompilerSettings(0.7e-9))


def test_groups_of_a_network_divide_the_devices_that_carry_current(network):
    kind, design = network
    devices = list(design.assembly.circuit.flatten())
    groups = check_drawn_alike(devices)
    named = [mos.name for group in groups.values() for mos in group]
    assert sorted(named) == sorted(mos.name for mos in devices if mos.role != "switch")
    assert {mos.part.block for mos in devices} == set(BLOCKS)
    own = {mos.name.removeprefix("network."): {one.name for one in groups[mos.match]} for mos in devices if mos.match}
    cand, line = "cand_layer0_0.diode", "cell_layer0_0"
    compared = {
        "ladder": {"quantiser_layer0_0.upper.1", "quantiser_layer0_0.lower.1"},
        "toggle": {f"{line}.master.1"},
    }.get(kind, {f"{line}.1"})
    assert own[cand] == {f"network.{name}" for name in (cand, *compared)}
    for mos in devices:  # every copy of a line's current has the diode of that line in its group
        if mos.role in ("copy", "weight", "threshold", "width", "level", "sink", "loop out"):
            roles = {one.role for one in groups[mos.match]}
            assert roles & {"diode", "output", "bias", "loop in"}, mos


def test_a_flat_circuit_is_flat_once(network):
    flat = network[1].assembly.circuit.flat()
    assert flat.flat() == flat == Circuit(flat.title, (), flat.elements)
