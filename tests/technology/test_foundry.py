"""Foundry libraries: what is read of them, which bin is taken, what is said when something is missing."""

import os
import re
from itertools import product

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.foundry import DrawnTransistor, is_sized, model_card, read_file, read_section

MICRO = 1e-6


@pytest.fixture
def library(tmp_path):
    """(text, **other files) -> path of the library; a file's name has its dot as `_`."""

    def write(text, **others):
        for name, content in others.items():
            (tmp_path / name.replace("_", ".")).write_text(content)
        (tmp_path / "tiny.lib").write_text(text)
        return tmp_path / "tiny.lib"

    return write


def card_of(path, device="n", w=1.0, l=1.0, section="tt", also=(), unit=MICRO):  # noqa: E741 - micrometre
    """(head, parameters) of the card of one device."""
    polarity = "n" if device.lower() == "n" else "p"
    drawn = DrawnTransistor(polarity, w * MICRO, l * MICRO, unit)
    card = model_card(read_section(path, section, also), device, drawn, "it")
    version = {"version": card.version} if card.version else {}
    parameters = {**version, **{key: f"{value:.12g}" for key, value in card.parameters.items()}}
    assert parameters.pop("level") == "14"
    return (card.name, f"{card.polarity}mos"), parameters


def section_of(body, name="tt"):
    """A section; models that say no level are of BSIM4."""
    body = re.sub(r"^(\.model \S+ [np]mos)\b(?! *\(| level)", r"\1 level=14", body, flags=re.MULTILINE)
    return f".lib {name}\n{body}\n.endl {name}\n"


def test_only_the_section_is_read_and_all_that_it_includes(library, tmp_path):
    """Sections of the same file, files beside it, quotes of both kinds, and the files that come before."""
    path = library(
        "* a comment\n.model n nmos vth0=1\n"  # outside of every section: not part of any
        + section_of(".param a=1 b=2\n.lib 'tiny.lib' Devices\n.include \"more.inc\"")
        + section_of(".param a=1 b=100\n.lib 'tiny.lib' devices", "FF")
        + section_of(".param c='a+b'\n.model n nmos vth0='c*s' u0=d", "devices"),
        more_inc=".inc deep.inc\n",
        deep_inc=".param d=7\n",
        switch_inc=".param s=10 d=9\n.model unused nmos vth0=s\n",
    )
    also = (tmp_path / "switch.inc",)
    assert card_of(path, also=also) == (("it", "nmos"), {"vth0": "30", "u0": "7"})
    assert card_of(path, section="ff", also=also) == (("it", "nmos"), {"vth0": "1010", "u0": "9"})


def test_lines_comments_case_and_continuation(library):
    path = library(
        ".LIB TT ; the first\n* .model n nmos vth0=9\n.PARAM Half = 0.5 $ of it\n.Model  N\tNMOS  Level=14\n"
        "+ VERSION = 4.8.1   vth0 = { half * 2 }\n\n* between\n"
        "+ k1=HALF lmin=0 lmax=1 wmin=0 wmax=1 paramchk=1 rbodymod=1\n.ENDL\n"
    )
    head, found = card_of(path, "N")
    # limits of the bin, checks and substrate resistances stay behind; a version is no number
    assert (head, found) == (("it", "nmos"), {"version": "4.8.1", "vth0": "1", "k1": "0.5"})


def test_tabs_are_blanks(library):
    """Behind every keyword; the second .param replaces the first."""
    path = library(
        section_of(
            ".param v=0.5\n.param\tv=1\n"
            ".subckt\tn d g s b\nm1\td g s b c\n.model\tc\tnmos\tlevel=14\tvth0=v\n.ends\tn\n"
            ".subckt p d g s b\nm1 d g s b c\n.model c pmos vth0=-1\n.ends"
        )
    )
    assert card_of(path)[1] == {"vth0": "1"}
    assert card_of(path, "p")[1] == {"vth0": "-1"}


def test_a_model_in_parentheses(library):
    path = library(section_of(".model n nmos (level=14 vth0=(1+2)*3 )\n.model p pmos(level=14\n+ vth0=-(0.5))"))
    assert card_of(path) == (("it", "nmos"), {"vth0": "9"})
    assert card_of(path, "p") == (("it", "pmos"), {"vth0": "-0.5"})


