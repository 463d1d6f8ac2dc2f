"""Models of other kinds in a comparison: fitted at once, without epochs.

A comparison takes them as they are given, so that this room need not know who makes them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anharmonic._files import append_line
from anharmonic.data.base import Batches, Task
from anharmonic.data.metrics import TaskMetric
from anharmonic.data.own import SequencesTask
from anharmonic.data.trivial import trivial_score
from anharmonic.diagnostics.machine import hardware
from anharmonic.train import machine
from anharmonic.train.evaluate import evaluate
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.serialization import structure_json

_BATCH = 256


@dataclass(frozen=True)
class Other:
    """A model that is fitted at once."""

    name: str
    """What the table calls it."""
    settings: dict[str, Any]
    """What changes its numbers, as JSON values."""
    refusal: Callable[[Task], str]
    """Why it cannot be fitted to a task; empty if it can."""
    fit: Callable[[Task, Batches[Any], Run], nn.Module]
    """Fits it to the training batches of a task. Of the run, seed and class weights count. The
    module maps a batch's inputs to predictions, as a trained model does."""
    usage: str
    """How it is had outside a comparison: a line of Python."""


@dataclass(frozen=True)
class OtherRow:
    """What is to be fitted."""

    name: str
    """The name among the rows, for people."""
    other: Other
    """The model."""
    run: Run
    """Task, seed and class weights; the model that it names is not trained."""

    @property
    def hash(self) -> str:
        """Names the row: the first 12 hexadecimal digits of a SHA-256 of what changes its result.

        It knows no budget, as there is none.
        """
        run = self.run
        facts = [self.other.name, self.other.settings, run.task, run.task_options, run.seed]
        text = json.dumps([*facts, run.class_weights], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def fitted(self, task: Task) -> nn.Module:
        """The fitted model.

        Args:
            task: The task of the run.
        """
        with warnings.catch_warnings():
            # Fewer sequences than features: the solver says so, and a penalty is there for that.
            warnings.filterwarnings("ignore", module="sklearn")
            return self.other.fit(task, task.loaders(self.run.seed, _BATCH).train(0), self.run)


@dataclass(frozen=True)
class Outcome:
    """What one row gave; fields that `Result` has too mean the same."""

    other: str
    hash: str
    test: float
    valid: float | None
    metric: str
    higher_is_better: bool
    parameters: int
    seconds: float
    trivial: float | None
    device: str
    threads: int
    hardware: str
    started: str
    curve: dict[str, list[float]] = field(default_factory=dict)


def other_rows(
    other: Other, template: Run, seeds: Sequence[int], folds: int | None
) -> list[OtherRow]:
    """A row for every seed and fold.

    Args:
        other: The model.
        template: A run on the task, whose options of the task hold but for the differences of the
            inputs, which are there for models that are trained.
        seeds: The seeds.
        folds: Parts of a user's file of which each validates once.
    """
    options = dict(template.task_options)
    if options.get("difference"):
        options["difference"] = False
    rows = []
    for seed in seeds:
        name = f"{other.name}, seed {seed}"
        run = dataclasses.replace(template, seed=seed, task_options=options)
        if folds is None:
            rows.append(OtherRow(name, other, run))
            continue
        for fold in range(folds):
            parts = options | {"folds": folds, "fold": fold}
            one = dataclasses.replace(run, task_options=parts)
            rows.append(OtherRow(f"{name}, fold {fold}", other, one))
    return rows


def outcomes_path(environment: RunEnvironment) -> Path:
    """The file to which rows add a line: beside the results of trainings."""
    path = environment.results_path
    return path.with_name(f"{path.stem}-others.jsonl")


def read_outcomes(environment: RunEnvironment) -> dict[str, Outcome]:
    """Outcomes by hash; a line that cannot be read is as none, as a fit takes seconds."""
    path = outcomes_path(environment)
    found = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else []:
        try:
            one = structure_json(Outcome, line.decode(), "an outcome's JSON")
        except (ValueError, TypeError):
            continue
        found[one.hash] = one
    return found


def fit_others(
    rows: Sequence[OtherRow],
    environment: RunEnvironment,
    *,
    say: Callable[[str], None],
    describe: Callable[[Exception], str] = str,
    debug: bool = False,
) -> list[str]:
    """Fits the rows that have no outcome yet; each adds a line to the file of outcomes.

    Args:
        rows: The rows.
        environment: Where they are fitted, always on the CPU.
        say: Takes a line about each.
        describe: How an error is said.
        debug: Whether the trace of an error is printed on standard error.

    Returns:
        A line for each row that failed.
    """
    done, failed = read_outcomes(environment), []
    tasks: dict[str, Task] = {}
    for row in rows:
        if row.hash in done:
            continue
        key = json.dumps(row.run.task_options, sort_keys=True)
        try:
            if key not in tasks:
                tasks = {key: row.run.make_task(environment)}
            with machine.torch_settings("cpu", environment.threads):
                found = _outcome(row, tasks[key])
        except Exception as error:
            failed.append(f"{row.name}: {describe(error)}")
            say(f"{row.name} failed: {describe(error)}")
            if debug:
                traceback.print_exc()
            continue
        done[row.hash] = found
        append_line(outcomes_path(environment), json.dumps(dataclasses.asdict(found)))
        say(f"{row.name}: test {found.metric} {found.test:.6g}, {found.seconds:.1f} s")
    return failed


def _outcome(row: OtherRow, task: Task) -> Outcome:
    started, began = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    loaders = task.loaders(row.run.seed, _BATCH)
    model = row.fitted(task)
    seconds = time.perf_counter() - began
    cpu = torch.device("cpu")
    valid = evaluate(model, loaders.valid, task, cpu).metric if len(loaders.valid) else None
    return Outcome(
        row.other.name,
        row.hash,
        evaluate(model, loaders.test, task, cpu).metric,
        valid,
        task.metric,
        TaskMetric(task.metric).higher_is_better,
        sum(parameter.numel() for parameter in model.parameters()),
        round(seconds, 3),
        trivial_score(task, loaders),
        "cpu",
        torch.get_num_threads(),
        hardware("cpu"),
        started,
    )


def why_not(other: Other, task: Task) -> str:
    """Why a comparison leaves a model out, as a line; empty if it does not.

    Args:
        other: The model.
        task: The task.
    """
    why = other.refusal(task)
    if not why and not isinstance(task, SequencesTask) and task.splits().train is None:
        why = f"{task.name} makes its training data afresh"
    return f"{other.name} are left out: {why}." if why else ""
