"""Metrics over a whole data set, summed in float64 batch by batch.

Padding is left out. A prediction with NaN gives NaN, so a diverged model gets no score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic._checks import choice, described, message, number, require
from anharmonic.data.base import Batch

if TYPE_CHECKING:
    from anharmonic.data.graph_batch import GraphBatch


class TaskMetric:
    """A metric by name: call `update` with every batch, then read `value`.

    Args:
        name: "accuracy": share of sequences, nodes or graphs with the correct class, in percent;
            "balanced_accuracy": mean recall of the classes that occur, in percent; "f1":
            micro-averaged F1 of labels, 2 TP / (2 TP + FP + FN) in percent, where a label is
            predicted if its score is above 0; "cross_entropy": mean in nats; "bits_per_character":
            the same in bits; "perplexity": its exponential; "mse", "rmse", "mae": errors over all
            samples, valid steps and outputs; "nrmse": root mean squared error over the root mean
            square of the targets, 1 for a model that predicts 0; "nmse": mean squared error over a
            constant of the data, 1 / `scale`; "pinball": mean loss over quantiles, half the
            absolute error for a median.
        scale: Factor on the value, > 0; the task's `metric_scale`.

    Attributes:
        higher_is_better: Whether a larger value is better.

    Raises:
        ValueError: If the name is unknown or the scale out of range.

    Example:
        >>> metric = TaskMetric("mse")
        >>> batch = Batch(torch.zeros(1, 3, 1), torch.zeros(1, 3, 1), torch.tensor([2]))
        >>> metric.update(torch.tensor([[[1.0], [3.0], [100.0]]]), batch)  # the last is padding
        >>> metric.value()
        5.0
    """

    def __init__(self, name: str, scale: float = 1.0) -> None:
        self.name = choice("metric", name, _SUMS)
        self.higher_is_better = name in PERCENT
        self._by_class: list[Tensor] = []
        self._scale = number("scale", scale, low=0.0, low_open=True)
        self._updates, self._sum, self._whole = 0, 0.0, 0.0

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Add a batch and the model's output after `batch.select`."""
        if self.name == "balanced_accuracy":
            self._by_class.append(_hits_by_class(*real_scores(prediction.detach(), batch)))
        part, whole = _SUMS[self.name](prediction.detach(), batch)
        self._updates += 1
        self._sum += float(part)
        self._whole += float(whole)

    def value(self) -> float:
        """Return the metric over all added batches, at least one."""
        count = self._updates
        require(count > 0, self.name, count, "fed with a prediction", "call update(...) first")
        if self._by_class:
            hits, entries = torch.stack(self._by_class).sum(0)
            return self._scale * 100.0 * float((hits / entries)[entries > 0].mean())
        # No label is true or predicted: F1 is then 0, as in scikit-learn.
        value = 0.0 if self.name == "f1" and self._sum == 0 else math.nan
        if self._whole:
            value = _FACTORS.get(self.name, 1.0) * self._sum / self._whole
        if self.name in ("rmse", "nrmse"):
            value = math.sqrt(value)
        if self.name == "perplexity":
            value = math.exp(min(value, _LARGEST))
        return self._scale * value


def _hits(scores: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, int]:
    scores, y = real_scores(scores, batch)
    hits = (scores.argmax(1) == y).sum()
    return _unless_nan(hits, scores), len(scores)


def _hits_by_class(scores: Tensor, y: Tensor) -> Tensor:
    """Return hits and entries of every class, `[2, C]`; NaN if a score is NaN."""
    hits = (scores.argmax(1) == y).double()
    hits = torch.where(scores.isnan().any(), math.nan, hits)
    classes = functional.one_hot(y, scores.shape[1]).double()
    return torch.stack([hits @ classes, classes.sum(0)]).cpu()


def _log_losses(scores: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, int]:
    scores, y = real_scores(scores, batch)
    scores = scores.to("cpu", torch.float64)
    return functional.cross_entropy(scores, y.cpu(), reduction="sum"), len(scores)


def _label_hits(scores: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, Tensor]:
    scores, y = real_steps(scores, batch)
    predicted, true = scores > 0, y > 0.5
    counted = predicted.sum() + true.sum()
    return _unless_nan((predicted & true).sum(), scores), counted


def _unless_nan(hits: Tensor, scores: Tensor) -> Tensor:
    return torch.where(scores.isnan().any().cpu(), math.nan, hits.cpu().double())


def _squares(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, int]:
    prediction, y = real_steps(prediction, batch)
    return (prediction - y).square().sum(), y.numel()


def _errors(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, int]:
    prediction, y = real_steps(prediction, batch)
    return (prediction - y).abs().sum(), y.numel()


def _relative_squares(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, Tensor]:
    prediction, y = real_steps(prediction, batch)
    return (prediction - y).square().sum(), y.square().sum()


def _pinball(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, int]:
    _check_shape(prediction, batch)
    assert isinstance(batch, Batch) and batch.quantiles is not None
    difference = (prediction - batch.y).to("cpu", torch.float64)
    return pinball_losses(difference, batch.quantiles.cpu()).sum(), batch.y.numel()


