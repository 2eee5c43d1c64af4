"""Draws: the sigmas of Pelgrom's law, and that a number depends on seed, chip and name alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from cosim.base.errors import InputError
from cosim.compiler.passes import compile_network
from cosim.variation.draws import (
    CELSIUS_RANGE,
    SUPPLY_RANGE,
    VariationPlan,
    VaryingDevice,
    check_coefficients,
    check_environment,
    draw_chip,
    uniforms,
    varying_devices,
)
from cosim.variation.sigma import derive_mismatch

PLAN = VariationPlan("local", 3, 64)


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


def test_sigma_is_that_of_what_a_foundry_adds_to_drawn_sizes(circuit, devices, technology):
    """Both draws, those of chips and those of training, take it: 0.1 um wider and 0.15 um shorter."""
    added = {"mismatch_dw": 0.1e-6, "mismatch_dl": -0.15e-6}
    other = replace(technology, nfet=replace(technology.nfet, **added), pfet=replace(technology.pfet, **added))
    drawn = {device.name: device for device in devices}
    for mos, found in zip(
        sorted(circuit.flatten(), key=lambda mos: mos.name), varying_devices(circuit, other, PLAN), strict=True
    ):
        ratio = ((mos.w + 0.1e-6) * (mos.l - 0.15e-6) / (mos.w * mos.l)) ** 0.5
        assert drawn[mos.name].sigma_vt / found.sigma_vt == pytest.approx(ratio, rel=1e-12)
        assert drawn[mos.name].sigma_beta / found.sigma_beta == pytest.approx(ratio, rel=1e-12)
    usual, changed = derive_mismatch(technology, 0.125), derive_mismatch(other, 0.125)
    for role in ("mirror_n", "mirror_p", "cell_n", "cell_p"):
        size = getattr(technology.sizing, role)
        ratio = ((size.w + 0.1e-6) * (size.l - 0.15e-6) / (size.w * size.l)) ** 0.5
        assert getattr(usual, role) / getattr(changed, role) == pytest.approx(ratio, rel=1e-12)


def test_a_device_of_which_mismatch_leaves_nothing_is_refused(technology):
    short = replace(technology, nfet=replace(technology.nfet, mismatch_dl=-1e-6))
    with pytest.raises(InputError, match=r"l 1 um must be larger than what mismatch_dw 0 m and mismatch_dl -1e-06 m"):
        short.nfet.mismatch_area(2e-6, 1e-6)


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


@pytest.mark.parametrize(
    ("sampling", "number", "expected"),
    [
        ("random", 0, ("0x1.8e35c10e65e63p-2", "0x1.c102d5723cde0p-7")),
        ("random", 6, ("0x1.4bbc926dda9ccp-1", "0x1.3f61d40896395p-2")),
        ("lhs", 5, ("0x1.f345b970fbf3cp-3", "0x1.8dccc90360148p-2")),
        ("sobol", 5, ("0x1.044c2d2800000p-1", "0x1.5391035000000p-1")),
    ],
)
def test_the_numbers_of_a_seed_stay_what_they_are(sampling, number, expected):
    """A run is resumed and replayed by later versions: to the bit, and small ones to all of their 53 bits."""
    names = ("network.row.w0 vt", "network.row.w68 vt" if number == 0 else "supply")
    found = uniforms(VariationPlan("all", 3, 7, sampling, replicates=2), number, names)
    assert tuple(float(value).hex() for value in found) == expected


def test_a_plan_draws_at_random_in_one_set_at_the_drawn_area():
    assert VariationPlan("local", 3, 64) == VariationPlan("local", 3, 64, sampling="random", replicates=1, area=1.0)


@pytest.mark.parametrize("sampling", ["lhs", "sobol"])
@pytest.mark.parametrize(("chips", "replicates", "size"), [(64, 1, 64), (13, 2, 7), (31, 4, 8)])
def test_every_stratum_of_a_replicate_holds_one_chip(sampling, chips, replicates, size):
    """A replicate of `size` chips: for each name one of them in each `size`-th; Sobol's needs a power of two."""
    plan, names = VariationPlan("local", 5, chips, sampling, replicates), ("a vt", "a beta", "b vt")
    points = np.array([uniforms(plan, number, names) for number in range(chips)])
    assert points.min() > 0 and points.max() < 1
    for first in range(0, chips, size):
        cells = np.floor(points[first : first + size] * size).astype(int)
        for column in cells.T if sampling == "lhs" or size in (8, 64) else []:
            assert len(set(column)) == len(column)
    inside = points * size % 1
    assert np.ptp(inside) > 0.5  # a point lies anywhere in its stratum


