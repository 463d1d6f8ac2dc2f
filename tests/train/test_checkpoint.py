"""What is interrupted, killed or stopped goes on, and ends with the same bits."""

import dataclasses
import fcntl
import os
import random
import re
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic.diagnostics import machine
from anharmonic.train import fit, loop, read_results, run_folder
from anharmonic.train.folder import (
    _KEYS,
    claim,
    load_state,
    locked,
    random_states,
    restore_random_states,
    save_state,
)

FILES = ["best", "lock", "report.json", "result.json", "run.json", "task.json"]
# A sitting is killed at the first of these events that it meets; the next counts for the next.
MOMENTS = (
    "train 0 2,valid 3,replace resume.ckpt,train 0 7,replaced resume.ckpt,train 2 4,valid 0,"
    "replaced resume.ckpt,replaced resume.ckpt,valid 15,train 4 0,replaced resume.ckpt,test 1,"
    "replace result.json,replaced result.json"
)


def test_killed_at_every_kind_of_moment_ends_with_the_same_bits(
    tiny, environment, tmp_path, hook_batches, forked, outcome
):
    task = {"length": 8, "valid_size": 64, "test_size": 64, "steps_per_epoch": 8}
    run = tiny(task_options=task, epochs=5, lr_drop_epoch=3, clip_norm=1.0, seed=11)
    whole, replace = dataclasses.replace(environment, out=tmp_path / "whole"), os.replace
    fit(run, whole)

    def sitting(moment):
        """How a child ends that is killed at a batch, or where a file is or was replaced."""

        def event(name, batch=None):
            if name.startswith("valid"):
                random.random(), torch.rand(1)  # what is drawn between epochs must not matter
            if name == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        def replace_with_events(source, target):
            event(f"replace {Path(target).name}")
            replace(source, target)
            event(f"replaced {Path(target).name}")

        def train(say):
            hook_batches(event)
            os.replace = replace_with_events
            fit(run, environment)

        child, _ = forked(train)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    for moment in MOMENTS.split(","):
        assert sitting(moment) == -signal.SIGKILL, moment
    (run_folder(run, environment) / ".best-1").mkdir()  # of a kill while the model was written
    assert sitting(None) == 0
    assert outcome(run, environment) == outcome(run, whole)
    assert len(read_results(environment.results_path)) == 1
    assert sorted(os.listdir(run_folder(run, environment))) == FILES


def test_a_schedule_and_an_average_resume_bit_for_bit(tiny, environment, goes_on):
    noise = {"input_noise": 0.1, "amplitude_noise": 0.1, "clip_norm": 1.0}
    goes_on(tiny(schedule="one_cycle", ema_decay=0.9, optimizer="adamw", **noise), environment)


@pytest.mark.parametrize(("seconds", "first"), [(0.0, "train 3 0"), (1000.0, "train 1 0")])
def test_states_are_saved_after_the_first_epoch_and_then_now_and_then(
    tiny, environment, monkeypatch, interrupted, hook_batches, seconds, first
):
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_SAVES", seconds)
    interrupted(tiny(), environment, "train 3 5")
    seen = []
    hook_batches(lambda name, batch: seen.append(name))
    fit(tiny(), environment)
    # (The baseline looks at epoch 0 again.)
    assert first == next(name for name in seen if re.match("train [1-9]", name))


def test_every_epoch_is_reported_and_who_stops_a_training_can_go_on(
    tiny, whole, environment, outcome
):
    heard = []

    def stop_at_2(epoch, values):
        heard.append((epoch, values))
        if len(heard) == 2:
            raise LookupError

    with pytest.raises(LookupError):
        fit(tiny(), environment, on_epoch_end=stop_at_2)
    # Who goes on hears of the epochs before once more, and so does who comes after the end.
    result, _ = (fit(tiny(), environment, on_epoch_end=stop_at_2) for _ in range(2))
    assert outcome(tiny(), environment) == outcome(tiny(), whole)
    assert [epoch for epoch, _ in heard] == [1, 2, *[1, 2, 3, 4] * 2]
    for name in set(result.curve) - {"epoch"}:
        reported = [values[name] for _, values in heard[-4:]]
        assert reported == pytest.approx(result.curve[name], rel=1e-5)


