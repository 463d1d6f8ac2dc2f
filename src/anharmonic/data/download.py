"""Where data lie, and how a file gets there: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from anharmonic._checks import choice, message, missing_extra

_CHUNK = 1 << 20


class DownloadError(ConnectionError):
    """A file did not arrive.

    Attributes:
        reason: Why, without the rest of the message.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def data_folder(data_dir: Path | str | None = None) -> Path:
    """The folder that holds `sequence/` and `graph/`.

    Args:
        data_dir: The folder, if the user named one; else the environment variable
            `ANHARMONIC_DATA`, else a cache of the user: `$XDG_CACHE_HOME/anharmonic` or
            `~/.cache/anharmonic`, on macOS `~/Library/Caches/anharmonic`.

    Example:
        >>> data_folder("somewhere").name
        'somewhere'
    """
    named = data_dir or os.environ.get("ANHARMONIC_DATA")
    return Path(named).expanduser() if named else cache_folder()


def cache_folder() -> Path:
    """The user's cache, which takes what is made or downloaded where no folder is named.

    Example:
        >>> cache_folder().name
        'anharmonic'
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "anharmonic"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "anharmonic"


def download(url: str, destination: Path, checksum: str | None, *, progress: bool = True) -> Path:
    """Downloads a file.

    The bytes go to a temporary file beside the destination, which is renamed only when it is
    complete and its checksum is right. An existing destination is replaced.

    Args:
        url: What to download, `http`, `https` or `file`.
        destination: Where to put it; missing folders are made.
        checksum: "sha256:" or "md5:" and the hexadecimal digest; None for a file that is checked
            by its content later.
        progress: Whether to show a progress bar.

    Returns:
        The destination.

    Raises:
        DownloadError: A ConnectionError: the server cannot be reached, refuses, or stops in the
            middle.
        ValueError: If the checksum is wrong or of an unknown kind.
        ImportError: If a progress bar is wanted and `tqdm` is missing.
    """
    kind, _, wanted = (checksum or "sha256:").partition(":")
    choice("checksum kind", kind, ("sha256", "md5"))
    digest = hashlib.new(kind, usedforsecurity=False)
    destination.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{destination.name}.", dir=destination.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            received, announced = 0, 0
            bar = None
            for announced, chunk in _chunks(url, destination):
                bar = bar or progress_bar(destination.name, announced, progress)
                out.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                bar.update(len(chunk))
            if bar is not None:
                bar.close()
            if received < announced:
                reason = f"{received} bytes, then the connection ended"
                raise DownloadError(
                    message(
                        f"{url} must arrive whole ({announced} bytes)",
                        reason,
                        f"try again, or download it elsewhere and put it at {destination}",
                    ),
                    reason,
                )
            out.flush()
            os.fsync(out.fileno())
        if wanted and digest.hexdigest() != wanted:
            raise ValueError(
                message(
                    f"{url} must have the {kind} checksum {wanted}",
                    digest.hexdigest(),
                    "try again; if it stays so, the file at the source was changed",
                )
            )
        os.replace(part, destination)
    finally:
        part.unlink(missing_ok=True)
    return destination


def _chunks(url: str, destination: Path) -> Iterator[tuple[int, bytes]]:
    """Gives (announced size, bytes) piece by piece; only trouble with the source is translated."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            announced = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(_CHUNK):
                yield announced, chunk
    except (HTTPException, OSError) as error:  # URLError is an OSError
        reason = _reason(error)
        raise DownloadError(
            message(
                f"{url} must be reachable",
                reason,
                f"try again, or download it elsewhere and put it at {destination}",
            ),
            reason,
        ) from error


def _reason(error: Exception) -> str:
    """Why a download failed, in the system's words, without the wrapping of `urllib`."""
    cause = error
    if isinstance(error, URLError) and not isinstance(error, HTTPError):
        if not isinstance(error.reason, Exception):
            return str(error.reason)
        cause = error.reason
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    if isinstance(error, HTTPError):
        text = str(error)
    return text.rstrip(".") or type(cause).__name__


def verify(path: Path, checksum: str | None) -> None:
    """Checks a file that a person put there.

    Args:
        path: The file.
        checksum: As in `fetch`; None for a file that is checked by its content later.

    Raises:
        ValueError: If the checksum is wrong or of an unknown kind.
    """
    if checksum is None:
        return
    kind, _, wanted = checksum.partition(":")
    choice("checksum kind", kind, ("sha256", "md5"))
    with path.open("rb") as content:
        found = hashlib.file_digest(
            content, lambda: hashlib.new(kind, usedforsecurity=False)
        ).hexdigest()
    if found != wanted:
        raise ValueError(
            message(
                f"{path} must have the {kind} checksum {wanted}",
                found,
                "download it again, or remove it; it is cut or another file",
            )
        )


class _NoBar:
    def update(self, count: int) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""


def progress_bar(name: str, total: int, progress: bool, unit: str = "B") -> Any:
    """A bar with `update(count)` and `close()`.

    Args:
        name: What stands before it.
        total: How much there is; 0 if not known.
        progress: Whether it is shown.
        unit: What is counted.

    Raises:
        ImportError: If it is to be shown and `tqdm` is missing.
    """
    if not progress:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise missing_extra("tqdm", "train", "a progress bar") from error
    bar: Any = tqdm(total=total or None, desc=name, unit=unit, unit_scale=True)
    return bar
