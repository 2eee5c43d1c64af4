"""Files of torch.save, read with torch: tensors and plain values, no code, no more memory than the file has.

torch.load believes what a file says of its own sizes. Here the file must be a zip whose parts are stored as they are,
and it is mapped, so that no tensor can reach beyond it; a view that repeats its numbers is counted in full.
"""

import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import check_members, check_memory
from cosim.base.errors import InputError, importing
from cosim.base.resources import install_command
from cosim.base.text import open_file, parsing, shown, shown_path

if TYPE_CHECKING:
    from torch import Tensor

_PICKLE, _PICKLE_LIMIT = "data.pkl", 8 << 20  # bytes; names, shapes and plain values


def read_torch(path: Path, repair: str) -> object:
    """Return the content of a .pt file; its tensors are mapped from the file, so copy what outlives it.

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
    """Copy a tensor's numbers into an array of at most `limit` bytes; raises InputError for any but a plain tensor."""
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
