"""What a user may choose about data of their own: one dataclass, handed on as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from anharmonic._checks import boolean, choice, listed, positive_int, require
from anharmonic.data.base import MetricName
from anharmonic.data.columns import Columns, Duplicates, Labels, Layout
from anharmonic.data.forecast import Windows
from anharmonic.data.parts import Cut, SplitBy
from anharmonic.data.preprocessing import Elapsed, Missing

Metric = Literal["auto", "accuracy", "balanced_accuracy", "cross_entropy", "rmse", "mse", "mae"]
_OF_CLASSES = ("accuracy", "balanced_accuracy", "cross_entropy")


@dataclass(frozen=True)
class DataOptions:
    """How sequences are read, cut into parts and prepared.

    Args:
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
        scale_each: Whether every sequence gets mean 0 and standard deviation 1 by itself; what that
            takes from it, its mean and the logarithm of its standard deviation, is appended as
            channels. Not for forecasts.
        target_column: Of a table, the column of the targets; None to find it by its name.
        id_column: Of a table, the column that says which sequence a row is of.
        time_column: Of a table, the column of times: numbers or dates; "none" if no column is, so
            that rows stay in the order of the file.
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
        ignore: Of a table, columns that are left out.
        date_format: Of a table, how dates are written, as of `datetime.strptime`: "%d.%m.%Y".
        duplicates: Of a table, what becomes of rows that repeat a time of a sequence: "refuse",
            "first" keeps the first of them, "mean" their mean.
        labels: Of a table with a row per step, whether a target is one per "sequence" or one per
            "step"; "auto" finds out, and refuses one that changes in few sequences.
        metric: What is measured: of classes "accuracy", "balanced_accuracy" (mean recall of the
            classes) or "cross_entropy", of values "rmse", "mse" or "mae"; "auto" is "accuracy" or
            "rmse".
        season: Of a forecast, steps after which it repeats: the baseline is the better one of the
            last value and the value a season before. None to find it in the training part.

    Raises:
        TypeError: If an option has the wrong type.
        ValueError: If an option is out of range, or two exclude each other.

    Example:
        >>> DataOptions(missing="forward", folds=5, fold=1).cut.folds
        5
    """

    target: Literal["auto", "class", "value"] = "auto"
    standardise: bool = True
    missing: Missing = "error"
    split_seed: int = 1234
    split: SplitBy = "auto"
    test_groups: Sequence[str] = ()
    valid_share: float | None = None
    folds: int | None = None
    fold: int = 0
    difference: bool = False
    elapsed: Elapsed = "ignore"
    scale_target: bool = False
    scale_each: bool = False
    target_column: str | None = None
    id_column: str | None = None
    time_column: str | None = None
    group_column: str | None = None
    layout: Layout = "auto"
    window: int | None = None
    stride: int | None = None
    horizon: int | None = None
    forecast: Sequence[str] = ()
    ignore: Sequence[str] = ()
    date_format: str | None = None
    duplicates: Duplicates = "refuse"
    labels: Labels = "auto"
    metric: Metric = "auto"
    season: int | None = None

    def __post_init__(self) -> None:
        choice("target", self.target, ("auto", "class", "value"))
        for name in ("standardise", "difference", "scale_target", "scale_each"):
            boolean(name, getattr(self, name))
        fits, advice = self.horizon is None or not self.scale_each, "leave one of them out"
        require(fits, "scale_each with horizon", self.horizon, "None", advice)
        choice("elapsed", self.elapsed, get_args(Elapsed))
        choice("missing", self.missing, get_args(Missing))
        choice("metric", self.metric, get_args(Metric))
        if self.season is not None:
            positive_int("season", self.season)
            advice, cut = "pass horizon too", self.horizon is not None
            require(cut, "season", self.season, "None without horizon", advice)
        for name in ("test_groups", "forecast", "ignore"):
            object.__setattr__(self, name, tuple(str(entry) for entry in getattr(self, name)))
        # Each of these checks its own part of the options.
        _ = self.windows, self.cut, self.columns

    def metric_of(self, target: str) -> MetricName:
        """The metric of a task.

        Args:
            target: What is predicted, "class" or "value".

        Raises:
            ValueError: If the metric is for something else.
        """
        if self.metric == "auto":
            return "accuracy" if target == "class" else "rmse"
        fits, advice = (self.metric in _OF_CLASSES) == (target == "class"), "choose one of these"
        expected = listed(_OF_CLASSES, "or") if target == "class" else "rmse, mse or mae"
        require(fits, f"metric for targets that are a {target}", self.metric, expected, advice)
        return self.metric

    @property
    def windows(self) -> Windows:
        """How sequences are cut into windows."""
        return Windows(self.window, self.stride, self.horizon, tuple(self.forecast))

    @property
    def cut(self) -> Cut:
        """How the parts come about."""
        return Cut(
            self.split,
            tuple(self.test_groups),
            self.valid_share,
            self.folds,
            self.fold,
            self.split_seed,
            self.window,
            self.horizon,
        )

    @property
    def columns(self) -> Columns:
        """Which column of a table is what. The only options that matter when a file is read."""
        return Columns(
            self.target_column,
            self.id_column,
            self.time_column,
            self.group_column,
            self.layout,
            windows=self.window is not None or self.horizon is not None,
            forecast=self.horizon is not None,
            ignore=tuple(self.ignore),
            date_format=self.date_format,
            duplicates=self.duplicates,
            labels=self.labels,
        )