BINS = "\n".join(
    f".model n.{k} nmos lmin={short} lmax={long} wmin={narrow} wmax={wide} vth0={k}"
    for k, ((short, long), (narrow, wide)) in enumerate(
        product((("0.15u", "'lsplit'"), ("'lsplit'", "20.00001u")), (("0.3u", "1u"), ("1u", "10u"))), start=1
    )
)


@pytest.mark.parametrize(
    ("w", "l", "expected"),
    [
        (0.5, 0.5, 1), (2, 0.5, 2), (0.5, 5, 3), (2, 5, 4),
        (0.3, 0.15, 1), (1, 2, 4), (0.995, 2, 3), (1, 1.995, 2), (0.5, 20, 3),  # the lower limit is inside
        (1.0000000001, 1.9999999999999, 4),  # a size that a float misses by its last digits
        (10, 1, 2), (10, 20, 4),  # the upper limit is inside where no other bin begins
    ],
)  # fmt: skip
def test_bin_that_covers_the_size(library, w, l, expected):  # noqa: E741
    path = library(section_of(f".param lsplit=2u\n{BINS}"))
    assert card_of(path, w=w, l=l)[1] == {"vth0": str(expected)}


@pytest.mark.parametrize(("w", "l"), [(0.25, 1), (10.005, 1), (1, 0.145), (1, 20.005)])
def test_size_that_no_bin_covers(library, w, l):  # noqa: E741
    path = library(section_of(f".param lsplit=2u\n{BINS}"))
    text = f"section tt: n has no model of w {w:g} um, l {l:g} um; change this size in the technology"
    with pytest.raises(InputError, match=re.escape(text)):
        card_of(path, w=w, l=l)


WRAPPED = """\
.param outer=3
.subckt n d g s b w=10 l=5 mult=1 nf=2
.param area='w*l*nf' outer={outer_here}
.param outer_here='area+1'
mx d g s b inner w=w l=l delvto='0.01*area + agauss(0, 1, 3)' mulu0='1 - outer/100'
.model inner nmos vth0='0.5*l' u0=2 k1=outer
.ends n
"""


def test_subcircuit_gives_its_parameters_and_shifts(library):
    """At w 4, l 3 in the library's micrometres: area 24, outer 25; the default of nf counts, that of w does not."""
    (_, kind), found = card_of(library(section_of(WRAPPED)), w=4, l=3)
    assert kind == "nmos"
    assert {key: float(value) for key, value in found.items()} == pytest.approx(
        {"vth0": 1.5 + 0.24, "u0": 2 * 0.75, "k1": 25}, rel=1e-12, abs=0
    )


def test_drawn_sizes_are_in_the_unit_of_the_library(library):
    found = card_of(library(section_of(WRAPPED)), w=4, l=3, unit=1.0)[1]
    assert float(found["vth0"]) == pytest.approx(0.5 * 3e-6 + 0.01 * 24e-12, rel=1e-9, abs=0)


def test_a_size_in_metre_a_quoted_version_and_a_folder_with_capitals(library, tmp_path):
    wrapped = ".subckt n d g s b w=1 l=1\nm1 d g s b c w='w*1e-6' l='l*1e-6' nf=1\n.ends\n"
    (tmp_path / "Models").mkdir()
    (tmp_path / "Models" / "Core.inc").write_text(".model c nmos level=14 version='4.5' vth0=1\n")
    found = card_of(library(section_of(f"{wrapped}.include Models/core.inc")), w=3, l=2)[1]
    assert found == {"version": "4.5", "vth0": "1"}


def test_all_that_a_transistor_may_be_given(library):
    """Both names of a shift; resistors in series; stress effects that are off; what cosim draws itself."""
    line = "mx dd g s b c w=w l=l delvto=0.01 delvt0=0.02 sa=0 sb='0*w' sd=0 ad=1p as=1p pd=1u ps=1u nrd=0.1 nrs=0.1"
    text = f".subckt n d g s b params: w=1 l=1\nrd d dd 10\n{line}\n.model c nmos vth0=0.5\n.ends\n"
    assert float(card_of(library(section_of(text)))[1]["vth0"]) == pytest.approx(0.53, rel=1e-12, abs=0)


