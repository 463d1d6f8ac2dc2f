"""Files: there before they are read, and written whole or not at all."""

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
"""Ending of files that are being written; a kill leaves them behind."""


def existing(path: Path | str) -> Path:
    """Check that a file is there and return its path.

    Raises:
        FileNotFoundError: If not.
    """
    path = Path(path).expanduser()
    came = f"{path} ({'a folder' if path.is_dir() else 'nothing there'})"
    _checks.require(
        path.is_file(), "file", came, "an existing file", "check the path", FileNotFoundError
    )
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another one, whole or not at all.

    A kill, an error in the block or a full disk leaves what was there before, or nothing. A link is
    followed, permissions are kept, and a device or a pipe is written to directly.

    Args:
        path: The file; its folder must exist.

    Yields:
        The file to write to.

    Raises:
        OSError: If it cannot be written; nothing is left behind.

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
        # A name of its own, so that two processes never write into each other's file.
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
        content: Text (written as UTF-8, what is no character as its number) or bytes.

    Raises:
        OSError: If it cannot be written; nothing is left behind.

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
    r"""Add a line to a file, in one write; makes file and folder if needed.

    Several processes, of several machines too, may add to one file. A line that a kill or full disk
    cut short is left as it is, and the new one starts on a line of its own.

    Args:
        path: The file.
        text: The line, without its end.

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
        with contextlib.suppress(OSError):  # a file system without locks
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
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
