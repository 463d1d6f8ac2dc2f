"""From the file of a graph to predictions for its nodes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import file_digest
from anharmonic.train import Run, evaluate_run, fit, predict, run_folder
from anharmonic.train.probes import read_diagnostics

pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
GCNII = pytest.param("GCNII", marks=pytest.mark.papers)


@pytest.fixture
def groups(tmp_path):
    """Three groups; most edges join nodes of one, and features tell the group through noise."""
    rng, y = np.random.default_rng(0), np.arange(120) % 3
    edges = rng.integers(0, 120, (2, 720))
    kept = (y[edges[0]] == y[edges[1]]) | (rng.random(720) < 0.1)
    x, path = np.eye(3)[y] + rng.normal(size=(120, 3)), tmp_path / "groups.npz"
    names = np.array(["red", "green", "blue"])[y]
    np.savez(path, x=x, edge_index=edges[:, kept], y=names)
    return path


@pytest.fixture
def here(environment, groups):
    return replace(environment, file=groups)


def run_of(path, model, epochs=3, dropout=0.0, batch_size=64, **options):
    task = {"sha256": file_digest(path), **options}
    settings = {"hidden_size": 8, "num_layers": 2, "dropout": dropout}
    return Run("graph", model, task, settings, epochs=epochs, lr=0.05, batch_size=batch_size)


@pytest.mark.parametrize("undirected", [False, True])
def test_predictions_are_those_of_the_model_on_the_graph_as_trained(
    here, groups, tmp_path, undirected
):
    run = run_of(groups, "PlainGNN", 15, undirected=undirected)
    result, folder = fit(run, here), run_folder(run, here)
    found = predict(folder, groups)
    batch = GraphFileTask(groups, undirected=undirected).splits().test.batch
    with torch.no_grad():
        output = ah.from_pretrained(folder / "best").eval()(batch.x, batch.graph)
    assert torch.allclose(torch.from_numpy(found.values), output.softmax(-1), atol=1e-6)
    assert found.class_names == ("blue", "green", "red")
    labels = np.array(found.labels)[batch.rows]
    truth = np.array(found.class_names)[batch.y]
    assert 100 * (labels == truth).mean() == pytest.approx(result.test)
    # A third is one class: what was learnt is far above it.
    assert result.test > 60
    # Targets are not needed; features must be those of training.
    with np.load(groups) as stored:
        x, edges = stored["x"], stored["edge_index"]
    np.savez(tmp_path / "new.npz", x=x, edge_index=edges)
    assert predict(folder, tmp_path / "new.npz").labels == found.labels
    np.savez(tmp_path / "new.npz", x=1000 * x, edge_index=edges)
    with pytest.warns(UserWarning, match=r"new\.npz should be like the training data; .*channel 0"):
        predict(folder, tmp_path / "new.npz")
    np.savez(tmp_path / "bad.npz", x=x[:, :2], edge_index=edges)
    with pytest.raises(ValueError, match=r"bad\.npz .*3.*2"):
        predict(folder, tmp_path / "bad.npz")


@pytest.mark.parametrize("model", ["GraphCON", GCNII])
def test_smoothing_is_logged_and_changes_no_bit(model, here, groups, tmp_path, outcome):
    run, watched = run_of(groups, model), replace(here, out=tmp_path, diagnose=("smoothing",))
    assert fit(run, here).curve["train_loss"][-1] < fit(run, watched).curve["train_loss"][0]
    assert outcome(run, here) == outcome(run, watched)
    log = read_diagnostics(run_folder(run, watched) / "diagnostics.jsonl")
    assert [entry["epoch"] for entry in log] == [0, 1, 2, 3]
    assert len(log[0]["smoothing"]["dirichlet_energy"]) == 3  # of two layers
    assert log[0]["smoothing"]["mean_average_distance"][0] > 0


def test_from_the_command_line(groups, tmp_path, cli):
    code, out, err = cli("train", "plaingnn", groups, "--hidden-size", "4", "--epochs", "2")
    assert code == 0 and "120 nodes (72 train, 24 valid, 24 test)" in err
    (folder,) = (tmp_path / "runs").glob("graph-PlainGNN-*")
    code, out, _ = cli("predict", folder, groups, "--output", "-")
    assert code == 0 and len(out.splitlines()) == 121
    assert out.splitlines()[0] == "index,prediction,p_blue,p_green,p_red"
    for words, said in (
        ([tmp_path / "graph.pt"], "save_graph"),
        ([groups, "--devices", "2"], "devices of a graph task must be 1; got 2"),
    ):
        code, _, err = cli("train", "plaingnn", *words)
        assert code == 2 and said in err


def test_values_far_from_zero_are_learnt_in_their_units(environment, tmp_path, filled):
    rng, path = np.random.default_rng(0), tmp_path / "values.npz"
    x, edges = rng.normal(size=(200, 3)), rng.integers(0, 200, (2, 400))
    values = 50_000 + 3_000 * x[:, :2]
    np.savez(path, x=x, edge_index=edges, y=values)
    given = {"epochs": 40, "model_options": {"conv": "SAGE", "num_layers": 2}}
    result, folder, _ = filled("GraphCON", given, replace(environment, file=path), "graph")
    error = np.sqrt(np.mean((predict(folder, path).values - values) ** 2))
    assert result.test < 0.5 * result.trivial and error < 0.5 * 3_000
    with pytest.warns(UserWarning, match="the training file"):
        score = evaluate_run(folder, path).scores.metrics["rmse"]
    assert score == pytest.approx(error, rel=1e-5)
