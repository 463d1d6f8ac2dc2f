"""The best constant answer: what a model has to beat before it is said to have learned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic.data.answers import answers
from anharmonic.data.base import Batch, Loaders, Task, step_mask


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
    from anharmonic.data.metrics import TaskMetric

    answer = constant_answer(task, torch.cat([real_targets(batch) for batch in loaders.train(0)]))

    def constant(batch: Any) -> Tensor:
        shape = batch.y.shape if task.target != "class" else (*batch.y.shape, task.output_size)
        if isinstance(batch, Batch) and batch.shift is not None:  # what an output of 0 stands for
            return batch.select(torch.zeros(shape))
        return answer.expand(shape)

    metric = TaskMetric(task.metric, task.metric_scale)
    for prediction, batch in answers(loaders.test, constant, task.target == "class"):
        metric.update(prediction, batch)
    score = metric.value()
    if task.seasonal is None:
        return score
    again, at = TaskMetric(task.metric, task.metric_scale), 0
    for batch in loaders.test:
        again.update(task.seasonal[at : at + len(batch.y)], batch)
        at += len(batch.y)
    return min(score, again.value())


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
    if batch.lengths is not None:
        return y[step_mask(batch.lengths, y.shape[1])]
    return y.flatten(0, 1)
