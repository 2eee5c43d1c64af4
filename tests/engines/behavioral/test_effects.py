"""What a deviating transistor does: every factor from real transistors, and every transistor's effect accounted for."""

from dataclasses import fields, replace

import numpy as np
import pytest

from cosim.circuit.deck import format_elements
from cosim.circuit.elements import Mos
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.effects import chip_deviations, effects_of
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.chip import chip_circuit
from cosim.engines.engine import Inference
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT
from cosim.network.reference import range_of_states
from cosim.technology.conditions import at
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices

PLAN = VariationPlan("local", 1, 8)


@pytest.fixture(scope="module", params=["first", "signed_input"])
def design(request, make_network, technology, calibration):
    return compile_network(make_network(7, request.param, hidden=2), technology, calibration)


@pytest.fixture(scope="module")
def chip(design):
    devices = varying_devices(design.assembly.circuit, design.technology, PLAN)
    return draw_chip(devices, design.technology, PLAN, 0)


def test_every_transistor_but_switches_has_an_effect(design):
    named = {device for effect in effects_of(design) for device, _ in effect.devices}
    assert named == {mos.name for mos in design.assembly.circuit.flatten() if mos.role != "switch"}


@pytest.fixture(scope="module", params=["first", "signed_input", "ladder", "toggle"])
def unit(request, make_network, technology, calibration):
    """(kind, design): one recurrent unit of a kind, read by one output."""
    cell = {"first": "first", "signed_input": "signed_input"}.get(request.param, "signed")
    network = make_network(7, cell, hidden=2 if cell == "first" else 0, widths=(1,), outputs=1, alphas=(1.0,))
    if cell == "signed":  # updates of one sign, which a toggle needs
        epsilon = 1.0 if request.param == "ladder" else -1.0
        (layer,) = network.layers
        layer = replace(layer, weight=np.abs(layer.weight) + 0.25, bias=np.abs(layer.bias) + 0.125, epsilon=epsilon)
        seen = range_of_states(np.array([[-1.0], [2.0]]), np.ones(1), epsilon)
        network = replace(network, layers=(layer,), state_ranges={"layer0": seen})
    return request.param, compile_network(network, technology, calibration, CompilerSettings(0.7e-9))


def made_by(effect):
    """The transistors of an effect with their signs, as in the table of the module."""
    signs = {1: "+", -1: "-"}
    return " ".join(signs[sign] + name.removeprefix("network.") for name, sign in effect.devices)


CELL = "cell_layer0_0"
DRIVER = "quantiser_layer0_0.driver"
STATE_5 = [  # what the DPI of rung k carries, from its state on
    f"+{CELL}.rung{k}.5 -bias_gain_0.diode -{CELL}.rung{k}.4 +{CELL}.dpi{k}.in +{CELL}.dpi{k}.2 -{CELL}.dpi{k}.1"
    f" -{CELL}.dpi{k}.tau +bias_tau_0.diode +{CELL}.dpi{k}.out" for k in range(1, 6)
]  # fmt: skip
RUNGS = {
    "base": [(f"+{DRIVER}.base -bias_base_0.diode", "i_base")],
    "step_down": [(f"+{DRIVER}.delta_d -bias_delta_0.diode", "i_delta")],
    "step_up": [(f"+{DRIVER}.delta_u -bias_delta_0.diode", "i_delta")],
    "levels": [(f"+{CELL}.rung{k}.11 -bias_gain_0.diode", "i_gain") for k in range(1, 6)],
    "driven": [
        (f"+{CELL}.rung{k}.in -{DRIVER}.diode_p +{DRIVER}.copy -{DRIVER}.diode_n", "retain") for k in range(1, 6)
    ],
    "compared": [(f"+{CELL}.rung{k}.1 -{CELL}.rung{k}.cand.diode", f"thresh{k}") for k in range(1, 6)],
    "thresholds": [(f"+{CELL}.rung{k}.2 -bias_thresh_{2 + (k > 1)}.diode", f"thresh{k}") for k in range(1, 6)],
    "widths": [
        (f"+{CELL}.rung{k}.8 -bias_width_{int(k > 1)}.diode +{CELL}.rung{k}.9 -{CELL}.rung{k}.7", f"width{k}")
        for k in range(1, 6)
    ],
    "upward": [(f"{STATE_5[k]}{int(k > 0)} -bias_vg_0.diode", "i_gain") for k in range(4)],
    "downward": [(f"{STATE_5[k]}0 -bias_vg_0.diode", "i_gain") for k in range(1, 5)],
}
BIASED = {  # field -> [(what makes it, the pin current asked of it)], by place
    "first": {
        "compared": [(f"+{CELL}.1 -cand_layer0_0.diode", "rise")],
        "thresh": [(f"+{CELL}.2 -bias_thresh_0.diode", "i_thresh")],
        "width": [(f"+{CELL}.8 -bias_width_0.diode +{CELL}.9 -{CELL}.7", "i_width")],
        "level": [(f"+{CELL}.5 -bias_gain_0.diode", "i_gain")],
    },
    "signed_input": {
        "compared": [(f"+{CELL}.1 -cand_layer0_0.diode", "rise")],
        "thresh": [(f"+{CELL}.2 -bias_thresh_layer0_0.diode", "i_thresh")],
        "width": [(f"+{CELL}.8 -bias_width_layer0_0.diode +{CELL}.9 -{CELL}.7", "i_width")],
        "level": [(f"+{CELL}.5 -bias_gain_0.diode", "i_gain")],
    },
    "ladder": {
        side: [(f"+{part}.2 -bias_thresh_{k}.diode -{part}.1 +cand_layer0_0.diode", f"i_{side}")]
        for k, side in enumerate(("upper", "lower"))
        for part in (f"quantiser_layer0_0.{side}",)
    }
    | RUNGS,
    "toggle": {
        "upper": [(f"+{CELL}.master.2 -bias_thresh_0.diode -{CELL}.master.1 +cand_layer0_0.diode", "i_upper")],
        "level": [(f"+{CELL}.slave.5 -bias_gain_0.diode", "i_gain")],
    },
}
DIODES = {"first": f"{CELL}.4", "signed_input": f"{CELL}.4", "ladder": f"{CELL}.diode", "toggle": f"{CELL}.slave.4"}


