"""libngspice is found, or the message says what is wrong and what to install."""

from pathlib import Path

import pytest

from cosim.base.errors import MissingToolError
from cosim.engines.ngspice import library
from cosim.engines.ngspice.library import find_ngspice_library, is_new_enough, ngspice_version


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("NGSPICE_LIBRARY_PATH", raising=False)
    ngspice_version.cache_clear()


@pytest.fixture
def nowhere(monkeypatch):
    """A machine with no libngspice in any folder nor in the linker's cache."""
    monkeypatch.setattr(library, "_library_folders", list)
    monkeypatch.setattr(library, "_ldconfig_paths", lambda: iter(()))


def test_variable_wins(tmp_path, monkeypatch):
    chosen = tmp_path / "mine.so"
    chosen.touch()
    monkeypatch.setenv("NGSPICE_LIBRARY_PATH", str(chosen))
    assert find_ngspice_library() == chosen


@pytest.mark.parametrize("wrong", ["absent.so", "."])
def test_wrong_variable_is_named(tmp_path, monkeypatch, wrong):
    monkeypatch.setenv("NGSPICE_LIBRARY_PATH", str(tmp_path / wrong))
    with pytest.raises(MissingToolError, match=r"NGSPICE_LIBRARY_PATH must name .*, not .*unset it") as error:
        find_ngspice_library()
    assert str(tmp_path / wrong) in str(error.value)


def test_missing_says_what_to_install(nowhere):
    with pytest.raises(MissingToolError, match="libngspice is missing") as error:
        find_ngspice_library()
    for hint in ("apt-get install libngspice0", "dnf install libngspice", "brew install", "NGSPICE_LIBRARY_PATH"):
        assert hint in str(error.value)
    assert error.value.exit_code == 1


@pytest.mark.parametrize("name", ["libngspice.so.0", "libngspice.so", "libngspice.0.dylib"])
def test_library_folder_of_the_environment(tmp_path, monkeypatch, nowhere, name):
    monkeypatch.setattr(library, "_library_folders", lambda: [tmp_path])
    (tmp_path / name).touch()
    assert find_ngspice_library() == tmp_path / name


def test_linker_cache_when_no_folder_has_it(tmp_path, monkeypatch, nowhere):
    (tmp_path / "libngspice.so.0").touch()
    monkeypatch.setattr(library, "_ldconfig_paths", lambda: iter([tmp_path / "libngspice.so.0"]))
    assert find_ngspice_library() == tmp_path / "libngspice.so.0"


def test_conda_environment_is_searched_before_the_system(monkeypatch):
    monkeypatch.setenv("CONDA_PREFIX", "/conda/env")
    folders = library._library_folders()
    assert folders.index(Path("/conda/env/lib")) < folders.index(Path("/usr/lib"))


def test_a_file_that_is_no_library(tmp_path):
    fake = tmp_path / "libngspice.so"
    fake.write_text("not a library")
    with pytest.raises(MissingToolError, match=r"not a usable libngspice \(cannot load: .*apt-get install"):
        ngspice_version(fake)


def test_a_library_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_PROBE", "import time; time.sleep(30)")
    with pytest.raises(MissingToolError, match=r"gave no answer within 0\.2 s"):
        ngspice_version(tmp_path / "libngspice.so", timeout=0.2)


def test_a_library_that_crashes_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "_PROBE", "import os; os.abort()")
    with pytest.raises(MissingToolError, match=r"is not a usable libngspice \(exit status -6"):
        ngspice_version(tmp_path / "libngspice.so")


@pytest.mark.parametrize(
    ("version", "enough"),
    [("35", False), ("36", True), ("39.3", True), ("44+", True), ("100", True), ("rework", False)],
)
def test_minimum_version(version, enough):
    assert is_new_enough(version) is enough


@pytest.mark.ngspice
def test_installed_library_reports_its_version():
    assert is_new_enough(ngspice_version(find_ngspice_library()))
