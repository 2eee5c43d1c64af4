"""The calibration that comes with the package is that of today's cells, and ngspice agrees with it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.base.store import cache_folder, make_cached_path
from cosim.cells.benches import mirror_bench, schmitt_bench, sink_bench
from cosim.circuit.bench import Current, Tolerances, Voltage
from cosim.circuit.elements import Circuit
from cosim.engines import table
from cosim.engines.engine import Failure, FailureKind, Waveforms
from cosim.engines.ngspice.process import run_bench
from cosim.engines.ngspice.simulator import Ngspice
from cosim.technology.calibration import load_calibration, write_calibration
from cosim.units.register import level_fit
from cosim.verbs.calibrate import find as calibration_files
from cosim.verbs.calibrate import fingerprint, native
from cosim.verbs.calibrate import measure as calibrate
from cosim.verbs.calibrate.find import cached_name, find_calibration, shipped_path
from cosim.verbs.calibrate.fingerprint import POINTS, calibration_fingerprint
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.calibrate.native import measure_comparator, measure_dpi_output, measure_turn

SHIPPED = sorted(
    int(path.name.split(".")[1][1:]) for path in shipped_path("generic180", 8).parent.glob("generic180.u*.json")
)


def test_there_is_one_for_eight_units():
    assert 8 in SHIPPED


@pytest.mark.parametrize("units", SHIPPED)
def test_shipped_calibration_fits_todays_cells(technology, units):
    """Fails after a change of cells, sizes, devices or precise options: run `cosim calibrate --units N -o FILE`."""
    shipped = load_calibration(shipped_path("generic180", units))
    assert shipped.fingerprint == calibration_fingerprint(technology, units)
    assert (shipped.technology, shipped.units) == ("generic180", units)
    assert (shipped.supply, shipped.celsius) == (technology.supply, technology.celsius)
    assert shipped.schmitt.error < 0.01
    for fit in (shipped.upper, shipped.lower):
        assert np.ptp(fit.ratios) < 0.01  # so that lines between the points are good to 0.1 %
    # a DPI is near its equation: 10 % in gain, where I_g / I_tau = 1 / 0.98 is ideal, and in both times
    assert np.abs(0.98 * np.array(shipped.dpi.ratios) - 1).max() < 0.1
    assert (shipped.dpi.rise, shipped.dpi.fall) == pytest.approx((1.0, 1.0), abs=0.1)


def changed(value):
    """Another measuring point: a number more, or one that is another."""
    return value[1:] if isinstance(value, tuple) else value + 1


def test_fingerprint_does_not_follow_comments(technology, monkeypatch):
    first = calibration_fingerprint(technology, 8)

    def told(*arguments):
        bench = schmitt_bench(*arguments)
        elements = tuple(replace(element, origin="what it is for") for element in bench.circuit.elements)
        blocks = tuple(replace(block, summary="another") for block in bench.circuit.subcircuits)
        return replace(bench, circuit=Circuit("another title", blocks, elements), notes=("a note",))

    monkeypatch.setattr(fingerprint, "schmitt_bench", told)
    assert calibration_fingerprint(technology, 8) == first
    wider = Tolerances(reltol=1e-6)
    monkeypatch.setattr(fingerprint, "schmitt_bench", lambda *a: replace(schmitt_bench(*a), tolerances=wider))
    assert calibration_fingerprint(technology, 8) != first


def test_fingerprint_follows_sizing_units_supply_corner_points_and_devices(technology, tmp_path):
    first = calibration_fingerprint(technology, 8)
    sizing = replace(technology.sizing, cell_n=replace(technology.sizing.cell_n, l=6e-6))
    card = technology.library.file.read_text()
    assert "vth0='0.60+dvth_n'" in card

    def with_card(folder, text):
        file = tmp_path / folder / technology.library.file.name  # the file names itself
        file.parent.mkdir()
        file.write_text(text)
        return replace(technology, library=replace(technology.library, file=file))

    others = [
        calibration_fingerprint(technology, 16),
        calibration_fingerprint(replace(technology, sizing=sizing), 8),
        calibration_fingerprint(replace(technology, supply=1.7), 8),
        calibration_fingerprint(replace(technology, corner="ff"), 8),
        calibration_fingerprint(replace(technology, grid=1e-7), 8),
        calibration_fingerprint(replace(technology, celsius=28.0), 8),
        calibration_fingerprint(replace(technology, nfet=replace(technology.nfet, slope_factor=1.31)), 8),
        *(
            calibration_fingerprint(technology, 8, replace(POINTS, **{name: changed(value)}))
            for name, value in vars(POINTS).items()
        ),
        calibration_fingerprint(with_card("other", card.replace("0.60+dvth_n", "0.61+dvth_n")), 8),
    ]
    assert len({first, *others}) == 9 + len(vars(POINTS))
    same = card.replace("0.60+dvth_n", "6.0e-1 + dvth_n")
    assert calibration_fingerprint(with_card("written otherwise", same), 8) == first
    assert calibration_fingerprint(with_card("comment", "* another comment\n" + card), 8) == first


@pytest.mark.ngspice
@pytest.mark.parametrize("bias", [(0.3e-9, 0.17e-9, 0.2e-9), (1.3e-9, 0.4e-9, 1.1e-9), (2.9e-9, 2.1e-9, 2.3e-9)])
def test_cell_at_new_points_agrees_with_the_shipped_fit(technology, calibration, bias):
    """Points off the fit's grid: within its own largest error, and half as much again between its points."""
    fit = calibration.schmitt
    rise, fall, level = measure_schmitt(technology, 8, bias, calibration.v_node)
    expected = (*(float(f(np.float64(bias[0]), np.float64(bias[1]))) for f in (fit.i_rise, fit.i_fall)),)
    assert (rise, fall) == pytest.approx(expected, rel=1.5 * fit.error, abs=0)
    assert level == pytest.approx(float(fit.i_high(np.float64(bias[2]))), rel=1.5 * fit.error, abs=0)


