"""Training that begins with the weights of a finished run."""

import dataclasses

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.readers import file_digest
from anharmonic.nn.graph.graphcon_network import GraphCONNetwork
from anharmonic.train import Run, fit
from anharmonic.train.warm import given_like, take_weights

SMALL = {"model_options": {"hidden_size": 4}, "epochs": 2, "batch_size": 8, "lr": 1e-3}
SMALL["schedule"] = "constant"


@pytest.fixture
def stored(tmp_path):
    def store(name, classes=("up", "down"), channels=2, gaps=False):
        rng = np.random.default_rng(len(name))
        x = rng.normal(size=(40, 6, channels)).astype("f4")
        if gaps:
            x[::3, 2, 0] = np.nan
        np.savez(tmp_path / name, x=x, y=np.array(classes)[np.arange(40) % len(classes)])
        return tmp_path / name

    return store


@pytest.fixture
def begin(environment, filled):
    """Trains a run on a file, and one on another that begins with its weights.

    Gives the folder of the first and a function for the second: its result and folder.
    """

    def first(path, **given):
        here = dataclasses.replace(environment, file=path)
        _, folder, _ = filled("LEM", {**SMALL, **given}, here)

        def second(path, given, **fields):
            there = dataclasses.replace(here, file=path, start_from=folder)
            given = given_like(folder, "LEM", "file", {**SMALL, **given}) | fields
            result, new, _ = filled("LEM", given, there)
            return result, new

        return folder, second

    return first


def weights(folder):
    return ah.from_pretrained(folder / "best").state_dict()


def test_weights_are_those_of_the_run(begin, stored):
    """With a learning rate of next to nothing they stay what they were."""
    old, second = begin(stored("old.npz", gaps=True), task_options={"missing": "mask"})
    result, new = second(stored("new.npz", gaps=True), {"lr": 1e-30})
    assert result.run.task_options["missing"] == "mask"
    torch.testing.assert_close(weights(new), weights(old), rtol=0, atol=0)
    assert result.run.initial == file_digest(old / "best" / "model.safetensors")
    assert result.run.hash != Run.from_json((old / "run.json").read_text()).hash


def test_other_classes_need_a_new_head_and_other_shapes_are_refused(begin, stored):
    old, second = begin(stored("old.npz"))
    three, wide = stored("three.npz", ("a", "b", "c")), {"model_options": {"hidden_size": 5}}
    for path, given, said in (
        (three, {}, "--new-head"),
        (stored("other.npz", ("left", "right")), {}, "class down, up, as in .*got 'class left, ri"),
        (stored("wide.npz", channels=3), {}, "must have the weights of .* differ.*without --from"),
        (stored("new.npz"), wide, "must have the weights of"),
    ):
        with pytest.raises(ValueError, match=said):
            second(path, given)
    _, new = second(three, {"lr": 1e-30}, new_head=True)
    before, after = weights(old), weights(new)
    assert after["linear.weight"].shape[0] == 3
    assert all(torch.equal(before[n], after[n]) for n in before if not n.startswith("linear"))


def test_the_same_channels_in_another_order_are_refused(tmp_path, begin):
    def write(names):
        path = tmp_path / f"{names}.csv"
        rows = np.random.default_rng(0).normal(size=(90, 2)).tolist()
        path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
        return path

    def given(*names):
        return {"epochs": 1, "task_options": {"horizon": 1, "forecast": names}}

    _, second = begin(write("ab"), **given("a", "b"))
    with pytest.raises(ValueError, match=r"channels must be in the order of .*\['a', 'b'\]"):
        second(write("ba"), given("a", "b"))
    with pytest.raises(ValueError, match="forecast channels must be in the order of"):
        second(write("ab"), given("b", "a"))
    assert second(write("cd"), given("c", "d"))[0].epochs_run == 1


def test_another_model_or_other_weights_are_refused(begin, stored, environment):
    path = stored("old.npz")
    folder, _ = begin(path)
    for model, said in (("CoRNN", "a run of LEM"), ("Resonators", "fitted in one pass")):
        with pytest.raises(ValueError, match=said):
            given_like(folder, model, "file", {})
    run = Run.from_json((folder / "run.json").read_text())
    other = dataclasses.replace(run, initial="0" * 64)
    for start, said in ((None, "must be named"), (folder, "as the run says")):
        with pytest.raises(ValueError, match=said):
            fit(other, dataclasses.replace(environment, file=path, start_from=start))


def test_graph_models_have_a_head_too():
    old, new = (GraphCONNetwork(5, classes, hidden_size=4) for classes in (2, 3))
    with pytest.raises(ValueError, match="--new-head"):
        take_weights(new, old.state_dict(), False, "there")
    take_weights(new, old.state_dict(), True, "there")
    assert torch.equal(new.encoder.weight, old.encoder.weight)