def test_what_makes_a_memorys_factors(unit):
    """The table of the module, device by device, at the currents that the pins ask for."""
    kind, design = unit
    bias, asked = design.graph.biases["layer0.0"], design.graph.currents["layer0.0"]
    asked_of = {"rise": asked.i_rise} | vars(bias)
    if kind == "ladder":
        asked_of |= vars(bias.ladder) | {"retain": bias.i_base + bias.i_delta}
        for k in range(1, 6):
            first = "_1" if k == 1 else ""
            asked_of |= {f"{pin}{k}": getattr(bias.ladder, f"i_{pin}{first}") for pin in ("thresh", "width")}
    expected = {
        (field, place): (devices, asked_of[current])
        for field, effects in BIASED[kind].items()
        for place, (devices, current) in enumerate(effects)
    }
    expected["pedestals", 0] = ("+pedestal_layer0_0.sink -bias_pedestal_0.diode", pytest.approx(0.05 * 0.7e-9))
    found = [
        effect for effect in effects_of(design) if effect.key == "layer0.0" and not effect.field.startswith("line")
    ]
    assert {(effect.field, effect.place or 0): (made_by(effect), effect.current) for effect in found} == expected


def test_what_makes_a_line_and_a_weight(unit):
    """A signal of 1 carries i_unit, the pedestal 0.05 of it, on a diode of 8 times the strength of a weight of 1."""
    kind, design = unit
    effects = effects_of(design)
    diodes = {f"in.{k}": f"diode_in_{k}.diode" for k in range(3)} | {UNIT_CURRENT: "diode_one.diode"}
    diodes |= {f"hidden.{k}": f"relu_hidden_{k}.diode" for k in range(2)} if kind == "first" else {}
    diodes |= {"layer0.0": DIODES[kind], PEDESTAL: "diode_zero.diode"}
    betas = {f"layer0.0.beta_{sign}": f"relu_layer0_0_beta_{sign}.diode" for sign in ("pos", "neg")}
    diodes |= betas if kind == "signed_input" else {}
    lines = {(effect.field, effect.key): effect for effect in effects if effect.field.startswith("lines")}
    assert {key for field, key in lines if field == "lines_p"} == set(diodes)
    assert {key for field, key in lines if field == "lines_n"} == set(design.assembly.rails) != set(diodes)
    for (field, key), effect in lines.items():
        stem = key.replace(".", "_")
        rails = f" +rails_{stem}.copy -rails_{stem}.diode" if field == "lines_n" else ""
        assert made_by(effect) == f"-{diodes[key]}{rails}"
        assert effect.current == pytest.approx(0.7e-9 * (0.05 * 8 if key == PEDESTAL else 1), rel=1e-12)
    weights = {effect.key: effect for effect in effects if effect.field == "weights"}
    built = {edge for edge in design.graph.weights if design.graph.mirrors[edge].count}
    built -= {(part, "layer0.0") for part in betas}
    assert set(weights) == built
    for (source, target), effect in weights.items():
        device = design.assembly.weights.get((source, target))
        count = design.graph.mirrors[source, target].count
        unit_current = 0.7e-9 * (0.05 if source == PEDESTAL else 1)
        assert effect.current == pytest.approx(abs(count) / 8 * unit_current, rel=1e-12)
        assert [sign for _, sign in effect.devices] == [1]
        if device is not None:
            assert effect.devices[0][0] == ".".join(part[1:] for part in device.split("."))
    into = {effect.key: [] for effect in effects if effect.field == "betas"}
    for effect in effects:
        if effect.field == "betas":
            into[effect.key].append((made_by(effect), effect.place, effect.current))
    expected = {
        (part, "layer0.0"): [
            (f"+{line}_row_layer0_0.w{k}", place, 0.7e-9) for place, line in enumerate(("thresh", "width"))
        ]
        for k, part in enumerate(betas)
    }
    assert into == (expected if kind == "signed_input" else {})


