"""``trained``: the model of a finished run, and what has to be known to use it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anharmonic import _checks
from anharmonic._files import write_atomically
from anharmonic.data.base import Readout, Target, Task
from anharmonic.data.columns import Columns
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.nn.store import from_pretrained
from anharmonic.train import folder as folders
from anharmonic.train.run import Run


@dataclass(frozen=True)
class Trained:
    """The model of a finished run, with what is done to its inputs and what its outputs mean."""

    folder: Path
    """The run's folder."""
    model: Any
    """The model, in evaluation mode."""
    task: str
    """Name of the task."""
    target: Target
    """What is predicted: "class", "value" or "labels"."""
    readout: Readout
    """What a prediction is of: "last" of a sequence, "all" of each of its steps, or "node"."""
    output_size: int
    """Number of outputs."""
    preparation: Preprocessing
    """What is done to the inputs."""
    class_names: tuple[str, ...]
    """Names of the classes; empty where values are predicted."""
    columns: Columns | None
    """Which column of a table is what; None where the data were no table."""

    @property
    def run(self) -> Run:
        """The run."""
        return Run.from_json(_checks.text_of(self.folder / folders.RUN))


def trained(run_folder: str | Path) -> Trained:
    """Reads the model of a finished run.

    Args:
        run_folder: The run's folder, which holds ``best`` and ``task.json``.

    Raises:
        FileNotFoundError: If the folder holds no finished run.
        ValueError: If a file is damaged.
    """
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
    known = _read_task(folder / folders.TASK)
    return Trained(folder, from_pretrained(folder / folders.BEST).eval(), **known)


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
    """What `write_task` kept, as fields of `Trained`."""
    try:
        content = json.loads(_checks.text_of(path))
        size = _checks.positive_int("input_size", content["input_size"])
        prepared, columns = content["preprocessing"], content.get("columns")
        names = tuple(content["class_names"])
        outputs = _checks.positive_int("output_size", content["output_size"])
        fits = all(isinstance(name, str) for name in names) and len(names) in (0, outputs)
        _checks.require(fits, "class_names", list(names)[:5], f"{outputs} strings", "restore them")
        target = _checks.choice("target", content["target"], ("class", "value", "labels"))
        if target != "class":
            names = ()
        elif not names:
            names = tuple(str(index) for index in range(outputs))
        readouts = ("last", "all", "node", "graph", "row")
        return {
            "task": content["task"],
            "target": target,
            "readout": _checks.choice("readout", content["readout"], readouts),
            "output_size": outputs,
            # Tasks other than "file" prepare nothing, and have not measured their inputs.
            "preparation": Preprocessing(
                (0.0,) * size, (math.nan,) * size, standardise=False, missing="error"
            )
            if prepared is None
            else Preprocessing.from_dict(prepared),
            "class_names": names,
            "columns": None if columns is None else Columns.from_dict(columns),
        }
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(
            _checks.message(
                f"{path} must be what fit wrote",
                f"{type(error).__name__}: {error}",
                "train the run again in a new folder",
            )
        ) from error
