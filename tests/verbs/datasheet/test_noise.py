"""`cosim datasheet --noise`: against kT/C, whose size no transistor's model changes, and as a table and figures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cosim.variation.draws import VariationPlan
from cosim.verbs.datasheet.noise import run_noise
from cosim.verbs.datasheet.sheet import read_sheet
from cosim.verbs.datasheet.study import datasheet_study

BOLTZMANN, FARAD, RUNS = 1.380649e-23, 4e-12, 192
TIMES = range(200, 1200, 100)  # us, four time constants or more apart
# Three conductances between a capacitor and a rail: a transistor on its bulk, one that is not, and a resistor.
CAPACITORS = "\n".join(
    [
        "* kT/C",
        "m1 a g1 0 0 generic180_n w=5u l=5u",
        "vg1 g1 0 0.5",
        "m2 b g2 s 0 generic180_n w=0.4u l=0.4u",
        "vs s 0 0.4",
        "vg2 g2 0 1.2",
        "r1 c 0 5meg",
        *(f"c{net} {net} 0 4p" for net in "abc"),
        ".tran 4u 1.2m",
        *(f".meas tran {net}{at} find v({net}) at={at}u" for net in "abc" for at in TIMES),
        ".meas tran never when v(a)=1 rise=1",
    ]
)
SHEET = """
netlist = "noisy.sp"
[[measures]]
name = "a500"
unit = "V"
min = -1
max = 1
[[measures]]
name = "never"
unit = "s"
"""


@pytest.fixture
def sheet(tmp_path):
    (tmp_path / "noisy.sp").write_text(CAPACITORS)
    (tmp_path / "noisy.toml").write_text(SHEET)
    return tmp_path / "noisy.toml"


@pytest.fixture
def study(sheet):
    plan = VariationPlan("local", 0, 2, area=1.0)
    return datasheet_study(read_sheet(sheet), "local", plan, "batch", 60.0)


@pytest.mark.ngspice
def test_a_capacitor_has_k_t_over_c(batch, study):
    """Of 1,920 values sigma has a standard error of 1.6 %: 4 of them; 3 % more for the band, steps and parasitics."""
    runs = run_noise(study, RUNS, 1, lambda done, total: None)
    values = np.array([one.values[:-1] for one in runs], dtype=np.float64).reshape(RUNS, 3, len(TIMES))
    error = 1 / math.sqrt(2 * RUNS * len(TIMES))
    for net, voltages in zip("abc", values.transpose(1, 0, 2), strict=True):
        sigma = (voltages - voltages.mean(axis=0)).std()
        ratio = sigma / math.sqrt(BOLTZMANN * 300.15 / FARAD)
        assert 1 - 4 * error - 0.03 < ratio < 1 + 4 * error, net
        assert abs(np.corrcoef(voltages[:, 0], voltages[:, 5])[0, 1]) < 4 / math.sqrt(RUNS), net


@pytest.mark.ngspice
def test_a_run_is_its_own(batch, study):
    """Its number and the seed say what it is, not how many run or where."""
    few = run_noise(study, 3, 1, lambda done, total: None)
    assert run_noise(study, 66, 2, lambda done, total: None)[:3] == few
    assert few[0].values != few[1].values and all(one.values[-1] is None for one in few)


@pytest.mark.ngspice
def test_the_page_has_both_sigmas(batch, cosim_main, sheet, tmp_path):
    command = ("datasheet", sheet, "-o", tmp_path / "run", "--chips", 2, "--audit", 0, "-j", 1)
    code, out, err = cosim_main(*command, "--noise", 64, "--json", tmp_path / "figures.json")
    assert code == 0, err
    line, never = json.loads((tmp_path / "figures.json").read_text())["lines"]
    noise = line["noise"]
    low, high = noise["sigma_interval"]
    assert noise["chips"] == 64 and low < noise["sigma"] < high
    assert low < 1.1 * math.sqrt(BOLTZMANN * 300.15 / FARAD) and high > 0.9 * math.sqrt(BOLTZMANN * 300.15 / FARAD)
    assert never["noise"]["missing"] == 64 and never["noise"]["sigma"] is None
    assert "Noise of the nominal circuit" in out and "64 runs without mismatch" in out
    assert "sigma of noise" in (tmp_path / "run" / "datasheet.md").read_text()
    code, out, err = cosim_main(*command, "--json", tmp_path / "figures.json")
    assert code == 0 and "Noise" not in out
    assert "noise" not in json.loads((tmp_path / "figures.json").read_text())["lines"][0]


def test_ngspice_has_no_noise_of_transistors(cosim_main, sheet, tmp_path):
    command = ("datasheet", sheet, "-o", tmp_path / "run", "--noise", 5, "--engine", "ngspice")
    code, out, err = cosim_main(*command)
    assert (code, out) == (2, "") and err.count("\n") == 1 and not (tmp_path / "run").exists()
    assert "--noise needs --engine batch: ngspice has no noise of transistors in a transient; choose" in err


def test_an_operating_point_takes_no_time_in_which_noise_could_be(cosim_main, tmp_path):
    sheet = Path(__file__).resolve().parents[3] / "netlists" / "public" / "ptat.toml"
    code, out, err = cosim_main("datasheet", sheet, "-o", tmp_path / "run", "--noise", 5)
    assert (code, out) == (2, "") and err.count("\n") == 1 and not (tmp_path / "run").exists()
    assert "--noise needs a netlist with .tran: that of ptat has an operating point or a sweep" in err