def test_early_stop_is_remembered(tiny, environment, interrupted, hook_batches):
    run, seen = tiny(lr=1.0, epochs=50, patience=2), []
    interrupted(run, environment, "test 0")
    hook_batches(lambda name, batch: seen.append(name))
    assert fit(run, environment).stopped == "early"
    # (The baseline looks at epoch 0 again.)
    assert not [name for name in seen if re.match("train [1-9]", name)]


def test_resuming_elsewhere_warns_and_keeps_the_commit_and_the_seconds_of_before(
    tiny, environment, monkeypatch, interrupted
):
    monkeypatch.setattr(machine, "commit", lambda: "first")
    interrupted(tiny(), dataclasses.replace(environment, threads=2), "train 1 0")
    monkeypatch.setattr(machine, "commit", lambda: "second")
    path = run_folder(tiny(), environment) / "resume.ckpt"
    save_state(path, load_state(path) | {"seconds": 1000.0})
    with pytest.warns(UserWarning, match="not equal an uninterrupted one.*threads was 2, is 1"):
        result = fit(tiny(), environment)
    assert result.commit == "first" and result.seconds > 1000.0


def draw():
    numbers = np.random.rand(2), np.random.standard_normal(1)  # noqa: NPY002
    return str((torch.rand(3), random.random(), random.gauss(0, 1), numbers))


def test_random_states_come_back_through_a_file(tmp_path):
    draw()  # leaves half a pair of normal numbers in the generators
    path = tmp_path / "resume.ckpt"
    save_state(path, {key: {} for key in _KEYS} | {"random": random_states()})
    first = draw()
    states = load_state(path)["random"]
    states["cuda"] = [torch.zeros(16, dtype=torch.uint8)] * 99  # another number of GPUs
    restore_random_states(states)
    assert draw() == first


def packed(path):
    """As a file that unpacks to gigabytes is."""
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (packed, "it is compressed"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), ""),
        (lambda path: path.write_bytes(b""), ""),
        (lambda path: path.write_bytes(os.urandom(3000)), ""),
        (lambda path: (path.unlink(), path.mkdir()), ""),
        (lambda path: torch.save({"something": 1}, path), ""),
        (lambda path: torch.save({"model": Path("x")}, path), ""),
        (lambda path: torch.save({"pytorch-lightning_version": "2", "callbacks": {}}, path), ""),
    ],
)
def test_damaged_file(tiny, environment, damage, said):
    path = run_folder(tiny(), environment) / "resume.ckpt"
    path.parent.mkdir(parents=True)
    save_state(path, {key: {} for key in _KEYS})
    load_state(path)
    damage(path)
    text = rf"file must be a whole checkpoint.*resume.ckpt \(.*{said}.*delete this file to start"
    with pytest.raises(ValueError, match=text):
        fit(tiny(), environment)


def test_a_folder_is_claimed_by_one_run(tmp_path, tiny, environment):
    assert run_folder(tiny(), environment).name == f"adding-LSTM-{tiny().hash}"
    for options in ({}, {"length": 500}, {}):  # the same run written otherwise
        claim(tmp_path, tiny(task_options=options))
    assert (tmp_path / "run.json").read_text() == tiny(task_options={}).to_json(indent=2) + "\n"
    with pytest.raises(ValueError, match=r'must hold this run, .*"seed":9.*"seed":3.*move'):
        claim(tmp_path, tiny(seed=9))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"must hold this run.*a run's JSON must be JSON"):
        claim(tmp_path, tiny())


def test_one_process_at_a_time_if_the_file_system_has_locks(tmp_path, monkeypatch):
    tmp_path /= "new"
    with locked(tmp_path), pytest.raises(RuntimeError, match=r"only one process.*wait for it"):
        with locked(tmp_path):
            pass
    with locked(tmp_path):
        pass

    def refuse(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass
