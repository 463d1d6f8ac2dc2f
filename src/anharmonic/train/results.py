"""Results: an append-only file with one line of JSON per finished run."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic._files import append_line
from anharmonic.data.answers import trivial_score
from anharmonic.data.base import Loaders, SequenceDataset, Task
from anharmonic.data.metrics import TaskMetric
from anharmonic.data.scores import ScoreTable
from anharmonic.train.folder import REPORT
from anharmonic.train.losses import trivial_loss
from anharmonic.train.run import Run, dump, read_fields
from anharmonic.train.scoring import Scores

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """The result of a finished run, and where and how it was computed.

    Example:
        >>> import tempfile
        >>> from anharmonic.train import Run, RunEnvironment, fit
        >>> run = Run("digits", "LEM", model_options={"hidden_size": 4}, epochs=1)
        >>> environment = RunEnvironment(out=tempfile.mkdtemp(), progress=False)
        >>> result = fit(run, environment)
        >>> result.metric, 0 <= result.test <= 100
        ('accuracy', True)
    """

    run: Run
    """The run itself."""
    hash: str
    """The run's hash, which names it."""
    test: float
    """Test metric of the weights chosen by `run.select`."""
    valid: float | None
    """Validation metric of the same weights; None without a validation set."""
    metric: str
    """Name of the metric; "accuracy" is in percent."""
    higher_is_better: bool
    """Whether larger values of the metric are better."""
    parameters: int
    """Number of trainable parameters."""
    seconds: float
    """Time of training and validation over all sessions, without work lost to a kill."""
    memory_mb: float
    """Peak memory in MB (10**6 bytes): resident memory of the process, or memory allocated on the
    GPU. On Linux and on the GPU it covers this run; elsewhere it covers the whole process."""
    epochs_run: int
    """Number of trained epochs."""
    best_epoch: int
    """Epoch (from 1) of the chosen weights."""
    stopped: Literal["finished", "early"]
    """Whether all epochs ran or `run.patience` ended the run."""
    device: str
    """"cpu" or "cuda"."""
    devices: int
    """Number of devices, on all machines together."""
    threads: int
    """CPU threads of PyTorch."""
    hardware: str
    """Name of the processor or GPU."""
    versions: dict[str, str]
    """Versions of anharmonic, torch, numpy and python at the first start of the run."""
    commit: str | None
    """Git commit of the package at the first start, with "-dirty" for changed files; None if the
    package is not in a Git checkout."""
    started: str
    """Time of the first start: ISO 8601, UTC."""
    curve: dict[str, list[float]]
    """"epoch", "train_loss", "valid" (metric), "valid_loss", "grad_norm" (median of the epoch's
    gradient norms before clipping) and "grad_norm_max", to 6 digits; for a neural ODE also "nfe"
    and "adjoint_score". Up to 100 epochs all are listed, otherwise about 100, including the best
    and the last."""
    nondeterministic: list[str] = field(default_factory=list)
    """Nondeterministic operations on this device; with any, resuming is not exact."""
    trivial: float | None = None
    """Test metric of the best constant prediction: the most frequent class of the training data,
    their mean, or for "mae" their median. None in results of older versions."""
    trivial_loss: float | None = None
    """Training loss of the best prediction that ignores the inputs. None in results of older
    versions."""
    tested: int | None = None
    """Number of targets in the test metric: sequences, valid steps, nodes, graphs or rows (times
    values or labels). None in results of older versions."""
    tested_sequences: int | None = None
    """Number of test sequences, if an accuracy counts several steps of each. Otherwise None."""
    by_channel: dict[str, float] | None = None
    """Test metric of each channel of a forecast by name; None for other tasks."""

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as JSON with sorted keys."""
        values = dataclasses.asdict(self)
        for name in ("trivial", "trivial_loss", "tested", "tested_sequences", "by_channel"):
            if values[name] is None:  # a line of an older version stays unchanged
                del values[name]
        return dump(values, indent)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read a result from JSON. The hash is recomputed from the run.

        Raises:
            ValueError: If the text is not a JSON object, or keys or types are wrong.
        """
        values = read_fields(cls, text, "a result's JSON")
        fields = values.pop("run")
        if isinstance(fields, dict):
            fields.setdefault("code", "")
        run = Run.from_fields(fields)
        _checks.of_hints(cls, values, "a result", "restore the line")
        lengths = {name: len(entries) for name, entries in values["curve"].items()}
        expected, advice = '"epoch", and as many values of everything else', "restore the line"
        fits = "epoch" in lengths and len(set(lengths.values())) == 1
        _checks.require(fits, "curve of a result", lengths, expected, advice)
        return cls(run=run, **{**values, "hash": run.hash})


def append(path: str | Path, result: Result) -> None:
    """Append a result's line to a file, as `append_line` does."""
    append_line(Path(path), result.to_json())


def report_curve(
    curve: dict[str, list[float]], on_epoch_end: Callable[[int, dict[str, float]], None]
) -> None:
    """Call a function with every epoch of a curve and its values."""
    for place, epoch in enumerate(curve["epoch"]):
        values = {name: entries[place] for name, entries in curve.items() if name != "epoch"}
        on_epoch_end(int(epoch), values)


LONGEST = 64 << 20
"""Largest length of a line in bytes, so that a file without newlines cannot fill memory."""


