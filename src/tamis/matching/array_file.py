"""How do a document and its arrays share one file? A memory-mapped container format.

    magic, version, checksum of the header, its length, size of the file   32 bytes, little-endian
    header                                                                 JSON: the document, and where each array lies
    arrays                                                                 each at a multiple of 64 bytes

A reader maps the file instead of reading it: the arrays cost no memory until they are used, and processes that map the
same file share it. Nothing in it is code (a pickle would be), and whatever is not as it was written raises
`SavedMatcherError`.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tamis.matching.errors import SavedMatcherError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAGIC = b"\x89tamis\r\n"
"""No text starts so, and a transfer that takes the file for a text breaks it here already (as PNG does it)."""
VERSION = 6
"""Who changes what the saved arrays mean raises it."""
ALIGNMENT = 64

_PREFIX = struct.Struct("<8sIIQQ")
DTYPES = {np.dtype(name).str for name in ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")}

Array: TypeAlias = npt.NDArray[Any]


def write(path: str | os.PathLike[str], document: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a file, whole or not at all: it gets its name only when all of it is on the disk."""
    with _replacing(Path(path)) as file:
        write_to(file, document, arrays)


def write_to(file: IO[bytes], document: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write what stands in a file."""
    described: dict[str, Any] = {}
    end = 0
    for name, array in arrays.items():
        flat = _flat(array)
        assert array.dtype.str in DTYPES, f"{name} has the type {array.dtype}"
        described[name] = {
            "dtype": array.dtype.str,
            "shape": array.shape,
            "order": _order(array),
            "offset": _aligned(end),
            "checksum": crc32(flat),
        }
        end = _aligned(end) + flat.nbytes
    header = json.dumps({"document": document, "arrays": described}, separators=(",", ":")).encode()
    body = _aligned(_PREFIX.size + len(header))
    file.write(_PREFIX.pack(MAGIC, VERSION, crc32(header), len(header), body + end))
    file.write(header)
    for name, array in arrays.items():
        file.write(bytes(body + described[name]["offset"] - file.tell()))
        file.write(_flat(array))


def read(path: str | os.PathLike[str], *, verify: bool = True) -> tuple[Any, dict[str, Array]]:
    """Return the document and the arrays of a file.

    With `verify` every array is compared with its checksum, which reads the whole file once.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header, body = _header(path, file, size)
            # A private mapping: what is written to its arrays stays in this process. Read-only arrays would be of
            # another type to the compiled kernels, which would be compiled once more for it.
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise SavedMatcherError(f"cannot read {path}: {error.strerror or error}") from error
    return _content(path, header, memory, body, verify=verify)


def read_from(content: bytes, *, verify: bool = True) -> tuple[Any, dict[str, Array]]:
    """Return the same of what `write_to` wrote, which need not have been to a file."""
    header, body = _header("a pickled matcher", BytesIO(content), len(content))
    # As many bytes aside, that arrays lie at multiples of their alignment in memory too; and writable, as above.
    room = np.zeros(len(content) + ALIGNMENT, np.uint8)
    aside = -room.ctypes.data % ALIGNMENT
    memory = room[aside : aside + len(content)]
    memory[:] = np.frombuffer(content, np.uint8)
    return _content("a pickled matcher", header, memory.data, body, verify=verify)


def _content(
    path: str | os.PathLike[str], header: bytes, memory: mmap.mmap | memoryview, body: int, *, verify: bool
) -> tuple[Any, dict[str, Array]]:
    try:
        content = json.loads(header)
        arrays = {name: _array(each, memory, body) for name, each in content["arrays"].items()}
        document = content["document"]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise SavedMatcherError(f"{path} has a header that cannot be read: {error!r}") from error
    if verify:
        for name, array in arrays.items():
            if crc32(_flat(array)) != content["arrays"][name].get("checksum"):
                raise SavedMatcherError(f"{path} is damaged: the array {name} is not as it was saved")
    return document, arrays


def _header(path: str | os.PathLike[str], file: IO[bytes], size: int) -> tuple[bytes, int]:
    """Return the header, and where the arrays start."""
    start = file.read(_PREFIX.size)
    if not start:
        raise SavedMatcherError(f"{path} is empty")
    if not start.startswith(MAGIC[: len(start)]):
        raise SavedMatcherError(f"{path} is not a saved matcher")
    if len(start) < _PREFIX.size:
        raise SavedMatcherError(f"{path} is truncated: it ends after {size} bytes")
    _, version, checksum, length, whole_size = _PREFIX.unpack(start)
    if version != VERSION:
        raise SavedMatcherError(f"{path} has version {version} of the format; this tamis reads version {VERSION}")
    if size < whole_size:
        raise SavedMatcherError(f"{path} is truncated: it has {size:,} bytes of {whole_size:,}")
    if size > whole_size:
        raise SavedMatcherError(f"{path} is longer than it should be: it has {size:,} bytes instead of {whole_size:,}")
    header = file.read(min(length, size))
    if len(header) < length or crc32(header) != checksum:
        raise SavedMatcherError(f"{path} is damaged: its header is not as it was saved")
    return header, _aligned(_PREFIX.size + length)


def _array(described: Any, memory: mmap.mmap | memoryview, body: int) -> Array:
    shape, offset = tuple(described["shape"]), body + described["offset"]
    if described["dtype"] not in DTYPES or described["order"] not in ("C", "F"):
        raise ValueError(f"an array of the type {described['dtype']!r} in the order {described['order']!r}")
    dtype = np.dtype(described["dtype"])
    if not all(type(length) is int and length >= 0 for length in shape) or described["offset"] % ALIGNMENT:
        raise ValueError(f"an array of the shape {shape} at {described['offset']}")
    if offset < body or offset + dtype.itemsize * math.prod(shape) > len(memory):
        raise ValueError(f"an array that ends at {offset + dtype.itemsize * math.prod(shape)}")
    if not math.prod(shape):
        return np.empty(shape, dtype, described["order"])
    return np.ndarray(shape, dtype, memory, offset, order=described["order"])


def _order(array: Array) -> str:
    """Return how the array lies in memory, which compiled kernels take for a part of its type."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _flat(array: Array) -> memoryview:
    """Return the bytes of an array, in the order in which they are saved."""
    flat = np.ascontiguousarray(array.T if _order(array) == "F" else array).reshape(-1)
    return memoryview(flat.view(np.uint8))  # type: ignore[arg-type]


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file beside the path, which takes its place once it is written."""
    beside = path.parent / f".{path.name}.{token_hex(8)}"
    try:
        try:
            with open(beside, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        with suppress(OSError):  # not every system can make a folder durable
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise SavedMatcherError(f"cannot write {path}: {error.strerror or error}") from error
