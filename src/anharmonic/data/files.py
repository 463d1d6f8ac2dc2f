"""The user's own data, as a task."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.options import DataOptions
from anharmonic.data.own import Inputs, SequencesTask, inputs_of
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import checked_digest, file_digest, read_parts
from anharmonic.data.sequences import Sequences
from anharmonic.data.ts import read_ts

__all__ = ["FileTask", "Inputs", "file_digest", "read_inputs", "read_npz", "read_parts", "read_ts"]


class FileTask(SequencesTask):
    """Your own sequences, from an archive or a table: classes or numbers to predict.

    Whole numbers and strings as targets are classes; numbers with a point are values. The metric
    is accuracy in percent for classes, root mean squared error in units of `y` for values.

    Args:
        path: An `.npz` archive (keys as in `read_npz`), a `.ts` file of the UCR and UEA archives,
            or a table: `.csv`, `.tsv`, `.txt` or `.parquet`. Given `NAME_TRAIN.ts` or
            `NAME_TEST.ts` (or another ending but `.npz`), the other one is read too.
        sha256: `file_digest(path)`: another file is refused. Not checked if None.
        options: Fields of `DataOptions`.

    Shape:
        x `[B, T, F]` zero-padded to the longest of the batch, y `[B]`, `[B, O]` or `[B, T, O]`,
        lengths `[B]` where sequences differ in length.

    Split: the file's own where it has one (validation, if it has none, is 15 % of the training
    part), else 70 % training, 15 % validation, 15 % test.

    A class with fewer sequences than there are parts to cut is warned of: it cannot be in all.

    Attributes:
        digest: `file_digest(path)`.
        options: The `DataOptions`.
        preprocessing: What was done to the inputs; `read_inputs` does the same to new data.
        columns: What the columns of a table were taken for; None if the file is no table.
        has_times: Whether the file says the time between samples.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the file is damaged, its content does not fit together, or it is not the
            file of `sha256`. The messages say what and where.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> np.savez(path, x=x, y=np.where(x.mean(1) > x.mean(), "high", "low"))
        >>> task = FileTask(path)
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 14, 'valid': 3, 'test': 3}, ('high', 'low'), 1)
    """

    def __init__(self, path: Path | str, sha256: str | None = None, **options: Any) -> None:
        chosen = DataOptions(**options)
        self.path = existing(path)
        self.digest = checked_digest(self.path, sha256)
        parts = read_parts(self.path, targets=chosen.horizon is None, columns=chosen.columns)
        super().__init__(parts, source=self.path.name, **options)


def read_inputs(
    path: Path | str, preprocessing: Preprocessing, columns: Columns | None = None
) -> Inputs:
    """Reads only the inputs of a file, to predict from them; `y` may be there or not.

    Args:
        path: A file as for training (no partner is looked for); an `.npz` archive with `x`.
        preprocessing: Of the training data: `FileTask(...).preprocessing`.
        columns: Of the training data: `FileTask(...).columns`. A table is read like that one.

    Raises:
        UserWarning: If a channel or the time between samples is far from what training had.
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or its channels are not those of training.
    """
    parts = read_parts(path, targets=False, columns=columns)
    keys = [f"x_{name}" for name in parts]
    advice = "store the sequences to predict from as x"
    require("all" in parts, f"keys of {Path(path).name}", keys, "x", advice)
    return checked_inputs(parts["all"], preprocessing)


def checked_inputs(part: Sequences, preprocessing: Preprocessing) -> Inputs:
    """Prepares sequences to predict from them, and warns where they are unlike those of training.

    Args:
        part: The sequences; targets are not looked at.
        preprocessing: Of the training data: `FileTask(...).preprocessing`.

    Raises:
        UserWarning: If a channel or the time between samples is far from what training had.
        ValueError: If the channels are not those of training.
    """
    inputs = inputs_of(part, preprocessing)
    if doubts := preprocessing.doubts(part):
        expected = f"{part.where} should be like the training data"
        advice = "check units and sampling, or the predictions say little"
        warnings.warn(message(expected, "; ".join(doubts), advice), stacklevel=3)
    return inputs
