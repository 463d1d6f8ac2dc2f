"""Small runs that train in a moment, and tasks that interrupt them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anharmonic.data.base import Batch, Batches, Loaders, Task
from anharmonic.data.registry import make_task
from anharmonic.train import Run, RunEnvironment, loop

TASK_OPTIONS = {"length": 8, "valid_size": 20, "test_size": 20, "steps_per_epoch": 6}
MODEL_OPTIONS = {"hidden_size": 4, "num_layers": 2, "dropout": 0.3}


@pytest.fixture
def tiny() -> Callable[..., Run]:
    def make(**fields: object) -> Run:
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

    return make


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
def hook_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Calls a function with a name and a batch before every batch; may give another batch."""

    def install(hook: Callable[[str, Batch], Batch | None]) -> None:
        monkeypatch.setattr(
            "anharmonic.train.run.make_task",
            lambda *arguments, **named: Hooked(make_task(*arguments, **named), hook),
        )

    yield install
