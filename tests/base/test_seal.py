"""No bit of a sealed file changes unseen."""

import io
import json
import zipfile

import numpy as np
import pytest

from cosim.base import seal

CONTENT = {"a": [1, 2.5, None], "b": {"c": "größe"}}
ARRAYS = {"states": np.arange(6, dtype=np.int16).reshape(2, 3), "power_w": np.array(1e-7)}


@pytest.fixture(params=["json", "line", "text", "bytes", "npz"])
def kind(request):
    """(sealed bytes, how they are opened)."""
    match request.param:
        case "json":
            return seal.seal_json(CONTENT), seal.unseal_json
        case "line":
            return seal.seal_line(CONTENT, "key"), lambda content: seal.unseal_line(content, "key")
        case "text":
            return seal.seal_text("a,b\n1,2\n"), seal.unseal_text
        case "bytes":
            return seal.seal_bytes(b"code"), seal.unseal_bytes
    return seal.seal_npz(ARRAYS, "key"), lambda content: seal.check_zip(content, "key")


def test_content_comes_back():
    assert json.loads(seal.unseal_json(seal.seal_json(CONTENT))) == CONTENT
    assert json.loads(seal.unseal_line(seal.seal_line(CONTENT, "key"), "key")) == CONTENT
    assert seal.unseal_text(seal.seal_text("a,b\n1,2\n")) == b"a,b\n1,2\n"
    assert seal.unseal_bytes(seal.seal_bytes(b"code")) == b"code"
    content = seal.seal_npz(ARRAYS, "key")
    seal.check_zip(content, "key")
    with np.load(io.BytesIO(content)) as found:
        assert set(found) == set(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


def test_others_read_them_as_well():
    assert json.loads(seal.seal_json(CONTENT)) == CONTENT | {"sha256": seal.seal_json(CONTENT)[-20:-4].decode()}
    assert seal.seal_line(CONTENT, "").count(b"\n") == 1 and json.loads(seal.seal_line(CONTENT, ""))["b"]
    assert zipfile.ZipFile(io.BytesIO(seal.seal_npz(ARRAYS))).testzip() is None


def test_every_bit_counts(kind):
    content, unseal = kind
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="its checksum does not fit"):
            unseal(bytes(changed))


def test_a_part_is_not_the_whole(kind):
    content, unseal = kind
    for cut in range(len(content)):
        with pytest.raises(ValueError, match="its checksum does not fit"):
            unseal(content[:cut])
    with pytest.raises(ValueError, match="its checksum does not fit"):
        unseal(content + b"\n")


def test_another_key_is_another_origin():
    with pytest.raises(ValueError, match="its checksum does not fit"):
        seal.unseal_line(seal.seal_line(CONTENT, "key"), "other")
    with pytest.raises(ValueError, match="its checksum does not fit"):
        seal.check_zip(seal.seal_npz(ARRAYS, "key"), "other")


def test_the_same_content_gives_the_same_bytes():
    assert seal.seal_npz(ARRAYS) == seal.seal_npz(dict(ARRAYS))
