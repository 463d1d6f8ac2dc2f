"""Training on graphs: resumed runs end with the same bits, losses fit, wrong pairs are refused."""

from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.registry import task_class
from anharmonic.train import loop
from anharmonic.train.fit import fit
from anharmonic.train.predictions import predict
from anharmonic.train.probes import read_diagnostics
from anharmonic.train.results import read_results
from anharmonic.train.run import Run, RunEnvironment

pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
pytestmark = pytest.mark.papers  # its graph is one of theirs


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment with a Texas of 40 pages, each of whose words name its class."""
    rng = np.random.default_rng(0)
    nodes, words = 40, 1703
    y = rng.integers(0, 5, nodes).astype(np.uint8)
    part = np.arange(nodes)[:, None] % 4 * np.ones((1, 10), int)
    arrays = {
        "edge_index": np.unique(rng.integers(0, nodes, (2, 120)).astype(np.int32), axis=1),
        "y": y,
        "x_indptr": np.arange(nodes + 1, dtype=np.int32),
        "x_indices": y.astype(np.uint16),
        "x_shape": np.array([nodes, words]),
        "num_classes": np.array(5),
        "train_mask": part < 2,
        "val_mask": part == 2,
        "test_mask": part == 3,
    }
    kind = task_class("texas")
    source = kind.archive.preferred or kind.archive
    monkeypatch.setattr(kind, "archive", replace(source, digest=None))
    (tmp_path / "graph").mkdir()
    np.savez(tmp_path / "graph" / "geom_texas.npz", **arrays)
    return RunEnvironment(out=tmp_path / "runs", data_dir=tmp_path, progress=False, threads=1)


def run(**changes):
    values = {"epochs": 5, "lr": 0.01, "model_options": {"hidden_size": 8, "num_layers": 2}}
    return Run("texas", "GraphCON", **{**values, **changes})


@pytest.mark.fast("GradientGating", "GCNII")
@pytest.mark.parametrize("model", ["GraphCON", "GradientGating", "PlainGNN", "GCNII"])
def test_a_network_learns_what_its_features_say(model, environment):
    options = {"hidden_size": 16, "num_layers": 2, "conv": "SAGE"}
    if model == "GCNII":
        options = {"hidden_size": 16, "num_layers": 2, "alpha": 0.9}  # of its own features
    one = Run("texas", model, model_options=options, epochs=20, lr=0.05)
    result = fit(one, environment)
    assert result.curve["train_loss"][-1] < 0.5 * result.curve["train_loss"][0]
    assert result.test > 45  # five classes


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_an_interrupted_run_ends_with_the_same_bits(
    seconds, environment, tmp_path, monkeypatch, weights_of
):
    one = run(model_options={"hidden_size": 8, "num_layers": 2, "dropout": 0.3})
    whole = replace(environment, out=tmp_path / "whole")
    fit(one, whole)
    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_SAVES", seconds)
    real, calls = loop.evaluate, []

    def evaluate(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "evaluate", evaluate)
    saved = 3 if seconds == 0 else 1
    with pytest.raises(KeyboardInterrupt, match=f"Interrupted after {saved} of 5 epochs"):
        fit(one, environment)
    result = fit(one, environment)
    assert len(calls) == 4 + 5 - saved
    assert weights_of(one, environment) == weights_of(one, whole)
    assert result.curve == read_results(whole.results_path)[0].curve


def test_the_split_is_an_option_and_another_run(environment):
    assert run(task_options={"split": 3}).hash != run().hash
    assert run(task_options={"split": 0}).hash == run().hash


def test_sequence_models_and_graph_tasks_do_not_meet(environment):
    with pytest.raises(ValueError, match=r"task 'texas' must be one for graphs; got 'LEM'"):
        Run("texas", "LEM")
    with pytest.raises(ValueError, match=r"task 'adding' must be one for sequences; got.*Graph"):
        Run("adding", "GraphCON")


def test_one_graph_is_not_spread_over_devices(environment):
    with pytest.raises(ValueError, match="devices of a graph task must be 1; got 2"):
        fit(run(batch_size=2), replace(environment, devices=2))


def test_predict_is_for_sequences(environment):
    one = run(epochs=1)
    fit(one, environment)
    with pytest.raises(ValueError, match=r"a model for sequences.*got .*texas.*from_pretrained"):
        predict(environment.out / one.folder_name, "data.npz")


@pytest.mark.parametrize("model", ["GraphCON", "GCNII"])
def test_smoothing_is_logged_and_changes_no_bit(model, environment, tmp_path, weights_of):
    one = replace(run(epochs=3), model=model)
    plain = fit(one, environment)
    watched = replace(environment, out=tmp_path / "watched", diagnose=("smoothing",))
    assert fit(one, watched).curve == plain.curve
    assert weights_of(one, environment) == weights_of(one, watched)
    log = read_diagnostics(watched.out / one.folder_name / "diagnostics.jsonl")
    assert [entry["epoch"] for entry in log] == [0, 1, 2, 3]
    layers = one.model_options["num_layers"]
    assert len(log[0]["smoothing"]["dirichlet_energy"]) == layers + 1
    assert all(value > 0 for value in log[0]["smoothing"]["mean_average_distance"][:1])