def read_lines(path: Path, read: Callable[[str], T], what: str) -> Iterator[T]:
    """Read a file line by line; those that a kill has truncated are skipped with a warning."""
    # Bytes, because a truncated line may end inside a character.
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            _checks.require(
                len(line) <= LONGEST, "a line", f"{LONGEST} bytes or more", "shorter", "delete it"
            )
            yield read(line.decode("utf-8-sig"))  # an editor on Windows may add a mark
        except (ValueError, TypeError, KeyError) as error:
            text = f"{path}, line {number} is skipped, because the {what} is incomplete: {error}"
            warnings.warn(text, stacklevel=3)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(LONGEST + 1):
            yield line
            while len(line) > LONGEST and not line.endswith(b"\n"):
                line = file.readline(LONGEST + 1)


def read_results(path: str | Path) -> list[Result]:
    """Read all results of a file in order; return an empty list if it is missing.

    Invalid lines (truncated by a kill, or edited) are skipped with a warning.

    Args:
        path: The results file.

    Raises:
        ValueError: If the path is a folder, a device or a pipe.

    Example:
        >>> read_results("no-such-file.jsonl")
        []
    """
    path = Path(path)
    if not path.exists():
        return []
    expected = "a file of results (.jsonl), or none yet"
    _checks.require(path.is_file(), "--results", str(path), expected, "choose another path")
    return list(read_lines(path, Result.from_json, "result"))


def read_old_fitted(path: str | Path, runs: Iterable[Run]) -> list[Result]:
    """Read the resonator results of version 0.1, which are in a separate file.

    Those models were not kept. This function will be removed in the next release.
    """
    path = Path(path)
    old = path.with_name(f"{path.stem}-others.jsonl")
    lines: dict[str, dict[str, Any]] = {}
    for line in old.read_bytes().split(b"\n") if old.exists() else []:
        with contextlib.suppress(ValueError, TypeError, KeyError):  # skip truncated lines
            values = json.loads(line)
            lines[values["hash"]] = values
    found = []
    for run in runs if lines else ():
        facts = ["resonators", {"num_oscillators": 1000, "at_most": 10_000_000}, run.task]
        options = run.task_options
        if run.task == "file":
            options = {"difference": False, **options}
        text = json.dumps([*facts, options, run.seed, run.class_weights], sort_keys=True)
        values = lines.get(hashlib.sha256(text.encode()).hexdigest()[:12], {})
        if run.model != "Resonators" or run.model_options or not values:
            continue
        names = {entry.name for entry in dataclasses.fields(Result)} - {"run", "hash", "curve"}
        kept = {name: value for name, value in values.items() if name in names}
        one: dict[str, Any] = {"run": run, "hash": run.hash, "curve": {"epoch": [1.0]}}
        one |= {"memory_mb": 0.0, "epochs_run": 1, "best_epoch": 1, "stopped": "finished"}
        found.append(Result(**one, devices=1, versions={}, commit=None, **kept))
    return found


def rounded(value: float) -> float:
    """Round a value of a result to six digits."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def result_of(
    run: Run,
    task: Task,
    loaders: Loaders[Any],
    scores: Scores,
    class_weights: Tensor | None,
    **fields: Any,
) -> tuple[Result, ScoreTable | None]:
    """Return a run's result from the scores on its test set, and all metrics of the test."""
    report = scores.report(task)
    constant = trivial_loss(loaders.train(0), task, run.label_smoothing, class_weights)
    result = Result(
        run=run,
        hash=run.hash,
        test=scores.metric,
        metric=task.metric,
        higher_is_better=TaskMetric(task.metric).higher_is_better,
        trivial=trivial_score(task, loaders),
        trivial_loss=rounded(constant),
        tested=scores.entries,
        tested_sequences=_sequences(task),
        by_channel=_by_channel(task, report),
        threads=torch.get_num_threads(),
        **fields,
    )
    return result, report


def _sequences(task: Task) -> int | None:
    """Return the number of test sequences if an accuracy counts several steps of each."""
    test = task.splits().test if (task.metric, task.readout) == ("accuracy", "all") else None
    if not isinstance(test, SequenceDataset):
        return None
    return len(test if test.windows is None else torch.unique(test.windows[0]))


def _by_channel(task: Task, report: ScoreTable | None) -> dict[str, float] | None:
    """Return the metric of each channel of a forecast in its units; None for one channel."""
    if not task.horizon or task.quantiles or report is None or len(report.outputs) < 2:
        return None
    values = {
        one.name: {"rmse": one.rmse, "mse": one.rmse**2, "mae": one.mae} for one in report.outputs
    }
    return {name: known[task.metric] for name, known in values.items()}


def read_report(run_folder: str | Path) -> ScoreTable | None:
    """Read all test metrics of a finished run.

    Args:
        run_folder: The run's folder.

    Returns:
        The metrics; None if the folder has none, as for runs of version 0.1 and runs with more than
        20 million test outputs.

    Raises:
        ValueError: If the file is damaged.

    Example:
        >>> import tempfile
        >>> from anharmonic.train import Run, RunEnvironment, fit
        >>> run = Run("digits", "LEM", model_options={"hidden_size": 4}, epochs=1)
        >>> environment = RunEnvironment(out=tempfile.mkdtemp(), progress=False)
        >>> result = fit(run, environment)
        >>> report = read_report(environment.out / run.folder_name)
        >>> report.count == result.tested
        True
    """
    path = Path(run_folder) / REPORT
    return ScoreTable.from_json(_checks.text_of(path)) if path.is_file() else None
