"""Downloaded data sets: their files, conversion to arrays, and checks.

A data set is one archive, `sequence/NAME.npz` or `graph/NAME.npz`, in the data folder. If it is
missing, the files of its canonical source are downloaded, converted to that archive, checked and
stored. Files placed by the user in the folder `raw` beside it are used instead of a download. The
check covers the content of the arrays, not the bytes of the archive, so it does not depend on the
version of the compressor.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
import wave
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.download import DownloadError, data_folder, download

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RemoteFile:
    """A file at its original source.

    Attributes:
        url: Its address.
        checksum: "sha256:" or "md5:" and the hexadecimal digest; None if the content is checked.
        file: Name of the file, if the address does not end with it.

    Example:
        >>> RemoteFile("https://example.org/data/a.zip", None).url[-5:]
        'a.zip'
    """

    url: str
    checksum: str | None
    file: str = ""

    @property
    def name(self) -> str:
        """The file's name."""
        return self.file or self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Source:
    """A data set stored as `<folder>/<name>.npz`.

    Attributes:
        name: Name of the archive.
        files: Files to download; empty without a download, or if `make` downloads.
        prepare: Converts the downloaded files, in the order of `files`, to the arrays.
        digest: `arrays_digest` of the arrays. None if unknown: the digest of the first arrays is
            then stored in `NAME.sha256` beside the archive, and later arrays must match it.
        form: Shape and type of every array; empty if the digest suffices.
        folder: Folder of the archive in the data folder, "sequence", "graph" or "ucr".
        make: Custom function that makes the arrays, given an empty folder and whether to show
            progress. Raises a DownloadError on failure.
        preferred: A data set to read instead, if its archive is in the folder.

    Example:
        >>> Source("mine").name
        'mine'
    """

    name: str
    files: tuple[RemoteFile, ...] = ()
    prepare: Callable[[Sequence[Path]], Arrays] | None = None
    digest: str | None = None
    form: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    folder: str = "sequence"
    make: Callable[[Path, bool], Arrays] | None = None
    preferred: Source | None = None


def load_arrays(source: Source, data_dir: Path | None = None, *, progress: bool = True) -> Arrays:
    """Read the arrays of a data set; download and prepare it first if it is missing.

    Source files in the folder `raw` beside it are used instead of downloads.

    Args:
        source: The data set.
        data_dir: The folder with `sequence/` and `graph/`; see `data_folder`.
        progress: Whether to show a progress bar for a download.

    Raises:
        FileNotFoundError: If it is missing and cannot be downloaded; the message lists the required
            files.
        OSError: If it cannot be stored.
        ValueError: If the content differs from the data set, or a file in `raw` is damaged.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "sequence").mkdir()
        >>> np.savez(folder / "sequence" / "mine.npz", x=np.arange(3))
        >>> load_arrays(Source("mine"), folder)["x"].tolist()
        [0, 1, 2]
    """
    path = data_folder(data_dir) / source.folder / f"{source.name}.npz"
    if source.preferred is not None and path.with_name(f"{source.preferred.name}.npz").is_file():
        return load_arrays(source.preferred, data_dir)
    if path.is_file():
        arrays = _read(path)
        _check(source, arrays, str(path), "delete it, so that it is made afresh")
        _check_record(source, arrays, path)
        return arrays
    if source.prepare is None and source.make is None:
        came = "no such file, and it cannot be downloaded"
        advice = f"put it there, or set ANHARMONIC_DATA to the folder that holds {source.folder}/"
        raise FileNotFoundError(message(f"{path} must exist", came, advice))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{source.name}-", dir=path.parent) as folder:
            arrays = _make(source, path.parent / "raw", Path(folder), progress)
            _check_record(source, arrays, path)
            made = Path(folder) / path.name
            with made.open("wb") as out:
                np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # numpy types all as bool
                out.flush()
                os.fsync(out.fileno())
            os.replace(made, path)
        if source.digest is None:
            path.with_suffix(".sha256").write_text(arrays_digest(arrays) + "\n", encoding="ascii")
    except DownloadError as error:
        raise FileNotFoundError(_by_hand(source, path, error.reason)) from error
    except OSError as error:
        expected = f"{path} must be writable, to keep the data set {source.name}"
        came = error.strerror or str(error).rstrip(".")
        advice = "free space, or name another folder with --data-dir or ANHARMONIC_DATA"
        raise OSError(error.errno, message(expected, came, advice)) from error
    return arrays