def pinball_losses(difference: Tensor, quantiles: Tensor) -> Tensor:
    """Return the pinball losses, `[B, O]`; quantile q should exceed a share q of the truth.

    The differences, predictions minus truth, are all of the first quantile first; quantiles are
    `[B, Q]`.

    Example:
        >>> pinball_losses(torch.tensor([[-1.0, 2.0]]), torch.tensor([[0.25, 0.75]])).tolist()
        [[0.25, 0.5]]
    """
    q = quantiles.repeat_interleave(difference.shape[1] // quantiles.shape[1], 1)
    return torch.maximum(-q * difference, (1 - q) * difference)


def real_steps(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, Tensor]:
    """Return predictions and targets in float64 without padding."""
    _check_shape(prediction, batch)
    prediction, y = (part.to("cpu", torch.float64) for part in (prediction, batch.y))
    if isinstance(batch, Batch) and y.dim() == 3 and (inside := batch.counted) is not None:
        return prediction[inside], y[inside]
    return prediction, y


def real_scores(scores: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, Tensor]:
    """Return scores `[N, C]` and classes `[N]` of all sequences or valid steps."""
    if scores.dim() not in (2, 3) or batch.y.shape != scores.shape[:-1]:
        expected = "prediction must be [B, C] and y [B], or [B, T, C] and [B, T]"
        came = f"prediction {described(scores)}, y {described(batch.y)}"
        advice = "use readout 'last' or 'mean' for one class per sequence, 'all' for one per step"
        raise ValueError(message(expected, came, advice))
    y = batch.y.to(scores.device)
    if scores.dim() == 2:
        return scores, y
    if isinstance(batch, Batch) and (inside := batch.counted) is not None:
        return scores[inside], y[inside]
    return scores.flatten(0, 1), y.flatten()


def _check_shape(prediction: Tensor, batch: Batch | GraphBatch) -> None:
    y, advice = batch.y, "check readout and output_size of the model"
    require(prediction.shape == y.shape, "prediction", prediction, f"{list(y.shape)} as y", advice)


PERCENT = ("accuracy", "balanced_accuracy", "f1")
"""Metrics in percent. Larger values are better for these, smaller values for all others."""
LOG_LOSSES = ("cross_entropy", "bits_per_character", "perplexity")
"""Metrics of the predicted probabilities of classes."""
# Percent; F1 counts every hit twice; bits.
_FACTORS = {"accuracy": 100.0, "f1": 200.0, "bits_per_character": 1 / math.log(2)}
_LARGEST = 700.0  # its exponential is finite
# The two sums of a quotient.
_SUMS: dict[str, Callable[[Tensor, Batch | GraphBatch], tuple[Tensor, Tensor | int]]] = {
    "accuracy": _hits,
    "balanced_accuracy": _hits,
    "f1": _label_hits,
    "cross_entropy": _log_losses,
    "bits_per_character": _log_losses,
    "perplexity": _log_losses,
    "mse": _squares,
    "rmse": _squares,
    "nrmse": _relative_squares,
    "nmse": _squares,
    "mae": _errors,
    "pinball": _pinball,
}


def shown_metric(value: float, metric: str, answers: int | None = None) -> str:
    r"""Format a metric with its unit; percentages of few targets have no decimals.

    Example:
        >>> shown_metric(71.4286, "accuracy", 14), shown_metric(71.4286, "accuracy", 700)
        ('71\xa0%', '71.4\xa0%')
        >>> shown_metric(0.0123456, "mse")
        '0.0123456'
    """
    if metric not in PERCENT:
        return f"{value:.6g}"
    return f"{value:.{decimals(answers)}f}\N{NO-BREAK SPACE}%"


def decimals(answers: int | None) -> int:
    """Return the number of significant decimals of a percentage over this many targets.

    Example:
        >>> decimals(14), decimals(700), decimals(50_000)
        (0, 1, 2)
    """
    return 1 if answers is None else 0 if answers < 100 else 1 if answers < 20_000 else 2


def accuracy_interval(accuracy: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % confidence interval of an accuracy.

    Args:
        accuracy: The measured accuracy in percent.
        count: Number of targets, at least 1.

    References:
        E. B. Wilson: Probable inference, the law of succession, and statistical inference, Journal
        of the American Statistical Association 22, 1927.

    Example:
        >>> [round(bound, 1) for bound in accuracy_interval(90.0, 20)]
        [69.9, 97.2]
        >>> accuracy_interval(0.0, 6)[0]
        0.0
    """
    z2, share = 1.959964**2, accuracy / 100
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    inside = share * (1 - share) / count + z2 / (4 * count**2)
    half = math.sqrt(z2 * max(inside, 0.0)) / (1 + z2 / count)
    # Rounded, because an accuracy of 0 or 1 is itself the end.
    return 100 * round(max(0.0, middle - half), 12), 100 * round(min(1.0, middle + half), 12)
