"""`cosim datasheet` from end to end on a current mirror, whose spread has a closed form; how it resumes and fails."""

import csv
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

import cosim
from cosim.base.quantities import u_t
from cosim.results.page import WIDTH
from cosim.verbs.datasheet.axes import conditions_csv, draw_sweep, swept_points
from cosim.verbs.datasheet.sheet import read_sheet
from cosim.verbs.datasheet.study import DatasheetChip

# Devices of the size of a cell, of which the batched engine's tests keep tables.
MIRROR = """* a mirror of 2 nA
.param supply=1.8 bias=2n
vdd vdd 0 {supply}
ib vdd in {bias}
m1 in in 0 0 generic180_n w=5u l=5u
m2 out in 0 0 generic180_n w=5u l=5u
vo out 0 {supply/2}
.tran 1u 4u
.meas tran copied find i(vo) at=4u
.meas tran ratio param='-copied/bias'
.meas tran late when v(in)='supply' rise=1
.end
"""
SHEET = """
netlist = "mirror.sp"
supply_parameter = "supply"
[conditions]
corner = ["tt", "ss"]
supply = [1.8, 1.6]
[parameters]
bias = ["2n", "1n"]
[[measures]]
name = "ratio"
min = 0.9
max = 1.1
"""


@pytest.fixture
def sheet(tmp_path):
    (tmp_path / "mirror.sp").write_text(MIRROR)
    (tmp_path / "mirror.toml").write_text(SHEET)
    return tmp_path / "mirror.toml"


def figures(cosim_main, sheet, folder, *options):
    code, out, err = cosim_main("datasheet", sheet, "-o", folder, "--json", folder.parent / "figures.json", *options)
    assert code == 0, err
    return json.loads((folder.parent / "figures.json").read_text()), out, err


@pytest.mark.ngspice
def test_a_mirror_in_ngspice(cosim_main, sheet, tmp_path):
    """Its ratio spreads by sqrt(2) (sigma_vt / (n U_T) + sigma_beta) of a device; both are normal, so exp is too.

    sigma_vt = 5 mV um / 5 um. Over n from 1.3 to 1.4 between weak and moderate inversion, 8 %, and the interval of a
    sigma of 60 chips, -15 % to +22 %.
    """
    found, out, _ = figures(cosim_main, sheet, tmp_path / "run", "--engine", "ngspice", "--chips", 60, "-j", 1)
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= WIDTH
    (line,) = found["lines"]
    expected = math.sqrt(2) * math.hypot(1e-3 / (1.35 * u_t(27)), 1e-3)
    low, high = line["chips"]["sigma_interval"]
    assert 0.95 * low < expected < 1.05 * high
    assert line["conditions"]["nominal"] == pytest.approx(1.0, abs=0.02)  # output conductance alone
    assert len(found["conditions"]) == 8 and line["conditions"]["failing"] == 0
    assert found["conditions"][0] == ["tt", "27 C", "1.8 V", "bias 2n"]
    assert line["chips"]["passed"] == found["yield"]["passed"] and found["yield"]["chips"] == 60
    causes = line["chips"]["causes"]
    assert {one["name"] for one in causes["causes"]} == {"m1", "m2"}
    assert (
        sum(one["share"] for one in causes["causes"]) == pytest.approx(1.0, abs=0.05) and causes["unexplained"] < 0.02
    )
    assert [one["share"] for one in causes["causes"]] == pytest.approx([0.5, 0.5], abs=0.05)  # both alike
    rows = list(csv.DictReader((tmp_path / "run" / "datasheet_chips.csv").read_text().splitlines()))
    assert len(rows) == 60 and sum(int(row["passed"]) for row in rows) == line["chips"]["passed"]
    farthest = max(rows, key=lambda row: abs(float(row["ratio"]) - 1.0))
    assert int(farthest["chip"]) == found["worst"]


ANALYSES = {  # in place of the mirror's transient; `ratio` is the sheet's measure
    "op": ".op\n.meas op copied find i(vo)\n",
    "dc": ".dc vo 0 {supply} 0.1\n.meas dc copied find i(vo) at={supply/2}\n.meas dc most max i(vo)\n",
}


