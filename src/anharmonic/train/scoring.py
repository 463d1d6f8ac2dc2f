"""A model's metric and loss over a whole data set."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic._checks import require
from anharmonic.data.answers import answers
from anharmonic.data.base import Batches, Target, Task
from anharmonic.data.metrics import TaskMetric, real_scores, real_steps
from anharmonic.data.scores import ScoreTable, score_table
from anharmonic.train.losses import count_entries, summed_loss

MOST_KEPT = 20_000_000
"""Largest number of predictions kept for a report; language models have more."""


class Scores(NamedTuple):
    """A model's scores on a data set."""

    metric: float
    """The task's metric."""
    loss: float
    """Mean of the training loss, without label smoothing and class weights."""
    entries: int
    """Number of predicted targets: sequences (for windows, their recordings), valid steps, nodes,
    graphs or rows."""
    answers: tuple[Tensor, Tensor] | None = None
    """Predictions and truth, as for `score_table`, if they were kept."""

    def report(self, task: Task) -> ScoreTable | None:
        """Return all metrics; None if no predictions were kept or some are not finite.

        Args:
            task: Defines the targets.
        """
        if self.answers is None or not bool(self.answers[0].isfinite().all()):
            return None
        return _table(*self.answers, task)


class Predictor:
    """Predicts successive batches, optionally carrying the model's state between them.

    Gradients stop at the end of a batch (truncated backpropagation).

    Args:
        model: Maps a batch's inputs to predictions; a ``SequenceModel`` if the state is carried.
        carries_state: Whether each batch continues where the previous one ended.

    Example:
        >>> import torch
        >>> from anharmonic.data.base import Batch
        >>> from anharmonic.nn.heads import SequenceModel
        >>> model = SequenceModel("LEM", 1, 1, hidden_size=2, readout="all")
        >>> batch = Batch(torch.ones(1, 3, 1), torch.zeros(1, 3, 1), None)
        >>> reader = Predictor(model, carries_state=True)
        >>> bool((reader(batch) == reader(batch)).any())
        False
    """

    def __init__(self, model: nn.Module, carries_state: bool) -> None:
        self._model = model
        self._carries_state = carries_state
        self._state: Any = None

    def __call__(self, batch: Any) -> Tensor:
        """Return the prediction for a batch in the units of its targets."""
        if not self._carries_state:
            alone: Tensor = batch.select(self._model(*batch.inputs))
            return alone
        prediction, state = self._model(*batch.inputs, state=self._state, return_state=True)
        self._state = type(state)(*(part.detach() for part in state))
        following: Tensor = batch.select(prediction)
        return following


def evaluate(
    model: nn.Module,
    batches: Batches[Any],
    task: Task,
    device: torch.device,
    most_kept: int = 0,
) -> Scores:
    """Compute metric and loss over all batches, without dropout and gradients.

    Args:
        model: Maps a batch's inputs to predictions; its training mode is restored.
        batches: The data set.
        task: Defines the metric and the loss.
        device: Device of the model.
        most_kept: Largest number of predictions to keep for a report; if there are more, none are
            kept.
    """
    metric = TaskMetric(task.metric, task.metric_scale)
    found: list[tuple[Tensor, Tensor]] = []
    kept = 0
    losses: list[Tensor] = []
    entries = seen = 0
    reader = Predictor(model, task.carries_state)

    def answer(batch: Any) -> Tensor:
        nonlocal seen
        batch = batch.to(device)
        prediction = reader(batch)
        losses.append(summed_loss(prediction, batch, task.loss))
        seen += count_entries(batch, task.loss)
        return prediction

    with _judged(model):
        for prediction, batch in answers(batches, answer, task.target):
            metric.update(prediction, batch)
            entries += count_entries(batch, task.loss)
            kept += prediction.numel()
            if kept <= most_kept:
                found.append(_answers_of(prediction, batch, task.target))
    require(seen > 0, "known targets", seen, "at least one", "give data to measure on")
    loss = float(torch.stack(losses).double().sum()) / seen
    every = None
    if 0 < kept <= most_kept:
        predictions, truth = zip(*found, strict=True)
        every = torch.cat(predictions), torch.cat(truth)
    return Scores(float(metric.value()), loss, entries, every)


def detailed_scores(
    model: nn.Module, batches: Batches[Any], task: Task, device: torch.device | None = None
) -> ScoreTable:
    """Compute all metrics that fit the task, over all batches, without dropout and gradients.

    Args:
        model: Maps a batch's inputs to predictions; its training mode is restored.
        batches: The data set.
        task: Defines the targets.
        device: Device of the model; None for the CPU.

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
    scores = evaluate(model, batches, task, device, most_kept=sys.maxsize)
    assert scores.answers is not None
    return _table(*scores.answers, task)


def _table(prediction: Tensor, y: Tensor, task: Task) -> ScoreTable:
    if task.quantiles:  # targets are repeated for each quantile
        y = y[:, : y.shape[1] // len(task.quantiles)]
    names, horizon, quantiles = task.output_names, task.horizon, task.quantiles
    return score_table(task.target, prediction, y, names, horizon, quantiles)


def _answers_of(prediction: Tensor, batch: Any, target: Target) -> tuple[Tensor, Tensor]:
    """Return predictions and truth of a batch without padding, as for `score_table`."""
    if target == "class":
        scores, y = real_scores(prediction, batch)
        # They sum to 1, so that sequences can be compared.
        return scores.to("cpu", torch.float64).softmax(1), y.cpu()
    values, y = real_steps(prediction, batch)
    return values.flatten(0, -2), y.flatten(0, -2)


@contextlib.contextmanager
def _judged(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
