"""TensorFolder: the tensors in the safetensors files of a folder, read one at a time.

A safetensors file is the length of its header (8 bytes, little-endian), the header, which is a JSON object
with the dtype, the shape and the place of each tensor, and the data. A large model is divided into several
such files, its shards, and model.safetensors.index.json says which tensor is in which. The files come from
strangers: the headers are checked before anything is allocated, and no data are read as code.

NumPy has no bfloat16, which is the upper half of a float32: its bits are read as integers and shifted.

Source: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors
from npformer.storage.json_files import parse_json, read_json, require_object
from npformer.storage.validation import has_type, short

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
REMEDY = "copy or download the file again"

MOST_HEADER = 1 << 23  # bytes; a header takes about 130 bytes for each tensor
MOST_AXES = 64  # of a NumPy array
BLOCK = 1 << 18  # numbers that are read and converted at a time

# the dtypes from which numbers are read, and how NumPy reads their bytes; the bits of BF16 as whole numbers
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
# the dtypes of the format, by the bits of a number
_NAMES_BY_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E4M3 F8_E5M2 F8_E8M0",
    16: "U16 I16 F16 BF16",
    32: "U32 I32 F32",
    64: "U64 I64 F64 C64",
}
BITS = {name: bits for bits, names in _NAMES_BY_BITS.items() for name in names.split()}


class StoredTensor(NamedTuple):
    """A tensor in a file: what the header says about it."""

    path: Path
    dtype: str  # one of BITS
    shape: tuple[int, ...]
    start: int  # the first byte of its data in the file
    size: int  # the number of bytes


class TensorFolder:
    """The tensors in model.safetensors of a folder, or in the shards that its index names.

    Args:
        folder: The folder.

    Raises:
        UserError: If there are no such files, if a shard is missing, if a file is damaged or forged, or if a
            name is unknown.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tensors = self._read_headers()

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._tensors[name].shape

    def dtype(self, name: str) -> str:
        """Return the dtype of a tensor as the format writes it, such as "BF16"."""
        return self._tensors[name].dtype

    def n_bytes(self, name: str) -> int:
        """Return the number of bytes of a tensor in its file."""
        return self._tensors[name].size

    def stored(self, name: str) -> StoredTensor:
        """Return what the header of its file says about a tensor."""
        return self._tensors[name]

    def path(self, name: str) -> Path:
        """Return the file that holds a tensor."""
        return self._tensors[name].path

    def read(self, name: str, dtype: Any = np.float32) -> Array:
        """Return a tensor, converted to a dtype."""
        destination = np.empty(self.shape(name), dtype)
        self.read_into(name, destination)
        return destination

    def read_into(self, name: str, destination: Array) -> None:
        """Read a tensor into an array, in blocks, so that no second copy of it is in memory.

        Args:
            name: The name of the tensor.
            destination: An array of its shape, of any dtype of floats. It may be a view, such as a transpose.

        Raises:
            UserError: If the tensor does not hold floats, if it has numbers that are not finite or that are
                too large for the dtype, or if the file cannot be read.
        """
        tensor = self._tensors[name]
        if tensor.dtype not in FLOATS:
            raise UserError(
                f"{name} in {tensor.path} has dtype {tensor.dtype}, and npformer reads weights of "
                f"{', '.join(FLOATS)}: use a model with these"
            )
        rows = destination.reshape(1) if destination.ndim == 0 else destination  # a view
        step = max(1, BLOCK // max(1, math.prod(rows.shape[1:])))
        with explain_os_errors(tensor.path, "read", REMEDY), open(tensor.path, "rb") as file:
            file.seek(tensor.start)
            for first in range(0, len(rows), step):
                block = rows[first : first + step]
                what = f"{name} in {tensor.path}"
                if block.flags.c_contiguous and block.dtype == FLOATS[tensor.dtype]:
                    _read_as_stored(file, block, tensor, what)
                else:
                    numbers = _read_numbers(file, block.size, tensor).reshape(block.shape)
                    block[...] = _converted(numbers, block.dtype, what)

    def _read_headers(self) -> dict[str, StoredTensor]:
        """Return the tensors of all files by name."""
        if (self.folder / ONE_FILE).exists():
            return read_header(self.folder / ONE_FILE)
        if not (self.folder / INDEX).exists():
            raise UserError(_no_tensors(self.folder))
        files = read_index(self.folder / INDEX)
        tensors: dict[str, StoredTensor] = {}
        for file in dict.fromkeys(files.values()):
            if not (self.folder / file).exists():
                raise UserError(
                    f"{self.folder} lacks {file}, a part of the model that {INDEX} names: download it"
                )
            for name, tensor in read_header(self.folder / file).items():
                if files.get(name) != file:
                    where = f"to be in {files[name]}" if name in files else "nowhere"
                    raise UserError(f"{short(name)} is in {tensor.path}, and {INDEX} says {where}: {REMEDY}")
                tensors[name] = tensor
        for name in files:
            if name not in tensors:
                raise UserError(
                    f"{short(name)} is not in {self.folder / files[name]}, where {INDEX} says it is: {REMEDY}"
                )
        return tensors


def read_index(path: Path) -> dict[str, str]:
    """Read and check a file model.safetensors.index.json.

    Returns:
        The name of the file, in the folder of the index, of each tensor.

    Raises:
        UserError: If it is not JSON of this form, or names a file outside its folder.
    """
    content = require_object(read_json(path, str(path), REMEDY), str(path), REMEDY)
    files = content.get("weight_map")
    if not isinstance(files, dict) or not files:
        raise UserError(f"{path} has no object 'weight_map' with the file of each tensor: {REMEDY}")
    for name, file in files.items():
        # a name without folders: the index of a stranger must not make npformer read /etc/passwd
        if not isinstance(file, str) or not file.endswith(".safetensors") or Path(file).name != file:
            raise UserError(
                f"{path} says that {short(name)} is in {short(file)}, which is not the name of a safetensors "
                f"file in its folder: {REMEDY}"
            )
    return files


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Read and check the header of a safetensors file.

    Returns:
        The tensors by name.

    Raises:
        UserError: If the file cannot be read, if it is not a complete file of this format, or if the tensors
            do not lie one after the other in its data.
    """
    with explain_os_errors(path, "read", REMEDY):
        if not path.is_file():  # a pipe would wait for ever, and a device may have no end
            raise UserError(f"{path} is not a file: {REMEDY}")
        with open(path, "rb") as file:
            text, n_data = _header_text(file, path)
    what = f"the header of {path}"
    header = require_object(parse_json(text, what, REMEDY), what, REMEDY)
    header.pop("__metadata__", None)
    tensors = {name: _stored_tensor(name, entry, path, start=8 + len(text)) for name, entry in header.items()}
    end = 8 + len(text)
    for name, tensor in sorted(tensors.items(), key=lambda pair: (pair[1].start, pair[1].size)):
        if tensor.start != end:
            problem = "overlaps another tensor" if tensor.start < end else "leaves a gap before it"
            raise UserError(f"{short(name)} in {path} {problem}: {REMEDY}")
        end += tensor.size
    if end != 8 + len(text) + n_data:
        raise UserError(
            f"{path} has {n_data:,} bytes of data, and its header describes {end - 8 - len(text):,}: {REMEDY}"
        )
    return tensors


def _header_text(file: BinaryIO, path: Path) -> tuple[bytes, int]:
    """Return the text of the header, and the number of bytes after it."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        raise UserError(f"{path} is not a complete safetensors file: {REMEDY}")
    if length > MOST_HEADER:
        raise UserError(
            f"the header of {path} has {length:,} bytes, and npformer reads at most {MOST_HEADER:,}: {REMEDY}"
        )
    return file.read(length), size - 8 - length


def _stored_tensor(name: str, entry: Any, path: Path, start: int) -> StoredTensor:
    """Return a tensor from its entry in the header.

    Args:
        name: Its name.
        entry: Its entry.
        path: The file.
        start: The first byte of the data of the file.
    """
    what = f"{short(name)} in {path}"
    types = {"dtype": str, "shape": list[int], "data_offsets": tuple[int, int]}
    if not isinstance(entry, Mapping) or entry.keys() != types.keys():
        raise UserError(f"the header entry of {what} has not dtype, shape and data_offsets alone: {REMEDY}")
    for key, hint in types.items():
        if not has_type(entry[key], hint):
            raise UserError(f"{key} of {what} is {short(entry[key])}, which is no {key}: {REMEDY}")
    dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if dtype not in BITS:
        raise UserError(f"{what} has the unknown dtype {short(dtype)}: {REMEDY}")
    if len(shape) > MOST_AXES:
        raise UserError(f"{what} has {len(shape):,} axes, and NumPy has at most {MOST_AXES}: {REMEDY}")
    if min(shape, default=0) < 0 or not 0 <= begin <= end:
        raise UserError(f"the shape or data_offsets of {what} are impossible: {REMEDY}")
    if math.prod(shape) * BITS[dtype] != 8 * (end - begin):
        raise UserError(
            f"{what} has the shape {short(list(shape))} and dtype {dtype}, and {short(end - begin)} bytes do "
            f"not hold it: {REMEDY}"
        )
    return StoredTensor(path, dtype, shape, start + begin, end - begin)


def _read_as_stored(file: BufferedReader, block: Array, tensor: StoredTensor, what: str) -> None:
    """Read the next numbers of a tensor into a contiguous array of their dtype, without a copy."""
    if file.readinto(block.data) != block.nbytes:
        raise _shorter(tensor)
    if not np.isfinite(block).all():
        raise unusable(what)


def _read_numbers(file: BinaryIO, count: int, tensor: StoredTensor) -> Array:
    """Return the next numbers of a tensor, of shape (count,), in the precision of the file."""
    dtype = np.dtype(FLOATS[tensor.dtype])
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise _shorter(tensor)
    numbers = np.frombuffer(data, dtype)
    if tensor.dtype == "BF16":
        return (numbers.astype("<u4") << 16).view("<f4")
    return numbers


def _converted(numbers: Array, dtype: Any, what: str) -> Array:
    """Return numbers in another dtype, and raise UserError if it cannot hold them or they are not finite."""
    with np.errstate(over="ignore"):
        converted = numbers.astype(dtype, copy=False)
    if not np.isfinite(converted).all():
        if np.isfinite(numbers).all():
            raise unusable(what, f"that {np.dtype(dtype)} cannot hold")
        raise unusable(what)
    return converted


def unusable(what: str, problem: str = "that are not finite") -> UserError:
    """Return the error for a tensor whose numbers have a problem."""
    return UserError(f"{what} has numbers {problem}: use another model")


def _shorter(tensor: StoredTensor) -> UserError:
    return UserError(f"{tensor.path} became shorter while it was read: {REMEDY}")


def _no_tensors(folder: Path) -> str:
    """Return the message for a folder without safetensors files."""
    if not folder.is_dir():
        return f"there is no folder {folder}: check the name"
    for path in _pickles(folder):
        return (
            f"{folder} has its weights in {path.name}, a pickle, and reading a pickle runs code from it: "
            "convert it with transformers, AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
        )
    return f"{folder} has neither {ONE_FILE} nor {INDEX}: give a folder of a model with safetensors files"


def _pickles(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are pickles by their names."""
    for pattern in ("*.bin", "*.bin.index.json", "*.pt", "*.pth", "*.ckpt", "*.pkl"):
        yield from sorted(folder.glob(pattern))
