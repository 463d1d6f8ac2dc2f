"""Answers that a metric counts, and the best constant answer, which a model has to beat.

Where windows of recordings overlap, one answer counts per recording, or one per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from anharmonic.data.base import Batch, Batches, Loaders, Task
from anharmonic.data.metrics import TaskMetric


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
    sums = prediction.new_zeros(count, prediction.shape[1]).index_add_(0, owners, prediction)
    sizes = torch.bincount(owners, minlength=count)
    means = sums / sizes[:, None]
    firsts = sizes.cumsum(0) - sizes
    if classes:
        means = means.clamp(min=torch.finfo(means.dtype).tiny).log()
    yield means, Batch(means.new_zeros(count, 1, 1), y[firsts], None)


def trivial_score(task: Task, loaders: Loaders[Any]) -> float:
    """The metric that a constant answer, taken from the training data, has on the test data.

    The answer is the most frequent class (where probabilities count, each class as probable as it
    is frequent), for labels each label's more frequent value, for values their mean, or their
    median where the metric is "mae". Of a forecast it is the last known value, or the value a
    season before where that errs less.

    Args:
        task: Has the metric.
        loaders: The task's batches; of training those of epoch 0.

    Example:
        >>> from anharmonic.data.synthetic import AddingProblem
        >>> task = AddingProblem(length=10, valid_size=8)
        >>> round(trivial_score(task, task.loaders(0, 50)), 1)  # the variance of u + v: 1 / 6
        0.2
    """
    usual = usual_changes(loaders.train(0))
    answer = constant_answer(task, torch.cat([real_targets(batch) for batch in loaders.train(0)]))

    def constant(batch: Any) -> Tensor:
        shape = batch.y.shape if task.target != "class" else (*batch.y.shape, task.output_size)
        if isinstance(batch, Batch) and batch.shift is not None:  # what an output of 0 stands for
            return batch.select(torch.zeros(shape)) + usual
        return answer.expand(shape)

    metric = TaskMetric(task.metric, task.metric_scale)
    for prediction, batch in answers(loaders.test, constant, task.target == "class"):
        metric.update(prediction, batch)
    score = metric.value()
    if task.seasonal is None or task.quantiles:
        return score
    again, at = TaskMetric(task.metric, task.metric_scale), 0
    for batch in loaders.test:
        again.update(task.seasonal[at : at + len(batch.y)], batch)
        at += len(batch.y)
    return min(score, again.value())


def usual_changes(batches: Iterable[Any]) -> Tensor:
    """What to add to the last known value for quantiles: those of its changes in training, [O].

    Args:
        batches: Training data.

    Returns:
        The changes; 0 where no quantiles are forecast.
    """
    changes, quantiles = [], None
    for batch in batches:
        if not isinstance(batch, Batch) or batch.quantiles is None:
            return torch.tensor(0.0)
        quantiles = batch.quantiles[0]
        changes.append(batch.y - batch.select(torch.zeros_like(batch.y)))
    assert quantiles is not None
    columns = torch.cat(changes)
    columns = columns.reshape(len(columns), len(quantiles), -1)
    pairs = zip(quantiles.tolist(), columns.unbind(1), strict=True)
    return torch.cat(
        [torch.from_numpy(np.quantile(c.numpy(), q, axis=0)) for q, c in pairs]
    ).float()


def constant_answer(task: Task, targets: Tensor) -> Tensor:
    """The constant prediction, [O]: scores of classes or labels, or values.

    Args:
        task: Says what the targets are.
        targets: Targets of training, padding left out: [N] classes, or [N, O] values or labels.

    Example:
        >>> from anharmonic.data.synthetic import AddingProblem
        >>> constant_answer(AddingProblem(), torch.tensor([[1.0], [2.0], [6.0]]))
        tensor([3.])
    """
    if task.target == "class":
        counts = torch.bincount(targets, minlength=task.output_size)
        if task.metric in ("cross_entropy", "bits_per_character", "perplexity"):
            return (counts.clamp(min=1) / counts.sum()).log()
        return functional.one_hot(counts.argmax(), task.output_size).float()
    if task.target == "labels":
        return targets.float().mean(0) - 0.5
    return targets.median(0).values if task.metric == "mae" else targets.mean(0)


def real_targets(batch: Any) -> Tensor:
    """The targets of a batch, padding left out: [N] classes, or [N, O] values or labels.

    Args:
        batch: A batch of sequences, graphs or rows.
    """
    y: Tensor = batch.y
    if not isinstance(batch, Batch) or y.dim() < (3 if y.is_floating_point() else 2):
        return y
    if batch.counted is not None:
        return y[batch.counted]
    return y.flatten(0, 1)
