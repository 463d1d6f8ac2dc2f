"""All metrics that fit what is predicted, over a whole set, and what they are of every class.

The one metric that chooses weights and stands in results is in `anharmonic.data.metrics`; these
are for people who judge a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic._checks import choice, missing_extra, require
from anharmonic.data.base import Target


class ClassScores(NamedTuple):
    """How well one class, or one label, is recognised."""

    name: str
    """Of the class."""
    precision: float
    """Percent of those predicted as this class that are of it; 0 where none is predicted."""
    recall: float
    """Percent of those of this class that are predicted as it; 0 where there is none."""
    f1: float
    """Harmonic mean of the two, in percent."""
    support: int
    """How many are of this class."""


class ChannelScores(NamedTuple):
    """How well one channel is forecast, in its own units."""

    name: str
    """Of the channel."""
    rmse: float
    """Root mean squared error."""
    mae: float
    """Mean absolute error."""


@dataclass(frozen=True)
class ScoreTable:
    """All that is measured of the predictions for a set."""

    count: int
    """Sequences, real steps, nodes, graphs or rows that were predicted."""
    metrics: dict[str, float]
    """By name. Classes: "accuracy", "balanced_accuracy" (mean recall of the classes that occur) and
    "f1" (mean over the classes), in percent, and "auroc" (area under the ROC curve, in [0, 1],
    mean over the classes, each against the rest). Labels: "accuracy" (over all labels), "f1_micro",
    "f1" and "auroc". Values: "mse", "rmse", "mae" over all outputs, and "r2" (mean over the
    outputs)."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Metrics that say nothing of this set, and why."""
    classes: tuple[ClassScores, ...] = ()
    """Of every class or label; empty for values."""
    confusion: tuple[tuple[int, ...], ...] = ()
    """Of classes: row i counts what those of class i were predicted as; else empty."""
    channels: tuple[ChannelScores, ...] = ()
    """Of every channel of a forecast; empty for other values."""


def channel_scores(
    prediction: Tensor, y: Tensor, names: Sequence[str]
) -> tuple[ChannelScores, ...]:
    """Errors of every channel of a forecast.

    Args:
        prediction: `[N, horizon * C]`, all channels of the first step, then of the second.
        y: The truth, alike.
        names: Of the C channels.

    Example:
        >>> values = torch.tensor([[1.0, 10.0, 2.0, 30.0]])
        >>> [one.mae for one in channel_scores(values, torch.zeros(1, 4), ("a", "b"))]
        [1.5, 20.0]
    """
    error = (prediction.double() - y.double()).reshape(-1, len(names))
    rmse, mae = error.square().mean(0).sqrt().tolist(), error.abs().mean(0).tolist()
    return tuple(map(ChannelScores, names, rmse, mae))


def accuracy_interval(accuracy: float, count: int) -> tuple[float, float]:
    """Where the accuracy on ever more data of the same kind lies, by Wilson's 95 % interval.

    Args:
        accuracy: What was measured, in percent.
        count: Answers that it was measured on, at least 1.

    References:
        E. B. Wilson: Probable inference, the law of succession, and statistical inference, Journal
        of the American Statistical Association 22, 1927.

    Example:
        >>> [round(bound, 1) for bound in accuracy_interval(90.0, 20)]
        [69.9, 97.2]
    """
    z2, share = 1.959964**2, accuracy / 100
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    inside = share * (1 - share) / count + z2 / (4 * count**2)
    half = math.sqrt(z2 * max(inside, 0.0)) / (1 + z2 / count)
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)


