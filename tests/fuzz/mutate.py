"""Mutations of files: of any bytes, and of what a zip, an array, JSON, a pickle of torch or a text is made of.

Each takes a generator and a valid content and returns another content; the same generator gives the same.
"""

import io
import json
import pickle
import random
import re
import struct
import warnings
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ODD = (
    None, True, False, 0, 1, -1, 2, 7, 65, 2**31, 2**63, 2**63 - 1, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, -1.5,
    1e-320, 1e-30, 1e-9, 1e9, 1e30, 1e300, -1e300, float("nan"), float("inf"), -float("inf"), "", "a", "input", "tt",
    "relu", "signed", "a\0b", "\ud800", "\x1b[2J", "/dev/full", "é" * 9, "x" * 100_000, [], {}, [[]], [1.0], {"a": 1},
    [0] * 5000,
)  # fmt: skip
DTYPES = ("f2", "f4", "f8", ">f8", "i1", "i8", "u8", "?", "c16", "U3", "S3", "M8[s]", "g", "O", "V8")
TOKENS = (
    "0", "-1", "1e308", "1e-320", "nan", "inf", "1" * 3000, "1" * 6000, "0x" + "f" * 300, "(" * 150, ")" * 150,
    "-" * 3000, "a" * 3000, ".", "=", "{", "'", '"', "[", "]" * 60, "[" * 3000, "\0", "\ud800", "é",
    "\n", "\n+", ".lib tt\n",
    ".endl\n", ".subckt n a b\n", ".ends\n", ".model n nmos level=14\n", ".include tiny.lib\n", ".include /dev/full\n",
    ".include /dev/zero\n", ".include 'a\0b'\n", ".include .\n", ".if x\n", "1/0", "10^(10^10)", "(-8)^0.5", "max()",
    "0^-1", "a = a", "x.y.z = 1\n", "a" + ".a" * 400 + " = 1\n", "__import__('os')", "9" * 30,
)  # fmt: skip


