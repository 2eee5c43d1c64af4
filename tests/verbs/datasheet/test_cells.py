"""The datasheets of the cells: what they measure is what calibration measured, and what mismatch says.

Tolerances of the typical values: FIT is the largest error of the fit of the Schmitt trigger. A frame lets a comparator
0.7 * 10 ms to move its output, of some 0.1 pF, by the 0.25 V that decide: 0.1 pF 0.25 V / 7 ms = 3.5 pA, 1 % of 350 pA
and 2 % of 150 pA, more than on a slow ramp. STEP is half of the step by which a clocked sheet's candidate creeps.
"""

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from cosim.results.kept_page import read_page
from cosim.results.page import Table
from cosim.technology.calibration import load_calibration
from cosim.units.register import level_fit
from cosim.variation.sigma import derive_mismatch
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.datasheet.sheet import read_sheet

FOLDER = Path(__file__).resolve().parents[3] / "netlists" / "cells"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
CALIBRATION = load_calibration(shipped_path("generic180", 8))
MIRROR, SCHMITT, PICO = CALIBRATION.mirror, CALIBRATION.schmitt, 1e-12
FIT, STEP = SCHMITT.error, 4.0 * PICO


def gain(gains, current):
    return float(MIRROR.interpolate(gains, current))


def corner(push):
    """The part of a push that a rectifier's diode carries where pull and push are equal (cosim/cells/rectifier.py)."""
    rest = 0.01
    for _ in range(50):
        lifted = (MIRROR.slope_n + MIRROR.slope_p) * MIRROR.swing * math.log(1e-9 / (rest * push))
        rest = gain(MIRROR.gain_n, push) - gain(MIRROR.gain_p, push) + lifted
    return rest


def typical():
    """(sheet, measure) -> (what calibration or the equation says at the sheet's set-point, absolute tolerance)."""
    rise, fall = (float(each(350 * PICO, 200 * PICO)) for each in (SCHMITT.i_rise, SCHMITT.i_fall))
    level, sunk = float(SCHMITT.i_high(500 * PICO)), (gain(MIRROR.gain_sink, one) for one in (rise, fall))
    upper, lower = (float(fit.decides_at(i)) for fit, i in ((CALIBRATION.upper, 3.5e-10), (CALIBRATION.lower, 1.5e-10)))
    relative = {
        # the same circuit in a transient, settled, with the node at 0.54 V in place of 0.53984 V
        **{("mirror", f"gain_{line}"): (gain(getattr(MIRROR, f"gain_{line}"), 1e-9), 1e-4) for line in "np"},
        **{("mirror", f"gain_{line}_small"): (gain(getattr(MIRROR, f"gain_{line}"), 1e-10), 1e-4) for line in "np"},
        # the slope of 0.2 V below the node, not around it: a drain's conductance falls by a few per cent in 0.1 V
        ("mirror", "slope_n"): (MIRROR.slope_n, 0.1),
        ("mirror", "slope_p"): (MIRROR.slope_p, 0.1),
        ("bias", "copy"): (gain(MIRROR.gain_sink, 100 * PICO), 1e-4),
        ("schmitt_9t", "i_rise"): (rise, FIT),
        ("schmitt_9t", "i_fall"): (fall, FIT),
        ("schmitt_9t", "level"): (level, 1e-3),  # the reading weight has a gain of 0.9993
        # the line `in` is a sink of a candidate node, whose gain calibration knows; two fits
        ("ladder", "i_rise"): (rise / next(sunk), FIT),
        ("ladder", "i_fall"): (fall / next(sunk), FIT),
        # the second output of a rung is M5 with its switch, whose drain is at another node: 2 %/V over 0.2 V
        ("ladder", "level"): (level, 0.004),
        ("rectifier", "corner"): (corner(1e-9) * 1e-9, 0.05),  # 0.05 % of the gains, 1 % of the corner's logarithm
        ("quantiser", "i_upper"): (upper, 0.01),
        ("quantiser", "i_lower"): (lower, 0.02),
        **{("register", f"turn_{k}"): (float(level_fit(CALIBRATION).value(k * 5e-10)), 0.01) for k in (1, 2, 3)},
        ("dpi", "gain"): (1.0, 1e-3),  # by the calibration of I_g, to the secant's last step
        ("dpi", "tau"): (2.5e-3 * 1.07, 0.07),  # 0 to 14 % by the gates of two 25 um2 devices on 0.73 pF
        ("tau_cell", "tau_down"): (10e-3, 0.05),  # C_b / C of 4 %, and n of M4 between 1.31 and 1.32
        ("winner", "turn"): (1.0, 1e-3),  # by symmetry; time steps of a ramp of 0.1 a second
    }
    stepped = {
        ("schmitt_clocked", "i_set"): (float(SCHMITT.set_in_frame(rise)), STEP + FIT * rise),
        ("schmitt_clocked", "i_reset"): (float(SCHMITT.reset_in_frame(fall)), STEP + FIT * fall),
        ("toggle", "i_upper"): (upper, STEP + 0.01 * upper),
        ("toggle", "period"): (20e-3, 0.2e-3),  # an edge of the output is slower than a pulse's by C V / I of its gate
    }
    return stepped | {key: (value, share * value) for key, (value, share) in relative.items()}


