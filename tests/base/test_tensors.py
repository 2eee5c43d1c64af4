"""A .pt from outside: no code, no memory beyond the file, no legacy form."""

import pickle
import struct
import warnings
import zipfile

import pytest
import torch

from cosim.base.arrays import MEMORY_FLOOR, read_torch, tensor_array
from cosim.base.errors import InputError

REPAIR = "save it again"


class Code:
    """What a pickle does to run something when it is read."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def refuses(path, match):
    with pytest.raises(InputError, match=match) as caught:
        read_torch(path, REPAIR)
    assert str(path) in str(caught.value)


def repacked(source, target, change=lambda name, content: content, method=zipfile.ZIP_STORED):
    """The parts of a .pt in a new zip, each changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


@pytest.fixture
def plain(tmp_path):
    torch.save({"w": torch.arange(6.0).reshape(2, 3), "n": 3}, tmp_path / "plain.pt")
    return tmp_path / "plain.pt"


def test_what_torch_saves_is_read(plain):
    found = read_torch(plain, REPAIR)
    assert found["n"] == 3
    assert tensor_array(found["w"], "w", 1000).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_no_code_runs(tmp_path):
    torch.save({"w": torch.ones(2), "meta": Code(tmp_path / "ran")}, tmp_path / "code.pt")
    refuses(tmp_path / "code.pt", "only tensors and plain values are loaded, but .* asks to run code; save it again")
    (tmp_path / "code.pkl").write_bytes(pickle.dumps(Code(tmp_path / "ran")))
    refuses(tmp_path / "code.pkl", "must be a file of torch.save, which is a zip since torch 1.6")
    torch.save(Code(tmp_path / "ran"), tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    refuses(tmp_path / "legacy.pt", "must be a file of torch.save, which is a zip since torch 1.6")
    assert not (tmp_path / "ran").exists()


def test_a_tensor_that_reaches_beyond_its_file_is_refused(plain, tmp_path):
    """Its storage says that it has 2^30 numbers, of which 24 bytes are there."""

    def lie(name, content):
        if not name.endswith("data.pkl"):
            return content
        many = b"J" + struct.pack("<i", 2**30)
        assert content.count(b"K\x06tq") == 1 and content.count(b"K\x02K\x03\x86") == 1
        return content.replace(b"K\x06tq", many + b"tq").replace(b"K\x02K\x03\x86", many + b"K\x01\x86")

    refuses(repacked(plain, tmp_path / "lie.pt", lie), "must be a file of torch.save, but is cut off or something else")


def test_a_view_that_repeats_its_numbers_is_counted_in_full(tmp_path):
    """8 TB in a file of 1.3 kB."""
    torch.save({"w": torch.ones(1).expand(10**12)}, tmp_path / "wide.pt")
    assert (tmp_path / "wide.pt").stat().st_size < 2000
    found = read_torch(tmp_path / "wide.pt", REPAIR)
    with pytest.raises(InputError, match="w must take at most 8.389 MB of memory, not 8e"):
        tensor_array(found["w"], "w", MEMORY_FLOOR)


def test_a_zip_that_torch_did_not_write_is_refused(plain, tmp_path):
    refuses(repacked(plain, tmp_path / "a.pt", method=zipfile.ZIP_DEFLATED), "must be stored without compression")
    big = repacked(plain, tmp_path / "a.pt", lambda name, c: c + bytes(9 << 20) if name.endswith("data.pkl") else c)
    refuses(big, "data.pkl must have at most 8.39 MB")
    refuses(repacked(plain, tmp_path / "a.pt", lambda name, content: b""), "must be a file of torch.save")
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/constants.pkl", b"")
    refuses(tmp_path / "a.pt", "must be a file of torch.save")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, dtype=torch.bool),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2).to_sparse(),
        torch.ones(2, device="meta"),
        "quantised",
    ],
    ids=str,
)
def test_tensors_without_plain_numbers_are_refused(tensor):
    if isinstance(tensor, str):
        with warnings.catch_warnings(action="ignore"):  # torch means to drop them; old files have them
            tensor = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with pytest.raises(InputError, match="w must be a dense tensor of real numbers on the CPU, not .* save it as one"):
        tensor_array(tensor, "w", 1000)


def test_every_flipped_bit_of_a_tensor_is_seen(plain):
    """torch.load says nothing of a part whose checksum does not fit."""
    content = plain.read_bytes()
    place = content.index(struct.pack("<6f", *range(6)))
    for bit in range(8 * 24):
        changed = bytearray(content)
        changed[place + bit // 8] ^= 1 << bit % 8
        plain.write_bytes(changed)
        refuses(plain, r"data/0' is damaged, its checksum does not fit; save it again")
