"""Progress: a bar that redraws on a terminal, lines everywhere else."""

import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from cosim.base.errors import SimulationError
from cosim.cli.progress import progress_bar, say

pytestmark = pytest.mark.usefixtures("unrendered_module")
RUN = """
from cosim.cli.progress import progress_bar, say
with progress_bar("chips") as progress:
    for done in range(26):
        progress(done, 25)
        if done == 12:
            say("half of them")
"""


def reported(capsys, *reports):
    with progress_bar("chips") as progress:
        for report in reports:
            progress(*report)
    return capsys.readouterr().err


def test_elsewhere_a_line_every_ten_per_cent(capsys):
    found = reported(capsys, *((done, 25) for done in range(26)))
    assert found == "".join(f"  chips: {done} of 25\n" for done in (0, 3, 5, 8, 10, 13, 15, 18, 20, 23, 25))


def test_no_silence_is_longer_than_half_a_minute_between_reports(capsys, monkeypatch):
    """The first of the times is that of the beginning. A line says the time that is left by the pace of this run."""
    now = iter([0.0, 0.0, 10.0, 20.0, 29.0, 31.0, 60.0, 62.0])
    monkeypatch.setattr("cosim.cli.progress.time.monotonic", lambda: next(now, 62.0))
    found = reported(capsys, *((done, 1000) for done in range(7)))
    lines = [
        "0 of 1000",
        "4 of 1000, about 129 min left",
        "6 of 1000, about 171 min left",
    ]  # 31 s / 4 x 996, 62 s / 6 x 994
    assert found == "".join(f"  chips: {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("reports", "text"),
    [
        ([(40, 100), (41, 100), (100, 100)], "  chips: 40 of 100\n  chips: 100 of 100\n"),  # resumed
        ([(0, 100), (3, 100), (7, 100)], "  chips: 0 of 100\n  chips: 7 of 100\n"),  # stopped early
        ([(2, 2)], "  chips: 2 of 2\n"),  # all of it was kept
        ([(0, 0)], "  chips: 0 of 0\n"),
        ([(5, 10, {"loss": 0.12345, "epsilon": 1.0})], "  chips: 5 of 10, loss 0.123, epsilon 1\n"),
        ([], ""),
    ],
)
def test_first_and_last_report_are_lines(capsys, reports, text):
    assert reported(capsys, *reports) == text


def test_a_run_that_fails_says_nothing_more(capsys):
    def run():
        with progress_bar("chips") as progress:
            progress(0, 100)
            progress(3, 100)
            raise SimulationError("all of them failed")

    with pytest.raises(SimulationError, match="all of them failed"):
        run()
    assert capsys.readouterr().err == "  chips: 0 of 100\n"


def test_on_a_terminal_a_bar():
    """It is drawn over itself, ends in an empty line, and what is said meanwhile has a line of its own."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen([sys.executable, "-c", RUN], stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    text = seen.decode()
    assert text.count("\r") > 2 and "of 25" not in text
    assert re.search(r"\rchips: +\d+%\|.*\| \d+/25", text)
    *_, last = text.split("\r")
    assert not last.strip()
    assert re.search(r"\r +\r  half of them\r\n", text)


@pytest.mark.ngspice
def test_every_verb_reports_alike(cosim_main, tiny, tmp_path):
    data = ["--data", tiny / "data.npz", "--jobs", 1]
    code, _, err = cosim_main("simulate", tiny / "net.npz", *data, "--samples", 2, "-o", tmp_path / "simulate")
    assert (code, err) == (0, "".join(f"  ngspice: {done} of 2\n" for done in range(3)))
    code, _, err = cosim_main("montecarlo", tiny / "net.npz", *data, "--chips", 2, "-o", tmp_path / "montecarlo")
    assert (code, err) == (0, "  chips: 0 of 2\n  chips: 1 of 2\n  chips: 2 of 2\n")


def test_training_reports_alike(cosim_main, tmp_path):
    pytest.importorskip("torch")
    small = ["--cells", 2, "--layers", 1, "--iterations", 20, "--batch", 4]
    code, _, err = cosim_main("train", "digits", "-o", tmp_path / "model.pt", *small)
    assert code == 0
    found = re.findall(
        r"^  training: (\d+) of 20, loss [\d.e+-]+, epsilon [\d.e+-]+(, validation [\d.]+)?$", err, re.MULTILINE
    )
    assert [int(done) for done, _ in found] == [1, *range(2, 21, 2)]
    assert [int(done) for done, validation in found if validation] == [16, 18, 20]  # epsilon is final from 15 on


def test_say_is_a_line(capsys):
    say("mirror: trim")
    assert capsys.readouterr().err == "  mirror: trim\n"


@pytest.mark.parametrize(("reports", "line"), [([], "begun"), ([(3, 7)], "3 of 7")])
def test_where_nothing_is_reported_the_last_line_comes_again(capsys, monkeypatch, reports, line):
    """While one sample of a million frames runs, say; here after hundredths of a second."""
    monkeypatch.setattr("cosim.cli.progress.SILENCE", 0.01)
    found = ""
    with progress_bar("chips") as progress:
        for report in reports:
            progress(*report)
        while found.count("\n") < 4:
            found += capsys.readouterr().err
    found += capsys.readouterr().err  # what came since; every line is whole now
    said = f"  chips: {line}\n" * len(reports)  # the report itself
    again = f"  chips: {line}, at work for 0 min\n"
    assert found == said + again * (found.count("\n") - len(reports))


def test_a_compile_of_a_large_network_says_its_steps(cosim_main, tiny, tmp_path, monkeypatch):
    compile_it = "compile", tiny / "net.npz", "--saturate", "--dialect", "spectre"
    assert cosim_main(*compile_it, "-o", tmp_path / "small")[2] == ""
    monkeypatch.setattr("cosim.verbs.loading.LARGE", 2)
    code, _, err = cosim_main(*compile_it, "-o", tmp_path / "large")
    assert (code, err) == (0, "".join(f"  {line}\n" for line in (
        "making a graph of 3 cells", "making transistors of it", "writing netlist, testbench and mapping report",
        "writing the page",
    )))  # fmt: skip


def test_a_long_sample_is_said(cosim_main, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.verbs.loading.LONG", 2)
    run = "montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--chips", 1, "-o", tmp_path / "run"
    code, _, err = cosim_main(*run)
    assert code == 0
    assert "  the longest sample has 3 frames, one after the other: where a time limit ends it" in err


def test_a_sample_whose_waveforms_have_no_room_is_refused(cosim_main, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.base.bounds.available_memory", lambda: 1000.0)
    run = "simulate", tiny / "net.npz", "--data", tiny / "data.npz", "-o", tmp_path / "run"
    code, _, err = cosim_main(*run)
    assert code == 1
    assert re.search(
        r"simulating a sample of 3 frames needs at least [\d.e-]+ GB of memory, and 1e-06 GB are free; cut it into "
        "shorter samples\n$", err,
    )  # fmt: skip
