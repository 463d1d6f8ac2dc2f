"""The user's own data, as a task."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean, choice, message, require
from anharmonic.data.base import Readout, SequenceDataset, Splits, Task, counted
from anharmonic.data.columns import Columns, Layout
from anharmonic.data.forecast import Windows
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.parts import Cut, SplitBy, cut_parts, warn_of_absent_classes
from anharmonic.data.preprocessing import Elapsed, Missing, Preprocessing
from anharmonic.data.readers import file_digest, read_parts
from anharmonic.data.sequences import Integers, Sequences, check_finite
from anharmonic.data.targets import (
    classes_by_step,
    encode_classes,
    float_targets,
    output_width,
    target_kind,
)
from anharmonic.data.ts import read_ts

__all__ = ["FileTask", "file_digest", "read_inputs", "read_npz", "read_parts", "read_ts"]


class FileTask(Task):
    """Your own sequences, from an archive or a table: classes or numbers to predict.

    Whole numbers and strings as targets are classes; numbers with a point are values. The metric
    is accuracy in percent for classes, root mean squared error in units of `y` for values.

    Args:
        path: An `.npz` archive (keys as in `read_npz`), a `.ts` or `.arff` file of the UCR and UEA
            archives, or a table: `.csv`, `.tsv`, `.txt` or `.parquet`. Given `NAME_TRAIN.ts` or
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
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> np.savez(path, x=x, y=np.where(x.mean(1) > x.mean(), "high", "low"))
        >>> task = FileTask(path)
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 14, 'valid': 3, 'test': 3}, ('high', 'low'), 1)
    """

    name = "file"
    licence = "yours"

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
        choice("target", target, ("auto", "class", "value"))
        boolean("standardise", standardise)
        boolean("difference", difference)
        boolean("scale_target", scale_target)
        choice("elapsed", elapsed, get_args(Elapsed))
        choice("missing", missing, get_args(Missing))
        self.windows = Windows(window, stride, horizon, tuple(str(name) for name in forecast))
        groups = tuple(str(group) for group in test_groups)
        cut = Cut(split, groups, valid_share, folds, fold, split_seed, window, horizon)
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
        self.source = self.path.name
        if sha256 is not None:
            digest = file_digest(self.path)
            advice = "give the file of the run, or start a new run with this one"
            require(digest == sha256, f"sha256 of {self.path.name}", digest, sha256, advice)
        read = read_parts(self.path, targets=horizon is None, columns=named)
        self.columns = next(iter(read.values())).columns
        self.has_times = any(part.elapsed is not None for part in read.values())
        if horizon is None:
            parts = self._labelled(read, target)
        else:
            parts = {name: part.with_targets(None) for name, part in read.items()}
            self.target, self.readout, self.metric = "value", "last", "rmse"
            cut = replace(cut, window=self.windows.length(parts))
        for part in parts.values():
            # Before the cut: it names the file's places.
            check_finite(part, part.x, missing != "error")
        labels = self.class_names if self.readout == "last" else ()
        cuts = cut_parts(parts, cut, labels)
        self._facts = self._understood(parts, cuts, missing)
        if set(parts) != set(cuts):
            cut_by = cut.describe(parts["all" if "all" in parts else "train"])
            self._facts.append(f"split {cut_by}")
        warn_of_absent_classes(cuts["train"], self.class_names)
        self.preprocessing = Preprocessing.fit(
            cuts["train"],
            standardise,
            missing,
            difference=difference,
            elapsed=elapsed,
            scale_target=scale_target and self.target == "value" and horizon is None,
        )
        if cut.window is not None:
            count = sum(len(part) for part in parts.values())
            self._facts.insert(0, f"windows of {cut.window} steps of {counted(count, 'recording')}")
            self.preprocessing, cuts = self.windows.cut(self.preprocessing, cuts, cut.window)
        if horizon is not None:
            self.output_size = np.asarray(cuts["train"].y).shape[1]
        self.sizes = {name: len(cuts.get(name, ())) for name in ("train", "valid", "test")}
        self.input_size = self.preprocessing.size
        made = {name: self.preprocessing.dataset(part) for name, part in cuts.items()}
        self._splits = Splits(made["train"], made.get("valid"), made["test"])

    def _labelled(self, parts: Mapping[str, Sequences], target: str) -> dict[str, Sequences]:
        """The sequences with numbers as targets; what they are is now known of the task."""
        parts = {name: classes_by_step(part, target) for name, part in parts.items()}
        meant = {target_kind(part, target) for part in parts.values()}
        came = {
            key: f"{y.dtype} {list(y.shape)}"
            for key, part in parts.items()
            if (y := part.y) is not None
        }
        fits = len(meant) == len({part.per_step for part in parts.values()}) == 1
        name, advice = f"y in {self.path.name}", "store it alike"
        require(fits, name, came, "of one kind in all parts", advice)
        (self.target,) = meant
        self.readout = "all" if parts["train" if "train" in parts else "all"].per_step else "last"
        self.metric = "accuracy" if self.target == "class" else "rmse"
        codes: Mapping[str, NDArray[Any]]
        if self.target == "class":
            self.class_names, codes = encode_classes(parts, self.path.name)
            self.output_size = len(self.class_names)
        else:
            codes = {name: float_targets(part) for name, part in parts.items()}
            self.output_size = output_width(codes, self.path.name)
            if target == "auto":
                self.hint = _maybe_classes(list(codes.values()), self.path.name, self.readout)
        return {name: replace(part, y=codes[name]) for name, part in parts.items()}

    def _understood(
        self, parts: Mapping[str, Sequences], cuts: Mapping[str, Sequences], missing: Missing
    ) -> list[str]:
        """What a user wants to see of the data at once, in words."""
        facts = []
        if self.readout == "last" and 0 < len(self.class_names) <= 10:
            y = np.concatenate([np.asarray(part.y) for part in cuts.values()])
            counts = np.bincount(y, minlength=len(self.class_names))
            named = zip(self.class_names, counts, strict=True)
            facts.append("classes " + ", ".join(f"{name} {count}" for name, count in named))
        gaps = sum(int(np.isnan(part.x).sum()) for part in parts.values())
        if gaps:
            share = 100 * gaps / sum(part.x.size for part in parts.values())
            facts.append(f"{share:.2g} % of the inputs missing ({missing})")
        return facts

    @property
    def output(self) -> str:
        """What is predicted, in words."""
        if self.windows.horizon is None:
            return super().output
        channels = counted(len(self.preprocessing.forecast), "channel")
        return f"the next {counted(self.windows.horizon, 'step')} of {channels}"

    def summary(self) -> str:
        """Says how the data were understood; of a table also what its columns were taken for."""
        facts = [] if self.columns is None else [self.columns.describe()]
        return "\n".join([super().summary(), *facts, *filter(None, ["; ".join(self._facts)])])

    def _build(self) -> Splits[SequenceDataset]:
        raise NotImplementedError("the data were read when the task was made")


class Inputs(NamedTuple):
    """What is predicted from."""

    dataset: SequenceDataset
    """The sequences in their order, or their windows; `y` has no columns."""
    owners: Integers
    """The sequence every entry of the data set is of."""
    fresh: Integers
    """Steps at the end of every entry that are in none before it."""
    ids: NDArray[Any] | None
    """What the file calls its sequences; None if it has no names for them."""


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
    pieces = preprocessing.pieces(bare)
    made = preprocessing.dataset(pieces.part)
    if doubts := preprocessing.doubts(bare):
        expected = f"{bare.where} should be like the training data"
        advice = "check units and sampling, or the predictions say little"
        warnings.warn(message(expected, "; ".join(doubts), advice), stacklevel=2)
    return Inputs(made, pieces.owners, pieces.fresh, bare.ids)


def _maybe_classes(y: list[NDArray[np.float32]], where: str, readout: Readout) -> str:
    """The hint for numbers with a point that look like classes; empty where they do not."""
    if readout == "all" or y[0].shape[1] != 1:
        return ""
    numbers = np.concatenate(y)[:, 0]
    distinct = np.unique(numbers)
    if not 2 <= len(distinct) <= min(20, len(numbers) // 2) or (distinct % 1 != 0).any():
        return ""
    return (
        f"y in {where} is taken as values, but holds only {len(distinct)} distinct whole numbers; "
        "target=class makes them classes."
    )
