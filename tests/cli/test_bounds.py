"""Every numeric option of every verb, found in the commands themselves, with numbers that nobody means."""

import re
from functools import cache

import click
import numpy as np
import pytest

import cosim.base.bounds
from cosim.base.bounds import Bounds, available_memory, check_memory
from cosim.base.errors import InputError, OutOfMemoryError
from cosim.cli import _cosim
from cosim.verbs.explore.circuits import read_knobs
from cosim.verbs.signoff.plan import read_plan
from cosim.verbs.sweep.command import read_axes
from cosim.verbs.trim.command import parse_bits

VALUES = ("-1", "0", "nan", "inf", "1e308", str(2**63), str(10**30), str(10**9))
HUGE = VALUES[2:]  # which no option takes, but for these:
TAKEN = {("--seed", VALUES[-1]), ("--tolerance", VALUES[-1])}
NUMBERS = ("1", "0.5", "1/2", "4x8")  # a type that takes one of these, and refuses a word, is one of numbers
FEWEST = 165  # options; there are more when a verb gets one


def takes(param, text):
    try:
        param.type.convert(text, param, None)
    except (click.ClickException, InputError):
        return False
    return True


def is_numeric(param):
    if not isinstance(param, click.Option) or isinstance(param.type, click.types.BoolParamType):
        return False
    return not takes(param, "one-word") and any(takes(param, text) for text in NUMBERS)


def walk(command, words, ctx):
    """The words of each verb, and its command."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name in command.list_commands(ctx):
        sub = command.get_command(ctx, name)
        yield from walk(sub, (*words, name), click.Context(sub, parent=ctx, info_name=name))


@cache
def numeric_options():
    """(words of a verb, its command, an option that takes numbers), of all of them."""
    verbs = walk(_cosim, (), click.Context(_cosim, info_name="cosim"))
    return [(words, command, one) for words, command in verbs for one in command.params if is_numeric(one)]


def test_every_kind_of_number_is_found():
    """A type that takes any word as well would not be found here, and not be tried below."""
    options = numeric_options()
    assert len(options) >= FEWEST
    assert {type(param.type).__name__ for _, _, param in options} == {
        "Integer", "Number", "Quantity", "QuantityList", "Text",
    }  # fmt: skip
    assert {words[0] for words, _, _ in options} >= {"train", "backbone", "automaton", "montecarlo", "characterize"}


@pytest.mark.parametrize(
    ("words", "command", "param"),
    [pytest.param(*one, id=" ".join((*one[0], max(one[2].opts, key=len)))) for one in numeric_options()],
)
def test_a_number_that_nobody_means_is_refused_by_name(words, command, param):
    """Before any work, with what it must be; and what is taken has a bound on either side."""
    ctx = click.Context(command, info_name=words[-1])
    if (bounds := getattr(param.type, "bounds", None)) is not None:
        assert np.isfinite([bounds.low, bounds.high]).all()
    for text in VALUES:
        try:
            param.process_value(ctx, [text] if param.multiple else text)
        except (click.BadParameter, InputError) as error:
            said = error.format_message() if isinstance(error, click.BadParameter) else str(error)
            assert any(name in said for name in param.opts), said
            assert re.search(r"must (lie|be)|is not a valid", said), said
        else:
            taken = (param.opts[-1], text) in TAKEN
            assert taken or text not in HUGE, f"{words} {param.opts} takes {text}"


@pytest.mark.parametrize("text", HUGE)
@pytest.mark.parametrize("option", ["chips", "samples", "supply", "t-step", "headroom", "temp", "area"])
def test_an_axis_and_a_knob_have_the_bounds_of_their_option(option, text):
    verb = {words[0]: command for words, command, _ in numeric_options()}["montecarlo"]
    with pytest.raises(InputError, match=f"{option}.*(must|valid)"):
        read_axes((f"{option}=1,{text}",), "montecarlo", verb)
    if option in ("supply", "t-step", "headroom"):
        with pytest.raises(InputError, match=f"{option}.*(must|valid)"):
            read_knobs((f"{option}=0.1:{text}" if option != "headroom" else f"{option}=1:{text}",), verb)


def test_bits_are_counted_before_they_are_listed():
    with pytest.raises(InputError, match="--bits must be numbers from 1 to 12"):
        parse_bits(f"2-{10**12}")


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("[corners]\ncelsius = [nan]", "corners.celsius must lie in -55 to 150 C, not nan C"),
        ("[corners]\ncelsius = [27, -300]", "corners.celsius must lie in -55 to 150 C, not -300 C"),
        ("[corners]\ncelsius = []", "corners.celsius must be a list of one or more numbers, not empty"),
        ("[corners]\nsupplies = [inf]", r"corners.supplies must lie in \(0, 2\), not inf"),
        ("[noise]\ndraws = 1_000_000_000", "noise.draws must lie in 2 to 1000, not 1000000000"),
        ("[clocks]\ndraws = 1_000_000_000", "clocks.draws must lie in 0 to 1000, not 1000000000"),
        ("[mismatch]\nchips = 1_000_000_000", "mismatch.chips must lie in 1 to 1000000, not 1000000000"),
        ("[frame]\nlongest = 1e308", "frame.longest must lie in 1 to 1000, not 1e"),
        ("[supply]\nfrequencies_hz = [1e-300]", "supply.frequencies_hz must lie in 0.001 to 1e"),
        ("[decisions]\ndistance = inf", "decisions.distance must lie in 0 to 1000, not inf"),
    ],
)
def test_a_plan_is_refused_when_it_is_read(tmp_path, table, text):
    (tmp_path / "plan.toml").write_text(table)
    with pytest.raises(InputError, match=rf"plan\.toml: {text}"):
        read_plan(tmp_path / "plan.toml")


def test_bounds_say_what_they_are():
    assert str(Bounds(1, 64)) == "1 to 64" and str(Bounds(0, 1, open_low=True)) == "(0, 1]"
    assert str(Bounds(2, 9, zero="no limit")) == "2 to 9, or 0 for no limit" and 0 in Bounds(2, 9, zero="no limit")
    assert float("nan") not in Bounds(0, 1) and 10**5000 not in Bounds(0, 1)
    with pytest.raises(InputError, match="size must lie in 0 to 1 V, not 1e\\+308 or more V; halve it"):
        Bounds(0, 1, "V").check("size", 10**5000, "halve it")


def test_memory_is_compared_with_what_there_is(monkeypatch):
    assert 0 < available_memory() < 1e15
    monkeypatch.setattr(cosim.base.bounds, "available_memory", lambda: 1e9)
    check_memory(1e9, "work", "do less")
    with pytest.raises(OutOfMemoryError, match=r"^work needs at least 2 GB of memory, and 1 GB are free; do less$"):
        check_memory(2e9, "work", "do less")
