"""Tables of numbers: one row of features per sample.

Letters: `B` batch, `F` features, `O` outputs, `N` rows of a data set.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic._checks import require
from anharmonic.data.base import Batch, Readout, Task, counted
from anharmonic.data.dataset import Dataset, as_target


class TableBatch(Batch):
    """A batch of rows: x `[B, F]`, y `[B]` or `[B, O]`, no lengths."""

    @property
    def inputs(self) -> tuple[Tensor]:
        """Return the arguments of a model."""
        return (self.x,)


class TableDataset(Dataset[TableBatch]):
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
        require(x.dim() == 2, "x", x, "[N, F]", "give one row of features per sample")
        fits = y.shape[:1] == x.shape[:1]
        require(fits, "y", y, f"of {len(x)} rows, as x", "give one target per sample")
        self.x, self.y = x, y

    def __len__(self) -> int:
        return self.x.shape[0]

    def take(self, indices: Tensor) -> TableBatch:
        """Make one batch of the rows `indices`, in this order."""
        return TableBatch(self.x[indices].to(torch.float32), as_target(self.y[indices]), None)


class TabularTask(Task):
    """A task on a table of numbers, with a target for every row.

    Features are standardised with the mean and deviation of the training rows.

    Example:
        >>> TabularTask.kind
        'tabular'
    """

    kind = "tabular"
    readout: Readout = "row"

    def _extent(self, parts: str) -> list[str]:
        return [f"{counted(sum(self.sizes.values()), 'row')} ({parts})"]
