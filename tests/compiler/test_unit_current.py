"""A network that is refused at one unit current: the worst value of all cells, and the unit current that would do."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import MappingError
from cosim.base.quantities import parse_quantity
from cosim.compiler.checks import set_points
from cosim.compiler.lower import lower
from cosim.compiler.passes import check_sizes, compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.compiler.size import scale


def with_thresholds(network, **found):
    """The network with beta_lo and beta_hi of single units of layer0 replaced: beta_hi={3: 24.0}."""
    arrays = {name: getattr(network.layers[0], name).copy() for name in found}
    for name, values in found.items():
        for unit, value in values.items():
            arrays[name][unit] = value
    return replace(network, layers=(replace(network.layers[0], **arrays), *network.layers[1:]))


@pytest.fixture
def network(make_network):
    return make_network(3)


def refused(network, technology, calibration, i_unit=1e-9):
    with pytest.raises(MappingError) as caught:
        compile_network(network, technology, calibration, CompilerSettings(i_unit=i_unit), "model.pt")
    return caught.value


def refusal(*compiled, **settings):
    return str(refused(*compiled, **settings))


def test_the_worst_of_all_cells_and_what_would_do(network, technology, calibration):
    """24 units at 8 nA: the third digit of 333 pA is cut, and the message's own unit current compiles."""
    high = with_thresholds(network, beta_hi={1: 9.5, 3: 24.0, 4: 11.0})
    error = refused(high, technology, calibration)
    assert str(error) == (
        "model.pt: layer0.3: upper threshold must be at most 8 nA, not 24 nA, the worst of 3; compile with "
        "`i_unit=333p`, which suits all cells"
    )
    assert (error.where, error.unit) == ("layer0.3", "A")
    assert (error.value, error.limit) == pytest.approx((24e-9, 8e-9), rel=1e-12)
    compile_network(high, technology, calibration, CompilerSettings(i_unit=333e-12))
    with pytest.raises(MappingError, match="`i_unit="):
        check_sizes(high, technology, calibration)


def test_a_larger_one_for_narrow_windows(network, technology, calibration):
    """A window of 11 pA; cells of 12 pA have no bias yet, and the series goes on until they have."""
    narrow = with_thresholds(network, beta_lo={2: 1.0}, beta_hi={2: 1.011})
    found = refusal(narrow, technology, calibration)
    assert re.search(r"layer0\.2: hysteresis width must be at least 12 pA, not 11 pA; compile with `i_unit=", found)
    typed = re.search(r"`i_unit=(\S+)`,", found)[1]
    compile_network(narrow, technology, calibration, CompilerSettings(i_unit=parse_quantity(typed, "A")))


def test_none_where_cells_want_opposite_ones(network, technology, calibration):
    """24 units want at most 333 pA, where a width of 0.02 has 6.66 pA."""
    both = with_thresholds(network, beta_lo={2: 1.0}, beta_hi={2: 1.02, 3: 24.0})
    found = refusal(both, technology, calibration)
    assert found == (
        "model.pt: layer0.3: upper threshold must be at most 8 nA, not 24 nA; no `i_unit` suits all cells: at 333pA, "
        "layer0.2: hysteresis width must be at least 12 pA, not 6.66 pA; train it again with "
        "`train(technology=generic180)`, which keeps all that it learns within what the cells can have"
    )


def test_what_has_no_bias_names_its_cell(network, technology, calibration):
    """A row that carries 48 units, with slopes of 1/V, has thresholds of 0.1 and 0.115 that arrive in reverse."""
    weight = network.layers[0].weight.copy()
    weight[2] = 8.0 * np.where(np.arange(weight.shape[1]) % 2, 1.0, -1.0)
    network = with_thresholds(network, beta_lo={2: 0.1}, beta_hi={2: 0.115})
    layer = replace(network.layers[0], weight=weight, bias=np.where(np.arange(len(weight)) == 2, 32.0, 0.0))
    steep = replace(calibration, mirror=replace(calibration.mirror, slope_n=1.0, slope_p=1.0))
    found = refusal(replace(network, layers=(layer, *network.layers[1:])), technology, steep)
    assert re.search(r"^model\.pt: layer0\.2: no bias gives a 9T cell the thresholds", found)


def test_signals_beyond_the_mirrors_range_get_advice_too(network, technology, calibration):
    found = refusal(network, technology, calibration, i_unit=calibration.current_max)
    assert re.search(r"must be at most .*; compile with `i_unit=\S+`, which suits all cells$", found)


def test_points_are_in_proportion_to_the_unit_current(network):
    graph = lower(network)
    one, other = ([point.current for _, point in set_points(scale(graph, unit))] for unit in (1e-9, 0.25e-9))
    np.testing.assert_allclose(np.array(other), np.array(one) / 4, rtol=1e-12)
