"""Sequences and targets in memory, and batches of them.

Letters: `B` batch, `T` time steps, `F` features, `O` outputs, `N` sequences of a data set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from anharmonic._checks import positive_int, require


class Batch(NamedTuple):
    """A batch of sequences.

    Attributes:
        x: Inputs, float32 `[B, T, F]`, or token ids, int64 `[B, T]`; zero after the end of a
            shorter sequence.
        y: Targets: int64 `[B]` (classes) or `[B, T]` (a class per step), float32 `[B, O]` (one
            value per sequence) or `[B, T, O]` (one per step); zero after the end of a shorter
            sequence.
        lengths: int64 `[B]` on the CPU; None if all sequences have `T` steps.
        elapsed: Time since the previous sample in nominal steps, float32 `[B, T]`, 1 after the end
            of a shorter sequence; None if all steps are nominal.
        shift: Float32 `[B, O]`, the value at model output 0 in units of `y`; None for 0.
        scale: Float32 `[B, O]`, units of `y` per model output; None for 1. Shift and scale are both
            None or both set.
        weight: Float32 `[B]`, factors on the sequences in the loss; None for 1.
        known: Bool `[B, T]` on the CPU, the steps with a target; None for all valid steps.
        quantiles: Float32 `[B, Q]`, forecast quantiles, for which `y` is repeated Q times; None for
            forecasts of the mean.

    Example:
        >>> batch = Batch(torch.zeros(2, 5, 3), torch.tensor([0, 1]), torch.tensor([5, 4]))
        >>> len(batch.inputs), batch.elapsed is None
        (2, True)
    """

    x: Tensor
    y: Tensor
    lengths: Tensor | None
    elapsed: Tensor | None = None
    shift: Tensor | None = None
    scale: Tensor | None = None
    weight: Tensor | None = None
    known: Tensor | None = None
    quantiles: Tensor | None = None

    @property
    def inputs(self) -> tuple[Tensor | None, ...]:
        """Return the arguments of a model: x, lengths and, if known, elapsed."""
        known = () if self.elapsed is None else (self.elapsed,)
        return self.x, self.lengths, *known

    @property
    def counted(self) -> Tensor | None:
        """Return the steps whose targets count, bool `[B, T]` on the CPU; None for all."""
        if self.known is not None or self.lengths is None:
            return self.known
        return step_mask(self.lengths.cpu(), self.y.shape[1])

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        if device.type == "cpu":
            return self
        # Lengths stay on the CPU, where packing needs them without waiting for a GPU.
        moved = {
            name: tensor.to(device, non_blocking=True)
            for name, tensor in self._asdict().items()
            if tensor is not None and name not in ("lengths", "known")
        }
        return self._replace(**moved)

    def cut(self, first: int, last: int) -> Batch:
        """Return the sequences `first` to `last - 1`.

        Example:
            >>> Batch(torch.zeros(5, 7, 1), torch.zeros(5, 2), None).cut(1, 3).x.shape
            torch.Size([2, 7, 1])
        """
        parts = self._asdict().items()
        return self._replace(**{n: part[first:last] for n, part in parts if part is not None})

    def select(self, prediction: Tensor) -> Tensor:
        """Convert a model's output to a prediction in the units of the targets."""
        prediction = in_units(prediction, self.shift, self.scale)
        if self.quantiles is None:
            return prediction
        # Sorting keeps a larger quantile from falling below a smaller one.
        shape = (len(prediction), self.quantiles.shape[1], -1)
        return prediction.reshape(shape).sort(1).values.flatten(1)


AnyBatch = TypeVar("AnyBatch")