@pytest.mark.ngspice
@pytest.mark.parametrize("current", [1e-10, 1e-9, 4e-9])
def test_mirror_gains_are_the_shipped_ones(technology, calibration, current):
    """The same bench at a measured current: equal but for the 9 digits that are kept and for another ngspice, 1e-5."""
    mirror = calibration.mirror
    waves = run_bench(mirror_bench(technology, 8, mirror.trim, current, calibration.v_node))
    assert not isinstance(waves, Failure), waves.detail
    for source, gains in (("n", mirror.gain_n), ("p", mirror.gain_p), ("push", mirror.gain_push)):
        found = abs(float(waves.through(source)[-1])) / current
        assert found == pytest.approx(float(mirror.interpolate(gains, np.float64(current))), rel=2e-5)


@pytest.mark.ngspice
@pytest.mark.parametrize("current", [2e-11, 1e-9, 4e-9])
def test_a_sink_takes_what_was_asked_of_its_bias(technology, calibration, current):
    """At currents that were measured: the 9 digits that are kept, and another ngspice, 1e-5."""
    bias = calibration.mirror.sink_bias(current)
    waves = run_bench(sink_bench(technology, 1.0, bias, calibration.v_node))
    assert not isinstance(waves, Failure), waves.detail
    assert abs(float(waves.through("node")[-1])) == pytest.approx(current, rel=2e-5)


@pytest.mark.ngspice
@pytest.mark.parametrize("gain", [0.985, 1.012])
def test_a_bias_diode_of_another_length_gives_the_gain(technology, calibration, gain):
    """Half a step of the layout grid, 2.5 nm of 5 um, and 4e-4 of the slope over the currents, of 2 % each."""
    stretch = calibration.mirror.stretch(gain)
    for current in (0.5e-9, 6e-9):
        took = [
            abs(float(run_bench(sink_bench(technology, one, current, calibration.v_node)).through("node")[-1]))
            for one in (stretch, 1.0)
        ]
        assert took[0] / took[1] == pytest.approx(gain, rel=6e-4)


