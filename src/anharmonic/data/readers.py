"""Files of sequences: which reader reads which, and the digest that names what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from anharmonic._checks import choice, message, missing_extra, require
from anharmonic.data.columns import ROLES, Columns
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.sequences import Sequences
from anharmonic.data.ts import read_ts


def read_parts(
    path: Path | str,
    *,
    targets: bool = True,
    columns: Columns | None = None,
    pair: bool = True,
) -> dict[str, Sequences]:
    """Reads the sequences of a file, by the reader of its ending.

    Args:
        path: The file; of a pair `NAME_TRAIN.ts`, `NAME_TEST.ts` (or another ending of a table)
            the other one is read too.
        targets: Whether targets are wanted; else only this file's inputs are read.
        columns: Of a table, which column is what; what is left open is found.
        pair: Whether the other file of a pair is wanted too, if targets are.

    Returns:
        The sequences by part: "all", or "train", "test" and perhaps "valid".

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If no reader knows the ending, the file is damaged, or columns are named of a
            file that has none.
        ImportError: If a table is to be read without pyarrow (extra "train").
    """
    path = existing(path)
    given = columns or Columns()
    parts: dict[str, Sequences] = {}
    for name, file in _files(path, pair=targets and pair).items():
        read = READERS[_form(path)](file, targets, given)
        parts |= {name if key == "all" else key: part for key, part in read.items()}
        given = next(iter(read.values())).columns or given  # both files of a pair are read alike
    return parts


def file_digest(path: Path | str) -> str:
    """SHA-256 of a data file, 64 hexadecimal digits; of a pair `_TRAIN`, `_TEST` both count.

    Raises:
        FileNotFoundError: If a file is missing.
    """
    digests = []
    for file in _files(existing(path), pair=True).values():
        with file.open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256").hexdigest())
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def checked_digest(path: Path, expected: str | None) -> str:
    """The digest of a data file.

    Args:
        path: The file.
        expected: The digest that it should have; None for any.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the digest is another one.
    """
    digest = file_digest(path)
    advice = "give the file of the run, or start a new run with this one"
    if expected is not None:
        require(digest == expected, f"sha256 of {path.name}", digest, expected, advice)
    return digest


def _npz(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    _without_columns(path, columns)
    return read_npz(path, targets=targets)


def _ts(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    del targets  # a label that is there has to be read over anyway
    _without_columns(path, columns)
    return {"all": read_ts(path)}


def _table(path: Path, targets: bool, columns: Columns) -> dict[str, Sequences]:
    try:
        from anharmonic.data.tables import read_table
    except ModuleNotFoundError as error:
        raise missing_extra("pyarrow", "train", f"reading {path.suffix} files") from error
    return {"all": read_table(path, columns, targets)}


def _without_columns(path: Path, columns: Columns) -> None:
    if not columns.found:
        named = {f"{role}_column": name for role in ROLES if (name := getattr(columns, role))}
        named |= {n: v for n in ("ignore", "date_format") if (v := getattr(columns, n))}
        advice = "leave them out, or give a table (.csv, .parquet)"
        require(
            not named, f"columns of {path.name}", named, f"none: {path.suffix} has none", advice
        )


READERS: dict[str, Callable[[Path, bool, Columns], dict[str, Sequences]]] = {
    ".npz": _npz,
    ".ts": _ts,
    ".csv": _table,
    ".tsv": _table,
    ".txt": _table,
    ".parquet": _table,
}
FILE_SUFFIXES = tuple(READERS)
# Archives' habit: NAME_TRAIN.ts and NAME_TEST.ts are one data set.
PAIRED = FILE_SUFFIXES[1:]


def _form(path: Path) -> str:
    ending = path.suffix.lower()
    if ending == ".arff":
        advice = "take the .ts files of the same archive"
        raise ValueError(message("data must be in a file of another form", path.name, advice))
    return choice("ending of the file", ending, READERS)


def _files(path: Path, *, pair: bool) -> dict[str, Path]:
    """The file, or the pair it belongs to, training first, by part."""
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
