"""All applicable metrics over a whole set, in total and per class.

`anharmonic.data.metrics` has the single metric that selects weights and appears in results. The
metrics here help people to judge a model. Every run writes them to `report.json` in its folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic._checks import choice, message, require
from anharmonic.data.base import Target
from anharmonic.data.metrics import pinball_losses

_BINS = 10


class ClassScores(NamedTuple):
    """Scores of one class or label.

    Example:
        >>> ClassScores("fault", precision=80.0, recall=50.0, f1=61.5, support=10).recall
        50.0
    """

    name: str
    """Name of the class."""
    precision: float
    """Percentage of predictions of this class that are correct; 0 without predictions."""
    recall: float
    """Percentage of this class that is predicted as it; 0 if the class is empty."""
    f1: float
    """Harmonic mean of precision and recall, in percent."""
    support: int
    """Number of targets of this class."""
    auroc: float | None = None
    """Area under the ROC curve of this class against the rest; None if either is empty."""


class OutputScores(NamedTuple):
    """Errors of one output, or one channel of a forecast, in its own units.

    Example:
        >>> OutputScores("load", rmse=1.5, mae=1.2).r2 is None
        True
    """

    name: str
    """Name of the output or channel."""
    rmse: float
    """Root mean squared error."""
    mae: float
    """Mean absolute error."""
    r2: float | None = None
    """Coefficient of determination, at most 1: one minus the squared error over that of the mean of
    the truth. For a forecast, the mean over the steps ahead. None if the truth is constant."""
    rmse_by_step: tuple[float, ...] = ()
    """For a forecast, the root mean squared error of every step ahead; otherwise empty."""


class QuantileScores(NamedTuple):
    """Scores of one forecast quantile over all channels and steps.

    Example:
        >>> QuantileScores(0.9, pinball=0.4, below=88.0).quantile
        0.9
    """

    quantile: float
    """Its level, in (0, 1)."""
    pinball: float
    """Its mean pinball loss."""
    below: float
    """Percentage of the truth at or below the forecast; ideally 100 times the level."""


@dataclass(frozen=True)
class ScoreTable:
    """All metrics of the predictions for a set.

    Example:
        >>> ScoreTable(4, {"accuracy": 75.0}).metrics["accuracy"]
        75.0
    """

    count: int
    """Number of predicted sequences, valid steps, nodes, graphs or rows."""
    metrics: dict[str, float]
    """By name. Classes: "accuracy", "balanced_accuracy" (mean recall of the classes that occur) and
    "f1" (mean over the classes), in percent, and "auroc" (area under the ROC curve, in [0, 1],
    mean over the classes, each against the rest); calibration: "ece" (expected calibration error,
    in [0, 1], ten bins) and "brier" (Brier score; of two classes that of one of them). Labels:
    "accuracy" (over all labels), "f1_micro", "f1", "auroc", "ece" and "brier" (over all labels).
    Values: "mse", "rmse", "mae" over all outputs, and "r2" (mean over the outputs). Quantiles also
    have "pinball" (mean over quantiles) and "coverage", the percentage of the truth between the
    first and the last quantile."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Metrics that are not meaningful for this set, with reasons."""
    classes: tuple[ClassScores, ...] = ()
    """Scores of every class or label; empty for values."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Confusion matrix of classes: row i counts the predictions for class i; otherwise empty."""
    outputs: tuple[OutputScores, ...] = ()
    """Errors of every regression output or forecast channel; empty for classes and labels."""
    quantiles: tuple[QuantileScores, ...] = ()
    """Scores of every forecast quantile; all other metrics refer to the median."""

    def to_json(self) -> str:
        """Return the table as JSON with sorted keys."""
        values = {name: value for name, value in vars(self).items() if name not in _ROWS}
        for name in _ROWS:
            values[name] = [one._asdict() for one in getattr(self, name)]
        return json.dumps(values, indent=1, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a table from JSON.

        Raises:
            ValueError: If the text is not from `to_json`.

        Example:
            >>> found = ScoreTable(4, {"accuracy": 75.0}, classes=(ClassScores("a", 1, 1, 1, 4),))
            >>> ScoreTable.from_json(found.to_json()) == found
            True
        """
        try:
            values = json.loads(text)
            for name, kind in _ROWS.items():
                values[name] = tuple(kind(**_with_tuples(one)) for one in values[name])
            values["confusion"] = tuple(map(tuple, values["confusion"]))
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            came = f"{type(error).__name__}: {error}"
            expected = "a report must be what a run wrote"
            raise ValueError(message(expected, came, "train the run again")) from error


def _with_tuples(values: dict[str, object]) -> dict[str, object]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


_ROWS = {"classes": ClassScores, "outputs": OutputScores, "quantiles": QuantileScores}


def score_table(
    target: Target,
    prediction: Tensor,
    y: Tensor,
    names: Sequence[str] = (),
    horizon: int = 0,
    quantiles: Sequence[float] = (),
) -> ScoreTable:
    """Compute all metrics that apply to the predictions.

    Args:
        target: Kind of target: "class", "labels" or "value".
        prediction: Class probabilities, label scores (a label is predicted if its score is above
            0), or values.
        y: The truth.
        names: Name of every class, label, output or channel; numbered if empty.
        horizon: For a forecast, the number of steps ahead. Outputs are then all channels of the
            first step, followed by those of the second, and so on.
        quantiles: For a forecast, the predicted quantiles. Predictions are then all values of the
            first quantile, followed by those of the second, and so on.

    Shape:
        - prediction: `[N, C]`, `[N, L]` or `[N, O]`; per step, all valid steps concatenated.
        - y: `[N]` class indices, `[N, L]` labels 0 and 1, or `[N, O]`.

    Raises:
        ValueError: If the shapes do not fit, the set is empty, or a prediction is not finite.

    Example:
        >>> found = score_table("value", torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [2.0]]))
        >>> found.metrics
        {'mse': 0.5, 'rmse': 0.7071067811865476, 'mae': 0.5, 'r2': -1.0}
        >>> shares = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
        >>> found = score_table("class", shares, torch.tensor([0, 1, 1]), ("no", "yes"))
        >>> found.metrics["balanced_accuracy"], found.confusion
        (75.0, ((1, 0), (1, 1)))
    """
    if quantiles:
        return _of_quantiles(prediction, y, names, horizon, quantiles)
    choice("target", target, ("class", "labels", "value"))
    prediction, y = prediction.detach().to("cpu", torch.float64), y.detach().cpu()
    wanted = prediction.shape[:1] if target == "class" else prediction.shape
    fits = prediction.dim() == 2 and y.shape == wanted
    advice = "give a row per prediction, padding left out"
    require(fits, "y", y, f"of shape {list(wanted)} as the predictions have", advice)
    require(len(y) > 0, "predictions", len(y), "at least one", "give data to measure on")
    bad = int((~prediction.isfinite()).any(1).sum())
    advice = "look for extreme values in the data, or train with a lower lr"
    require(not bad, "predictions that are infinite or NaN", bad, "none", advice)
    steps = max(1, horizon)
    size = prediction.shape[1] // steps
    names = tuple(names) or tuple(str(i) for i in range(size))
    advice = "name every class, output or channel once"
    require(len(names) == size, "names", len(names), f"{size}, as there are scores", advice)
    if target == "value":
        return _of_values(prediction, y.to(torch.float64), names, horizon)
    if target == "labels":
        return _of_labels(prediction, (y > 0.5).long(), names)
    return _of_classes(prediction, y.long(), names)


def _of_classes(shares: Tensor, y: Tensor, names: tuple[str, ...]) -> ScoreTable:
    count = len(names)
    guess = shares.argmax(1)
    counts = torch.bincount(y * count + guess, minlength=count**2).reshape(count, count)
    hits, predicted, present = counts.diag(), counts.sum(0), counts.sum(1)
    areas = _areas(shares, functional.one_hot(y, count))
    classes = _class_scores(hits, predicted, present, names, areas)
    recalls = [one.recall for one in classes if one.support]
    # (A class that neither occurs nor is predicted does not count, as in scikit-learn.)
    met = (predicted + present).tolist()
    f1 = [one.f1 for one, seen in zip(classes, met, strict=True) if seen]
    found = {
        "accuracy": 100.0 * float(hits.sum()) / len(y),
        "balanced_accuracy": sum(recalls) / len(recalls),
        "f1": sum(f1) / len(f1),
    }
    absent = [one.name for one in classes if not one.support]
    left_out = {}
    known = [area for area in areas if area is not None]
    if absent:
        left_out["auroc"] = _lacking(absent, "does not occur")
    elif len(known) < count:
        left_out["auroc"] = "all are of one class"
    else:
        found["auroc"] = sum(known) / count
    found["ece"] = _calibration_error(shares.max(1).values, guess == y)
    squares = (shares - functional.one_hot(y, count)).square().sum(1).mean()
    found["brier"] = float(squares) / (2 if count == 2 else 1)
    confusion = tuple(tuple(row) for row in counts.tolist())
    return ScoreTable(len(y), found, left_out, classes, confusion)


def _of_labels(scores: Tensor, y: Tensor, names: tuple[str, ...]) -> ScoreTable:
    guess = (scores > 0).long()
    hits, predicted, present = (guess * y).sum(0), guess.sum(0), y.sum(0)
    areas = _areas(scores, y)
    classes = _class_scores(hits, predicted, present, names, areas)
    found = {
        "accuracy": 100.0 * float((guess == y).double().mean()),
        "f1_micro": _percent(2 * int(hits.sum()), int(predicted.sum() + present.sum())),
        "f1": sum(one.f1 for one in classes) / len(classes),
    }
    same = [name for name, column in zip(names, y.T, strict=True) if column.unique().numel() < 2]
    left_out = {}
    if same:
        left_out["auroc"] = _lacking(same, "is the same everywhere")
    else:
        found["auroc"] = sum(area for area in areas if area is not None) / len(names)
    shares = scores.sigmoid()
    found["ece"] = _calibration_error(torch.maximum(shares, 1 - shares).flatten(), guess == y)
    found["brier"] = float((shares - y).square().mean())
    return ScoreTable(len(y), found, left_out, classes)


def _areas(scores: Tensor, y: Tensor) -> list[float | None]:
    """Return the area under the ROC curve of every column, the share of ordered pairs."""
    found: list[float | None] = []
    for column, true in zip(scores.T, y.T.bool(), strict=True):
        _, places, counts = torch.unique(column, return_inverse=True, return_counts=True)
        # Equal scores get the mean of their ranks, so that such a pair counts half.
        ranks = (counts.cumsum(0) - (counts - 1) / 2.0).double()[places]
        ones = int(true.sum())
        zeros = len(true) - ones
        area = (float(ranks[true].sum()) - ones * (ones + 1) / 2) / max(1, ones * zeros)
        found.append(area if ones and zeros else None)
    return found


def _calibration_error(confidence: Tensor, hit: Tensor) -> float:
    """Return the mean gap between confidence and accuracy over ten bins of equal width."""
    bins = (confidence * _BINS).ceil().long().clamp(1, _BINS) - 1
    gaps = torch.zeros(_BINS, dtype=torch.float64)
    gaps.index_add_(0, bins, hit.flatten().double() - confidence)
    return float(gaps.abs().sum()) / len(confidence)


def _class_scores(
    hits: Tensor,
    predicted: Tensor,
    present: Tensor,
    names: tuple[str, ...],
    areas: Sequence[float | None],
) -> tuple[ClassScores, ...]:
    counts = zip(names, hits.tolist(), predicted.tolist(), present.tolist(), areas, strict=True)
    return tuple(
        ClassScores(
            name,
            precision=_percent(right, guessed),
            recall=_percent(right, support),
            f1=_percent(2 * right, guessed + support),
            support=support,
            auroc=area,
        )
        for name, right, guessed, support, area in counts
    )


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _of_values(prediction: Tensor, y: Tensor, names: tuple[str, ...], horizon: int) -> ScoreTable:
    errors = prediction - y
    mse = float(errors.square().sum()) / y.numel()
    found = {"mse": mse, "rmse": math.sqrt(mse), "mae": float(errors.abs().sum()) / y.numel()}
    outputs = _output_scores(errors, y, names, horizon)
    same = [i for i, column in enumerate(y.T) if column.unique().numel() < 2]
    if same:
        what = f"output {names[same[0] % len(names)]}" if y.shape[1] > 1 else "the target"
        left_out = {"r2": f"{what} is the same everywhere"}
        return ScoreTable(len(y), found, left_out, outputs=outputs)
    r2 = sum(one.r2 for one in outputs if one.r2 is not None) / len(outputs)
    return ScoreTable(len(y), found | {"r2": r2}, outputs=outputs)


def _of_quantiles(
    prediction: Tensor, y: Tensor, names: Sequence[str], horizon: int, quantiles: Sequence[float]
) -> ScoreTable:
    """Return metrics of the median and of every quantile."""
    levels = list(quantiles)
    forecasts = prediction.detach().to("cpu", torch.float64)
    forecasts = forecasts.reshape(len(forecasts), len(levels), -1)
    y = y.detach().cpu().double()
    table = score_table("value", forecasts[:, levels.index(0.5)], y, names, horizon)
    found = []
    for q, forecast in zip(levels, forecasts.unbind(1), strict=True):
        difference = forecast - y
        losses = pinball_losses(difference, torch.tensor([[q]], dtype=torch.float64))
        below = 100.0 * float((difference >= 0).double().mean())
        found.append(QuantileScores(q, float(losses.mean()), below))
    inside = (forecasts[:, 0] <= y) & (y <= forecasts[:, -1])
    metrics = {
        **table.metrics,
        "pinball": sum(one.pinball for one in found) / len(found),
        "coverage": 100.0 * float(inside.double().mean()),
    }
    return replace(table, metrics=metrics, quantiles=tuple(found))


def _output_scores(
    errors: Tensor, y: Tensor, names: tuple[str, ...], horizon: int
) -> tuple[OutputScores, ...]:
    shape = (len(y), max(1, horizon), len(names))
    errors, y = errors.reshape(shape), y.reshape(shape)
    by_step = errors.square().mean(0).sqrt()
    # R² is one minus the error over the spread of the truth.
    r2 = 1 - errors.square().sum(0) / (y - y.mean(0)).square().sum(0)
    r2 = r2.where(r2.abs() > 1e-12, 0.0)  # of a constant; the rest is rounding
    differs = (y != y[0]).any(0).all(0)
    made = []
    for place, name in enumerate(names):
        error = errors[..., place].flatten()
        made.append(
            OutputScores(
                name,
                rmse=float(error.square().mean().sqrt()),
                mae=float(error.abs().mean()),
                r2=float(r2[:, place].mean()) if differs[place] else None,
                rmse_by_step=tuple(by_step[:, place].tolist()) if horizon else (),
            )
        )
    return tuple(made)


def _lacking(names: Sequence[str], what: str) -> str:
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]!r}{more} {what}"
