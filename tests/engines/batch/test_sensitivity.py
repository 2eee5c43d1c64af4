"""Derivatives by the adjoint of a transient against finite differences: of the engine itself, and of ngspice."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.resources import trained_network_path
from cosim.circuit.elements import Mos, Source
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.settings import CompilerSettings
from cosim.engines.batch.circuit import SPARE, SparsityPattern, symbolic_lu
from cosim.engines.batch.lanes import LANES, aligned_zeros
from cosim.engines.batch.newton import decompose, substitute_transposed
from cosim.engines.batch.sensitivity import record
from cosim.engines.engine import Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import decision_margins, read_plan, with_candidates
from cosim.engines.simulation.testbench import inference_bench
from cosim.tasks.testset import load_test_set
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.loading import TargetTechnology, compile_at, load_ranged
from cosim.verbs.sensitivity.study import SensitivityTarget, sensitivities

pytestmark = pytest.mark.ngspice  # device tables are measured in it


@pytest.fixture(scope="module")
def design():
    network = load_ranged(trained_network_path("digits_d4"), None)
    return compile_at(network, "digits_d4", TargetTechnology(), CompilerSettings(), lambda line: None)[0]


@pytest.fixture(scope="module")
def x(design):
    """A test sample all of whose decisions are 140 pA or more from their thresholds: no state flips here."""
    return load_test_set(design.network, None).inputs(51)


def moved(bench, name, volt=0.0, factor=1.0):
    """The bench with one transistor that deviates more, or one source that gives `factor` as much."""

    def change(element):
        if element.name != name:
            return element
        if isinstance(element, Mos):
            return replace(element, vt_shift=element.vt_shift + volt, beta_factor=element.beta_factor * factor)
        assert isinstance(element, Source)
        return replace(element, value=element.value * factor)

    flat = bench.circuit.flat()
    return replace(bench, circuit=replace(flat, elements=tuple(map(change, flat.elements))))


def margins(design, benches, outputs):
    """Of benches that differ by so little that they take nearly the same steps."""
    pins, found = [design.assembly.outputs[k] for k in outputs], []
    recorded = record(benches, 600.0)
    times = Run().timing.sample_times(8)
    for lane in range(len(benches)):
        waves = recorded.waveforms(lane)
        first, second = (np.interp(times, waves.time, waves.through(pin)).mean() for pin in pins)
        found.append(float(first - second))
    return found


def check(design, bench, found, device, volt=1e-3):
    """Compare the adjoint with central differences of `volt` in the threshold and 1 % in the current factor."""
    four = [moved(bench, device.device, one) for one in (volt, -volt)]
    four += [moved(bench, device.device, factor=factor) for factor in (1.01, 1 / 1.01)]
    up, down, more, less = margins(design, four, found.outputs)
    assert device.vt_shift == pytest.approx((up - down) / (2 * volt), rel=0.01)
    assert device.ln_beta == pytest.approx((more - less) / (2 * np.log(1.01)), rel=0.01)


def test_a_resistor_is_in_the_adjoint(design, x):
    """An edited netlist has 50 gigaohm at the state of every cell: up to 36 pA, a quarter of the nearest decision's."""
    text = format_netlist(design).replace(".ends schmitt_clocked", "rleak out 0 50g\n.ends schmitt_clocked")
    settings = CompilerSettings(netlist=EditedNetlist("own.sp", text))
    edited = compile_at(design.network, "digits_d4", TargetTechnology(), settings, lambda line: None)[0]
    bench, (found,) = inference_bench(edited, x), sensitivities(edited, [x])
    plain = sensitivities(design, [x])[0].value_a
    assert abs(found.value_a - plain) > 1e-4 * plain
    for device in found.devices[:3]:
        check(edited, bench, found, device)


def test_ten_most_decisive_transistors(design, x):
    bench, (found,) = inference_bench(design, x), sensitivities(design, [x])
    assert found.value_a == pytest.approx(margins(design, [bench], found.outputs)[0], rel=1e-9)
    for device in found.devices[:10]:
        check(design, bench, found, device)
    assert sum(device.share for device in found.devices) == pytest.approx(1.0)
    assert found.sigma_a == pytest.approx(np.sqrt(sum(device.sigma_a**2 for device in found.devices)))


def test_a_chip_whose_memories_were_clamped_at_the_operating_point(design, x):
    plan = VariationPlan("local", seed=0, chips=1)
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    chip = draw_chip(devices, design.technology, plan, 0)
    bench, (found,) = inference_bench(design, x, chip=chip), sensitivities(design, [x], Run(chip=chip))
    assert bench.preset
    for device in found.devices[:3]:
        check(design, bench, found, device)


def test_a_four_terminal_device(design, x):
    """It moves the margin by 1.5e-12 A in 16 mV. Such a difference scatters by 1e-14 A, 0.7 %, as steps differ."""
    bench, (found,) = inference_bench(design, x), sensitivities(design, [x])
    (device, *_) = (one for one in found.devices if one.role == "switch")
    check(design, bench, found, device, volt=8e-3)


