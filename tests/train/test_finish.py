import json
import types

import pytest
import torch

from anharmonic.data.registry import make_task
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.store import from_pretrained
from anharmonic.train import DivergedError
from anharmonic.train.finish import PreparedRun, _thinned, finish, remove_leftovers
from anharmonic.train.results import read_results

CURVE = {"epoch": [1, 2], "train_loss": [0.123456789, 0.1], "valid": [0.2, 0.3]}


@pytest.fixture
def prepared(tiny, environment, tmp_path):
    run = tiny(model_options={"hidden_size": 4})
    task = make_task(run.task, run.task_options)
    torch.manual_seed(0)
    model = SequenceModel("LSTM", 2, 1, hidden_size=4)
    loaders = task.loaders(run.seed, run.batch_size)
    return PreparedRun(
        run, environment, "cpu", tmp_path, task, loaders, model, is_first_process=True
    )


def state(model, factor=2.0, **fields):
    """Stands in for what is kept of two epochs, the first of which was better."""
    fields = {
        "curve": CURVE,
        "best_epoch": 1,
        "best_weights": {k: factor * v for k, v in model.state_dict().items()},
        "higher_is_better": False,
        "stopped_early": False,
        "started": "2026-01-01T00:00:00+00:00",
        "versions": {"torch": "1"},
        "commit": "abc",
        "seconds": 1.23456,
        "memory_mb": lambda device: 12.34,
        **fields,
    }
    return types.SimpleNamespace(**fields)


def test_best_weights_are_tested_and_kept(prepared, tmp_path):
    bias = prepared.model.state_dict()[_bias(prepared.model)].clone()
    result = finish(prepared, state(prepared.model), {"b", "a"})
    assert (result.best_epoch, result.valid, result.epochs_run) == (1, 0.2, 2)
    assert torch.equal(
        from_pretrained(tmp_path / "best").state_dict()[_bias(prepared.model)], 2 * bias
    )
    assert (result.commit, result.versions, result.seconds) == ("abc", {"torch": "1"}, 1.235)
    assert (result.memory_mb, result.nondeterministic) == (12.3, ["a", "b"])
    assert result.curve == {**CURVE, "train_loss": [0.123457, 0.1]}
    assert json.loads((tmp_path / "result.json").read_text())["hash"] == prepared.run.hash
    assert read_results(prepared.environment.results_path) == [result]


def test_test_metric_must_be_finite(prepared, tmp_path):
    with pytest.raises(
        DivergedError, match="test mse must be finite; got nan with the weights of "
    ):
        finish(prepared, state(prepared.model, float("nan")), set())
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
