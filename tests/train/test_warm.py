"""Training that begins with the weights of a finished run."""

import dataclasses

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.readers import file_digest
from anharmonic.nn.graph.graphcon_network import GraphCONNetwork
from anharmonic.train import Run, fill, fit
from anharmonic.train.folder import run_folder
from anharmonic.train.warm import given_like, take_weights

SMALL = {
    "model_options": {"hidden_size": 4},
    "epochs": 2,
    "batch_size": 8,
    "lr": 1e-3,
    "schedule": "constant",
}


@pytest.fixture
def stored(tmp_path):
    def store(name, classes=("up", "down"), channels=2):
        rng = np.random.default_rng(len(name))
        path = tmp_path / name
        y = np.array(classes)[np.arange(40) % len(classes)]
        np.savez(path, x=rng.normal(size=(40, 6, channels)).astype("f4"), y=y)
        return path

    return store


@pytest.fixture
def first(stored, environment):
    """A finished run: its folder and where it was trained."""
    here = dataclasses.replace(environment, file=stored("old.npz"))
    made = fill("LEM", "file", SMALL, here)
    fit(made.run, here, made.task)
    return run_folder(made.run, here), here


def begun(first, path, given, **fields):
    folder, here = first
    here = dataclasses.replace(here, file=path, start_from=folder)
    given = given_like(folder, "LEM", "file", {**SMALL, **given}) | fields
    made = fill("LEM", "file", given, here)
    return fit(made.run, here, made.task), run_folder(made.run, here)


def weights(folder):
    return ah.from_pretrained(folder / "best").state_dict()


def test_weights_are_those_of_the_run(first, stored):
    """With a learning rate of next to nothing they stay what they were."""
    result, folder = begun(first, stored("new.npz"), {"lr": 1e-30})
    before, after = weights(first[0]), weights(folder)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert result.run.initial == file_digest(first[0] / "best" / "model.safetensors")
    assert result.run.hash != Run.from_json((first[0] / "run.json").read_text()).hash


def test_other_classes_need_a_new_head(first, stored):
    path = stored("three.npz", ("a", "b", "c"))
    with pytest.raises(ValueError, match="--new-head"):
        begun(first, path, {})
    _, folder = begun(first, path, {"lr": 1e-30}, new_head=True)
    before, after = weights(first[0]), weights(folder)
    assert after["linear.weight"].shape[0] == 3
    assert all(torch.equal(before[n], after[n]) for n in before if not n.startswith("linear"))


def test_as_many_other_classes_are_noticed(first, stored):
    with pytest.raises(ValueError, match=r"class down, up, as in .*got 'class left, right"):
        begun(first, stored("other.npz", ("left", "right")), {})


def test_the_channels_of_gaps_are_those_of_the_run(stored, environment):
    def gappy(name):
        path = stored(name)
        with np.load(path) as held:
            x, y = held["x"], held["y"]
        x[::3, 2, 0] = np.nan
        np.savez(path, x=x, y=y)
        return path

    here = dataclasses.replace(environment, file=gappy("old.npz"))
    made = fill("LEM", "file", {**SMALL, "task_options": {"missing": "mask"}}, here)
    fit(made.run, here, made.task)
    result, _ = begun((run_folder(made.run, here), here), gappy("new.npz"), {})
    assert result.run.task_options["missing"] == "mask"


def test_other_shapes_are_refused(first, stored):
    with pytest.raises(ValueError, match=r"must have the weights of .* differ.*without --from"):
        begun(first, stored("wide.npz", channels=3), {})
    with pytest.raises(ValueError, match="must have the weights of"):
        begun(first, stored("new.npz"), {"model_options": {"hidden_size": 5}})


@pytest.mark.parametrize(
    ("order", "forecast", "words"),
    [
        ("ba", ["a", "b"], r"channels must be in the order of .*\['a', 'b'\]"),
        ("ab", ["b", "a"], "forecast channels must be in the order of"),
        ("cd", ["c", "d"], None),
    ],
)
def test_the_same_channels_in_another_order_are_refused(
    tmp_path, environment, order, forecast, words
):
    def write(names):
        path = tmp_path / f"{names}.csv"
        rows = np.random.default_rng(0).normal(size=(90, 2)).tolist()
        path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
        return dataclasses.replace(environment, file=path)

    def given(names):
        return {**SMALL, "epochs": 1, "task_options": {"horizon": 1, "forecast": names}}

    here = write("ab")
    made = fill("LEM", "file", given(["a", "b"]), here)
    fit(made.run, here, made.task)
    folder = run_folder(made.run, here)
    there = dataclasses.replace(write(order), start_from=folder)
    made = fill("LEM", "file", given_like(folder, "LEM", "file", given(forecast)), there)
    if words is None:
        assert fit(made.run, there, made.task).epochs_run == 1
        return
    with pytest.raises(ValueError, match=words):
        fit(made.run, there, made.task)


def test_another_model_or_other_weights_are_refused(first, stored, environment):
    folder, here = first
    with pytest.raises(ValueError, match="a run of LEM"):
        given_like(folder, "CoRNN", "file", {})
    with pytest.raises(ValueError, match="fitted in one pass"):
        given_like(folder, "Resonators", "file", {})
    run = Run.from_json((folder / "run.json").read_text())
    other = dataclasses.replace(run, initial="0" * 64)
    with pytest.raises(ValueError, match="must be named"):
        fit(other, here)
    with pytest.raises(ValueError, match="as the run says"):
        fit(other, dataclasses.replace(here, start_from=folder))
    with pytest.raises(ValueError, match="without initial weights"):
        dataclasses.replace(run, new_head=True)


def test_graph_models_have_a_head_too():
    old, new = (GraphCONNetwork(5, classes, hidden_size=4) for classes in (2, 3))
    with pytest.raises(ValueError, match="--new-head"):
        take_weights(new, old.state_dict(), False, "there")
    take_weights(new, old.state_dict(), True, "there")
    assert torch.equal(new.encoder.weight, old.encoder.weight)
