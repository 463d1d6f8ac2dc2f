"""Resonators beside trained models, in `anharmonic compare`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anharmonic.data.base import Batch, Batches, Task
from anharmonic.estimators.resonators import ResonatorClassifier, ResonatorRegressor
from anharmonic.train import Other, Run

_OSCILLATORS, _LEAST = 1000, 50
# Features of more sequences would not fit into memory: about 10 for an oscillator, in float64.
_MOST = 10_000_000
# Of a class without a training sequence.
_SURELY_NOT = 1e-30


class _Fitted(nn.Module):
    """A fitted estimator as a module: from a batch's inputs to predictions."""

    def __init__(self, estimator: Any, target: str, outputs: int) -> None:
        super().__init__()
        self._estimator, self._target, self._outputs = estimator, target, outputs
        weight = torch.from_numpy(np.atleast_2d(estimator.ridge_.coef_))
        self.weight = nn.Parameter(weight, requires_grad=False)  # so that they are counted

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        sequences = _sequences(x, lengths)
        if self._target == "value":
            return torch.from_numpy(self._estimator.predict(sequences)).float()
        shares = np.full((len(sequences), self._outputs), _SURELY_NOT)
        shares[:, self._estimator.classes_] = self._estimator.predict_proba(sequences)
        return torch.from_numpy(np.log(np.maximum(shares, _SURELY_NOT)))


def _sequences(x: Tensor, lengths: Tensor | None) -> list[Any]:
    """Arrays [C, T], without padding."""
    ends = [x.shape[1]] * len(x) if lengths is None else lengths.tolist()
    return [one[:end].T.numpy() for one, end in zip(x, ends, strict=True)]


def _fit(task: Task, batches: Batches[Any], run: Run) -> nn.Module:
    sequences: list[Any] = []
    targets: list[Tensor] = []
    for batch in batches:
        sequences += _sequences(batch.x, batch.lengths)
        targets.append(batch.y if task.target == "class" else _in_units(batch))
    y = torch.cat(targets).numpy()
    number = max(_LEAST, min(_OSCILLATORS, _MOST // len(sequences)))
    if task.target == "value":
        regressor = ResonatorRegressor(number, random_state=run.seed)
        return _Fitted(regressor.fit(sequences, y), "value", task.output_size)
    weights: Any = "balanced" if run.class_weights == "balanced" else None
    if weights is None and task.class_weights is not None:
        weights = {code: task.class_weights[code] for code in np.unique(y).tolist()}
    model = ResonatorClassifier(number, class_weight=weights, random_state=run.seed)
    return _Fitted(model.fit(sequences, y), "class", task.output_size)


def _in_units(batch: Batch) -> Tensor:
    """Targets as a model's output says them; `Batch.select` is the way back."""
    if batch.shift is None or batch.scale is None:
        return batch.y
    return (batch.y - batch.shift) / batch.scale


def _refusal(task: Task) -> str:
    if task.kind != "sequence" or task.readout != "last":
        return "they predict one answer for a sequence"
    if task.target == "labels":
        return "they predict one class or numbers, not labels"
    if getattr(getattr(task, "preprocessing", None), "elapsed", None) == "step":
        return 'they take the time between samples as a channel (elapsed="channel")'
    return ""


RESONATORS = Other(
    "resonators",
    {"num_oscillators": _OSCILLATORS, "at_most": _MOST},
    _refusal,
    _fit,
    "anharmonic.estimators.ResonatorClassifier().fit(X, y).predict(X_new)"
    "  # for numbers: ResonatorRegressor",
)
"""For `anharmonic.train.compare(..., others=[RESONATORS])`: the classifier, or for numbers and
forecasts the regressor, with 1,000 oscillators; fewer for more than 10,000 sequences."""
