"""A technology that differs from another in its supply or sizes alone."""

import pytest

from cosim.base.errors import InputError
from cosim.cells.clocked import clocked_schmitt
from cosim.circuit.elements import Capacitor
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.noise import noise_fingerprint

NAMED = 'name = "other"\nbase = "generic180"\n'


@pytest.fixture
def derived(tmp_path):
    def read(text):
        (tmp_path / "other.toml").write_text(text)
        return load_technology(str(tmp_path / "other.toml"))

    return read


def test_sizes_are_scaled_in_their_shape(derived, technology):
    found = derived(NAMED + "hold_capacitance = 2e-13\n[area]\nmirrors = 0.5\ncells = 2\n")
    assert (found.name, found.nfet, found.supply) == ("other", technology.nfet, technology.supply)
    for role, factor in {"mirror_n": 0.5, "mirror_p": 0.5, "cell_n": 2, "cell_p": 2, "latch_switch": 1}.items():
        drawn, before = getattr(found.sizing, role), getattr(technology.sizing, role)
        assert drawn.w * drawn.l == pytest.approx(factor * before.w * before.l, rel=0.01)  # 5 nm of 0.7 um
        assert drawn.w / drawn.l == pytest.approx(before.w / before.l, rel=0.01)
        assert drawn.w / found.grid == pytest.approx(round(drawn.w / found.grid))
    (hold,) = (one for one in clocked_schmitt(found, 8).elements if isinstance(one, Capacitor))
    assert hold.value == 2e-13


def test_what_was_measured_of_the_base_fits_where_nothing_is_changed(derived, technology):
    same = derived(NAMED)
    assert same.sizing == technology.sizing
    assert calibration_fingerprint(same, 8) == calibration_fingerprint(technology, 8)
    assert noise_fingerprint(same) == noise_fingerprint(technology)
    for text in ("hold_capacitance = 2e-13\n", "supply = 1.7\n"):
        other = derived(NAMED + text)
        assert calibration_fingerprint(other, 8) != calibration_fingerprint(technology, 8)
        assert noise_fingerprint(other) != noise_fingerprint(technology)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'name = "other"\nbase = "mine"\n',
            "base must be one of generic180, gf180mcu, sg13g2, sg13g2_1v2, sky130, not 'mine'",
        ),
        ('base = "generic180"\n', "name must consist of letters"),
        (NAMED + "celsius = 60\n", "celsius is no field beside base; known are name, summary, base, supply"),
        (NAMED + "supply = 3.4\n", "supply must be a number from 0.1 to 3.3, not 3.4"),
        (NAMED + "[area]\nmirror = 2\n", "area.mirror is no field; known are mirrors, cells, switches"),
        (NAMED + "[area]\ncells = 0\n", "area.cells must be a number from 0.01 to 100, not 0"),
        (NAMED + "area = 2\n", "area must be a table, not 2"),
        (NAMED + "hold_capacitance = 0.4\n", "hold_capacitance must be a number from 1e-15 to 1e-10, not 0.4"),
    ],
)
def test_what_is_refused(derived, text, said):
    with pytest.raises(InputError, match=said):
        derived(text)
