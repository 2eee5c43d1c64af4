"""Parts of a run: the same bytes as the whole, and nothing but the parts of one run."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.base.errors import InputError
from cosim.cli.types import read_share
from cosim.verbs.montecarlo.keep import merge_stores
from cosim.verbs.montecarlo.run import shard_of

pytestmark = pytest.mark.usefixtures("unrendered_module")
DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "cluster.md"
NETWORK = Path(__file__).parents[3] / "models" / "trained" / "digits_d4.pt"
ASKED = ("--chips", "5", "--samples", "8")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, cosim_in):
    """part.1 to part.3, and whole."""
    folder = tmp_path_factory.mktemp("shards")
    for part in (1, 2, 3):
        shard = ("--shard", f"{part}/3", "-j", "1", "-o", f"part.{part}")
        assert cosim_in(folder, "montecarlo", NETWORK, *ASKED, *shard).returncode == 0
    assert cosim_in(folder, "montecarlo", NETWORK, *ASKED, "-j", "2", "-o", "whole").returncode == 0
    return folder


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_chip_is_in_one_part():
    for chips, parts in ((5, 3), (8, 8), (3, 7), (10, 1)):
        numbers = [number for part in range(1, parts + 1) for number in shard_of(chips, part, parts)]
        assert sorted(numbers) == list(range(chips))


def test_joined_parts_have_the_bytes_of_the_whole(runs, cosim_in):
    done = cosim_in(runs, "merge", "part.2", "part.3", "part.1", "-o", "joined")
    assert done.returncode == 0
    assert "5 of 5 chips work" in done.stdout and "none failed" in " ".join(done.stdout.split())
    assert content(runs / "joined") == content(runs / "whole")


def test_a_part_that_is_missing_is_named(runs, tmp_path):
    with pytest.raises(InputError, match="2 of 5 chips are in none of the folders: 1, 4"):
        merge_stores([runs / "part.1", runs / "part.3"], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()


def test_parts_of_another_run_are_refused(runs, cosim_in):
    other = ("--samples", "7", "--chips", "5", "--shard", "2/3", "-o", "other")
    assert cosim_in(runs, "montecarlo", NETWORK, *other).returncode == 0
    with pytest.raises(InputError, match="another samples: 7, not 8"):
        merge_stores([runs / "part.1", runs / "other", runs / "part.3"], runs / "never")


def test_a_folder_that_is_no_part_is_refused(runs, cosim_in, tmp_path):
    done = cosim_in(runs, "merge", "part.1", tmp_path, "-o", "never")
    assert done.returncode == 2
    assert "no Monte Carlo run there" in done.stderr
    done = cosim_in(runs, "merge", "part.1", "nowhere", "-o", "never")
    assert done.returncode == 2
    assert "nowhere: no such folder; give the folders that `cosim montecarlo --shard` wrote" in done.stderr


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "3", "a/b", "-1/3", "1/3/5", ""])
def test_a_part_that_there_is_not(text):
    with pytest.raises(ValueError, match="i/n with i from 1 to n"):
        read_share(text)
    assert read_share("3/8") == (3, 8)


@pytest.mark.parametrize("option", [("--contributions",), ("--stop-width", "0.2"), ("--json", "f.json")])
def test_what_needs_all_chips_is_refused(option, cosim_in, tmp_path):
    done = cosim_in(tmp_path, "montecarlo", NETWORK, "--shard", "1/2", *option)
    assert done.returncode == 2
    assert option[0] in done.stderr and "cosim merge" in done.stderr
    assert not list(tmp_path.iterdir())


def scripts(beginning):
    """The indented blocks of the page that begin so."""
    blocks = DOCS.read_text(encoding="utf-8").split("\n\n")
    found = ["\n".join(line[4:] for line in block.split("\n")) for block in blocks if block.startswith("    ")]
    return [block for block in found if block.startswith(beginning)]


@pytest.mark.parametrize(
    ("script", "variables"),
    [
        (0, {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}),
        (1, {"LSB_JOBINDEX": "2", "LSB_JOBINDEX_END": "3"}),
    ],
)
def test_the_array_jobs_of_the_page_run(runs, cosim_in, tmp_path, script, variables):
    """The shell makes the command line, which runs here."""
    text = scripts("#!/bin/sh")[script].replace("NETWORK --chips 10000", f"{NETWORK} {' '.join(ASKED)}")
    stand_in = tmp_path / "bin" / "cosim"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    stand_in.chmod(0o755)
    environment = {**os.environ, **variables, "PATH": f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-e"], input=text, text=True, capture_output=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert cosim_in(tmp_path, *done.stdout.splitlines()).returncode == 0
    assert (tmp_path / "runs" / "part.2" / "chips.jsonl").read_bytes() == (runs / "part.2" / "chips.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("system", "lines"),
    [
        ("SLURM", ("#SBATCH -p normal", "#SBATCH --cpus-per-task=1", "#SBATCH --mem=2G", "#SBATCH -t 02:00:00")),
        ("LSF", ("#BSUB -q normal", "#BSUB -n 1", "#BSUB -W 02:00")),
    ],
)
def test_the_dask_jobs_of_the_page_are_written(system, lines, tmp_path):
    """Without a cluster: what would be submitted. In a process of its own: dask_jobqueue takes over SIGINT when it is
    imported, and its cluster starts a scheduler."""
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("dask_jobqueue is not installed")
    (text,) = scripts(f"from dask_jobqueue import {system}Cluster")
    text = text.replace("cluster.scale(jobs=100)\n", "") + "\nimport json\nprint(json.dumps(cluster.job_script()))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    address, job = done.stdout.strip().split("\n")[-2:]
    written = json.loads(job)
    assert all(line in written for line in lines), written
    assert "--nthreads 1" in written and address in written