@pytest.mark.ngspice
@pytest.mark.parametrize("upper", [True, False])
def test_comparator_at_a_new_point_agrees_with_the_shipped_fit(technology, calibration, upper, monkeypatch):
    """Between two points, whose ratios differ by 3e-4: a straight line over log current is off by less than that.

    The decision is 1.5 % below the threshold: candidates are 0.4 % apart as those of the calibration, within 2 % alone.
    """
    assert POINTS.comparator_spans[0] / (POINTS.comparator_steps - 1) == pytest.approx(0.02 / 10, rel=0.05)
    monkeypatch.setattr(native, "POINTS", replace(POINTS, comparator_spans=(0.02,), comparator_steps=11))
    fit = calibration.upper if upper else calibration.lower
    i_thresh = 1.4e-9  # other points: tests/cells/test_quantiser.py
    expected = float(fit.decides_at(i_thresh))
    assert measure_comparator(technology, i_thresh, upper=upper) == pytest.approx(expected, rel=3e-4, abs=0)


@pytest.mark.ngspice
def test_comparator_without_a_decision_says_so(technology, monkeypatch):
    """In the last of its spans, at both ends."""
    last = replace(POINTS, comparator_spans=POINTS.comparator_spans[-1:], comparator_steps=2)
    monkeypatch.setattr(native, "POINTS", last)
    text = r"comparator at I_thresh 1e-14 A did not change its decision within 50 % of that"
    with pytest.raises(SimulationError, match=text):
        measure_comparator(technology, 1e-14)


@pytest.mark.slow
@pytest.mark.ngspice
def test_a_registers_level_at_a_new_point_agrees_with_the_shipped_fit(technology, calibration):
    """A turn is found in steps of 1.5 pA, at 1.4 nA as at both points around it: 0.8 pA each. What a level was moves it
    by less than the 15.6 pA that values of weights and inputs in eighths lie apart."""
    i_turn = 1.4e-9
    up, down = (measure_turn(technology, 8, i_turn, far, "ngspice") for far in (0.0, 2.0))
    assert (up + down) / 2 == pytest.approx(level_fit(calibration).value(i_turn) - i_turn, abs=1.6e-12)
    assert 0 <= up - down < 5e-12


@pytest.mark.ngspice
def test_a_registers_level_that_does_not_turn_says_so(technology, monkeypatch):
    monkeypatch.setattr(native, "POINTS", replace(POINTS, level_reach=(1e-12, 0.0), level_steps=3))
    with pytest.raises(SimulationError, match="level at a turn of 1e-09 A does not turn within 1e-12 A of it"):
        measure_turn(technology, 8, 1e-9, 0.0, "ngspice")


@pytest.mark.ngspice
@pytest.mark.parametrize("alpha", [0.25e-9, 1e-9])
def test_dpi_has_a_gain_of_one_at_the_shipped_ratio(technology, calibration, alpha):
    """At the alphas that were measured: the secant method ends within 1e-6; 9 digits; another ngspice, 1e-5."""
    i_tau = calibration.dpi.share * alpha
    i_g = i_tau * calibration.dpi.ratio(alpha)
    assert measure_dpi_output(technology, 8, (alpha, i_tau, i_g), calibration.v_node) == pytest.approx(
        alpha, rel=2e-5, abs=0
    )


@pytest.mark.ngspice
def test_too_narrow_cell_says_so(technology, calibration):
    text = (
        "9T cell at I_thresh 1e-09 A, I_width 1e-13 A switched .* times on one ramp up and down, not twice: the width"
    )
    with pytest.raises(SimulationError, match=text):
        measure_schmitt(technology, 8, (1e-9, 1e-13, 1e-9), calibration.v_node, i_peak=0.5e-9)


def test_failed_bench_says_so(technology, calibration, monkeypatch):
    failure = Failure(FailureKind.CONVERGENCE, "singular matrix", "")
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: failure)
    with pytest.raises(SimulationError, match="calibration bench: the simulator found no convergence: singular matrix"):
        measure_schmitt(technology, 8, (1e-9, 5e-10, 1e-9), calibration.v_node)