def test_mirrors_are_ratios(unit):
    """What all transistors of a polarity share cancels between a current that is given and one that arrives.

    Lines end in weights; all other paths are whole. So the signs of each polarity add up to nothing.
    """
    _, design = unit
    polarity = {mos.name: mos.polarity for mos in design.assembly.circuit.flatten()}
    effects = effects_of(design)

    def balance(*parts):
        signs = {"n": 0, "p": 0}
        for effect in parts:
            for device, sign in effect.devices:
                signs[polarity[device]] += sign
        return signs

    lines = {(effect.field, effect.key): effect for effect in effects if effect.field.startswith("lines")}
    weights = [effect for effect in effects if effect.field == "weights"]
    assert weights
    for weight in weights:
        positive = design.graph.mirrors[weight.key].count > 0
        line = lines["lines_n" if positive else "lines_p", weight.key[0]]
        assert balance(line, weight) == {"n": 0, "p": 0}, weight.key
    whole = [effect for effect in effects if effect.field not in ("weights", "betas", "lines_n", "lines_p")]
    assert whole
    for effect in whole:
        assert balance(effect) == {"n": 0, "p": 0}, effect


def test_a_chips_factors_are_products_over_its_transistors(unit):
    """(b exp(-dV_T / (n U_T)))^+-1 of each, n at the current through one square of it, U_T of the chip to 7 digits."""
    _, design = unit
    devices = varying_devices(design.assembly.circuit, design.technology, PLAN)
    chip = draw_chip(devices, design.technology, PLAN, 3)
    hot = at(design.technology, celsius=60.0)
    effects = effects_of(design)
    found = chip_deviations(effects, chip, hot)
    drawn = {one.name: (vt, b) for one, vt, b in zip(chip.devices, chip.vt_shift, chip.beta_factor, strict=True)}
    transistors = {mos.name: mos for mos in design.assembly.circuit.flatten()}
    expected = {}
    for effect in effects:
        product = 1.0
        for name, sign in effect.devices:
            mos, (vt, b) = transistors[name], drawn[name]
            per_square = effect.current / (mos.m * mos.w / mos.l)
            swing = (
                design.technology.device(mos.polarity).response_at(per_square) * 1.380649e-23 * 333.15 / 1.602176634e-19
            )
            product *= (b * np.exp(-vt / swing)) ** sign
        expected.setdefault((effect.field, effect.key), {})[effect.place or 0] = product
    every = {(name.name, key): value for name in fields(found) for key, value in getattr(found, name.name).items()}
    cells = {(field, name): value for name, cell in found.cells.items() for field, value in vars(cell).items()}
    cells = {where: value for where, value in cells.items() if where[0] != "pulled" or value != 1.0}  # without beta
    every = {where: value for where, value in every.items() if where[0] != "cells"} | cells
    assert every.keys() == expected.keys()
    for (field, key), value in every.items():
        places = expected[field, key]
        assert np.atleast_1d(value) == pytest.approx([places[k] for k in range(len(places))], rel=1e-6)
        assert isinstance(value, tuple) is (field == "betas" or len(places) > 1)


def test_one_transistor_moves_what_hangs_on_it(design, chip):
    """A weight's own transistor moves that weight by exp(e), e = ln b - dV_T / (n U_T), and nothing else."""
    technology, effects = design.technology, effects_of(design)
    (source, target), device = next(iter(design.assembly.weights.items()))
    name = ".".join(part[1:] for part in device.split("."))
    still = replace(chip, vt_shift=0 * chip.vt_shift, beta_factor=1 + 0 * chip.beta_factor)
    index = [one.name for one in chip.devices].index(name)
    vt, beta = still.vt_shift.copy(), still.beta_factor.copy()
    vt[index], beta[index] = 2e-3, 1.01
    found = chip_deviations(effects, replace(still, vt_shift=vt, beta_factor=beta), technology)
    mos = next(mos for mos in design.assembly.circuit.flatten() if mos.name == name)
    density = design.i_unit * mos.l / (8 * mos.w)  # of a unit device: a weight of 1 has 8 and carries i_unit
    swing = technology.device(mos.polarity).response_at(density) * technology.thermal_voltage
    assert found.weights[source, target] == pytest.approx(1.01 * np.exp(-2e-3 / swing), rel=1e-12)
    values = [
        *found.lines_n.values(),
        *found.lines_p.values(),
        *(f for c in found.cells.values() for f in vars(c).values()),
    ]
    values += [value for key, value in found.weights.items() if key != (source, target)]
    assert set(values) == {1.0}


