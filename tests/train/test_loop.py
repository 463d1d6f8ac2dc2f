"""What a training does: batches and their shares, schedules, averages, and which epoch is kept."""

import dataclasses
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.data.registry import make_task
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.store import from_pretrained
from anharmonic.train import Run, fit
from anharmonic.train.loop import Loop, _StepValues, shares, with_noise
from anharmonic.train.optim import learning_rate, make_optimizer
from anharmonic.train.scoring import Scores


@pytest.mark.parametrize("workers", [0, 2])
def test_shares_are_one_processs_part_and_workers_draw_nothing(workers):
    batch = Batch(torch.arange(12.0).reshape(4, 3, 1), torch.zeros(4, 1), None)
    state = torch.get_rng_state()
    found = list(shares(Batches(2, lambda i: batch), 1, 2, "squared_error", workers=workers))
    assert len(found) == 2 and torch.equal(torch.get_rng_state(), state)
    for share in found:
        assert torch.equal(share.batch.x, batch.x[2:]) and share.batch.lengths is None
        assert (share.weight, share.entries) == (2 / 4, 4)


@pytest.fixture
def loop(tiny, environment):
    def make(resume=None):
        run = tiny()
        task = make_task(run.task, run.task_options)
        model = SequenceModel("LSTM", 2, 1, hidden_size=4)
        loaders = task.loaders(run.seed, run.batch_size)
        return Loop(run, task, loaders, model, environment, resume, None)

    return make


def test_training_in_memory_is_that_of_a_folder(loop, tmp_path):
    made = []
    for resume in (tmp_path / "resume.ckpt", None):
        torch.manual_seed(1)
        made.append(loop(resume))
        torch.manual_seed(2)
        made[-1]()
    one, other = made
    assert (tmp_path / "resume.ckpt").is_file()
    assert one.curve == other.curve and one.best_epoch == other.best_epoch
    torch.testing.assert_close(one.chosen_weights, other.chosen_weights, rtol=0, atol=0)
    assert "kept" not in str(other.diverged("training loss", math.inf, 17, 3))


def test_a_pause_does_not_count(loop, monkeypatch):
    now = [10.0]
    monkeypatch.setattr("anharmonic.train.loop.time", SimpleNamespace(monotonic=lambda: now[0]))
    made = loop()
    now[0] = 15.0
    with made.paused():
        now[0] = 95.0
    now[0] = 96.0
    assert made.seconds == 6.0


def test_every_entry_counts_alike_in_the_loss_of_an_epoch(loop):
    values = _StepValues(loop())
    for mean, entries in ((1.0, 1), (4.0, 3)):
        values.add(torch.tensor(mean), torch.tensor(1.0), entries)
    assert values.mean_loss() == (1.0 + 3 * 4.0) / 4


def test_noise_has_the_stated_sizes_and_none_draws_nothing():
    torch.manual_seed(0)
    x = torch.full((200, 50, 3), 2.0)
    batch = Batch(x.clone(), torch.zeros(200, 1), None)
    added = with_noise(batch, 0.5, 0.0).x - x
    assert abs(float(added.std()) - 0.5) < 0.01 and abs(float(added.mean())) < 0.02
    factor = with_noise(batch, 0.0, 0.1).x / x
    assert float(factor.std(dim=1).max()) < 1e-6
    assert abs(float(factor[:, 0].std()) - 0.1) < 0.01
    assert float(factor[:, 0].std(dim=1).mean()) > 0.05  # every channel has its own
    state = torch.get_rng_state()
    assert with_noise(batch, 0.0, 0.0) is batch and torch.equal(batch.x, x)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_one_cycle_of_a_few_steps_reaches_its_rate(epochs):
    run = Run("adding", "LEM", lr=0.01, schedule="one_cycle", epochs=epochs)
    assert max(learning_rate(run, step, 1) for step in range(epochs)) == pytest.approx(0.01)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_the_output_layer_may_be_left_out_of_weight_decay(optimizer):
    model = SequenceModel("LEM", 2, 3, hidden_size=4)
    start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    run = Run("adding", "LEM", lr=0.1, weight_decay=0.5, decay_output=False, optimizer=optimizer)
    steps = make_optimizer(run, model)
    for weight in model.parameters():  # only the decay moves a weight whose gradient is 0
        weight.grad = torch.zeros_like(weight)
    steps.step()
    for name, weight in model.named_parameters():
        assert torch.equal(weight, start[name]) != name.startswith("layer.")
    # All weights, each once: a weight in two groups would be moved twice.
    assert sum(len(group["params"]) for group in steps.param_groups) == len(start)
    with pytest.raises(ValueError, match=r"\(decay_output\) must be True for Linear.*leave"):
        make_optimizer(run, torch.nn.Linear(1, 1))


TIES = [(1.0, 0.5), (0.9, 0.4), (0.9, 0.3), (0.9, 0.3), (0.9, 0.35), (2.0, 0.1)]
LOSSES = [(9.0, 0.1), (50.0, 0.05), (50.0, 0.05), (80.0, 0.2)]


@pytest.mark.parametrize(
    ("select", "rises", "scores", "epoch"),
    [
        ("best", False, TIES, 4),
        ("best", True, [(-metric, loss) for metric, loss in TIES], 4),
        ("loss", True, LOSSES, 3),
        ("last", True, LOSSES, 4),
    ],
)
def test_ties_go_to_the_smaller_loss_then_to_the_later(
    tiny, environment, monkeypatch, select, rises, scores, epoch
):
    """Metrics and losses of the validations are given; so is the test's."""
    left = iter([Scores(*pair, 1) for pair in scores])
    monkeypatch.setattr("anharmonic.train.loop.evaluate", lambda *_: next(left))
    module = sys.modules["anharmonic.train.fit"]
    monkeypatch.setattr(module, "evaluate", lambda *_: Scores(1.0, 1.0, 1))
    task = {"task": "digits", "task_options": {}, "batch_size": 700} if rises else {}
    run = tiny(select=select, epochs=len(scores), **task)
    assert fit(run, environment).best_epoch == epoch


@pytest.mark.parametrize(("weights", "share"), [("none", 0.2), ("balanced", 0.5)])
def test_balanced_weights_help_the_rare_class(trained, weights, share):
    """With a useless input the answer is the frequent class, unless classes count alike."""
    x, y = np.zeros((60, 4, 1)), (np.arange(60) % 5 == 0).astype(int)
    fields = {"lr": 0.2, "epochs": 25, "select": "last", "batch_size": 42}
    folder = trained(x=x, y=y, fields={"class_weights": weights, **fields})
    model = from_pretrained(folder / "best").eval()
    found = float(model(torch.zeros(1, 4, 1)).softmax(-1)[0, 1].detach())
    assert found == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize(("size", "select"), [(20, "best"), (20, "last"), (50, "best")])
def test_a_small_validation_set_is_said(tiny, environment, capsys, size, select):
    options = {"length": 8, "valid_size": size, "test_size": 20, "steps_per_epoch": 2}
    run = tiny(select=select, epochs=1, task_options=options)
    fit(run, dataclasses.replace(environment, progress=True))
    heard = f"has only {size} sequences" in capsys.readouterr().err
    assert heard == (size == 20 and select == "best")
