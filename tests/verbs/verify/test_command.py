"""`cosim verify`, and what verbs say of folders and files that they may not trust or write."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from cosim.base.claim import MARKER, own_folder
from cosim.base.seal import seal_json, seal_text, unseal_json

pytestmark = pytest.mark.usefixtures("unrendered_module")
LOADS = {"montecarlo": "load_trial", "trim": "load_trial", "compile": "load_design"}  # how a verb's work begins

COSIM = [sys.executable, "-m", "cosim"]


@pytest.fixture
def chips(tiny):
    """The words of a run of four chips."""
    return ["montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--chips", 4]


@pytest.fixture(scope="module")
def finished(tiny, cosim_in, tmp_path_factory):
    """The folder of that run."""
    folder = tmp_path_factory.mktemp("finished")
    typed = ["montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--chips", 4, "-o", "run"]
    assert cosim_in(folder, *typed).returncode == 0
    return folder / "run"


@pytest.fixture
def samples(tiny):
    return [tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 2]


def flip(path, byte):
    content = bytearray(path.read_bytes())
    content[byte] ^= 1
    path.write_bytes(content)


def test_a_whole_store_and_a_damaged_one(cosim_main, finished, chips, tmp_path):
    """What is damaged is listed, and the same command makes it whole, to the byte."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    code, out, err = cosim_main("verify", run)
    names = ["run.json", "chips.jsonl", "trial.json", "network.npz", "samples.npz", "calibration.json", "summary.json"]
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [[name, "whole"] for name in names]
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}

    lines = (run / "chips.jsonl").read_bytes().splitlines(keepends=True)
    flip(run / "chips.jsonl", len(lines[0]) + 40)
    flip(run / "network.npz", 100)
    flip(run / "summary.json", 30)
    code, out, _ = cosim_main("verify", run)
    assert code == 1
    assert "chips.jsonl       damaged  1 of 4 records, line 2: the same command measures them anew\n" in out
    assert "network.npz       damaged  the same command writes it again\n" in out
    assert "summary.json      damaged  the same command writes it again\n" in out
    assert out.count("whole") == 4
    code, _, err = cosim_main("report", run, "--no-waveforms")
    assert (
        code == 2
        and "chips.jsonl: line 2 is damaged, its checksum does not fit; the same command measures it anew" in err
    )
    code, _, err = cosim_main(*chips, "-o", run)
    assert code == 0 and f"{run / 'chips.jsonl'}: 1 of 4 chips damaged or of an earlier cosim, measured anew" in err
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before

    flip(run / "run.json", 30)
    flip(run / "trial.json", 30)
    code, out, _ = cosim_main("verify", run)
    assert code == 1
    assert "run.json          damaged  the same command writes it again\n" in out
    assert "chips.jsonl       damaged  not to be told without run.json\n" in out
    assert "samples.npz       damaged  not to be told without trial.json\n" in out
    assert cosim_main(*chips, "-o", run)[0] == 0
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


KEPT = ("design.json", "page.json", "simulation.npz", "inferences")


@pytest.mark.ngspice
def test_a_damaged_inference_runs_again(cosim_main, samples, tmp_path):
    arguments = ["simulate", *samples, "-o", tmp_path]
    assert cosim_main(*arguments)[0] == 0
    code, out, _ = cosim_main("verify", tmp_path)
    assert code == 0 and out.split() == [word for name in KEPT for word in (name, "whole")]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.npz")}
    victim = min((tmp_path / "inferences").iterdir())
    flip(victim, 300)
    flip(tmp_path / "simulation.npz", 300)
    code, out, _ = cosim_main("verify", tmp_path)
    assert code == 1
    assert out.splitlines()[-2:] == [
        "simulation.npz  damaged  the same command writes it again",
        f"inferences      damaged  1 of 2, {victim.name}: the same command measures them anew",
    ]
    code, _, err = cosim_main(*arguments)
    assert code == 0
    assert f"{tmp_path / 'inferences'}: 1 of 2 results damaged or of an earlier cosim, measured anew" in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.npz")} == before


