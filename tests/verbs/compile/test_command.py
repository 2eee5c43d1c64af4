"""`cosim compile`: all files or none, the same bytes twice, and what is wrong is said in one message."""

import csv
import json
import os
import re
import stat
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.claim import MARKER
from cosim.base.settings import SETTINGS_FILE
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.types import network_to_arrays

FILES = [
    "design.json", "devices.lib", "expected.csv", "mapping.csv", "mapping.json", "network.sp", "network.svg",
    "page.json", "report.html", "testbench.sp",
]  # fmt: skip
STARTED = sorted([*FILES, "start.sp"])  # where ngspice is there to find the operating point


def listing(folder):
    """Names of files, without the marker of the verb that made the folder and its settings."""
    own = (MARKER, SETTINGS_FILE)
    return sorted(path.name for path in folder.iterdir() if path.name not in own) if folder.exists() else []


@pytest.mark.ngspice
def test_all_files_and_what_is_in_them(cosim_main, tiny, tmp_path):
    code, out, _ = cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out")
    assert code == 0
    assert listing(tmp_path / "out") == STARTED
    design = json.loads((tmp_path / "out" / "design.json").read_text())
    assert design["transistors"] > 50
    assert f": {design['transistors']} transistors, all {design['parameters']} parameters kept\n" in out
    written = re.split(r"\s+in\s+/", out.split("\nwritten: ")[1])[0]
    assert {*re.split(r",\s+", written)} == {*STARTED} - {"page.json", "report.html"}
    assert out.endswith(f"\nreport: {tmp_path / 'out' / 'report.html'}\n")
    rows = json.loads((tmp_path / "out" / "mapping.json").read_text())
    table = list(csv.DictReader((tmp_path / "out" / "mapping.csv").read_text().splitlines()))
    assert len(rows) == len(table) == design["parameters"]
    assert [row["parameter"] for row in rows] == [row["parameter"] for row in table]
    netlist = (tmp_path / "out" / "network.sp").read_text()
    assert netlist.count(".subckt ") == netlist.count(".ends ")
    assert netlist.rstrip().endswith(".ends network")


def test_twice_is_the_same_and_names_no_place(cosim_main, tiny, tmp_path):
    for name in ("one", "two"):
        assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / name)[0] == 0
    for file in FILES:
        content = (tmp_path / "one" / file).read_bytes()
        assert content == (tmp_path / "two" / file).read_bytes()
        typed = (str(tiny),) if file != "report.html" else ()  # whose command names the network as it was given
        for place in (str(tmp_path), *typed, os.getcwd(), str(os.path.expanduser("~")) + "/"):
            assert place.encode() not in content, (file, place)


@pytest.mark.ngspice
def test_compile_replaces_what_it_wrote(cosim_main, tiny, tmp_path):
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path)[0] == 0
    written = (tmp_path / "network.sp").read_text()
    (tmp_path / "network.sp").write_text("old")
    (tmp_path / "mine.txt").write_text("kept")
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path)[0] == 0
    assert listing(tmp_path) == sorted([*STARTED, "mine.txt"])
    assert (tmp_path / "network.sp").read_text() == written


def test_compile_leaves_a_file_that_it_did_not_write(cosim_main, tiny, tmp_path):
    (tmp_path / "network.sp").write_text("mine")
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path)
    assert code == 2
    assert "network.sp: no verb of cosim wrote it, and cosim compile may replace it; move it away" in err
    assert listing(tmp_path) == ["network.sp"]
    assert (tmp_path / "network.sp").read_text() == "mine"


def test_labels_and_task_never_reach_the_netlist(cosim_main, tiny, tmp_path):
    network = load_network(tiny / "net.npz")
    hostile = ".control; shell touch owned; .endc"
    save_checkpoint(tmp_path / "net.npz", replace(network, task=hostile, labels=(hostile, "b")))
    assert cosim_main("compile", tmp_path / "net.npz", "-o", tmp_path / "out")[0] == 0
    for file in ("network.sp", "testbench.sp", "devices.lib", "mapping.csv"):
        assert "shell" not in (tmp_path / "out" / file).read_text()