def spreads(technology):
    """(sheet, measure) -> standard deviation over chips by the mismatch of devices, as a sheet's comment derives."""
    model = derive_mismatch(technology, 0.125)
    n, p, eight = 2**0.5 * model.cell_n, 2**0.5 * model.cell_p, model.mirror_p / 8**0.5
    whole = math.hypot(n, p)
    return {
        ("mirror", "gain_n"): math.hypot(*[eight] * 3, model.mirror_n / 5**0.5),
        ("mirror", "gain_p"): math.hypot(eight, model.mirror_p / 3**0.5),
        ("bias", "copy"): n,
        ("schmitt_9t", "i_rise"): 341 * PICO * whole,
        ("schmitt_9t", "i_width"): 191 * PICO * math.hypot(n, p, p),
        ("schmitt_9t", "level"): 506 * PICO * math.hypot(n, eight, eight),
        ("dpi", "gain"): math.hypot(eight, eight, n, n, p),
        ("quantiser", "i_upper"): 344 * PICO * whole,
        ("register", "turn_2"): 0.986e-9 * math.hypot(n, eight, eight),
        ("winner", "turn"): n,
    }


def figures(cosim_main, sheet, folder, *options):
    told = folder.parent / f"{folder.name}.json"
    code, _, err = cosim_main("datasheet", sheet, "-o", folder, "--json", told, "-j", 1, *options)
    assert code == 0, err
    return json.loads(told.read_text())


def check_typical(name, found):
    """Compare the nominal values of a sheet's measures with the calibration; return how many there are."""
    known = {measure: pair for (sheet, measure), pair in typical().items() if sheet == name}
    for line in found["lines"]:
        if (pair := known.pop(line["measure"]["name"], None)) is not None:
            assert line["conditions"]["nominal"] == pytest.approx(pair[0], abs=pair[1]), line["measure"]["name"]
    assert not known


def check_markdown(folder):
    """Read the tables of datasheet.md back: they are those of the page."""
    text = (folder / "datasheet.md").read_text()
    page = read_page(folder)
    assert text.startswith(f"# {page.title}\n") and page.lead in text
    tables = [block for section in page.sections for block in section.blocks if isinstance(block, Table)]
    assert len(tables) >= 5
    for table in tables:
        for row in (table.head, *table.rows):
            assert f"\n| {' | '.join(row)} |\n" in text


@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_is_read_and_says_what_its_limits_are(name):
    sheet = read_sheet(FOLDER / f"{name}.toml")
    assert len(sheet.conditions) == 45 and any(measure.is_limited for measure in sheet.measures)
    text = (FOLDER / f"{name}.toml").read_text()
    assert re.search(r"^# Limits ", text, re.MULTILINE) and max(map(len, text.splitlines())) <= 120


@pytest.mark.ngspice
@pytest.mark.parametrize("name", ["bias", "schmitt_9t"])
def test_two_sheets_small(batch, cosim_main, tmp_path, name):
    """Two conditions and a few chips: typical values as calibrated, in the limits, and tables as markdown.

    The same chips in ngspice differ by less than 2 % of a sigma, from the fit of the device tables, where the measure
    has a spread to speak of, above 1 %. Leakage has none, nor has a ratio of two currents of one device.
    """
    shutil.copy(FOLDER / f"{name}.sp", tmp_path)
    text = (FOLDER / f"{name}.toml").read_text()
    text = text.replace('"tt", "ss", "ff", "fs", "sf"', '"tt"').replace("27, 0, 60", "27, 60")
    (tmp_path / f"{name}.toml").write_text(text.replace("1.8, 1.62, 1.98", "1.8"))
    found = figures(cosim_main, tmp_path / f"{name}.toml", tmp_path / "run", "--chips", 6, "--audit", 1)
    assert len(found["conditions"]) == 2 and found["elsewhere"] == 0 and found["yield"]["passed"] == 6
    check_typical(name, found)
    check_markdown(tmp_path / "run")
    for line in found["lines"]:
        assert line["conditions"]["failing"] == 0
        chips = line["chips"]
        assert chips["sigma"] < 0.01 * chips["mean"]["mean"] or line["audit"]["largest"] < 0.02, line["measure"]["name"]


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_keeps_its_limits_in_every_corner(batch, cosim_main, tmp_path, technology, name):
    """All conditions keep the limits, typical values are calibration's, and the spread is that of the devices.

    Limits are 3 sigma and more, so that of the 8 measures at most a chip in 20 fails. A sigma of 60 chips has an
    interval of -15 to +22 %; the equation leaves output conductance and moderate inversion out, another 10 %.
    """
    found = figures(cosim_main, FOLDER / f"{name}.toml", tmp_path / "run", "--chips", 60, "--audit", 0)
    check_typical(name, found)
    check_markdown(tmp_path / "run")
    assert found["yield"]["passed"] >= 57 and not found["failed"]
    expected = spreads(technology)
    for line in found["lines"]:
        assert line["conditions"]["failing"] == 0, line["measure"]["name"]
        if (sigma := expected.get((name, line["measure"]["name"]))) is not None:
            low, high = line["chips"]["sigma_interval"]
            assert 0.9 * low < sigma < 1.1 * high, line["measure"]["name"]
