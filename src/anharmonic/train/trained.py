"""``trained``: the model of a finished run, with everything needed to use it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anharmonic import _checks
from anharmonic._checks import listed
from anharmonic._files import write_atomically
from anharmonic.data.base import Readout, Target, Task
from anharmonic.data.columns import NO_COLUMN, Columns
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.registry import OWN_DATA, task_class
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import model_class
from anharmonic.nn.store import from_pretrained
from anharmonic.train import folder as folders
from anharmonic.train.run import Run


@dataclass(frozen=True)
class Trained:
    """The model of a finished run, with its preprocessing and the meaning of its outputs.

    Example:
        >>> [name for name in Trained.__dataclass_fields__][:3]
        ['folder', 'model', 'task']
    """

    folder: Path
    """The run's folder."""
    model: Any
    """The model, in evaluation mode."""
    task: str
    """Name of the task."""
    target: Target
    """Kind of target: "class", "value" or "labels"."""
    readout: Readout
    """Unit of prediction: a sequence ("last"), each of its steps ("all") or a "node"."""
    output_size: int
    """Number of outputs."""
    preparation: Preprocessing
    """The preprocessing of the inputs."""
    class_names: tuple[str, ...]
    """Names of the classes or labels; empty for regression."""
    columns: Columns | None
    """Roles of a table's columns; None if the data were not a table."""

    @property
    def run(self) -> Run:
        """The run."""
        return Run.from_json(_checks.text_of(self.folder / folders.RUN))

    @property
    def output_names(self) -> tuple[str, ...]:
        """Name of every output: its class, its label or its column; empty if unknown."""
        column = None if self.columns is None else self.columns.target
        if self.target == "value" and self.output_size == 1 and column not in (None, NO_COLUMN):
            return (column,)
        return self.class_names


def trained(run_folder: str | Path) -> Trained:
    """Load the model of a finished run.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.

    Raises:
        FileNotFoundError: If the folder holds no finished run.
        ValueError: If a file is damaged.

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
        >>> trained(folder / run.folder_name).class_names
        ('a', 'b')
    """
    folder = Path(run_folder)
    folders.check_finished(folder, folders.BEST, folders.TASK)
    model = from_pretrained(folder / folders.BEST).eval()
    made = Trained(folder, model, **_read_task(folder / folders.TASK, model))
    if (folder / folders.RUN).exists():
        _check_run(made)
    return made


def _check_run(trained: Trained) -> None:
    """Check that a run and the model beside it belong together."""
    run, model = trained.run, trained.model
    kind = model_class(run.model)
    alike, options = type(model) is kind, dict(run.model_options)
    if isinstance(model, SequenceModel):
        alike = model.name == run.model
        readout = "all" if trained.readout == "all" else run.readout
        options |= {"patch": run.patch, "readout": readout}
    known = json.loads(json.dumps({"patch": 1, **model.config()}))
    differ = [
        name
        for name, value in json.loads(json.dumps(options)).items()
        if name in known and known[name] != value
    ]
    if (options_class := task_class(run.task).options_class) is not None:
        given = {name: v for name, v in run.task_options.items() if name != "sha256"}
        options_class(**given)  # validates them
    alike = alike and not differ and run.task == trained.task
    came = f"one of {run.model} on {run.task!r}, whose {listed(differ) or 'name'} differs"
    path = trained.folder / folders.RUN
    expected, advice = "that of the model in best", "train the run again in a new folder"
    _checks.require(alike, f"the run in {path}", came, expected, advice)


def write_task(path: Path, task: Task) -> None:
    """Save what `predict` needs from a task, and for information the name of the user's file."""
    preprocessing = getattr(task, "preprocessing", None)
    columns = getattr(task, "columns", None)
    file = getattr(task, "path", None)
    content = {
        "task": task.name,
        "file": None if file is None else file.name,  # for information; the run holds its digest
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


class _Kept:
    """Contents of the file from `write_task`."""

    task: str
    file: str | None
    target: Target
    readout: Readout
    input_size: int
    output_size: int
    class_names: list[str]
    preprocessing: dict[str, Any] | None
    columns: dict[str, Any] | None


def _read_task(path: Path, model: Any) -> dict[str, Any]:
    """Read the file from `write_task` as fields of `Trained`, and check it against the model."""
    try:
        content = _checks.json_of(_checks.text_of(path))
        _checks.of_hints(_Kept, content, path.name, "restore it")
        size, outputs = content["input_size"], content["output_size"]
        _same("input_size", size, model.input_size)
        _same("output_size", outputs, getattr(model, "output_size", "absent"))
        names = tuple(content["class_names"])
        fits = len(names) in (0, outputs) and len(set(names)) == len(names)
        expected, advice = f"{outputs} different strings", "restore them"
        _checks.require(fits, "class_names", list(names)[:5], expected, advice)
        target, readout = content["target"], content["readout"]
        prepared, columns = content["preprocessing"], content.get("columns")
        if content["task"] in OWN_DATA:
            expected = "there for data of your own"
            _checks.require(prepared is not None, "preprocessing", None, expected, advice)
            expected, alike = (
                "there for classes and labels, and only for them",
                (target != "value") == bool(names),
            )
            _checks.require(alike, "class_names", list(names)[:5], expected, advice)
        _same("target", target, getattr(model, "target", target))
        if isinstance(model, SequenceModel) and (readout == "all") != (model.readout == "all"):
            expected, came = f"readout must be {model.readout!r}", f"readout {readout!r}"
            raise ValueError(_checks.message(expected, f"{came} in {path.name}", "restore it"))
        if target == "value":
            names = ()
        elif not names:
            names = tuple(str(index) for index in range(outputs))
        if prepared is None:
            # Tasks other than "file" have no preprocessing.
            unknown = (0.0,) * size, (math.nan,) * size
            preparation = Preprocessing(*unknown, standardise=False, missing="error")
        else:
            preparation = Preprocessing.from_dict(prepared)
            _same("channels that preprocessing makes", preparation.size, size)
            targets = len(preparation.target_scale) * (preparation.horizon or 1)
            targets *= len(preparation.quantiles) or 1
            if targets:
                _same("targets that preprocessing scales", targets, outputs)
        return {
            "task": content["task"],
            "target": target,
            "readout": readout,
            "output_size": outputs,
            "preparation": preparation,
            "class_names": names,
            "columns": None if columns is None else Columns.from_dict(columns),
        }
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        came, advice = f"{type(error).__name__}: {error}", "train the run again in a new folder"
        raise ValueError(_checks.message(f"{path} must be what fit wrote", came, advice)) from error


def _same(name: str, value: Any, of_model: Any) -> None:
    expected = f"{of_model!r}, as the model beside it says"
    _checks.require(value == of_model, name, value, expected, "restore it")
