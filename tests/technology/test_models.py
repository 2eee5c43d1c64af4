"""Families of device models: which cards belong to one, what is read of them, and how simulators write them."""

import os
import re

import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.bench import DrainCurrent
from cosim.circuit.deck import SPICE, format_elements
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.circuit.dialects.table import DIALECTS, dialect_named
from cosim.circuit.dialects.vacask import VACASK
from cosim.circuit.elements import Mos
from cosim.engines.table import check_models, reference_simulator, simulator_beside, simulators
from cosim.engines.vacask import program
from cosim.technology.catalog import load_technology
from cosim.technology.foundry import DrawnTransistor, model_card, model_family, read_section
from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.table import FAMILIES, family_of
from cosim.verbs.common import audit_count, chosen_engine
from cosim.verbs.datasheet.sheet import read_sheet

PSP = "level=103.6 vfbo='-1.0*{0}' vfbl=0.15 toxo=7e-9 rgo=40 st2vfbo=0 lap='6e-8*(2-pre)+0*l'"
# As the open kit has it: the model in the subcircuit, one instance under each condition, and a way to another model.
LIBRARY = f"""\
.lib tt
.param fast = 1.0
.subckt n d g s b
+ w=1u l=1u ng=1 m=1 as=0 ad=0 pd=0 ps=0 trise=0 pre=1 rfmode=0
.model core psp103va type = +1 {PSP.format("fast")}
.model core_rf pspnqs103va type=+1 level=103.6
.if (rfmode == 0)
  .if (as <= 1e-50)
    .if (floor(floor(ng/2+0.501)*2+0.001) != ng)
      nn d g s b core w=w l=l nf='ng' mult='m' as='w*0.3u' dta=trise ngcon=2 delvto=0 factuo=1
    .else
      nn d g s b core w=w l=l nf='ng' mult='m' as='w*0.4u' dta=trise ngcon=2 delvto=0 factuo=1
    .endif
  .else
    nn d g s b core w=w l=l as='as' nf='ng' mult='m' dta=trise ngcon=2 delvto=0 factuo=1
  .endif
.else
  nn d g s b core_rf w=w l=l nf='ng' mult='m' dta=trise ngcon=2 delvto=0 factuo=1
.endif
.ends
.subckt p d g s b w=1u l=1u pre=1
.model core psp103va type=-1 {PSP.format("fast")}
nn d g s b core w=w l=l
.ends
.endl
"""


@pytest.fixture
def card_of(tmp_path):
    """(device, text of the library) -> card of 1u/2u."""

    def read(device="n", text=LIBRARY, polarity=None):
        path = tmp_path / "psp.lib"
        path.write_text(text)
        drawn = DrawnTransistor(polarity or device, 1e-6, 2e-6, 1.0)
        return model_card(read_section(path, "tt"), device, drawn, "it")

    return read


@pytest.fixture
def psp(tmp_path, technology):
    """generic180 with devices of this library."""
    (tmp_path / "psp.lib").write_text(LIBRARY)
    text = (technology.library.file.parent / "generic180.toml").read_text()
    for old, new in (("generic180.lib", "psp.lib"), ("generic180_n", "n"), ("generic180_p", "p")):
        assert old in text
        text = text.replace(f'"{old}"', f'"{new}"')
    (tmp_path / "own.toml").write_text(re.sub(r"length_unit = \S+", "length_unit = 1", text))
    return load_technology(str(tmp_path / "own.toml"))


def test_a_type_word_belongs_to_one_family():
    kinds = [kind for family in FAMILIES for kind in family.kinds]
    assert len(kinds) == len(set(kinds)) and family_of("npn") is None
    assert {family_of(kind).name for kind in kinds} == {family.name for family in FAMILIES}
    assert {family.simulator for family in FAMILIES} <= {entry.name for entry in simulators()}
    names = {dialect.name for dialect in DIALECTS}
    assert all(family.simulator in family.forms and set(family.forms) <= names for family in FAMILIES)


