"""IHP SG13G2, where its kit and VACASK are installed: cards, mismatch, shipped figures, netlists.

Skipped where load_technology does not find the kit, or VACASK is missing.
"""

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.circuit.bench import Bench, Current, Dc, Op, Tolerances
from cosim.circuit.dialects.table import dialect_named
from cosim.circuit.elements import GROUND, Circuit, Mos, Source
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.batch.device_fit import MeasurementSetup, fit_table
from cosim.engines.batch.device_tables import DeviceKind
from cosim.engines.simulation.inference import run_bench
from cosim.engines.table import simulator_named
from cosim.engines.vacask.program import find_vacask
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.noise import NOISE_FILE
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.calibrate.noise import noise_fingerprint
from cosim.verbs.compile.outputs import format_netlist

TIGHT = Tolerances(abstol=1e-18, vntol=1e-9, reltol=1e-6)
SIZES = ((1e-6, 5e-6), (4e-6, 8e-6), (0.4e-6, 1e-6))
GATES = (0.3, 0.9, 0.15)
# A, of SIZES at GATES and 0.9 V at the drain: the kit's own library in ngspice 47, by benchmarks/bench_psp.py
OWN = {
    ("tt", 27.0): {
        "n": [[1.587660e-11, 1.108529e-09, 4.062803e-08, 2.806007e-07, 8.603774e-07],
              [5.722537e-11, 3.846085e-09, 1.211901e-07, 7.718746e-07, 2.314579e-06],
              [8.994960e-12, 6.878390e-10, 4.796097e-08, 6.232306e-07, 2.167183e-06]],
        "p": [[2.227831e-12, 9.076253e-11, 3.485193e-09, 4.661009e-08, 1.913299e-07],
              [4.536956e-12, 1.882037e-10, 7.436340e-09, 1.042062e-07, 4.369130e-07],
              [1.181904e-11, 4.797210e-10, 1.616673e-08, 1.578500e-07, 5.586278e-07]],
    },
    ("ss", 0.0): {
        "n": [[8.291270e-13, 8.771299e-11, 8.184519e-09, 1.353541e-07, 5.632678e-07],
              [3.142492e-12, 3.228006e-10, 2.701680e-08, 3.805340e-07, 1.518606e-06],
              [3.722655e-13, 4.277719e-11, 5.361475e-09, 2.632714e-07, 1.479993e-06]],
        "p": [[1.023452e-13, 5.715148e-12, 3.468178e-10, 1.332957e-08, 1.031689e-07],
              [1.994218e-13, 1.139679e-11, 7.061783e-10, 2.859373e-08, 2.312507e-07],
              [4.930377e-13, 2.777039e-11, 1.654507e-09, 4.955107e-08, 3.074949e-07]],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def kit():
    try:
        find_vacask()
        return load_technology("sg13g2")
    except MissingToolError as error:
        pytest.skip(str(error))


def currents(technology, *devices, gates=(0.45, 0.45, 0.1)):
    """Magnitudes of the drain currents of devices at 0.9 V, A, (devices, gates); all of one polarity."""
    sign = 1.0 if devices[0].polarity == "n" else -1.0
    elements = [Source("g", "v", "g", GROUND, sign * gates[0])]
    for k, mos in enumerate(devices):
        elements += [mos, Source(f"{k}", "v", f"d{k}", GROUND, sign * 0.9)]
    sweep = Op() if gates[0] == gates[1] else Dc("v", "g", *(sign * volt for volt in gates))
    probes = tuple(Current(f"{k}") for k in range(len(devices)))
    waves = run_bench(Bench(Circuit("devices", (), tuple(elements)), technology, sweep, probes, TIGHT), "devices")
    return np.abs([waves.through(f"{k}") for k in range(len(devices))])


def device(k, polarity, w, l, **more):  # noqa: E741 - the field's own letter
    return Mos(f"{k}", f"d{k}", "g", GROUND, GROUND, polarity, w, l, **more)


@pytest.mark.parametrize("condition", OWN)
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_cards_carry_the_current_of_the_library(kit, condition, polarity):
    """The same equations in two simulators, to the seven digits that are written here."""
    devices = [device(k, polarity, *size) for k, size in enumerate(SIZES)]
    found = currents(at(kit, *condition), *devices, gates=GATES)
    np.testing.assert_allclose(found, OWN[condition][polarity], rtol=1e-6, atol=0)


@pytest.mark.parametrize("which", ["kit", pytest.param("technology", marks=pytest.mark.ngspice)])
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_a_threshold_of_10_mv_more_is_less_current(request, which, polarity):
    """exp(-10 mV / (n U_T)), n from 1.27 to 1.56: a factor of 0.73 to 0.79; a card's n may differ by 5 %."""
    technology = request.getfixturevalue(which)
    plain, shifted = currents(
        technology, device(0, polarity, 2e-6, 8e-6), device(1, polarity, 2e-6, 8e-6, vt_shift=0.01)
    )
    slope = technology.device(polarity).slope_factor * technology.thermal_voltage
    assert np.log(shifted / plain)[0] == pytest.approx(-0.01 / slope, rel=0.06, abs=0)


@pytest.mark.parametrize("polarity", ["n", "p"])
def test_widths_and_lengths_vary_as_the_current_factor(kit, polarity):
    """Of unit devices d ln I / d ln W is 0.74 to 1.28 and d ln I / d ln L -0.74 to -1.11 from 10 pA to 10 nA.

    The mismatch model has 1 and -1 (`DeviceModel.deviations`); both are 0.3 % of a current's deviations.
    """
    model, roles = kit.device(polarity), ("mirror_n", "cell_n") if polarity == "n" else ("mirror_p", "cell_p")
    for role in roles:
        drawn = getattr(kit.sizing, role)
        sizes = (drawn.w, drawn.l), (drawn.w + 3e-9, drawn.l), (drawn.w, drawn.l + 3e-9)
        plain, wider, longer = currents(kit, *(device(k, polarity, *size) for k, size in enumerate(sizes)))
        assert 0.7 < np.log(wider / plain)[0] / (3e-9 / drawn.w) < 1.35
        assert -1.35 < np.log(longer / plain)[0] / (3e-9 / drawn.l) < -0.7
        sigma_vt, sigma_beta = model.deviations(drawn.w, drawn.l, 4)
        assert sigma_vt == pytest.approx(model.a_vt / (4 * drawn.w * drawn.l) ** 0.5, rel=1e-12)
        squares = model.a_beta**2 / (drawn.w * drawn.l) + (3e-9 / drawn.w) ** 2 + (3e-9 / drawn.l) ** 2
        assert sigma_beta == pytest.approx((squares / 4) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("name", ["sg13g2", "sg13g2_1v2"])
def test_shipped_figures_fit_todays_cells(kit, name):
    """Fails after a change of cells, sizes, devices or precise options: run `cosim calibrate` with -o."""
    kit, shipped = load_technology(name), load_calibration(shipped_path(name, 8))
    assert shipped.fingerprint == calibration_fingerprint(kit, 8)
    assert (shipped.supply, shipped.celsius) == (kit.supply, kit.celsius)
    assert NOISE_FILE.load(
        shipped_path(kit.name, 8).parent / f"{kit.name}.noise.json"
    ).fingerprint == noise_fingerprint(kit)


def test_9t_cell_has_the_thresholds_that_were_asked_for(kit):
    shipped = load_calibration(shipped_path(kit.name, 8))
    rise, fall, high = 0.8e-9, 0.35e-9, 0.5e-9
    bias = (*shipped.schmitt.solve_thresholds(rise, fall), shipped.schmitt.solve_gain(high))
    *thresholds, level = measure_schmitt(kit, 8, bias, shipped.v_node)
    # the fit's largest error over its grid, and half as much again between its points
    assert thresholds == pytest.approx([rise, fall], rel=1.5 * shipped.schmitt.error, abs=0)
    assert level == pytest.approx(high, rel=1.5 * shipped.schmitt.error, abs=0)


@pytest.mark.parametrize("polarity", ["n", "p"])
def test_a_device_table_is_that_of_the_model(kit, polarity):
    """As for BSIM4: 0.3 % between the points of the sweeps, from 1 pA to 100 nA."""
    unit = kit.sizing.mirror_n if polarity == "n" else kit.sizing.mirror_p
    table = fit_table(MeasurementSetup(kit, simulator_named("vacask")), DeviceKind(polarity, unit.w, unit.l))
    assert 0 < table.error < 3e-3


def test_a_netlist_for_ngspice_is_read_back(kit, make_network):
    """Its transistors begin with n, because ngspice loads their model as a compiled one."""
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    calibration = load_calibration(shipped_path(kit.name, 8))
    plain = compile_network(network, kit, calibration)
    text = format_netlist(plain, dialect_named("ngspice"))
    assert "\nnw" in text and "\nm" not in text
    again = compile_network(network, kit, calibration, CompilerSettings(netlist=EditedNetlist("own.sp", text)))
    assert again.assembly == plain.assembly and again.edits == ()
    settings = CompilerSettings(netlist=EditedNetlist("own.sp", text.replace("\nnw", "\nmw", 1)))
    with pytest.raises(InputError, match="must have a name that begins with n, not m"):
        compile_network(network, kit, calibration, settings)
