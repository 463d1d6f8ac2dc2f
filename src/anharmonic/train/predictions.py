"""``predict``: predictions of a trained run for a file of new sequences."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic import _checks
from anharmonic.data.dataset import in_units
from anharmonic.data.graphs.own import GraphFileTask, NodeGraph, node_inputs, read_graph
from anharmonic.data.own import Inputs, read_inputs
from anharmonic.data.targets import SEPARATOR
from anharmonic.train import folder as folders
from anharmonic.train.trained import Trained, trained


@dataclass(frozen=True)
class Ahead:
    """The axes of a forecast: steps, channels and quantiles.

    A row of values holds all channels of the first step, then of the second, and so on. With
    several quantiles, all values of the first come before those of the second.

    Example:
        >>> Ahead(horizon=24, channels=("load",)).quantiles
        ()
    """

    horizon: int
    """Steps ahead."""
    channels: tuple[str, ...]
    """Names of the channels."""
    quantiles: tuple[float, ...] = ()
    """Forecast quantiles; empty for the mean."""
    times: NDArray[Any] | None = None
    """Times of the steps, [N, horizon], as dates or numbers; None if unknown."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for the sequences, or the nodes of a graph, of a file, in the file's order.

    Shape:
        N sequences, C classes, O values, T[i] steps of sequence i.

    Example:
        >>> [name for name in Predictions.__dataclass_fields__][:3]
        ['labels', 'class_names', 'values']
    """

    labels: tuple[str, ...] | list[tuple[str, ...]] | None
    """Most likely class of every sequence, or of every step of every sequence; for labels, those
    with probability above 0.5, as "a|b". None for regression."""
    class_names: tuple[str, ...]
    """Names of classes or labels in the order of the columns of ``values``; empty for
    regression."""
    values: NDArray[np.float32] | list[NDArray[np.float32]]
    """Probabilities of classes or labels [N, C], or values [N, O]. A model that predicts at every
    step gives one array [T[i], C] or [T[i], O] per sequence."""
    ids: tuple[str, ...] | None = None
    """Names of the sequences in the file, e.g. from a table's id column; None without names."""
    targets: NDArray[Any] | list[NDArray[Any]] | None = None
    """True class names [N] or values [N, O] from `evaluate_run`. Of a model that predicts at every
    step, an array [T[i]] or [T[i], O] per sequence, with None where the target is not known. None
    without targets, and for forecasts and graphs."""
    ahead: Ahead | None = None
    """Meaning of a forecast's values; None for other predictions."""
    times: list[NDArray[Any]] | None = None
    """Times of the steps of every sequence, [T[i]], as dates or numbers, of a model that predicts
    at every step. None if unknown."""
    utc: bool = False
    """Whether dates are in UTC, as those of the file have a time zone."""


def predict(run_folder: str | Path, data: str | Path, batch_size: int = 256) -> Predictions:
    """Predict for the sequences of a file or folder, or for a graph, with a finished run's model.

    Inputs are prepared as in training, with the stored means and deviations of the training data.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.
        data: The file or folder, as for training; its targets are ignored.
        batch_size: Sequences per batch, at least 1.

    Raises:
        FileNotFoundError: If the folder holds no finished run, or the data file is missing.
        ValueError: If a file is damaged, or the inputs do not match those of training.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from anharmonic.train import RunEnvironment, fill, fit
        >>> folder = Path(tempfile.mkdtemp())
        >>> y = np.array(["a", "b"] * 10)
        >>> np.savez(folder / "mine.npz", x=np.random.default_rng(0).random((20, 5, 2)), y=y)
        >>> environment = RunEnvironment(file=folder / "mine.npz", out=folder, progress=False)
        >>> given = {"epochs": 1, "model_options": {"hidden_size": 4}}
        >>> run = fill("LEM", "file", given, environment).run
        >>> _ = fit(run, environment)
        >>> predict(folder / run.folder_name, folder / "mine.npz").class_names
        ('a', 'b')
    """
    _checks.positive_int("batch_size", batch_size)
    model = trained(run_folder)
    check_predicts(model)
    file = data_file(data)
    if model.task == GraphFileTask.name:
        return predict_nodes(model, read_graph(file, targets=False))
    return predict_sequences(model, read_inputs(file, model.preparation, model.columns), batch_size)


def data_file(data: str | Path) -> Path:
    """Return the path of a data file or of a folder of recordings."""
    from anharmonic.data.recordings import holds_recordings

    file = Path(data).expanduser()
    if not file.is_file() and not holds_recordings(file):
        expected = f"the data {file} must be a file, or a folder of recordings"
        advice = "check the path"
        raise FileNotFoundError(_checks.message(expected, folders.described(file), advice))
    return file