def test_a_model_of_the_section_sees_the_section(library):
    """ngspice evaluates it there; one inside the subcircuit sees its parameters."""
    models = [f".model {name} nmos level=14 vth0='0.6+dvt'\n" for name in "ac"]
    wrapped = ".subckt {0} d g s b dvt=0.05 w=1 l=1\nm1 d g s b {1} w=w l=l\n{2}.ends\n"
    outer, inner = wrapped.format("n", "a", ""), wrapped.format("N2", "c", models[1])
    path = library(section_of(f".param dvt=0\n{models[0]}{outer}{inner}"))
    found = [
        model_card(read_section(path, "tt"), name, DrawnTransistor("n", MICRO, MICRO, MICRO), "it")
        for name in ("n", "n2")
    ]
    assert [card.parameters["vth0"] for card in found] == [0.6, 0.65]


def test_temperature_of_extraction_and_a_computed_version(library):
    own = ".model n nmos tnom=30 vth0=1\n.model p pmos version=v vth0=1"
    path = library(section_of(f".option scale=1 tnom=25\n.param v=4.5\n{own}"))
    assert card_of(path, "n")[1] == {"tnom": "30", "vth0": "1"}
    assert card_of(path, "p")[1] == {"version": "4.5", "vth0": "1", "tnom": "25"}


def test_names_with_dots_and_files_with_blanks(library, tmp_path):
    (tmp_path / "my core.lib").write_text(".lib core\n.model p_1.8v pmos level=14 vth0=1\n.endl\n")
    assert card_of(library(section_of(".lib 'my core.lib' core")), "p_1.8v")[1] == {"vth0": "1"}


def test_a_condition_in_another_device_does_not_matter(library):
    other = ".subckt r a b\n.if (x==1)\n.param y=1\n.else\n.param y=2\n.endif\nr1 a b 1\n.ends\n"
    assert card_of(library(section_of(f"{other}.model n nmos vth0=1"))) == (("it", "nmos"), {"vth0": "1"})


def test_models_of_a_subcircuit_are_its_own(library):
    """Two subcircuits that call their models the same, as sky130 does for every corner: none sees the other's."""
    one = ".subckt {0} d g s b w=1 l=1\nm1 d g s b core\n.model core.1 {0}mos vth0={1}\n.ends\n"
    path = library(section_of(one.format("n", 1) + one.format("p", 2) + ".model core pmos vth0=3"))
    assert card_of(path, "n") == (("it", "nmos"), {"vth0": "1"})
    assert card_of(path, "p") == (("it", "pmos"), {"vth0": "2"})
    assert card_of(path, "core") == (("it", "pmos"), {"vth0": "3"})