@pytest.fixture
def checkpoint(tmp_path, tiny):
    """(change of arrays and meta) -> path of a changed checkpoint."""

    def write(change):
        arrays, meta = network_to_arrays(load_network(tiny / "net.npz"))
        change(arrays, meta)
        path = tmp_path / "bad.npz"
        np.savez(path, **arrays, meta=np.array(json.dumps(meta)))
        return path

    return write


def set_epsilon(arrays, meta):
    meta["layers"][0]["epsilon"] = 0.5


def set_nan(arrays, meta):
    arrays["layers.0.weight"][1, 2] = np.nan


def set_name(arrays, meta):
    meta["layers"][0]["name"] = "x; quit"


def set_large(arrays, meta):
    arrays["layers.0.weight"][1, 2] = 1e6


def set_narrow(arrays, meta):
    arrays["layers.0.beta_hi"][1] = arrays["layers.0.beta_lo"][1] + 1e-3


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_epsilon, "layer0.epsilon must be 0 (Schmitt trigger), 1 (ladder) or -1 (toggle), not 0.5"),
        (set_nan, "layer0.weight[1,2] must be finite, not nan; 1 such value(s)"),
        (set_name, "meta.layers: name must be a lower-case letter"),
        (set_large, "layer0.weight[1,2] must lie within +-8 (64 unit devices at 1/8), not 1e+06"),
        (set_narrow, "layer0.1: hysteresis width must be at least 12 pA, not 1 pA"),
        (lambda arrays, meta: meta.update(version=99), "meta.version must be 1, not 99"),
    ],
)
def test_networks_that_cannot_be_compiled(cosim_main, checkpoint, tmp_path, change, text):
    path = checkpoint(change)
    code, out, err = cosim_main("compile", path, "-o", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"cosim: {path}: ")
    assert text in err
    assert out == ""
    assert listing(tmp_path / "out") == []


def test_saturate_cuts_and_lists(cosim_main, checkpoint, tmp_path):
    code, out, _ = cosim_main("compile", checkpoint(set_large), "-o", tmp_path / "out", "--saturate")
    assert code == 0
    assert ", 1 of 29 parameters lost or cut\n" in out
    assert re.search(r"\nparameter +wanted +built +status\nlayer0.weight\[1,2\] +1e\+06 +8 +cut", out)


@pytest.mark.parametrize("content", [b"", b"this is no checkpoint", b"PK\x03\x04 cut off"])
@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_not_a_checkpoint(cosim_main, tmp_path, content, suffix):
    if suffix == ".pt":
        pytest.importorskip("torch")
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(content)
    code, _, err = cosim_main("compile", path, "-o", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"cosim: {path}: ")
    assert listing(tmp_path / "out") == []


def test_truncated_checkpoint(cosim_main, tiny, tmp_path):
    path = tmp_path / "cut.npz"
    path.write_bytes((tiny / "net.npz").read_bytes()[:-300])
    code, _, err = cosim_main("compile", path, "-o", tmp_path / "out")
    assert (code, "cut off or something else" in err) == (2, True)
    assert listing(tmp_path / "out") == []


def test_absent_checkpoint(cosim_main, tmp_path):
    code, _, err = cosim_main("compile", tmp_path / "absent.npz")
    assert (code, err.startswith(f"cosim: {tmp_path / 'absent.npz'}: ")) == (2, True)


