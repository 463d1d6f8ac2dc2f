"""A model's metric and loss over a whole data set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic.data.answers import answers
from anharmonic.data.base import Batches, Target, Task
from anharmonic.data.metrics import TaskMetric, real_scores, real_steps
from anharmonic.data.scores import ScoreTable, score_table
from anharmonic.train.losses import count_entries, summed_loss

# Predictions that are kept for a report; a language model has more, and each word is a class.
_MOST_KEPT = 20_000_000


class Scores(NamedTuple):
    """How well a model does on a data set."""

    metric: float
    """The task's metric."""
    loss: float
    """What training minimises, without label smoothing and class weights: its mean."""
    entries: int
    """Targets that were predicted: sequences (of windows their recordings), real steps, nodes,
    graphs or rows."""
    answers: tuple[Tensor, Tensor] | None = None
    """Predictions and truth, as of `score_table`, if they are kept."""

    def report(self, task: Task) -> ScoreTable | None:
        """Return all metrics; None where no answers were kept or some are not finite.

        Args:
            task: Says what is predicted.
        """
        if self.answers is None or not bool(self.answers[0].isfinite().all()):
            return None
        return _table([self.answers], task)


class Predictor:
    """Predicts batch after batch; carries the model's state between them, if told so.

    Gradients end where a batch ends: truncated backpropagation.

    Args:
        model: Maps a batch's inputs to predictions; a ``SequenceModel`` where a state is carried.
        carries_state: Whether each batch goes on where the one before ended.

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
        """The prediction for a batch, in the units of its targets."""
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
    """Compute metric and loss over all batches, without dropout and without gradients.

    Args:
        model: Maps a batch's inputs to predictions; comes back in the mode it had.
        batches: The data set.
        task: Has the metric and the loss.
        device: Where the model is.
        most_kept: Numbers of predictions that are kept for a report at most; of more, none are.
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
        for prediction, batch in answers(batches, answer, task.target == "class"):
            metric.update(prediction, batch)
            entries += count_entries(batch, task.loss)
            kept += prediction.numel()
            if kept <= most_kept:
                found.append(_answers_of(prediction, batch, task.target))
    loss = float(torch.stack(losses).double().sum()) / seen
    every = _joined(found) if 0 < kept <= most_kept else None
    return Scores(float(metric.value()), loss, entries, every)


def evaluate_fully(
    model: nn.Module, batches: Batches[Any], task: Task, device: torch.device
) -> Scores:
    """Compute metric and loss as `evaluate` does, and keep the answers for a report.

    Args:
        model: As of `evaluate`.
        batches: The data set.
        task: Has the metric and the loss.
        device: Where the model is.
    """
    return evaluate(model, batches, task, device, most_kept=_MOST_KEPT)


def detailed_scores(
    model: nn.Module, batches: Batches[Any], task: Task, device: torch.device | None = None
) -> ScoreTable:
    """Compute all metrics that fit the task, over all batches, without dropout and gradients.

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
    reader = Predictor(model, task.carries_state)
    with _judged(model):

        def answer(batch: Any) -> Tensor:
            return reader(batch.to(device))

        found = [
            _answers_of(prediction, batch, task.target)
            for prediction, batch in answers(batches, answer, task.target == "class")
        ]
    return _table(found, task)


def _joined(found: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    predictions, truth = zip(*found, strict=True)
    return torch.cat(predictions), torch.cat(truth)


def _table(found: Sequence[tuple[Tensor, Tensor]], task: Task) -> ScoreTable:
    prediction, y = _joined(found)
    if task.quantiles:  # for which targets are repeated
        y = y[:, : y.shape[1] // len(task.quantiles)]
    names, horizon, quantiles = task.output_names, task.horizon, task.quantiles
    return score_table(task.target, prediction, y, names, horizon, quantiles)


def _answers_of(prediction: Tensor, batch: Any, target: Target) -> tuple[Tensor, Tensor]:
    """Predictions and truth of a batch, padding left out, as of `score_table`."""
    if target == "class":
        scores, y = real_scores(prediction, batch)
        # Their sum is 1: shares of one sequence can be compared with those of another.
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
