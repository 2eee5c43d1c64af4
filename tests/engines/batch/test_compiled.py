"""What is compiled is kept with checksums: a damaged file of it is compiled anew, and not run."""

import numpy as np
import pytest

pytest.importorskip("numba")
from cosim.base.errors import InputError
from cosim.engines.batch import compiled


def half(values):
    """A kernel, small and quick to compile."""
    total = 0.0
    for value in values:
        total += 0.5 * value
    return total


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled._kernel_folder.cache_clear()
    yield tmp_path / "cosim" / "kernels"
    compiled._kernel_folder.cache_clear()


def test_a_damaged_kernel_is_compiled_anew(folder):
    """Any bit of the index, or of the machine code: what does not fit its checksum counts as not there."""
    assert compiled.cached_jit(half)(np.arange(5.0)) == 5.0
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    assert all(compiled._is_whole(str(path)) for path in files)
    again = compiled.cached_jit(half)
    assert again(np.arange(5.0)) == 5.0 and sum(again.stats.cache_hits.values()) == 1
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert not compiled._is_whole(str(path))
        again = compiled.cached_jit(half)
        assert again(np.arange(5.0)) == 5.0 and not again.stats.cache_hits
        assert compiled._is_whole(str(path))


def test_without_a_place_it_serves_once(monkeypatch):
    def nowhere():
        raise InputError("there is no folder to keep it in")

    monkeypatch.setattr(compiled, "_kernel_folder", nowhere)
    assert compiled.cached_jit(half)(np.arange(3.0)) == 1.5