def check_predicts(trained: Trained) -> None:
    """Check that a model can predict from a file."""
    if trained.readout not in ("last", "all") and trained.task != GraphFileTask.name:
        best = str(trained.folder / folders.BEST)
        raise ValueError(
            _checks.message(
                "predict takes the run of a model for sequences, or one on your own graph",
                f"{trained.folder}, a run on the task {trained.task}",
                f"call anharmonic.from_pretrained({best!r}) and the model",
            )
        )


def predict_nodes(trained: Trained, graph: NodeGraph) -> Predictions:
    """Predict for all nodes of a graph, prepared as in training.

    Args:
        trained: The model.
        graph: The graph as read.
    """
    undirected = bool(trained.run.task_options.get("undirected", False))
    with torch.no_grad():
        output = trained.model(*node_inputs(graph, trained.preparation, undirected))
    output = in_units(output, *(trained.preparation.target_units or (None, None)))
    return _named(trained, _meant(trained, output), None)


def predict_sequences(trained: Trained, inputs: Inputs, batch_size: int) -> Predictions:
    """Predict for all sequences, or all their steps."""
    found: list[NDArray[np.float32]] = []
    per_step = trained.readout == "all"
    with torch.no_grad():
        for batch in inputs.dataset.batches(batch_size):
            rows = _meant(trained, batch.select(trained.model(*batch.inputs)))
            dims, advice = 3 if per_step else 2, "train the run again"
            came = f"{list(rows.shape)} from a model with readout {trained.readout!r} in task.json"
            _checks.require(rows.ndim == dims, "output", came, f"of {dims} dimensions", advice)
            if not per_step:
                found.append(rows)
                continue
            steps = [rows.shape[1]] * len(rows) if batch.lengths is None else batch.lengths.tolist()
            found.extend(row[:count] for row, count in zip(rows, steps, strict=True))
    ids = None if inputs.ids is None else tuple(str(name) for name in inputs.ids)
    predictions = _named(trained, _by_sequence(found, inputs, per_step), ids)
    predictions = replace(predictions, utc=inputs.utc)
    how = trained.preparation
    if not how.horizon:
        return replace(predictions, times=inputs.clocks if per_step else None)
    ahead = Ahead(how.horizon, how.forecast_names, how.quantiles, inputs.times)
    return replace(predictions, ahead=ahead)


def _named(
    trained: Trained,
    values: NDArray[np.float32] | list[NDArray[np.float32]],
    ids: tuple[str, ...] | None,
) -> Predictions:
    names = trained.class_names
    if not names:
        return Predictions(None, (), values, ids)
    said = above_half if trained.target == "labels" else _likeliest
    if isinstance(values, list):
        return Predictions([said(rows, names) for rows in values], names, values, ids)
    return Predictions(said(values, names), names, values, ids)


def _meant(trained: Trained, output: Tensor) -> NDArray[np.float32]:
    """Convert a model's outputs to probabilities of classes or labels, or to values."""
    advice = "look for extreme values in the data, or train the run again: its weights may be bad"
    finite = bool(output.isfinite().all())
    _checks.require(finite, "predictions", "NaN or infinite values", "finite", advice)
    if trained.target == "class":
        output = output.softmax(dim=-1)
    elif trained.target == "labels":
        output = output.sigmoid()
    return cast("NDArray[np.float32]", output.numpy())


def _by_sequence(
    found: list[NDArray[np.float32]], inputs: Inputs, per_step: bool
) -> NDArray[np.float32] | list[NDArray[np.float32]]:
    """Combine the predictions of windows: the mean, or every step once."""
    ends = np.flatnonzero(np.diff(inputs.owners)) + 1
    if not per_step:
        firsts = np.concatenate([[0], ends])
        sums = np.add.reduceat(np.concatenate(found), firsts)
        counts = np.diff(np.append(firsts, len(inputs.owners)))
        return np.asarray(sums / counts[:, None], np.float32)
    rows = [row[len(row) - new :] for row, new in zip(found, inputs.fresh, strict=True)]
    edges = [0, *ends.tolist(), len(rows)]
    return [np.concatenate(rows[a:b]) for a, b in itertools.pairwise(edges)]


def _likeliest(probabilities: NDArray[np.float32], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(names[i] for i in probabilities.argmax(axis=1))


def above_half(probabilities: NDArray[np.float32], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels with probability above 0.5, as "a|b"; "|" for none."""
    return tuple(
        SEPARATOR.join(itertools.compress(names, row)) or SEPARATOR for row in probabilities > 0.5
    )
