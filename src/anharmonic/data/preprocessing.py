"""What is done to the user's sequences before training, and again before every prediction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import (
    boolean,
    choice,
    listed,
    message,
    natural,
    number,
    of_hints,
    positive_int,
    require,
)
from anharmonic.data.base import SequenceDataset
from anharmonic.data.sequences import Floats, Sequences, check_finite
from anharmonic.data.windows import Pieces, covering_windows, last_windows, with_future

Missing = Literal["error", "mean", "forward", "mask"]
Elapsed = Literal["ignore", "step", "channel"]
# Of a sequence that does not change, in units of the standard deviation of all.
_LEAST_STD = 1e-10
# Of float32, as data are.
_LARGEST = float(np.finfo(np.float32).max)


class Layout(Protocol):
    """How sequences lie in memory and in which numbers: what preparation needs of either.

    NumPy has sequences one after another, a graph has a batch of tensors, and a program in whole
    numbers a batch of integers.
    """

    mean: Any

    def missing(self, x: Any, /) -> Any:
        """Where values are missing."""

    def where(self, condition: Any, x: Any, y: Any, /) -> Any:
        """Values of x where the condition holds, else of y."""

    def carried_forward(self, x: Any) -> Any:
        """The last known value in every gap; gaps stay before a sequence's first known value."""

    def standardised(self, x: Any) -> Any:
        """Of mean 0 and standard deviation 1 in training."""

    def scaled_each(self, x: Any) -> tuple[Any, Any]:
        """Every sequence scaled by itself, and the levels that this takes away."""

    def marks(self, gaps: Any) -> Any:
        """A channel that is 1 in gaps."""

    def changes(self, x: Any) -> Any:
        """Scaled first differences, 0 at a sequence's first step."""


