"""A folder has one verb, and one process at a time."""

import shutil
import subprocess
import sys

import pytest

from cosim.base.claim import MARKER, check_owner, own_file, own_folder, owner_of, work_folder
from cosim.base.errors import InputError

HOLD = """
import sys, pathlib
from cosim.base.claim import own_file, own_folder
with {what}:
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(what):
    """A process that holds until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", HOLD.format(what=what)], stdin=-1, stdout=-1, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_folder_is_made_marked_and_taken_again(tmp_path):
    for _ in range(2):
        with own_folder(tmp_path / "a" / "b", "compare"):
            assert (tmp_path / "a" / "b" / MARKER).read_text() == "compare\n"
            (tmp_path / "a" / "b" / "result").touch()
    assert owner_of(tmp_path / "a" / "b") == "compare"


def test_of_a_run_without_results_nothing_stays(tmp_path):
    """Neither a mark nor a folder that was made for it; one that was there stays, and one that holds more does."""
    (tmp_path / "there").mkdir()
    with own_folder(tmp_path / "there", "compare"), own_folder(tmp_path / "a" / "b", "compare"):
        (tmp_path / "a" / "note").touch()
    with own_folder(tmp_path / "c" / "d", "compare"):
        pass
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "a",
        "a/note",
        "there",
    ]


def test_another_verb_is_refused(tmp_path):
    with own_folder(tmp_path / "x", "compare"):
        (tmp_path / "x" / "result").touch()
    with pytest.raises(InputError, match="x: belongs to cosim compare; choose another folder with -o"):
        check_owner(tmp_path / "x", "montecarlo")
    with pytest.raises(InputError, match="belongs to cosim compare"), own_folder(tmp_path / "x", "montecarlo"):
        pass


@pytest.mark.parametrize(
    ("names", "verb"),
    [
        (["chips.jsonl", "run.json"], "montecarlo"),
        (["comparison.json", "simulation.npz", "inferences"], "compare"),
        (["simulation.npz", "inferences"], "simulate"),
        (["model.pt", "netlist", "comparison.json"], "demo"),
        (["mapping.csv", "design.json"], "compile"),
        (["notes.txt", "model.pt"], None),
        ([], None),
    ],
)
def test_folders_without_a_marker_are_known_by_what_they_hold(tmp_path, names, verb):
    for name in names:
        (tmp_path / name).touch()
    assert owner_of(tmp_path) == verb
    check_owner(tmp_path, verb or "power")


def test_a_marker_that_a_crash_emptied_is_none(tmp_path):
    (tmp_path / MARKER).touch()
    with own_folder(tmp_path, "power"):
        assert owner_of(tmp_path) == "power"


def test_two_processes_on_one_folder(tmp_path):
    """The second is refused; when the first dies, its lock dies with it."""
    with holder(f"own_folder(pathlib.Path({str(tmp_path)!r}), 'simulate')") as process:
        with (
            pytest.raises(InputError, match="another process writes there; wait for it, or choose another folder"),
            own_folder(tmp_path, "simulate"),
        ):
            pass
        process.kill()
    with own_folder(tmp_path, "simulate"):
        pass


def test_two_processes_on_one_file(tmp_path):
    """model.npz and model.pt share the state of their training, and so the lock."""
    with holder(f"own_file(pathlib.Path({str(tmp_path / 'model.pt')!r}))") as process:
        for name in ("model.pt", "model.npz"):
            with (
                pytest.raises(InputError, match=rf"{name}: another process writes it; wait for it, or choose another"),
                own_file(tmp_path / name),
            ):
                pass
        process.kill()
    with own_file(tmp_path / "model.pt"):
        assert [path.name for path in tmp_path.iterdir()] == [".model.cosim"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_beside_a_file_stays_until_it_is_whole(tmp_path):
    path = tmp_path / "model.pt"
    with own_file(path):
        (work_folder(path) / "state.pt").write_text("kept")
    with own_file(path):
        assert (work_folder(path) / "state.pt").read_text() == "kept"
        (work_folder(path) / "state.pt").unlink()
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_user_beside_a_file_is_touched(tmp_path):
    """Names that earlier versions locked and removed, and a hidden folder of our name without our mark."""
    for name in ("model.lock", "model.state.pt", "model.seed0.pt"):
        (tmp_path / name).write_text("mine")
    with own_file(tmp_path / "model.pt"):
        pass
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}
    refusal = r"\.model\.cosim.*: must (be free for the training of model.pt|hold the name)"
    for name, content in ((".cosim", "theirs\nand more\n"), ("notes", "mine")):
        (tmp_path / ".model.cosim").mkdir()
        (tmp_path / ".model.cosim" / name).write_text(content)
        with (
            pytest.raises(InputError, match=refusal),
            own_file(tmp_path / "model.pt"),
        ):
            pass
        assert (tmp_path / ".model.cosim" / name).read_text() == content
        shutil.rmtree(tmp_path / ".model.cosim")


def test_a_folder_with_files_of_a_user_that_a_verb_would_replace_is_refused(tmp_path):
    (tmp_path / "log.txt").write_text("what the shell writes")
    (tmp_path / "signoff.json").write_text("of another verb")
    check_owner(tmp_path, "compare")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match="report.html: no verb of cosim wrote it, and cosim compare may replace it"):
        check_owner(tmp_path, "compare")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.txt", "report.html", "signoff.json"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"my notes", b"compare", b"compare\nx\n", b"x" * 10**6])
def test_a_marker_that_is_none_of_ours_is_refused_and_stays(tmp_path, content):
    (tmp_path / MARKER).write_bytes(content)
    for ask in (owner_of, lambda folder: own_folder(folder, "compare").__enter__()):
        with pytest.raises(InputError, match=r"\.cosim: must hold the name of the verb that made the folder; choose"):
            ask(tmp_path)
    assert (tmp_path / MARKER).read_bytes() == content


def test_a_marker_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / MARKER).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="cannot write into .*run: Too many levels of symbolic links; choose another"):
        own_folder(tmp_path / "run", "compare").__enter__()
    assert (tmp_path / "mine").read_text() == ""


def test_nothing_is_made_by_asking(tmp_path):
    check_owner(tmp_path / "a" / "b", "compare")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_owned(ordinary):
    (ordinary / "file").touch()
    (ordinary / "closed").mkdir(mode=0o500)
    for name, text in {
        "file": "cannot write into .*/file: Not a directory; choose another folder with -o",
        "file/x": "cannot write into .*/file/x: Not a directory",
        "closed": "cannot write into .*/closed: Permission denied",
        "closed/x/y": "cannot write into .*/closed/x/y: Permission denied",
        "nul\0": "nul.*' cannot be the name of a folder: embedded null",
    }.items():
        with pytest.raises(InputError, match=text):
            check_owner(ordinary / name, "compare")
    with pytest.raises(InputError, match="cannot write .*/closed/model.pt: Permission denied"):
        own_file(ordinary / "closed" / "model.pt").__enter__()
