"""Metrics over a whole data set: sums in float64, padding left out.

A prediction with NaN gives NaN: a diverged model is not scored as if it had answered.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic._checks import choice, described, message, number
from anharmonic.data.base import Batch, step_mask
from anharmonic.data.graph_batch import GraphBatch


class Metric(ABC):
    """A running total: `update` with every batch, then `value`.

    Args:
        scale: Factor on the value, > 0: the `metric_scale` of the task.

    Attributes:
        name: The name `make_metric` knows.
        higher_is_better: Whether a larger value is better.
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = False

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = number("scale", scale, low=0.0, low_open=True)
        self._count = 0

    @abstractmethod
    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch.

        Args:
            prediction: The model's output: `[B, C]` scores of classes, or the shape of `batch.y`.
                Of a batch with `rows`, the predictions of these rows.
            batch: The batch it was computed from.

        Raises:
            ValueError: If the shapes do not fit.
        """

    @abstractmethod
    def _total(self) -> float:
        """The metric, given that something was added."""

    def value(self) -> float:
        """The metric over all that was added.

        Raises:
            ValueError: If nothing was added.
        """
        if self._count == 0:
            raise ValueError(
                message(
                    f"{self.name} needs at least one prediction", "none", "call update(...) first"
                )
            )
        return self._scale * self._total()


class Accuracy(Metric):
    """Share of sequences, nodes or graphs whose highest score is their class, in percent.

    Example:
        >>> metric = Accuracy()
        >>> batch = Batch(torch.zeros(2, 1, 1), torch.tensor([0, 1]), None)
        >>> metric.update(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), batch)
        >>> metric.value()
        50.0
    """

    name: ClassVar[str] = "accuracy"
    higher_is_better: ClassVar[bool] = True

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._right = 0
        self._has_nan = False

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch; `prediction` holds scores `[B, C]`."""
        _are_scores(prediction, batch)
        scores = prediction.detach()
        self._has_nan |= bool(scores.isnan().any())
        self._right += int((scores.argmax(1) == batch.y.to(scores.device)).sum())
        self._count += batch.y.shape[0]

    def _total(self) -> float:
        return math.nan if self._has_nan else 100.0 * self._right / self._count


class CrossEntropy(Metric):
    """Mean cross entropy of the classes in nats: what training on classes minimises.

    Example:
        >>> metric = CrossEntropy()
        >>> metric.update(torch.zeros(1, 2), Batch(torch.zeros(1, 1, 1), torch.tensor([0]), None))
        >>> round(metric.value(), 4)
        0.6931
    """

    name: ClassVar[str] = "cross_entropy"

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._sum = 0.0

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch; `prediction` holds scores `[B, C]`."""
        _are_scores(prediction, batch)
        scores, y = prediction.detach().to("cpu", torch.float64), batch.y.cpu()
        self._sum += float(functional.cross_entropy(scores, y, reduction="sum"))
        self._count += y.shape[0]

    def _total(self) -> float:
        return self._sum / self._count


class MeanSquaredError(Metric):
    """Mean of the squared errors over all sequences, real steps and outputs.

    Example:
        >>> metric = MeanSquaredError()
        >>> batch = Batch(torch.zeros(1, 3, 1), torch.zeros(1, 3, 1), torch.tensor([2]))
        >>> metric.update(torch.tensor([[[1.0], [3.0], [100.0]]]), batch)  # the last is padding
        >>> metric.value()
        5.0
    """

    name: ClassVar[str] = "mse"

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._errors = 0.0
        self._targets = 0.0

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch; `prediction` has the shape of `batch.y`."""
        error, y = _errors(prediction, batch)
        self._errors += float(error.square().sum())
        self._targets += float(y.square().sum())
        self._count += y.numel()

    def _total(self) -> float:
        return self._errors / self._count


class RootMeanSquaredError(MeanSquaredError):
    """Square root of the mean squared error over the whole set, in units of the target."""

    name: ClassVar[str] = "rmse"

    def _total(self) -> float:
        return math.sqrt(self._errors / self._count)


class NormalisedRootMeanSquaredError(MeanSquaredError):
    """Root mean squared error divided by the root mean square of the targets.

    It is 1 for a model that answers 0, and NaN where all targets are 0.
    """

    name: ClassVar[str] = "nrmse"

    def _total(self) -> float:
        return math.sqrt(self._errors / self._targets) if self._targets else math.nan