def test_bias_pins(design, x):
    """5 % of the pedestal moves the margin by 7e-12 A, and differences scatter by 3e-14 A as steps differ."""
    bench, (found,) = inference_bench(design, x), sensitivities(design, [x])
    values = {one.name: one.value for one in bench.circuit.elements if isinstance(one, Source)}
    for pin in ("bias_gain_0", "bias_pedestal_0", "unit", "pedestal"):
        more, less = margins(design, [moved(bench, pin, factor=factor) for factor in (1.05, 0.95)], found.outputs)
        assert found.pins[pin] == pytest.approx((more - less) / (0.1 * values[pin]), rel=0.01), pin


def test_against_ngspice(design, x):
    """1 mV is 3 % of a current, which ngspice knows to its reltol of 1e-4, and tables to 1 %: 2 % together."""
    bench, (found,), plan = inference_bench(design, x), sensitivities(design, [x]), read_plan(design, len(x))
    (first, second), device = found.outputs, found.devices[0]
    up, down = (run_inference(moved(bench, device.device, volt), plan) for volt in (1e-3, -1e-3))
    assert np.array_equal(up.states, down.states)
    difference = (up.readout - down.readout).mean(axis=0)
    assert device.vt_shift == pytest.approx((difference[first] - difference[second]) / 2e-3, rel=0.02)


def test_samples_side_by_side_are_those_alone(design, x):
    other = load_test_set(design.network, None).inputs(5)
    both, (alone,) = sensitivities(design, [x, other]), sensitivities(design, [other])
    assert both[1].outputs == alone.outputs
    ours = {device.device: device.vt_shift for device in both[1].devices}
    for device in alone.devices[:10]:
        assert ours[device.device] == pytest.approx(device.vt_shift, rel=0.01)  # other steps, the same circuit


def test_one_output_in_one_frame(design, x):
    (found,) = sensitivities(design, [x], asked=SensitivityTarget(frame=7, output=2))
    bench = inference_bench(design, x)
    recorded = record([bench], 600.0)
    waves, time = recorded.waveforms(0), Run().timing.sample_times(8)[7]
    assert found.outputs == (2,)
    assert found.value_a == pytest.approx(np.interp(time, waves.time, waves.through(design.assembly.outputs[2])))


@pytest.mark.parametrize(
    ("asked", "text"),
    [(SensitivityTarget(frame=8), "no frame 8: .* 0 to 7"), (SensitivityTarget(output=10), "no output 10: .* 0 to 9")],
)
def test_what_there_is_not(design, x, asked, text):
    with pytest.raises(InputError, match=text):
        sensitivities(design, [x], asked=asked)


def test_real_numbers_have_no_margin(design, x):
    real = replace(design, network=replace(design.network, labels=(), regression=True))
    with pytest.raises(
        InputError, match=r"trained for real numbers, .* choose one of its outputs, 0 to 9 \(--readout\)"
    ):
        sensitivities(real, [x])


def test_transposed_solve():
    rng, n = np.random.default_rng(0), 7
    full = np.where(rng.uniform(size=(n, n)) < 0.3, rng.normal(size=(n, n)), 0.0) + 5 * np.eye(n)
    pattern = SparsityPattern(n)
    places = {(i, j): pattern.at(i, j) for i, j in zip(*np.nonzero(full), strict=True)}
    program = symbolic_lu(pattern)
    matrix, side = aligned_zeros(program.size + SPARE), aligned_zeros(n)
    for (i, j), entry in places.items():
        matrix[program.places[entry]] = full[i, j]
    right = rng.normal(size=(n, LANES))
    side[program.order] = right
    solver = program.lu
    decompose(solver, matrix)
    substitute_transposed(solver, matrix, side)
    assert np.allclose(side[program.order], np.linalg.solve(full.T, right), rtol=1e-12)


def test_a_decision(design, x):
    """The candidate's current at the close, with a threshold that only the cell's own transistors and bias move."""
    (found,) = sensitivities(design, [x], asked=SensitivityTarget(decisions=3))
    assert [one.flips for one in found.decisions] == sorted((one.flips for one in found.decisions), reverse=True)
    decision = found.decisions[0]
    others = [one for one in decision.devices if one.role in ("weight", "diode")][:3]
    margin = decision_margins(design, Run())[list(design.assembly.decisions).index(decision.cell)]
    time = Run().timing.moments(8, margin.close)[decision.frame]
    bench = with_candidates(inference_bench(design, x), decision_margins(design, Run()))
    for one in others:
        recorded = record([moved(bench, one.device, volt) for volt in (1e-3, -1e-3)], 600.0)
        up, down = (
            np.interp(time, waves.time, waves.drain(margin.device)) for waves in map(recorded.waveforms, (0, 1))
        )
        assert one.vt_shift == pytest.approx((up - down) / 2e-3, rel=0.01)
