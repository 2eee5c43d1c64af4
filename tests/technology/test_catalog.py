"""Technologies by name, and what each promises."""

import pytest

from cosim.errors import InputError
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, TECHNOLOGIES, load_technology


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="technology must be one of generic180.*, not 'generic90'"):
        load_technology("generic90")


def test_the_default_is_known():
    assert load_technology(DEFAULT_TECHNOLOGY).name == DEFAULT_TECHNOLOGY


@pytest.mark.parametrize("name", TECHNOLOGIES)
def test_drawn_sizes_are_on_the_grid(name):
    technology = load_technology(name)
    for geometry in vars(technology.sizing).values():
        for length in (geometry.w, geometry.l):
            assert technology.snap(length) == pytest.approx(length, rel=1e-12)
    assert technology.device_file.is_file()
    assert technology.supply <= technology.supply_max
    assert technology.current_min < technology.current_max


def test_snap_rounds_to_the_grid(technology):
    assert technology.grid == 5e-9
    assert technology.snap(1.0024e-6) == pytest.approx(1.000e-6, rel=1e-12)
    assert technology.snap(1.0026e-6) == pytest.approx(1.005e-6, rel=1e-12)
