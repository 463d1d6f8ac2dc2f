"""Small runs that train in a moment, and tasks that interrupt them."""

import copy
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data import file_digest
from anharmonic.data.base import Batches, Loaders
from anharmonic.data.registry import make_task
from anharmonic.train import BEST, Result, Run, RunEnvironment, fill, fit, loop, run_folder

TASK_OPTIONS = {"length": 8, "valid_size": 20, "test_size": 20, "steps_per_epoch": 6}
MODEL_OPTIONS = {"hidden_size": 4, "num_layers": 2, "dropout": 0.3}


def make_tiny(**fields):
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
    return Run(**fields)


@pytest.fixture
def tiny():
    return make_tiny


@pytest.fixture
def environment(tmp_path):
    return RunEnvironment(out=tmp_path / "runs", threads=1, progress=False)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Where `tiny()` was trained to its end, at once; only to be read."""
    out = tmp_path_factory.mktemp("whole")
    environment = RunEnvironment(out=out, threads=1, progress=False)
    fit(make_tiny(), environment)
    return environment


@pytest.fixture
def finished(whole, environment):
    """A copy of the folder where `tiny()` was trained to its end."""
    shutil.copytree(whole.out, environment.out)
    return environment


@pytest.fixture(scope="session")
def outcome():
    """Gives what a run repeats bit by bit: its weights, and its result without times and places."""

    def of(run, environment):
        folder = run_folder(run, environment)
        result = Result.from_json((folder / "result.json").read_text())
        bare = replace(result, seconds=0.0, memory_mb=0.0, started="", commit=None)
        return (folder / BEST / "model.safetensors").read_bytes(), bare

    return of


@pytest.fixture(scope="session")
def filled():
    """Fills in what the settings leave open and trains: the result, its folder and the task."""

    def train(model, given, environment, task="file"):
        made = fill(model, task, given, environment)
        result = fit(made.run, environment, made.task)
        return result, run_folder(made.run, environment), made.task

    return train


@pytest.fixture(scope="session")
def forked():
    """Starts a function in a forked child: its number, and a file of what the function says."""

    def start(work):
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
def saved_after_every_epoch(monkeypatch):
    """Epochs of these tests take less than the second between two states."""
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_SAVES", 0.0)


@pytest.fixture
def hook_batches(monkeypatch):
    """Calls a function first with a name, "train 1 2" for epoch 1, batch 2, and a batch.

    It may give another batch.
    """

    def install(hook):
        def hooked(name, batches):
            def make(index):
                batch = batches[index]
                return hook(f"{name} {index}", batch) or batch

            return Batches(len(batches), make)

        def made(*arguments, **named):
            def loaders(*arguments):
                train, valid, test = task.loaders(*arguments)
                parts = hooked("valid", valid), hooked("test", test)
                return Loaders(lambda epoch: hooked(f"train {epoch}", train(epoch)), *parts)

            task = make_task(*arguments, **named)
            other = copy.copy(task)
            other.loaders = loaders
            return other

        monkeypatch.setattr("anharmonic.train.run.make_task", made)

    return install


@pytest.fixture
def interrupted(hook_batches):
    """Trains until the network goes away before the named batch; then all batches are there."""

    def train(run, environment, at, **options):
        def fail(name, batch):
            if name == at:
                raise OSError("the network went away")

        hook_batches(fail)
        with pytest.raises(OSError, match="went away"):
            fit(run, environment, **options)
        hook_batches(lambda name, batch: None)

    return train


@pytest.fixture
def goes_on(tmp_path, outcome):
    """Checks that a run that stops after its first epoch and goes on ends with the same bits."""

    def check(run, environment, task=None):
        def stop(epoch, values):
            raise KeyboardInterrupt

        whole = replace(environment, out=tmp_path / "whole")
        fit(run, whole, task)
        with pytest.raises(KeyboardInterrupt, match=f"Interrupted after 1 of {run.epochs} epochs"):
            fit(run, environment, task, on_epoch_end=stop)
        fit(run, environment, task)
        assert outcome(run, environment) == outcome(run, whole)

    return check


@pytest.fixture
def trained(environment, tmp_path):
    """Trains, by default for an epoch, on a file of the given text or arrays: the run's folder."""

    def train(options=None, model="LSTM", name="mine.npz", text="", fields=None, **arrays):
        path = tmp_path / name
        path.write_text(text) if text else np.savez(path, **arrays)
        task = "graph" if model == "GraphCON" else "file"
        given = {"sha256": file_digest(path)} | (options or {})
        fields = {"epochs": 1} | ({"model_options": {}} if task == "graph" else {}) | (fields or {})
        run = make_tiny(task=task, task_options=given, model=model, **fields)
        fit(run, replace(environment, file=path))
        return run_folder(run, environment)

    return train


@pytest.fixture
def stored(tmp_path):
    """Writes new arrays to a file and gives its path."""

    def store(**arrays):
        np.savez(tmp_path / "new.npz", **arrays)
        return tmp_path / "new.npz"

    return store