class Batches(Generic[AnyBatch]):
    """A list of batches, made when needed; can be iterated any number of times.

    Args:
        count: Number of batches.
        make: Returns the batch of an index in `[0, count)`, always the same one.
        windows: The recordings of the entries, if these are windows, as `Windowed`; otherwise None.

    Example:
        >>> make = lambda i: Batch(torch.full((1, 2, 1), float(i)), torch.zeros(1, 1), None)
        >>> batches = Batches(3, make)
        >>> len(batches), [float(batch.x[0, 0, 0]) for batch in batches], float(batches[2].x.max())
        (3, [0.0, 1.0, 2.0], 2.0)
    """

    def __init__(
        self,
        count: int,
        make: Callable[[int], AnyBatch],
        windows: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self._count = count
        self._make = make
        self.windows = windows

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> AnyBatch:
        inside, expected = 0 <= index < self._count, f"in [0, {self._count})"
        require(inside, "batch index", index, expected, "use len(batches)", IndexError)
        return self._make(index)

    def __iter__(self) -> Iterator[AnyBatch]:
        for index in range(self._count):
            yield self._make(index)


class Dataset(ABC, Generic[AnyBatch]):
    """Samples and targets in memory.

    Attributes:
        windows: The recordings of the samples, if these are windows, as `Windowed`; otherwise None.

    Example:
        >>> from anharmonic.data import SequenceDataset
        >>> issubclass(SequenceDataset, Dataset)
        True
    """

    windows: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abstractmethod
    def take(self, indices: Tensor) -> AnyBatch:
        """Make one batch of the samples `indices` (int64 `[B]`), in this order."""

    def batches(self, batch_size: int, order: Tensor | None = None) -> Batches[AnyBatch]:
        """Cut the data set into batches; the last one may be smaller.

        Args:
            batch_size: Samples per batch, at least 1.
            order: int64 `[N]`, the order of the samples; None for the stored order.
        """
        positive_int("batch_size", batch_size)
        parts = torch.split(torch.arange(len(self)) if order is None else order, batch_size)
        windows = self.windows if order is None else None
        return Batches(len(parts), lambda i: self.take(parts[i]), windows)


class SequenceDataset(Dataset[Batch]):
    """Sequences and targets in memory, of equal or unequal length.

    Args:
        x: Dense `[N, T, F]`, or with `offsets` flat `[sum of lengths, F]`. Any dtype; batches are
            converted to float32. Token ids are dense `[N, T]` or flat `[sum of lengths]`.
        y: `[N]` integer classes, `[N, O]` values, or per step: classes `[N, T]` or values
            `[N, T, O]`, flat `[sum of lengths]` or `[sum of lengths, O]` when ragged.
        offsets: int64 `[N + 1]`: sequence `i` is `x[offsets[i]:offsets[i + 1]]`; None when dense.
        per_step: Whether a ragged `y` holds one row per step.
        transform: Applied to the float32 `x` of a batch, e.g. to scale or to append steps.
            Dense data only.
        elapsed: Time since the previous sample in nominal steps, `[N, T]`, flat
            `[sum of lengths]` when ragged; None if all steps are nominal.
        units: Shift and scale of a batch, each `[N, O]` (or `[1, O]` for all), and optionally
            quantiles `[1, Q]`; None for 0 and 1.
        tokens: Whether x holds token ids; batches are converted to int64.
        weights: Factors on the sequences in the loss, `[N]`; None for 1.
        known: Steps with a target, bool `[N, T]`, flat `[sum of lengths]` when ragged; None for
            all.

    Example:
        >>> x, y = torch.arange(6.0).reshape(6, 1), torch.tensor([0, 1])
        >>> data = SequenceDataset(x, y, offsets=torch.tensor([0, 2, 6]))
        >>> batch = data.take(torch.tensor([1, 0]))  # zero-padded to the longest of the batch
        >>> batch.lengths.tolist(), batch.x[1, :, 0].tolist()
        ([4, 2], [0.0, 1.0, 0.0, 0.0])
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        *,
        offsets: Tensor | None = None,
        per_step: bool = False,
        transform: Callable[[Tensor], Tensor] | None = None,
        elapsed: Tensor | None = None,
        units: tuple[Tensor, ...] | None = None,
        tokens: bool = False,
        weights: Tensor | None = None,
        known: Tensor | None = None,
    ) -> None:
        self._count = x.shape[0] if offsets is None else offsets.shape[0] - 1
        rows = x.shape[0] if per_step and offsets is not None else self._count
        axes, form = (3, "[N, T, F]") if offsets is None else (2, "[sum of lengths, F]")
        if tokens:
            axes, form = axes - 1, form.replace(", F", "")
        advice = "add the missing axis, e.g. with x.unsqueeze(-1), or offsets for flat x"
        require(x.dim() == axes, "x", x, form, advice)
        advice = "give one target per sequence, or one per step with per_step=True"
        require(y.shape[0] == rows, "y", y, f"of {rows} rows", advice)
        fits = transform is None or offsets is None
        advice = "apply it to the flat x before"
        require(fits, "transform", transform, "None for ragged data", advice)
        self.x = x
        self._dtype = torch.int64 if tokens else torch.float32
        self.y = y
        self.offsets = offsets
        self.per_step = per_step
        self.transform = transform
        self.elapsed = elapsed
        self.units = units
        self.weights = weights
        self.known = known

    def __len__(self) -> int:
        return self._count

    @property
    def lengths(self) -> Tensor | None:
        """Number of steps of every sequence, int64 `[N]`; None when dense."""
        return None if self.offsets is None else self.offsets.diff()

    def take(self, indices: Tensor) -> Batch:
        """Make one batch of the sequences `indices`, zero-padded to the longest of them."""
        units = {} if self.weights is None else {"weight": self.weights[indices]}
        for name, part in zip(("shift", "scale", "quantiles"), self.units or (), strict=False):
            units[name] = part.expand(len(indices), -1) if len(part) == 1 else part[indices]
        lengths, mask, rows = None, None, indices
        if self.offsets is not None:
            starts = self.offsets[indices]
            lengths = self.offsets[indices + 1] - starts
            steps = torch.arange(int(lengths.max()))
            mask = step_mask(lengths, len(steps))
            rows = (starts[:, None] + steps)[mask]

        def by_step(values: Tensor, fill: float = 0.0) -> Tensor:
            return values[rows] if mask is None else _pad(values[rows], mask, fill)

        x = by_step(self.x).to(self._dtype)
        return Batch(
            x if self.transform is None else self.transform(x),
            as_target(by_step(self.y) if self.per_step else self.y[indices]),
            lengths,
            None if self.elapsed is None else by_step(self.elapsed, 1.0),
            known=None if self.known is None else by_step(self.known),
            **units,
        )


def as_target(y: Tensor) -> Tensor:
    """Convert targets to the dtype of a batch: float32 values or int64 classes.

    Example:
        >>> as_target(torch.tensor([1], dtype=torch.uint8)).dtype
        torch.int64
    """
    return y.to(torch.float32 if y.is_floating_point() else torch.int64)


def in_units(output: Tensor, shift: Tensor | None, scale: Tensor | None) -> Tensor:
    """Return a model's output in the units of the targets, from shift and scale of a batch."""
    if shift is None or scale is None:
        return output
    if output.dim() == 3:
        shift, scale = shift.unsqueeze(1), scale.unsqueeze(1)
    return output * scale + shift


def step_mask(lengths: Tensor, steps: int) -> Tensor:
    """Return the mask of valid steps of padded sequences, bool `[B, T]`."""
    return torch.arange(steps, device=lengths.device) < lengths[:, None]


def _pad(rows: Tensor, mask: Tensor, value: float = 0.0) -> Tensor:
    padded = rows.new_full((*mask.shape, *rows.shape[1:]), value)
    padded[mask] = rows
    return padded
