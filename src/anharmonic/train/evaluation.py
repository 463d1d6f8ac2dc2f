"""``evaluate_run``: scores of a trained run on a file with known targets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic import _checks
from anharmonic.data.answers import column_quantiles, constant_answer
from anharmonic.data.graphs.own import (
    GraphFileTask,
    NodeGraph,
    known_classes,
    node_values,
    read_graph,
)
from anharmonic.data.metrics import TaskMetric
from anharmonic.data.own import checked_inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import file_digest, read_parts
from anharmonic.data.scores import ScoreTable, score_table
from anharmonic.data.sequences import Sequences
from anharmonic.data.targets import classes_by_step, encode_like, targets_like, with_known
from anharmonic.data.windows import forecast_windows, seasonal_values
from anharmonic.train.notices import has_learned
from anharmonic.train.predictions import (
    Predictions,
    above_half,
    check_predicts,
    data_file,
    predict_nodes,
    predict_sequences,
)
from anharmonic.train.run import Run
from anharmonic.train.trained import Trained, trained


@dataclass(frozen=True)
class Evaluation:
    """Predictions for a file and their metrics.

    Example:
        >>> [name for name in Evaluation.__dataclass_fields__][:2]
        ['predictions', 'scores']
    """

    predictions: Predictions
    """The result of `predict`."""
    scores: ScoreTable
    """All applicable metrics over all sequences, steps or nodes with a known target; for forecasts,
    over all windows of the series."""
    trivial: ScoreTable
    """The same for the baseline: the most frequent class or the mean of this file; for a forecast
    the last known value, and for quantiles this value plus the quantiles of its changes."""
    trivial_answer: str
    """The baseline in words."""
    metric: str | None = None
    """The metric chosen for the run, or None."""

    @property
    def judged_by(self) -> str:
        """The metric that decides.

        The chosen one, otherwise RMSE or accuracy. It is balanced accuracy if one class is more
        than three times as frequent as another.
        """
        if self.metric in self.scores.metrics:
            return str(self.metric)
        if self.scores.quantiles:
            return "pinball"
        if "accuracy" not in self.scores.metrics:
            return "rmse"
        if not self.scores.confusion:
            return "f1"
        counts = [one.support for one in self.scores.classes if one.support]
        unbalanced = max(counts, default=0) > 3 * min(counts, default=1)
        balanced = unbalanced and "balanced_accuracy" in self.scores.metrics
        return "balanced_accuracy" if balanced else "accuracy"

    @property
    def is_better(self) -> bool:
        """Whether the model beats the baseline in `judged_by`."""
        # The metric "f1" of labels is micro-averaged; in a table "f1" is the mean over labels.
        micro = self.judged_by == "f1" and "f1_micro" in self.scores.metrics
        name = "f1_micro" if micro else self.judged_by
        mine, other = (t.metrics[name] for t in (self.scores, self.trivial))
        higher = TaskMetric(self.judged_by).higher_is_better
        return has_learned(mine, other, self.judged_by, higher)


def evaluate_run(run_folder: str | Path, data: str | Path, batch_size: int = 256) -> Evaluation:
    """Predict for a file with a finished run's model, and score the predictions.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.
        data: The file, as for training, with targets. For a graph with a test mask, only its test
            nodes count.
        batch_size: Sequences per batch, at least 1.

    Raises:
        UserWarning: If the run was trained on this file.
        FileNotFoundError: If the folder holds no finished run, or the data file is missing.
        ValueError: If a file is damaged, the data lack targets or contain new classes, or the
            inputs do not match those of training.

    Example:
        >>> import tempfile
        >>> from anharmonic.train.fit import fit
        >>> from anharmonic.train.run import RunEnvironment
        >>> folder = Path(tempfile.mkdtemp())
        >>> x = np.random.default_rng(0).random((40, 9))
        >>> np.savez(folder / "old.npz", x=x[:30], y=x[:30, 0] > 0.5)
        >>> np.savez(folder / "new.npz", x=x[30:], y=x[30:, 0] > 0.5)
        >>> run = Run("file", "LEM", {"sha256": file_digest(folder / "old.npz")}, epochs=1)
        >>> where = RunEnvironment(file=folder / "old.npz", out=folder, progress=False)
        >>> result = fit(run, where)
        >>> found = evaluate_run(folder / run.folder_name, folder / "new.npz")
        >>> found.scores.count, len(found.predictions.labels), found.trivial_answer
        (10, 10, "always 'True'")
    """
    _checks.positive_int("batch_size", batch_size)
    model = trained(run_folder)
    check_predicts(model)
    file = data_file(data)
    if model.task == GraphFileTask.name:
        graph = read_graph(file)
        rows, truth = _known_nodes(graph, file, model)
        predictions = predict_nodes(model, graph)
        return _evaluation(predictions, torch.from_numpy(predictions.values[rows]), truth, model)
    _warn_of_training_data(file, model.run)
    forecasts = bool(model.preparation.horizon)
    parts = read_parts(file, targets=not forecasts, columns=model.columns, pair=False)
    came, advice = sorted(parts), "store the sequences to evaluate on as x and y"
    _checks.require("all" in parts, f"parts of {file.name}", came, "one", advice)
    part = parts["all"]
    if not forecasts:
        per_step = model.readout == "all"
        names = model.class_names
        truth = targets_like(part, model.target, names, model.output_size, per_step)
        known = with_known(classes_by_step(part, model.target)).known
    part = part.with_targets(None)
    past = _before_ends(part, model.preparation) if model.preparation.known else part
    inputs = checked_inputs(past, model.preparation)
    predictions = predict_sequences(model, inputs, batch_size)
    if forecasts:
        return _of_forecasts(predictions, part, model, batch_size)
    values, targets = predictions.values, _named(truth, model)
    if isinstance(values, list):
        every = np.concatenate(values)
        known = np.ones(len(every), bool) if known is None else known
        by_step = np.full((len(every), *targets.shape[1:]), None, object)
        by_step[known] = targets
        by_sequence = np.split(by_step, np.cumsum([len(one) for one in values])[:-1])
        predictions = replace(predictions, targets=by_sequence)
        return _evaluation(predictions, torch.from_numpy(every[known]), truth, model)
    predictions = replace(predictions, targets=targets)
    return _evaluation(predictions, torch.from_numpy(values), truth, model)


def _named(truth: NDArray[Any], model: Trained) -> NDArray[Any]:
    """Return targets as names of classes or labels; values stay."""
    if model.target == "class":
        names: NDArray[Any] = np.array(model.class_names)[truth]
        return names
    return np.array(above_half(truth, model.class_names)) if model.target == "labels" else truth


def _known_nodes(graph: NodeGraph, file: Path, model: Trained) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the nodes of a graph with a known target, and the targets."""
    y = np.asarray(graph.y)
    if model.target == "class":
        known = known_classes(y)
    else:
        y, known = node_values(file.name, y)
    run = model.run
    if "test" in graph.masks:
        mask = graph.masks["test"]
        columns, split = mask.reshape(len(mask), -1), int(run.task_options.get("split", 0))
        known = known & columns[:, min(split, columns.shape[1] - 1)]
    else:
        _warn_of_training_data(file, run)
    rows = np.flatnonzero(known)
    advice = "give the nodes to evaluate on a target"
    _checks.require(len(rows) > 0, f"known nodes in {file.name}", 0, "at least one", advice)
    if model.target == "class":
        return rows, encode_like(y[rows], model.class_names, file.name)
    return rows, y[rows]


