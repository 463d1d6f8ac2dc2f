"""What a user may choose about data of their own: one dataclass, handed on as it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from anharmonic._checks import boolean, choice, listed, number, positive_int, require
from anharmonic.data.base import MetricName
from anharmonic.data.columns import Columns, Duplicates, Labels, Layout
from anharmonic.data.parts import Cut, SplitBy
from anharmonic.data.preprocessing import Elapsed, Missing, Preprocessing
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import (
    Pieces,
    channel_numbers,
    covering_windows,
    cut_windows,
    forecast_windows,
)

Metric = Literal[
    "auto", "accuracy", "balanced_accuracy", "f1", "cross_entropy", "rmse", "mse", "mae"
]  # fmt: skip
_USUAL: dict[str, MetricName] = {"class": "accuracy", "labels": "f1", "value": "rmse"}
_OF_LABELS = ("f1",)
_OF_CLASSES = ("accuracy", "balanced_accuracy", "cross_entropy")


@dataclass(frozen=True)
class Windows:
    """How recordings are cut into windows.

    Attributes:
        window: Steps per window; None for whole sequences, with `horizon` for a default.
        stride: Steps from one window to the next; None for `window`, with `horizon` 1.
        horizon: Steps to forecast after a window; None for no forecast.
        forecast: Channels to forecast, by name or number; empty for all.
        quantiles: What is forecast of each value, in (0, 1), rising, the median among them; empty
            for its mean.
        known: Channels that are known in advance, by name or number.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If a number is below 1, or an option lacks the one it belongs to.
    """

    window: int | None = None
    stride: int | None = None
    horizon: int | None = None
    forecast: tuple[str, ...] = ()
    quantiles: tuple[float, ...] = ()
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("window", "stride", "horizon"):
            if (value := getattr(self, name)) is not None:
                positive_int(name, value)
        cut, none = self.window is not None or self.horizon is not None, "None without window"
        require(cut or self.stride is None, "stride", self.stride, none, "pass window too")
        advice = "pass horizon too"
        for name in ("forecast", "known"):
            fits, came = self.horizon is not None or not getattr(self, name), getattr(self, name)
            require(fits, name, list(came), "empty without horizon", advice)
        fits = not self.known or self.window is None or self.window >= (self.horizon or 0)
        expected = f"at least horizon={self.horizon} with channels that are known in advance"
        require(fits, "window", self.window, expected, "choose a longer window")
        fits = self.horizon is not None or not self.quantiles
        require(fits, "quantiles", list(self.quantiles), "empty without horizon", advice)
        rising = (0.0, *self.quantiles, 1.0)
        fits = all(a < b for a, b in itertools.pairwise(rising))
        fits = not self.quantiles or (fits and 0.5 in self.quantiles)
        expected = "rising numbers in (0, 1) with 0.5 among them"
        require(fits, "quantiles", list(self.quantiles), expected, "for example 0.1 0.5 0.9")

    def length(self, parts: Mapping[str, Sequences]) -> int:
        """Steps of the past to forecast from: as given, else 4 horizons or what the series allow.

        Args:
            parts: The series.
        """
        if self.window is not None:
            return self.window
        horizon = self.horizon or 1
        shortest = min(int(part.lengths.min()) for part in parts.values())
        least = horizon if self.known else 1  # so that all that is known is in the window
        return max(least, min(max(4 * horizon, 16), (7 * shortest // 10 - horizon) // 2))

    def cut(
        self, preprocessing: Preprocessing, parts: Mapping[str, Sequences], window: int
    ) -> tuple[Preprocessing, dict[str, Sequences], dict[str, Pieces]]:
        """The windows of every part, their preprocessing, and whose windows are tested.

        Training learns from windows every `stride` steps; the other parts are predicted for as new
        data are, from windows side by side.

        Args:
            preprocessing: That of the training part.
            parts: The parts, which share no step to predict.
            window: Steps per window.
        """
        if self.horizon is None:
            stride = self.stride or window
            tested = {
                n: covering_windows(part, window) for n, part in parts.items() if n != "train"
            }
            made = {name: pieces.part for name, pieces in tested.items()}
            made = {"train": cut_windows(parts["train"], window, stride), **made}
            return replace(preprocessing, window=window), made, tested
        # (What is known in advance was appended, so the channels were looked up before.)
        channels = preprocessing.forecast or channel_numbers(parts["train"], self.forecast)
        ahead = (window, self.stride or 1, self.horizon, channels)
        made = {name: forecast_windows(part, *ahead) for name, part in parts.items()}
        prepared = preprocessing.forecasting(made["train"], window, self.horizon, channels)
        if self.quantiles:
            prepared = replace(prepared, quantiles=self.quantiles)
            times = (1, len(self.quantiles))
            made = {n: p.with_targets(np.tile(np.asarray(p.y), times)) for n, p in made.items()}
        return prepared, made, {}


@dataclass(frozen=True)
class DataOptions:
    """Options for reading, splitting and preparing sequences.

    Args:
        target: "class" or "value" to decide what `y` means; "auto" by its type. "labels": each
            sequence or step has any number of labels, given as text with a bar between (walk|talk;
            a bar alone for none) or as columns of 0 and 1 (of a table, target_column="walk|talk").
        standardise: Whether every input channel gets mean 0 and standard deviation 1, measured on
            the training data. Targets stay as they are, see `scale_target`.
        missing: How to treat missing inputs. "error" refuses NaN; "mean" puts the channel's
            training mean there; "forward" the last known value of the sequence (the mean before the
            first); "mask" the mean, and for every channel with gaps a further one that is 1 there.
        split_seed: Decides the split, in `[0, 2**32)`. The test part depends on it and `split`
            alone.
        split: How to choose the test part. "random", every class in its share; "groups", no group
            of the file in two parts; "time", the earliest sequences train, the latest test (by
            `times`, else in the order of the file; with `window` or `horizon`, the beginning of
            every sequence trains, its end tests); "auto": by groups where the file has them, else
            random, but windows of fewer than 10 sequences by time.
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
        target_column: Table column of the targets. None to find it by its name.
        id_column: Table column that names the sequence of a row.
        time_column: Table column of times, numbers or dates. "none" if there is no such column:
            rows then stay in the order of the file.
        group_column: Table column of subjects or recordings.
        layout: Of a table: "wide", a row per sequence; "long", a row per step; "nested", a row per
            sequence whose cells are lists; "auto" to find out.
        window: Steps per window that sequences are cut into. Sequences are split into parts
            first, so no window is in two parts. A prediction for a sequence is then the mean over
            its windows. None for whole sequences; with `horizon`, 4 horizons where the series are
            long enough.
        stride: Steps from one window to the next; None for `window`, with `horizon` 1.
        horizon: Steps to forecast. A window of the past predicts the next values of the channels
            in `forecast`. `y` is not read. Targets are scaled, and an output of 0 stands for the
            last known value. None if nothing is forecast.
        forecast: Channels to forecast, by name or number from 0; empty for all.
        known: Of forecasts, channels or columns of a table that are known in advance, such as a
            calendar or a price; text as categories. The model gets them for the steps to forecast,
            too, so `predict` needs rows for these, in which only what is known is filled in.
        quantiles: What is forecast of each value instead of its mean, rising numbers in (0, 1) with
            0.5 among them: 0.1 0.5 0.9. The loss and the metric are then the pinball loss.
        ignore: Of a table, columns that are left out.
        date_format: Of a table, how dates are written, as of `datetime.strptime`: "%d.%m.%Y".
        duplicates: Of a table, what becomes of rows that repeat a time of a sequence: "refuse",
            "first" keeps the first of them, "mean" their mean.
        labels: Of a table with a row per step, whether a target is one per "sequence" or one per
            "step"; "auto" finds out, and refuses one that changes in few sequences.
        static: Of a table or of the `labels.csv` of a folder, columns with one value per recording
            that are inputs: repeated at every step. Text is taken as categories.
        categorical: Of a table, columns of text or whole numbers that are inputs: every category
            becomes a channel that is 1 where a cell is of it. A category that training did not
            have is 0 in all of them.
        label_pattern: Of a folder, a regular expression that finds the label of a recording in the
            path of its file within the folder: its first group, or all that fits. "^([^/]+)/" is
            the first folder. One that searches for more than 5 s is refused. None to take
            `labels.csv`, a column, or the names of the folders.
        group_pattern: Of a folder, the same for the subject or machine of a recording.
        annotations: Of a folder, the ending of the files that label the steps of a recording.
        resample: Of a folder of sounds, the samples per second to which all are resampled. None to
            leave them; they must then agree.
        metric: What is measured. Of classes "accuracy", "balanced_accuracy" (mean recall of the
            classes) or "cross_entropy", of labels "f1" (micro-averaged), of values "rmse", "mse" or
            "mae"; "auto" is the first of these.
        season: Of a forecast, steps after which it repeats: the baseline is the better one of the
            last value and the value a season before. None to find it in the training part.

    Raises:
        TypeError: If an option has the wrong type.
        ValueError: If an option is out of range, or two exclude each other.

    Example:
        >>> DataOptions(missing="forward", folds=5, fold=1).cut.folds
        5
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
        for name in ("test_groups", "forecast", "known", "ignore", "static", "categorical"):
            given, advice = getattr(self, name), "put one name in a list, too"
            several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
            require(several, name, given, "a list of names", advice, TypeError)
            object.__setattr__(self, name, tuple(str(entry) for entry in given))
        quantiles = tuple(number("a quantile", q, low=0.0, high=1.0) for q in self.quantiles)
        object.__setattr__(self, "quantiles", quantiles)
        advice, fits = "leave one of them out", not quantiles or self.metric == "auto"
        require(fits, "metric with quantiles", self.metric, "auto, the pinball loss", advice)
        # Each of these checks its own part of the options.
        _ = self.windows, self.cut, self.columns

    def metric_of(self, target: str) -> MetricName:
        """The metric of a task.

        Args:
            target: What is predicted, "class", "labels" or "value".

        Raises:
            ValueError: If the metric is for something else.
        """
        if self.metric == "auto":
            return _USUAL[target]
        known = {"class": _OF_CLASSES, "labels": _OF_LABELS, "value": ("rmse", "mse", "mae")}[
            target
        ]
        fits, advice = self.metric in known, "choose one of these"
        expected = listed(known, "or")
        require(fits, f"metric for targets that are a {target}", self.metric, expected, advice)
        return self.metric

    @property
    def windows(self) -> Windows:
        """How sequences are cut into windows."""
        return Windows(
            self.window,
            self.stride,
            self.horizon,
            tuple(self.forecast),
            tuple(self.quantiles),
            tuple(self.known),
        )

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
            static=tuple(self.static),
            categorical=tuple(self.categorical),
            known=tuple(self.known),
            label_pattern=self.label_pattern,
            group_pattern=self.group_pattern,
            annotations=self.annotations,
            resample=self.resample,
        )
