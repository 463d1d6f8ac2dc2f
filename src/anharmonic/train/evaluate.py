"""A model's metric and loss over a whole data set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic.data.answers import answers
from anharmonic.data.base import Batches, Task
from anharmonic.data.metrics import TaskMetric, real_scores, real_steps
from anharmonic.data.scores import ScoreTable, score_table
from anharmonic.train.losses import count_entries, summed_loss
from anharmonic.train.reader import Reader


class Scores(NamedTuple):
    """How well a model does on a data set."""

    metric: float
    """The task's metric."""
    loss: float
    """What training minimises, without label smoothing and class weights: its mean."""
    entries: int
    """Targets that were predicted: sequences (of windows their recordings), real steps, nodes,
    graphs or rows."""


def evaluate(model: nn.Module, batches: Batches[Any], task: Task, device: torch.device) -> Scores:
    """Computes metric and loss over all batches, without dropout and without gradients.

    Args:
        model: Maps a batch's inputs to predictions; comes back in the mode it had.
        batches: The data set.
        task: Has the metric and the loss.
        device: Where the model is.
    """
    metric = TaskMetric(task.metric, task.metric_scale)
    losses: list[Tensor] = []
    entries = seen = 0
    reader = Reader(model, task.carries_state)

    def answer(batch: Any) -> Tensor:
        nonlocal seen
        batch = batch.to(device)
        prediction = reader(batch)
        losses.append(summed_loss(prediction, batch, task.loss))
        seen += count_entries(batch, task.loss)
        return prediction

    with _judged(model):
        for prediction, batch in answers(batches, answer, task.target == "class"):
            metric.update(prediction, batch)
            entries += count_entries(batch, task.loss)
    loss = float(torch.stack(losses).double().sum()) / seen
    return Scores(float(metric.value()), loss, entries)


def detailed_scores(
    model: nn.Module, batches: Batches[Any], task: Task, device: torch.device | None = None
) -> ScoreTable:
    """All metrics that fit the task over all batches, without dropout and without gradients.

    Args:
        model: Maps a batch's inputs to predictions; comes back in the mode it had.
        batches: The data set.
        task: Says what is predicted.
        device: Where the model is; None for the CPU.

    Example:
        >>> from anharmonic.data.synthetic import AddingProblem
        >>> from anharmonic.nn.heads import SequenceModel
        >>> task = AddingProblem(length=10, test_size=8)
        >>> model = SequenceModel("LEM", 2, 1, hidden_size=3)
        >>> found = detailed_scores(model, task.loaders(0, 4).test, task)
        >>> found.count, list(found.metrics)
        (8, ['mse', 'rmse', 'mae', 'r2'])
    """
    device = torch.device("cpu") if device is None else device
    found: list[tuple[Tensor, Tensor]] = []
    reader = Reader(model, task.carries_state)
    with _judged(model):

        def answer(batch: Any) -> Tensor:
            return reader(batch.to(device))

        for prediction, batch in answers(batches, answer, task.target == "class"):
            if task.target == "class":
                scores, y = real_scores(prediction, batch)
                # Their sum is 1: shares of one sequence can be compared with those of another.
                found.append((scores.to("cpu", torch.float64).softmax(1), y.cpu()))
            else:
                values, y = real_steps(prediction, batch)
                found.append((values.flatten(0, -2), y.flatten(0, -2)))
    prediction, y = (torch.cat(parts) for parts in zip(*found, strict=True))
    return score_table(task.target, prediction, y, task.class_names)


def by_channel(model: nn.Module, batches: Batches[Any], task: Task) -> dict[str, float] | None:
    """The metric of every channel of a forecast, in its own units; None of other tasks or of one.

    Args:
        model: On the CPU; comes back in the mode it had.
        batches: The data set.
        task: Has the channels and the metric.
    """
    from anharmonic.data.metrics import TaskMetric
    from anharmonic.data.own import SequencesTask

    if not isinstance(task, SequencesTask) or len(task.forecast_channels) < 2:
        return None
    names = task.forecast_channels
    metrics = [TaskMetric(task.metric, task.metric_scale) for _ in names]
    with _judged(model):
        for batch in batches:
            prediction = batch.select(model(*batch.inputs))
            for place, metric in enumerate(metrics):
                of = slice(place, None, len(names))
                metric.update(prediction[:, of], batch._replace(y=batch.y[:, of]))
    return {name: metric.value() for name, metric in zip(names, metrics, strict=True)}


@contextlib.contextmanager
def _judged(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
