"""Reading of sequence files by their ending, and digests of files."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message, require
from anharmonic._files import existing
from anharmonic.data.columns import ROLES, Columns
from anharmonic.data.registry import SHARDS_INDEX
from anharmonic.data.sequences import Floats, Sequences

_OPTION = re.compile("--[a-z]|_column")

# Every reader is imported by the first file of its kind.


def read_parts(
    path: Path | str,
    *,
    targets: bool = True,
    columns: Columns | None = None,
    pair: bool = True,
) -> dict[str, Sequences]:
    """Read the sequences of a file, by its ending, or of a folder of recordings.

    Args:
        path: The file or folder. For a pair `NAME_TRAIN.ts`, `NAME_TEST.ts` (or tables) the other
            file is read too.
        targets: Whether to read targets; otherwise only this file's inputs are read.
        columns: Roles of a table's columns, and how to find labels and groups in a folder; open
            roles are inferred.
        pair: Whether to read the other file of a pair too, if targets are read.

    Returns:
        The sequences by part: "all", or "train", "test" and optionally "valid".

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the ending is unknown, the file is damaged, or columns are named for a file
            without columns.
        ImportError: If pyarrow is missing for a table (extra "train").

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> np.savez(path, x=np.zeros((4, 5, 2), "f4"), y=np.array([0, 1, 0, 1]))
        >>> list(read_parts(path))
        ['all']
    """
    try:
        return _parts(existing_data(path), targets, columns, pair)
    except ValueError as error:
        came, _, advice = str(error).rpartition("; ")
        if columns is None or not columns.found or not _OPTION.search(advice):
            raise
        # Only training takes these options; later files are read with the stored ones.
        first = "correct the file, or train again with other options"
        raise ValueError(f"{came}; {first}: {advice}") from error


def _parts(path: Path, targets: bool, columns: Columns | None, pair: bool) -> dict[str, Sequences]:
    """Read the sequences of a file or folder by part, as `read_parts` does."""
    given = columns or Columns()
    if path.name == SHARDS_INDEX or (path / SHARDS_INDEX).is_file():
        expected = f"{path.name} must be a file of sequences or a folder of recordings"
        advice = "save the sequences in a file with numpy.savez(file, x=...)"
        raise ValueError(message(expected, "shards, which only train reads", advice))
    if path.is_dir():
        from anharmonic.data.npz import known_key
        from anharmonic.data.recordings import data_files, read_folder

        # Arrays named like an archive's keys form one archive.
        files = [file for file in data_files(path) if file.suffix.lower() in FILE_SUFFIXES]
        named = {known_key(file.stem): file for file in files if file.suffix.lower() == ".npy"}
        first = named.get("x", named.get("x_train"))
        if first is None or None in named or len(named) < len(files):
            return read_folder(path, given, targets)
        path = first
    parts: dict[str, Sequences] = {}
    for name, file in _files(path, pair=targets and pair).items():
        read = READERS[_form(path)](file, targets, given)
        if columns is not None and columns.folder:
            # A file beside those of the folder is named as they are.
            read = {key: _named(part, file.name) for key, part in read.items()}
        parts |= {name if key == "all" else key: part for key, part in read.items()}
        given = next(iter(read.values())).columns or given  # read a pair alike
    return parts


def _named(part: Sequences, name: str) -> Sequences:
    """Give a single recording without an id this name."""
    return replace(part, ids=np.array([name])) if part.ids is None and len(part) == 1 else part


class Recordings(NamedTuple):
    """Recordings in the form that estimators take.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("up", "down"):
        ...     _ = (folder / name).mkdir(), np.save(folder / name / "1.npy", np.zeros((5, 2)))
        >>> found = read_recordings(folder)
        >>> len(found.x), sorted(map(str, found.y))
        (2, ['down', 'up'])
    """

    x: list[Floats]
    """The channels of every recording, `[C, T]`."""
    y: NDArray[Any] | list[NDArray[Any]] | None
    """The target of every recording, or the targets of all its steps, or None."""
    groups: NDArray[Any] | None
    """The subject or machine of every recording; None if unknown."""
    ids: NDArray[Any] | None
    """Name of every recording (its file, for a folder), or None."""
    columns: Columns | None
    """Roles of the columns; `read_recordings(new, columns=...)` reads new data the same way."""


def read_recordings(
    path: Path | str, *, columns: Columns | None = None, targets: bool = True
) -> Recordings:
    r"""Read a folder or file for estimators, like the commands.

    A column of times orders the samples and is then left out of `x`. `columns.time` names it.
    `Columns(time="none")` keeps the file's order and reads numeric times as a channel.

    Args:
        path: A folder with one file per recording, or a file as in `FileTask`.
        columns: How to find labels and groups, or the `columns` of earlier recordings.
        targets: Whether to read targets.

    Raises:
        FileNotFoundError: If the file or folder is missing.
        ValueError: If the data are damaged, ambiguous or already split into parts.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("up-1", "up-2", "down-1"):
        ...     np.save(folder / f"{name}.npy", np.arange(30.0))
        >>> found = read_recordings(folder, columns=Columns(label_pattern=r"^(\w+)-"))
        >>> found.x[0].shape, found.y.tolist(), found.ids.tolist()
        ((1, 30), ['down', 'up', 'up'], ['down-1.npy', 'up-1.npy', 'up-2.npy'])
    """
    parts = read_parts(path, targets=targets, columns=columns, pair=False)
    advice = "read the folder of one part, or use train"
    require("all" in parts, f"parts of {Path(path).name}", sorted(parts), "one", advice)
    part, y = parts["all"], parts["all"].y
    ends = part.offsets[1:-1]
    return Recordings(
        [x.T for x in np.split(part.x, ends)],
        np.split(y, ends) if y is not None and part.per_step else y,
        part.groups,
        part.ids,
        part.columns,
    )


def existing_data(path: Path | str) -> Path:
    """Check that a file or folder exists and return its path."""
    path = Path(path).expanduser()
    return path if path.is_dir() else existing(path)


def is_graph_file(path: Path) -> bool:
    """Whether a file, which need not exist, holds a graph, judged by the names in it."""
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "edge_index.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):  # the reader reports the error
        return False


def file_digest(path: Path | str) -> str:
    """Return the SHA-256 digest of a data file, or of a pair `_TRAIN` and `_TEST`.

    For a folder the digest covers all files with their paths.

    Raises:
        FileNotFoundError: If a file is missing.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.csv"
        >>> _ = path.write_text("x,y")
        >>> file_digest(path)[:8]
        '968e772c'
    """
    path = existing_data(path)
    if path.is_dir():
        from anharmonic.data.recordings import data_files

        digests = [
            # A recording may be called bus_train without a bus_test.
            f"{file.relative_to(path).as_posix()} {_digest(file, pair=False)}"
            for file in data_files(path)
        ]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()
    return _digest(path, pair=True)


def _digest(path: Path, pair: bool) -> str:
    """Return the digest of a file, of its pair, or of all arrays beside `x.npy`."""
    files = _files(path, pair=pair)
    if path.suffix.lower() == ".npy":
        from anharmonic.data.npz import arrays_beside

        files = arrays_beside(path)
    digests = []
    for file in files.values():
        with file.open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256").hexdigest())
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def checked_digest(path: Path, expected: str | None) -> str:
    """Return the digest of a data file, and refuse another one than expected, if any."""
    digest = file_digest(path)
    advice = "give the file of the run, or start a new run with this one"
    if expected is not None:
        require(digest == expected, f"sha256 of {path.name}", digest, expected, advice)
    return digest


def _arrays(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.mat import read_mat
    from anharmonic.data.npz import read_npz

    _without_columns(path, columns)
    return (read_mat if path.suffix.lower() == ".mat" else read_npz)(path, targets=targets)


def _ts(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.ts import read_ts

    del targets  # existing labels have to be skipped anyway
    _without_columns(path, columns)
    return {"all": read_ts(path)}


def _npy(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.npz import arrays_beside, parts_of
    from anharmonic.data.recordings import read_one
    from anharmonic.data.recordings.signals import load_array

    if columns.found and columns.folder:  # a recording like those of training
        return {"all": read_one(path, columns)}
    _without_columns(path, columns)
    arrays = {key: load_array(file, file.name) for key, file in arrays_beside(path).items()}
    if targets and not any(key.startswith("y") for key in arrays):
        expected = f"the targets of {path.name} must lie beside it"
        advice = "save x.npy and y.npy in one folder, or give a folder with a file per recording"
        raise ValueError(message(expected, "none", advice))
    if list(arrays) == ["x"] and arrays["x"].ndim == 1:
        arrays["x"] = arrays["x"][None]
    return parts_of(arrays, path, targets=targets)


def _tsf(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.tsf import read_tsf

    _without_columns(path, columns)
    if targets:
        expected, advice = f"series of {path.name} must be forecast", "say how far: --horizon 12"
        raise ValueError(message(expected, "no horizon", advice))
    return {"all": read_tsf(path)}


def _recording(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.recordings import read_one

    if targets:
        expected = f"{path.name} must lie in a folder with a file for every recording"
        advice = "give the folder: its recordings are found and labelled"
        raise ValueError(message(expected, "a file alone", advice))
    return {"all": read_one(path, columns)}


def _table(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    from anharmonic.data.tables import read_table  # needs pyarrow

    return {"all": read_table(path, columns, targets)}


def _without_columns(path: Path, columns: Columns) -> None:
    named = {f"{role}_column": name for role in ROLES if (name := getattr(columns, role))}
    named |= {n: v for n in ("ignore", "date_format") if (v := getattr(columns, n))}
    expected, advice = f"none: {path.suffix} has none", "or give a table (.csv, .parquet)"
    fits = columns.found or not named
    require(fits, f"columns of {path.name}", named, expected, f"leave them out, {advice}")


READERS: dict[str, Callable[[Path, bool, Columns], dict[str, Sequences]]] = {
    ".npz": _arrays,
    ".ts": _ts,
    ".csv": _table,
    ".tsv": _table,
    ".txt": _table,
    ".parquet": _table,
    ".wav": _recording,
    ".edf": _recording,
    ".bdf": _recording,
    ".hea": _recording,
    ".npy": _npy,
    ".mat": _arrays,
    ".tsf": _tsf,
}
FILE_SUFFIXES = tuple(READERS)
# Convention of the archives: NAME_TRAIN.ts and NAME_TEST.ts form one data set.
PAIRED = (".ts", ".csv", ".tsv", ".txt", ".parquet")


def _form(path: Path) -> str:
    ending = path.suffix.lower()
    if ending == ".arff":
        advice = "take the .ts files of the same archive"
        raise ValueError(message("data must be in a file of another form", path.name, advice))
    return choice("ending of the file", ending, READERS)


def _files(path: Path, *, pair: bool) -> dict[str, Path]:
    """Return the file or its pair by part, training first."""
    if not pair or path.suffix.lower() not in PAIRED:
        return {"all": path}
    for mine, other in (("_TRAIN", "_TEST"), ("_TEST", "_TRAIN")):
        for written in (str.upper, str.lower):
            if path.stem.endswith(written(mine)):
                stem = path.stem.removesuffix(written(mine))
                partner = existing(path.with_name(stem + written(other) + path.suffix))
                train, test = (path, partner) if mine == "_TRAIN" else (partner, path)
                return {"train": train, "test": test}
    return {"all": path}