@pytest.mark.parametrize("polarity", ["n", "p"])
def test_a_card_of_psp103_is_read(card_of, polarity):
    """What its family fixes is 0, its level and type are those of the family, and expressions see the drawn size."""
    card = card_of(polarity)
    assert (card.polarity, card.family.name, card.version) == (polarity, "PSP103", "")
    numbers = dict(card.parameters)
    assert {key: numbers.pop(key) for key in card.family.fixed} == dict.fromkeys(card.family.fixed, 0.0)
    assert numbers == {"vfbo": -1.0, "vfbl": 0.15, "toxo": 7e-9, "st2vfbo": 0.0, "lap": 6e-8}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type = +1", "type = 0", "model core of n must be of type nmos, not 'psp103va type=0'; name another device"),
        ("type = +1", "type = -1", "must be of type nmos, not 'psp103va type=-1'"),
        ("level=103.6 vfbo", "level=102 vfbo", "model core: level must be 103.6, PSP103, not 102"),
        (
            "rfmode=0",
            "rfmode=1",
            "core_rf of n must be of type nmos, not 'pspnqs103va' (cosim knows nmos, pmos, psp103va)",
        ),
        ("ng=1", "ng=2", "model core: the transistor's nf must be 1, as drawn, not 'ng' = 2"),
        ("trise=0", "trise=5", "model core: the transistor's dta must be 0, what it does is not read, not trise = 5"),
        ("delvto=0 factuo=1", "delvto=5m factuo=1", "model core: the transistor's delvto must be 0, not 5m"),
        (".if (rfmode == 0)", ".if (mode == 0)", "n: .if (mode == 0): parameter 'mode' is used but not defined"),
        ("factuo=1\n    .else", "factuo=1\nr1 d s 1\n    .else", "n has a resistor between its ports d and s"),
    ],
)
def test_what_a_card_of_psp103_must_not_be(card_of, old, new, message):
    text = LIBRARY.replace(old, new)
    assert text != LIBRARY
    with pytest.raises(InputError, match=re.escape(message)):
        card_of(text=text)


@pytest.mark.parametrize(
    ("more", "shift"), [("a=1 b=1", 1.0), ("a=2 b=1", 2.0), ("a=3 b=1", 3.0), ("a=1 b=2", 4.0), ("a=9 b=9", 3.0)]
)
def test_the_branch_whose_condition_holds_counts(tmp_path, more, shift):
    body = f"""\
.lib tt
.subckt n d g s b w=1u l=1u {more}
.if (b==1)
.if (a==1)
m1 d g s b core delvto=1
.elseif (a==2)
m1 d g s b core delvto=2
.else
m1 d g s b core delvto=3
.endif
.elseif(b == 2)
m1 d g s b core delvto=4
.else
m1 d g s b core delvto=3
.endif
.model core nmos level=14 vth0=0
.ends
.endl
"""
    (tmp_path / "if.lib").write_text(body)
    card = model_card(read_section(tmp_path / "if.lib", "tt"), "n", DrawnTransistor("n", 1e-6, 1e-6, 1.0), "it")
    assert card.parameters["vth0"] == shift


def test_a_positive_shift_weakens_a_transistor_whatever_its_family(technology, psp):
    """BSIM4 adds delvto to a threshold that is negative in a p device, PSP103 to the threshold's magnitude."""

    def written(there, polarity):
        mos = Mos("x", "d", "g", "0", "0", polarity, 1e-6, 2e-6, vt_shift=0.01, beta_factor=1.02)
        (line,) = format_elements([mos], there, SPICE)
        return line.split()[0], line.partition(" m=1 ")[2].partition(" ad=")[0]

    assert written(technology, "n") == ("mx", "delvto=1e-02 mulu0=1.02e+00")
    assert written(technology, "p") == ("mx", "delvto=-1e-02 mulu0=1.02e+00")
    assert {written(psp, polarity) for polarity in "np"} == {("nx", "delvto=1e-02 factuo=1.02e+00")}