def test_results_of_power(cosim_main, samples, tmp_path):
    assert cosim_main("power", *samples, "--behavioral", "-o", tmp_path)[0] == 0
    code, out, _ = cosim_main("verify", tmp_path)
    names = ("power.json", "design.json", "page.json", "power.npz")
    assert code == 0 and out.split() == [word for name in names for word in (name, "whole")]
    flip(tmp_path / "power.json", 50)
    flip(tmp_path / "power.npz", 50)
    code, out, _ = cosim_main("verify", tmp_path)
    assert code == 1 and out.count("damaged  the same command writes it again\n") == 2


def test_a_folder_without_kept_files(cosim_main, tmp_path):
    code, _, err = cosim_main("verify", tmp_path)
    assert code == 2 and "holds nothing with a checksum; give a folder that a verb has written" in err


def test_verify_needs_neither_torch_nor_ngspice(finished):
    code = (
        "import sys\nclass Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'PySpice'):\n            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\nfrom cosim.cli import main\nmain()\n"
    )
    environment = {**os.environ, "NGSPICE_LIBRARY_PATH": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", code, "verify", finished], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", ["simulate", "compare", "power", "montecarlo", "trim", "compile"])
def test_a_folder_of_another_verb_is_refused_before_the_work(cosim_main, tiny, tmp_path, verb, monkeypatch):
    monkeypatch.setattr(f"cosim.verbs.{verb}.command.{LOADS.get(verb, 'load_run')}", None)
    (tmp_path / MARKER).write_text("demo\n")
    code, _, err = cosim_main(verb, tiny / "net.npz", "-o", tmp_path)
    assert code == 2 and f"cosim: {tmp_path}: belongs to cosim demo; choose another folder with -o" in err
    assert [path.name for path in tmp_path.iterdir()] == [".cosim"]


@pytest.mark.parametrize("verb", ["simulate", "compare", "power"])
def test_a_second_run_into_one_folder_is_refused(cosim_main, samples, tmp_path, verb):
    with own_folder(tmp_path, verb):
        code, _, err = cosim_main(verb, *samples, "-o", tmp_path)
    assert code == 2 and f"{tmp_path}: another process writes there; wait for it, or choose another folder" in err


@pytest.mark.parametrize("verb", ["compare", "power", "montecarlo", "trim"])
def test_json_that_cannot_be_written_is_said_before_the_work(cosim_main, tiny, tmp_path, verb, monkeypatch):
    monkeypatch.setattr(f"cosim.verbs.{verb}.command.{LOADS.get(verb, 'load_run')}", None)
    code, _, err = cosim_main(verb, tiny / "net.npz", "-o", tmp_path / "out", "--json", tmp_path / "no" / "x.json")
    assert code == 2 and f"x.json: the folder {tmp_path / 'no'} must exist; create it, or choose another place" in err
    assert not list(tmp_path.iterdir())


def test_json_replaces_figures_alone(cosim_main, samples, tmp_path):
    """A network that is named by mistake stays; an empty file and earlier figures are written again."""
    network, figures = tmp_path / "net.npz", tmp_path / "figures.json"
    network.write_bytes(b"PK mine")
    figures.touch()
    arguments = ["power", *samples, "--behavioral", "-o", tmp_path / "out"]
    code, _, err = cosim_main(*arguments, "--json", network)
    wanted = "cosim has not written it and would replace it; move it away, or choose another place with --json"
    assert code == 2 and f"{network}: {wanted}" in err and not (tmp_path / "out").exists()
    assert network.read_bytes() == b"PK mine"
    for _ in range(2):
        assert cosim_main(*arguments, "--json", figures)[0] == 0
        assert json.loads(figures.read_text())["samples"] == 2
    code, _, err = cosim_main("sensitivity", *samples[:1], "--json", network)
    assert code == 2 and f"{network}: {wanted}" in err
    code, _, err = cosim_main("diff", tmp_path / "out", tmp_path / "out", "--json", network)
    assert code == 2 and f"{network}: {wanted}" in err


def test_json_into_the_folder_that_the_verb_makes(cosim_main, samples, tmp_path):
    out = tmp_path / "new"
    assert cosim_main("power", *samples, "--behavioral", "-o", out, "--json", out / "figures.json")[0] == 0
    assert json.loads((out / "figures.json").read_text())["samples"] == 2