@dataclass(frozen=True)
class Preprocessing:
    """What is done to the inputs, with numbers taken from the training data only.

    Attributes:
        mean: Mean of every channel over all training steps.
        std: Standard deviation of every channel; 1 where it is 0.
        standardise: Whether x becomes (x - mean) / std.
        missing: "error": NaN is refused; "mean": NaN becomes the channel's mean; "forward": the
            last known value of the sequence, and the mean before the first one; "mask": the mean,
            and a channel that is 1 where the value was missing, else 0.
        masked: The channels that have such a mask: those with gaps in training.
        difference: Root mean square of every prepared channel's first difference in training; 1
            where it is 0. Empty if differences are not appended.
        elapsed: What becomes of the time between samples: "ignore"; "step": it multiplies the
            model's time step; "channel": it is appended as a channel.
        nominal: The time between samples that counts as 1: the median in training.
        target_shift: What a model's output of 0 stands for: the mean of every target in training.
            Empty if targets are not scaled.
        target_scale: What a model's output of 1 adds to that: the standard deviation of every
            target in training; 1 where it is 0. Of a forecast, per channel the root mean square of
            its change since the last known value, which an output of 0 stands for.
        window: Steps per window, if recordings are cut into windows; 0 if they are not.
        horizon: Steps forecast after a window; 0 if nothing is forecast.
        forecast: The channels that are forecast.
        channels: Name of every channel as read; empty if not known.
        level_shift: If every sequence is scaled by itself, the means in training of what that takes
            from it, of every channel its mean and the logarithm of its standard deviation: these
            are appended as channels, the same at every step. Empty if sequences are not.
        level_scale: The standard deviations of those; 1 where one is 0.
        season: Steps after which a forecast's series repeat, for the baseline; 0 if they do not.
        quantiles: What is forecast of each value; empty for its mean. Outputs are all values of the
            first quantile, then of the second, and so on.
        known: Channels that are known in advance. The last channels of `mean` and `channels` are
            these once more, as they are `horizon` steps later.

    Example:
        >>> x = np.array([[1.0], [3.0]], np.float32)
        >>> part = Sequences("here", x, np.array([0, 2]))
        >>> p = Preprocessing.fit(part, True, "error", difference=True)
        >>> p.mean, p.std, p == Preprocessing.from_dict(p.to_dict())
        ((2.0,), (1.0,), True)
        >>> p.transform(part).tolist()
        [[-1.0, 0.0], [1.0, 1.0]]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    standardise: bool
    missing: str
    masked: tuple[int, ...] = ()
    difference: tuple[float, ...] = ()
    elapsed: str = "ignore"
    nominal: float = 1.0
    target_shift: tuple[float, ...] = ()
    target_scale: tuple[float, ...] = ()
    window: int = 0
    horizon: int = 0
    forecast: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    level_shift: tuple[float, ...] = ()
    level_scale: tuple[float, ...] = ()
    season: int = 0
    quantiles: tuple[float, ...] = ()
    known: tuple[int, ...] = ()

    @classmethod
    def fit(
        cls,
        train: Sequences,
        standardise: bool,
        missing: str,
        *,
        difference: bool = False,
        elapsed: str = "ignore",
        scale_target: bool = False,
        scale_each: bool = False,
    ) -> Preprocessing:
        """Take the numbers from training data.

        Args:
            train: The training part; its `y` are numbers.
            standardise: See above.
            missing: See above.
            difference: Whether every channel's first difference is appended as a further channel.
            elapsed: See above.
            scale_target: Whether targets, which are values, get mean 0 and standard deviation 1.
            scale_each: Whether every sequence gets mean 0 and standard deviation 1 by itself.

        Raises:
            ValueError: If a value is infinite, missing where it may not be, a channel is missing
                everywhere, or the time between samples is not known.
        """
        check_finite(train, train.x, missing != "error")
        sums: list[tuple[float, float]] = []
        for channel in train.x.T:
            known = channel[~np.isnan(channel)].astype(np.float64)
            name = f"channel {len(sums)} of x in {train.where}"
            expected, advice = "known at one training step", "remove this channel"
            require(known.size > 0, name, "missing values only", expected, advice)
            std = float(known.std())
            sums.append((float(known.mean()), std if std > 0 else 1.0))
        gaps = np.flatnonzero(np.isnan(train.x).any(axis=0)).tolist() if missing == "mask" else []
        made = cls(
            tuple(m for m, _ in sums),
            tuple(s for _, s in sums),
            standardise,
            missing,
            tuple(gaps),
            elapsed=elapsed,
            nominal=1.0 if elapsed == "ignore" else _median_step(train),
            channels=train.channels,
        )
        if scale_each:
            levels = _scaled_each(train, made.filled(train.x, _Flat(made, train)))[1]
            shift, scale = tuple(levels.mean(axis=0).tolist()), _ones_for_zeros(levels.std(axis=0))
            made = replace(made, level_shift=shift, level_scale=scale)
        if difference:
            change = _differences(train, made.scaled(train.x, _Flat(made, train))[0])
            count = max(1, len(change) - len(train))
            size = np.sqrt(np.square(change, dtype=np.float64).sum(axis=0) / count)
            made = replace(made, difference=_ones_for_zeros(size))
        if scale_target:
            y = np.asarray(train.y, np.float64)
            y = y if train.known is None else y[train.known]
            shift, scale = tuple(y.mean(axis=0).tolist()), _ones_for_zeros(y.std(axis=0))
            made = replace(made, target_shift=shift, target_scale=scale)
        return made

    @property
    def size(self) -> int:
        """Number of prepared channels."""
        appended = len(self.masked) + len(self.difference) + (self.elapsed == "channel")
        return len(self.mean) + appended + len(self.level_scale)

    @property
    def forecast_names(self) -> tuple[str, ...]:
        """Names of the channels that are forecast, numbers where they have none."""
        return tuple(self.channels[i] if self.channels else str(i) for i in self.forecast)

    def transform(self, sequences: Sequences) -> Floats:
        """Prepare the inputs of sequences.

        Returns:
            The channels, then the masks of `masked`, the differences, the time between samples, the
            levels of `level_scale`.

        Raises:
            ValueError: If the number of channels is another, or a value is not finite.

        Shape:
            `[sum of lengths, size]`.
        """
        self._check_channels(sequences, len(self.mean))
        check_finite(sequences, sequences.x, self.missing != "error")
        elapsed = self.steps(sequences) if self.elapsed == "channel" else None
        columns = self.columns(sequences.x, _Flat(self, sequences), elapsed)
        return np.ascontiguousarray(np.concatenate(columns, axis=1), dtype=np.float32)

    def _check_channels(self, sequences: Sequences, count: int) -> None:
        """Refuse sequences whose channels are not the first `count` of training."""
        channels, expected = sequences.x.shape[1], f"{count}, as in training"
        advice = "give the same channels in the same order"
        name = f"channels of x in {sequences.where}"
        require(channels == count, name, channels, expected, advice)
        names, known = list(sequences.channels), list(self.channels[:count])
        alike = not names or not known or names == known
        require(alike, name, names, f"{known}, as in training", advice)

    def with_future(self, sequences: Sequences, whole: bool = True) -> Sequences:
        """Series up to where their forecast begins, with what is known in advance.

        Args:
            sequences: The series, with the steps to forecast where something is known of them.
            whole: As of `windows.with_future`.

        Raises:
            ValueError: If the channels are not those of training, or what has to be known is not.
        """
        if not self.known:
            return sequences
        self._check_channels(sequences, len(self.mean) - len(self.known))
        return with_future(sequences, self.known, self.forecast, self.horizon, whole)

    def forecasting(
        self, train: Sequences, window: int, horizon: int, channels: tuple[int, ...]
    ) -> Preprocessing:
        """The same for a forecast.

        Args:
            train: Windows of the training part with the next values as targets.
            window: Steps per window.
            horizon: Steps to forecast.
            channels: Those that are forecast.
        """
        change = np.asarray(train.y, np.float64).reshape(len(train), horizon, -1)
        change = change - self.last_known(train, channels)[:, None]
        scale = _ones_for_zeros(np.sqrt(np.square(change).mean(axis=(0, 1))))
        made = replace(self, window=window, horizon=horizon, forecast=channels)
        return replace(made, target_scale=scale)

    def dataset(self, sequences: Sequences) -> SequenceDataset:
        """The data set of sequences, prepared."""
        units: tuple[torch.Tensor, ...] | None = None
        if self.target_scale:
            shift, scale = np.array([self.target_shift]), np.array([self.target_scale])
            if self.horizon:
                times = self.horizon * max(1, len(self.quantiles))
                shift = np.tile(self.last_known(sequences, self.forecast), times)
                scale = np.tile(scale, times)
            units = torch.from_numpy(shift).float(), torch.from_numpy(scale).float()
            if self.quantiles:
                units = (*units, torch.tensor([self.quantiles]))
        elapsed = self.steps(sequences) if self.elapsed == "step" else None
        return sequences.dataset(self.transform(sequences), elapsed, units)

    def pieces(self, sequences: Sequences) -> Pieces:
        """What the model is called with to predict for sequences: windows, if it learnt from them.

        Args:
            sequences: Without targets.
        """
        if self.horizon:
            return last_windows(sequences, self.window)
        return covering_windows(sequences, self.window or int(sequences.lengths.max()))

    def for_gaps(self, sequences: Sequences) -> Preprocessing:
        """The same, but with gaps filled where new sequences have some and training had none.

        Args:
            sequences: The sequences to predict for.

        Raises:
            UserWarning: If there are gaps, which get the last known value.
        """
        gaps = int(np.isnan(sequences.x).sum()) if self.missing == "error" else 0
        if not gaps:
            return self
        text = (
            f"{gaps} values of x in {sequences.where} are missing, in training none were. They are "
            "taken as the last known value of their sequence (the mean of training before the "
            "first)."
        )
        warnings.warn(text, stacklevel=3)
        return replace(self, missing="forward")

    def doubts(self, sequences: Sequences) -> list[str]:
        """What of new sequences is so far from training that it may be in another unit.

        Args:
            sequences: The sequences to predict for; their channels are those of training.
        """
        found = []
        for place, channel in enumerate(sequences.x.T):
            known = channel[np.isfinite(channel)].astype(np.float64)
            if len(known) < 2:
                continue
            mean, std = float(known.mean()), float(known.std())
            away = abs(mean - self.mean[place]) > 5 * self.std[place]
            if away or std > 10 * self.std[place] or 0 < 10 * std < self.std[place]:
                name = self.channels[place] if self.channels else place
                found.append(
                    f"channel {name} has mean {mean:.3g} and standard deviation {std:.3g}, in "
                    f"training {self.mean[place]:.3g} and {self.std[place]:.3g}"
                )
        if self.elapsed != "ignore" and (sequences.lengths > 1).any():
            median = _median_step(sequences)
            if not 0.1 <= median / self.nominal <= 10:
                times = f"{median:.3g} between samples, in training {self.nominal:.3g}"
                found.append(f"the median time is {times}")
        return found

    def last_known(self, sequences: Sequences, channels: tuple[int, ...]) -> NDArray[np.float64]:
        """The last known value of the channels in every sequence, their mean if there is none."""
        last = _carried_forward(sequences)[sequences.offsets[1:] - 1]
        return np.where(np.isnan(last), np.array(self.mean), last)[:, list(channels)]

    def steps(self, sequences: Sequences) -> Floats:
        """The time between samples in nominal steps; 1 for a first sample whose time is 0."""
        steps = _elapsed_of(sequences) / np.float32(self.nominal)
        first = sequences.offsets[:-1]
        steps[first] = np.where(steps[first] == 0, 1.0, steps[first])
        return steps

    def columns(self, x: Any, of: Layout, elapsed: Any = None) -> list[Any]:
        """The parts of prepared samples, in their order: the one place that knows what is done.

        Args:
            x: Samples as they come, [..., C].
            of: How the sequences lie in memory.
            elapsed: Times between samples in nominal steps, [...], where they are a channel.
        """
        gaps = of.missing(x)
        x, levels = self.scaled(x, of)
        columns = [x]
        if self.masked:
            columns.append(of.marks(gaps[..., list(self.masked)]))
        if self.difference:
            columns.append(of.changes(x))
        if self.elapsed == "channel":
            columns.append(elapsed[..., None])
        if self.level_scale:
            columns.append(levels)
        return columns

    def filled(self, x: Any, of: Layout) -> Any:
        """The channels without gaps, standardised if wanted."""
        if self.missing == "forward":
            x = of.carried_forward(x)
        if self.missing != "error":
            x = of.where(of.missing(x), of.mean, x)
        return of.standardised(x) if self.standardise else x

    def scaled(self, x: Any, of: Layout) -> tuple[Any, Any]:
        """The channels without gaps, of each sequence by itself if wanted, and its levels."""
        x = self.filled(x, of)
        return of.scaled_each(x) if self.level_scale else (x, None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; what is as in older versions, which did not know it, is left out."""
        default = {field.name: field.default for field in fields(self)}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value != default[key]
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """From JSON values; what older versions did not write is as they did it.

        Raises:
            ValueError: If a key is unknown or missing, a value is not one of those allowed, or
                values do not fit together.
            TypeError: If `standardise` is no bool.
        """
        known = [field.name for field in fields(cls)]
        needed = [field.name for field in fields(cls) if field.default is MISSING]
        fits = set(needed) <= set(values) <= set(known)
        advice = "use what to_dict() gave"
        expected = f"{sorted(needed)} and perhaps {sorted(set(known) - set(needed))}"
        require(fits, "keys of preprocessing", sorted(values), expected, advice)
        boolean("standardise", values["standardise"])
        of_hints(cls, values, "preprocessing", advice)
        places = "masked", "forecast", "known"
        made = cls(**{name: _as_field(v, name in places) for name, v in values.items()})
        made._check()
        return made

    def _check(self) -> None:
        """Refuse numbers out of range, and fields that do not fit together.

        Raises:
            ValueError: If there are some.
        """
        choice("missing", self.missing, get_args(Missing))
        choice("elapsed", self.elapsed, get_args(Elapsed))
        number("nominal", self.nominal, low=0.0, low_open=True)
        for name in ("window", "horizon", "season"):
            natural(name, getattr(self, name))
        for name in ("mean", "target_shift", "level_shift"):
            for value in getattr(self, name):
                number(f"an entry of {name}", value, low=-_LARGEST, high=_LARGEST)
        sizes = "std", "difference", "target_scale", "level_scale"
        for name in sizes:
            for value in getattr(self, name):
                number(f"an entry of {name}", value, low=0.0, low_open=True, high=_LARGEST)
        for quantile in self.quantiles:
            number("a quantile", quantile, low=0.0, high=1.0)
        channels, targets = len(self.mean), len(self.target_scale)
        positive_int("the number of channels", channels)
        counts = {
            "std": (channels,),
            "difference": (0, channels),
            "channels": (0, channels),
            "level_shift": (0, 2 * channels),
            "level_scale": (len(self.level_shift),),
            "target_shift": (0 if self.horizon else targets,),
            "target_scale": (len(self.forecast),) if self.horizon else (targets,),
        }
        for name, allowed in counts.items():
            count, expected = len(getattr(self, name)), listed(list(map(str, allowed)), "or")
            require(count in allowed, f"entries of {name}", count, expected, "restore them")
        for name in ("masked", "forecast", "known"):
            places = getattr(self, name)
            most = channels - len(self.known) * (name != "masked")
            fits = len(set(places)) == len(places) and all(0 <= p < most for p in places)
            expected = f"different channels from 0 to {most - 1}"
            require(fits, name, places, expected, "restore it")
        fits = not self.known or bool(self.horizon and not {*self.known} & {*self.forecast})
        expected = "channels that a forecast does not predict"
        require(fits, "known", self.known, expected, "restore it")
        alike = bool(self.horizon) == bool(self.forecast) and self.window >= bool(self.horizon)
        came = self.window, self.horizon, self.forecast
        expected = "there for a forecast, and only there"
        require(alike, "window, horizon and forecast", came, expected, "restore them")
        fits = not self.masked or self.missing == "mask"
        require(fits, "masked", self.masked, "empty unless missing is 'mask'", "restore it")


