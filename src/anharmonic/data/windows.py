"""Windows of long recordings: to learn from, to forecast from and to predict for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, message, require
from anharmonic.data.sequences import Integers, Sequences

# Longer seasons are looked for only where dates name them.
_MOST_STEPS = 400


class Pieces(NamedTuple):
    """Windows that cover whole recordings."""

    part: Sequences
    """The windows, those of a recording one after another."""
    owners: Integers
    """The recording every window is of."""
    fresh: Integers
    """Steps at the end of every window that no earlier window of its recording covers."""


def cut_windows(part: Sequences, window: int, stride: int) -> Sequences:
    """Windows that begin every `stride` steps; a recording shorter than a window is left whole.

    Args:
        part: The recordings.
        window: Steps per window, at least 1.
        stride: Steps from one window to the next, at least 1.

    Example:
        >>> x = np.arange(7.0, dtype=np.float32)[:, None]
        >>> cut_windows(Sequences("here", x, np.array([0, 7])), 3, 2).x[:, 0].tolist()
        [0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0]
    """
    owners, starts = _starts(part.lengths - window, stride)
    return part.slices(owners, starts, np.minimum(starts + window, part.lengths[owners]))


def covering_windows(part: Sequences, window: int) -> Pieces:
    """Windows side by side over whole recordings; the last one ends where the recording ends.

    Args:
        part: The recordings.
        window: Steps per window, at least 1.

    Example:
        >>> x = np.arange(5.0, dtype=np.float32)[:, None]
        >>> pieces = covering_windows(Sequences("here", x, np.array([0, 5])), 2)
        >>> pieces.part.x[:, 0].tolist(), pieces.fresh.tolist()
        ([0.0, 1.0, 2.0, 3.0, 3.0, 4.0], [2, 2, 1])
    """
    owners, starts = _starts(part.lengths - 1, window)
    lengths = part.lengths[owners]
    stops = np.minimum(starts + window, lengths)
    begins = np.maximum(stops - window, 0)
    return Pieces(part.slices(owners, begins, stops), owners, stops - starts)


def last_windows(part: Sequences, window: int) -> Pieces:
    """The last steps of every recording, from which the next ones are forecast.

    Args:
        part: The recordings.
        window: Steps per window, at least 1.
    """
    lengths, owners = part.lengths, np.arange(len(part))
    begins = np.maximum(lengths - window, 0)
    return Pieces(part.slices(owners, begins, lengths), owners, lengths - begins)


def forecast_windows(
    part: Sequences, window: int, stride: int, horizon: int, channels: tuple[int, ...]
) -> Sequences:
    """Windows of the past with the next values as targets; windows with unknown ones are left out.

    Args:
        part: The series.
        window: Steps of the past.
        stride: Steps from one window to the next.
        horizon: Steps to forecast.
        channels: Those that are forecast, C of them.

    Returns:
        The windows; `y` `[N, horizon * C]` holds all channels of the first step, then of the
        second, and so on.

    Raises:
        ValueError: If no window is left.

    Example:
        >>> x = np.arange(5.0, dtype=np.float32)[:, None]
        >>> made = forecast_windows(Sequences("here", x, np.array([0, 5])), 2, 1, 2, (0,))
        >>> made.x.reshape(2, 2).tolist(), made.y.tolist()
        ([[0.0, 1.0], [1.0, 2.0]], [[2.0, 3.0], [3.0, 4.0]])
    """
    owners, starts, ahead = _places_ahead(part, window, stride, horizon)
    y = part.x[:, list(channels)][ahead].reshape(len(owners), horizon * len(channels))
    known = np.isfinite(y).all(axis=1)
    if not known.any():
        raise ValueError(
            message(
                f"series in {part.where} must hold windows of {window} steps with {horizon} known "
                "steps after them",
                f"none, the longest has {int(part.lengths.max())} steps",
                "choose a smaller window or horizon",
            )
        )
    owners, starts = owners[known], starts[known]
    made = part.slices(owners, starts, starts + window)
    return made.with_targets(y[known])


def _places_ahead(
    part: Sequences, window: int, stride: int, horizon: int
) -> tuple[Integers, Integers, Integers]:
    """Windows with steps after them: whose, where they begin, and the rows of those steps."""
    room = part.lengths - window - horizon
    long = np.flatnonzero(room >= 0)
    owners, starts = _starts(room[long], stride)
    owners = long[owners]
    ahead = (part.offsets[owners] + starts + window)[:, None] + np.arange(horizon)
    return owners, starts, ahead


def seasonal_values(
    history: Sequences,
    part: Sequences,
    window: int,
    stride: int,
    horizon: int,
    channels: tuple[int, ...],
    season: int,
) -> NDArray[np.float32]:
    """What was measured one season, or as few as are known, before the targets of forecasts.

    Args:
        history: The series; those of `part` are their ends.
        part: As of `forecast_windows`, and so are the next four.
        window: Steps of the past.
        stride: Steps from one window to the next.
        horizon: Steps to forecast.
        channels: Those that are forecast, C of them.
        season: Steps of a season.

    Returns:
        `[N, horizon * C]` for the windows of `forecast_windows`; NaN where it is not known.

    Example:
        >>> x = np.arange(6.0, dtype=np.float32)[:, None]
        >>> part = Sequences("here", x, np.array([0, 6]))
        >>> seasonal_values(part, part, 2, 1, 2, (0,), 3).tolist()
        [[nan, 0.0], [0.0, 1.0], [1.0, 2.0]]
    """
    owners, _, ahead = _places_ahead(part, window, stride, horizon)
    y = part.x[:, list(channels)][ahead].reshape(len(owners), horizon * len(channels))
    known = np.isfinite(y).all(axis=1)
    back = season * -(-(np.arange(horizon) + 1) // season)
    shift = history.offsets[1:] - part.offsets[1:]
    places = ahead + shift[owners][:, None] - back
    inside = places >= history.offsets[owners][:, None]
    found = history.x[:, list(channels)][np.maximum(places, 0)]
    found = np.where(inside[:, :, None], found, np.nan).astype(np.float32)
    made: NDArray[np.float32] = found.reshape(len(owners), -1)[known]
    return made


def find_season(part: Sequences, horizon: int, channels: tuple[int, ...]) -> int:
    """Steps after which series repeat best, as seen by forecasts of that; 0 if nothing repeats.

    Looks at up to 400 steps, at least three seasons of the longest series, and where dates say how
    long a step is also at a day, a week and a year.

    Args:
        part: The series of the training part.
        horizon: Steps to forecast.
        channels: Those that are forecast.

    Example:
        >>> x = np.tile([0.0, 1.0, 5.0, 2.0], 10).astype(np.float32)[:, None]
        >>> find_season(Sequences("here", x, np.array([0, 40])), 2, (0,))
        4
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
    # One step is the last value, which is a baseline of its own.
    last = float(np.mean([error(int(step)) for step in ahead]))
    best = int(np.argmin(scores[1:])) + 1
    if scores[best] >= 0.9 * last:
        return 0
    # Several seasons repeat as well as one.
    parts = {round(seasons[best] / n) for n in range(1, seasons[best] // 2 + 1)} & set(seasons[1:])
    score = dict(zip(seasons, scores, strict=True))
    return min(season for season in parts if score[season] <= 1.5 * scores[best])


def channel_numbers(part: Sequences, names: tuple[str, ...]) -> tuple[int, ...]:
    """The places of channels by name or number; all of them if none is named.

    Raises:
        ValueError: If there is no such channel.

    Example:
        >>> part = Sequences("here", np.zeros((1, 2), np.float32), np.array([0, 1]))
        >>> channel_numbers(part, ("1",)), channel_numbers(part, ())
        ((1,), (0, 1))
    """
    numbers = [str(i) for i in range(part.x.shape[1])]
    known = {name: int(i) for i, name in zip(numbers, numbers, strict=True)}
    known |= {name: i for i, name in enumerate(part.channels)}
    advice = "name each once"
    require(len(set(names)) == len(names), "forecast", list(names), "different channels", advice)
    chosen = [known[choice(f"channel to forecast of {part.where}", n, known)] for n in names]
    return tuple(chosen) or tuple(range(part.x.shape[1]))


def _starts(room: Integers, stride: int) -> tuple[Integers, Integers]:
    """Every `stride` steps from 0 to `room` (at least one, at 0): whose, and where."""
    counts = np.maximum(room, 0) // stride + 1
    owners = np.repeat(np.arange(len(room)), counts)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    return owners, (np.arange(len(owners)) - firsts) * stride
