import json

import pytest
import torch

from anharmonic.data.registry import make_task
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.store import from_pretrained
from anharmonic.train import DivergedError
from anharmonic.train.finish import _thinned, finish, remove_leftovers
from anharmonic.train.loop import Loop
from anharmonic.train.results import read_results

CURVE = {"epoch": [1, 2], "train_loss": [0.123456789, 0.1], "valid": [0.2, 0.3]}


@pytest.fixture
def loop(tiny, environment):
    """A training of two epochs, the first of which was better."""
    run = tiny(model_options={"hidden_size": 4})
    task = make_task(run.task, run.task_options)
    torch.manual_seed(0)
    model = SequenceModel("LSTM", 2, 1, hidden_size=4)
    made = Loop(run, task, task.loaders(run.seed, run.batch_size), model, environment)
    made.epoch, made.curve, made.best_epoch = 2, CURVE, 1
    made.versions, made.commit = {"torch": "1"}, "abc"
    return made


def doubled(loop, factor=2.0):
    loop.best_weights = {name: factor * w for name, w in loop.model.state_dict().items()}


def test_best_weights_are_tested_and_kept(loop, environment, tmp_path, monkeypatch):
    bias = loop.model.state_dict()[_bias(loop.model)].clone()
    doubled(loop)
    monkeypatch.setattr(Loop, "seconds", 1.23456)
    monkeypatch.setattr(Loop, "memory_mb", 12.34)
    result = finish(loop, {"b", "a"}, tmp_path, environment.results_path)
    assert (result.best_epoch, result.valid, result.epochs_run) == (1, 0.2, 2)
    best = from_pretrained(tmp_path / "best").state_dict()
    assert torch.equal(best[_bias(loop.model)], 2 * bias)
    assert (result.commit, result.versions, result.seconds) == ("abc", {"torch": "1"}, 1.235)
    assert (result.memory_mb, result.nondeterministic) == (12.3, ["a", "b"])
    assert result.curve == {**CURVE, "train_loss": [0.123457, 0.1]}
    assert json.loads((tmp_path / "result.json").read_text())["hash"] == loop.run.hash
    assert read_results(environment.results_path) == [result]


def test_test_metric_must_be_finite(loop, environment, tmp_path):
    doubled(loop, float("nan"))
    with pytest.raises(
        DivergedError, match="test mse must be finite; got nan with the weights of "
    ):
        finish(loop, set(), tmp_path, environment.results_path)
    assert list(tmp_path.iterdir()) == []


def test_leftovers(tmp_path):
    for name in ("resume.ckpt", "result.json.12.tmp", "run.json"):
        (tmp_path / name).write_text("")
    (tmp_path / ".best-1").mkdir()
    (tmp_path / ".best-1" / "config.json").write_text("")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def _bias(model):
    return next(name for name in model.state_dict() if "bias" in name)


def test_a_long_curve_is_thinned_but_keeps_the_best_and_the_last():
    epochs = list(range(1, 1502))
    curve = {
        "epoch": epochs,
        "train_loss": [1 / e for e in epochs],
        "valid": [float(e) for e in epochs],
    }
    thinned = _thinned(curve, best_epoch=778)
    assert len(thinned["epoch"]) <= 103
    assert thinned["epoch"][0] == 1 and thinned["epoch"][-1] == 1501 and 778 in thinned["epoch"]
    assert thinned["valid"] == [float(epoch) for epoch in thinned["epoch"]]
    short = {name: values[:100] for name, values in curve.items()}
    assert _thinned(short, 3)["epoch"] == epochs[:100]
