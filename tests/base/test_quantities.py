"""Quantities as people type and read them; SPICE's own suffixes are a trap that stays outside."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity, parse_quantity, u_t


@pytest.mark.parametrize(
    ("text", "value"),
    [("10n", 1e-8), ("10 nA", 1e-8), ("1e-8", 1e-8), (" 2.5pA ", 2.5e-12),
     (".5u", 5e-7), ("3µA", 3e-6), ("-7fA", -7e-15)],
)  # fmt: skip
def test_parse(text, value):
    assert parse_quantity(text, "A") == pytest.approx(value, rel=1e-15, abs=0)


def test_mega_is_not_milli():
    assert parse_quantity("1M", "A") == 1e6
    assert parse_quantity("1m", "A") == 1e-3
    assert format_quantity(1e6, "A") == "1 MA"
    assert format_quantity(1e-3, "A") == "1 mA"


@pytest.mark.parametrize(
    "text", ["", "n", "10 V", "10 nV", "1e", "0x10", "1,5n", "10K", "nan", "inf", "10 n A 3", "1e-8; quit"]
)
def test_not_a_quantity(text):
    with pytest.raises(InputError, match="--i-unit must be a number in A such as '10n' or '1e-8', not ") as error:
        parse_quantity(text, "A", "--i-unit")
    assert repr(text) in str(error.value)


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("W", "in W such as '10n' or '1e-8'"),
        ("V", "in V such as '1.71' or '900m'"),
        ("s", "in s such as '10m' or '0.01'"),
        ("C", "in C such as '60' or '-40'"),
        ("", "such as '0.95'"),
    ],
)
def test_the_examples_suit_the_unit(unit, wanted):
    with pytest.raises(InputError, match=f"^x must be a number {wanted}, not 'lots'$"):
        parse_quantity("lots", unit, "x")
    for example in wanted.split("'")[1::2]:
        parse_quantity(example, unit)


def test_overflow_is_refused():
    with pytest.raises(InputError, match="value must be finite, not '1e999'"):
        parse_quantity("1e999", "A")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.23e-8, "12.3 nA"), (-4e-12, "-4 pA"), (0.0, "0 A"), (1.0, "1 A"), (9.999e-7, "1 uA"),
     (5e-18, "5 aA"), (2e12, "2e+03 GA")],
)  # fmt: skip
def test_format(value, text):
    assert format_quantity(value, "A") == text


@given(st.floats(1e-17, 1e11), st.sampled_from([1, -1]), st.sampled_from(["A", "W", "s"]))
def test_round_trip(value, sign, unit):
    # six digits are printed, so half a unit of the sixth is lost at most: 5e-6 of a mantissa of at least 1
    assert parse_quantity(format_quantity(sign * value, unit, 6), unit) == pytest.approx(
        sign * value, rel=5.1e-6, abs=0
    )


def test_thermal_voltage():
    # kT/q at 300 K is 25.852 mV (CODATA 2018 values, which the SI made exact), and proportional to T
    assert u_t(26.85) == pytest.approx(25.852e-3, rel=2e-5)
    assert u_t(2 * 300 - 273.15) == pytest.approx(2 * u_t(26.85), rel=1e-12)
    assert math.isclose(u_t(-273.15), 0.0, abs_tol=1e-18)
