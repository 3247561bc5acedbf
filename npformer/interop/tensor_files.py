"""The tensors in the safetensors files of a folder, read one at a time.

A safetensors file is the length of its header (8 bytes, little-endian), the header, which is a JSON object
with the dtype, the shape and the place of each tensor, and the data. A large model is divided into several
such files, its shards, and model.safetensors.index.json says which tensor is in which. The files come from
strangers: the library safetensors checks the headers before anything is allocated, and no data are read as
code.

NumPy has no bfloat16, which is the upper half of a float32: its bits are read as integers and shifted.

Source: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from textwrap import shorten
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from npformer.backend import Array
from npformer.errors import UserError
from npformer.escaping import printable
from npformer.storage.atomic import explain_os_errors
from npformer.storage.json_files import parse_json, read_json, require_object
from npformer.validation import short

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
REMEDY = "copy or download the file again"

MOST_HEADER = 1 << 23  # bytes; a header takes about 130 bytes for each tensor
MOST_LETTERS = 120  # of an error of the library in a message
BLOCK = 1 << 18  # numbers that are read and converted at a time

# the dtypes from which numbers are read, and how NumPy reads their bytes; the bits of BF16 as whole numbers
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class StoredTensor(NamedTuple):
    """A tensor in a file: what the header says about it, and its numbers when they are read."""

    name: str
    path: Path
    dtype: str  # as the format names it, such as "F32"
    shape: tuple[int, ...]
    start: int  # the first byte of its data in the file
    size: int  # the number of bytes

    @property
    def place(self) -> str:
        """The noun for the tensor in messages."""
        return f"{self.name} in {self.path}"

    @property
    def row_size(self) -> int:
        """The number of bytes of a row along the first axis."""
        return self.size // max(1, self.shape[0])

    def read(self, dtype: Any = np.float32) -> Array:
        """Return the numbers, converted to a dtype."""
        destination = np.empty(self.shape, dtype)
        self.read_into(destination)
        return destination

    def read_into(self, destination: Array, first: int = 0) -> None:
        """Read the numbers into an array, in blocks, so that no second copy of them is in memory.

        Args:
            destination: An array of the shape of the tensor, of any dtype of floats. It may be a view, such
                as a transpose. It may have fewer rows than the tensor, which are then read from it.
            first: The first row that is read, along the first axis.

        Raises:
            UserError: If the tensor does not hold floats, if it has numbers that are not finite or that are
                too large for the dtype, or if the file cannot be read.
        """
        if self.dtype not in FLOATS:
            raise UserError(
                f"{self.place} has dtype {self.dtype}, and npformer reads weights of {', '.join(FLOATS)}: "
                "use a model with these"
            )
        rows = destination.reshape(1) if destination.ndim == 0 else destination  # a view
        step = max(1, BLOCK // max(1, math.prod(rows.shape[1:])))
        with explain_os_errors(self.path, "read", REMEDY), open(self.path, "rb") as file:
            file.seek(self.start + (first * self.row_size if first else 0))
            for first in range(0, len(rows), step):
                block = rows[first : first + step]
                if block.flags.c_contiguous and block.dtype == FLOATS[self.dtype]:
                    _read_as_stored(file, block, self)
                else:
                    numbers = _read_numbers(file, block.size, self).reshape(block.shape)
                    block[...] = _converted(numbers, block.dtype, self)


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors in model.safetensors of a folder, or in the shards that its index names, by name.

    Raises:
        UserError: If there are no such files, if a shard is missing, if a file is damaged or forged, or if a
            name is unknown.
    """
    if (folder / ONE_FILE).exists():
        return read_header(folder / ONE_FILE)
    if not (folder / INDEX).exists():
        raise UserError(_no_tensors(folder))
    files = read_index(folder / INDEX)
    tensors: dict[str, StoredTensor] = {}
    for file in dict.fromkeys(files.values()):
        if not (folder / file).exists():
            raise UserError(f"{folder} lacks {file}, a part of the model that {INDEX} names: download it")
        for name, tensor in read_header(folder / file).items():
            if files.get(name) != file:
                where = f"to be in {files[name]}" if name in files else "nowhere"
                raise UserError(f"{short(name)} is in {tensor.path}, and {INDEX} says {where}: {REMEDY}")
            tensors[name] = tensor
    for name in files:
        if name not in tensors:
            raise UserError(
                f"{short(name)} is not in {folder / files[name]}, where {INDEX} says it is: {REMEDY}"
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
    """Read the header of a safetensors file, which the library safetensors checks.

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
            beginning = file.read(8)
            if beginning == b"version ":  # as a length, it would be larger than any file
                raise UserError(f"{path} is a pointer of Git LFS, not the file: git lfs pull fetches that")
            length = int.from_bytes(beginning, "little")
            if MOST_HEADER < length < path.stat().st_size:
                raise UserError(
                    f"the header of {path} has {length:,} bytes, and npformer reads at most {MOST_HEADER:,}: "
                    f"{REMEDY}"
                )
            try:
                safe_open(path, framework="numpy")
            except SafetensorError as error:
                why = printable(shorten(str(error), MOST_LETTERS, placeholder=" ..."))
                raise UserError(f"{path} is not a complete safetensors file ({why}): {REMEDY}") from None
            header = parse_json(file.read(length), f"the header of {path}", REMEDY)
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        place = (8 + length + begin, end - begin)
        tensors[name] = StoredTensor(name, path, entry["dtype"], tuple(entry["shape"]), *place)
    return tensors


def _read_as_stored(file: BufferedReader, block: Array, tensor: StoredTensor) -> None:
    """Read the next numbers of a tensor into a contiguous array of their dtype, without a copy."""
    if file.readinto(block.data) != block.nbytes:
        raise _shorter(tensor)
    require_finite(block, tensor)


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


def _converted(numbers: Array, dtype: Any, tensor: StoredTensor) -> Array:
    """Return numbers in another dtype, and raise UserError if it cannot hold them or they are not finite."""
    with np.errstate(over="ignore"):
        converted = numbers.astype(dtype, copy=False)
    if not np.isfinite(converted).all():
        require_finite(numbers, tensor)
        raise _unusable(tensor, f"that {np.dtype(dtype)} cannot hold")
    return converted


def require_finite(numbers: Array, tensor: StoredTensor) -> None:
    """Raise UserError if numbers of a tensor are not finite."""
    if not np.isfinite(numbers).all():
        raise _unusable(tensor, "that are not finite")


def _unusable(tensor: StoredTensor, problem: str) -> UserError:
    return UserError(f"{tensor.place} has numbers {problem}: use another model")


def _shorter(tensor: StoredTensor) -> UserError:
    return UserError(f"{tensor.path} became shorter while it was read: {REMEDY}")


def _no_tensors(folder: Path) -> str:
    """Return the message for a folder without safetensors files."""
    if not folder.is_dir():
        return f"there is no folder {folder}: check the name"
    for path in _pickles(folder):
        return (
            f"{folder} has its weights in {path.name}, a pickle, and reading a pickle runs code from it: "
            f"convert it with transformers, {_class_of(folder)}.from_pretrained(FOLDER).save_pretrained(NEW) "
            "and AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW)"
        )
    return f"{folder} has neither {ONE_FILE} nor {INDEX}: give a folder of a model with safetensors files"


def _class_of(folder: Path) -> str:
    """Return the class of transformers that reads a folder with its head, as its config.json names it."""
    try:
        (name, *_) = read_json(folder / "config.json", "config.json", REMEDY)["architectures"]
    except (UserError, LookupError, TypeError, ValueError):  # there is no such file, entry or list
        name = None
    return name if isinstance(name, str) and name.isidentifier() else "AutoModelForPreTraining"


def _pickles(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that are pickles by their names."""
    for pattern in ("*.bin", "*.bin.index.json", "*.pt", "*.pth", "*.ckpt", "*.pkl"):
        yield from sorted(folder.glob(pattern))
