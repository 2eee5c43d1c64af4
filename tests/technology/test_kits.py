"""Foundry kits, where they are installed: what cosim makes of them against what ngspice makes of them.

Skipped where load_technology does not find the kit: set PDK_ROOT, or install it as that message says.
"""

import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.cells.benches import sink_bench
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE
from cosim.circuit.deck import device_sizes
from cosim.circuit.dialects.ngspice import format_bench, format_deck, format_options
from cosim.circuit.dialects.table import dialect_named
from cosim.circuit.elements import Circuit, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import Failure, Inference
from cosim.engines.ngspice.process import run_bench, run_deck
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import CORNERS, load_technology
from cosim.technology.conditions import at
from cosim.technology.types import Geometry
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.compile.outputs import EXERCISE_FRAMES, format_design, format_netlist

KITS = ("gf180mcu", "sky130")
# The section in which n is fast and p is slow. sky130's continuous library has them the other way round than its own
# header says: parameters_fet_fs.spice adds 27 mV to the threshold of n and takes 5 % of its mobility.
FAST_N, FAST_P = {"gf180mcu": "fs", "sky130": "sf"}, {"gf180mcu": "sf", "sky130": "fs"}
SIZES = ((5e-6, 5e-6), (1e-6, 5e-6), (0.45e-6, 0.4e-6))
LEFT_OUT = 700.0  # ohm, above the 500 of the comment below
CURRENTS = (1e-13, 1e-11, 1e-9, 5e-9, 1e-6)

RUN = """
import sys
import numpy as np
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
waves = run_deck(open(sys.argv[1]).read())
if isinstance(waves, Failure):
    sys.exit(f"{waves.kind.value}: {waves.detail}")
np.savez("waves.npz", **waves)
"""


@cache
def find_kit(name):
    """The technology, or why it is not here."""
    try:
        return load_technology(name)
    except MissingToolError as error:
        return str(error)


@pytest.fixture(params=KITS)
def kit(request):
    found = find_kit(request.param)
    if isinstance(found, str):
        pytest.skip(found)
    return found


def currents_of(waves):
    return np.abs([waves[f"vd{k}#branch"] for k in range(2 * len(SIZES))])


@pytest.mark.ngspice
@pytest.mark.parametrize(
    "corner",
    [one if one in ("tt", "sf") else pytest.param(one, marks=pytest.mark.slow) for one in CORNERS],
)
def test_cards_carry_the_current_of_the_library(kit, corner, transfer_decks, tmp_path):
    """Every corner, both polarities, three sizes, from 0.1 pA to 1 uA."""
    technology = at(kit, corner)
    files, section = technology.library.also, technology.library.sections[corner]
    library = "\n".join([*(f".include {file}" for file in files), f".lib {technology.library.file} {section}"])
    flat_deck, library_deck = transfer_decks(technology, SIZES, library, (-0.3, 1.5, 0.02))
    (tmp_path / "library.sp").write_text(library_deck)
    done = subprocess.run([sys.executable, "-c", RUN, "library.sp"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    flat, whole = run_deck(flat_deck), np.load(tmp_path / "waves.npz")
    assert not isinstance(flat, Failure), flat.detail
    for found, expected in zip(currents_of(flat), currents_of(whole), strict=True):
        for current in CURRENTS:
            nearest = np.abs(np.log(expected / current)).argmin()
            # 20 mV over n U_T, n at least 1.2, are a factor of 1.91: the nearest is within its root
            assert 1 / 1.39 < expected[nearest] / current < 1.39
            # abstol 1e-17 A of 0.1 pA is 1e-4. The resistances that are left out, 0.5 kohm in the smallest p device of
            # sky130, give R I / (n U_T): 7e-5 at 5 nA, 1.4 % at 1 uA.
            left_out = LEFT_OUT * expected[nearest] / (technology.nfet.slope_factor * technology.thermal_voltage)
            assert found[nearest] == pytest.approx(expected[nearest], rel=max(1e-4, left_out), abs=0)


@pytest.mark.ngspice
def test_corners_are_what_their_names_say(kit, transfer_decks):
    """Fast is more current at 0.4 V of gate, for the polarity that is fast."""
    found = {}
    for corner in CORNERS:
        waves = run_deck(transfer_decks(at(kit, corner), SIZES, "", (0.4, 0.5, 0.1))[0])
        assert not isinstance(waves, Failure), waves.detail
        section = kit.library.sections[corner] if corner in ("fs", "sf") else corner
        found[section] = currents_of(waves)[:, 0].reshape(2, -1)  # polarity, size
    mixed = FAST_N[kit.name], FAST_P[kit.name]
    for polarity, (fast, slow) in enumerate((mixed, mixed[::-1])):
        for faster, slower in (("ff", "tt"), ("tt", "ss"), (fast, "tt"), ("tt", slow)):
            assert (found[faster][polarity] > found[slower][polarity]).all(), (faster, slower)


def test_a_deck_carries_its_devices_and_starts_without_the_kit(kit, calibration, make_network):
    """No foundry file is read by the simulator: one card for every size, numbers only, and no way to the kit."""
    design = compile_network(make_network(5, outputs=2), kit, calibration)
    deck = format_bench(inference_bench(design, np.array([[0.5, 0.25, 1.0]])))
    assert deck.count("\n.model ") == len(device_sizes(design.assembly.circuit)) >= 6
    for word in ("\n.lib", "\n.inc", "\n.param", "{", "agauss", str(kit.library.file.parent)):
        assert word not in deck.lower()


@pytest.mark.ngspice
def test_the_batched_engine_runs_a_network_of_a_kit(kit, make_network):
    """Its self-cascodes are one device there. States equal ngspice's, readouts as near as its tables and reltol are."""
    pytest.importorskip("numba", reason="the batched engine needs it: the extra batch")
    network = make_network(26, widths=(2,), outputs=1, alphas=(1.0,))
    design = compile_network(network, kit, load_calibration(shipped_path(kit.name, 8)))
    bench = inference_bench(design, np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.6], [0.7, 0.3, 0.9]]))
    ours, theirs = (run_inference(bench, read_plan(design, 3), name) for name in ("batch", "ngspice"))
    assert isinstance(ours, Inference) and isinstance(theirs, Inference)
    np.testing.assert_array_equal(ours.states, theirs.states)
    np.testing.assert_allclose(ours.readout, theirs.readout, rtol=0, atol=0.01 * design.i_unit)