class NormalisedMeanSquaredError(MeanSquaredError):
    """Mean squared error divided by a constant of the data, given as `scale` = 1 / constant.

    The node regression tasks divide by the mean of the target over all nodes, training nodes
    included, as the published tables do. It is no square, so it depends on the unit of the target.

    Example:
        >>> metric = NormalisedMeanSquaredError(scale=1 / 0.5)
        >>> batch = Batch(torch.zeros(1, 1, 1), torch.ones(1, 1), None)
        >>> metric.update(torch.tensor([[3.0]]), batch)
        >>> metric.value()
        8.0
    """

    name: ClassVar[str] = "nmse"


class MeanAbsoluteError(Metric):
    """Mean of the absolute errors over all samples, real steps and outputs.

    Example:
        >>> metric = MeanAbsoluteError()
        >>> batch = Batch(torch.zeros(2, 1, 1), torch.zeros(2, 1), None)
        >>> metric.update(torch.tensor([[-1.0], [3.0]]), batch)
        >>> metric.value()
        2.0
    """

    name: ClassVar[str] = "mae"

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._errors = 0.0

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch; `prediction` has the shape of `batch.y`."""
        error, _ = _errors(prediction, batch)
        self._errors += float(error.abs().sum())
        self._count += error.numel()

    def _total(self) -> float:
        return self._errors / self._count


class MicroF1(Metric):
    """Micro-averaged F1 of yes-or-no labels, in percent: 2 TP / (2 TP + FP + FN) over all of them.

    A label is predicted where its score (logit) is above 0. It is NaN where no label is set and
    none is predicted.

    Example:
        >>> metric = MicroF1()
        >>> batch = Batch(torch.zeros(2, 1, 1), torch.tensor([[1.0, 0.0], [1.0, 1.0]]), None)
        >>> metric.update(torch.tensor([[2.0, 1.0], [-1.0, 3.0]]), batch)  # 2 TP, 1 FP, 1 FN
        >>> round(metric.value(), 4)
        66.6667
    """

    name: ClassVar[str] = "f1"
    higher_is_better: ClassVar[bool] = True

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._right = 0
        self._named = 0
        self._has_nan = False

    def update(self, prediction: Tensor, batch: Batch | GraphBatch) -> None:
        """Adds a batch; `prediction` holds one score per label, in the shape of `batch.y`."""
        _same_shape(prediction, batch)
        scores = prediction.detach()
        said, wanted = scores > 0, batch.y.to(scores.device) > 0.5
        self._has_nan |= bool(scores.isnan().any())
        self._right += int((said & wanted).sum())
        self._named += int(said.sum()) + int(wanted.sum())
        self._count += batch.y.numel()

    def _total(self) -> float:
        if self._has_nan or self._named == 0:
            return math.nan
        return 200.0 * self._right / self._named


def _errors(prediction: Tensor, batch: Batch | GraphBatch) -> tuple[Tensor, Tensor]:
    """Errors and targets in float64, padding left out."""
    _same_shape(prediction, batch)
    y = batch.y.detach().to("cpu", torch.float64)
    error = prediction.detach().to("cpu", torch.float64) - y
    if isinstance(batch, Batch) and batch.lengths is not None and y.dim() == 3:
        inside = step_mask(batch.lengths.cpu(), y.shape[1])
        return error[inside], y[inside]
    return error, y


def _are_scores(prediction: Tensor, batch: Batch | GraphBatch) -> None:
    if prediction.dim() != 2 or prediction.shape[0] != batch.y.shape[0] or batch.y.dim() != 1:
        raise ValueError(
            message(
                "prediction must be [B, C] and y [B]",
                f"prediction {described(prediction)}, y {described(batch.y)}",
                "use readout 'last' or 'mean' for a class task",
            )
        )


def _same_shape(prediction: Tensor, batch: Batch | GraphBatch) -> None:
    if prediction.shape != batch.y.shape:
        raise ValueError(
            message(
                "prediction must have the shape of y",
                f"prediction {described(prediction)}, y {described(batch.y)}",
                "check readout and output_size of the model",
            )
        )


_METRICS: dict[str, type[Metric]] = {
    kind.name: kind
    for kind in (
        Accuracy,
        MicroF1,
        CrossEntropy,
        MeanSquaredError,
        RootMeanSquaredError,
        NormalisedRootMeanSquaredError,
        NormalisedMeanSquaredError,
        MeanAbsoluteError,
    )
}


def make_metric(name: str, scale: float = 1.0) -> Metric:
    """Makes a fresh metric by its name.

    Args:
        name: "accuracy", "f1", "cross_entropy", "mse", "rmse", "nrmse", "nmse" or "mae".
        scale: Factor on its value, > 0; a task says it as `metric_scale`.

    Raises:
        ValueError: If the name is unknown or the scale out of range.

    Example:
        >>> make_metric("accuracy").higher_is_better, make_metric("rmse").higher_is_better
        (True, False)
    """
    return _METRICS[choice("metric", name, _METRICS)](scale)