@pytest.fixture
def files(monkeypatch, tmp_path):
    """No shipped calibration, an empty cache, and no measurement allowed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("cosim.technology.fit_file.models_path", lambda: tmp_path / "absent")

    def measure(technology, units, progress):
        raise MissingToolError("libngspice is missing: install it")

    monkeypatch.setattr(calibration_files, "calibrate", measure)
    return monkeypatch


@pytest.mark.parametrize(
    ("latch", "text"),
    [(1.8, r"clocked 9T cell flips 2\.3e-11 A before its threshold of 1e-09 A already"),
     (0.0, r"clocked 9T cell did not flip 2\.3e-11 A beyond its threshold of 1e-09 A")],
)  # fmt: skip
def test_a_cell_that_flips_at_every_candidate_or_at_none(technology, monkeypatch, latch, text):
    waves = Waveforms(np.array([0.0, 1e3]), {Voltage("xcell.latch"): np.array([latch, latch])})
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: waves)
    with pytest.raises(SimulationError, match=text):
        calibrate.measure_frame_shift(technology, 8, (1e-9, 0.5e-9, 1e-9), (1e-9, 0.5e-9), sets=True)


@pytest.mark.parametrize("current", [0.0, np.nan])
def test_mirrors_without_current(technology, monkeypatch, current):
    waves = Waveforms(np.empty(0), {Current(source): np.array([current]) for source in ("n", "p", "push")})
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: waves)
    with pytest.raises(SimulationError, match="mirrors of generic180 deliver .* times 1e-09 A; check its devices"):
        calibrate._gains(technology, 8, 1.0, 1e-9, 0.5, "ngspice")


def gains_of(excess):
    """What `_gains` finds where ln(gain of n / gain of p) is a function of ln(drawn length / nominal length)."""
    return lambda technology, units, trim, current, v_node, simulator: (math.exp(excess(-math.log(trim))), 1.0, 1.0)


@pytest.mark.parametrize("grid", [5e-9, 5e-8])
@pytest.mark.parametrize("offset", [0.0, 0.003, 0.02, -0.03])
def test_the_trim_is_the_length_on_the_grid_that_fits_best(technology, monkeypatch, grid, offset):
    """A gain that goes as length^0.8, over grids in which the secant's second point may be the first one."""
    coarse = replace(technology, grid=grid)
    monkeypatch.setattr(calibrate, "_gains", gains_of(lambda x: offset + 0.8 * x))
    length = coarse.sizing.mirror_n.l
    found = length / calibrate._find_trim(coarse, 8, 0.5, "ngspice")
    assert found == pytest.approx(coarse.snap(found), rel=1e-12, abs=0)
    # the best of all lengths on the grid is not further than half a step from the exact one
    assert abs(found - length * math.exp(-offset / 0.8)) <= 0.51 * grid


@pytest.mark.parametrize("excess", [lambda x: 4.0 + 0.8 * x, lambda x: 0.1, lambda x: 0.1 - x])
def test_no_length_gives_both_lines_the_same_gain(technology, monkeypatch, excess):
    monkeypatch.setattr(calibrate, "_gains", gains_of(excess))
    text = r"calibration of generic180: no length of line n gives it the gain of line p: at 5e-06 m their ratio is"
    with pytest.raises(SimulationError, match=text):
        calibrate._find_trim(technology, 8, 0.5, "ngspice")


def test_a_library_without_the_trimmed_length(technology, monkeypatch):
    def gains(technology, units, trim, current, v_node, simulator):
        if trim != 1:
            raise InputError("n has no model of w 1 um, l 4.9 um")
        return 1.02, 1.0, 1.0

    monkeypatch.setattr(calibrate, "_gains", gains)
    with pytest.raises(InputError, match=r"sizing\.mirror_n\.l = 5e-06 m is trimmed to 4\.\d+e-06 m: n has no model"):
        calibrate._find_trim(technology, 8, 0.5, "ngspice")


def test_no_calibration_and_no_ngspice(files, technology):
    text = "no calibration of generic180 with 8 unit devices fits this version, and a new one needs ngspice: libngspice"
    with pytest.raises(MissingToolError, match=text) as error:
        find_calibration(technology, 8)
    assert error.value.exit_code == 1


