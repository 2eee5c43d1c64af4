"""The cache's folder: where it stands, and that a user without a home does without it."""

import pwd

import pytest

from cosim.base.errors import InputError
from cosim.base.store import cache_folder, cached_files, keep_in_cache, make_cached_path
from cosim.exchange.checkpoint import save_checkpoint


@pytest.fixture
def homeless(monkeypatch):
    """A user number without a passwd entry and with an empty environment, as in `docker run -u 12345`."""

    def nobody(_):
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)


def test_where_it_stands(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / "home" / ".cache" / "cosim"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own" / "cosim"


def test_without_a_home_nothing_is_kept_and_that_is_said(homeless):
    text = "HOME is not set and this user has no home; choose one, by setting XDG_CACHE_HOME"
    with pytest.raises(InputError, match=text):
        make_cached_path("name")
    assert cached_files("name") == ()
    said = []
    keep_in_cache("name", b"content", "calibration", said.append)
    assert said == [f"calibration not kept: there is no folder to keep it in: {text}"]


def test_verbs_that_need_no_cache_work_without_a_home(homeless, cosim_main, make_network, tmp_path):
    """What comes with the package is found before a cache is asked for."""
    save_checkpoint(tmp_path / "net.npz", make_network(3, hidden=2))
    assert cosim_main("compile", tmp_path / "net.npz", "-o", tmp_path / "design")[0] == 0
    code, _, err = cosim_main("calibrate")
    assert code == 2 and err.startswith("cosim: there is no folder to keep it in: HOME is not set")


def test_a_file_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "cosim" / "name").mkdir(parents=True)
    said = []
    keep_in_cache("name", b"content", "noise figures", said.append)
    (line,) = said
    assert line.startswith("noise figures not kept: cannot write ") and line.endswith(", by setting XDG_CACHE_HOME")
