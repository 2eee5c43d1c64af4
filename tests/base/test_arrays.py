"""An .npz from outside: what it declares is held against what it has before memory is taken."""

import io
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from cosim.base.arrays import MEMBERS, MEMORY_FLOOR, check_forms, read_arrays
from cosim.base.errors import InputError

REPAIR = "save it again"


def npy(array):
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asanyarray(array))
    return content.getvalue()


def header(shape, dtype="'<f8'", order=False):
    text = f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"


def write_zip(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return path


def refuses(path, match):
    with pytest.raises(InputError, match=match) as caught:
        read_arrays(path, REPAIR)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        np.array("text"),
        np.float32(3),
        np.zeros((0, 4)),
        np.array([True, False]),
    ],
)
def test_what_numpy_writes_is_read(tmp_path, array):
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", a=array, b=np.arange(3))
        found = read_arrays(tmp_path / "a.npz", REPAIR)
        assert list(found) == ["a", "b"]
        assert found["a"].dtype == np.asarray(array).dtype and found["a"].shape == np.shape(array)
        np.testing.assert_array_equal(found["a"], array)
        assert list(read_arrays(tmp_path / "a.npz", REPAIR, ["b", "c"])) == ["b"]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (header("(3, 400000000)"), r"'a' must take at most 8.389 MB of memory, not 9600 MB"),
        (header("(9,)", "'|u1'") + bytes(9) + b"x", r"'a' must have 9 bytes for its shape \(9,\), not 10"),
        (header("(9,)") + bytes(71), r"'a' must have 72 bytes for its shape \(9,\), not 71"),
        (header("(9223372036854775807, 9223372036854775807)"), "must take at most"),
        (header("(0, 9223372036854775807)"), "save it again"),
        (header("(-1,)"), "must have a shape without negative numbers"),
        (header("(1,) * 99"), "save it again"),
        (header("(" + "1," * 99 + ")") + bytes(8), "save it again"),
        (header("(1,)", "'|O'") + pickle.dumps([1]), r"must hold plain numbers or text, not dtype\('O'\)"),
        (header("(1,)", "[('x', '<f8')]") + bytes(8), "must hold plain numbers or text"),
        (header("(1,)", "('<f8', (2,))") + bytes(16), "must hold plain numbers or text"),
        (header("(99999999,)", "'<U0'"), "must hold plain numbers or text"),
        (header("(1,)", "'<M8[s]'") + bytes(8), "must hold plain numbers or text"),
        (header("-" * 9000 + "1"), "must be an .npz file, but is"),
        (header("(" * 250 + ")" * 250), "must be an .npz file, but is"),
        (b"\x93NUMPY\x03\x00" + b"\0" * 99, r"must be of npy format 1.0 or 2.0, not \(3, 0\)"),
        (b"", "must be an .npz file, but is cut off"),
    ],
)
def test_an_array_that_is_not_what_it_says_is_refused(tmp_path, content, match):
    refuses(write_zip(tmp_path / "a.npz", [("a.npy", content)]), match)


def patched(path, offset, value):
    """The zip with a field of its first central directory entry changed."""
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02") + offset
    content[place : place + len(value)] = value
    path.write_bytes(content)
    return path