def test_cached_calibration_is_used(files, technology, calibration):
    write_calibration(make_cached_path(cached_name(technology.name, 8)), calibration)
    assert find_calibration(technology, 8) == calibration


def test_stale_or_damaged_cache_is_measured_again(files, technology, calibration):
    fresh = replace(calibration, v_node=0.5)
    files.setattr(calibration_files, "calibrate", lambda technology, units, progress: fresh)
    path = make_cached_path(cached_name(technology.name, 8))
    for spoil, said in (
        (lambda: write_calibration(path, replace(calibration, fingerprint="0" * 16)), []),
        (lambda: path.write_text("{"), [f"{path}: damaged or of an earlier cosim, measured anew"]),
    ):
        spoil()
        heard = []
        assert find_calibration(technology, 8, heard.append) == fresh and heard == said
        assert load_calibration(cache_folder() / cached_name(technology.name, 8)) == fresh


def test_a_first_run_has_the_numbers_of_the_next(files, technology, calibration):
    """The file has 9 digits; what is measured is used as the file has it."""
    files.setattr(calibration_files, "calibrate", lambda *_: replace(calibration, v_node=0.5123456789123))
    first = find_calibration(technology, 8)
    assert first.v_node == 0.512345679
    assert (
        find_calibration(technology, 8) == first == load_calibration(cache_folder() / cached_name(technology.name, 8))
    )


def test_a_cache_that_cannot_be_written_costs_the_file_not_the_calibration(files, technology, calibration, tmp_path):
    """A file where the cache's folder should be: nothing can be read there, nothing written."""
    (tmp_path / "in_the_way").write_text("")
    files.setenv("XDG_CACHE_HOME", str(tmp_path / "in_the_way"))
    fresh, heard = replace(calibration, v_node=0.5), []
    files.setattr(calibration_files, "calibrate", lambda technology, units, progress: fresh)
    assert find_calibration(technology, 8, heard.append) == fresh
    path = cache_folder() / cached_name(technology.name, 8)
    assert heard == [
        f"calibration not kept: cannot write {path}: Not a directory; choose another place, by setting XDG_CACHE_HOME"
    ]


@pytest.mark.ngspice
@pytest.mark.slow
def test_whole_calibration_measured_anew_equals_the_shipped_one(technology, calibration, monkeypatch):
    """In ngspice by another name: none of its benches goes to the simulator that is there by default."""
    monkeypatch.setattr(table, "ENGINES", (table.Entry("other", lambda: Ngspice("other")),))
    anew = calibrate.calibrate(technology, 8, simulator="other")
    assert anew.simulator.startswith("other-")
    # The same benches: another version of ngspice, at reltol 1e-5, and one time step of the ramp for the thresholds
    assert anew.mirror.trim == pytest.approx(calibration.mirror.trim, rel=1e-4)
    for name in ("gain_n", "gain_p", "gain_push"):
        assert getattr(anew.mirror, name) == pytest.approx(getattr(calibration.mirror, name), rel=1e-4)
    point = np.float64(1e-9), np.float64(4e-10)
    assert float(anew.schmitt.i_rise(*point)) == pytest.approx(
        float(calibration.schmitt.i_rise(*point)), rel=2e-3, abs=0
    )
    assert float(anew.schmitt.i_fall(*point)) == pytest.approx(
        float(calibration.schmitt.i_fall(*point)), rel=2e-3, abs=0
    )
    for ours, theirs in ((calibration.upper, anew.upper), (calibration.lower, anew.lower)):
        assert float(theirs.decides_at(1e-9)) == pytest.approx(float(ours.decides_at(1e-9)), rel=1e-3, abs=0)
    assert level_fit(anew).value(1e-9) == pytest.approx(level_fit(calibration).value(1e-9), abs=1e-12)
    assert anew.dpi.ratios == pytest.approx(calibration.dpi.ratios, rel=1e-4)
    assert (anew.dpi.rise, anew.dpi.fall) == pytest.approx((calibration.dpi.rise, calibration.dpi.fall), rel=1e-3)
