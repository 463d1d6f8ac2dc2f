"""Predictions as metrics count them, and the baseline: the best constant prediction.

With overlapping windows of recordings, one prediction counts per recording, or one per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from anharmonic.data.base import Batch, Batches, Loaders, Target, Task
from anharmonic.data.metrics import LOG_LOSSES, TaskMetric


class Windowed(NamedTuple):
    """The recordings to which the windows of a data set belong.

    Attributes:
        owners: int64 `[N]`, the recording of every window; windows of one recording are contiguous.
        fresh: int64 `[N]`, number of steps at the end of every window that no earlier window
            contains.
    """

    owners: Tensor
    fresh: Tensor


def answers(
    batches: Batches[Any], answer: Callable[[Any], Tensor], target: Target
) -> Iterator[tuple[Tensor, Any]]:
    """Yield predictions and batches with targets; for windows, one per recording or step.

    As in `anharmonic.train.predict`, a recording gets the mean over its windows (as scores of the
    mean probabilities for classes and labels). A step gets the prediction of the first window that
    contains it.

    Example:
        >>> batch = Batch(torch.zeros(3, 1, 1), torch.tensor([[1.0], [1.0], [2.0]]), None)
        >>> windows = Windowed(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 1]))
        >>> data = Batches(1, lambda i: batch, windows)
        >>> found = torch.tensor([[0.0], [4.0], [5.0]])
        >>> ((values, truth),) = answers(data, lambda b: found, "value")
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
            if target != "value":
                rows = rows.softmax(1) if target == "class" else rows.sigmoid()
            found.append(rows)
            truth.append(batch.y)
        else:
            steps = rows.shape[1]
            ends = torch.full((size,), steps) if batch.lengths is None else batch.lengths
            place = torch.arange(steps)
            new = (place < ends[:, None]) & (place >= (ends - fresh[at : at + size])[:, None])
            if batch.known is not None:
                new &= batch.known
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
    sums = torch.zeros(count, prediction.shape[1], dtype=torch.float64, device=prediction.device)
    sizes = torch.bincount(owners, minlength=count)
    means = (sums.index_add_(0, owners, prediction.double()) / sizes[:, None]).to(prediction.dtype)
    firsts = sizes.cumsum(0) - sizes
    if target == "class":
        means = means.clamp(min=torch.finfo(means.dtype).tiny).log()
    elif target == "labels":
        means = means.logit(eps=1e-7)
    yield means, Batch(means.new_zeros(count, 1, 1), y[firsts], None)


def trivial_score(task: Task, loaders: Loaders[Any]) -> float:
    """Return the test metric of the baseline, a constant prediction from the training data.

    For classes it is the most frequent class, or the class frequencies if the metric uses
    probabilities. For labels it is each label's more frequent value. For values it is their mean,
    or their median for the metric "mae". For a forecast it is the last known value, or the value
    one season before if that is more accurate. For quantiles of a forecast it is this value plus
    the quantiles of the changes since then in training.
    """
    usual = usual_changes(loaders.train(0))
    targets = torch.cat([real_targets(batch) for batch in loaders.train(0)])
    answer = constant_answer(task.target, targets, task.output_size, task.metric)

    def constant(batch: Any) -> Tensor:
        shape = batch.y.shape if task.target != "class" else (*batch.y.shape, task.output_size)
        if task.horizon:  # the value at output 0 is the last known one
            last: Tensor = batch.select(torch.zeros(shape))
            return last + usual
        return answer.expand(shape)

    metric = TaskMetric(task.metric, task.metric_scale)
    for prediction, batch in answers(loaders.test, constant, task.target):
        metric.update(prediction, batch)
    score = metric.value()
    if task.seasonal is None:
        return score
    again, at = TaskMetric(task.metric, task.metric_scale), 0
    for batch in loaders.test:
        again.update(task.seasonal[at : at + len(batch.y)], batch)
        at += len(batch.y)
    return min(score, again.value())


def usual_changes(batches: Iterable[Any]) -> Tensor:
    """Return the quantiles of changes since the last known value, `[O]`; 0 without quantiles."""
    changes: list[Tensor] = []
    levels: list[float] = []
    for batch in batches:
        if not isinstance(batch, Batch) or batch.quantiles is None:
            return torch.tensor(0.0)
        levels = batch.quantiles[0].tolist()
        change = batch.y - batch.select(torch.zeros_like(batch.y))
        changes.append(change[:, : change.shape[1] // len(levels)])  # repeated for each quantile
    return column_quantiles(torch.cat(changes), levels)


def column_quantiles(values: Tensor, levels: Iterable[float]) -> Tensor:
    """Return the quantiles of every column, all of the first level first, `[Q * O]`."""
    columns = values.numpy()
    found = np.concatenate([np.quantile(columns, q, axis=0) for q in levels])
    return torch.from_numpy(found).float()


def constant_answer(target: Target, targets: Tensor, size: int, metric: str = "") -> Tensor:
    """Return the constant prediction, `[O]`: scores of `size` classes or of labels, or values.

    `targets` are without padding: `[N]` classes, or `[N, O]` values or labels.
    """
    if target == "class":
        counts = torch.bincount(targets, minlength=size)
        if metric in LOG_LOSSES:
            return (counts.clamp(min=1) / counts.sum()).log()
        return functional.one_hot(counts.argmax(), size).float()
    if target == "labels":
        return targets.float().mean(0) - 0.5
    return targets.median(0).values if metric == "mae" else targets.mean(0)


def real_targets(batch: Any) -> Tensor:
    """Return the targets of a batch without padding, `[N]` classes or `[N, O]` others."""
    y: Tensor = batch.y
    if not isinstance(batch, Batch) or y.dim() < (3 if y.is_floating_point() else 2):
        return y
    if batch.counted is not None:
        return y[batch.counted]
    return y.flatten(0, 1)