def test_a_dialect_without_a_form_for_the_family_says_which_have_one(psp):
    sizes = [("n", 1e-6, 2e-6), ("p", 1e-6, 2e-6)]
    for name in ("spectre", "hspice", "xyce"):
        message = f"models of PSP103 can be written for vacask and ngspice, not for {name}; choose one of them"
        with pytest.raises(InputError, match=message):
            dialect_named(name).devices(psp, sizes)
    cards = dialect_named("vacask").devices(psp, sizes)
    assert 'load "psp103v4.osdi"' in cards and "left out, because vacask does not know them: st2vfbo" in cards
    assert re.findall(r"(?m)^model (\S+) psp103va \(type=(-?1) ", cards) == [("n_w1_l2", "1"), ("p_w1_l2", "-1")]
    assert "st2vfbo=" not in cards and "rgo=0" in cards
    assert ".model n_w1_l2 psp103va type=1 " in dialect_named("ngspice").devices(psp, sizes)


def test_the_engine_of_a_verb_is_the_technology_s_own_or_the_one_asked_for(technology, psp, monkeypatch, capsys):
    assert (chosen_engine(None, technology), chosen_engine(None, psp)) == ("ngspice", "vacask")
    assert chosen_engine("batch", psp) == "batch"
    assert simulator_beside("batch", psp) == simulator_beside("vacask", technology) == "vacask"
    with pytest.raises(InputError, match="--engine ngspice has no PSP103"):
        chosen_engine("ngspice", psp)
    monkeypatch.setattr(program, "PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", os.devnull)
    assert audit_count(None, "batch", psp) == 0
    assert "no audit: VACASK is missing" in capsys.readouterr().err
    with pytest.raises(MissingToolError, match="VACASK is missing"):
        audit_count(3, "batch", psp)


def test_currents_of_its_transistors_have_the_names_of_each_simulator(psp):
    """The letter of an element and the model's own name of its drain current."""
    probe, family = DrainCurrent("network.cell.diode"), model_family(psp)
    assert NGSPICE.printed(probe, family) == "@n.xnetwork.xcell.ndiode[ids]"
    assert VACASK.printed(probe, family) == "xnetwork:xcell:mdiode.ids"
    assert NGSPICE.printed(probe, BSIM4) == "@m.xnetwork.xcell.mdiode[id]"
    assert VACASK.printed(probe, BSIM4) == "xnetwork:xcell:mdiode.id"


@pytest.mark.parametrize("verb", ["compare", "power", "simulate", "montecarlo", "trim", "signoff"])
def test_a_verb_refuses_an_engine_without_the_models_before_it_begins(cosim_main, psp, tmp_path, verb):
    place = ["--technology", tmp_path / "own.toml", "-o", tmp_path / "out", "--engine", "ngspice"]
    code, _, err = cosim_main(verb, trained_network_path("digits_d4.pt"), *place)
    assert code != 0 and "--engine ngspice has no PSP103, the models of generic180; choose one of vacask" in err
    assert not (tmp_path / "out").exists()


def test_a_datasheet_is_refused(psp, tmp_path):
    (tmp_path / "sheet.toml").write_text('netlist = "ota.sp"\ntechnology = "own.toml"\n[[measures]]\nname = "offset"\n')
    with pytest.raises(InputError, match="must have models of BSIM4, .* no PSP103, the models of generic180"):
        read_sheet(tmp_path / "sheet.toml")


def test_an_engine_without_the_models_is_refused(technology, psp):
    assert (reference_simulator(technology), reference_simulator(psp)) == ("ngspice", "vacask")
    for name in ("ngspice", "vacask", "batch"):
        check_models(name, technology)
    check_models("batch", psp)
    with pytest.raises(
        InputError, match="--engine ngspice has no PSP103, the models of generic180; choose one of vacask, batch"
    ):
        check_models("ngspice", psp)