def _as_field(value: Any, whole: bool) -> Any:
    """A field from its JSON: numbers that are no places are floats, 1 too."""
    if not isinstance(value, list):
        return value
    return tuple(float(v) if isinstance(v, int) and not whole else v for v in value)


class _Flat:
    """Sequences one after another in NumPy, as training has them: the ``Layout`` of `Sequences`."""

    def __init__(self, how: Preprocessing, sequences: Sequences) -> None:
        self._how, self._sequences = how, sequences
        self.mean, self.where, self.missing = np.array(how.mean), np.where, np.isnan

    def carried_forward(self, x: Floats) -> Floats:
        return _carried_forward(self._sequences)

    def standardised(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((x - self.mean) / np.array(self._how.std))

    def scaled_each(self, x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        x, levels = _scaled_each(self._sequences, x)
        levels = (levels - np.array(self._how.level_shift)) / np.array(self._how.level_scale)
        return x, np.repeat(levels, self._sequences.lengths, axis=0)

    def marks(self, gaps: NDArray[Any]) -> NDArray[Any]:
        return gaps

    def changes(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(_differences(self._sequences, x) / np.array(self._how.difference))


def spread_of_sizes(sequences: Sequences) -> float:
    """How much sequences differ in size: the ratio of large to small standard deviations.

    Of every channel the 90 % quantile over the 10 % quantile, sequences that do not change left
    out; of these ratios the median.

    Args:
        sequences: Of training; values may be missing.

    Example:
        >>> x = np.array([[0.0], [1.0], [0.0], [100.0]], np.float32)
        >>> round(spread_of_sizes(Sequences("here", x, np.array([0, 2, 4]))), 1)
        8.3
    """
    known = np.where(np.isnan(sequences.x), np.nanmean(sequences.x, axis=0), sequences.x)
    sizes = np.exp(_scaled_each(sequences, known)[1][:, known.shape[1] :])
    ratios = []
    for channel in sizes.T:
        if len(moving := channel[channel > 2 * _LEAST_STD]):
            low, high = np.quantile(moving, [0.1, 0.9])
            ratios.append(high / low)
    return float(np.median(ratios)) if ratios else 1.0


def _scaled_each(
    sequences: Sequences, x: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every sequence with mean 0 and standard deviation 1, and its means and log deviations."""
    counts, begins = sequences.lengths, sequences.offsets[:-1]
    x = x.astype(np.float64)
    mean = np.add.reduceat(x, begins) / counts[:, None]
    x = x - np.repeat(mean, counts, axis=0)
    std = np.sqrt(np.add.reduceat(np.square(x), begins) / counts[:, None])
    std = np.maximum(std, _LEAST_STD)
    return x / np.repeat(std, counts, axis=0), np.concatenate([mean, np.log(std)], axis=1)


def _ones_for_zeros(sizes: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.where(sizes > 0, sizes, 1.0).tolist())


def _elapsed_of(sequences: Sequences) -> Floats:
    if sequences.elapsed is None:
        expected = f"{sequences.where} must hold the time between samples (elapsed)"
        raise ValueError(message(expected, "none", "add it, or leave out the option elapsed"))
    return sequences.elapsed


def _median_step(sequences: Sequences) -> float:
    elapsed = np.delete(_elapsed_of(sequences), sequences.offsets[:-1])
    positive = elapsed[elapsed > 0]
    advice = "store the time since the previous sample, or leave out the option elapsed"
    name, expected = f"elapsed in {sequences.where}", "positive somewhere"
    require(len(positive) > 0, name, "zeros only", expected, advice)
    return float(np.median(positive))


def _differences(sequences: Sequences, x: NDArray[Any]) -> NDArray[Any]:
    """The change since the step before, 0 at the first step of a sequence."""
    change = np.diff(x, axis=0, prepend=x[:1])
    change[sequences.offsets[:-1]] = 0.0
    return change


def _carried_forward(sequences: Sequences) -> Floats:
    """The channels with the last known value in every gap; NaN before a sequence's first one."""
    steps = np.arange(len(sequences.x))[:, None]
    source = np.where(np.isnan(sequences.x), 0, steps)
    source[sequences.offsets[:-1]] = sequences.offsets[:-1, None]
    return np.take_along_axis(sequences.x, np.maximum.accumulate(source, axis=0), axis=0)
