"""The data folder, and checked, atomic downloads into it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from anharmonic._checks import message, missing_extra

RETRIES = 2
# Seconds before a connection's speed is checked, and the smallest average speed in bytes/s.
_PATIENCE = 15.0
_LEAST_SPEED = 1000
# Limits of one attempt in seconds and bytes, far above any data set here.
_LONGEST = 6 * 3600.0
_LARGEST = 32 << 30


class DownloadError(ConnectionError):
    """A download failed.

    Attributes:
        reason: The reason, without the rest of the message.

    Example:
        >>> DownloadError("a.zip must be reachable; got no answer; try later.", "no answer").reason
        'no answer'
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def data_folder(data_dir: Path | str | None = None) -> Path:
    """Return the folder that contains `sequence/` and `graph/`.

    Args:
        data_dir: The user's choice of folder. Otherwise the environment variable `ANHARMONIC_DATA`,
            or a per-user cache: `$XDG_CACHE_HOME/anharmonic` or `~/.cache/anharmonic`, on macOS
            `~/Library/Caches/anharmonic`.

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
    """Download a file with pooch, with retries; a failure leaves no partial file.

    The checksum is "sha256:" or "md5:" and the hexadecimal digest, or None for a file whose content
    is checked later. Servers that send less than 1000 bytes per second, for more than six hours or
    more than 32 GiB raise a DownloadError.
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
        expected, came = f"{url} must have the checksum {checksum}", str(error).rstrip(".")
        advice = "try again; if it stays so, the file at the source was changed"
        raise ValueError(message(expected, came, advice)) from error


def _stream(url: str, path: Path, bar: Any) -> None:
    """Write the response of an address to a file; abort connections that are too slow."""
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
    """Return the system's message of the first cause, which `requests` wraps several times."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")