def test_an_odd_zip_is_refused(tmp_path):
    good = npy(np.arange(3.0))
    path = tmp_path / "a.npz"
    refuses(write_zip(path, [("a.npy", good), ("b/", b"")]), "'b/' must not be a folder")
    refuses(write_zip(path, [("a.npy", good), ("notes.txt", b"x")]), "'notes.txt' must be an array")
    refuses(write_zip(path, [(f"{i}.npy", good) for i in range(MEMBERS + 1)]), f"at most {MEMBERS} arrays")
    refuses(write_zip(path, [("a.npy", good)], zipfile.ZIP_LZMA), "'a.npy' must be stored or deflated")
    refuses(patched(write_zip(path, [("a.npy", good)]), 8, b"\x01\x00"), "'a.npy' must not be encrypted")
    refuses(patched(write_zip(path, [("a.npy", good)]), 10, b"\x63\x00"), "must be stored or deflated")
    refuses(patched(write_zip(path, [("a.npy", good)]), 24, b"\xfe\xff\xff\xff"), "bytes for its shape")  # its size
    refuses(patched(write_zip(path, [("a.npy", good)]), 6, b"\xff\x00"), "must be an .npz file")  # version needed
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_zip(path, [("a.npy", good), ("a.npy", good)])
    refuses(path, "'a.npy' must be there once")
    path.write_bytes(write_zip(path, [("a.npy", good)]).read_bytes().replace(good[-8:], bytes(8)))
    refuses(path, "Bad CRC-32")


def test_text_under_the_name_of_an_npz_gets_no_advice_to_trust_it(tmp_path):
    path = tmp_path / "a.npz"
    path.write_text("0 1 2\n")
    with pytest.raises(InputError, match="must be an .npz file, but is cut off or something else") as caught:
        read_arrays(path, REPAIR)
    assert "pickle" not in str(caught.value) and "unsafe" not in str(caught.value)


def test_a_small_file_cannot_take_much_memory(tmp_path):
    """3 GB of zeros compress to 3 MB, which may ask for 64 times that: refused before they are unpacked."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        content = header("(24, 16777216)") + bytes(1)
        with archive.open(zipfile.ZipInfo("a.npy"), "w", force_zip64=True) as member:
            member.write(content)
    code = """
import resource, sys
from pathlib import Path
from cosim.base.errors import InputError
from cosim.base.arrays import read_arrays
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_arrays(Path(sys.argv[1]), "repair")
except InputError as error:
    assert "must take at most 8.389 MB of memory, not 3221 MB" in str(error), error
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.npz")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2 * MEMORY_FLOOR


def test_memory_grows_with_the_file_only(tmp_path):
    """Bytes that become doubles take 8 times the memory. Compressed to nothing they are refused, plain they are not."""
    array = np.zeros(9 << 20, dtype=np.uint8)
    np.savez_compressed(tmp_path / "small.npz", a=array, b=array)
    np.savez(tmp_path / "large.npz", a=array, b=array)
    refuses(tmp_path / "small.npz", "must take at most 8.389 MB of memory, not 75.5 MB.*save them uncompressed")
    assert read_arrays(tmp_path / "large.npz", REPAIR)["b"].nbytes == 9 << 20


def test_the_limit_is_one_for_all_arrays(tmp_path):
    array = np.zeros(3 << 18, dtype=np.uint8)
    np.savez_compressed(tmp_path / "a.npz", a=array, b=array)
    refuses(tmp_path / "a.npz", "'b' must take at most 2.097 MB")


def test_forms():
    arrays = {"a": np.zeros((3, 2)), "b": np.zeros(3, int), "c": np.array("x"), "d": np.zeros((3, 4, 5))}
    check_forms(arrays, {"a": "real n 2", "b": "whole n", "c": "text", "d": "real n *"}, "file", REPAIR)
    for forms, said in (
        (
            {"a": "real n 3"},
            r"file: a must hold real numbers of shape \(n, 3\), not dtype\('float64'\) of shape \(3, 2\)",
        ),
        ({"a": "whole n 2"}, r"file: a must hold whole numbers of shape \(n, 2\)"),
        ({"b": "real n", "a": "real k n"}, r"file: a must hold real numbers of shape \(k, 3\)"),
        ({"b": "real n k"}, r"file: b must hold real numbers of shape \(n, k\)"),
        ({"e": "text"}, f"file: e is missing; it is of another cosim, or no such file: {REPAIR}"),
    ):
        with pytest.raises(InputError, match=said):
            check_forms(arrays, forms, "file", REPAIR)