def test_a_chips_netlist_carries_its_draws(design, chip):
    varied = chip_circuit(design, chip)
    shifts = dict(zip((one.name for one in chip.devices), chip.vt_shift, strict=True))
    transistors = [element for element in varied.elements if isinstance(element, Mos)]
    assert not varied.subcircuits and len(transistors) == len(shifts)
    for mos in transistors:
        assert mos.vt_shift == shifts[mos.name]
        text = " ".join(format_elements([replace(mos, origin="")], design.technology))
        assert text.startswith(f"m{mos.name} ")
        sign = 1 if mos.polarity == "n" else -1  # vth0 of a pMOS is negative, delvto is added to it
        fields = dict(word.split("=") for word in text.split() if "=" in word)
        assert float(fields["delvto"]) == pytest.approx(sign * mos.vt_shift, rel=1e-11)
        assert float(fields["mulu0"]) == pytest.approx(mos.beta_factor, rel=1e-11)


@pytest.mark.ngspice
def test_behavioral_and_transistors_see_the_same_chip(design, chip):
    """The same draws in both engines: the readout follows the chip, not the nominal circuit.

    Mismatch moves the readout by some tenths of a unit. What is left between the engines, 0.015 units nominally
    (docs/papers/results.md) and 5 % of what mismatch does (the slope factor is that of weak inversion), stays under a
    quarter.
    """
    inputs = np.random.default_rng(2).integers(0, 3, size=(1, 4, len(design.assembly.input_pins))) / 2
    outcome = run_inference(inference_bench(design, inputs[0], chip=chip), read_plan(design, 4))
    assert isinstance(outcome, Inference)
    own = run_behavioral(design, inputs, chip=chip)
    nominal = run_behavioral(design, inputs)
    error, effect = (np.abs(outcome.readout - trace.readout[0]).max() / design.i_unit for trace in (own, nominal))
    assert effect > 0.05
    assert error < 0.25 * effect


@pytest.mark.ngspice
def test_a_flat_circuit_computes_what_the_hierarchy_does(design):
    """The same transistors in another order: the solver's own differences, under 1e-3 of a unit (reltol 1e-4)."""
    inputs = np.random.default_rng(2).integers(0, 3, size=(2, len(design.assembly.input_pins))) / 2
    flat = replace(design, assembly=replace(design.assembly, circuit=design.assembly.circuit.flat()))
    nested, other = (run_inference(inference_bench(one, inputs), read_plan(design, 2)) for one in (design, flat))
    assert isinstance(nested, Inference) and isinstance(other, Inference)
    np.testing.assert_array_equal(nested.states, other.states)
    np.testing.assert_allclose(nested.readout, other.readout, rtol=0, atol=1e-3 * design.i_unit)


@pytest.mark.ngspice
def test_a_cell_that_nothing_resets_is_on_from_the_start(make_network, technology, calibration):
    """A width current that exceeds the threshold current: the lower threshold is below 0, the reset does not help."""
    design = compile_network(make_network(7, "first", hidden=2), technology, calibration)
    plan = VariationPlan("none", 0, 1)
    chip = draw_chip(varying_devices(design.assembly.circuit, technology, plan), technology, plan, 0)
    stuck = np.array([one.name.endswith(".8") for one in chip.devices])  # M8 copies the width current
    # 80 mV make it exp(80 mV / (1.32 U_T)) = 10 times larger; lower thresholds are above a tenth of the upper ones
    chip = replace(chip, vt_shift=np.where(stuck, -0.08, chip.vt_shift))
    inputs = np.zeros((1, 2, len(design.assembly.input_pins)))
    trace = run_behavioral(design, inputs, chip=chip)
    outcome = run_inference(inference_bench(design, inputs[0], chip=chip), read_plan(design, 2))
    assert isinstance(outcome, Inference)
    assert all((states == 1).all() for states in trace.states.values())
    np.testing.assert_array_equal(outcome.states, 1)
    assert any((states == 0).any() for states in run_behavioral(design, inputs).states.values())
