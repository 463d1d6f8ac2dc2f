"""A user's sequences, in memory or in a file, as a task."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import listed, require
from anharmonic.data.answers import Windowed, column_quantiles
from anharmonic.data.base import SequenceDataset, Splits, Task, counted, steps_in_words
from anharmonic.data.columns import Columns
from anharmonic.data.options import DataOptions, Missing
from anharmonic.data.parts import (
    can_fold,
    cut_parts,
    describe_split,
    split_way,
    warn_of_absent_classes,
    warn_of_one_class,
)
from anharmonic.data.preprocessing import Preprocessing, spread_of_sizes, windows_of
from anharmonic.data.readers import checked_digest, existing_data, read_parts
from anharmonic.data.sequences import Integers, Sequences, check_finite
from anharmonic.data.targets import (
    classes_by_step,
    encode_classes,
    encode_labels,
    encode_like,
    float_targets,
    label_names,
    maybe_classes,
    maybe_unknown,
    output_width,
    target_kind,
    with_known,
)
from anharmonic.data.windows import (
    Pieces,
    channel_numbers,
    find_season,
    forecast_places,
    future_times,
    known_channels,
    seasonal_values,
    window_length,
    with_future,
)

# Numbers that loggers write for a missing value.
_MARKS = (-99999, -9999, -999, 9999, 99999)


class SequencesTask(Task):
    """Your own sequences in memory, for classification, regression or forecasts.

    Integer and string targets are classes; decimal numbers are values. The metric is accuracy in
    percent for classes and root mean squared error in units of `y` for values.

    Args:
        parts: "all" for a split, or "train", "test" and optionally "valid"; from `sequences_from`.
        source: Name of the data in messages.
        class_weights: Factors on the classes in the loss, as `class_names`; None for 1.
        preprocessing: Preprocessing of the inputs; None to fit it to the training part. Not for
            windows and forecasts.
        class_names: The classes, including absent ones; empty for those of the training part.
        options: Fields of `DataOptions`.

    The shapes and the split are those of `FileTask`.

    Attributes:
        options: The `DataOptions`.
        preprocessing: The preprocessing of the inputs, also applied to new data.
        columns: Roles of a table's columns; None if the data are not a table.
        has_times: Whether the data contain the time between samples.
        has_gaps: Whether inputs are missing, in any part.
        has_own_valid: Whether the data have a validation part of their own.
        recordings: Number of sequences of every part before they are cut into windows.

    Raises:
        ValueError: If the content is inconsistent. The message says what and where.

    Example:
        >>> from anharmonic.data.arrays import sequences_from
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> part = sequences_from(x, np.where(x.mean(1) > x.mean(), "high", "low"))
        >>> task = SequencesTask({"all": part})
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 14, 'valid': 3, 'test': 3}, ('high', 'low'), 1)
    """

    name = "file"
    licence = "yours"
    options_class = DataOptions
    _newest: Self | None = None

    def __init__(
        self,
        parts: Mapping[str, Sequences],
        *,
        source: str = "memory",
        class_weights: Sequence[float] | None = None,
        preprocessing: Preprocessing | None = None,
        class_names: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.source = source
        self._known = preprocessing, tuple(class_names)
        self._parts = dict(parts)
        self.columns = next(iter(parts.values())).columns
        self.has_times = any(part.elapsed is not None for part in parts.values())
        self._prepare(DataOptions(**options))
        if class_weights is not None:
            came = len(class_weights) if self.target == "class" else self.target
            fits, expected = came == self.output_size, f"{self.output_size} numbers, one per class"
            advice = "give one for every class, in the order of class_names"
            require(fits, "class_weights", list(class_weights), expected, advice)
            self.class_weights = tuple(float(weight) for weight in class_weights)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the same data with other splits and preprocessing, without reading them again.

        The latest result is cached for the same options.

        Args:
            options: Fields of `DataOptions`; missing ones have their defaults.

        Raises:
            ValueError: If they require reading other columns.

        Example:
            >>> from anharmonic.data.arrays import sequences_from
            >>> part = sequences_from(np.random.default_rng(0).random((20, 50)), ["a", "b"] * 10)
            >>> SequencesTask({"all": part}).with_options({"valid_share": 0.0}).sizes
            {'train': 17, 'valid': 0, 'test': 3}
        """
        changed = DataOptions(**options)
        if self._newest is not None and self._newest.options == changed:
            return self._newest
        read, wanted = self.options.columns, changed.columns
        advice = "read the data again"
        require(wanted == read, "columns of data that were read", wanted, f"{read}", advice)
        made = copy.copy(self)
        self._newest = made._newest = None
        made._prepare(changed)
        self._newest = made
        return made

    def _prepare(self, options: DataOptions) -> None:
        """Cut the data into parts and prepare them.

        In this order: targets, parts, messages, preprocessing (fitted to the training part),
        windows, tensors.
        """
        parts: Mapping[str, Sequences] = self._parts
        self.options = cut = options  # cut: with the length of windows that the data decide
        self.class_names, self.hint, self.horizon = (), "", options.horizon or 0
        self.quantiles = ()
        advance: tuple[int, ...] = ()
        if options.horizon is None:
            parts = self._labelled(parts, options.target)
        else:
            parts = {name: part.with_targets(None) for name, part in parts.items()}
            self.target, self.readout = "value", "last"
            self.metric = "pinball" if options.quantiles else options.metric_of("value")
            self.quantiles = tuple(options.quantiles)
            first = next(iter(parts.values()))
            advance = known_channels(first, tuple(options.known))
            if advance:
                aim = channel_numbers(first, tuple(options.forecast), advance)
                parts = {
                    name: with_future(part, advance, aim, options.horizon, whole=False)
                    for name, part in parts.items()
                }
            cut = replace(cut, window=window_length(options, parts))
        for part in parts.values():
            # Before the cut, because messages name places in the file.
            check_finite(part, part.x, options.missing != "error")
        self.has_own_valid = "valid" in parts
        self.has_gaps = any(bool(np.isnan(part.x).any()) for part in parts.values())
        labels = self.class_names if (self.target, self.readout) == ("class", "last") else ()
        cuts = cut_parts(parts, cut, labels)
        for name, part in cuts.items():
            advice = "give more sequences targets, or choose the parts: x_train, x_valid and x_test"
            fits, what = part.known is None or bool(part.known.any()), f"targets of the {name} part"
            require(fits, f"{what} of {self.source}", "none", "known at some steps", advice)
        self._remarks = self._understood(parts, cuts, options.missing)
        if set(cuts) < set(parts):
            self._remarks.append("the validation part of the file is used for training")
        elif set(parts) != set(cuts):
            cut_by = describe_split(cut, parts["all" if "all" in parts else "train"])
            self._remarks.append(f"split {cut_by}")
        known, known_names = self._known
        if not known_names and self.target == "class":
            warn_of_absent_classes(cuts["train"], self.class_names)
            warn_of_one_class(cuts["test"], self.class_names)
        self._remarks += odd_channels(cuts["train"])
        self.preprocessing = known or Preprocessing.fit(
            cuts["train"],
            options.standardise,
            options.missing,
            difference=options.difference,
            elapsed=options.elapsed,
            scale_target=options.scale_target and self.target == "value" and not options.horizon,
            scale_each=options.scale_each,
        )
        if advance:
            self.preprocessing = replace(self.preprocessing, known=advance, forecast=aim)
        self.spread_of_sizes = spread_of_sizes(cuts["train"])
        self.recordings = {name: len(cuts.get(name, ())) for name in ("train", "valid", "test")}
        self._uncut = np.concatenate([part.lengths for part in parts.values()])
        tested: dict[str, Pieces] = {}
        if cut.window is not None:
            cuts_of_series, count = cuts, len(self._uncut)
            windowed = windows_of(cuts, cut.window, options, self.preprocessing)
            self.preprocessing, cuts, tested = windowed
            number, of = "windows", f" of {counted(count, 'recording')}"
            if options.horizon is None:
                number, of = counted(len(cuts["train"]), "training window"), ""
            self._remarks.insert(0, f"{number} of {cut.window} steps{of}")
            if options.horizon is None and (short := int((self._uncut < cut.window).sum())):
                which = "every recording is" if short == count else f"{short} recordings are"
                self._remarks[0] += f", {which} shorter than that and not cut"
            if options.horizon is not None:
                size = (cut.window, options.stride or 1, options.horizon)
                places = sum(forecast_places(part, *size) for part in cuts_of_series.values())
                if dropped := places - sum(map(len, cuts.values())):
                    self._remarks[0] += (
                        f", {counted(dropped, 'window')} left out for missing values to forecast"
                    )
        if options.horizon is not None:
            self.output_size = np.asarray(cuts["train"].y).shape[1]
        self.sizes = {name: len(cuts.get(name, ())) for name in ("train", "valid", "test")}
        if self.readout == "last":  # with windows, test on recordings
            self.sizes |= {name: int(p.owners.max()) + 1 for name, p in tested.items()}
        self.input_size = self.preprocessing.size
        made = {name: self.preprocessing.dataset(part) for name, part in cuts.items()}
        for name, pieces in tested.items():
            windows = Windowed(*map(torch.from_numpy, (pieces.owners, pieces.fresh)))
            made[name].windows = windows
        self._splits = Splits(made["train"], made.get("valid"), made["test"])
        if options.horizon is not None:
            self._find_season(parts, cuts_of_series)
        self.hint = self.hint or _maybe_channels_first(parts) or _maybe_padded(parts)

    def _find_season(self, parts: Mapping[str, Sequences], cuts: Mapping[str, Sequences]) -> None:
        """Set the seasonal baseline of a forecast, if a season is found."""
        prepared, options = self.preprocessing, self.options
        ahead = (prepared.window, options.stride or 1, prepared.horizon, prepared.forecast)
        season = options.season or find_season(cuts["train"], prepared.horizon, prepared.forecast)
        self.seasonal = None
        if season > 1:
            self.preprocessing = replace(prepared, season=season)
            along = "all" in parts and split_way(options, parts["all"]) == "steps"
            whole = parts["all"] if along else cuts["test"]
            assert self._splits is not None and self._splits.train is not None

            def again(history: Sequences, part: Sequences, made: SequenceDataset) -> Tensor:
                assert made.units is not None
                values = torch.from_numpy(seasonal_values(history, part, *ahead, season))
                last = made.units[0][:, : values.shape[1]].expand(values.shape)
                return torch.where(values.isnan(), last, values)

            self.seasonal = again(whole, cuts["test"], self._splits.test)
            if self.quantiles:
                values = again(cuts["train"], cuts["train"], self._splits.train)
                changes = self._splits.train.y[:, : values.shape[1]] - values
                usual = column_quantiles(changes, self.quantiles)
                self.seasonal = self.seasonal.repeat(1, len(self.quantiles)) + usual
            found = "given" if options.season else "found in the training part"
            self._remarks.append(
                f"baseline: the last value or that {season} steps before ({found}), whichever is "
                "better"
            )

    def _labelled(self, parts: Mapping[str, Sequences], target: str) -> dict[str, Sequences]:
        """Return the sequences with numeric targets, and set the task's target attributes."""
        parts = {name: with_known(classes_by_step(part, target)) for name, part in parts.items()}
        meant = {target_kind(part, target) for part in parts.values()}
        shapes = {name: np.asarray(part.y) for name, part in parts.items() if part.y is not None}
        came = {name: f"{y.dtype} {list(y.shape)}" for name, y in shapes.items()}
        fits = len(meant) == len({part.per_step for part in parts.values()}) == 1
        name, advice = f"y in {self.source}", "store it alike"
        require(fits, name, came, "of one kind in all parts", advice)
        (self.target,) = meant
        self.readout = "all" if parts["train" if "train" in parts else "all"].per_step else "last"
        self.metric = self.options.metric_of(self.target)
        codes: Mapping[str, NDArray[Any]]
        if self.target == "class":
            if self._known[1]:
                self.class_names = self._known[1]
                codes = {
                    name: encode_like(np.asarray(part.y), self.class_names, self.source)
                    for name, part in parts.items()
                }
            else:
                self.class_names, codes = encode_classes(parts, self.source)
                self.hint = self.hint or maybe_unknown(self.class_names, self.source)
            self.output_size = len(self.class_names)
            known = [replace(parts[name], y=code).known_y for name, code in codes.items()]
            every = np.concatenate([part.reshape(-1) for part in known])
            self._counts = np.bincount(every, minlength=self.output_size).tolist()
        elif self.target == "labels":
            self.class_names = label_names(parts, self.source)
            codes = {
                name: encode_labels(part, self.class_names, self.source)
                for name, part in parts.items()
            }
            self.output_size = len(self.class_names)
        else:
            codes = {name: float_targets(part) for name, part in parts.items()}
            self.output_size = output_width(codes, self.source)
            if target == "auto":
                every = np.concatenate(list(codes.values()))
                self.hint = maybe_classes(
                    every, self.source, "--target class (target='class') makes them classes"
                )
        return {name: replace(part, y=codes[name]) for name, part in parts.items()}

    @property
    def is_unbalanced(self) -> bool:
        """Whether one class has more than three times the sequences or steps of another."""
        return self.target == "class" and max(self._counts) > 3 * max(1, min(self._counts))

    def can_fold(self, folds: int) -> bool:
        """Whether the data outside the test part can be cross-validated with this many folds.

        A split by time cannot, nor can fewer groups than folds.

        Example:
            >>> from anharmonic.data.arrays import sequences_from
            >>> part = sequences_from(np.random.default_rng(0).random((20, 50)), ["a", "b"] * 10)
            >>> [SequencesTask({"all": part}, split=by).can_fold(5) for by in ("random", "time")]
            [True, False]
        """
        return can_fold(self.options, self._parts, folds)

    def _understood(
        self, parts: Mapping[str, Sequences], cuts: Mapping[str, Sequences], missing: Missing
    ) -> list[str]:
        """Describe the data for the user."""
        facts = []
        if self.target == "labels" and len(self.class_names) <= 10:
            shares = np.concatenate([part.known_y for part in cuts.values()]).mean(axis=0)
            named = zip(self.class_names, shares, strict=True)
            facts.append("labels " + ", ".join(f"{name} {100 * s:.3g} %" for name, s in named))
        elif self.readout == "last" and 0 < len(self.class_names) <= 10:
            y = np.concatenate([np.asarray(part.y) for part in cuts.values()])
            counts = np.bincount(y, minlength=len(self.class_names))
            named = zip(self.class_names, counts, strict=True)
            facts.append("classes " + ", ".join(f"{name} {count}" for name, count in named))
        unknown = [~part.known for part in parts.values() if part.known is not None]
        if unknown:
            share = 100 * sum(map(np.sum, unknown)) / sum(len(part.x) for part in parts.values())
            facts.append(f"{share:.2g} % of the steps without a target (left out)")
        gaps = sum(int(np.isnan(part.x).sum()) for part in parts.values())
        if gaps:
            share = 100 * gaps / sum(part.x.size for part in parts.values())
            facts.append(f"{share:.2g} % of the inputs missing ({missing})")
        return facts

    @property
    def forecast_channels(self) -> tuple[str, ...]:
        """Names of the forecast channels; empty without a forecast."""
        return self.preprocessing.forecast_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the classes or of the forecast channels."""
        return self.forecast_channels or self.class_names

    @property
    def output(self) -> str:
        """Description of the targets."""
        if not self.horizon:
            return super().output
        channels = counted(len(self.preprocessing.forecast), "channel")
        what = f"the next {counted(self.horizon, 'step')} of {channels}"
        named = ", ".join(f"{q:g}" for q in self.quantiles)
        return f"the quantiles {named} of {what}" if named else what

    @property
    def _sample(self) -> str:
        return "window" if self.horizon else "sequence"

    def _extent(self, parts: str) -> list[str]:
        if self.horizon or not self.preprocessing.window:
            return super()._extent(parts)
        total = len(self._uncut)
        count = counted(total, "recording")
        if sum(self.recordings.values()) == total:  # not each in all parts
            count += f" ({', '.join(f'{size} {name}' for name, size in self.recordings.items())})"
        return [count, steps_in_words(int(self._uncut.min()), int(self._uncut.max()))]

    def _inputs(self, noun: str) -> str:
        prepared = self.preprocessing
        said = counted(len(prepared.mean), noun)
        if len(prepared.mean) == self.input_size:
            return said
        added = {
            "differences": prepared.difference,
            "marks of gaps": prepared.masked,
            "times": prepared.elapsed == "channel",
            "levels": prepared.level_shift,
        }
        names = [name for name, is_there in added.items() if is_there]
        return f"{said} ({self.input_size} model inputs, {listed(names)} included)"

    def summary(self) -> str:
        """Describe how the data were read, for a table including the roles of its columns."""
        columns = "" if self.columns is None else self.columns.describe()
        return "\n".join(filter(None, [super().summary(), columns, "; ".join(self._remarks)]))

    def _build(self) -> Splits[SequenceDataset]:
        raise NotImplementedError("the data were read when the task was made")


class Inputs(NamedTuple):
    """Prepared inputs for predictions."""

    dataset: SequenceDataset
    """The sequences in order, or their windows; `y` has no columns."""
    owners: Integers
    """The sequence of every entry of the data set."""
    fresh: Integers
    """Number of steps at the end of every entry that no earlier entry contains."""
    ids: NDArray[Any] | None
    """Names of the sequences in the data, or None."""
    times: NDArray[Any] | None = None
    """For forecasts, the times of the steps ahead, `[N, horizon]`; None if unknown."""
    clocks: list[NDArray[Any]] | None = None
    """Times of the steps of every sequence, `[T[i]]`, as in the file; None if unknown."""
    utc: bool = False
    """Whether these times are in UTC, as those of the file have a time zone."""


def inputs_of(part: Sequences, preprocessing: Preprocessing) -> Inputs:
    """Prepare sequences for prediction like the training data; targets are ignored."""
    whole, part = part, preprocessing.with_future(part.with_targets(None))
    preprocessing = preprocessing.for_gaps(part)
    pieces = preprocessing.pieces(part)
    times = None
    if preprocessing.horizon:
        past = part.lengths if preprocessing.known else None
        times = future_times(whole, preprocessing.horizon, past, preprocessing.interval)
    data = preprocessing.dataset(pieces.part)
    clocks = None if whole.clock is None else np.split(whole.clock, whole.offsets[1:-1])
    return Inputs(data, pieces.owners, pieces.fresh, part.ids, times, clocks, whole.utc)


def odd_channels(part: Sequences) -> list[str]:
    """Describe odd channels: constant ones, counters, and marks of missing values.

    Example:
        >>> x = np.array([[1, 5, 0.3], [2, 5, 0.1], [3, 5, 0.2]], np.float32)
        >>> odd_channels(Sequences("here", x, np.array([0, 3]), channels=("n", "a", "b")))
        ['constant: a', 'rising by the same at every step: n']
    """
    if not part.channels:
        return []
    same = np.ones(len(part.x), bool)
    same[part.offsets[:-1]] = False
    constant, within, rising, marked = [], [], [], []
    for place, channel in enumerate(part.x.T):
        name = part.channels[place]
        known = channel[~np.isnan(channel)]
        gaps = np.diff(channel, prepend=channel[:1])[same]
        if known.size and (known == known[0]).all():
            constant.append(name)
        elif gaps.size and (gaps == 0).all():
            within.append(name)
        elif gaps.size > 1 and gaps[0] > 0 and (np.abs(gaps - gaps[0]) <= 1e-3 * gaps[0]).all():
            rising.append(name)
        for mark in _MARKS if known.size else ():
            others = known[known != mark]
            if 0 < others.size < known.size and 3 * np.abs(others).max() < abs(mark):
                marked.append(f"{name} ({mark})")
    kinds = {
        "constant": constant,
        "constant in every sequence": within,
        "rising by the same at every step": rising,
        "if it means missing, leave it empty": marked,
    }
    return [f"{kind}: {', '.join(names[:8])}" for kind, names in kinds.items() if names]


def _maybe_channels_first(parts: Mapping[str, Sequences]) -> str:
    """Return the hint that an array may be [N, C, T], or "" if that is unlikely."""
    part = next(iter(parts.values()))
    steps, channels = int(part.lengths.max()), part.x.shape[1]
    even = part.columns is None and len(set(part.lengths.tolist())) == 1
    if not even or channels <= 2 * steps or channels < 16:
        return ""
    return (
        f"x in {part.where} is read as {steps} steps of {channels} channels. If it is [N, C, T], "
        "store x.transpose(0, 2, 1), or pass channels_first=True to sequences_from."
    )


def _maybe_padded(parts: Mapping[str, Sequences]) -> str:
    """Return the hint that missing values at the ends of an array may be padding, or ""."""
    part = next(iter(parts.values()))
    if part.columns is not None or len(set(part.lengths.tolist())) > 1:
        return ""
    gaps = np.isnan(part.x).all(axis=1).reshape(len(part), -1)
    ends = np.logical_and.accumulate(gaps[:, ::-1], axis=1).sum(axis=1)
    if 4 * (ends > 0).sum() < len(part) or ends.sum() < gaps.sum():
        return ""
    return (
        f"{(ends > 0).sum()} sequences of {part.where} end with missing values. If these only pad "
        "them, store the lengths [N] beside x."
    )


class FileTask(SequencesTask):
    """Your own sequences from a file or folder, for classification, regression or forecasts.

    Integer and string targets are classes; decimal numbers are values. The metric is accuracy in
    percent for classes and root mean squared error in units of `y` for values.

    Args:
        path: An `.npz` archive (keys as in `read_npz`), a `.ts` file of the UCR and UEA archives,
            a table (`.csv`, `.tsv`, `.txt`, `.parquet`), `.npy`, `.mat` or `.tsf`. Given
            `NAME_TRAIN.ts` or `NAME_TEST.ts` (or another ending except `.npz`), the other file is
            read too. Or a folder with one file per recording.
        sha256: Expected `file_digest(path)`; another file is refused. None for no check.
        options: Fields of `DataOptions`.

    Shape:
        x `[B, T, F]` zero-padded to the longest of the batch, y `[B]`, `[B, O]` or `[B, T, O]`,
        lengths `[B]` where sequences differ in length.

    Split: the file's own, if it has one (without a validation part, 15 % of the training part
    validates). Otherwise 70 % training, 15 % validation, 15 % test. The recipe of the command line
    omits validation for few sequences.

    A class with fewer sequences than parts cannot be in all of them and gives a warning.

    Attributes:
        digest: `file_digest(path)`.
        options: The `DataOptions`.
        preprocessing: The preprocessing of the inputs; `read_inputs` applies it to new data.
        columns: Roles of a table's columns; None if the file is not a table.
        has_times: Whether the file contains the time between samples.
        has_gaps: Whether inputs are missing, in any part.
        has_own_valid: Whether the data have a validation part of their own.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the file is damaged or inconsistent, or is not the file of `sha256`. The
            message says what and where.

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
        self.path = existing_data(path)
        self.digest = checked_digest(self.path, sha256)
        parts = read_parts(self.path, targets=chosen.horizon is None, columns=chosen.columns)
        super().__init__(parts, source=self.path.name, **options)


