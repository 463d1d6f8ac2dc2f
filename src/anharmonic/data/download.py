"""Where data lie, and how a file gets there: whole and checked, or not at all."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from anharmonic._checks import message, missing_extra

RETRIES = 2
# Seconds before a connection is judged, and the bytes a second it has to bring on average.
_PATIENCE = 15.0
_LEAST_SPEED = 1000
# The most of one attempt, in seconds and bytes: no data set here comes near.
_LONGEST = 6 * 3600.0
_LARGEST = 32 << 30


class DownloadError(ConnectionError):
    """A download failed.

    Attributes:
        reason: Why, without the rest of the message.

    Example:
        >>> DownloadError("a.zip must be reachable; got no answer; try later.", "no answer").reason
        'no answer'
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def data_folder(data_dir: Path | str | None = None) -> Path:
    """Return the folder that has `sequence/` and `graph/`.

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
    """Return the user's cache folder, for generated and downloaded data.

    Example:
        >>> cache_folder().name
        'anharmonic'
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "anharmonic"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "anharmonic"


def download(url: str, destination: Path, checksum: str | None, *, progress: bool = True) -> None:
    """Download a file with pooch; a failure is tried again, and leaves nothing behind.

    Args:
        url: What to download, `http` or `https`.
        destination: Where to put it; missing folders are made.
        checksum: "sha256:" or "md5:" and the hexadecimal digest; None for a file that is checked
            by its content later.
        progress: Whether to show a progress bar.

    Raises:
        DownloadError: A ConnectionError: the server cannot be reached, refuses, stops in the
            middle, sends less than 1000 bytes a second, or sends for more than six hours or more
            than 32 GiB.
        ValueError: If the checksum is wrong.
        ImportError: If `pooch` or `tqdm` is missing.
    """
    try:
        import pooch
        from requests import RequestException
        from tqdm import tqdm
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise missing_extra("pooch", "train", "a download") from error
    pooch.get_logger().setLevel("WARNING")
    name = destination.name
    files = pooch.create(
        destination.parent, "", registry={name: checksum}, urls={name: url}, retry_if_failed=RETRIES
    )

    def fetch(address: str, path: str, _: Any) -> None:
        with tqdm(total=0, desc=name, unit="B", unit_scale=True, disable=not progress) as bar:
            _stream(address, Path(path), bar)

    try:
        files.fetch(name, downloader=fetch)
    except (RequestException, HTTPError) as error:
        reason = _reason(error)
        advice = f"try again, or download it elsewhere and put it at {destination}"
        raise DownloadError(message(f"{url} must be reachable", reason, advice), reason) from error
    except ValueError as error:
        raise ValueError(
            message(
                f"{url} must have the checksum {checksum}",
                str(error).rstrip("."),
                "try again; if it stays so, the file at the source was changed",
            )
        ) from error


def _stream(url: str, path: Path, bar: Any) -> None:
    """Write what an address gives, as it comes; gives up a connection that hardly moves."""
    import requests

    with requests.get(url, stream=True, timeout=60) as response, path.open("wb") as file:
        response.raise_for_status()
        announced = int(response.headers.get("content-length", 0))
        if announced > _LARGEST:
            raise requests.ConnectionError(f"{announced} bytes announced, {_LARGEST} at most")
        bar.reset(announced)
        began, count = time.monotonic(), 0
        while chunk := response.raw.read1(1 << 20, decode_content=True):
            file.write(chunk)
            count += len(chunk)
            bar.update(len(chunk))
            seconds = time.monotonic() - began
            if count > _LARGEST or seconds > _LONGEST:
                text = f"{count} bytes in {seconds:.0f} s and no end, {_LARGEST} bytes and "
                raise requests.ConnectionError(f"{text}{_LONGEST:.0f} s at most")
            if seconds > _PATIENCE and count < _LEAST_SPEED * seconds:
                text = (
                    f"{count} bytes in {seconds:.0f} s, slower than {_LEAST_SPEED} bytes a second"
                )
                raise requests.ConnectionError(text)


def _reason(error: BaseException) -> str:
    """The first cause, in the system's words; `requests` wraps it several times."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")
