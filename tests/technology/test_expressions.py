"""SPICE arithmetic: values by hand, names that refer to each other, and what is no arithmetic."""

import math
import operator
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.base.errors import InputError
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.technology.parameters import _NUMBER, Parameters


def evaluate(text, **names):
    return Parameters(names).evaluate(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5e-9", 1.5e-9),
        ("10u", 1e-5),
        ("2.5MEG", 2.5e6),
        ("3m", 3e-3),  # milli, whatever the case
        ("3M", 3e-3),
        ("1mil", 25.4e-6),
        ("4k", 4e3),
        (".5n", 0.5e-9),
        ("7um", 7e-6),  # a unit behind the suffix means nothing
        ("100f", 1e-13),
        ("2fF", 2e-15),
        ("5V", 5.0),
        ("{2 + 3*4}", 14.0),
        ("'(2 + 3)*4'", 20.0),
        ('"1u / 4"', 0.25e-6),
        ("2^(3^2) + (2^3)^2", 576.0),
        ("-2^2", -4.0),  # a power binds before the sign
        ("2**-3", 0.125),
        ("{1e-3*1e+3}", 1.0),
        ("SQRT(16) + max(1, 7, 3) - Min(2, 5)", 9.0),
        ("pwr(2, 3) + exp(0) + ln(1) + abs(-4) + int(2.9)", 15.0),
        ("(3 > 2)*5 + (3 <= 2)*100", 5.0),
        ("1e3k", 1e6),
    ],
)
def test_value(text, value):
    assert evaluate(text) == pytest.approx(value, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    "draw", ["agauss(0.5, 1, 3)", "gauss(0.5, 0.1, 1)", "aunif(0.5, 1)", "unif(0.5, 1)", "limit(0.5, 1)"]
)
def test_statistics_are_at_their_means(draw):
    assert evaluate(f"2 + {draw}") == 2.5


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@given(st.floats(-1e9, 1e9), st.sampled_from(sorted(OPERATORS)), st.floats(1e-9, 1e9), st.sampled_from(["{}", "''"]))
def test_numbers_of_any_size_are_read_back(a, sign, b, brackets):
    """Whatever Python prints for a float, an exponent's sign included, is that number and not a sum."""
    expected = OPERATORS[sign](a, b)
    assert evaluate(f"{brackets[0]}{a!r} {sign} {b!r}{brackets[1]}") == expected


def test_names_refer_to_each_other_in_any_order_and_case():
    parameters = Parameters({"area": "{w*l}", "w": "5u", "l": "2*w"}, Parameters({"w": "99", "scale": "3"}))
    assert parameters["area"] == pytest.approx(5e-6 * 1e-5, rel=1e-15, abs=0)
    assert parameters.evaluate("Scale*W") == pytest.approx(1.5e-5, rel=1e-15, abs=0)  # one's own before those around


def test_a_name_that_looks_like_a_number_with_a_suffix_stays_a_name():
    assert evaluate("p1u*2 + k2m", p1u="3", k2m="1") == 7.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vth + 1", "parameter 'vth' is used but not defined"),
        ("a", "parameter 'a' is defined by itself"),
        ("c", "parameter 'c' is defined by itself"),
        ("1 +", "cannot evaluate '1 +'"),
        ("", "cannot evaluate ''"),
        ("1/zero", "cannot evaluate '1/zero'"),
        ("sqrt(-1)", "cannot evaluate 'sqrt(-1)'"),
        ("10^(10^10)", "cannot evaluate '10^(10^10)'"),
        ("2^3^2", "cannot evaluate '2^3^2': simulators differ in what a^b^c is; write (a^b)^c or a^(b^c)"),
        ("2**3**2", "simulators differ in what a^b^c is"),
        ("pwr(-2, 3)", "cannot evaluate 'pwr(-2, 3)': pwr of a negative number"),
        ("sqrt(1, 2)", "cannot evaluate 'sqrt(1, 2)'"),
        ("table(1, 2)", "'table(1.0, 2.0)' is not arithmetic"),
        ("__import__('os')", "is not arithmetic"),
        ("zero.real", "is not arithmetic"),
        ("[1][0]", "is not arithmetic"),
        ("(lambda: 1)()", "is not arithmetic"),
    ],
)
def test_no_arithmetic(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        evaluate(text, a="b + 1", b="a - 1", c="c", zero="0")


@pytest.mark.ngspice
def test_ngspice_means_the_same():
    """Every line of a list as a voltage source: the simulator's own arithmetic."""
    texts = (
        "10u*a", "2.5meg + k2m", "2 + 3*4 - 6/4", "-2^2", "2**-3", "-a^2", "(1 - a)*2", "a*b/k2m/3", "1e-3*1e+3",
        "sqrt(16) + max(7, 3) - min(2, 5)", "abs(-4) + int(2.9) + int(-2.9)", "exp(1) + ln(10) + log(10) + log10(50)",
        "pow(2, 0.5)", "pwr(2, 0.5)", "floor(2.7) - ceil(2.2)", "(a > b)*5 + (a <= b)*7", "(a == 3) + (a != 3)*2",
        "0.7*b*1e-06/a", "a/b*2", "a - b - 1", "(-8)^2", "100f*1e15", "2um*1e6",
    )  # fmt: skip
    names = {"a": "3", "b": "1.5", "k2m": "b + 1"}
    lines = [f".param {name}={{{text}}}" for name, text in names.items()]
    lines += [f"v{k} n{k} 0 dc {{{text}}}" for k, text in enumerate(texts)]
    waves = run_deck("\n".join(["* arithmetic", *lines, ".op", ".end"]))
    assert not isinstance(waves, Failure), waves.detail
    for k, text in enumerate(texts):
        # numparam hands its results on as text of 17 digits or fewer: 1e-9 leaves room for an older ngspice
        assert Parameters(names).evaluate(text) == pytest.approx(float(waves[f"n{k}"][-1]), rel=1e-9), text


@pytest.mark.parametrize(
    "text", ["(" * 1900 + "1" + ")" * 1900, "-" * 3900 + "1", "1" + "+1" * 1900, "sqrt(" * 600 + "1" + ")" * 600]
)
def test_a_deep_expression_is_an_error_and_no_crash(text):
    with pytest.raises(InputError, match="cannot evaluate"):
        evaluate(text)
    assert math.isclose(evaluate("+".join(["0.1"] * 50)), 5.0)


def test_a_long_expression_is_refused():
    with pytest.raises(InputError, match="an expression must have at most 4000 characters, not 4001: '0000"):
        evaluate("0" * 4001)


def test_a_chain_of_names_may_be_long_but_not_endless():
    names = {f"p{k}": f"p{k + 1}*2" for k in range(5000)}
    with pytest.raises(InputError, match="cannot evaluate 'p.*recursion"):
        Parameters(names)["p0"]
    parameters = Parameters({f"p{k}": f"p{k + 1} + p{k + 1}" for k in range(60)} | {"p60": "1"})
    assert parameters["p0"] == 2.0**60  # each is evaluated once, or this would not end


def test_a_name_that_failed_says_why_again():
    parameters = Parameters({"a": "b", "b": "1/0"})
    for _ in range(2):
        with pytest.raises(InputError, match="cannot evaluate '1/0'"):
            parameters["a"]


def test_a_row_of_digits_takes_linear_time():
    """The pattern of a number gives nothing back: on digits that are none, each place is tried once.

    8000 digits took 64 times as long as 1000, 8 s; each length here is refused by one more try a digit.
    """
    assert _NUMBER.sub("", "1" * 300_000 + "_") == "1" * 300_000 + "_"
