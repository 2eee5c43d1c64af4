"""Arrays and tensors from outside: .npz and .pt files, zips whose sizes are checked before memory is taken.

How much memory a file may ask for depends on its own size: compression is a convenience, not a multiplier. torch.load
believes the sizes that a .pt states. So here the parts of a .pt must be stored uncompressed, and the file is mapped, so
that no tensor can reach beyond its end; a view that repeats numbers is counted in full.
"""

import io
import json
import pickle
import zipfile
from collections.abc import Collection, Mapping
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError, importing
from cosim.base.resources import install_command
from cosim.base.text import open_file, parsing, shown, shown_path

if TYPE_CHECKING:
    from torch import Tensor

MEMORY_FLOOR, MEMORY_RATIO = 8 << 20, 64  # bytes that any file may ask for; beyond that so many times its own size
MEMBERS = 1000
_REAL = 8  # bytes of a number once it is computed with
_KINDS = "biufcSU"  # truth values, numbers, text: no objects, nothing structured
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_ENCRYPTED = 0x1
_CONVERT = "save it converted: names with y.astype(str), numbers with x.astype(float), unequal lengths padded to one"
_FORMS = {"text": "U", "whole": "iu", "real": "iuf"}  # kinds of `check_forms`, and numpy's letters
_PICKLE, _PICKLE_LIMIT = "data.pkl", 8 << 20  # bytes of a .pt: names, shapes and plain values
_WORDS = {"text": "text", "whole": "whole numbers", "real": "real numbers"}


def memory_limit(size: int) -> int:
    """Return how many bytes of memory the arrays of a file of `size` bytes may take."""
    return max(MEMORY_FLOOR, MEMORY_RATIO * size)


def memory_of(itemsize: int, count: int) -> int:
    """Return the bytes of memory that `count` numbers of a file need: at least 8 each, as real numbers.

    itemsize: bytes of a number in the file.
    """
    return max(itemsize, _REAL) * count


def check_memory(wanted: int, limit: int, where: str) -> None:
    """Raise InputError if the arrays of a file need more memory than `limit`. wanted, limit: byte; where: the file."""
    if wanted > limit:
        raise InputError(
            f"{where} must take at most {limit / 1e6:.4g} MB of memory, not {wanted / 1e6:.4g} MB, in a file of this "
            f"size; save fewer numbers, or save them uncompressed"
        )