def _make(source: Source, raw: Path, folder: Path, progress: bool) -> Arrays:
    """Make the arrays from files in `raw`, or from downloads of missing ones."""
    if source.prepare is None:
        assert source.make is not None
        arrays = source.make(folder, progress)
        _check(source, arrays, source.name, "the source was changed: use an earlier copy")
        return arrays
    paths = []
    for file in source.files:
        path = raw / file.name
        if path.is_file():
            _check_sum(path, file.checksum)
        else:
            path = folder / file.name
            download(file.url, path, file.checksum, progress=progress)
        paths.append(path)
    where = str(paths[0]) if paths[0].parent == raw else source.files[0].url
    try:
        arrays = source.prepare(paths)
    except (
        EOFError, LookupError, gzip.BadGzipFile, tarfile.TarError, wave.Error, zipfile.BadZipFile,
        ValueError, AssertionError
    ) as error:  # fmt: skip
        if isinstance(error, ValueError) and "; got " in str(error):
            raise  # its message is already complete
        came = f"{type(error).__name__}: {str(error).rstrip('.')}"
        expected = f"{where} must be a sound archive"
        raise ValueError(message(expected, came, "download it again")) from error
    _check(source, arrays, where, "download it again; if it stays so, the source was changed")
    return arrays


def _by_hand(source: Source, path: Path, reason: str) -> str:
    """Return advice for users without a connection."""
    wanted = path.with_name(f"{(source.preferred or source).name}.npz")
    by_hand = ""
    if source.files:
        count = len(source.files)
        files = "this file" if count == 1 else f"these {count} files"
        by_hand = f"or put {files} into {path.parent / 'raw'} and start again: " + ", ".join(
            f"{file.url} as {file.file}" if file.file else file.url for file in source.files
        )
        by_hand += "; "
    return message(
        f"the data set {wanted.stem} must lie at {wanted}, or be downloaded",
        f"no such file, and the download failed ({reason})",
        f"try again; {by_hand}"
        f"or copy {wanted.name} from a computer that has it into {path.parent}; "
        "or name another folder with --data-dir or ANHARMONIC_DATA",
    )


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the names, types, shapes and values of arrays."""
    digest = hashlib.sha256()
    for key in sorted(arrays):
        value = arrays[key]
        digest.update(f"{key} {value.dtype.str} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        expected, advice = f"{path} must be a readable .npz archive", "delete it to make it afresh"
        raise ValueError(message(expected, str(error).rstrip("."), advice)) from error


def _check(source: Source, arrays: Arrays, where: str, advice: str) -> None:
    """Compare arrays with the digest and form of the data set."""
    for key, (shape, dtype) in source.form.items():
        names = ", ".join(source.form)
        require(key in arrays, f"arrays of {where}", sorted(arrays), names, advice)
        value = arrays[key]
        came, wanted = f"{list(value.shape)} {value.dtype}", f"{list(shape)} {dtype}"
        require(came == wanted, f"{key} of {where}", came, wanted, advice)
    if source.digest is not None:
        digest, name = arrays_digest(arrays), f"digest of the arrays of {where}"
        require(digest == source.digest, name, digest, source.digest, advice)


def _check_record(source: Source, arrays: Arrays, path: Path) -> None:
    """Compare arrays without a known digest with the first ones made."""
    record = path.with_suffix(".sha256")
    if source.digest is None and record.is_file():
        found, wanted = arrays_digest(arrays), record.read_text(encoding="ascii").strip()
        advice = f"the data changed; delete {record.name} and {path.name} if the new ones are right"
        require(found == wanted, f"digest of {path}", found, f"{wanted}, as at first use", advice)


def _check_sum(path: Path, checksum: str | None) -> None:
    """Check a file placed by the user."""
    if checksum is None:
        return
    kind, _, wanted = checksum.partition(":")
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, lambda: hashlib.new(kind, usedforsecurity=False))
    advice = "download it again, or remove it; it is cut or another file"
    require(digest.hexdigest() == wanted, f"{kind} of {path}", digest.hexdigest(), wanted, advice)