def _of_forecasts(
    predictions: Predictions, part: Sequences, model: Trained, batch_size: int
) -> Evaluation:
    """Forecast from every place in the series that is followed by known values."""
    prepared = model.preparation
    part = prepared.with_future(part, whole=False)
    ahead = (prepared.window, 1, prepared.horizon, prepared.forecast)
    windows = prepared.for_gaps(part).dataset(forecast_windows(part, *ahead))
    found, last = [], []
    with torch.no_grad():
        for batch in windows.batches(batch_size):
            output = model.model(*batch.inputs)
            found.append(batch.select(output))
            last.append(batch.select(torch.zeros_like(output)))  # the value at output 0
    names, quantiles = prepared.forecast_names, prepared.quantiles

    def table(values: Tensor) -> ScoreTable:
        return score_table("value", values, windows.y, names, prepared.horizon, quantiles)

    metric = model.run.task_options.get("metric")
    size = windows.y.shape[1]

    def baseline(values: Tensor) -> ScoreTable:
        if not quantiles:
            return table(values)
        # As in training, but with the changes in this file, and computed in float64.
        usual = column_quantiles(windows.y - values, np.array(quantiles))
        return table(values.repeat(1, len(quantiles)) + usual)

    constant, words = torch.cat(last)[:, :size], "the last known value"
    trivial = baseline(constant)
    if prepared.season:
        again = torch.from_numpy(seasonal_values(part, part, *ahead, prepared.season))
        seasonal = baseline(torch.where(again.isnan(), constant, again))
        judged = metric if metric in trivial.metrics else "pinball" if quantiles else "rmse"
        if seasonal.metrics[judged] < trivial.metrics[judged]:
            trivial, words = seasonal, f"the value {prepared.season} steps before"
    words += " plus quantiles of the changes since then" * bool(quantiles)
    return Evaluation(predictions, table(torch.cat(found)), trivial, words, metric)


def _before_ends(part: Sequences, prepared: Preprocessing) -> Sequences:
    """Hide the values in the last steps, which channels known in advance then allow to forecast."""
    prepared.check_channels(part)
    ahead = np.repeat(part.offsets[1:], part.lengths) - np.arange(len(part.x)) <= prepared.horizon
    aims = list(prepared.forecast)
    if not np.isfinite(part.x[ahead][:, aims]).any():
        return part
    warnings.warn(
        f"{part.where} has values to forecast in its last {prepared.horizon} steps. The "
        "predictions are of these steps, because no rows with known columns follow them.",
        stacklevel=3,
    )
    hidden = part.x.copy()
    hidden[np.flatnonzero(ahead)[:, None], aims] = np.nan
    return replace(part, x=hidden)


def _evaluation(
    predictions: Predictions, values: Tensor, truth: NDArray[Any], model: Trained
) -> Evaluation:
    y, target = torch.from_numpy(truth), model.target
    names = predictions.class_names
    answer, words = constant_answer(target, y, len(names)), "their mean"
    if target == "class":
        words = f"always {names[answer.argmax()]!r}"
    elif target == "labels":
        words = "each label's more frequent value"
        values = torch.logit(values.double(), eps=1e-7)  # scores, like a model's outputs
    scores = score_table(target, values, y, names)
    trivial = score_table(target, answer.expand_as(values), y, names)
    return Evaluation(predictions, scores, trivial, words, model.run.task_options.get("metric"))


def _warn_of_training_data(file: Path, run: Run) -> None:
    try:
        digest = file_digest(file)
    except FileNotFoundError:  # the other file of the pair is missing
        return
    if run.task_options.get("sha256") != digest or file.stem.lower().endswith("_test"):
        return
    warnings.warn(
        f"{file.name} is the training file, so these scores are optimistic. For the test scores "
        "see result.json in the run folder.",
        stacklevel=3,
    )