class Code:
    """Makes a file where its pickle is trusted: the canary."""

    target = ""

    def __reduce__(self) -> tuple:
        return Path.touch, (Path(self.target),)


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def mutate_bytes(rng: random.Random, content: bytes) -> bytes:
    """A few bits, bytes or stretches changed, cut, doubled or put in."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        if not data:
            return bytes(data)
        place, length = rng.randrange(len(data)), min(rng.choice((1, 2, 4, 8, 100, 4000)), len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place : place + length] = rng.choice((b"\x00", b"\xff", b"\x7f")) * length
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = rng.randbytes(length)
        elif kind == 4:
            data[place:place] = data[place : place + length]
        else:
            del data[place:]
    return bytes(data)


def mutate_value(rng: random.Random, value: Any) -> Any:
    """One node of lists and tables replaced, left out, doubled, renamed or moved."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        kind = rng.randrange(8)
        if kind == 0:
            return {k: v for k, v in value.items() if k != key}
        if kind == 1:
            return {(f"{k}x" if k == key else k): v for k, v in value.items()}
        if kind == 2:
            return {**value, rng.choice(("", "a", "é", "\x1b", "format", key + "\0")): rng.choice(ODD)}
        if kind == 3:  # which JSON does not tell apart
            return dict(rng.sample(list(value.items()), len(value)))
        return {**value, key: mutate_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        kind = rng.randrange(6)
        if kind == 0:
            return value[:place] + value[place + 1 :]
        if kind == 1:
            return value[: place + 1] + value[place:]
        if kind == 2:
            return value[::-1]
        return [*value[:place], mutate_value(rng, value[place]), *value[place + 1 :]]
    if isinstance(value, float) and rng.random() < 0.4:
        return value * rng.choice((-1, 0.5, 2, 10, 1e-6, 1e6))
    return nested(rng.choice((3, 45, 400))) if rng.random() < 0.03 else rng.choice(ODD)


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    """A JSON text with another content, or broken."""
    kind = rng.randrange(10)
    if kind == 0:
        return mutate_bytes(rng, content)
    if kind == 1:
        return rng.choice(
            (b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000, b"", b"null", b"\xff\xfe", b"NaN", b"[1,,]")
        )
    if kind == 2:
        return json.dumps(json.loads(content), indent=3, sort_keys=True).encode()  # spelt otherwise
    return json.dumps(mutate_value(rng, json.loads(content))).encode("utf-8", "surrogatepass")


def mutate_text(rng: random.Random, content: bytes) -> bytes:
    """Tokens and lines of a text changed, left out, doubled or put in."""
    if rng.random() < 0.15:
        return mutate_bytes(rng, content)
    lines = content.decode().split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        kind = rng.randrange(7)
        words = lines[place].split(" ")
        if kind == 0:
            del lines[place]
            lines = lines or [""]
        elif kind == 1:
            lines[place:place] = [lines[place]] * rng.choice((1, 50))
        elif kind == 2:
            lines[place:place] = [rng.choice(TOKENS)]
        elif kind == 3:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        elif kind == 4:
            cut = rng.randrange(len(lines[place]) + 1)
            lines[place] = lines[place][:cut] + rng.choice(TOKENS) + lines[place][cut:]
        elif kind == 5:
            lines[place] = re.sub("[1-9]", str(rng.randrange(1, 10)), lines[place], count=1)
        else:
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
            lines[place] = " ".join(words)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutate_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Another type, shape, order or value."""
    kind = rng.randrange(9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0:
            dtype = rng.choice(DTYPES)
            if dtype == "O":
                return np.array([Code()] * max(array.size, 1), dtype=object).reshape(array.shape or (1,))
            return (
                array.astype(dtype)
                if array.dtype.kind != "U" and dtype not in ("M8[s]", "V8")
                else np.zeros(array.shape, dtype)
            )
        if kind == 1:
            return np.zeros(array.shape, [("a", "f8"), ("b", "i4")])
        if kind == 2 and array.ndim:
            return array[tuple(slice(rng.randrange(length + 1)) for length in array.shape)]
        if kind == 3:
            return array.reshape(-1)[:1].reshape(()) if array.size else array
        if kind == 4:
            return np.asfortranarray(array.T if rng.random() < 0.5 else array)
        if kind == 5:
            return np.repeat(array[None], rng.choice((0, 1, 2, 3)), axis=0)
        if kind == 6:
            return np.zeros(rng.choice(((0, 3), (2, 0), (7,), (2, 3, 4, 5), (1,) * 20)), array.dtype)
        values = array.copy()
        odd = [value for value in ODD if isinstance(value, float | int) and abs(value or 0) < 10**300]
        if values.size and values.dtype.kind in "fiu":
            for _ in range(rng.choice((1, 3, values.size))):
                place = rng.randrange(values.size)
                try:
                    values.reshape(-1)[place] = rng.choice(odd)
                except OverflowError:
                    values.reshape(-1)[place] = 99
        return values


def npy_bytes(array: np.ndarray) -> bytes:
    """As numpy.save writes it, objects included."""
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=True)
    return content.getvalue()


def mutate_npy(rng: random.Random, content: bytes, as_json: bool) -> bytes:
    """One array, its header or its text."""
    array = np.lib.format.read_array(io.BytesIO(content))
    kind = rng.randrange(7)
    if kind == 6 and not as_json:  # zeros that are packed to nothing, about as many as a file may ask for, or more
        rows, dtype = rng.choice((500_000, 1_000_000, 5_000_000)), rng.choice(("u1", "f4", "f8"))
        return npy_bytes(np.zeros((rows // max(prod(array.shape[1:]), 1), *array.shape[1:]), dtype))
    if kind == 0:
        return mutate_bytes(rng, content)
    if kind == 1:
        shape = rng.choice(("(9,)", "(2**40,)", "()", "(-1, 3)", "(0, 2**62)", "3", "((1,),)", "(1e3,)", "None"))
        dtype = rng.choice(
            ("'<f8'", "'|u1'", "'<U0'", "'<U99999999'", "'|O'", "[('a','<f8')]", "'x'", "3", "'<f8', (3,)")
        )
        text = f"{{'descr': {dtype}, 'fortran_order': {rng.choice((True, False, 3))}, 'shape': {shape}, }}".encode()
        text = text.replace(b"2**40", b"%d" % 2**40).replace(b"2**62", b"%d" % 2**62)
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n" + content[-64:]
    if as_json:
        text = mutate_json(rng, str(array).encode()).decode("utf-8", "surrogateescape")
        return npy_bytes(np.array(text.rstrip("\0")))
    return npy_bytes(mutate_array(rng, array))


def write_zip(members: list[tuple[str, bytes]], method: int) -> bytes:
    """A zip with these members, names twice where they stand twice."""
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return content.getvalue()


def mutate_zip(rng: random.Random, content: bytes) -> bytes:
    """What lists the members: names, sizes, flags, methods; or a member more, or less."""
    if rng.random() < 0.4:
        data = bytearray(content)
        mark, fields = rng.choice(
            ((b"PK\x01\x02", (6, 8, 10, 16, 20, 24, 28, 30, 42)), (b"PK\x03\x04", (4, 6, 8, 18, 22, 26, 28)))
        )
        places = [i for i in range(len(data) - 4) if data[i : i + 4] == mark]
        if places:
            place = rng.choice(places) + rng.choice(fields)
            value = rng.choice(
                (bytes(2), b"\xff\xff", b"\x01\x00", b"\x63\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f")
            )
            data[place : place + len(value)] = value
        return bytes(data)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place, kind = rng.randrange(len(members)), rng.randrange(7)
    name, data = members[place]
    if kind == 0:
        del members[place]
    elif kind == 1:
        members.append((name, data))
    elif kind == 2:
        other = rng.choice((name + "/", name.removesuffix(".npy"), "../" + name, "\x1b" + name, "", name * 500))
        members[place] = other, data
    elif kind == 3:
        members.append((rng.choice(("a/", "notes.txt", "x.npy", "archive/data.pkl")), b"text"))
    elif kind == 4:
        members[place] = name, bytes(3_000_000)
    elif kind == 5:
        return write_zip(members, rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED)))
    else:
        rng.shuffle(members)
    return write_zip(members, zipfile.ZIP_STORED)


def mutate_npz(rng: random.Random, content: bytes) -> bytes:
    """An .npz: its bytes, its list of members, or one of its arrays."""
    kind = rng.randrange(6)
    if kind == 0:
        return mutate_bytes(rng, content)
    if kind == 1:
        return mutate_zip(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members)) if rng.random() < 0.6 or "meta.npy" not in members else "meta.npy"
    members[name] = mutate_npy(rng, members[name], as_json=name == "meta.npy")
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    method = rng.choice(methods) if sum(map(len, members.values())) < 1_000_000 else zipfile.ZIP_DEFLATED
    return write_zip(list(members.items()), method)  # a small file, whatever it holds


def mutate_torch(rng: random.Random, content: bytes) -> bytes:
    """A .pt: its bytes, its list of members, its pickle, or what it holds."""
    import torch

    kind = rng.randrange(8)
    if kind == 0:
        return mutate_bytes(rng, content)
    if kind == 1:
        return mutate_zip(rng, content)
    if kind == 2:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        return write_zip(
            [(name, mutate_bytes(rng, data) if name.endswith(".pkl") else data) for name, data in members], 0
        )
    if kind == 3 and rng.random() < 0.2:
        return pickle.dumps(Code())
    found = torch.load(io.BytesIO(content), weights_only=True)
    if kind == 4:
        _change_number(rng, rng.choice([one for one in _tensors(found) if one.numel()]))
    else:
        found = _mutate_tensors(rng, found)
    file = io.BytesIO()
    torch.save(found, file, _use_new_zipfile_serialization=rng.random() > 0.03)
    return file.getvalue()


def _tensors(value: Any) -> list[Any]:
    """All tensors in lists and tables."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [one for part in inside for one in _tensors(part)]


def _change_number(rng: random.Random, tensor: Any) -> None:
    """Another number in a tensor of the same form, which no check of forms can see."""
    place = rng.randrange(tensor.numel())
    number = rng.choice((0, 1, 2, -1, 0.5, 1e-30, 1e30, float("nan"), float("inf")))
    tensor.view(-1)[place] = number if tensor.is_floating_point() else rng.randrange(2)


def _mutate_tensors(rng: random.Random, value: Any) -> Any:
    import torch

    if isinstance(value, dict) and value and rng.random() < 0.9:
        changed = type(value)(value)
        key, kind = rng.choice(list(value)), rng.randrange(10)
        if kind == 0:
            del changed[key]
        elif kind == 1:
            changed[rng.choice((3, "x", ("a", "b"), "", "\x1b"))] = changed.pop(key)
        elif kind == 2:
            changed[rng.choice(("bomb", key))] = Code()
        else:
            changed[key] = _mutate_tensors(rng, value[key])
        return changed
    if isinstance(value, list | tuple) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return type(value)(_mutate_tensors(rng, one) if i == place else one for i, one in enumerate(value))
    if not isinstance(value, torch.Tensor):
        odd = [one for one in ODD if not (isinstance(one, str) and "\ud800" in one)]
        return rng.choice([*odd, torch.ones(2), Code(), {1, 2}, b"ab", nested(100)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = value.float()
        return rng.choice((
            lambda: value[..., :1], lambda: value[None], lambda: value.bool(), lambda: value.to(torch.complex64),
            lambda: value.half(), lambda: value.to(torch.int8), lambda: value.to_sparse(), lambda: value.to("meta"),
            lambda: torch.quantize_per_tensor(flat, 0.1, 0, torch.qint8), lambda: torch.ones(1).expand(10**6, 10**6),
            lambda: torch.full_like(flat, float("nan")), lambda: flat * 1e38, lambda: torch.zeros(0),
            lambda: value.T, lambda: value.to(torch.bfloat16), lambda: torch.nn.Parameter(flat),
            lambda: value.reshape(-1), lambda: value.to(torch.float8_e5m2), lambda: value * 0, lambda: -value,
            lambda: {"a": value}, lambda: [value],
        ))()  # fmt: skip
