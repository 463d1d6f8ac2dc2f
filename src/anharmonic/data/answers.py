"""Answers that count: one per recording, or one per step, where windows of recordings overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic.data.dataset import Batch, Batches


class Windowed(NamedTuple):
    """Which recording the windows of a data set are of.

    Attributes:
        owners: int64 `[N]`, the recording of every window; those of one follow each other.
        fresh: int64 `[N]`, steps at the end of every window that are in none before it.
    """

    owners: Tensor
    fresh: Tensor


def answers(
    batches: Batches[Any], answer: Callable[[Any], Tensor], classes: bool
) -> Iterator[tuple[Tensor, Any]]:
    """Predictions and the batches with their targets; of windows one for every recording or step.

    As `anharmonic.train.predict` gives them: of a recording the mean over its windows (of
    probabilities, as their logarithms), of a step that of the first window that covers it.

    Args:
        batches: The data set.
        answer: Gives the prediction for a batch, in the units of its targets.
        classes: Whether predictions are scores of classes.

    Example:
        >>> batch = Batch(torch.zeros(3, 1, 1), torch.tensor([[1.0], [1.0], [2.0]]), None)
        >>> windows = Windowed(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 1]))
        >>> data = Batches(1, lambda i: batch, windows)
        >>> ((values, truth),) = answers(data, lambda b: torch.tensor([[0.0], [4.0], [5.0]]), False)
        >>> values.tolist(), truth.y.tolist()
        ([[2.0], [5.0]], [[1.0], [2.0]])
    """
    if batches.windows is None:
        for batch in batches:
            yield answer(batch), batch
        return
    owners, fresh = batches.windows
    found: list[Tensor] = []
    truth: list[Tensor] = []
    at = 0
    for batch in batches:
        rows = answer(batch)
        size = len(rows)
        per_step = rows.dim() == 3
        if not per_step:
            found.append(rows.softmax(1) if classes else rows)
            truth.append(batch.y)
        else:
            steps = rows.shape[1]
            ends = torch.full((size,), steps) if batch.lengths is None else batch.lengths
            place = torch.arange(steps)
            new = (place < ends[:, None]) & (place >= (ends - fresh[at : at + size])[:, None])
            found.append(rows[new.to(rows.device)])
            truth.append(batch.y[new])
        at += size
    prediction, y = torch.cat(found), torch.cat(truth)
    if per_step:
        yield prediction[None], Batch(prediction.new_zeros(1, len(y), 1), y[None], None)
        return
    count = int(owners.max()) + 1
    owners = owners.to(prediction.device)
    y = y.to(prediction.device)
    sums = prediction.new_zeros(count, prediction.shape[1]).index_add_(0, owners, prediction)
    sizes = torch.bincount(owners, minlength=count)
    means = sums / sizes[:, None]
    firsts = sizes.cumsum(0) - sizes
    if classes:
        means = means.clamp(min=torch.finfo(means.dtype).tiny).log()
    yield means, Batch(means.new_zeros(count, 1, 1), y[firsts], None)