def test_unknown_technology(cosim_main, tiny, tmp_path):
    code, _, err = cosim_main("compile", tiny / "net.npz", "--technology", "generic90", "-o", tmp_path / "out")
    assert code == 2
    assert err == (
        "cosim: technology must be one of generic180, gf180mcu, sg13g2, sg13g2_1v2, sky130, or a .toml file of your "
        "own, not 'generic90'\n"
    )
    assert listing(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--corner", "typical"], "cosim: corner must be one of tt, ff, ss, fs, sf for generic180, not 'typical'"),
        (
            ["--temp", "151"],
            "must lie in -55 to 150 C, not 151 C",
        ),
        (["--temp", "warm"], "must be a temperature in celsius such as 27 or -40, not warm"),
        (
            ["--supply", "3.4"],
            "cosim: supply must be above 0 V and at most 3.3 V, the largest of generic180, not 3.4 V",
        ),
        (["--supply", "1A"], "--supply must be a number in V such as"),
    ],
)
@pytest.mark.parametrize("verb", ["compile", "simulate", "compare"])
def test_conditions_that_are_refused(cosim_main, tiny, tmp_path, verb, arguments, text):
    code, out, err = cosim_main(verb, tiny / "net.npz", *arguments, "-o", tmp_path / "out")
    assert (code, out) == (2, "")
    assert text in err
    assert listing(tmp_path / "out") == []


def test_kit_that_is_not_there(cosim_main, tiny, tmp_path, monkeypatch):
    """A wrong --pdk-root is an error of the call, a kit that is nowhere a missing tool; both say how to install."""
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    options = ("compile", tiny / "net.npz", "--technology", "gf180mcu", "-o", tmp_path / "out")
    for arguments, expected, text in (
        (("--pdk-root", tmp_path / "kits"), 2, f"cosim: --pdk-root {tmp_path / 'kits'}: there is no gf180mcuD/"),
        ((), 1, f"cosim: foundry kit not found: PDK_ROOT is {tmp_path}, without gf180mcuD/"),
    ):
        code, _, err = cosim_main(*options, *arguments)
        assert code == expected
        assert text in err
        assert "install it with: pip install ciel" in err
        assert listing(tmp_path / "out") == []


def test_conditions_change_devices_and_sources_but_no_size(cosim_main, tiny, tmp_path):
    """Compiled at the nominal point: the netlist is the same, the devices are those of the corner."""
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "nominal")[0] == 0
    conditions = ("--corner", "FF", "--temp", "-20", "--supply", "1.62")
    assert cosim_main("compile", tiny / "net.npz", *conditions, "-o", tmp_path / "fast")[0] == 0
    nominal, fast = ({file: (tmp_path / name / file).read_text() for file in FILES} for name in ("nominal", "fast"))
    assert fast["network.sp"] == nominal["network.sp"]
    assert ("section tt" in nominal["devices.lib"], "section ff" in fast["devices.lib"]) == (True, True)
    assert "vth0=0.54" in fast["devices.lib"] and "vth0=0.6 " in nominal["devices.lib"]
    assert ".temp -2e+01" in fast["testbench.sp"] and "vdd vdd 0 dc 1.62e+00" in fast["testbench.sp"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("lots", "--i-unit must be a number in A such as '10n' or '1e-8', not 'lots'"),
        ("1V", "--i-unit must be a number in A such as '10n' or '1e-8', not '1V'"),
        ("-1n", "must lie in 1e-15 to 0.001 A, not -1e-09 A"),
        ("0", "must lie in 1e-15 to 0.001 A, not 0 A"),
    ],
)
def test_bad_quantity(cosim_main, tiny, tmp_path, value, text):
    code, _, err = cosim_main("compile", tiny / "net.npz", f"--i-unit={value}", "-o", tmp_path / "out")
    assert code == 2
    assert text in " ".join(err.split())
    assert listing(tmp_path / "out") == []


