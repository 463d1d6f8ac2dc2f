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

from anharmonic._checks import choice, message, missing_extra

_CHUNK = 1 << 20


def data_folder(data_dir: Path | str | None = None) -> Path:
    """The folder that holds `sequence/`.

    Args:
        data_dir: The folder, if the user named one; else the environment variable
            `ANHARMONIC_DATA`, else a cache of the user: `$XDG_CACHE_HOME/anharmonic` or
            `~/.cache/anharmonic`, on macOS `~/Library/Caches/anharmonic`.

    Example:
        >>> data_folder("somewhere").name
        'somewhere'
    """
    named = data_dir or os.environ.get("ANHARMONIC_DATA")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "anharmonic"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "anharmonic"


def fetch(url: str, destination: Path, checksum: str | None, *, progress: bool = True) -> Path:
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
        ConnectionError: If the server cannot be reached, refuses, or stops in the middle.
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
                bar = bar or _bar(destination.name, announced, progress)
                out.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                bar.update(len(chunk))
            if bar is not None:
                bar.close()
            if received < announced:
                raise ConnectionError(
                    message(
                        f"{url} must arrive whole ({announced} bytes)",
                        f"{received} bytes, then the connection ended",
                        f"try again, or download it elsewhere and put it at {destination}",
                    )
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
        raise ConnectionError(
            message(
                f"{url} must be reachable",
                str(error).rstrip(".") or type(error).__name__,
                f"try again, or download it elsewhere and put it at {destination}",
            )
        ) from error


class _NoBar:
    def update(self, count: int) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Shows nothing."""


def _bar(name: str, total: int, progress: bool) -> Any:
    if not progress:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise missing_extra("tqdm", "train", "the progress bar of a download") from error
    bar: Any = tqdm(total=total or None, desc=name, unit="B", unit_scale=True)
    return bar
