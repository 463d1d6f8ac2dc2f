"""Arrays of an `.npz` archive, whose headers are checked before memory is allocated."""

from __future__ import annotations

import lzma
import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from anharmonic._checks import message, require

# Compression limit for measured values; zeros compress 200 to 1000 times.
_MOST_SHRUNK = 150
_HARMLESS_BYTES = 1 << 28
_DAMAGE = (
    OSError, ValueError, TypeError, EOFError, SyntaxError, RuntimeError, NotImplementedError,
    MemoryError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


def load_archive(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive.

    Damaged ones, arrays of Python objects, and archives that would need far more memory than their
    size suggests are refused.
    """
    came, advice = "no zip archive, or a cut one", "write it with numpy.savez(file, x=..., y=...)"
    require(zipfile.is_zipfile(path), path.name, came, "an .npz archive", advice)
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(_declared(archive, member) for member in archive.infolist())
            judge_size(total, path)
            for member in archive.infolist():
                with archive.open(member) as file:
                    key = member.filename.removesuffix(".npy")
                    arrays[key] = npy.read_array(file, allow_pickle=False)
    except _Objects as error:
        key = error.args[0]
        expected = f"{key} in {path.name} must be an array of numbers or strings"
        came = "an array of Python objects, which is not loaded because it could run code"
        advice = "store sequences of different lengths one after another as x [sum of lengths, F] "
        advice += "with offsets [N + 1], or padded with lengths [N]"
        if key.startswith("y"):
            advice = f"store {key}.astype(str) for classes, {key}.astype(float) for values"
        raise ValueError(message(expected, came, advice)) from error
    except _DAMAGE as error:
        came = f"{type(error).__name__}: {str(error).rstrip('.')}"
        expected, advice = f"{path.name} must be a sound .npz archive", "write it with numpy.savez"
        raise ValueError(message(expected, came, advice)) from error
    return arrays


def judge_size(content: int, path: Path) -> None:
    """Refuse a file whose arrays declare over 256 MB and over 150 times the file's size."""
    size = path.stat().st_size
    if content > _HARMLESS_BYTES and content > _MOST_SHRUNK * size:
        raise ValueError(f"{content} bytes of arrays in a file of {size}")


class _Objects(Exception):
    """An array holds Python objects; the argument names it."""


def _declared(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the declared size of an array in bytes, which must match its data."""
    if not member.filename.endswith(".npy"):
        raise ValueError(f"{member.filename} is not a .npy array")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"{member.filename} has the unknown format {version}")
        shape, _, dtype = read(file)
        begin = file.tell()
    if dtype.hasobject:
        raise _Objects(member.filename.removesuffix(".npy"))
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != member.file_size - begin:
        raise ValueError(
            f"{member.filename} says {list(shape)} of {dtype}, {size} bytes, "
            f"and has {member.file_size - begin}"
        )
    return size
