"""Windows of long recordings, for training, forecasts and predictions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, listed, message, require
from anharmonic.data.base import counted
from anharmonic.data.options import DataOptions
from anharmonic.data.sequences import Floats, Integers, Sequences, usual_step

MONTH = 2629746.0
"""Seconds of the mean month, the interval of series with one value per month."""
# Longer seasons are considered only if dates suggest them.
_MOST_STEPS = 400


class Pieces(NamedTuple):
    """Windows that cover whole recordings."""

    part: Sequences
    """The windows, contiguous for each recording."""
    owners: Integers
    """The recording of every window."""
    fresh: Integers
    """Number of steps at the end of every window that no earlier window of its recording covers."""


def window_length(options: DataOptions, parts: Mapping[str, Sequences]) -> int:
    """Return the window of forecasts: as given, or 4 horizons if the series are long enough."""
    if options.window is not None:
        return options.window
    horizon = options.horizon or 1
    shortest = min(int(part.lengths.min()) for part in parts.values())
    least = horizon if options.known else 1  # so that the window contains all known values
    return max(least, min(max(4 * horizon, 16), (7 * shortest // 10 - horizon) // 2))


def cut_windows(part: Sequences, window: int, stride: int) -> Sequences:
    """Return windows that begin every `stride` steps; a shorter recording stays whole."""
    owners, starts = _starts(part.lengths - window, stride)
    return part.slices(owners, starts, np.minimum(starts + window, part.lengths[owners]))


def covering_windows(part: Sequences, window: int) -> Pieces:
    """Return adjacent windows over whole recordings; the last one ends with the recording."""
    owners, starts = _starts(part.lengths - 1, window)
    lengths = part.lengths[owners]
    stops = np.minimum(starts + window, lengths)
    begins = np.maximum(stops - window, 0)
    return Pieces(part.slices(owners, begins, stops), owners, stops - starts)


def last_windows(part: Sequences, window: int) -> Pieces:
    """Return the last window of every recording, from which to forecast."""
    lengths, owners = part.lengths, np.arange(len(part))
    begins = np.maximum(lengths - window, 0)
    return Pieces(part.slices(owners, begins, lengths), owners, lengths - begins)


def forecast_windows(
    part: Sequences, window: int, stride: int, horizon: int, channels: tuple[int, ...]
) -> Sequences:
    """Return windows with the next values as targets; windows with unknown targets are dropped.

    `y` `[N, horizon * C]` holds all channels of the first step, then of the second, and so on.
    """
    owners, starts, _, y = _ahead(part, window, stride, horizon, channels)
    if not len(owners):
        expected = f"series in {part.where} must hold windows of {window} steps with {horizon} "
        came = f"none, the longest has {int(part.lengths.max())} steps"
        advice = "choose a smaller window or horizon"
        raise ValueError(message(expected + "known steps after them", came, advice))
    return part.slices(owners, starts, starts + window).with_targets(y)


def forecast_places(part: Sequences, window: int, stride: int, horizon: int) -> int:
    """Return the number of windows that enough steps follow, with known values or without."""
    return len(_places(part, window, stride, horizon)[0])


def _places(part: Sequences, window: int, stride: int, horizon: int) -> tuple[Integers, Integers]:
    """Return recording and start of windows followed by enough steps."""
    room = part.lengths - window - horizon
    long = np.flatnonzero(room >= 0)
    owners, starts = _starts(room[long], stride)
    return long[owners], starts


def _ahead(
    part: Sequences, window: int, stride: int, horizon: int, channels: tuple[int, ...]
) -> tuple[Integers, Integers, Integers, Floats]:
    """Return those followed by known values, with the rows of the steps ahead and the values."""
    owners, starts = _places(part, window, stride, horizon)
    rows = (part.offsets[owners] + starts + window)[:, None] + np.arange(horizon)
    y = part.x[:, list(channels)][rows].reshape(len(owners), horizon * len(channels))
    known = np.isfinite(y).all(axis=1)
    return owners[known], starts[known], rows[known], y[known]


def seasonal_values(
    history: Sequences,
    part: Sequences,
    window: int,
    stride: int,
    horizon: int,
    channels: tuple[int, ...],
    season: int,
) -> NDArray[np.float32]:
    """Return the values one season before the targets of `forecast_windows`; NaN if unknown.

    The series of `part` are the ends of those of `history`.

    Example:
        >>> x = np.arange(6.0, dtype=np.float32)[:, None]
        >>> part = Sequences("here", x, np.array([0, 6]))
        >>> seasonal_values(part, part, 2, 1, 2, (0,), 3).tolist()
        [[nan, 0.0], [0.0, 1.0], [1.0, 2.0]]
    """
    owners, _, ahead, _ = _ahead(part, window, stride, horizon, channels)
    back = season * -(-(np.arange(horizon) + 1) // season)
    shift = history.offsets[1:] - part.offsets[1:]
    places = ahead + shift[owners][:, None] - back
    inside = places >= history.offsets[owners][:, None]
    found = history.x[:, list(channels)][np.maximum(places, 0)]
    found = np.where(inside[:, :, None], found, np.nan).astype(np.float32)
    return found.reshape(len(owners), horizon * len(channels))


def future_times(
    part: Sequences, horizon: int, past: Integers | None = None, usual: float = 0.0
) -> NDArray[Any] | None:
    """Return the times `[N, horizon]` of the steps after every series; None without times.

    A series with equal steps continues with its own step, another one with `usual`, the interval of
    training (0 for the median of all series). Dates in monthly steps, on the same day or the last
    day of the month, continue monthly. If the series also contain the steps ahead, `past` is the
    length of every series' past.
    """
    if part.times is None or part.interval is None or part.times.dtype.kind not in "Mif":
        return None
    ahead, made = np.arange(1, horizon + 1), []
    there = None if past is None else (past[:, None] + np.arange(horizon)).tolist()
    for row, (first, last) in enumerate(itertools.pairwise(part.offsets.tolist())):
        steps, interval = np.arange(last - first) * part.interval, part.interval
        if part.elapsed is not None:
            own, even = usual_step(part.elapsed[first + 1 : last])
            even = even and last - first > 2
            # The digits of float32; the rest is rounding.
            interval = float(f"{own:.7g}") if even and own else usual or interval
            steps = np.cumsum(part.elapsed[first:last], dtype=np.float64) - part.elapsed[first]
        dated = part.times.dtype.kind == "M"
        if dated:
            # Milliseconds hide the rounding of float32; faster series need more.
            unit = "ms" if part.interval >= 0.01 else "us"
            begin = part.times[row].astype(f"M8[{unit}]")
            months = part.interval / MONTH
            if part.elapsed is None and months % 1 == 0:
                end = bool((begin.astype("M8[D]") + 1).astype("M8[M]") > begin.astype("M8[M]"))
                made.append(_months_later(begin, (last - first - 1 + ahead) * int(months), end))
                continue
            clock = begin + _duration(steps, unit)
        else:
            clock = part.times[row] + steps
        if part.clock is not None:  # steps within 1 % of each other count as equal, such as years
            clock = part.clock[first:last].astype(clock.dtype)
        if there is not None:
            made.append(clock[there[row]])
        elif dated:
            made.append(_dates_ahead(clock, interval, ahead))
        else:
            made.append(clock[-1] + ahead * interval)
    return np.stack(made)


def _dates_ahead(clock: NDArray[Any], interval: float, ahead: Integers) -> NDArray[Any]:
    months = clock.astype("M8[M]")
    days = (clock.astype("M8[D]") - months.astype("M8[D]")).astype(np.int64) + 1
    gaps, counts = np.unique(np.diff(months.astype(np.int64)), return_counts=True)
    end = bool((days == _days_of(months)).all())
    gap = gaps[counts.argmax()] if len(clock) > 1 and 2 * counts.max() >= counts.sum() else 0
    # Two rows a month apart are monthly if those of training were.
    sure = len(clock) > 2 or gap == round(interval / MONTH)
    if gap > 0 and sure and (end or len(set(days)) == 1):
        return _months_later(clock[-1], ahead * gap, end)
    after: NDArray[Any] = clock[-1] + _duration(ahead * interval, np.datetime_data(clock.dtype)[0])
    return after


def _duration(seconds: NDArray[Any], unit: str) -> NDArray[Any]:
    return np.round(seconds * {"ms": 1e3, "us": 1e6}[unit]).astype(f"m8[{unit}]")


def _months_later(begin: Any, months: Integers, end: bool) -> NDArray[Any]:
    """Return the dates some months later: on the month's last day (`end`), or on the same day."""
    first = begin.astype("M8[M]")
    place, later = begin - first, first + months
    days = _days_of(later)
    if not end:
        days = np.minimum(place // np.timedelta64(1, "D") + 1, days)
    dates: NDArray[Any] = later.astype("M8[D]") + (days - 1) + place % np.timedelta64(1, "D")
    return dates.astype(begin.dtype)


def _days_of(months: NDArray[Any]) -> NDArray[np.int64]:
    days = (months + 1).astype("M8[D]") - months.astype("M8[D]")
    return np.asarray(days.astype(np.int64))


def with_future(
    part: Sequences, known: tuple[int, ...], forecast: tuple[int, ...], horizon: int, whole: bool
) -> Sequences:
    """Return series up to their last measured value, with the known channels of later steps.

    Every known channel is added a second time, shifted by `horizon` steps. The last steps of a
    window then contain all its values for the forecast. With `whole` all forecast steps must be
    known; otherwise the last value is repeated.
    """
    rows, begins = np.arange(len(part.x)), part.offsets[:-1]
    measured = np.isfinite(part.x[:, list(forecast)]).any(axis=1)
    past = np.maximum.reduceat(np.where(measured, rows + 1, 0), begins) - begins
    names = [part.channels[i] if part.channels else str(i) for i in (*known, *forecast)]
    kinds = () if part.columns is None else dict(part.columns.categories)
    bare = (n.partition("=")[0] if n.partition("=")[0] in kinds else n for n in names[: len(known)])
    columns, aim = listed(list(dict.fromkeys(bare))), listed(names[len(known) :])
    for at in np.flatnonzero(past <= 0)[:1]:
        came, advice = f"no value of {aim} in {part.name(at)}", "leave it out"
        raise ValueError(message(f"series of {part.where} must have a past", came, advice))
    if whole:
        later = np.concatenate([part.x[:, list(known)], np.full((horizon, len(known)), np.nan)])
        steps = (begins + past)[:, None] + np.arange(horizon)
        there = np.isfinite(later[steps]).all(axis=2) & (steps < part.offsets[1:, None])
        for at in np.flatnonzero(~there.all(axis=1))[:1]:
            expected = (
                f"{columns} must be known for {counted(horizon, 'step')} after the last value of "
                f"{aim} in {part.where}"
            )
            came = f"{int(there[at].argmin())} in {part.name(at)}"
            advice = f"add rows for the steps to forecast, with {columns}, and leave {aim} empty"
            raise ValueError(message(expected, came, advice))
    ends = np.repeat(part.offsets[1:], part.lengths) - 1
    ahead = part.x[np.minimum(rows + horizon, ends)][:, list(known)]
    named = (f"{name} {counted(horizon, 'step')} later" for name in names[: len(known)])
    longer = replace(
        part,
        x=np.concatenate([part.x, ahead], axis=1),
        channels=(*part.channels, *named) if part.channels else (),
    )
    return longer.slices(np.arange(len(part)), np.zeros_like(past), past)


def find_season(part: Sequences, horizon: int, channels: tuple[int, ...]) -> int:
    """Return the season whose repetition forecasts best, in steps; 0 for no season.

    Considers seasons of up to 400 steps that fit three times into the longest series. If dates
    define the length of a step, it also considers a day, a week and a year.
    """
    longest = int(part.lengths.max()) // 3
    seasons = list(range(1, min(_MOST_STEPS, longest) + 1))
    if part.interval and part.times is not None and part.times.dtype.kind == "M":
        spans = (86400.0, 7 * 86400.0, 365.25 * 86400.0)
        named = [round(span / part.interval) for span in spans]
        seasons += [n for n in named if _MOST_STEPS < n <= longest]
    if len(seasons) < 2:
        return 0
    x = part.x[:, list(channels)].astype(np.float64)
    owner = np.repeat(np.arange(len(part)), part.lengths)
    size = np.nanvar(x, axis=0)
    x = x / np.sqrt(np.where(size > 0, size, 1.0))
    errors: dict[int, float] = {}

    def error(lag: int) -> float:
        if lag not in errors:
            same = owner[lag:] == owner[:-lag]
            change = np.square(x[lag:] - x[:-lag])[same]
            known = change[~np.isnan(change)]
            errors[lag] = float(known.mean()) if known.size else np.inf
        return errors[lag]

    ahead = np.arange(1, horizon + 1)
    scores = [
        float(np.mean([error(int(season * -(-step // season))) for step in ahead]))
        for season in seasons
    ]
    # A season of one step is the last value, which is a separate baseline.
    last = float(np.mean([error(int(step)) for step in ahead]))
    best = int(np.argmin(scores[1:])) + 1
    if scores[best] >= 0.9 * last:
        return 0
    # Multiples of a season repeat equally well; its neighbours nearly, if it is smooth.
    parts = {round(seasons[best] / n) for n in range(1, seasons[best] // 2 + 1)} & set(seasons[1:])
    score = dict(zip(seasons, scores, strict=True)) | {1: np.inf}
    good = (season for season in parts if score[season] <= 1.5 * scores[best])
    return min(s for s in good if score[s] <= min(score.get(n, np.inf) for n in (s - 1, s + 1)))


def known_channels(part: Sequences, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices of known channels, given by name, categorical column or number."""
    groups = {name: [i] for name, i in _by_name(part).items()}
    for column, kinds in () if part.columns is None else part.columns.categories:
        groups[column] = [part.channels.index(f"{column}={kind}") for kind in kinds]
    chosen = [choice(f"channel known in advance of {part.where}", n, groups) for n in names]
    places = tuple(dict.fromkeys(place for name in chosen for place in groups[name]))
    advice = "leave one to forecast"
    fits = len(places) < part.x.shape[1]
    require(fits, f"known channels of {part.where}", list(names), "fewer than all", advice)
    return places


def channel_numbers(
    part: Sequences, names: tuple[str, ...], known: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Return the indices of channels by name or number; all measured ones if none is named.

    Channels that are known in advance are not forecast.
    """
    places = _by_name(part)
    chosen = [places[choice(f"channel to forecast of {part.where}", n, places)] for n in names]
    once, advice = len(set(chosen)) == len(names), "name each once"
    require(once, "forecast", list(names), "different channels", advice)
    beside = () if part.columns is None else part.columns.beside
    inputs = {place for place, name in enumerate(part.channels) if name in beside}
    measured = [place for place in range(part.x.shape[1]) if place not in {*inputs, *known}]
    twice, advice = sorted({*chosen} & {*known}), "say either of it, --known or --forecast"
    shown = [part.channels[place] if part.channels else str(place) for place in twice]
    require(not twice, "channels to forecast", shown, "none that are known in advance", advice)
    return tuple(chosen) or tuple(measured)


def _by_name(part: Sequences) -> dict[str, int]:
    numbers = {str(i): i for i in range(part.x.shape[1])}
    return numbers | {name: i for i, name in enumerate(part.channels)}


def _starts(room: Integers, stride: int) -> tuple[Integers, Integers]:
    """Return owners and positions at every `stride` steps from 0 to `room`, at least one."""
    counts = np.maximum(room, 0) // stride + 1
    owners = np.repeat(np.arange(len(room)), counts)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    return owners, (np.arange(len(owners)) - firsts) * stride