def score_table(
    target: Target, prediction: Tensor, y: Tensor, names: Sequence[str] = ()
) -> ScoreTable:
    """Measures predictions with all metrics that fit.

    Args:
        target: What is predicted: "class", "labels" or "value".
        prediction: Probabilities of the classes, scores of the labels (a label is predicted where
            its score is above 0), or values.
        y: The truth.
        names: Name of every class or label; numbered if there are none.

    Shape:
        - prediction: `[N, C]`, `[N, L]` or `[N, O]`; per step, all real steps one after another.
        - y: `[N]` numbers of classes, `[N, L]` labels 0 and 1, or `[N, O]`.

    Raises:
        ValueError: If the shapes do not fit, there is nothing to measure, or a prediction is not
            finite.
        ImportError: If scikit-learn is missing.

    Example:
        >>> found = score_table("value", torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [2.0]]))
        >>> found.metrics
        {'mse': 0.5, 'rmse': 0.7071067811865476, 'mae': 0.5, 'r2': -1.0}
        >>> shares = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
        >>> found = score_table("class", shares, torch.tensor([0, 1, 1]), ("no", "yes"))
        >>> found.metrics["balanced_accuracy"], found.confusion
        (75.0, ((1, 0), (1, 1)))
    """
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
    if target == "value":
        return _of_values(prediction, y.to(torch.float64))
    names = tuple(names) or tuple(str(i) for i in range(prediction.shape[1]))
    advice = "name every class once"
    size = prediction.shape[1]
    require(len(names) == size, "names", len(names), f"{size}, as there are scores", advice)
    if target == "labels":
        return _of_labels(prediction, (y > 0.5).long(), names)
    return _of_classes(prediction, y.long(), names)


def _of_classes(shares: Tensor, y: Tensor, names: tuple[str, ...]) -> ScoreTable:
    count = len(names)
    guess = shares.argmax(1)
    counts = torch.bincount(y * count + guess, minlength=count**2).reshape(count, count)
    hits, predicted, present = counts.diag(), counts.sum(0), counts.sum(1)
    classes = _class_scores(hits, predicted, present, names)
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
    if absent:
        left_out["auroc"] = _lacking(absent, "does not occur")
    else:
        found["auroc"] = _auroc(shares, functional.one_hot(y, count))
    confusion = tuple(tuple(row) for row in counts.tolist())
    return ScoreTable(len(y), found, left_out, classes, confusion)


def _of_labels(scores: Tensor, y: Tensor, names: tuple[str, ...]) -> ScoreTable:
    guess = (scores > 0).long()
    hits, predicted, present = (guess * y).sum(0), guess.sum(0), y.sum(0)
    classes = _class_scores(hits, predicted, present, names)
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
        found["auroc"] = _auroc(scores, y)
    return ScoreTable(len(y), found, left_out, classes)


def _auroc(scores: Tensor, y: Tensor) -> float:
    """The mean over the columns of the area under the ROC curve."""
    try:
        from sklearn.metrics import roc_auc_score
    except ImportError as error:
        raise missing_extra("scikit-learn", "train", "measuring a model") from error
    return float(roc_auc_score(y.numpy(), scores.numpy(), average="macro"))


def _class_scores(
    hits: Tensor, predicted: Tensor, present: Tensor, names: tuple[str, ...]
) -> tuple[ClassScores, ...]:
    counts = zip(names, hits.tolist(), predicted.tolist(), present.tolist(), strict=True)
    return tuple(
        ClassScores(
            name,
            precision=_percent(right, guessed),
            recall=_percent(right, support),
            f1=_percent(2 * right, guessed + support),
            support=support,
        )
        for name, right, guessed, support in counts
    )


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _of_values(prediction: Tensor, y: Tensor) -> ScoreTable:
    errors = prediction - y
    mse = float(errors.square().sum()) / y.numel()
    found = {"mse": mse, "rmse": math.sqrt(mse), "mae": float(errors.abs().sum()) / y.numel()}
    # R² is one minus the error over the spread of the truth.
    same = [str(i) for i, column in enumerate(y.T) if column.unique().numel() < 2]
    if same:
        what = f"output {same[0]}" if y.shape[1] > 1 else "the target"
        return ScoreTable(len(y), found, {"r2": f"{what} is the same everywhere"})
    spread = (y - y.mean(0)).square().sum(0)
    r2 = float((1 - errors.square().sum(0) / spread).mean())
    return ScoreTable(len(y), found | {"r2": r2})


def _lacking(names: Sequence[str], what: str) -> str:
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]!r}{more} {what}"
