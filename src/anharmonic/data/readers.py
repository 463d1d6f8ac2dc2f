"""Files of sequences: which reader reads which, and the digest that names what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anharmonic._checks import choice
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.sequences import Sequences
from anharmonic.data.ts import read_ts


def read_parts(path: Path | str, *, targets: bool = True, **hints: Any) -> dict[str, Sequences]:
    """Reads the sequences of a file, by the reader of its ending.

    Args:
        path: The file; given `NAME_TRAIN.ts` or `NAME_TEST.ts`, the other one is read too.
        targets: Whether targets are wanted; else only this file's inputs are read.
        hints: What the file does not say, by name, for readers that take it.

    Returns:
        The sequences by part: "all", or "train", "test" and perhaps "valid".

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If no reader knows the ending, or the file is damaged.
        TypeError: If the reader does not take a hint.
    """
    path = existing(path)
    parts: dict[str, Sequences] = {}
    for name, file in _files(path, pair=targets).items():
        parts |= {
            name if read == "all" else read: part
            for read, part in READERS[_form(path)](file, targets=targets, **hints).items()
        }
    return parts


def file_digest(path: Path | str) -> str:
    """SHA-256 of a data file, 64 hexadecimal digits; of a pair `_TRAIN.ts`, `_TEST.ts` both count.

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


def _ts(path: Path, *, targets: bool) -> dict[str, Sequences]:
    del targets  # a label that is there has to be read over anyway
    return {"all": read_ts(path)}


# A reader takes a path, whether targets are wanted, and its own hints, each with a default.
READERS: dict[str, Callable[..., dict[str, Sequences]]] = {".npz": read_npz, ".ts": _ts}
# Archives' habit: NAME_TRAIN.ts and NAME_TEST.ts are one data set.
PAIRED = (".ts",)


def _form(path: Path) -> str:
    return choice("ending of the file", path.suffix.lower(), READERS)


def _files(path: Path, *, pair: bool) -> dict[str, Path]:
    """The file, or the pair it belongs to, training first, by part."""
    if not pair or _form(path) not in PAIRED:
        return {"all": path}
    for mine, other in (("_TRAIN", "_TEST"), ("_TEST", "_TRAIN")):
        for written in (str.upper, str.lower):
            if path.stem.endswith(written(mine)):
                stem = path.stem.removesuffix(written(mine))
                partner = existing(path.with_name(stem + written(other) + path.suffix))
                train, test = (path, partner) if mine == "_TRAIN" else (partner, path)
                return {"train": train, "test": test}
    return {"all": path}