def read_arrays(path: Path, repair: str, names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz file, name -> read-only array; names: those to read, None for all.

    Raises InputError that names the file, the array, the limit and `repair` if the file is no .npz of plain arrays.
    """
    where = shown_path(path)
    arrays: dict[str, NDArray[Any]] = {}
    with open_file(path, repair) as file, parsing(where, "an .npz file", repair), zipfile.ZipFile(file) as archive:
        left = memory_limit(path.stat().st_size)
        for member in check_members(archive, where, repair):
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise InputError(f"{where}: {shown(name)} must be an array, NAME.npy, like all in an .npz; {repair}")
            if names is None or name in names:
                with archive.open(member) as content:
                    arrays[name] = _read_array(content, member.file_size, left, f"{where}: {shown(name)}", repair)
                left -= memory_of(arrays[name].itemsize, arrays[name].size)
    return arrays


def check_forms(arrays: Mapping[str, NDArray[Any]], forms: Mapping[str, str], where: str, repair: str) -> None:
    """Raise InputError if arrays do not have their forms: a kind of _FORMS, then each axis's length or a name for it.

    `{"y": "whole n", "xy": "real n 2"}` asks for whole numbers (n,) and for real numbers (n, 2) with the same n; a * at
    the end stands for any further axes.
    The error names `where`, the array that is missing or of another form, and `repair`.
    """
    lengths: dict[str, int] = {}
    for name, form in forms.items():
        kind, *axes = form.removesuffix(" *").split()
        if (array := arrays.get(name)) is None:
            raise InputError(f"{where}: {name} is missing; it is of another cosim, or no such file: {repair}")
        wanted = [int(axis) if axis.isdigit() else lengths.get(axis) for axis in axes]
        shape = array.shape[: len(axes)] if form.endswith("*") else array.shape
        fits = len(axes) == len(shape) and all(one in (None, n) for one, n in zip(wanted, shape, strict=True))
        if array.dtype.kind not in _FORMS[kind] or not fits:
            asked = ", ".join(axis if one is None else str(one) for axis, one in zip(axes, wanted, strict=True))
            raise InputError(
                f"{where}: {name} must hold {_WORDS[kind]} of shape ({asked}), not {shown(array.dtype)} of shape "
                f"{shown(array.shape)}; {repair}"
            )
        lengths |= zip(axes, shape, strict=True)


def check_members(archive: zipfile.ZipFile, where: str, repair: str) -> list[zipfile.ZipInfo]:
    """Return the files in a zip. Raises InputError unless each is there once, stored plain or deflated."""
    members = archive.infolist()
    if len(members) > MEMBERS:
        raise InputError(f"{where}: must hold at most {MEMBERS} arrays, not {len(members)}; {repair}")
    names = [member.filename for member in members]
    for member in members:
        fault = "must not be a folder" if member.is_dir() else ""
        fault = fault or ("must be there once" if names.count(member.filename) > 1 else "")
        fault = fault or ("must not be encrypted" if member.flag_bits & _ENCRYPTED else "")
        fault = fault or ("must be stored or deflated" if member.compress_type not in _METHODS else "")
        if fault:
            raise InputError(f"{where}: {shown(member.filename)} {fault}; {repair}")
    return members


def _read_array(content: IO[bytes], size: int, limit: int, where: str, repair: str) -> NDArray:
    """Read one array of a zip, if its header agrees with its length `size` in the zip, byte, and with `limit`.

    Raises InputError that begins with `where`, before any memory is taken for the numbers.
    """
    version = np.lib.format.read_magic(content)
    if version not in _HEADERS:
        raise InputError(f"{where} must be of npy format 1.0 or 2.0, not {version}; {repair}")
    shape, by_column, dtype = _HEADERS[version](content)
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        repair = _CONVERT if dtype.hasobject else repair
        raise InputError(f"{where} must hold plain numbers or text, not {shown(dtype)}; {repair}")
    if min(shape, default=0) < 0:
        raise InputError(f"{where} must have a shape without negative numbers, not {shown(shape)}; {repair}")
    check_memory(memory_of(dtype.itemsize, prod(shape)), limit, where)
    wanted, there = dtype.itemsize * prod(shape), size - content.tell()
    if wanted != there:
        raise InputError(f"{where} must have {wanted} bytes for its shape {shown(shape)}, not {there}; {repair}")
    return np.ndarray(shape, dtype, content.read(wanted), order="F" if by_column else "C")


def read_torch(path: Path, repair: str) -> object:
    """Return the content of a .pt file. Its tensors are mapped from the file, so copy those that must outlive it.

    Raises InputError that names the file and `repair`, MissingToolError without torch.
    """
    where = shown_path(path)
    _check_archive(path, where, repair)
    with importing(f"{where}: reading a .pt", f"{install_command('train')}, or save it as .npz where torch is"):
        import torch
    with parsing(where, "a file of torch.save", repair):
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except pickle.UnpicklingError as error:
            raise InputError(
                f"{where}: only tensors and plain values are loaded, but this file is no checkpoint or asks to run "
                f"code; {repair}"
            ) from error


def torch_bytes(arrays: Mapping[str, "Tensor"], meta: Mapping[str, object]) -> bytes:
    """Return tensors and JSON meta data as the bytes of a .pt file; equal content gives equal bytes."""
    import torch

    buffer = io.BytesIO()
    # A JSON round trip leaves only plain values, which is all that weights_only=True accepts.
    torch.save({"meta": json.loads(json.dumps(meta, sort_keys=True)), "arrays": dict(arrays)}, buffer)
    return buffer.getvalue()


def _check_archive(path: Path, where: str, repair: str) -> None:
    wanted = "a file of torch.save, which is a zip since torch 1.6"
    with open_file(path, repair) as file, parsing(where, wanted, repair), zipfile.ZipFile(file) as archive:
        for member in check_members(archive, where, repair):
            if member.compress_size != member.file_size or member.compress_type != zipfile.ZIP_STORED:
                raise InputError(f"{where}: must be stored without compression, as torch.save does; {repair}")
            if Path(member.filename).name == _PICKLE and member.file_size > _PICKLE_LIMIT:
                raise InputError(f"{where}: {_PICKLE} must have at most {_PICKLE_LIMIT / 1e6:.3g} MB; {repair}")
        if (damaged := archive.testzip()) is not None:  # torch.load would not tell
            raise InputError(f"{where}: {shown(damaged)} is damaged, its checksum does not fit; {repair}")


def tensor_array(tensor: "Tensor", where: str, limit: int) -> NDArray[np.float64]:
    """Copy a tensor into an array of at most `limit` bytes. Raises InputError for a tensor that is not plain."""
    import torch

    layout, dtype = (str(word).removeprefix("torch.") for word in (tensor.layout, tensor.dtype))
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_nested
    if not plain or tensor.is_complex() or tensor.is_quantized or tensor.dtype == torch.bool:
        raise InputError(
            f"{where} must be a dense tensor of real numbers on the CPU, not {layout} of {dtype} on {tensor.device}; "
            "save it as one"
        )
    check_memory(8 * tensor.numel(), limit, where)
    with parsing(where, f"a tensor of real numbers, not of {dtype}", "save it as float32"):
        return tensor.detach().double().numpy().copy()
