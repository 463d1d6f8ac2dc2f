"""``predict``: what a trained run says about new sequences from a file."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.data.base import Task
from anharmonic.data.columns import Columns
from anharmonic.data.files import read_inputs
from anharmonic.data.graphs.own import GraphFileTask, read_node_inputs
from anharmonic.data.own import Inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.nn.store import from_pretrained
from anharmonic.train import folder as folders
from anharmonic.train.run import Run


@dataclass(frozen=True)
class Predictions:
    """Predictions for the sequences, or the nodes of a graph, of a file, in the file's order.

    Shape:
        N sequences, C classes, O values, T[i] steps of sequence i.
    """

    labels: tuple[str, ...] | list[tuple[str, ...]] | None
    """Name of the likeliest class of every sequence, or of every step of every sequence; None
    where values are predicted."""
    class_names: tuple[str, ...]
    """Names of the classes, in the order of the columns of ``values``; empty for values."""
    values: NDArray[np.float32] | list[NDArray[np.float32]]
    """Probabilities of the classes [N, C], or values [N, O], or, for a model that predicts at
    every step, one array [T[i], C] or [T[i], O] per sequence."""
    ids: tuple[str, ...] | None = None
    """What the file calls its sequences, e.g. in a table's column of ids; None if it does not."""
    targets: NDArray[Any] | None = None
    """What the file says is true, names of classes [N] or values [N, O]: of `evaluate_run`, where
    there is one prediction for a sequence; else None."""


def predict(run_folder: str | Path, data: str | Path, batch_size: int = 256) -> Predictions:
    """Predicts from the sequences, or the graph, of a file with a finished run's model.

    Inputs are prepared as they were for training: a run on the task "file" keeps the means and
    deviations it measured.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.
        data: The file, as for training; targets in it are not looked at.
        batch_size: Sequences computed together, at least 1.

    Raises:
        FileNotFoundError: If the folder holds no finished run, or there is no such data file.
        ValueError: If a file is damaged, or the inputs are not like those of training.
    """
    _checks.positive_int("batch_size", batch_size)
    folder, task, file = opened(run_folder, data)
    model = from_pretrained(folder / folders.BEST).eval()
    values: NDArray[np.float32] | list[NDArray[np.float32]]
    ids = None
    if task["task"] == GraphFileTask.name:
        values = _of_nodes(model, file, task, folder)
    else:
        inputs = read_inputs(file, task["preprocessing"], task["columns"])
        values = _of_sequences(model, inputs, task, batch_size)
        ids = None if inputs.ids is None else tuple(str(name) for name in inputs.ids)
    if task["target"] != "class":
        return Predictions(None, (), values, ids)
    names = task["class_names"] or tuple(str(index) for index in range(values[0].shape[-1]))
    if isinstance(values, list):
        return Predictions([_likeliest(rows, names) for rows in values], names, values, ids)
    return Predictions(_likeliest(values, names), names, values, ids)


def opened(run_folder: str | Path, data: str | Path) -> tuple[Path, dict[str, Any], Path]:
    """Looks whether there are a finished run and a data file.

    Args:
        run_folder: As of `predict`.
        data: As of `predict`.

    Returns:
        The folder, what `write_task` kept of the task, and the file.

    Raises:
        FileNotFoundError: If one is not there.
        ValueError: If the run is damaged, or not one to predict with from a file.
    """
    folder, task = _finished(run_folder)
    nodes = task["task"] == GraphFileTask.name
    if task["readout"] not in ("last", "all") and not nodes:
        raise ValueError(
            _checks.message(
                "predict takes the run of a model for sequences, or one on your own graph",
                f"{folder}, a run on the task {task['task']}",
                f"call anharmonic.from_pretrained({str(folder / folders.BEST)!r}) and the model",
            )
        )
    file = Path(data).expanduser()
    if not file.is_file():
        raise FileNotFoundError(
            _checks.message(
                f"the data {file} must be a file",
                folders.described(file),
                "check the path",
            )
        )
    return folder, task, file


@dataclass(frozen=True)
class Trained:
    """The model of a finished run, with what is done to its inputs and what its outputs mean."""

    model: Any
    """The model, in evaluation mode."""
    preparation: Preprocessing
    """What is done to the inputs."""
    class_names: tuple[str, ...]
    """Names of the classes; empty where values are predicted."""
    columns: Columns | None
    """Which column of a table is what; None where the data were no table."""


def trained(run_folder: str | Path) -> Trained:
    """Reads the model of a finished run.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.

    Raises:
        FileNotFoundError: If the folder holds no finished run.
        ValueError: If a file is damaged.
    """
    folder, task = _finished(run_folder)
    names = task["class_names"] if task["target"] == "class" else ()
    if task["target"] == "class" and not names:
        names = tuple(str(index) for index in range(task["output_size"]))
    model = from_pretrained(folder / folders.BEST).eval()
    return Trained(model, task["preprocessing"], names, task["columns"])


