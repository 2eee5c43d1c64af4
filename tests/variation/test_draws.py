"""Draws: the sigmas of Pelgrom's law, and that a number depends on seed, chip and name alone."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.design import compile_network
from cosim.errors import InputError
from cosim.variation.draws import CELSIUS_RANGE, SUPPLY_SPREAD, Plan, draw_chip, varying_devices

PLAN = Plan("local", 3, 64)


@pytest.fixture(scope="module")
def circuit(make_network, technology, calibration):
    return compile_network(make_network(11, hidden=3), technology, calibration).assembly.circuit


@pytest.fixture(scope="module")
def devices(circuit, technology):
    return varying_devices(circuit, technology, PLAN)


def test_sigma_is_pelgroms_of_all_units_together(circuit, devices, technology):
    found = {device.name: device for device in devices}
    for mos in circuit.flatten():
        side = (mos.m * mos.w * mos.l) ** 0.5
        assert found[mos.name].sigma_vt == pytest.approx(technology.device(mos.polarity).a_vt / side, rel=1e-12)
        assert found[mos.name].sigma_beta == pytest.approx(technology.device(mos.polarity).a_beta / side, rel=1e-12)


@pytest.mark.parametrize("sampling", ["random", "lhs", "sobol"])
def test_drawn_deviations_have_these_sigmas(devices, technology, sampling):
    """Over 64 chips of 200 devices: the mean of z^2 is 1 +- sqrt(2 / 12,800) = 0.0125, so 0.05 is four sigma."""
    plan = replace(PLAN, sampling=sampling)
    chips = [draw_chip(devices, technology, plan, k) for k in range(plan.chips)]
    for sigma, field in (("sigma_vt", "vt_shift"), ("sigma_beta", "beta_factor")):
        values = np.array([getattr(chip, field) for chip in chips])
        z = (np.log(values) if field == "beta_factor" else values) / [getattr(device, sigma) for device in devices]
        assert z.size > 12_000
        assert (z**2).mean() == pytest.approx(1.0, abs=0.05)
        assert z.mean() == pytest.approx(0.0, abs=0.04)
        assert abs(np.corrcoef(z[:, 0], z[:, 1])[0, 1]) < 0.5  # 4 / sqrt(64)


@pytest.mark.parametrize("sampling", ["lhs", "sobol"])
def test_a_cube_is_filled_evenly(devices, technology, sampling):
    """Of 64 chips exactly one lies in each 64th of a device's distribution, so the median splits them in halves."""
    plan = replace(PLAN, sampling=sampling)
    values = np.array([draw_chip(devices, technology, plan, k).vt_shift for k in range(plan.chips)])
    assert ((values > 0).sum(axis=0) == plan.chips // 2).all()


def test_area_divides_the_sigmas(circuit, devices, technology):
    larger = varying_devices(circuit, technology, replace(PLAN, area=4.0))
    ratios = [small.sigma_vt / large.sigma_vt for small, large in zip(devices, larger, strict=True)]
    np.testing.assert_allclose(ratios, 2.0, rtol=1e-12)


def test_a_draw_depends_on_nothing_but_seed_chip_and_name(devices, technology):
    first = draw_chip(devices, technology, PLAN, 5)
    fewer = draw_chip(devices[::3], technology, replace(PLAN, chips=6), 5)
    np.testing.assert_array_equal(first.vt_shift[::3], fewer.vt_shift)
    np.testing.assert_array_equal(first.beta_factor[::3], fewer.beta_factor)
    for other in (draw_chip(devices, technology, PLAN, 6), draw_chip(devices, technology, replace(PLAN, seed=4), 5)):
        assert not np.isclose(first.vt_shift, other.vt_shift, rtol=1e-3).any()


@pytest.mark.parametrize("sampling", ["lhs", "sobol"])
def test_replicates_are_drawn_independently(devices, technology, sampling):
    plan = replace(PLAN, sampling=sampling, replicates=2)
    first, second = (draw_chip(devices, technology, plan, k) for k in (0, 32))
    assert not np.isclose(first.vt_shift, second.vt_shift, rtol=1e-3).any()


def test_none_is_nominal_to_the_bit(devices, technology):
    chip = draw_chip(devices, technology, replace(PLAN, kind="none"), 0)
    assert not chip.vt_shift.any() and (chip.beta_factor == 1).all()
    assert (chip.supply, chip.celsius) == (technology.supply, technology.celsius)


def test_global_moves_all_transistors_of_a_polarity_together(devices, technology):
    """The spread over 64 chips is the technology's within 4 sqrt(1 / 128) = 35 %."""
    plan = replace(PLAN, kind="global")
    chips = [draw_chip(devices, technology, plan, k) for k in range(plan.chips)]
    shifts = {}
    for polarity in ("n", "p"):
        chosen = [device.polarity == polarity for device in devices]
        values = np.array([chip.vt_shift[chosen] for chip in chips])
        assert (values == values[:, :1]).all()
        shifts[polarity] = values[:, 0]
        assert values[:, 0].std() == pytest.approx(technology.device(polarity).spread_vt, rel=0.35)
    assert abs(np.corrcoef(shifts["n"], shifts["p"])[0, 1]) < 0.5  # 4 / sqrt(64)
    supplies, temperatures = (np.array([getattr(chip, name) for chip in chips]) for name in ("supply", "celsius"))
    assert np.abs(supplies / technology.supply - 1).max() <= SUPPLY_SPREAD * (1 + 1e-7)  # single precision
    assert CELSIUS_RANGE[0] <= temperatures.min() and temperatures.max() <= CELSIUS_RANGE[1]
    assert len(set(supplies)) == len(set(temperatures)) == plan.chips


@pytest.mark.parametrize(("kind", "field"), [("local", "a_vt"), ("all", "a_vt"), ("global", "spread_vt")])
def test_a_technology_without_coefficients_is_refused(circuit, technology, kind, field):
    bare = replace(technology, pfet=replace(technology.pfet, **{field: 0.0}))
    with pytest.raises(InputError, match=rf"generic180: pfet\.{field} must be positive for --variation {kind}, not 0"):
        varying_devices(circuit, bare, replace(PLAN, kind=kind))
    varying_devices(circuit, bare, replace(PLAN, kind="none"))


def test_too_many_dimensions_for_sobol(technology, devices):
    many = tuple(replace(devices[0], name=f"network.d{k}") for k in range(11_000))
    with pytest.raises(InputError, match="draws at most 21201 numbers a chip, not 22000; use lhs"):
        draw_chip(many, technology, replace(PLAN, sampling="sobol"), 0)
