"""Small runs that train in a moment, and tasks that interrupt them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import numpy as np
import pytest

from anharmonic.data import file_digest
from anharmonic.data.base import Batch, Batches, Loaders, Task
from anharmonic.data.registry import make_task
from anharmonic.train import BEST, Result, Run, RunEnvironment, fill, fit, loop, run_folder

TASK_OPTIONS = {"length": 8, "valid_size": 20, "test_size": 20, "steps_per_epoch": 6}
MODEL_OPTIONS = {"hidden_size": 4, "num_layers": 2, "dropout": 0.3}


def make_tiny(**fields: object) -> Run:
    fields = {
        "task": "adding",
        "model": "LSTM",
        "task_options": TASK_OPTIONS,
        "model_options": MODEL_OPTIONS,
        "epochs": 4,
        "batch_size": 4,
        "lr": 0.01,
        "seed": 3,
        **fields,
    }
    return Run(**fields)  # type: ignore[arg-type]


@pytest.fixture
def tiny() -> Callable[..., Run]:
    return make_tiny


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunEnvironment:
    """Where `tiny()` was trained to its end, at once; only to be read."""
    out = tmp_path_factory.mktemp("whole")
    environment = RunEnvironment(out=out, threads=1, progress=False)
    fit(make_tiny(), environment)
    return environment


@pytest.fixture
def finished(whole: RunEnvironment, environment: RunEnvironment) -> RunEnvironment:
    """A copy of the folder where `tiny()` was trained to its end."""
    shutil.copytree(whole.out, environment.out)
    return environment


@pytest.fixture(scope="session")
def outcome() -> Callable[[Run, RunEnvironment], tuple[bytes, Result]]:
    """Gives what a run repeats bit by bit: its weights, and its result without times and places."""

    def of(run: Run, here: RunEnvironment) -> tuple[bytes, Result]:
        folder = run_folder(run, here)
        result = Result.from_json((folder / "result.json").read_text())
        bare = replace(result, seconds=0.0, memory_mb=0.0, started="", commit=None)
        return (folder / BEST / "model.safetensors").read_bytes(), bare

    return of


@pytest.fixture(scope="session")
def filled() -> Callable[..., tuple[Result, Path, Task]]:
    """Fills in what the settings leave open and trains: the result, its folder and the task."""

    def train(
        model: str, given: dict[str, object], here: RunEnvironment, task: str = "file"
    ) -> tuple[Result, Path, Task]:
        made = fill(model, task, given, here)
        return fit(made.run, here, made.task), run_folder(made.run, here), made.task

    return train


@pytest.fixture(scope="session")
def forked() -> Callable[..., tuple[int, TextIO]]:
    """Starts a function in a forked child: its number, and a file of what the function says."""

    def start(work: Callable[[Callable[[object], int]], None]) -> tuple[int, TextIO]:
        from_child, to_parent = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                work(lambda said: os.write(to_parent, f"{json.dumps(said)}\n".encode()))
                os._exit(0)
            finally:
                os._exit(1)
        os.close(to_parent)
        return child, os.fdopen(from_child)

    return start


@pytest.fixture(autouse=True)
def saved_after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs of these tests take less than the second between two states."""
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_SAVES", 0.0)


@pytest.fixture
def environment(tmp_path: Path) -> RunEnvironment:
    return RunEnvironment(out=tmp_path / "runs", threads=1, progress=False)


class Hooked:
    """A task whose batches call a function first, with "train 1 2" for epoch 1, batch 2."""

    def __init__(self, task: Task, hook: Callable[[str, Batch], Batch | None]) -> None:
        self._task = task
        self._hook = hook

    def __getattr__(self, name: str) -> object:
        return getattr(self._task, name)

    def loaders(self, *arguments: int) -> Loaders:
        train, valid, test = self._task.loaders(*arguments)
        return Loaders(
            lambda epoch: self._hooked(f"train {epoch}", train(epoch)),
            self._hooked("valid", valid),
            self._hooked("test", test),
        )

    def _hooked(self, name: str, batches: Batches) -> Batches:
        def make(index: int) -> Batch:
            batch = batches[index]
            return self._hook(f"{name} {index}", batch) or batch

        return Batches(len(batches), make)


@pytest.fixture
def hook_batches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Calls a function with a name and a batch before every batch; may give another batch."""

    def install(hook: Callable[[str, Batch], Batch | None]) -> None:
        monkeypatch.setattr(
            "anharmonic.train.run.make_task",
            lambda *arguments, **named: Hooked(make_task(*arguments, **named), hook),
        )

    return install


@pytest.fixture
def interrupted(hook_batches: Callable[..., None]) -> Callable[..., None]:
    """Trains until the network goes away before the named batch; then all batches are there."""

    def train(run: Run, environment: RunEnvironment, at: str, **options: object) -> None:
        def fail(name: str, batch: Batch) -> None:
            if name == at:
                raise OSError("the network went away")

        hook_batches(fail)
        with pytest.raises(OSError, match="went away"):
            fit(run, environment, **options)  # type: ignore[arg-type]
        hook_batches(lambda name, batch: None)

    return train


@pytest.fixture
def goes_on(tmp_path: Path, outcome: Callable[..., object]) -> Callable[..., None]:
    """Checks that a run that stops after its first epoch and goes on ends with the same bits."""

    def check(run: Run, environment: RunEnvironment, task: Task | None = None) -> None:
        def stop(epoch: int, values: object) -> None:
            raise KeyboardInterrupt

        whole = replace(environment, out=tmp_path / "whole")
        fit(run, whole, task)
        with pytest.raises(KeyboardInterrupt, match=f"Interrupted after 1 of {run.epochs} epochs"):
            fit(run, environment, task, on_epoch_end=stop)
        fit(run, environment, task)
        assert outcome(run, environment) == outcome(run, whole)

    return check


@pytest.fixture
def trained(environment: RunEnvironment, tmp_path: Path) -> Callable[..., Path]:
    """Trains for an epoch on a file of the given text or arrays; gives the run's folder."""

    def train(
        options: dict[str, object] | None = None,
        model: str = "LSTM",
        name: str = "mine.npz",
        text: str = "",
        **arrays: object,
    ) -> Path:
        path = tmp_path / name
        path.write_text(text) if text else np.savez(path, **arrays)  # type: ignore[arg-type]
        task = "graph" if model == "GraphCON" else "file"
        given = {"sha256": file_digest(path)} | (options or {})
        fields = {"model_options": {}} if task == "graph" else {}
        run = make_tiny(task=task, task_options=given, model=model, epochs=1, **fields)
        fit(run, replace(environment, file=path))
        return run_folder(run, environment)

    return train


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """Writes new arrays to a file and gives its path."""

    def store(**arrays: object) -> Path:
        np.savez(tmp_path / "new.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path / "new.npz"

    return store