@pytest.mark.ngspice
@pytest.mark.parametrize("analysis", ANALYSES)
def test_a_mirror_at_a_point_and_swept(batch, cosim_main, sheet, tmp_path, analysis):
    """The same chips have the same ratio as in the transient above, in both engines, and ngspice -b prints it.

    The audit differs by less than 2 % of sigma, as below; the transient is at rest within 0.1 % of sigma.
    """
    head, _, end = MIRROR.partition(".tran 1u 4u\n.meas tran copied find i(vo) at=4u\n")
    end = end.replace(".meas tran late when v(in)='supply' rise=1\n", "").replace(".meas tran", f".meas {analysis}")
    (tmp_path / "mirror.sp").write_text(head + ANALYSES[analysis] + end)
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", "--chips", 30, "--audit", 5, "-j", 1)
    (line,) = found["lines"]
    assert line["audit"]["chips"] == 5 and line["audit"]["largest"] < 0.02 and found["elsewhere"] == 0
    assert line["conditions"]["missing"] == 0 and len(found["conditions"]) == 8
    assert {one["name"] for one in line["chips"]["causes"]["causes"]} == {"m1", "m2"}
    (tmp_path / "mirror.sp").write_text(MIRROR)
    before, _, _ = figures(cosim_main, sheet, tmp_path / "tran", "--chips", 30, "--audit", 0, "-j", 1)
    assert line["chips"]["sigma"] == pytest.approx(before["lines"][0]["chips"]["sigma"], rel=2e-3)
    if program := shutil.which("ngspice"):
        command = [program, "-b", tmp_path / "run" / "datasheet_worst.sp"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        ratio = re.search(r"^ratio += +(\S+)", said, re.MULTILINE)
        assert ratio is not None, said
        difference = float(ratio[1]) - found["worst_values"]["ratio"]
        assert abs(difference) < 0.02 * line["chips"]["sigma"]


@pytest.mark.ngspice
def test_a_sweep_beyond_the_tables_runs_in_ngspice(batch, cosim_main, sheet, tmp_path):
    swept = (
        MIRROR.replace(".tran 1u 4u", ".dc vo 2.6 0 -0.1").replace(".meas tran", ".meas dc").replace("at=4u", "at=2")
    )
    (tmp_path / "mirror.sp").write_text(swept.replace(".meas dc late when v(in)='supply' rise=1\n", ""))
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", "--chips", 2, "--audit", 0, "-j", 1)
    assert found["elsewhere"] == 2 and found["lines"][0]["chips"]["missing"] == 0
    assert re.search(r"^ngspice, because net out at 2\.\d+ V, outside", found["moved"]), found["moved"]


@pytest.mark.ngspice
@pytest.mark.parametrize("engine", ["batch", "ngspice"])
def test_a_capacitor_is_discharged_from_its_ic(batch, cosim_main, sheet, tmp_path, engine):
    """0.5 V, held against 1 V behind 1 kohm until time 0, go to 1 V with 1 us: steps err by less than 1 in 10,000."""
    text = (
        "* rc\nv1 a 0 1\nr1 a b 1k\nc1 b 0 1n\n.ic v(b)=0.5\n.options reltol=1e-9\n.tran 10n 2u\n"
        ".meas tran left find v(a,b) at=1u\n"
    )
    (tmp_path / "rc.sp").write_text(text)
    sheet.write_text('netlist = "rc.sp"\nmeasures = [{name = "left", unit = "V"}]\n')
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", "--engine", engine, "--chips", 2, "-j", 1)
    assert found["lines"][0]["chips"]["mean"]["mean"] == pytest.approx(0.5 / math.e, rel=1e-4)


@pytest.mark.ngspice
def test_the_worst_chip_is_replayed_by_ngspice(cosim_main, sheet, tmp_path):
    program = shutil.which("ngspice")
    if program is None:
        pytest.skip("the program ngspice is not installed, only its library")
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", "--engine", "ngspice", "--chips", 3, "-j", 1)
    command = [program, "-b", tmp_path / "run" / "datasheet_worst.sp"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    ratio = re.search(r"^ratio += +(\S+)", said, re.MULTILINE)
    assert ratio is not None, said
    assert float(ratio[1]) == pytest.approx(found["worst_values"]["ratio"], rel=6e-6)  # it prints six digits


@pytest.mark.ngspice
def test_a_measure_without_a_value_is_a_chip_that_fails(cosim_main, sheet, tmp_path):
    sheet.write_text(SHEET + '[[measures]]\nname = "late"\nunit = "s"\n')
    found, out, _ = figures(cosim_main, sheet, tmp_path / "run", "--engine", "ngspice", "--chips", 2, "-j", 1)
    assert found["yield"]["passed"] == 0
    assert found["lines"][1]["chips"]["missing"] == 2 and found["lines"][1]["conditions"]["missing"] == 8
    assert "2 chips have no value of late; they count as failing" in " ".join(out.split())


@pytest.mark.ngspice
def test_an_interrupted_run_continues_to_the_same_bytes(cosim_main, sheet, tmp_path):
    options = ("--engine", "ngspice", "--chips", 6, "--variation", "all", "--seed", 3)
    figures(cosim_main, sheet, tmp_path / "run", *options, "-j", 1)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    kept = tmp_path / "run" / "chips.jsonl"
    assert cosim_main("verify", tmp_path / "run")[:2] == (
        0,
        "run.json     whole\nchips.jsonl  whole\npage.json    whole\n",
    )
    damaged = kept.read_bytes().replace(b'"chip": 2', b'"chip": 7').replace(b'"chip":2', b'"chip":7')
    (tmp_path / "run" / "chips.jsonl").write_bytes(damaged)
    code, out, _ = cosim_main("verify", tmp_path / "run")
    assert code == 1 and "damaged  1 of 6 records" in out
    kept.write_bytes(whole["chips.jsonl"])
    kept.write_bytes(b"".join(kept.read_bytes().splitlines(keepends=True)[:4])[:-5])
    _, _, err = figures(cosim_main, sheet, tmp_path / "run", *options, "-j", 2)
    assert "ngspice: 3 of 6" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == whole
    code, _, err = cosim_main("datasheet", sheet, "-o", tmp_path / "run", *options[:-1], 4)
    assert code == 2 and "holds a run with another seed: 3, not 4" in err


@pytest.mark.ngspice
def test_process_moves_all_devices_of_a_polarity(cosim_main, sheet, tmp_path):
    """A mirror's ratio does not see it, its gate voltage does: by 20.8 mV, the sigma of generic180's process."""
    text = MIRROR.replace(".end\n", ".meas tran gate find v(in) at=4u\n.end\n")
    (tmp_path / "mirror.sp").write_text(text)
    sheet.write_text(SHEET + '[[measures]]\nname = "gate"\nunit = "V"\n')
    options = ("--engine", "ngspice", "--chips", 30, "--variation", "process", "-j", 1)
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", *options)
    ratio, gate = (line["chips"] for line in found["lines"])
    assert ratio["sigma"] < 1e-3
    low, high = gate["sigma_interval"]
    assert 0.97 * low < 0.0208 < 1.03 * high  # a gate follows its threshold within 3 % at a constant current
    assert gate["causes"]["causes"][0]["name"] == "process of n devices"


@pytest.mark.ngspice
def test_the_batched_engine_agrees_with_ngspice(batch, cosim_main, sheet, tmp_path):
    """On the same chips a ratio differs by less than 2 % of its sigma, from the fit of the device tables."""
    found, out, _ = figures(cosim_main, sheet, tmp_path / "run", "--chips", 70, "--audit", 5, "-j", 1)
    audit = found["lines"][0]["audit"]
    assert audit["chips"] == 5 and audit["largest"] < 0.02
    assert "The same chips in ngspice" in out and found["elsewhere"] == 0
    one = (tmp_path / "run" / "chips.jsonl").read_bytes()
    figures(cosim_main, sheet, tmp_path / "two", "--chips", 70, "--audit", 0, "-j", 2)
    assert (tmp_path / "two" / "chips.jsonl").read_bytes() == one


@pytest.mark.ngspice
def test_an_axis_of_three_values_is_drawn(cosim_main, sheet, tmp_path):
    """All else nominal: the corner, and the bias, which has two values and no picture of its own."""
    text = SHEET.replace("supply = [1.8, 1.6]", "supply = [1.8, 1.6, 1.7]\ncelsius = [27]")
    sheet.write_text(text + '[[measures]]\nname = "late"\nunit = "s"\n')
    figures(cosim_main, sheet, tmp_path / "run", "--engine", "ngspice", "--chips", 2, "-j", 1)
    page = (tmp_path / "run" / "report.html").read_text()
    assert re.findall(r'alt="(\w+ over [a-z]+, [^"]*)"', page) == ["ratio over supply, all else nominal"]
    rows = list(csv.DictReader((tmp_path / "run" / "datasheet_conditions.csv").read_text().splitlines()))
    assert list(rows[0]) == ["corner", "celsius", "supply", "bias", "ratio", "late", "reason"] and len(rows) == 12
    assert [row["supply"] for row in rows[:6]] == ["1.8", "1.8", "1.6", "1.6", "1.7", "1.7"]
    assert [row["bias"] for row in rows[:2]] == ["2e-09", "1e-09"] and {row["corner"] for row in rows[6:]} == {"ss"}
    assert all(0.9 < float(row["ratio"]) < 1.1 and row["late"] == row["reason"] == "" for row in rows)


def test_what_is_drawn_over_an_axis(tmp_path):
    """In order, with the other axes nominal; a missing value is a gap."""
    (tmp_path / "mirror.sp").write_text(MIRROR)
    (tmp_path / "mirror.toml").write_text(SHEET.replace('["2n", "1n"]', '["2n", "0.1u", "1n"]'))
    sheet = read_sheet(tmp_path / "mirror.toml")
    records = [DatasheetChip(0, (None, float(k), None)) for k in range(len(sheet.conditions))]
    ((name, measure, points),) = swept_points(sheet, records)
    assert (name, measure.name, points) == ("bias", "ratio", [(1e-9, 2.0), (2e-9, 0.0), (1e-7, 1.0)])
    renamed = replace(sheet.conditions[0], parameters=(("ratio", 2e-9),))  # a measure has the name of a parameter
    table = conditions_csv(replace(sheet, conditions=(renamed,)), records[:1])
    assert table == "corner,celsius,supply,ratio,measure ratio,reason\ntt,27,1.8,2e-09,0,\n"
    axis = draw_sweep(measure, name, [*points, (2e-7, None)]).axes[0]
    assert axis.get_xlabel() == "bias (n)" and axis.get_xscale() == "log"
    assert axis.lines[0].get_xdata().tolist() == pytest.approx([1.0, 2.0, 100.0, 200.0])


@pytest.mark.ngspice
def test_a_circuit_without_transistors_has_no_spread(cosim_main, sheet, tmp_path):
    (tmp_path / "rc.sp").write_text(
        "* rc\nv1 a 0 1\nr1 a b 1k\nr2 b 0 1k\n.tran 1u 2u\n.meas tran half find v(b) at=1u\n"
    )
    sheet.write_text('netlist = "rc.sp"\nmeasures = [{name = "half", unit = "V"}]\n')
    found, _, _ = figures(cosim_main, sheet, tmp_path / "run", "--engine", "ngspice", "--chips", 25, "-j", 1)
    figures(
        cosim_main, sheet, tmp_path / "moved", "--engine", "ngspice", "--variation", "process", "--chips", 2, "-j", 1
    )
    chips = found["lines"][0]["chips"]
    assert chips["mean"]["mean"] == pytest.approx(0.5) and chips["sigma"] == 0.0 and "causes" not in chips


@pytest.mark.ngspice
def test_a_name_of_a_sheet_is_no_command_of_ngspice(cosim_main, sheet, tmp_path):
    odd = sheet.with_name("nl\n.control\nshell touch PWNED\n.endc\n*x.toml")
    odd.write_text(SHEET)
    figures(cosim_main, odd, tmp_path / "run", "--engine", "ngspice", "--chips", 2, "-j", 1)
    deck = (tmp_path / "run" / "datasheet_worst.sp").read_text()
    assert not [line for line in deck.splitlines() if line.startswith((".control", "shell"))]


@pytest.mark.ngspice
def test_python_runs_the_same(sheet, tmp_path):
    found = cosim.datasheet(sheet, chips=2, engine="ngspice", output=tmp_path / "run", jobs=1)
    assert found.figures.yield_.chips == 2 and "of 2 chips keep all limits" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("mirror.sp", "nothing.sp"),
            r"nothing\.sp: must be a file, but is missing; name a netlist beside mirror\.toml",
        ),
        (('netlist = "mirror.sp"', ""), r"mirror\.toml: must have the field netlist"),
        (("supply_parameter", "supply_source"), r"mirror\.toml: supply_source is no field; known are conditions"),
        (('supply_parameter = "supply"', ""), r"conditions\.supply and supply_parameter must be given together"),
        (('= "supply"', '= "vcc"'), r"mirror\.sp must have a \.param vcc, which is given a value; it has bias, supply"),
        (('"ss"', '"slow"'), r"mirror\.toml: conditions: corner must be one of .* not 'slow'"),
        (('"ss"', '"tt"'), r"mirror\.toml: corner must have each value once"),
        (("1.6", "7"), r"conditions: supply must be above 0 V and at most 3\.3 V"),
        (("1.6", '"much"'), r"mirror\.toml: conditions\.supply must be a number such as 0\.5 or 10m"),
        (("[1.8, 1.6]", "1.8"), r"mirror\.toml: conditions\.supply must be a list, not a number"),
        (('"1n"', ""), None),
        (('["2n", "1n"]', "[]"), r"mirror\.toml: bias must have at least one value"),
        (("bias =", "vias ="), r"mirror\.sp must have a \.param vias"),
        (('name = "ratio"', 'name = "radio"'), r"measures\.radio must be a \.meas of the netlist.*it has copied, late"),
        (('name = "ratio"', ""), r"mirror\.toml: measures\[0\] must have the field name"),
        (("min = 0.9", "least = 0.9"), r"mirror\.toml: measures\[0\]\.least is no field; known are max, min, name"),
        (("min = 0.9", 'unit = "a b"'), r"measures\.ratio\.unit must be at most 10 letters"),
        (("min = 0.9", "min = 1.2"), r"measures\.ratio: min, typ and max must not fall, not 1\.2, 1\.1"),
        (("min = 0.9", 'min = "low"'), r"measures\.ratio\.min must be a number such as"),
        (("[[measures]]", "measures = 3\n[other]"), r"mirror\.toml: other is no field"),
        (("[[measures]]", "[measures]"), r"mirror\.toml: measures must be a list, not a table"),
        (
            ("[1.8, 1.6]", "[1.8]\ncelsius = [300]"),
            r"conditions: temperature must lie in .* not 300 C; correct the sheet",
        ),
        (("[[measures]]", "[[measures"), r"mirror\.toml: must be a TOML file"),
        (('"mirror.sp"', '"mirror.sp"\ntechnology = "tsmc"'), r"technology must be one of .* not 'tsmc'"),
    ],
)
def test_what_is_wrong_in_a_sheet_is_named(cosim_main, sheet, tmp_path, change, said):
    from cosim.base.errors import InputError
    from cosim.verbs.datasheet.sheet import read_sheet

    sheet.write_text(SHEET.replace(*change))
    if said is None:
        assert len(read_sheet(sheet).conditions) == 4
        return
    with pytest.raises(InputError, match=said) as raised:
        read_sheet(sheet)
    assert "\n" not in str(raised.value)
    code, out, err = cosim_main("datasheet", sheet, "-o", tmp_path / "run", "--engine", "ngspice")
    assert (code, out) == (2, "") and re.search(said, err) and not (tmp_path / "run").exists()


