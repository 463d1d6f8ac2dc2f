"""Run folders written before: finished ones are known, interrupted ones go on, new ones equal."""

import dataclasses
import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pinned
import pytest
import torch
from pinned import Result, fit, predict

pytestmark = pytest.mark.papers  # a task of theirs is among them
by_name = {"ids": lambda folder: folder.name}
finished = pytest.mark.parametrize("folder", pinned.run_folders("finished"), **by_name)
# test_saved_models.py compares the gradients of both backends in no time.
both = pytest.mark.parametrize(
    "backend", ["auto", pytest.param("reference", marks=pytest.mark.slow)], indirect=True
)
interrupted = pytest.mark.parametrize("folder", pinned.run_folders("interrupted"), **by_name)


def json_in(path):
    return json.loads(path.read_text())


def result_in(folder):
    return Result.from_json((folder / "result.json").read_text())


def needs(run):
    """Skips a training whose data or extra is absent."""
    if run.task == "cora":
        pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
        if not Path(os.environ.get("ANHARMONIC_DATA", ""), "graph/planetoid_cora.npz").is_file():
            pytest.skip("ANHARMONIC_DATA names no folder with graph/planetoid_cora.npz")
    if run.model == "NeuralODE":
        pytest.importorskip("torchdiffeq", reason="its solvers")


def same_outcome(result, folder, expected):
    """Compares what was trained with the finished folder: measures of training and weights."""
    before = result_in(expected)
    for name in ("run", "hash", "metric", "parameters", "epochs_run", "best_epoch", "stopped"):
        assert getattr(result, name) == getattr(before, name), name
    # One may record more than the other: what a run's first version did not know is left out.
    both = result.curve.keys() & before.curve.keys()
    assert both >= {"epoch", "train_loss", "valid"}
    for name in both:
        pinned.close(result.curve[name], before.curve[name], pinned.TRAINED)
    pinned.close(result.test, before.test, pinned.TRAINED)
    found, weights = pinned.tensors(folder / "best"), pinned.tensors(expected / "best")
    assert found.keys() == weights.keys()
    for name, tensor in weights.items():
        pinned.close(found[name], tensor, pinned.TRAINED)
    if pinned.same_machine():
        paths = (place / "best" / "model.safetensors" for place in (folder, expected))
        assert len({path.read_bytes() for path in paths}) == 1
    new, old = (json_in(place / "best" / "config.json") for place in (folder, expected))
    assert new["model"] == old["model"]
    assert new["arguments"] | old["arguments"] == new["arguments"]


@finished
def test_a_finished_run_is_known(folder, tmp_path):
    run = pinned.run_in(folder)
    assert run.folder_name == folder.name
    out = tmp_path / "runs"
    shutil.copytree(pinned.DATA / "finished", out)
    environment = pinned.environment_for(run, out)
    elsewhere = dataclasses.replace(environment, results=tmp_path / "other.jsonl")
    with pinned.counted_steps() as steps:
        assert fit(run, environment) == result_in(folder)  # by its line
        assert fit(run, elsewhere) == result_in(folder)  # by its folder
    assert steps == [0]
    lines = (pinned.DATA / "finished" / "results.jsonl").read_text().splitlines()
    assert (out / "results.jsonl").read_text().splitlines() == lines
    (line,) = (tmp_path / "other.jsonl").read_text().splitlines()
    assert Result.from_json(line) in [Result.from_json(before) for before in lines]


@both
@finished
def test_the_same_run_ends_with_the_same_weights(folder, tmp_path):
    run, new = pinned.run_in(folder), tmp_path / folder.name
    needs(run)
    same_outcome(fit(run, pinned.environment_for(run, tmp_path)), new, folder)
    task = json_in(new / "task.json")
    if task.get("preprocessing"):  # the pinned run's version did not know this
        assert task["preprocessing"].pop("shortest") == 6
    assert task == json_in(folder / "task.json")


@both
@interrupted
def test_an_interrupted_run_goes_on(folder, tmp_path):
    run = pinned.run_in(folder)
    needs(run)
    shutil.copytree(folder, tmp_path / folder.name)
    state = torch.load(folder / "resume.ckpt", weights_only=True)
    taken = int(state["optimizer_states"][0]["state"][0]["step"])
    with pinned.counted_steps() as steps, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = fit(run, pinned.environment_for(run, tmp_path))
    assert steps == [taken * (run.epochs - 1)]
    assert result.started == state["callbacks"]["Keeper"]["started"]
    elsewhere = [w for w in said if "not equal an uninterrupted one" in str(w.message)]
    assert not (elsewhere and pinned.same_machine())
    same_outcome(result, tmp_path / folder.name, pinned.DATA / "finished" / folder.name)


def test_a_finished_run_predicts_as_before():
    (folder,) = (pinned.DATA / "finished").glob("file-*")
    expected, found = json_in(pinned.DATA / "predictions.json"), predict(folder, pinned.NEW_WAVES)
    assert list(found.labels) == expected["labels"]
    assert list(found.class_names) == expected["class_names"]
    pinned.close(found.values, np.float32(expected["values"]), pinned.FORWARD)
