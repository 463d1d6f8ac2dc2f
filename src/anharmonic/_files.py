"""Files: checked before reading, and written atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from anharmonic import _checks

if sys.platform != "win32":
    import fcntl

TEMPORARY = ".tmp"
"""Suffix of files being written; a killed process leaves them behind."""


def existing(path: Path | str) -> Path:
    """Check that a file exists and return its path."""
    path = Path(path).expanduser()
    came = f"{str(path)!r}, a folder" if path.is_dir() else f"{str(path)!r}, which does not exist"
    expected = "the data must be an existing file"
    if not path.is_file():
        raise FileNotFoundError(_checks.message(expected, came, "check the path"))
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces another one atomically.

    A kill, an error in the block or a full disk leaves the old file, or none. Links are followed
    and permissions kept. A device or a pipe is written to directly.

    Args:
        path: The file; its folder must exist.

    Yields:
        The file to write to.

    Raises:
        OSError: If it cannot be written; no partial file remains.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "a.txt") as file:
        ...         _ = file.write(b"whole")
        ...     sorted(os.listdir(folder))
        ['a.txt']
    """
    target, found = Path(os.path.realpath(path)), None
    try:
        with contextlib.suppress(FileNotFoundError):
            found = target.stat()
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if found is not None and not stat.S_ISREG(found.st_mode):
            with open(target, "wb") as device:
                yield device
            return
        # A unique name, so that two processes never write into the same file.
        temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(descriptor, "w+b") as file:
                if found is not None and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
                yield file
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, target)
            _sync_folder(target.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise type(error)(
            error.errno,
            _checks.message(
                f"{path} must be writable",
                error.strerror or str(error),
                "free space or choose another place; what was there before is unchanged",
            ),
        ) from error


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Replace a file in one step, as `replacing` does.

    Args:
        path: The file; its folder must exist.
        content: Text (written as UTF-8, invalid characters escaped) or bytes.

    Raises:
        OSError: If it cannot be written; no partial file remains.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomically(Path(folder) / "a.txt", "whole")
        ...     sorted(os.listdir(folder))
        ['a.txt']
    """
    if isinstance(content, str):
        content = content.encode(errors="backslashreplace")
    data = memoryview(content)
    with replacing(path) as file:
        while data:
            data = data[os.write(file.fileno(), data) :]


def append_line(path: Path, text: str) -> None:
    r"""Append a line to a file in one write; create file and folder if needed.

    Several processes may append to one file, even from several machines. After a truncated line
    (from a kill or a full disk) the new text starts on its own line.

    Raises:
        OSError: If the line cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     append_line(Path(folder) / "new" / "a.txt", "one")
        ...     append_line(Path(folder) / "new" / "a.txt", "two")
        ...     (Path(folder) / "new" / "a.txt").read_text()
        'one\ntwo\n'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (text + "\n").encode()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        with contextlib.suppress(OSError):  # the file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(descriptor, line)
        if written != len(line):
            short = f"{os.strerror(errno.ENOSPC)}: {written} of {len(line)} bytes were written"
            raise OSError(errno.ENOSPC, short)
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(
            error.errno,
            _checks.message(
                f"{path} must take one more line",
                error.strerror or str(error),
                "free space and start the same command again: the finished run is kept",
            ),
        ) from error
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # Windows and some file systems cannot do this. The file itself is synced and in place.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
