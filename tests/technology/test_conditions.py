"""Corner, temperature and supply: what changes, what stays, and what no device is made for."""

from dataclasses import replace

import pytest

from cosim.base.errors import InputError
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.technology.conditions import at, format_conditions, with_flicker
from cosim.technology.foundry import device_cards

SIZES = {"n": [("n", 1e-6, 1e-6)], "p": [("p", 1e-6, 1e-6)]}


def test_nothing_asked_for_is_the_nominal_point(technology):
    assert at(technology) == technology
    assert format_conditions(technology) == "tt, 27 C, 1.8 V"


def test_only_what_is_asked_for_changes(technology):
    found = at(technology, "SS", -40.0, 1.62)
    assert (found.corner, found.celsius, found.supply) == ("ss", -40.0, 1.62)
    assert replace(found, corner="tt", celsius=27.0, supply=1.8) == technology
    assert format_conditions(found) == "ss, -40 C, 1.62 V"
    assert at(found, supply=1.98) == replace(found, supply=1.98)
    # U_T = k T / q, with k / q = 86.17333 uV / K
    assert found.thermal_voltage == pytest.approx(86.17333e-6 * 233.15, rel=1e-9)


def test_the_library_s_own_name_of_a_corner(technology):
    sections = {"tt": "typical", "ff": "Best", "ss": "worst"}
    other = replace(technology, library=replace(technology.library, sections=sections))
    assert [at(other, name).corner for name in ("typical", "BEST", "ss", "tt")] == ["tt", "ff", "ss", "tt"]
    swapped = replace(technology, library=replace(technology.library, sections={"tt": "a", "fs": "sf", "sf": "fs"}))
    assert [at(swapped, name).corner for name in ("fs", "sf", "a")] == ["fs", "sf", "tt"]  # our names come first
    text = r"corner must be one of tt \(typical\), ff \(Best\), ss \(worst\) for generic180, not 'fs'"
    with pytest.raises(InputError, match=text):
        at(other, "fs")


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({"corner": "typical"}, "corner must be one of tt, ff, ss, fs, sf for generic180, not 'typical'"),
        ({"corner": ""}, "corner must be one of tt, ff, ss, fs, sf for generic180, not ''"),
        ({"supply": 3.31}, "supply must be above 0 V and at most 3.3 V, the largest of generic180, not 3.31 V; choose"),
        ({"supply": 0.0}, "not 0 V; choose another with --supply"),
        ({"supply": float("nan")}, "not nan V; choose another with --supply"),
        ({"celsius": -56.0}, "temperature must lie in -55 to 150 C, the range of device models, not -56 C; choose"),
        ({"celsius": 150.5}, "not 150.5 C; choose another with --temp"),
        ({"celsius": float("nan")}, "not nan C; choose another with --temp"),
    ],
)
def test_what_no_device_is_made_for(technology, conditions, text):
    with pytest.raises(InputError, match=text):
        at(technology, **conditions)


def test_the_limits_themselves_are_inside(technology):
    assert at(technology, None, -55.0, 3.3).celsius == -55.0
    assert at(technology, None, 150.0).celsius == 150.0


def test_mixed_corners_mix_the_fast_and_the_slow_card(technology):
    def card(corner, polarity):
        return NGSPICE.devices(at(technology, corner), SIZES[polarity]).partition("\n")[2]

    assert card("fs", "n") == card("ff", "n") and card("fs", "p") == card("ss", "p")
    assert card("sf", "n") == card("ss", "n") and card("sf", "p") == card("ff", "p")
    assert len({card(corner, polarity) for corner in ("tt", "ff", "ss") for polarity in "np"}) == 6


def test_a_worst_case_of_flicker_is_of_those_that_say_it(technology, tmp_path):
    """The library's parameter is given another value, and the card's noise follows; nothing else does."""
    with pytest.raises(InputError, match="generic180 knows no worst case of flicker noise; leave it typical, or name"):
        with_flicker(technology, "worst")
    text = technology.library.file.read_text()
    varied = text.replace("noia=3.3e41", "noia='3.3e41*(1+9*worst)'").replace(
        ".lib devices", ".lib devices\n.param worst=0"
    )
    (tmp_path / "generic180.lib").write_text(varied)
    library = replace(technology.library, file=tmp_path / "generic180.lib", flicker_worst="worst=1")
    own = replace(technology, library=library)
    sizes = [("n", 1e-6, 5e-6)]
    (typical,), (worst,) = (device_cards(with_flicker(own, one), sizes) for one in ("typical", "worst"))
    assert worst.parameters["noia"] == pytest.approx(10 * typical.parameters["noia"])
    assert {**worst.parameters, "noia": 0.0} == {**typical.parameters, "noia": 0.0}