def test_json_into_what_is_no_file(cosim_main, samples, tmp_path):
    """A FIFO is written into; a device stays one, and says that it is full."""
    arguments = ["power", *samples, "--behavioral", "-o", tmp_path / "out"]
    os.mkfifo(tmp_path / "fifo")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_text()))
    reader.start()
    assert cosim_main(*arguments, "--json", tmp_path / "fifo")[0] == 0
    reader.join()
    assert json.loads(found[0])["samples"] == 2
    if os.path.exists("/dev/full"):
        code, _, err = cosim_main(*arguments, "--json", "/dev/full")
        assert code == 2 and "cannot write /dev/full: No space left on device" in err
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_json_on_stdout(samples, tmp_path):
    """Into a pipe, and into a file behind what the verb prints."""
    options = ["--behavioral", "-o", str(tmp_path / "out"), "--json", "/dev/stdout"]
    command = [*COSIM, "power", *map(str, samples), *options]
    piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with (tmp_path / "file").open("w") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=True)
    assert (tmp_path / "file").read_text() == piped
    begin, end = piped.index("{\n"), piped.rindex("}\n") + 2
    assert json.loads(piped[begin:end])["samples"] == 2
    assert piped[:begin].strip() and "report:" in piped[end:]


def test_calibrate_says_where_it_cannot_write_before_it_measures(cosim_main, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.verbs.calibrate.measure.calibrate", lambda *_: pytest.fail("the work has begun"))
    code, _, err = cosim_main("calibrate", "-o", tmp_path / "no" / "x.json")
    assert code == 2 and f"x.json: the folder {tmp_path / 'no'} must exist; create it, or choose another place" in err
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    code, _, err = cosim_main("calibrate")
    assert code == 2 and "cosim: cannot write " in err and "calibration.json: Not a directory; choose another" in err


def test_a_store_of_before_checksums_is_refused(cosim_main, finished, chips, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    for name in ("run.json", "chips.jsonl"):
        text = (tmp_path / name).read_text()
        records = [json.loads(line) for line in text.splitlines()] if name == "chips.jsonl" else [json.loads(text)]
        for record in records:
            del record["sha256"]
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / ".cosim").unlink()
    code, _, err = cosim_main(*chips, "-o", tmp_path)
    assert code == 2 and "run.json is missing, damaged or of a cosim without checksums, and no line" in err
    code, _, err = cosim_main("report", tmp_path, "--no-waveforms")
    assert code == 2 and "run.json: damaged, or of a cosim without checksums" in err


def test_arrays_of_simulation_are_as_before(tmp_path):
    """The checksum stands where readers of .npz do not look."""
    from cosim.base.seal import seal_npz

    (tmp_path / "x.npz").write_bytes(seal_npz({"a": np.arange(3)}))
    with np.load(tmp_path / "x.npz") as arrays:
        assert arrays.files == ["a"]


def test_a_trial_without_sums_is_damaged(cosim_main, finished, tmp_path):
    """Under a checksum that fits."""
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    plain = json.loads(unseal_json((run / "trial.json").read_bytes()))
    del plain["sums"]
    (run / "trial.json").write_bytes(seal_json(plain))
    code, out, err = cosim_main("verify", run)
    assert (code, err) == (1, "") and "trial.json        damaged  the same command writes it again\n" in out


def test_a_name_with_a_line_break_makes_one_line(cosim_main, tmp_path):
    code, _, err = cosim_main("verify", tmp_path / "a\nb\x1b[2J")
    assert code == 2 and err.count("\n") == 1 and "a\\nb\\x1b[2J" in err
    code, _, err = cosim_main("verify\nagain")
    assert code == 2 and err.count("\n") == 1


def test_tables_of_a_drawing_and_a_compiled_design(cosim_main, tiny, tmp_path):
    design = tmp_path / "design"
    assert cosim_main("compile", tiny / "net.npz", "-o", design)[0] == 0
    (design / "wires.csv").write_bytes(seal_text("# a on b\nnet,other,kind,farad\nvdd,vss,over,1e-15\n"))
    code, out, _ = cosim_main("verify", design)
    names = ["design.json", "page.json", "wires.csv"]
    assert code == 0 and [line.split() for line in out.splitlines()] == [[name, "whole"] for name in names]
    flip(design / "wires.csv", 40)
    flip(design / "design.json", 20)
    code, out, _ = cosim_main("verify", design)
    assert code == 1 and out.count("damaged  the same command writes it again\n") == 2
