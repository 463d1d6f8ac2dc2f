"""Sequences as read from a user's file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import levels_to_caller, message, require
from anharmonic.data.base import SequenceDataset, counted
from anharmonic.data.columns import Columns
from anharmonic.data.sources import arrays_digest

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
# A column with fewer steps of float32 between its smallest and largest value is coarse.
_FEWEST_STEPS = 100
# Fields of `Sequences`, perhaps None, with an entry for every sequence, and for every step.
_BY_SEQUENCE = ("groups", "times", "ids", "weights")
_BY_STEP = ("elapsed", "known")


def usual_step(gaps: NDArray[Any]) -> tuple[float | None, bool]:
    """Return the median time between samples, if there is any, and whether all are within 1 %."""
    if not len(gaps):
        return None, True
    usual = float(np.median(gaps))
    return usual, bool((np.abs(gaps - usual) <= 0.01 * usual).all())


def in_float32(
    x: NDArray[Any], where: str, names: Sequence[str] = (), what: str = "channel"
) -> Floats:
    """Return numbers `[N, F]` as float32, with a warning for columns that it makes coarse.

    Too large numbers become infinite; `check_finite` refuses them later.
    """
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(x, dtype=np.float32)
    if x.dtype.kind not in "iuf" or x.dtype.itemsize <= 4 or not len(x):
        return made
    low, high = (np.asarray(f.reduce(x, axis=0), np.float64) for f in (np.fmin, np.fmax))
    size = np.maximum(abs(low), abs(high)).clip(0, 1e38)  # beyond is refused later
    step = np.spacing(size.astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinite values
        coarse = (low < high) & (high - low < _FEWEST_STEPS * step)
    for i in np.flatnonzero(coarse).tolist():
        name = repr(names[i]) if len(names) else i
        expected = f"{what} {name} of {where} is kept in float32, in steps of {step[i]:g}"
        advice = "subtract a constant first, such as the first value"
        level = levels_to_caller("anharmonic.", "sklearn.")
        warnings.warn(message(expected, f"values from {low[i]} to {high[i]}", advice), None, level)
    return made


@dataclass(frozen=True)
class Sequences:
    """Sequences of one file or one part of it.

    Attributes:
        where: The file, for messages.
        x: float32 `[sum of lengths, F]`, concatenated sequences; NaN means missing.
        offsets: int64 `[N + 1]`: sequence i is `x[offsets[i]:offsets[i + 1]]`.
        y: Targets as read: `[N]`, `[N, O]`, or `[sum of lengths, O]` if `per_step`; None if none.
        per_step: Whether there is a target for every step.
        elapsed: float32 `[sum of lengths]`, time since the previous sample of the sequence in the
            file's unit, >= 0; 0 at the first sample if unknown. None if samples are equally spaced.
        groups: `[N]` integers or strings: the subject or recording of every sequence. None if
            unknown.
        times: `[N]` numbers, dates or sortable strings: start time of every sequence. None if
            unknown.
        channels: Name of every channel; empty if unknown.
        interval: Typical time between two samples in the file's unit (seconds for dates). None if
            unknown.
        ids: `[N]` integers or strings: name of every sequence in the file. None if unknown.
        known: bool `[sum of lengths]`: for targets per step, which of them are known. None for all.
        weights: float32 `[N]`, > 0: factors on the sequences in the loss. None for 1.
        clock: `[sum of lengths]` numbers or dates: time of every step as read. None if unknown, and
            for parts of a file.
        utc: Whether dates are in UTC, as those of the file have a time zone.
        columns: Roles of the table's columns. None if it was not a table.

    Raises:
        ValueError: If there is no sequence, a sequence has no steps, or an array does not fit.
    """

    where: str
    x: Floats
    offsets: Integers
    y: NDArray[Any] | None = None
    per_step: bool = False
    elapsed: Floats | None = None
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    channels: tuple[str, ...] = ()
    interval: float | None = None
    columns: Columns | None = None
    ids: NDArray[Any] | None = None
    weights: Floats | None = None
    known: NDArray[np.bool_] | None = None
    clock: NDArray[Any] | None = None
    utc: bool = False

    def __post_init__(self) -> None:
        size = {"sequences": len(self), "channels": self.x.shape[1]}
        advice = "check how the file was written"
        require(min(size.values()) > 0, f"sizes in {self.where}", size, "at least one", advice)
        empty = np.flatnonzero(self.lengths == 0).tolist()
        name = f"sequences without a step in {self.where}"
        require(not empty, name, empty[:5], "none", f"remove all {len(empty)}")
        if self.y is not None:
            rows = len(self.x) if self.per_step else len(self)
            shape, advice = list(self.y.shape), "give one target per sequence or one per step"
            require(shape[0] == rows, f"y in {self.where}", shape, f"of {rows} rows, as x", advice)
        counts = dict.fromkeys(_BY_SEQUENCE, (len(self), "sequence"))
        for name, (count, one) in (counts | {"elapsed": (len(self.x), "step")}).items():
            if (values := getattr(self, name)) is not None:
                came, form = list(values.shape), f"of shape [{count}], one per {one}"
                advice = f"give one for every {one}, or leave it out"
                require(came == [count], f"{name} in {self.where}", came, form, advice)
        elapsed = np.zeros(0) if self.elapsed is None else self.elapsed
        for bad in np.flatnonzero(~(np.isfinite(elapsed) & (elapsed >= 0)))[:1].tolist():
            sequence, step = self.place(bad)
            got = f"{elapsed[bad]} at sequence {sequence}, step {step}"
            advice = "give the time since the previous sample, 0 at a sequence's first one"
            expected = f"elapsed in {self.where} must be finite and >= 0"
            raise ValueError(message(expected, got, advice))
        named, channels = len(self.channels), self.x.shape[1]
        advice = "name every channel of x, in its order"
        name, expected = f"channels in {self.where}", f"{channels} names, as x has channels"
        require(named in (0, channels), name, named, expected, advice)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        """Show sizes and available fields, but not the numbers."""
        shortest, longest = int(self.lengths.min()), int(self.lengths.max())
        steps = counted(longest, "step")
        if shortest < longest:
            steps = f"{shortest} to {steps}"
        known = ("y", "elapsed", "groups", "times", "ids")
        names = ", ".join(name for name in known if getattr(self, name) is not None)
        sizes = f"{counted(len(self), 'sequence')} of {steps}"
        channels = counted(self.x.shape[1], "channel")
        return f"Sequences({self.where}: {sizes}, {channels}; with {names or 'x alone'})"

    @property
    def lengths(self) -> Integers:
        """Number of steps of every sequence, `[N]`."""
        return np.diff(self.offsets)

    @property
    def known_y(self) -> NDArray[Any]:
        """The known targets."""
        y = np.asarray(self.y)
        return y if self.known is None else y[self.known]

    @property
    def digest(self) -> str:
        """SHA-256 of inputs and targets, by which a `Run` identifies data in memory.

        Example:
            >>> part = Sequences("here", np.zeros((3, 1), np.float32), np.array([0, 1, 3]))
            >>> part.digest == part.select(np.array([0, 1])).digest
            True
        """
        names = ("x", "offsets", "y", "elapsed", "weights", "known")
        arrays = {name: getattr(self, name) for name in names}
        return arrays_digest({k: array for k, array in arrays.items() if array is not None})

    def select(self, rows: Integers) -> Sequences:
        """Return the sequences `rows`, in this order."""
        return self.slices(rows, np.zeros_like(rows), self.lengths[rows])

    def slices(self, rows: Integers, starts: Integers, stops: Integers) -> Sequences:
        """Return steps `starts` to `stops` - 1 of the sequences `rows`, each as a new sequence."""
        lengths = stops - starts
        ends = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.arange(ends[-1]) + np.repeat(self.offsets[rows] + starts - ends[:-1], lengths)
        places = dict.fromkeys(_BY_SEQUENCE, rows) | dict.fromkeys(_BY_STEP, steps)
        places["y"] = steps if self.per_step else rows
        taken = {
            name: array[there]
            for name, there in places.items()
            if (array := getattr(self, name)) is not None
        }
        return replace(self, x=self.x[steps], offsets=ends, clock=None, **taken)

    def with_targets(self, y: NDArray[Any] | None) -> Sequences:
        """Return the sequences with one target each, or without targets."""
        return replace(self, y=y, per_step=False, known=None)

    def name(self, row: int) -> str:
        """Describe a sequence for messages."""
        return f"sequence {row}" if self.ids is None else f"{str(self.ids[row])!r}"

    def place(self, row: int) -> tuple[int, int]:
        """Describe the sequence and step of a row of `x`."""
        sequence = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return sequence, row - int(self.offsets[sequence])

    def dataset(
        self,
        x: Floats,
        elapsed: Floats | None = None,
        units: tuple[torch.Tensor, ...] | None = None,
    ) -> SequenceDataset:
        """Make a data set of prepared inputs and numeric `y`; dense if all lengths are equal.

        `elapsed` is in nominal steps; `units` are those of `SequenceDataset`.
        """
        y = np.zeros((len(self), 0), np.float32) if self.y is None else self.y
        dense = bool((self.lengths == self.lengths[0]).all())
        shape = (len(self), int(self.lengths[0]))

        def by_step(values: NDArray[Any]) -> torch.Tensor:
            return torch.from_numpy(values.reshape(*shape, *values.shape[1:]) if dense else values)

        return SequenceDataset(
            by_step(x),
            by_step(y) if self.per_step else torch.from_numpy(y),
            offsets=None if dense else torch.from_numpy(self.offsets.astype(np.int64)),
            per_step=self.per_step,
            elapsed=None if elapsed is None else by_step(elapsed),
            units=units,
            weights=None if self.weights is None else torch.from_numpy(self.weights),
            known=None if self.known is None else by_step(self.known),
        )


def joined(first: Sequences, second: Sequences) -> Sequences:
    """Concatenate two parts; fields that only one of them has are dropped."""
    if (first.known is None) != (second.known is None):
        first, second = (
            replace(p, known=np.ones(len(p.x), bool)) if p.known is None else p
            for p in (first, second)
        )

    def both(name: str) -> Any:
        arrays = getattr(first, name), getattr(second, name)
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    channels, expected = second.x.shape[1], f"{first.x.shape[1]}, as in {first.where}"
    fits, advice = channels == first.x.shape[1], "give all parts the same channels"
    require(fits, f"channels of x in {second.where}", channels, expected, advice)
    return replace(
        first,
        x=np.concatenate([first.x, second.x]),
        offsets=np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        **{name: both(name) for name in ("y", "clock", *_BY_SEQUENCE, *_BY_STEP)},
    )


def check_finite(sequences: Sequences, x: Floats, may_miss: bool) -> None:
    """Refuse infinities, and NaN unless missing values are allowed; name the first place."""
    bad = np.isinf(x) if may_miss else ~np.isfinite(x)
    if not bad.any():
        return
    row, channel = (int(i) for i in np.argwhere(bad)[0])
    sequence, step = sequences.place(row)
    advice = "remove or replace it"
    if np.isnan(x[row, channel]):
        advice = (
            "fill it, or train with --missing mean (missing='mean'), which puts the channel's "
            "training mean there, 'forward' (the last known value) or 'mask' (the mean, and a "
            "channel that says where)"
        )
    name = repr(sequences.channels[channel]) if sequences.channels else channel
    came = f"{x[row, channel]} at {sequences.name(sequence)}, step {step}, channel {name}"
    came += f" ({int(bad.sum())} such entries)"
    raise ValueError(message(f"x in {sequences.where} must be finite", came, advice))