@pytest.mark.skipif(os.name != "posix", reason="a file in the way of a folder is reported differently")
def test_folder_that_cannot_be_made(cosim_main, tiny, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "file" / "out")
    assert code == 2
    assert f"cannot write into {tmp_path / 'file' / 'out'}: Not a directory; choose another folder with -o" in err
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission(cosim_main, tiny, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", closed)
    assert (code, "Permission denied; choose another folder with -o" in err) == (2, True)
    assert listing(closed) == []


def test_nothing_half_written_when_the_disk_is_full(cosim_main, tiny, tmp_path, monkeypatch):
    """The third file cannot be written: none takes its name, and no temporary file is left."""
    original, count = os.fsync, []

    def fsync(handle):
        found = os.fstat(handle)
        count.extend([handle] * (stat.S_ISREG(found.st_mode) and found.st_size > 100))  # no probe, no marker
        if len(count) == 3:
            raise OSError(28, "No space left on device")
        original(handle)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(os, "fsync", fsync)
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out")
    assert (code, "No space left on device" in err) == (2, True)
    assert listing(tmp_path / "out") == []


def test_interrupt_is_told_not_traced(cosim_main, tiny, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("cosim.verbs.compile.command.load_design", interrupt)
    code, _, err = cosim_main("compile", tiny / "net.npz")
    assert code == 130
    assert err == "cosim: interrupted; the same command begins anew\n"


def test_units_follow_the_grid_of_the_network(cosim_main, tiny, tmp_path):
    save_checkpoint(tmp_path / "fine.npz", replace(load_network(tiny / "net.npz"), weight_grid=0.0625))
    assert cosim_main("compile", tmp_path / "fine.npz", "-o", tmp_path / "out")[0] == 0
    assert json.loads((tmp_path / "out" / "design.json").read_text())["units_per_weight_1"] == 16


def test_a_frame_too_short_to_settle_is_said_with_the_one_that_is_not(cosim_main, tiny, tmp_path):
    _, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path, "--t-step", "1u")
    found = re.search(
        r"warning: frames of 1 us are too short: the gate line of \S+ has \S+ fF and falls from 1 to within 1 % of 0 "
        r"in frames of (\S+) (us|ms); give a longer --t-step, or a larger --i-unit",
        err,
    )
    assert found is not None, err
    for factor, said in ((0.98, True), (1.02, False)):  # three digits are shown
        t_step = f"{factor * float(found[1])}{found[2][0]}"
        _, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path, "--t-step", t_step)
        assert ("too short" in err) == said


def test_units_that_do_not_build_the_grid_are_refused(cosim_main, tiny, tmp_path):
    save_checkpoint(tmp_path / "fine.npz", replace(load_network(tiny / "net.npz"), weight_grid=0.125))
    code, _, err = cosim_main("compile", tmp_path / "fine.npz", "--units", 12, "-o", tmp_path / "out")
    assert code == 2
    assert "fine.npz: weights on a grid of 1/8 need 8 unit devices per 1.0 or a multiple of it, not 12" in err
    assert not (tmp_path / "out").exists()


def test_compile_needs_no_ngspice(cosim_process, tiny, tmp_path):
    code, _, err = cosim_process(
        "compile", tiny / "net.npz", "-o", tmp_path / "out", NGSPICE_LIBRARY_PATH=str(tmp_path / "absent.so")
    )
    assert code == 0
    assert (
        "the testbench has to find its operating point by itself: NGSPICE_LIBRARY_PATH must name the libngspice" in err
    )
    assert listing(tmp_path / "out") == FILES


def test_ranges_from_samples_size_the_ladders(cosim_main, make_network, tmp_path):
    """A network without recorded ranges is refused; samples that count down 4 steps ask for 4 rungs and headroom."""
    network = make_network(3, "signed", widths=(1,), outputs=2, alphas=(1.0,))
    (layer,) = network.layers
    layer = replace(
        layer, epsilon=1.0, weight=np.array([[-1.0, 0.0, 0.0]]), bias=np.zeros(1), bias_beta=np.full(1, 0.5)
    )
    save_checkpoint(tmp_path / "net.npz", replace(network, layers=(layer,)))
    code, _, error = cosim_main("compile", tmp_path / "net.npz", "-o", tmp_path / "out")
    assert code == 2
    assert "layer0 is not known" in error and "--ranges-from FILE.npz" in error
    x = np.zeros((1, 4, 3))
    x[0, :, 0] = 1.0
    np.savez(tmp_path / "samples.npz", x_test=x, y_test=np.zeros(1, dtype=int))
    options = ("--ranges-from", tmp_path / "samples.npz", "--headroom", "2", "-o", tmp_path / "out")
    assert cosim_main("compile", tmp_path / "net.npz", *options)[0] == 0
    assert "ladder_8_6" in (tmp_path / "out" / "network.sp").read_text()  # 4 and 2 at either end, starts 4 + 2 up