@pytest.fixture
def run_testbench(tmp_path):
    """Run the files of a compiled network in ngspice, in a folder of their own; return the waveforms."""

    def run(name, files):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        done = subprocess.run([sys.executable, "-c", RUN, "testbench.sp"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with np.load(folder / "waves.npz") as waves:
            return dict(waves)

    return run


def outputs_of(waves):
    """Output currents at the end of each frame, where they have settled."""
    times = Timing().sample_times(EXERCISE_FRAMES)
    return np.array([np.interp(times, waves["time"], waves[f"vreadout_{k}#branch"]) for k in range(2)])


@pytest.mark.slow
@pytest.mark.ngspice
def test_the_kits_own_devices_make_the_same_network(kit, make_network, run_testbench):
    """Cards leave out diffusion resistances, 0.7 kohm at most: of 10 nA 7 uV, 2e-4 of U_T. Else only reltol differs."""
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    design = compile_network(network, kit, load_calibration(shipped_path(kit.name, 8)))
    cards = run_testbench("cards", format_design(design))
    own = run_testbench("own", format_design(design, dialect=dialect_named("ngspice", foundry=True)))
    latches = [name for name in cards if name.endswith(".latch")]
    assert len(latches) == 3 and set(own) == set(cards)
    times = Timing().sample_times(EXERCISE_FRAMES)
    states = [np.array([np.interp(times, run["time"], run[name]) > 0.9 for name in latches]) for run in (cards, own)]
    np.testing.assert_array_equal(*states)
    assert 0 < states[0].mean() < 1
    mean, other = (np.trapezoid(run["vdd#branch"], run["time"]) / run["time"][-1] for run in (cards, own))
    assert other == pytest.approx(mean, rel=5e-4)


@pytest.mark.parametrize("foundry", [False, True])
def test_a_netlist_of_a_kit_is_read_back(kit, make_network, foundry):
    """With sized cards, with self-cascodes, and with the foundry's devices, whose lengths may be in micrometre."""
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    calibration = load_calibration(shipped_path(kit.name, 8))
    plain = compile_network(network, kit, calibration)
    text = format_netlist(plain, dialect_named("ngspice", foundry=foundry))
    again = compile_network(network, kit, calibration, CompilerSettings(netlist=EditedNetlist("own.sp", text)))
    assert again.assembly == plain.assembly and again.edits == ()


@pytest.mark.slow
@pytest.mark.ngspice
def test_the_kits_statistics_vary_the_network(make_network, run_testbench):
    """gf180mcu, its section `statistical` with mismatch on, as docs/how-to/foundry-kit.md says.

    Outputs move by percents and two seeds differ; without mismatch nothing moves but by the solver's reltol, 1e-4.
    """
    kit = find_kit("gf180mcu")
    if isinstance(kit, str):
        pytest.skip(kit)
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    design = compile_network(network, kit, load_calibration(shipped_path(kit.name, 8)))
    files = format_design(design, dialect=dialect_named("ngspice", foundry=True))
    section = files["devices.lib"].replace("typical", "statistical")
    assert section != files["devices.lib"]

    def drawn(name, more):
        return outputs_of(run_testbench(name, {**files, "devices.lib": section + more}))

    plain = drawn("plain", "")
    first, second = (drawn(f"seed{k}", f".param sw_stat_mismatch=1\n.option seed={k}\n") for k in (1, 2))
    np.testing.assert_allclose(plain, outputs_of(run_testbench("typical", files)), atol=5e-4 * np.abs(plain).max())
    for other in (first, second):
        assert np.abs(other - plain).max() > 0.01 * np.abs(plain).max()
    assert np.abs(first - second).max() > 0.01 * np.abs(plain).max()


def test_shipped_calibration_fits_todays_cells(kit):
    """Fails after a change of cells, sizes, devices or precise options: run `cosim calibrate` with -o."""
    shipped = load_calibration(shipped_path(kit.name, 8))
    assert shipped.fingerprint == calibration_fingerprint(kit, 8)
    assert (shipped.technology, shipped.units) == (kit.name, 8)
    assert (shipped.supply, shipped.celsius) == (kit.supply, kit.celsius)


@pytest.mark.ngspice
def test_9t_cell_has_the_thresholds_that_were_asked_for(kit):
    shipped = load_calibration(shipped_path(kit.name, 8))
    rise, fall, high = 0.8e-9, 0.35e-9, 0.5e-9
    bias = (*shipped.schmitt.solve_thresholds(rise, fall), shipped.schmitt.solve_gain(high))
    *thresholds, level = measure_schmitt(kit, 8, bias, shipped.v_node)
    # the fit's largest error over its grid, and half as much again between its points
    assert thresholds == pytest.approx([rise, fall], rel=1.5 * shipped.schmitt.error, abs=0)
    seen = high * float(shipped.mirror.interpolate(shipped.mirror.gain_p, high))
    assert level == pytest.approx(seen, rel=1.5 * shipped.schmitt.error, abs=0)


@pytest.mark.ngspice
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_signal_mirrors_hold_their_current(kit, polarity):
    """(1/I) dI/dV_DS from 0.45 to 0.9 V at 1 nA: under 5 %/V, of which a plain device of sky130's n type is far."""
    sign = {"n": 1, "p": -1}[polarity]

    def slope(geometry):
        elements = (
            Source("i", "i", *(("0", "g") if polarity == "n" else ("g", "0")), 1e-9),
            Source("d", "v", "d", "0", 0.0),
            Source("dd", "v", "vdd", "0", 0.0),
            *transistor("in", TransistorDesign("inner", polarity, geometry), "g", "g", "0"),
            *transistor("out", TransistorDesign("inner", polarity, geometry), "d", "g", "0"),
        )
        analysis = f".dc vd {0.45 * sign:e} {0.9 * sign:e} {0.45 * sign:e}"
        waves = run_deck(
            format_deck(Circuit("mirror", (), elements), kit, format_options(PRECISE, kit), analysis, "i(vd)")
        )
        assert not isinstance(waves, Failure), waves.detail
        return float(np.diff(np.log(np.abs(waves["vd#branch"])))[0] / 0.45)

    drawn = {"n": kit.sizing.mirror_n, "p": kit.sizing.mirror_p}[polarity]
    found = slope(drawn)
    assert 0 < found < 0.05
    if drawn.cascode:
        assert found < slope(Geometry(drawn.w, drawn.l)) / 3


@pytest.mark.ngspice
@pytest.mark.parametrize("gain", [0.985, 1.012])
def test_a_bias_diode_of_another_length_gives_the_gain(kit, gain):
    """Half a step of the layout grid, 2.5 nm of 4 um, and 2 % of ln gain, for the slope over currents and lengths."""
    calibration = load_calibration(shipped_path(kit.name, 8))
    benches = [sink_bench(kit, one, 2e-9, calibration.v_node) for one in (calibration.mirror.stretch(gain), 1.0)]
    took = [abs(float(run_bench(bench).through("node")[-1])) for bench in benches]
    assert took[0] / took[1] == pytest.approx(gain, rel=6e-4 + 0.02 * abs(gain - 1))


@pytest.mark.parametrize("polarity", ["n", "p"])
@pytest.mark.parametrize(("w", "l"), [(0.6e-6, 5e-6), (2e-6, 8e-6), (0.3e-6, 2e-6), (0.4e-6, 1e-6)])
def test_mismatch_is_that_of_the_section_of_gf180mcu(polarity, w, l):  # noqa: E741
    """Its fets_mm: 0.7071 par / sqrt((l - par_l) (w - par_w)); a_vt and a_beta are written with three digits."""
    kit = find_kit("gf180mcu")
    if isinstance(kit, str):
        pytest.skip(kit)
    _, _, section = kit.library.file.read_text(encoding="latin-1").partition(".lib fets_mm")
    _, _, body = section.partition(f".subckt {kit.device(polarity).name} ")
    numbers = re.findall(r"^\+ (par_\w+)=(-?[\d.e-]+)\s*$", body.partition(".ends")[0], re.MULTILINE)
    par = {name: float(value) for name, value in numbers}
    root = ((l - par["par_l"]) * (w - par["par_w"])) ** 0.5
    model = kit.device(polarity)
    side = model.mismatch_area(w, l) ** 0.5
    assert model.a_vt / side == pytest.approx(0.7071 * par["par_vth"] * 1e-6 / root, rel=1e-3)
    assert model.a_beta / side == pytest.approx(0.7071 * par["par_k"] * 1e-6 / root, rel=2e-3)


MONTE_CARLO = """
.param sw_stat_global=0 sw_stat_mismatch=1 fnoicor=0
.lib '{library}' typical
{devices}
.option seed={seed}
"""


@pytest.mark.ngspice
def test_ngspice_draws_gf180mcu_with_this_sigma(tmp_path):
    """V_GS of 1,500 n units of mirrors at 1 nA, as the kit's own section draws them.

    Their sigma is that of the threshold and, over the slope, of the factor. Its estimate deviates by 1 / sqrt(3000) =
    1.8 %, four times which is 7.3 %; drawn areas alone would give 6.4 % more, which the test above tells apart.
    """
    kit = find_kit("gf180mcu")
    if isinstance(kit, str):
        pytest.skip(kit)
    size, count = kit.sizing.mirror_n, 1500
    lines = [f"x{k} d{k} d{k} 0 0 {kit.nfet.name} w={size.w} l={size.l}\ni{k} 0 d{k} 1n" for k in range(count)]
    deck = MONTE_CARLO.format(library=kit.library.file, devices="\n".join(lines), seed=7)
    (tmp_path / "library.sp").write_text(f"* mismatch\n{deck}\n.save all\n.op\n.end\n")
    done = subprocess.run([sys.executable, "-c", RUN, "library.sp"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "waves.npz") as waves:
        volts = np.array([waves[f"d{k}"].item() for k in range(count)])
    area = kit.nfet.mismatch_area(size.w, size.l)
    slope = kit.nfet.response_at(1e-9 * size.l / size.w) * kit.thermal_voltage
    wanted = np.hypot(kit.nfet.a_vt, slope * kit.nfet.a_beta) / area**0.5
    assert volts.std(ddof=1) == pytest.approx(wanted, rel=4 / (2 * count) ** 0.5)


def test_sky130_takes_the_root_of_drawn_sizes():
    """Its models of 1.8 V devices divide by sqrt(l*w*mult), so nothing is added to them here."""
    kit = find_kit("sky130")
    if isinstance(kit, str):
        pytest.skip(kit)
    text = (kit.library.file.parent / "models_fet.spice").read_text(encoding="latin-1")
    for model in (kit.nfet, kit.pfet):
        term = rf"sw_mm_vth0_{model.name}\*mismatch_factor\*MC_MM_SWITCH\*AGAUSS\(0,1\.0,1\)/sqrt\((\S+?)\)"
        assert set(re.findall(term, text)) == {"l*w*mult"}
        assert (model.mismatch_dw, model.mismatch_dl) == (0.0, 0.0)
