"""`cosim montecarlo` and `cosim trim` as a user runs them: interrupted, killed, resumed, refused."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import cosim
from cosim.base.errors import InputError
from cosim.verbs.montecarlo import execute as cluster

pytestmark = pytest.mark.usefixtures("unrendered_module")
COMMAND = [sys.executable, "-c", "from cosim.cli import main; main()", "montecarlo"]


@pytest.fixture(scope="module")
def options(tiny):
    return [tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1]


@pytest.fixture(scope="module")
def options_long(tiny, tmp_path_factory):
    """The same network on so many samples that a task of eight chips takes 50 ms, and all of them ten times as long."""
    data = tmp_path_factory.mktemp("long") / "data.npz"
    rng = np.random.default_rng(3)
    np.savez(data, x_test=rng.uniform(size=(2_000, 3, 3)), y_test=rng.integers(0, 2, 2_000))
    return [str(tiny / "net.npz"), "--data", str(data), "--jobs", "1", "--chips", "80"]


def test_table_json_and_store(cosim_main, options, tmp_path):
    code, out, _ = cosim_main(
        "montecarlo", *options, "--chips", 20, "--spec", "accuracy>=40%", "-o", tmp_path / "store",
        "--json", tmp_path / "mc.json", "--contributions",
    )  # fmt: skip
    assert code == 0
    found = json.loads((tmp_path / "mc.json").read_text())
    assert (found["chips"], found["failed"], found["samples"]) == (20, 0, 5)
    assert found["yield"]["spec"] == ["accuracy>=40%"] and found["yield"]["chips"] == 20
    low, high = found["yield"]["interval"]
    assert low <= found["yield"]["value"] <= high
    interval = f"95 % interval {100 * low:.1f} % to {100 * high:.1f} % (Clopper-Pearson)"
    assert f"Yield {100 * found['yield']['value']:.1f} %, {interval}" in " ".join(out.split())
    assert {"mean", "quantiles"} <= set(found["accuracy"])
    assert found["contributions"]["state_agreement"]["block"]["shares"]
    assert max(len(line) for line in out.splitlines() if not line.startswith("report:")) <= 100
    records = [json.loads(line) for line in (tmp_path / "store" / "chips.jsonl").read_text().splitlines()]
    assert [record["chip"] for record in records] == list(range(20))


def test_a_killed_run_goes_on_and_ends_the_same(cosim_main, options_long, tmp_path):
    """SIGKILL once records are there; benchmarks/bench_kill.py does it at twenty moments. No orphan goes on writing."""
    assert cosim_main("montecarlo", *options_long, "-o", tmp_path / "whole")[0] == 0
    broken = tmp_path / "broken"
    with subprocess.Popen(
        [*COMMAND, *options_long, "-o", str(broken)], stdout=-3, stderr=-3, start_new_session=True
    ) as process:
        while process.poll() is None and _size(broken) == 0:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    code, _, _ = cosim_main("montecarlo", *options_long, "-o", broken)
    assert code == 0
    assert (broken / "summary.json").read_bytes() == (tmp_path / "whole" / "summary.json").read_bytes()
    assert (broken / "chips.jsonl").read_bytes() == (tmp_path / "whole" / "chips.jsonl").read_bytes()


def _size(folder):
    path = folder / "chips.jsonl"
    return path.stat().st_size if path.exists() else 0


@pytest.mark.ngspice
def test_ngspice_and_replay(cosim_main, options, tmp_path):
    arguments = ["montecarlo", *options, "--engine", "ngspice", "--chips", 2, "--samples", 2, "-o", tmp_path]
    code, out, _ = cosim_main(*arguments)
    assert code == 0 and "Engine: ngspice; none failed." in " ".join(out.split())
    code, out, _ = cosim_main(*arguments, "--replay", 1)
    assert code == 0
    assert "the store says the same about its transistors" in out
    decks = sorted((tmp_path / "chip_1").iterdir())
    assert len(decks) == 2 and "delvto=" in decks[0].read_text()


def test_a_trim_that_was_killed_goes_on_and_ends_the_same(cosim_main, options, tmp_path):
    """What a kill leaves: half of the lines of chips.jsonl, the last one cut off, and no result yet."""
    asked = ["trim", *options, "--chips", 6, "--bits", "2,6", "-o"]
    assert cosim_main(*asked, tmp_path / "whole")[0] == 0
    (tmp_path / "broken").mkdir()
    for name in (".cosim", "run.json", "run.toml"):
        (tmp_path / "broken" / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    lines = (tmp_path / "whole" / "chips.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "broken" / "chips.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])
    code, _, err = cosim_main(*asked, tmp_path / "broken")
    assert code == 0 and "chips: 3 of 6" in err
    kept = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "broken")]
    assert kept[0] == kept[1] and len(lines) == 6
    code, _, err = cosim_main("trim", *options, "--chips", 6, "--bits", "3", "-o", tmp_path / "whole")
    assert code == 2 and "holds a run with another bits: [2, 6], not [3]" in err


def test_trim(cosim_main, options, tmp_path):
    code, out, _ = cosim_main("trim", *options, "--chips", 20, "--bits", "2,6", "-o", tmp_path)
    assert code == 0
    found = json.loads((tmp_path / "trim.json").read_text())
    assert [row["bits"] for row in found["rows"]] == [None, 2, 6]
    before, _, fine = (row["state_agreement"]["mean"] for row in found["rows"])
    assert fine >= before
    assert (tmp_path / "trim.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--chips", 0], "--chips"),
        (["--chips", -3], "--chips"),
        (["--spec", "good"], "--spec must be one of accuracy, task_agreement"),
        (["--replicates", 2], "--replicates must be at most --chips (100), and 1 with --sampling random, not 2"),
        (["--chips", 10, "--contributions"], "--contributions needs at least 20 chips"),
        (["--sampling", "lhs", "--chips", 5, "--replicates", 4],
         "--chips must be a multiple of --replicates (4), not 5"),
        (["--variation", "global", "--supply", 3.28],
         "chips of variation 'global' have supplies up to 3.444 V; generic180 takes at most 3.3 V. Choose a range"),
        (["--variation", "all", "--supplies", "1.7,3.4"], "have supplies up to 3.4 V; generic180 takes at most 3.3 V"),
        (["--temps=0,60"], "--temps and --supplies are of chips whose temperature and supply vary, not of --variation "
         "local; add --variation global or all"),
        (["--variation", "all", "--temps", "-300,20"], "must lie in -55 to 150 C, not -300 C"),
        (["--seed", -1], "must lie in 0 to 4294967295, not -1"),
        (["--area", "nan"], "must lie in 0.01 to 100, not nan"),
        (["--area", "1e-9"], "must lie in 0.01 to 100, not 1e-09"),
        (["--stop-width", "nan"], "must lie in (0, 1], not nan"),
        (["--replay", 100], "--replay must be below --chips (100), not 100"),
        (["--replay", 1], "no Monte Carlo run there"),
        (["--gradient", "nodir"], "--gradient nodir: generic180 has no table [layout], so no drawing of it has places; "
         "take --technology gf180mcu and a folder that cosim layout wrote with it, or leave --gradient out"),
        (["--dask", "tcp://127.0.0.1:9"], "--dask tcp://127.0.0.1:9: no scheduler answers there"),
    ],
)  # fmt: skip
def test_wrong_values(cosim_main, options, tmp_path, monkeypatch, arguments, text):
    if "--dask" in arguments:
        pytest.importorskip("distributed")
        monkeypatch.setattr(cluster, "CONNECT", 1.0)  # s: nobody will come
    code, _, err = cosim_main("montecarlo", *options, "-o", tmp_path / "store", *arguments)
    assert code == 2
    assert text in " ".join(err.split())
    assert not (tmp_path / "store" / "chips.jsonl").exists()


def test_chips_vary_between_the_ends_that_are_asked_for(cosim_main, options, tmp_path):
    """From the supply that is asked for; folders with the usual ranges, typed or not, are the same folders."""
    asked = ("montecarlo", *options, "--variation", "global", "--chips", 12, "--spec", "accuracy>=0.1")
    ranges = ("--temps", "85,-40,27", "--supplies", "1.62,1.98", "--supply", 1.75)
    assert cosim_main(*asked, *ranges, "-o", tmp_path / "wide")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "wide" / "chips.jsonl").read_text().splitlines()]
    celsius, volts = ([row[name] for row in rows] for name in ("celsius", "supply_v"))
    assert -40 <= min(celsius) < -10 and 55 < max(celsius) <= 85  # 12 uniform numbers: none in a quarter, 3 %; one seed
    assert 1.62 <= min(volts) < 1.71 and 1.89 < max(volts) <= 1.98
    variation = json.loads((tmp_path / "wide" / "run.json").read_text())["variation"]
    assert variation["celsius"] == [-40, 85]
    assert variation["supplies"] == pytest.approx([1.62 / 1.75, 1.98 / 1.75], abs=1e-9)
    assert cosim_main(*asked, "-o", tmp_path / "usual")[0] == 0
    code, _, err = cosim_main(*asked, "--temps", "0,60", "--supplies", "1.71,1.89", "-o", tmp_path / "usual")
    assert code == 0, err
    assert "supplies" not in json.loads((tmp_path / "usual" / "run.json").read_text())["variation"]
    page = " ".join((tmp_path / "usual" / "report.html").read_text().split())
    assert "0 to 60 °C, 95 to 105 % of the supply" in page
    assert cosim_main("montecarlo", *options, "--chips", 3, "-o", tmp_path / "local")[0] == 0
    assert "over the nominal one" not in (tmp_path / "local" / "report.html").read_text()


def test_python_checks_a_range_as_the_command_line_does(tiny, tmp_path):
    for temps, said in (([("a", 3)], "must be a number"), ([(-400, 20)], "must lie in -55 to 150 C, not -400 C")):
        with pytest.raises(InputError, match=said):
            cosim.run(
                "montecarlo", tiny / "net.npz", data=tiny / "data.npz", variation="all", temps=temps, output=tmp_path
            )


def test_a_store_of_another_run(cosim_main, options, tmp_path):
    store = ["-o", tmp_path]
    assert cosim_main("montecarlo", *options, "--chips", 3, *store)[0] == 0
    kept = (tmp_path / "chips.jsonl").read_bytes()
    code, _, err = cosim_main("montecarlo", *options, "--chips", 3, "--seed", 1, *store)
    assert code == 2 and "holds a run with another variation" in err
    assert cosim_main("montecarlo", *options, "--chips", 3, *store)[0] == 0  # the same command runs nothing again
    assert (tmp_path / "chips.jsonl").read_bytes() == kept
    assert cosim_main("montecarlo", *options, "--chips", 3, "--seed", 1, "--fresh", *store)[0] == 0
    assert (tmp_path / "chips.jsonl").read_bytes() != kept


def test_a_technology_without_mismatch(cosim_main, options, tmp_path, own_technology):
    code, _, err = cosim_main(
        "montecarlo", *options, "--technology", own_technology, "--units", 8, "-o", tmp_path / "store"
    )
    assert code == 2
    assert "nfet.a_vt must be positive for --variation local, not 0" in err
    assert not (tmp_path / "store").exists()


@pytest.fixture
def own_technology(tmp_path, monkeypatch):
    """generic180 without its coefficients, under its own name: the shipped calibration applies."""
    from cosim.base.resources import models_path

    devices = models_path() / "devices"
    text = (devices / "generic180.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("a_vt", "a_beta", "spread_vt"))]
    (tmp_path / "generic180.lib").write_bytes((devices / "generic180.lib").read_bytes())
    path = tmp_path / "bare.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_bits_that_are_wrong(cosim_main, options, tmp_path):
    for text in ("x", "0", "3-99", ""):
        code, _, err = cosim_main("trim", *options, "--bits", text, "-o", tmp_path)
        assert code == 2 and "--bits must be numbers from 1 to 12" in err
