"""cosim characterize: figures, JSON, conditions, and what is refused."""

import json

import pytest

from cosim.results.page import WIDTH

KEYS = {"steps_checked", "wrong_levels", "level_error_max", "power_w", "retention_steps", "retention_wrong"}


@pytest.mark.ngspice
def test_ladder(cosim_main, tmp_path):
    arguments = ("--rungs", "2", "--sequences", "1", "--steps", "12", "--seed", "3", "-o", tmp_path)
    code, out, _ = cosim_main("characterize", "ladder", *arguments, "--json", tmp_path / "first.json")
    assert code == 0
    assert max(map(len, [line for line in out.splitlines() if not line.startswith(("figure: ", "report: "))])) <= WIDTH
    assert "ladder of 2 rungs on generic180: 0 of 12 levels wrong" in out
    assert "0, by 0 wrong updates" in out and "mean supply power" in out
    found = json.loads((tmp_path / "first.json").read_text())
    assert set(found) > KEYS
    assert (found["rungs"], found["steps_checked"], found["wrong_levels"]) == (2, 12, 0)
    (nominal,) = found["conditions"]
    assert set(nominal) > KEYS
    assert (nominal["corner"], nominal["celsius"], nominal["supply_v"]) == ("tt", 27.0, 1.8)
    # the split is the mean of 40 samples a step, the power an integral: see tests/verbs/characterize/test_study.py
    assert sum(nominal["power_split_w"].values()) == pytest.approx(nominal["power_w"], rel=0.3 / 40, abs=0)
    assert (tmp_path / "ladder_tt_27C_1.8V.png").stat().st_size > 10_000
    before = (tmp_path / "ladder_tt_27C_1.8V.png").read_bytes()
    code, again, _ = cosim_main("characterize", "ladder", *arguments, "--json", tmp_path / "second.json")
    assert (code, again) == (0, out)
    assert (tmp_path / "second.json").read_text() == (tmp_path / "first.json").read_text()
    assert (tmp_path / "ladder_tt_27C_1.8V.png").read_bytes() == before


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("cell", "celsius"),
    [("schmitt", (-20, 85)), ("dpi", (-20, 85)), ("mirror", (-20, 85)), ("rectifier", (85,)), ("steering", (85,))],
)
def test_a_cell_at_other_temperatures(cosim_main, tmp_path, cell, celsius, monkeypatch):
    monkeypatch.setattr("cosim.verbs.characterize.study.SCHMITT_POINTS", ((0.35e-9, 0.15e-9, 0.5e-9),))
    options = ("--temp", ",".join(map(str, celsius)), "--supply", "1.62", "-o", tmp_path, "--json", tmp_path / "x.json")
    code, out, _ = cosim_main("characterize", cell, *options)
    assert code == 0
    assert max(map(len, [line for line in out.splitlines() if not line.startswith(("figure: ", "report: "))])) <= WIDTH
    conditions = json.loads((tmp_path / "x.json").read_text())["conditions"]
    assert [(one["celsius"], one["supply_v"]) for one in conditions] == [(one, 1.62) for one in celsius]
    for one in conditions:
        assert (tmp_path / f"{cell}_tt_{one['celsius']:g}C_1.62V.png").stat().st_size > 10_000
        assert f"tt, {one['celsius']:g} C, 1.62 V" in out
    measured, calibrated = (
        [abs(row[f"error_{kind}"]) for one in conditions for row in one["rows"]] for kind in ("measured", "calibrated")
    )
    assert sum(calibrated) < sum(measured)  # a nominal calibration still helps there


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["dpi", "--supply", "5"], "cosim: supply must be above 0 V and at most 3.3 V, the largest of generic180, not"),
        (
            ["mirror", "--temp", "27,900"],
            "must lie in -55 to 150 C, not",
        ),
        (["schmitt", "--temp", "warm"], "--temp must be a number in C such as '60' or '-40', not 'warm'"),
        (["ladder", "--tau", "20m"], "cosim: ladder of 5 rungs at 27 C, DPIs 10 % fast: the ladder would skip a set"),
        (["ladder", "--tau", "1m"], "cosim: ladder of 5 rungs at 27 C, DPIs 10 % fast: the ladder would double a"),
        (["ladder", "--rungs", "0"], "invalid value for '--rungs': must lie in 1 to 32, not 0"),
        (["dpi", "--rungs", "3"], "no such option"),
        (["latch"], "no such command 'latch'"),
        (
            ["dpi", "--corner", "tt", "--corner", "hot"],
            "cosim: corner must be one of tt, ff, ss, fs, sf for generic180, not",
        ),
        (
            ["mirror", "--technology", "sky90"],
            "cosim: technology must be one of generic180, gf180mcu, sg13g2, sg13g2_1v2, sky130, or a .toml",
        ),
    ],
)
def test_what_is_refused(cosim_main, tmp_path, arguments, text):
    code, _, err = cosim_main("characterize", *arguments, *([] if arguments == ["latch"] else ["-o", tmp_path / "out"]))
    assert code == 2
    assert text in err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made(cosim_main, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, _, err = cosim_main("characterize", "mirror", "-o", tmp_path / "file" / "out")
    assert code == 2
    assert "cannot write into" in err