def test_sobol_continues_beyond_a_power_of_two():
    names = ("a vt", "b vt")
    fewer, more = (
        [uniforms(VariationPlan("local", 5, chips, "sobol"), k, names) for k in range(64)] for chips in (64, 65)
    )
    np.testing.assert_array_equal(fewer, more)
    assert uniforms(VariationPlan("local", 5, 65, "sobol"), 64, names).shape == (2,)


@pytest.mark.parametrize("sampling", ["random", "lhs", "sobol"])
def test_a_chip_is_its_uniforms_through_the_normal_distribution(technology, sampling):
    """By hand, with sigmas and spreads of distinct primes; the store's single precision is 6e-8."""
    technology = replace(
        technology,
        nfet=replace(technology.nfet, spread_vt=7e-3),
        pfet=replace(technology.pfet, spread_vt=11e-3),
        supply=1.3,
    )
    devices = (
        VaryingDevice("b", "p", 2e-3, 0.03),
        VaryingDevice("a", "n", 5e-3, 0.13),
        VaryingDevice("c", "n", 17e-3, 0.19),
    )
    plans = {kind: VariationPlan(kind, 7, 16, sampling) for kind in ("local", "global", "all")}
    names = (*(f"{device.name} vt" for device in devices), *(f"{device.name} beta" for device in devices))
    for number in (0, 5, 11):
        local, common, both = (draw_chip(devices, technology, plan, number) for plan in plans.values())
        z = ndtri(uniforms(plans["local"], number, names))
        np.testing.assert_allclose(local.vt_shift, [2e-3 * z[0], 5e-3 * z[1], 17e-3 * z[2]], rtol=1e-7)
        np.testing.assert_allclose(np.log(local.beta_factor), [0.03 * z[3], 0.13 * z[4], 0.19 * z[5]], atol=1e-7)
        assert (local.supply, local.celsius, local.number) == (1.3, technology.celsius, number)
        u_n, u_p, u_supply, u_celsius = uniforms(
            plans["all"], number, ("process n", "process p", "supply", "temperature")
        )
        shift_n, shift_p = 7e-3 * ndtri(u_n), 11e-3 * ndtri(u_p)
        np.testing.assert_allclose(common.vt_shift, [shift_p, shift_n, shift_n], rtol=1e-7)
        assert (common.beta_factor == 1).all()
        assert common.supply == pytest.approx(1.3 * (0.95 + 0.1 * u_supply), rel=1e-7)
        assert common.celsius == pytest.approx(60 * u_celsius, rel=1e-7)
        np.testing.assert_allclose(both.vt_shift, local.vt_shift + common.vt_shift, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(both.beta_factor, local.beta_factor)
        assert (both.supply, both.celsius, both.devices) == (common.supply, common.celsius, devices)


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
    shares = supplies / technology.supply
    assert SUPPLY_RANGE[0] * (1 - 1e-7) <= shares.min() and shares.max() <= SUPPLY_RANGE[1] * (1 + 1e-7)  # single
    assert CELSIUS_RANGE[0] <= temperatures.min() and temperatures.max() <= CELSIUS_RANGE[1]
    assert len(set(supplies)) == len(set(temperatures)) == plan.chips


@pytest.mark.parametrize(("kind", "field"), [("local", "a_vt"), ("all", "a_vt"), ("global", "spread_vt")])
def test_a_technology_without_coefficients_is_refused(circuit, technology, kind, field):
    bare = replace(technology, pfet=replace(technology.pfet, **{field: 0.0}))
    with pytest.raises(InputError, match=rf"generic180: pfet\.{field} must be positive for --variation {kind}, not 0"):
        varying_devices(circuit, bare, replace(PLAN, kind=kind))
    varying_devices(circuit, bare, replace(PLAN, kind="none"))


@pytest.mark.parametrize("kind", ["none", "local", "global", "all"])
def test_the_first_coefficient_that_is_missing_is_named(technology, kind):
    """nMOS before pMOS, local before global; a technology needs only what its variation uses."""
    used = {"none": (), "local": ("a_vt",), "global": ("spread_vt",), "all": ("a_vt", "spread_vt")}[kind]
    bare = {"a_vt": 0.0, "spread_vt": 0.0}
    technology = replace(
        technology, nfet=replace(technology.nfet, **bare), pfet=replace(technology.pfet, a_beta=0.0, **bare)
    )
    for table in ("nfet", "pfet"):
        for field in used:
            with pytest.raises(InputError, match=rf"generic180: {table}\.{field} must be positive"):
                check_coefficients(technology, VariationPlan(kind, 0, 1))
            technology = replace(technology, **{table: replace(getattr(technology, table), **{field: 1e-9})})
    check_coefficients(technology, VariationPlan(kind, 0, 1))


def test_a_supply_beyond_the_devices_is_refused(technology):
    """5 % above 1.8 V is 1.89 V; without global variation no chip draws a supply."""
    technology = replace(technology, supply=1.8, supply_max=1.05 * 1.8)
    check_environment(technology, VariationPlan("global", 0, 1))
    tight = replace(technology, supply_max=1.889)
    for kind in ("global", "all"):
        text = rf"variation '{kind}' have supplies up to 1\.89 V; generic180 takes at most 1\.889 V\. .* than 1\.8 V"
        with pytest.raises(InputError, match=text):
            check_environment(tight, VariationPlan(kind, 0, 1))
        check_environment(tight, VariationPlan(kind, 0, 1, supplies=(0.9, 1.04)))
    for kind in ("none", "local"):
        check_environment(tight, VariationPlan(kind, 0, 1))


def test_supply_and_temperature_are_uniform_in_the_ranges_of_the_plan(devices, technology):
    """The same uniform numbers, from other ends; of 64 chips one lies within 10 % of the range from either end.

    That none does has a chance of 0.9^64 = 0.1 % a time, and the seed is fixed.
    """
    usual = replace(PLAN, kind="global")
    wide = replace(usual, celsius=(-40.0, 125.0), supplies=(0.9, 1.1))
    pairs = [(draw_chip(devices, technology, usual, k), draw_chip(devices, technology, wide, k)) for k in range(64)]
    np.testing.assert_allclose(
        [one.celsius for _, one in pairs], [-40 + 165 * one.celsius / 60 for one, _ in pairs], rtol=1e-5
    )
    shares = np.array([[one.supply / technology.supply for one in pair] for pair in pairs])
    np.testing.assert_allclose(shares[:, 1] - 1, 2 * (shares[:, 0] - 1), atol=1e-6)
    assert shares[:, 1].min() < 0.92 and shares[:, 1].max() > 1.08
    assert all((one.vt_shift == other.vt_shift).all() for one, other in pairs)


def test_as_many_dimensions_as_sobol_has_are_drawn(monkeypatch):
    monkeypatch.setattr(qmc.Sobol, "MAXDIM", 3)  # 21,201 of them take ten seconds
    assert uniforms(VariationPlan("local", 0, 1, "sobol"), 0, ("a", "b", "c")).shape == (3,)
    with pytest.raises(InputError, match="draws at most 3 numbers a chip, not 4"):
        uniforms(VariationPlan("local", 0, 1, "sobol"), 0, ("a", "b", "c", "d"))


def test_too_many_dimensions_for_sobol(technology, devices):
    many = tuple(replace(devices[0], name=f"network.d{k}") for k in range(11_000))
    with pytest.raises(InputError, match="draws at most 21201 numbers a chip, not 22000; use lhs"):
        draw_chip(many, technology, replace(PLAN, sampling="sobol"), 0)