def read_inputs(
    path: Path | str, preprocessing: Preprocessing, columns: Columns | None = None
) -> Inputs:
    """Read only the inputs of a file or folder for predictions, as `checked_inputs` prepares them.

    The columns are those of the training table, `FileTask(...).columns`; targets may be missing.
    """
    parts = read_parts(path, targets=False, columns=columns)
    keys = [f"x_{name}" for name in parts]
    advice = "store the sequences to predict from as x, or give the folder of one part"
    require("all" in parts, f"keys of {Path(path).name}", keys, "x", advice)
    return checked_inputs(parts["all"], preprocessing)


def checked_inputs(part: Sequences, preprocessing: Preprocessing) -> Inputs:
    """Prepare sequences for prediction, and warn if they differ from the training data.

    A channel, the length or the time between samples may be far from it; other channels are
    refused. A warning also tells of steps later than the forecast.
    """
    inputs = inputs_of(part, preprocessing)
    past = preprocessing.with_future(part)
    preprocessing.warn_of(past)
    ahead, horizon = int((part.lengths - past.lengths).max()), preprocessing.horizon
    if ahead > horizon:
        text = (
            f"{part.where} has rows for up to {ahead} steps after the last value to forecast. The "
            f"model forecasts {counted(horizon, 'step')}, so later rows are not used."
        )
        warnings.warn(text, stacklevel=3)
    return inputs
