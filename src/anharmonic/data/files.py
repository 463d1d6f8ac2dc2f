"""The user's own data, as a task."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, Layout
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.own import Inputs, SequencesTask, inputs_of
from anharmonic.data.parts import SplitBy
from anharmonic.data.preprocessing import Elapsed, Missing, Preprocessing
from anharmonic.data.readers import file_digest, read_parts
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
        target: "class" or "value" to decide what `y` means; "auto" by its type.
        standardise: Whether every input channel gets mean 0 and standard deviation 1, measured on
            the training data. Targets stay as they are, see `scale_target`.
        missing: "error" refuses NaN in the inputs; "mean" puts the channel's training mean there;
            "forward" the last known value of the sequence (the mean before the first); "mask" the
            mean, and for every channel with gaps a further one that is 1 there.
        split_seed: Decides the split, in `[0, 2**32)`. The test part depends on it and `split`
            alone.
        split: "random", every class in its share; "groups", no group of the file in two parts;
            "time", the earliest sequences train, the latest test (by `times`, else in the order
            of the file; with `window` or `horizon`, the beginning of every sequence trains, its end
            tests); "auto": by groups where the file has them, else random, but windows of fewer
            than 10 sequences by time.
        test_groups: The groups that are the test part; empty to draw them.
        valid_share: Share of the sequences that validates, in [0, 1); 0 for no validation: all but
            the test part trains. None: the file's own validation part, or 0.15.
        folds: Number of parts, at least 2, into which all but the test part is cut, one of them
            for validation; None for one validation part.
        fold: Which of them, 0 to folds - 1.
        difference: Whether the change of every channel since the step before is appended as a
            channel, 0 at the first step, scaled to a root mean square of 1 in training.
        elapsed: What becomes of the time between samples, where the file has it: "ignore"; "step",
            it multiplies the model's time step (for models that have one), the median in training
            being 1; "channel", it is appended as a channel.
        scale_each: Whether every sequence gets mean 0 and standard deviation 1 by itself; what that
            takes from it, its mean and the logarithm of its standard deviation, is appended as
            channels. Not for forecasts.
        scale_target: Whether targets that are values get mean 0 and standard deviation 1 within the
            model. The metric and predictions stay in units of `y`.
        target_column: Of a table, the column of the targets; None to find it by its name.
        id_column: Of a table, the column that says which sequence a row is of.
        time_column: Of a table, the column of times: numbers, or dates as in ISO 8601.
        group_column: Of a table, the column of subjects or recordings.
        layout: Of a table: "wide", a row per sequence; "long", a row per step; "nested", a row per
            sequence whose cells are lists; "auto" to find out.
        window: Steps of the windows that sequences are cut into, after they are cut into parts: no
            window is in two parts. A prediction for a sequence is then the mean over its windows.
            None for whole sequences; with `horizon`, 4 horizons where the series are long enough.
        stride: Steps from one window to the next; None for `window`, with `horizon` 1.
        horizon: Steps to forecast: from a window of the past the next values of the channels
            `forecast`. `y` is not read. Targets are scaled, and an output of 0 stands for the last
            known value. None if nothing is forecast.
        forecast: Channels to forecast, by name or number from 0; empty for all.

    Shape:
        x `[B, T, F]` zero-padded to the longest of the batch, y `[B]`, `[B, O]` or `[B, T, O]`,
        lengths `[B]` where sequences differ in length.

    Split: the file's own where it has one (validation, if it has none, is 15 % of the training
    part), else 70 % training, 15 % validation, 15 % test.

    A class with fewer sequences than there are parts to cut is warned of: it cannot be in all.

    Attributes:
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

    def __init__(
        self,
        path: Path | str,
        sha256: str | None = None,
        target: Literal["auto", "class", "value"] = "auto",
        standardise: bool = True,
        missing: Missing = "error",
        split_seed: int = 1234,
        split: SplitBy = "auto",
        test_groups: Sequence[str] = (),
        valid_share: float | None = None,
        folds: int | None = None,
        fold: int = 0,
        difference: bool = False,
        elapsed: Elapsed = "ignore",
        scale_target: bool = False,
        scale_each: bool = False,
        target_column: str | None = None,
        id_column: str | None = None,
        time_column: str | None = None,
        group_column: str | None = None,
        layout: Layout = "auto",
        window: int | None = None,
        stride: int | None = None,
        horizon: int | None = None,
        forecast: Sequence[str] = (),
    ) -> None:
        named = Columns(
            target_column,
            id_column,
            time_column,
            group_column,
            layout,
            windows=window is not None or horizon is not None,
            forecast=horizon is not None,
        )
        self.path = existing(path)
        if sha256 is not None:
            digest = file_digest(self.path)
            advice = "give the file of the run, or start a new run with this one"
            require(digest == sha256, f"sha256 of {self.path.name}", digest, sha256, advice)
        super().__init__(
            read_parts(self.path, targets=horizon is None, columns=named),
            target=target,
            standardise=standardise,
            missing=missing,
            split_seed=split_seed,
            split=split,
            test_groups=test_groups,
            valid_share=valid_share,
            folds=folds,
            fold=fold,
            difference=difference,
            elapsed=elapsed,
            scale_target=scale_target,
            scale_each=scale_each,
            window=window,
            stride=stride,
            horizon=horizon,
            forecast=forecast,
            source=self.path.name,
        )


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
    bare = parts["all"].with_targets(None)
    inputs = inputs_of(bare, preprocessing)
    if doubts := preprocessing.doubts(bare):
        expected = f"{bare.where} should be like the training data"
        advice = "check units and sampling, or the predictions say little"
        warnings.warn(message(expected, "; ".join(doubts), advice), stacklevel=2)
    return inputs
