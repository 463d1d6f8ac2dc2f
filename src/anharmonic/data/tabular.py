"""Tables of numbers: one row of features per sample.

Letters: `B` batch, `F` features, `O` outputs, `N` rows of a data set.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic._checks import described, message, positive_int
from anharmonic.data.base import (
    Batch,
    Batches,
    Readout,
    Task,
    counted,
)
from anharmonic.data.dataset import as_target


class TableBatch(Batch):
    """Rows that are computed together: x `[B, F]`, y `[B]` or `[B, O]`, no lengths."""

    @property
    def inputs(self) -> tuple[Tensor]:  # type: ignore[override]
        """What a model is called with."""
        return (self.x,)


class TableDataset:
    """Rows and targets in memory.

    Args:
        x: Features `[N, F]`.
        y: Integer classes `[N]` or values `[N, O]`.

    Example:
        >>> rows = TableDataset(torch.eye(3), torch.tensor([0, 1, 1]))
        >>> rows.batches(2)[1].y.tolist()
        [1]
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        if x.dim() != 2 or y.shape[:1] != x.shape[:1]:
            raise ValueError(
                message(
                    "x must be [N, F] and y have N rows",
                    f"x {described(x)}, y {described(y)}",
                    "give one row of features and one target per sample",
                )
            )
        self.x, self.y = x, y

    def __len__(self) -> int:
        return self.x.shape[0]

    def batches(self, batch_size: int, order: Tensor | None = None) -> Batches[TableBatch]:
        """Cuts the rows into batches, the last of which may be smaller.

        Args:
            batch_size: Rows per batch, at least 1.
            order: int64 `[N]`, the order of the rows; None for the order stored.
        """
        positive_int("batch_size", batch_size)
        chosen = torch.arange(len(self)) if order is None else order

        def make(index: int) -> TableBatch:
            rows = chosen[index * batch_size : (index + 1) * batch_size]
            return TableBatch(self.x[rows].to(torch.float32), as_target(self.y[rows]), None)

        return Batches(-(-len(chosen) // batch_size), make)


class TabularTask(Task):
    """A table of numbers with a question about every row.

    Features are standardised: mean and deviation are those of the training rows.
    """

    kind = "tabular"
    readout: Readout = "row"

    def summary(self) -> str:
        """Says in one line how the data were understood."""
        parts = ", ".join(f"{size} {name}" for name, size in self.sizes.items())
        output = (
            counted(self.output_size, "class", "classes")
            if self.target == "class"
            else f"{counted(self.output_size, 'value')} per row"
        )
        return (
            f"{self.name}: {counted(sum(self.sizes.values()), 'row')} ({parts}), "
            f"{counted(self.input_size, 'feature')}, {output}"
        )
