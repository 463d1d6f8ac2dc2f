"""Options for a user's own data, as one dataclass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from anharmonic._checks import boolean, choice, listed, natural, number, positive_int, require
from anharmonic.data.base import MetricName
from anharmonic.data.columns import Columns, Duplicates, Labels, Layout

SplitBy = Literal["auto", "random", "groups", "time"]
Missing = Literal["error", "mean", "forward", "mask"]
Elapsed = Literal["ignore", "step", "channel"]
Metric = Literal[
    "auto", "accuracy", "balanced_accuracy", "f1", "cross_entropy", "rmse", "mse", "mae"
]  # fmt: skip
# The metrics for each kind of target, the default first.
_METRICS: dict[str, tuple[MetricName, ...]] = {
    "class": ("accuracy", "balanced_accuracy", "cross_entropy"),
    "labels": ("f1",),
    "value": ("rmse", "mse", "mae"),
}


@dataclass(frozen=True)
class DataOptions:
    """Options for reading, splitting and preparing sequences.

    Args:
        target: Kind of targets: "class", "value" or "labels"; "auto" decides by the type of `y`.
            "labels" means any number of labels per sequence or step. Write them as text with bars
            (walk|talk; a single bar for none) or as columns of 0 and 1 (in a table,
            target_column="walk|talk").
        standardise: Whether to scale every input channel to mean 0 and standard deviation 1 over
            the training data. For targets see `scale_target`.
        missing: How to treat missing inputs (NaN). "error" raises an error, "mean" inserts the
            channel's training mean, "forward" repeats the last known value of the sequence (the
            mean before the first one). "mask" inserts the mean and adds a channel that is 1 in
            gaps, for every channel with gaps.
        split_seed: Seed of the split, in `[0, 2**32)`. The test part depends only on it and
            `split`.
        split: How to choose the test part. "random" stratifies by class. "groups" keeps every group
            of the file in one part. "time" trains on the earliest sequences and tests on the latest
            (by `times`, or in file order); with `window` or `horizon` it trains on the beginning of
            every sequence and tests on its end. "auto" uses groups if the file has them, time for
            windows of fewer than 10 sequences, and otherwise random. With `horizon`, "random" is
            refused, and "auto" uses groups only if `group_column`, `group_pattern` or `test_groups`
            is given, and otherwise time.
        test_groups: The groups of the test part; empty for a random choice.
        valid_share: Share of the sequences for validation, in [0, 1). With 0 everything except the
            test part is used for training. None: the file's own validation part, or 0.15.
        folds: Number of cross-validation folds, at least 2, of the data outside the test part; None
            for a single validation part.
        fold: Index of the validation fold, 0 to folds - 1.
        difference: Whether to append every channel's change since the previous step as a channel: 0
            at the first step, scaled to a root mean square of 1 in training.
        elapsed: How to use the time between samples, if the file has it: "ignore" it; "step"
            multiplies the model's time step (for models that have one), with the training median as
            1; "channel" appends it as a channel.
        scale_target: Whether to scale numeric targets to mean 0 and standard deviation 1 within the
            model. Metric and predictions keep the units of `y`.
        scale_each: Whether to scale every sequence separately to mean 0 and standard deviation 1.
            Its mean and the logarithm of its standard deviation are appended as channels. Not for
            forecasts.
        target_column: Table column of the targets. None to infer it from the names. "none" for no
            such column, if the labels of recordings are outside their files.
        id_column: Table column of sequence names.
        time_column: Table column of times (numbers or dates). "none" for no such column; rows then
            have the order of the file.
        group_column: Table column of subjects or recordings. May equal `id_column`.
        layout: Layout of a table: "wide" (a row per sequence), "long" (a row per step), "nested" (a
            row per sequence with lists in its cells), or "auto" to detect it.
        window: Cut sequences into windows of this many steps. The split comes first, so no window
            is in two parts. The prediction for a sequence is the mean over its windows. None
            for whole sequences. With `horizon` None means 4 horizons if the series are that long.
        stride: Distance between windows in steps; None for `window`, or for 1 with `horizon`.
        horizon: Number of steps to forecast. A window of the past predicts the next values of the
            channels in `forecast`. `y` is not read. The model learns the scaled change since the
            last known value. None for no forecast.
        forecast: Channels to forecast, by name or number from 0; empty for all.
        known: For forecasts, channels or table columns that are known in advance, such as a
            calendar or a price; text is categorical. The model also gets them for the steps to
            forecast. `predict` therefore needs rows for these steps, with the known columns filled
            in.
        quantiles: Quantiles to forecast instead of the mean: increasing numbers in (0, 1) including
            0.5, such as 0.1 0.5 0.9. Loss and metric are then the pinball loss.
        ignore: Table columns to leave out.
        date_format: Format of dates in a table, as in `datetime.strptime`, such as "%d.%m.%Y".
        duplicates: How to treat table rows that repeat a time of a sequence: "refuse" them, keep
            the "first", or take their "mean".
        labels: For a table with a row per step, whether there is a target per "sequence" or per
            "step". "auto" detects it, and refuses a target that changes in only a few sequences.
        static: Input columns with one value per recording, in a table or in the `labels.csv` of a
            folder. They are repeated at every step; text is categorical.
        categorical: Categorical input columns of a table (text or integers). Each category becomes
            a channel that is 1 for cells of this category. New categories are 0 in all channels.
        label_pattern: For a folder, a regular expression for the label in a file's relative path:
            its first group, or the whole match. "^([^/]+)/" gives the first folder. A
            search longer than 5 s raises an error. None uses `labels.csv`, a column, or the names
            of the folders.
        group_pattern: For a folder, the same for the subject or machine of a recording.
        annotations: For a folder, the suffix of files that label the steps of a recording.
        resample: For a folder of sounds, the samples per second to resample to. None keeps the
            files' rates, which must agree.
        metric: Metric to select and report. For classes "accuracy", "balanced_accuracy" (mean
            recall of the classes) or "cross_entropy", for labels "f1" (micro-averaged), for values
            "rmse", "mse" or "mae". "auto" is the first of these.
        season: For forecasts, the season in steps. The baseline is the better of the last value and
            the value one season before. None to detect it in the training part.

    Raises:
        TypeError: If an option has the wrong type.
        ValueError: If an option is out of range, or two exclude each other.

    Example:
        >>> DataOptions(missing="forward", folds=5, fold=1).metric_of("class")
        'accuracy'
    """

    target: Literal["auto", "class", "value", "labels"] = "auto"
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
    known: Sequence[str] = ()
    quantiles: Sequence[float] = ()
    ignore: Sequence[str] = ()
    date_format: str | None = None
    duplicates: Duplicates = "refuse"
    labels: Labels = "auto"
    static: Sequence[str] = ()
    categorical: Sequence[str] = ()
    label_pattern: str | None = None
    group_pattern: str | None = None
    annotations: str = ".labels.csv"
    resample: int | None = None
    metric: Metric = "auto"
    season: int | None = None

    def __post_init__(self) -> None:
        choice("target", self.target, ("auto", "class", "value", "labels"))
        choice("split", self.split, get_args(SplitBy))
        choice("elapsed", self.elapsed, get_args(Elapsed))
        choice("missing", self.missing, get_args(Missing))
        choice("metric", self.metric, get_args(Metric))
        for name in ("standardise", "difference", "scale_target", "scale_each"):
            boolean(name, getattr(self, name))
        names = "test_groups", "forecast", "known", "ignore", "static", "categorical"
        for name in (*names, "quantiles"):
            given, advice = getattr(self, name), "put a single entry in a list, too"
            several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
            require(several, name, given, "a list", advice, TypeError)
            entries = tuple(str(entry) if name in names else entry for entry in given)
            object.__setattr__(self, name, entries)
        self._check_split()
        self._check_windows()
        _ = self.columns  # validates its own part of the options

    def _check_split(self) -> None:
        natural("split_seed", self.split_seed)
        if self.valid_share is not None:
            number("valid_share", self.valid_share, low=0.0, high=1.0, high_open=True)
        fold = natural("fold", self.fold)
        if self.folds is None:
            require(fold == 0, "fold", fold, "0 without folds", "pass folds too")
            return
        folds, advice = natural("folds", self.folds), "choose for example 5"
        require(folds >= 2, "folds", folds, "at least 2", advice)
        require(fold < folds, "fold", fold, f"below folds={folds}", "count from 0")
        alone = self.valid_share is None
        advice = "leave it out: one fold validates"
        require(alone, "valid_share", self.valid_share, "None with folds", advice)

    def _check_windows(self) -> None:
        for name in ("window", "stride", "horizon", "season"):
            if (value := getattr(self, name)) is not None:
                positive_int(name, value)
        quantiles = tuple(number("a quantile", q, low=0.0, high=1.0) for q in self.quantiles)
        object.__setattr__(self, "quantiles", quantiles)
        rising = all(a < b for a, b in itertools.pairwise((0.0, *quantiles, 1.0)))
        fits = not quantiles or (rising and 0.5 in quantiles)
        expected = "rising numbers in (0, 1) with 0.5 among them"
        require(fits, "quantiles", list(quantiles), expected, "for example 0.1 0.5 0.9")
        advice, fits = "leave one of them out", not quantiles or self.metric == "auto"
        require(fits, "metric with quantiles", self.metric, "auto, the pinball loss", advice)
        fits = self.horizon is None or not self.scale_each
        require(fits, "scale_each with horizon", self.horizon, "None", advice)
        fits, expected = self.horizon is None or self.split != "random", "auto, time or groups"
        advice = "time tests on the end of every series, groups on whole series"
        require(fits, "split with horizon", self.split, expected, advice)
        if self.horizon is None:
            fits = self.window is not None or self.stride is None
            require(fits, "stride", self.stride, "None without window", "pass window too")
            for name in ("forecast", "known", "quantiles", "season"):
                given = getattr(self, name)
                require(not given, name, given, "left out without horizon", "pass horizon too")
            return
        fits = not self.known or self.window is None or self.window >= self.horizon
        expected = f"at least horizon={self.horizon} with channels that are known in advance"
        require(fits, "window", self.window, expected, "choose a longer window")

    def metric_of(self, target: str) -> MetricName:
        """Return the metric of a task.

        Args:
            target: Kind of target, "class", "labels" or "value".

        Raises:
            ValueError: If the metric is for another kind of target.
        """
        known = _METRICS[target]
        if self.metric == "auto":
            return known[0]
        fits, advice = self.metric in known, "choose one of these"
        expected = listed(known, "or")
        require(fits, f"metric for targets that are a {target}", self.metric, expected, advice)
        return self.metric

    @property
    def columns(self) -> Columns:
        """The roles of a table's columns, the only options that affect reading."""
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
            static=tuple(self.static),
            categorical=tuple(self.categorical),
            known=tuple(self.known),
            label_pattern=self.label_pattern,
            group_pattern=self.group_pattern,
            annotations=self.annotations,
            resample=self.resample,
        )
