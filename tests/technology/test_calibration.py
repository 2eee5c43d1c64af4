"""Calibration files, and the inverse that the compiler relies on."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cosim.base.errors import InputError, MappingError
from cosim.base.resources import models_path
from cosim.base.seal import seal_json, unseal_json
from cosim.technology.calibration import (
    CALIBRATION_FILE,
    CHIP_FILE,
    Calibration,
    ComparatorFit,
    DpiFit,
    MirrorFit,
    SchmittFit,
    load_calibration,
    write_calibration,
)
from cosim.technology.noise import NOISE_FILE

FIT = SchmittFit(
    rise=(1e-6, 0.974, -1e-4, 9e-4, -3e-6, 3e-5),
    fall=(-3e-4, 1.003, -0.995, -1e-4, -2e-4, 2e-3),
    level=(4e-4, 1.012, -1.3e-3),
    error=3e-3,
    set_shift=(2e-3, 6e-3),
    reset_shift=(-1e-3, 4e-3),
)
MIRROR = MirrorFit(
    1.038, (1e-10, 1e-9, 4e-9), (1.004, 0.998, 0.993), (1.001, 0.999, 0.997), (1.02, 1.016, 1.013),
    (1.015, 1.01, 1.008), (0.6, 0.35), 0.02, 0.03, 0.035, 0.14,
)  # fmt: skip
COMPARATOR = ComparatorFit((1e-10, 1e-9, 1e-8), (0.981, 0.985, 0.987))
DPI = DpiFit(0.02, (1e-10, 5e-10, 2e-9), (1.08, 1.049, 0.9997), 0.95, 0.97)
CALIBRATION = Calibration(
    "made_up",
    "0123456789abcdef",
    "ngspice-39",
    8,
    1.8,
    27.0,
    0.54,
    2e-14,
    2e-12,
    1e-7,
    MIRROR,
    FIT,
    COMPARATOR,
    COMPARATOR,
    DPI,
)


def test_round_trip(tmp_path):
    path = tmp_path / "file.json"
    write_calibration(path, CALIBRATION)
    assert load_calibration(path) == CALIBRATION  # every number here has fewer than the 9 digits that are written


def test_nine_digits_are_written(tmp_path):
    write_calibration(tmp_path / "file.json", replace(CALIBRATION, v_node=1 / 3))
    assert load_calibration(tmp_path / "file.json").v_node == 0.333333333


def test_absent_file(tmp_path):
    with pytest.raises(InputError, match=r"absent\.json: no calibration there; make it anew with: cosim calibrate"):
        load_calibration(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.update(format=CALIBRATION_FILE.format - 1),
            f"holds no calibration of format {CALIBRATION_FILE.format}",
        ),
        (lambda c: c.pop("format"), f"holds no calibration of format {CALIBRATION_FILE.format}"),
        (lambda c: c.pop("mirror"), "must have the field mirror"),
        (lambda c: c["mirror"].pop("trim"), "mirror must have the field trim"),
        (lambda c: c["schmitt"].update(surprise=1), "schmitt.surprise is no field; known are error, fall, level"),
        (lambda c: c.pop("upper"), "must have the field upper"),
        (lambda c: c["dpi"].pop("share"), "dpi must have the field share"),
        (lambda c: c.update(surprise=1), "surprise is no field; known are celsius, current_max"),
        (lambda c: c.update(mirror=None), "mirror must be a table, not null"),
        (lambda c: c["mirror"]["gain_n"].__setitem__(1, "1"), r"mirror.gain_n\[1\] must be a number, not text"),
        (lambda c: c["mirror"]["gain_n"].__setitem__(1, -1), "mirror.gain_n must be positive, one per current"),
        (lambda c: c["mirror"]["gain_push"].pop(), "mirror.gain_push must be positive, one per current"),
        (lambda c: c["mirror"]["currents"].reverse(), "mirror.currents must be positive and rising"),
        (lambda c: c["dpi"]["alphas"].__setitem__(0, 0), "dpi.alphas must be positive and rising"),
        (lambda c: c["upper"].update(currents=[], ratios=[]), "upper.currents must be positive and rising"),
        (lambda c: c["schmitt"]["rise"].append(1.0), "schmitt.rise must be a list of 6"),
        (lambda c: c["schmitt"].update(level=[float("nan")] * 3), r"schmitt.level\[2\]: must be a finite number"),
        (lambda c: c.update(units=10**30), "units: must be a whole number of at most 64 bits"),
        (lambda c: c.update(units=65), "units must be 1 to 64"),
        (lambda c: c.update(supply=0), "supply must be positive and in SI units"),
        (lambda c: c.update(celsius=-300), "celsius must be a temperature in celsius"),
        (lambda c: c.update(current_max=0), "current_max must be above current_min, in ampere"),
        (lambda c: c.update(simulator="\x1b[2J"), "technology must be printable, as simulator must be"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, message):
    path = tmp_path / "file.json"
    write_calibration(path, CALIBRATION)
    content = json.loads(unseal_json(path.read_bytes()))
    change(content)
    path.write_bytes(seal_json(content))
    with pytest.raises(InputError, match=rf"file\.json: {message}.*; make it anew with: cosim calibrate"):
        load_calibration(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '"text"', "\x00", "[" * 10**5])
def test_not_json_or_not_an_object(tmp_path, text):
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"file\.json: damaged, or of a cosim without checksums: .*; make it anew"):
        load_calibration(path)


@given(st.floats(0.03e-9, 4e-9), st.floats(0.12, 0.85))
def test_solve_thresholds_inverts_the_fit(rise, fraction):
    fall = rise * (1 - fraction)
    i_thresh, i_width = FIT.solve_thresholds(rise, fall)
    # The solver stops at 1e-15 A in sum.
    assert float(FIT.i_rise(np.float64(i_thresh), np.float64(i_width))) == pytest.approx(rise, abs=1e-15, rel=0)
    assert float(FIT.i_fall(np.float64(i_thresh), np.float64(i_width))) == pytest.approx(fall, abs=1e-15, rel=0)


@given(st.floats(0.05e-9, 4e-9), st.floats(0.01e-9, 3e-9))
def test_solve_thresholds_finds_the_biases_again(i_thresh, i_width):
    assume(i_width < 0.9 * i_thresh)
    rise = float(FIT.i_rise(np.float64(i_thresh), np.float64(i_width)))
    fall = float(FIT.i_fall(np.float64(i_thresh), np.float64(i_width)))
    assume(fall < rise)
    # 1e-15 A of residue over slopes of 0.97 and more
    assert FIT.solve_thresholds(rise, fall) == pytest.approx((i_thresh, i_width), abs=3e-15, rel=0)


@given(st.floats(0.1e-9, 4e-9), st.floats(0.12, 0.85))
def test_solve_clocked_inverts_the_fit_and_the_shifts(i_set, fraction):
    i_reset = i_set * (1 - fraction)
    pair = tuple(map(np.float64, FIT.solve_clocked(i_set, i_reset)))
    # 1e-15 A of the solver, times 1 + shift
    assert float(FIT.set_in_frame(FIT.i_rise(*pair))) == pytest.approx(i_set, abs=1.1e-15, rel=0)
    assert float(FIT.reset_in_frame(FIT.i_fall(*pair))) == pytest.approx(i_reset, abs=1.1e-15, rel=0)


def test_a_frame_moves_the_thresholds():
    assert float(FIT.set_in_frame(np.float64(1e-9))) == pytest.approx(1.008e-9, rel=1e-12, abs=0)
    assert float(FIT.reset_in_frame(np.float64(1e-9))) == pytest.approx(0.997e-9, rel=1e-12, abs=0)


@given(st.floats(0.02e-9, 4e-9))
def test_solve_gain_inverts_the_fit(high):
    assert float(FIT.i_high(np.float64(FIT.solve_gain(high)))) == pytest.approx(high, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("rise", "fall"), [(1e-9, 2e-9), (-1e-9, -2e-9), (1e-9, 1.02e-9), (np.nan, 1e-10), (1e-3, 1e-10)]
)
def test_unsolvable_thresholds(rise, fall):
    with pytest.raises(MappingError, match="no bias gives a 9T cell the thresholds .* keep 0 < lower < upper"):
        FIT.solve_thresholds(rise, fall)


def test_gains_are_interpolated_over_log_current_and_flat_outside():
    middle = float(MIRROR.interpolate(MIRROR.gain_n, np.float64(np.sqrt(1e-10 * 1e-9))))
    assert middle == pytest.approx((1.004 + 0.998) / 2, rel=1e-12)
    assert float(MIRROR.interpolate(MIRROR.gain_n, np.float64(1e-12))) == 1.004
    assert float(MIRROR.interpolate(MIRROR.gain_n, np.float64(1.0))) == 0.993
    assert float(MIRROR.interpolate(MIRROR.gain_n, np.float64(0.0))) == 1.004
    assert MIRROR.push == pytest.approx(1.016, rel=1e-12)
    assert MIRROR.sink == pytest.approx(1.01, rel=1e-12)
    assert MIRROR.pushed([1e-10, 4e-9]) == pytest.approx([1.02e-10, 4.052e-9], rel=1e-12)
    assert MIRROR.sink_bias(1e-10) == pytest.approx(1e-10 / 1.015, rel=1e-12)


def test_a_bias_diode_is_longer_for_more_and_shorter_for_less():
    """gain = length^slope, each side with its own."""
    assert [MIRROR.stretch(gain) for gain in (1.03**0.35, 1.0, 0.97**0.6)] == pytest.approx(
        [1.03, 1.0, 0.97], rel=1e-12
    )


def test_node_falls_by_one_swing_per_e_fold():
    drop = MIRROR.node_drop(np.array([1e-9, np.e * 1e-9]))
    assert drop == pytest.approx([0.0, 0.035], abs=1e-15)
    assert MIRROR.node_drop(np.array([1e-9]), relu=True) == pytest.approx([-0.14], abs=1e-15)


@given(st.floats(0.05e-9, 8e-9))
def test_solve_comparator_inverts_the_fit(threshold):
    """A fixed point whose error shrinks by 1 - ratio, about 0.015, a step: 60 steps leave float64 rounding."""
    assert float(COMPARATOR.decides_at(COMPARATOR.solve(threshold))) == pytest.approx(threshold, rel=1e-12, abs=0)


def test_comparator_in_numbers():
    assert float(COMPARATOR.decides_at(1e-9)) == pytest.approx(0.985e-9, rel=1e-12, abs=0)  # the middle point
    assert COMPARATOR.solve(0.985e-9) == pytest.approx(1e-9, rel=1e-12, abs=0)


@pytest.mark.parametrize(("alpha", "ratio"), [*zip(DPI.alphas, DPI.ratios, strict=True)])
def test_dpi_ratio_at_a_measured_alpha(alpha, ratio):
    assert DPI.ratio(alpha) == pytest.approx(ratio, rel=1e-12)


def test_dpi_ratio_is_linear_over_log_alpha_and_flat_outside():
    assert DPI.ratio(float(np.sqrt(1e-10 * 5e-10))) == pytest.approx((1.08 + 1.049) / 2, rel=1e-12)
    assert (DPI.ratio(1e-12), DPI.ratio(1e-7)) == (1.08, 0.9997)


def test_every_shipped_file_is_whole():
    """One that is not would be measured anew, which takes minutes, without a word why."""
    loads = {"calibration": load_calibration, "noise": NOISE_FILE.load, "chip": CHIP_FILE.load}
    paths = sorted((models_path() / "devices").glob("*.json"))
    assert len(paths) >= 8
    for path in paths:
        loads[path.name.split(".")[-2]](path)