def _finished(run_folder: str | Path) -> tuple[Path, dict[str, Any]]:
    """A finished run's folder, and what `write_task` kept of its task."""
    folder = Path(run_folder)
    if not (folder / folders.TASK).is_file() or not (folder / folders.BEST).is_dir():
        raise FileNotFoundError(
            _checks.message(
                f"{folder} must be the folder of a finished run, which holds {folders.BEST} and "
                f"{folders.TASK}",
                folders.described(folder),
                folders.ADVICE,
            )
        )
    return folder, _read_task(folder / folders.TASK)


def _of_nodes(
    model: nn.Module, file: Path, task: Mapping[str, Any], folder: Path
) -> NDArray[np.float32]:
    """Predictions for all nodes of a graph, prepared as for training."""
    run = Run.from_json(_checks.text_of(folder / folders.RUN))
    undirected = bool(run.task_options.get("undirected", False))
    with torch.no_grad():
        return _meant(task, model(*read_node_inputs(file, task["preprocessing"], undirected)))


def _of_sequences(
    model: nn.Module, inputs: Inputs, task: Mapping[str, Any], batch_size: int
) -> NDArray[np.float32] | list[NDArray[np.float32]]:
    """Predictions for all sequences of a file, or all their steps."""
    found: list[NDArray[np.float32]] = []
    with torch.no_grad():
        for batch in inputs.dataset.batches(batch_size):
            rows = _meant(task, batch.select(model(*batch.inputs)))
            dims, advice = 3 if task["readout"] == "all" else 2, "train the run again"
            came = f"{list(rows.shape)} from a model with readout {task['readout']!r} in task.json"
            _checks.require(rows.ndim == dims, "output", came, f"of {dims} dimensions", advice)
            if task["readout"] != "all":
                found.append(rows)
                continue
            steps = [rows.shape[1]] * len(rows) if batch.lengths is None else batch.lengths.tolist()
            found.extend(row[:count] for row, count in zip(rows, steps, strict=True))
    return _by_sequence(found, inputs, task["readout"] == "all")


def _meant(task: Mapping[str, Any], output: Tensor) -> NDArray[np.float32]:
    """What a model's outputs mean: probabilities of classes, or values."""
    advice = "look for extreme values in the data, or train the run again: its weights may be bad"
    finite = bool(output.isfinite().all())
    _checks.require(finite, "predictions", "NaN or infinite values", "finite", advice)
    shares = output.softmax(dim=-1) if task["target"] == "class" else output
    return cast("NDArray[np.float32]", shares.numpy())


def _by_sequence(
    found: list[NDArray[np.float32]], inputs: Inputs, per_step: bool
) -> NDArray[np.float32] | list[NDArray[np.float32]]:
    """Puts the predictions for windows together: the mean, or every step once."""
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


def write_task(path: Path, task: Task) -> None:
    """Keeps what `predict` has to know of a task: meaning of the outputs, preparation of inputs.

    The name of the user's own file is kept too, as information.

    Args:
        path: The file.
        task: The task.
    """
    preprocessing = getattr(task, "preprocessing", None)
    columns = getattr(task, "columns", None)
    file = getattr(task, "path", None)
    content = {
        "task": task.name,
        "file": None if file is None else file.name,  # for people; the run holds its digest
        "target": task.target,
        "readout": task.readout,
        "input_size": task.input_size,
        "output_size": task.output_size,
        "class_names": list(task.class_names),
        "preprocessing": None if preprocessing is None else preprocessing.to_dict(),
    }
    if columns is not None:
        content["columns"] = columns.to_dict()
    write_atomically(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def _read_task(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_checks.text_of(path))
        size = _checks.positive_int("input_size", content["input_size"])
        prepared = content["preprocessing"]
        # Tasks other than "file" prepare nothing, and have not measured their inputs.
        content["preprocessing"] = (
            Preprocessing((0.0,) * size, (math.nan,) * size, standardise=False, missing="error")
            if prepared is None
            else Preprocessing.from_dict(prepared)
        )
        columns = content.get("columns")
        content["columns"] = None if columns is None else Columns.from_dict(columns)
        names = content["class_names"] = tuple(content["class_names"])
        outputs = _checks.positive_int("output_size", content["output_size"])
        fits = all(isinstance(name, str) for name in names) and len(names) in (0, outputs)
        _checks.require(fits, "class_names", list(names)[:5], f"{outputs} strings", "restore them")
        _checks.choice("target", content["target"], ("class", "value", "labels"))
        _checks.choice("readout", content["readout"], ("last", "all", "node", "graph", "row"))
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(
            _checks.message(
                f"{path} must be what fit wrote",
                f"{type(error).__name__}: {error}",
                "train the run again in a new folder",
            )
        ) from error
    return dict(content)
