"""From the file of a graph to predictions for its nodes."""

from pathlib import Path

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.graphs.own import GraphFileTask
from anharmonic.data.readers import file_digest
from anharmonic.train.evaluation import evaluate_run
from anharmonic.train.fit import fit
from anharmonic.train.losses import summed_loss
from anharmonic.train.predictions import predict
from anharmonic.train.recipe import fill
from anharmonic.train.run import Run, RunEnvironment

pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def communities(folder: Path, nodes: int = 120) -> Path:
    """Three groups; most edges join nodes of one, and features tell the group through noise."""
    rng = np.random.default_rng(0)
    y = np.arange(nodes) % 3
    source = rng.integers(0, nodes, 6 * nodes)
    target = rng.integers(0, nodes, 6 * nodes)
    kept = (y[source] == y[target]) | (rng.random(6 * nodes) < 0.1)
    x = np.eye(3)[y] + rng.normal(size=(nodes, 3))
    path = folder / "groups.npz"
    edges = np.stack([source, target])[:, kept]
    np.savez(path, x=x, edge_index=edges, y=np.array(["red", "green", "blue"])[y])
    return path


def trained(path: Path, folder: Path, **options):
    task = {"sha256": file_digest(path), **options}
    model = {"hidden_size": 8, "num_layers": 2}
    run = Run("graph", "PlainGNN", task, model, epochs=15, lr=0.05)
    environment = RunEnvironment(out=folder / "runs", file=path, progress=False, threads=1)
    return fit(run, environment), environment.out / run.folder_name


@pytest.mark.parametrize("undirected", [False, True])
def test_predictions_are_those_of_the_model_on_the_graph_as_trained(tmp_path, undirected):
    path = communities(tmp_path)
    result, folder = trained(path, tmp_path, undirected=undirected)
    found = predict(folder, path)
    batch = GraphFileTask(path, undirected=undirected).splits().test.batch
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
    with np.load(path) as stored:
        x, edges = stored["x"], stored["edge_index"]
    np.savez(tmp_path / "new.npz", x=x, edge_index=edges)
    assert predict(folder, tmp_path / "new.npz").labels == found.labels
    np.savez(tmp_path / "new.npz", x=1000 * x, edge_index=edges)
    with pytest.warns(UserWarning, match=r"new\.npz should be like the training data; .*channel 0"):
        predict(folder, tmp_path / "new.npz")
    np.savez(tmp_path / "bad.npz", x=x[:, :2], edge_index=edges)
    with pytest.raises(ValueError, match=r"bad\.npz .*3.*2"):
        predict(folder, tmp_path / "bad.npz")


def test_from_the_command_line(tmp_path, cli):
    path = communities(tmp_path)
    words = ("--hidden-size", "4", "--epochs", "2", "--threads", "1")
    code, out, err = cli("train", "plaingnn", path, *words)
    assert code == 0, err
    assert "120 nodes (72 train, 24 valid, 24 test)" in err
    (folder,) = (tmp_path / "runs").glob("graph-PlainGNN-*")
    code, out, _ = cli("predict", folder, path, "--output", "-")
    assert code == 0
    assert out.splitlines()[0] == "index,prediction,p_blue,p_green,p_red"
    assert len(out.splitlines()) == 121
    code, _, err = cli("train", "plaingnn", tmp_path / "graph.pt")
    assert code != 0 and "save_graph" in err
    code, _, err = cli("train", "lem", path, *words)
    assert code != 0 and "one for graphs; got 'LEM'; choose one of" in err


def test_values_far_from_zero_are_learnt_in_their_units(tmp_path):
    rng = np.random.default_rng(0)
    x, edges = rng.normal(size=(200, 3)), rng.integers(0, 200, (2, 400))
    values = 50_000 + 3_000 * x[:, :2]
    path = tmp_path / "values.npz"
    np.savez(path, x=x, edge_index=edges, y=values)
    environment = RunEnvironment(out=tmp_path / "runs", file=path, progress=False, threads=1)
    given = {"epochs": 40, "model_options": {"conv": "SAGE", "num_layers": 2}}
    run = fill("GraphCON", "graph", given, environment).run
    result, folder = fit(run, environment), environment.out / run.folder_name
    assert result.test < 0.5 * result.trivial
    found = predict(folder, path).values
    assert np.sqrt(np.mean((found - values) ** 2)) < 0.5 * 3_000
    with pytest.warns(UserWarning, match="the training file"):
        score = evaluate_run(folder, path).scores.metrics["rmse"]
    assert score == pytest.approx(np.sqrt(np.mean((found - values) ** 2)), rel=1e-5)


def test_a_batch_turns_outputs_into_units_of_the_targets(tmp_path):
    path = tmp_path / "values.npz"
    edges = np.array([[0, 1], [1, 2]])
    np.savez(path, x=np.arange(20.0).reshape(10, 2), edge_index=edges, y=np.arange(10.0) + 100)
    task = GraphFileTask(path, scale_target=True)
    batch = task.splits().train.batch
    mean, deviation = float(batch.y.mean()), float(batch.y.std(correction=0))
    found = batch.to(torch.device("cpu")).select(torch.ones(10, 1))
    assert torch.allclose(found, torch.full((len(batch.y), 1), mean + deviation))
    loss = summed_loss(found, batch, "squared_error")
    expected = ((found - batch.y) / deviation).square().sum()
    assert torch.allclose(loss, expected)