def test_what_depends_on_its_size(library):
    binned = ".model b.1 nmos vth0=1 lmin=0 lmax=1u\n.model b.2 nmos vth0=1 lmin=1u lmax=2u\n"
    section = read_section(library(section_of(f".model bare nmos vth0=1\n{binned}{WRAPPED}")), "tt")
    assert [is_sized(section, name) for name in ("bare", "b", "n", "N")] == [False, True, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (section_of("", "ff") + section_of("", "Typical"), "must have the section 'tt'; it has ff, typical"),
        ("* nothing", "must have the section 'tt'; it has nothing"),
        (section_of(".lib 'tiny.lib' core"), "must have the section 'core'; it has tt"),
        (section_of(".include absent.inc"), "absent.inc: must be a file, but is missing; repair the device library"),
        (section_of(".lib 'absent.lib' tt"), "absent.lib: must be a file, but is missing; repair the device library"),
        (section_of(".lib 'tiny.lib' tt"), "files include each other more than 20 deep"),
        (section_of(".model q npn is=1\n.model p pmos vth0=1"), "must have the transistor 'n'; it has p, q"),
        (section_of(".subckt p d g s b\nm1 d g s b c\n.model c pmos\n.ends\n.subckt r a b\nr1 a b 1\n.ends"),
         "must have the transistor 'n'; it has p"),
        (section_of(""), "must have the transistor 'n'; it has nothing"),
        (section_of(".subckt n d g s b\nm1 d g s b elsewhere\n.ends"), "must have the transistor 'n'; it has n"),
        (section_of(".model n nmos vth0='shift'"), "section tt, model n: parameter 'shift' is used but not defined"),
        (section_of(".model n nmos vth0='1+'"), "section tt, model n: cannot evaluate"),
        (section_of(".subckt n d g s b\nm1 d g s b c delvto=5m\n.model c nmos level=14 vto=0.5\n.ends"),
         "section tt, model c: delvto is given, but vth0 is not"),
        (section_of(".subckt n d g s b\nm1 d g s b c mulu0=2\n.model c nmos level=14 vth0=0.5\n.ends"),
         "section tt, model c: mulu0 is given, but u0 is not"),
        (section_of(".model n nmos level=49 version=3.3 vth0=0.5"),
         "section tt, model n: level must be 14 or 54, BSIM4, not 49"),
        (".lib tt\n.model n nmos vth0=0.5\n.endl", "section tt, model n: level must be 14 or 54, BSIM4, not absent"),
        (section_of(".model n pmos vth0=0.5"),
         "section tt: model n of n must be of type nmos, not 'pmos'; name another device under [nfet]"),
        (section_of(".model n npn is=1"),
         "model n of n must be of type nmos, not 'npn' (cosim knows nmos, pmos, psp103va)"),
        (section_of(".subckt n d g s b\nm1 d g s b c\nm2 d g s b c\n.model c nmos vth0=1\n.ends"),
         "section tt: n must hold one transistor, not 2; name another device"),
        (section_of(".subckt n d g s b\nm1 d g s b c\nx2 d g s b more\n.model c nmos vth0=1\n.ends"),
         "n must hold one transistor and nothing else but resistors, not 'x2 d g s b more'; name another device"),
        (section_of(".subckt n d g s b\nvmm g gi dc 0.05\nm1 d gi s b c\n.model c nmos vth0=1\n.ends"),
         "n must hold one transistor and nothing else but resistors, not 'vmm g gi dc 0.05'; name another device"),
        (section_of(".subckt n d g s b\nm1 d g s b c\nd1 s d leak\n.model c nmos vth0=1\n.ends"),
         "n must hold one transistor and nothing else but resistors, not 'd1 s d leak'; name another device"),
        (section_of(".subckt n d g s b\nm1 d g s b c\nr1 s d 1e9\n.model c nmos vth0=1\n.ends"),
         "n has a resistor between its ports s and d; name another device"),
        (section_of(".subckt n d g s b\nm1 d gi s b c\n.model c nmos vth0=1\n.ends"),
         "n must connect its transistor to its ports, but gi is none; name another device"),
        (section_of(".subckt n d g s b sa=1\nm1 d g s b c sa='sa*0.3u'\n.model c nmos vth0=1\n.ends"),
         "model c: the transistor's sa must be 0, what it does is not read, not 'sa*0.3u' = 3e-07"),
        (section_of(".model n nmos version=latest vth0=1"), "model n: parameter 'latest' is used but not defined"),
        (section_of(".lib 'other file.lib' one two"), ".lib must be followed by a section, or by a file and a section"),
        (section_of(".subckt n d g s b w=1\nm1 d g s b c w='0.9*w'\n.model c nmos vth0=1\n.ends"),
         "section tt, model c: the transistor's w must be 1, as drawn, not '0.9*w' = 0.9"),
        (section_of(".subckt n d g s b nf=2\nm1 d g s b c nf=nf\n.model c nmos vth0=1\n.ends"),
         "section tt, model c: the transistor's nf must be 1, as drawn, not nf = 2"),
        (section_of(".subckt n d g s b\n.if (fast==1)\n.param v=1\n.endif\nm1 d g s b c\n.model c nmos vth0=1\n.ends"),
         "section tt: n has '.param v=1' under an .if, which is not read; write it out"),
        (section_of(".if(fast==1)\n.param v=1\n.endif\n.model n nmos vth0=v"),
         "section tt: '.param v=1' is under an .if, which is not read; write it out"),
        (section_of(".include"), ".include must be followed by a name"),
        (section_of(".subckt"), ".subckt must be followed by a name"),
        (section_of(".model n nmos vth0=1 lmin=short lmax=1"),
         "section tt, model n: lmin, lmax: parameter 'short' is used but not defined"),
        (section_of(".model n nmos vth0=1e999"), "model n: cannot evaluate '1e999': inf is no finite number"),
        (section_of(".model n nmos vth0='(-8)^0.5'"), "section tt, model n: cannot evaluate \"'(-8)^0.5'\""),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(library, text, message):
    path = library(text)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        card_of(path)
    assert str(path.parent) in str(error.value)


@pytest.mark.ngspice
@pytest.mark.parametrize("corner", ["tt", "ff"])
def test_ngspice_makes_the_same_of_the_library(acme, corner, transfer_decks, monkeypatch):
    """Transfer curves of transistors as ngspice itself reads the library, and of the flattened cards."""
    technology = at(load_technology(str(acme)), corner)
    monkeypatch.chdir(acme.parent)
    library = f".include switches.inc\n.lib acme.lib {technology.library.sections[corner]}"
    found = []
    for deck in transfer_decks(technology, ((5e-6, 5e-6), (1e-6, 5e-6), (0.4e-6, 0.4e-6)), library, (0.3, 0.9, 0.1)):
        waves = run_deck(deck)
        assert not isinstance(waves, Failure), waves.detail
        found.append(np.abs([waves[f"vd{k}#branch"] for k in range(6)]))
    flat, whole = found
    assert (whole[:, 0] < 1e-10).all() and (whole[:, -1] > 5e-8).all()
    # The same equations with the same numbers at 12 digits: reltol 1e-5 of the solution, abstol 1e-17 A
    np.testing.assert_allclose(flat, whole, rtol=1e-5, atol=1e-16)


@pytest.mark.parametrize("target", ["/dev/full", "/dev/zero", "pipe"])
def test_only_files_are_included(library, tmp_path, target):
    """/dev/full has no end, a pipe lets the reader wait."""
    os.mkfifo(tmp_path / "pipe")
    path = library(f".lib tt\n.include {target}\n.endl\n")
    with pytest.raises(InputError, match="must be a file, but is a device or a pipe; repair the device library"):
        read_section(path, "tt")


@pytest.mark.parametrize("content", ["", "* " + "a" * 100, ".param x=1"])
def test_files_that_multiply_are_refused(library, content):
    """Eighteen small files, each including the next one twice, are 2^18 inclusions."""
    levels = {f"f{k}_inc": f".include f{k + 1}.inc\n" * 2 for k in range(18)} | {"f18_inc": content}
    path = library(".lib tt\n.include f0.inc\n.endl tt\n", **levels)
    with pytest.raises(InputError, match=r"f\d+.inc: a section must include at most 2000 files with 40 million char"):
        read_section(path, "tt")


def test_a_large_file_included_again_and_again_is_refused(library):
    path = library(".lib tt\n" + ".include big.inc\n" * 20 + ".endl tt\n", big_inc=f".param x={'1' * 10**6}\n" * 4)
    with pytest.raises(InputError, match=r"big.inc: a section must include at most 2000 files with 40 million char"):
        read_section(path, "tt")


def test_odd_names_of_included_files(library, tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for word, match in (("a\0b", "cannot be the name of a file"), ("circle", "circle")):
        path = library(f".lib tt\n.include '{word}'\n.endl tt\n")
        read_section.cache_clear()
        read_file.cache_clear()
        with pytest.raises(InputError, match=match):
            read_section(path, "tt")


def test_long_lines_take_linear_time(library):
    """Half a million letters that no `=` follows, and a line of as many continuations: tried once each, or no end."""
    path = library(section_of(f".param {'a' * 500_000}\n" + "+b\n" * 300_000 + ".model n nmos level=14 vth0=1"))
    assert card_of(path)[1] == {"vth0": "1"}