def test_a_faulty_netlist_is_named_by_its_line(cosim_main, sheet, tmp_path):
    (tmp_path / "mirror.sp").write_text(MIRROR.replace("vo out 0 {supply/2}", "eo out 0 in 0 2"))
    code, _, err = cosim_main("datasheet", sheet, "-o", tmp_path / "run", "--engine", "ngspice")
    assert code == 2 and "mirror.sp: line 7: 'eo' is not understood" in err
    (tmp_path / "mirror.sp").write_text(re.sub(r"\.meas.*\n", "", MIRROR))
    code, _, err = cosim_main("datasheet", sheet, "-o", tmp_path / "run", "--engine", "ngspice")
    assert code == 2 and "must have a .tran, .dc or .op and a .meas of it for a datasheet" in err


@pytest.mark.parametrize("verb", ["montecarlo", "compare", "sensitivity", "compile"])
def test_other_verbs_name_the_datasheet(cosim_main, sheet, verb):
    code, _, err = cosim_main(verb, sheet.parent / "mirror.sp")
    assert code == 2 and err.count("\n") == 1
    assert "a trained network is needed, not a netlist; cosim datasheet measures netlists" in err


def test_a_sweep_names_the_datasheet(cosim_main, sheet, tmp_path):
    words = ("compare", sheet.parent / "mirror.sp", "--over", "temp=20,30", "-o", tmp_path / "swept")
    code, _, err = cosim_main("sweep", *words)
    assert code == 2 and "cosim datasheet measures netlists" in err
    for verb in (("datasheet", sheet), (sheet.parent / "mirror.sp",)):
        code, _, err = cosim_main("sweep", *verb, "--over", "temp=20,30", "-o", tmp_path / "swept")
        assert code == 2 and "for netlists list the values in the sheet of cosim datasheet" in err
