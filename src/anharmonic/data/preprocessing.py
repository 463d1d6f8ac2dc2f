"""Preprocessing of a user's sequences for training and prediction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, NoReturn, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import (
    boolean,
    choice,
    levels_to_caller,
    listed,
    message,
    natural,
    number,
    of_hints,
    positive_int,
    require,
)
from anharmonic.data.base import SequenceDataset, counted
from anharmonic.data.options import DataOptions, Elapsed, Missing
from anharmonic.data.sequences import Floats, Sequences, check_finite
from anharmonic.data.windows import (
    Pieces,
    channel_numbers,
    covering_windows,
    cut_windows,
    forecast_windows,
    last_windows,
    with_future,
)

# Smallest deviation of a sequence, in units of the standard deviation of all.
_LEAST_STD = 1e-10
# Deviation of levels by rounding alone, relative to the largest.
_SAME_LEVEL = 1e-9
# Precision of float32, the dtype of data.
_LARGEST = float(np.finfo(np.float32).max)


class Layout(Protocol):
    """Operations that preprocessing needs, for one memory layout and number format.

    NumPy stores concatenated sequences, an exported graph a batch of tensors, and an integer
    program a batch of integers.
    """

    mean: Any

    def missing(self, x: Any, /) -> Any:
        """Return where values are missing."""

    def where(self, condition: Any, x: Any, y: Any, /) -> Any:
        """Return values of x where the condition holds, otherwise of y."""

    def carried_forward(self, x: Any) -> Any:
        """Fill gaps with the last known value; gaps before the first one remain."""

    def standardised(self, x: Any) -> Any:
        """Scale to mean 0 and standard deviation 1 in training."""

    def scaled_each(self, x: Any) -> tuple[Any, Any]:
        """Scale every sequence separately, and return the removed levels."""

    def marks(self, gaps: Any) -> Any:
        """Return a channel that is 1 in gaps."""

    def changes(self, x: Any) -> Any:
        """Return scaled first differences, 0 at a sequence's first step."""


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of inputs, with numbers from the training data only.

    Attributes:
        mean: Mean of every channel over all training steps.
        std: Standard deviation of every channel; 1 where it is 0.
        standardise: Whether x becomes (x - mean) / std.
        missing: "error" refuses NaN. "mean" replaces NaN by the channel's mean. "forward" uses the
            last known value of the sequence, and the mean before the first one. "mask" uses the
            mean and adds a channel that is 1 in gaps, otherwise 0.
        masked: The channels with such a mask, which are those with gaps in training.
        difference: Root mean square of every prepared channel's first difference in training; 1
            where it is 0. Empty without differences.
        elapsed: Use of the time between samples: "ignore" it, "step" multiplies the model's time
            step, "channel" appends it as a channel.
        nominal: The time between samples that counts as 1, the median in training.
        target_shift: The value at model output 0: the mean of every target in training. Empty if
            targets are not scaled.
        target_scale: Target units per model output: the standard deviation of every target in
            training; 1 where it is 0. For a forecast, the root mean square of each channel's change
            since the last known value, which is the value at output 0.
        window: Length of a window in steps; 0 without windows.
        horizon: Number of forecast steps after a window; 0 for no forecast.
        forecast: The forecast channels.
        channels: Name of every channel as read; empty if unknown.
        level_shift: With separate scaling of sequences, the training means of every channel's
            level: its mean and the logarithm of its standard deviation. The levels are appended as
            constant channels. Empty otherwise.
        level_scale: The standard deviations of the levels; 1 where one is 0.
        season: Season of a forecast's series in steps, for the baseline; 0 without a season.
        quantiles: Forecast quantiles; empty for the mean. Outputs are all values of the first
            quantile, then of the second, and so on.
        known: Channels that are known in advance. The last channels of `mean` and `channels` repeat
            them as they are `horizon` steps later.
        interval: The usual time between samples in training, to compare new data with; 0 if
            unknown.
        longest: The longest time between samples in training, if times are ignored; 0 if all are
            equal or unknown.
        shortest: Steps of the shortest training sequence, before windows are cut; 0 if unknown.

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
    interval: float = 0.0
    longest: float = 0.0
    shortest: int = 0

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
        """Fit the preprocessing to training data.

        Args:
            train: The training part with numeric `y`.
            standardise: See above.
            missing: See above.
            difference: Whether to append every channel's first difference as a channel.
            elapsed: See above.
            scale_target: Whether to scale numeric targets to mean 0 and standard deviation 1.
            scale_each: Whether to scale every sequence separately to mean 0 and standard deviation
                1.

        Raises:
            ValueError: If a value is infinite, a value or a whole channel is missing, or the time
                between samples is unknown.
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
            nominal=1.0 if elapsed == "ignore" else _nominal_step(train),
            channels=train.channels,
            interval=train.interval or 0.0,
            longest=float(_gaps(train).max(initial=0.0)) if elapsed == "ignore" else 0.0,
            shortest=int(train.lengths.min()),
        )
        if scale_each:
            levels = _scaled_each(train, made.filled(train.x, _Flat(made, train)))[1]
            std = levels.std(axis=0)
            std[std <= _SAME_LEVEL * np.abs(levels).max(axis=0)] = 0.0
            shift, scale = tuple(levels.mean(axis=0).tolist()), _ones_for_zeros(std)
            made = replace(made, level_shift=shift, level_scale=scale)
        if difference:
            change = _differences(train, made.scaled(train.x, _Flat(made, train))[0])
            count = max(1, len(change) - len(train))
            size = np.sqrt(np.square(change, dtype=np.float64).sum(axis=0) / count)
            made = replace(made, difference=_ones_for_zeros(size))
        if scale_target:
            made = made.scaling(train.known_y)
        return made

    def scaling(self, y: NDArray[Any]) -> Preprocessing:
        """Return the same preprocessing with targets scaled to mean 0 and standard deviation 1.

        Args:
            y: The known targets of the training part, `[N, O]`.
        """
        y = np.asarray(y, np.float64)
        shift, scale = tuple(y.mean(axis=0).tolist()), _ones_for_zeros(y.std(axis=0))
        return replace(self, target_shift=shift, target_scale=scale)

    @property
    def target_units(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Shift and scale of targets that are no forecasts, float32 `[O]` each; None without."""
        if not self.target_scale:
            return None
        shift = torch.tensor(self.target_shift, dtype=torch.float32)
        return shift, torch.tensor(self.target_scale, dtype=torch.float32)

    @property
    def size(self) -> int:
        """Number of prepared channels."""
        appended = len(self.masked) + len(self.difference) + (self.elapsed == "channel")
        return len(self.mean) + appended + len(self.level_scale)

    @property
    def forecast_names(self) -> tuple[str, ...]:
        """Names of the forecast channels, or numbers without names."""
        return tuple(self.channels[i] if self.channels else str(i) for i in self.forecast)

    def transform(self, sequences: Sequences) -> Floats:
        """Prepare the inputs of sequences.

        Returns:
            The channels, followed by the masks of `masked`, differences, time between samples, and
            levels of `level_scale`.

        Raises:
            ValueError: If the number of channels differs, or a value is not finite.

        Shape:
            `[sum of lengths, size]`.
        """
        self.check_channels(sequences, len(self.mean))
        check_finite(sequences, sequences.x, self.missing != "error")
        elapsed = self.steps(sequences) if self.elapsed == "channel" else None
        columns = self.columns(sequences.x, _Flat(self, sequences), elapsed)
        return np.ascontiguousarray(np.concatenate(columns, axis=1), dtype=np.float32)

    def check_channels(self, sequences: Sequences, count: int | None = None) -> None:
        """Refuse sequences whose channels differ from the first `count` of training.

        By default those of a file: without those of later steps, which `with_future` adds.
        """
        count = len(self.mean) - len(self.known) if count is None else count
        channels, expected = sequences.x.shape[1], f"{count}, as in training"
        advice = "give the same channels in the same order"
        name = f"channels of x in {sequences.where}"
        require(channels == count, name, channels, expected, advice)
        names, known = list(sequences.channels), list(self.channels[:count])
        alike = not names or not known or names == known
        require(alike, name, names, f"{known}, as in training", advice)

    def with_future(self, sequences: Sequences, whole: bool = True) -> Sequences:
        """Return series up to the start of their forecast, with the known channels.

        Args:
            sequences: The series, including the steps to forecast if channels are known in advance.
            whole: As in `windows.with_future`.

        Raises:
            ValueError: If the channels are not those of training, or known values are missing.
        """
        if not self.known:
            return sequences
        self.check_channels(sequences)
        return with_future(sequences, self.known, self.forecast, self.horizon, whole)

    def forecasting(
        self, train: Sequences, window: int, horizon: int, channels: tuple[int, ...]
    ) -> Preprocessing:
        """Return the same preprocessing for a forecast.

        Args:
            train: Windows of the training part with the next values as targets.
            window: Steps per window.
            horizon: Number of steps to forecast.
            channels: The forecast channels.
        """
        change = np.asarray(train.y, np.float64).reshape(len(train), horizon, -1)
        change = change - self.last_known(train, channels)[:, None]
        scale = _ones_for_zeros(np.sqrt(np.square(change).mean(axis=(0, 1))))
        made = replace(self, window=window, horizon=horizon, forecast=channels)
        return replace(made, target_scale=scale)

    def dataset(self, sequences: Sequences) -> SequenceDataset:
        """Return the data set of prepared sequences."""
        units: tuple[torch.Tensor, ...] | None = None
        if self.horizon:
            times = self.horizon * max(1, len(self.quantiles))
            shift = np.tile(self.last_known(sequences, self.forecast), times)
            scale = np.tile([self.target_scale], times)
            units = torch.from_numpy(shift).float(), torch.from_numpy(scale).float()
            if self.quantiles:
                units = (*units, torch.tensor([self.quantiles]))
        elif (of_targets := self.target_units) is not None:
            units = tuple(part[None] for part in of_targets)
        elapsed = self.steps(sequences) if self.elapsed == "step" else None
        return sequences.dataset(self.transform(sequences), elapsed, units)

    def pieces(self, sequences: Sequences) -> Pieces:
        """Return the model's inputs for sequences: windows, if it was trained on windows.

        Args:
            sequences: Without targets.
        """
        if self.horizon:
            return last_windows(sequences, self.window)
        return covering_windows(sequences, self.window or int(sequences.lengths.max()))

    def for_gaps(self, sequences: Sequences) -> Preprocessing:
        """Return a preprocessing that also fills gaps if only the new sequences have some.

        Args:
            sequences: The new sequences.

        Raises:
            UserWarning: If there are gaps, which are filled with the last known value.
        """
        gaps = int(np.isnan(sequences.x).sum()) if self.missing == "error" else 0
        if not gaps:
            return self
        text = (
            f"{gaps} of the values in {sequences.where} are missing, in training none was. They "
            "are taken as the last known value of their sequence (the mean of training before the "
            "first)."
        )
        warnings.warn(text, stacklevel=levels_to_caller("anharmonic.", "sklearn."))
        return replace(self, missing="forward")

    def doubts(self, sequences: Sequences) -> list[str]:
        """Describe what in new sequences is far from training, as in another unit, or shorter.

        Args:
            sequences: The new sequences, with the channels of training.
        """
        found = []
        for place, channel in enumerate(sequences.x.T):
            known = channel[np.isfinite(channel)].astype(np.float64)
            name = self.channels[place] if self.channels else place
            if not len(known):
                found.append(f"channel {name} without any value")
            if len(known) < 2:
                continue
            mean, std = float(known.mean()), float(known.std())
            away = abs(mean - self.mean[place]) > 5 * self.std[place]
            # Between g and m/s² lies a factor of 9.81.
            if away or std > 8 * self.std[place] or 0 < 8 * std < self.std[place]:
                found.append(
                    f"channel {name} has mean {mean:.3g} and standard deviation {std:.3g}, in "
                    f"training {self.mean[place]:.3g} and {self.std[place]:.3g}"
                )
        now, usual = sequences.interval or 0.0, self.interval
        if self.elapsed != "ignore" and (sequences.lengths > 1).any():
            now, usual = _median_step(sequences), self.nominal
        if now > 0 < usual and not 1 / 1.5 <= now / usual <= 1.5:
            times = f"{now:.3g} between samples, in training {usual:.3g}"
            found.append(f"the median time is {times}")
        if self.elapsed == "ignore" and now > 0:
            gaps = _gaps(sequences)
            if (late := gaps > 1.5 * max(now, self.longest)).any():  # such as missing rows
                largest = f"of up to {gaps.max():.3g} instead of {now:.3g}"
                found.append(f"{counted(int(late.sum()), 'gap')} in time, {largest}")
        least = self.window if self.horizon else self.shortest / 10
        if len(short := np.flatnonzero(sequences.lengths < least)):
            steps = counted(int(sequences.lengths[short[0]]), "step")
            others = f" and {len(short) - 1} more" * (len(short) > 1)
            before = " before the forecast" * bool(self.horizon)
            trained = f"{self.window}" if self.horizon else f"at least {self.shortest}"
            name = f"{sequences.name(int(short[0]))}{others}"
            found.append(f"{steps}{before} in {name}, in training {trained}")
        return found

    def warn_of(self, sequences: Sequences) -> None:
        """Warn if new sequences are far from training; see `doubts`."""
        if doubts := self.doubts(sequences):
            expected = f"{sequences.where} should be like the training data"
            advice = "check units, sampling and length, or the predictions say little"
            warnings.warn(message(expected, "; ".join(doubts), advice), stacklevel=4)

    def last_known(self, sequences: Sequences, channels: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the last known value of the channels in every sequence, or their mean."""
        last = _carried_forward(sequences)[sequences.offsets[1:] - 1]
        return np.where(np.isnan(last), np.array(self.mean), last)[:, list(channels)]

    def steps(self, sequences: Sequences) -> Floats:
        """Return the time between samples in nominal steps; a first time of 0 becomes 1."""
        steps = _elapsed_of(sequences) / np.float32(self.nominal)
        first = sequences.offsets[:-1]
        steps[first] = np.where(steps[first] == 0, 1.0, steps[first])
        return steps

    def columns(self, x: Any, of: Layout, elapsed: Any = None) -> list[Any]:
        """Return the parts of prepared samples in order; this defines the preprocessing.

        Args:
            x: Raw samples, [..., C].
            of: Layout of the sequences.
            elapsed: Times between samples in nominal steps, [...], if they are a channel.
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
        """Return the channels with gaps filled, optionally standardised."""
        if self.missing == "forward":
            x = of.carried_forward(x)
        if self.missing != "error":
            x = of.where(of.missing(x), of.mean, x)
        return of.standardised(x) if self.standardise else x

    def scaled(self, x: Any, of: Layout) -> tuple[Any, Any]:
        """Return the channels with gaps filled, optionally scaled per sequence, and the levels."""
        x = self.filled(x, of)
        return of.scaled_each(x) if self.level_scale else (x, None)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, without fields that have the behaviour of older versions."""
        default = {field.name: field.default for field in fields(self)}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value != default[key]
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """Make a preprocessing from JSON values; missing fields mean the older behaviour.

        Raises:
            ValueError: If a key is unknown or missing, a value is not allowed, or values are
                inconsistent.
            TypeError: If `standardise` is not a bool.
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
        """Refuse numbers out of range and inconsistent fields."""
        choice("missing", self.missing, get_args(Missing))
        choice("elapsed", self.elapsed, get_args(Elapsed))
        number("nominal", self.nominal, low=0.0, low_open=True)
        number("interval", self.interval, low=0.0)
        number("longest", self.longest, low=0.0)
        for name in ("window", "horizon", "season", "shortest"):
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
    """Convert a field from JSON; numbers other than indices become floats."""
    if not isinstance(value, list):
        return value
    return tuple(float(v) if isinstance(v, int) and not whole else v for v in value)


def windows_of(
    parts: Mapping[str, Sequences], window: int, options: DataOptions, how: Preprocessing
) -> tuple[Preprocessing, dict[str, Sequences], dict[str, Pieces]]:
    """Return the preprocessing of windows, the windows of every part, and those to test on.

    Training windows begin every `stride` steps. The other parts use adjacent windows, as for
    predictions on new data. For forecasts, windows of all parts begin every `stride` steps.
    """
    if options.horizon is None:
        tested = {n: covering_windows(part, window) for n, part in parts.items() if n != "train"}
        train = cut_windows(parts["train"], window, options.stride or window)
        made = {"train": train, **{name: pieces.part for name, pieces in tested.items()}}
        return replace(how, window=window), made, tested
    # (Known channels were appended already, so look up the channels before.)
    channels = how.forecast or channel_numbers(parts["train"], tuple(options.forecast))
    ahead = (window, options.stride or 1, options.horizon, channels)
    made = {name: forecast_windows(part, *ahead) for name, part in parts.items()}
    how = how.forecasting(made["train"], window, options.horizon, channels)
    if options.quantiles:
        how = replace(how, quantiles=tuple(options.quantiles))
        times = (1, len(how.quantiles))
        made = {n: p.with_targets(np.tile(np.asarray(p.y), times)) for n, p in made.items()}
    return how, made, {}


class _Flat:
    """The ``Layout`` of `Sequences`: concatenated sequences in NumPy."""

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
    """Return how much sequences differ in size: the ratio of large to small deviations.

    This is the median over channels of the 90 % quantile over the 10 % quantile, without constant
    sequences.
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
    """Scale every sequence to mean 0 and deviation 1; return its means and log deviations."""
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
    """Return the time since the previous sample, 0 at first samples if all others are alike."""
    if sequences.elapsed is not None:
        return sequences.elapsed
    if sequences.interval is None and (sequences.lengths > 1).any():
        _refuse_without_times(sequences)
    elapsed = np.full(len(sequences.x), sequences.interval or 0.0, np.float32)
    elapsed[sequences.offsets[:-1]] = 0.0
    return elapsed


def _refuse_without_times(sequences: Sequences) -> NoReturn:
    expected = f"{sequences.where} must hold the time between samples (elapsed)"
    raise ValueError(message(expected, "none", "add it, or leave out --elapsed (elapsed)"))


def _nominal_step(train: Sequences) -> float:
    if train.elapsed is None and train.interval is not None:  # it would teach a model nothing
        came = f"steps of {train.interval:g} everywhere"
        expected = f"times in {train.where} must be uneven for --elapsed step or channel (elapsed)"
        raise ValueError(message(expected, came, "leave it out"))
    if train.elapsed is None:
        _refuse_without_times(train)
    return _median_step(train)


def _gaps(sequences: Sequences) -> Floats:
    """Return the times between the samples of each sequence; none if all are equal or unknown."""
    if sequences.elapsed is None:
        return np.zeros(0, np.float32)
    return np.delete(sequences.elapsed, sequences.offsets[:-1])


def _median_step(sequences: Sequences) -> float:
    elapsed = np.delete(_elapsed_of(sequences), sequences.offsets[:-1])
    positive = elapsed[elapsed > 0]
    advice = "store the time since the previous sample, or leave --elapsed out"
    name, expected = f"elapsed in {sequences.where}", "positive somewhere"
    require(len(positive) > 0, name, "zeros only", expected, advice)
    return float(np.median(positive))


def _differences(sequences: Sequences, x: NDArray[Any]) -> NDArray[Any]:
    """Return the change since the previous step, 0 at the first step of a sequence."""
    change = np.diff(x, axis=0, prepend=x[:1])
    change[sequences.offsets[:-1]] = 0.0
    return change


def _carried_forward(sequences: Sequences) -> Floats:
    """Fill gaps with the last known value; NaN remains before a sequence's first value."""
    steps = np.arange(len(sequences.x))[:, None]
    source = np.where(np.isnan(sequences.x), 0, steps)
    source[sequences.offsets[:-1]] = sequences.offsets[:-1, None]
    return np.take_along_axis(sequences.x, np.maximum.accumulate(source, axis=0), axis=0)
