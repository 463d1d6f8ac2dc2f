import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.data.registry import make_task
from anharmonic.nn.heads import SequenceModel
from anharmonic.train.loop import Loop, _StepValues, shares, with_noise


@pytest.mark.parametrize("workers", [0, 2])
def test_shares_are_one_processs_part_and_workers_draw_nothing(workers):
    batch = Batch(torch.arange(12.0).reshape(4, 3, 1), torch.zeros(4, 1), None)
    state = torch.get_rng_state()
    found = list(shares(Batches(2, lambda i: batch), 1, 2, "squared_error", workers=workers))
    assert torch.equal(torch.get_rng_state(), state)
    for share in found:
        assert torch.equal(share.batch.x, batch.x[2:]) and share.batch.lengths is None
        assert (share.weight, share.entries) == (2 / 4, 4)
    assert len(found) == 2


@pytest.fixture
def loop(tiny, environment):
    def make(resume="folder/resume.ckpt", **fields):
        run = tiny(**fields)
        task = make_task(run.task, run.task_options)
        model = SequenceModel("LSTM", 2, 1, hidden_size=4)
        loaders = task.loaders(run.seed, run.batch_size)
        return Loop(run, task, loaders, model, environment, resume and Path(resume), None)

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


def test_state_is_plain_and_comes_back(loop, tmp_path):
    first = loop(ema_decay=0.5)
    first.curve = {"epoch": [1, 2], "train_loss": [2.0, 1.0], "valid": [50.0, 40.0]}
    first.best_epoch, first.best_weights = 1, {"a": torch.ones(2)}
    first._seconds_before = 100.0
    first.commit, first.versions = "abc", {"torch": "0"}
    torch.save(first.state_dict(), tmp_path / "state")
    second = loop(ema_decay=0.5)
    second.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert (second.epoch, second.step, second.saved_epoch) == (2, 12, 2)
    assert (second.best_epoch, second.higher_is_better) == (1, False)
    assert (second.curve, second.started) == (first.curve, first.started)
    assert (second.commit, second.versions) == ("abc", {"torch": "0"})
    assert torch.equal(second.best_weights["a"], torch.ones(2))
    assert second.seconds >= 100.0
    for one, other in ((first.model, second.model), (first.average, second.average)):
        torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_a_pause_does_not_count(loop, monkeypatch):
    now = [10.0]
    monkeypatch.setattr("anharmonic.train.loop.time", SimpleNamespace(monotonic=lambda: now[0]))
    made = loop(None)
    now[0] = 15.0
    with made.paused():
        now[0] = 95.0
    now[0] = 96.0
    assert made.seconds == 6.0


def test_every_entry_counts_alike_in_the_loss_of_an_epoch(loop):
    values = _StepValues(loop(None))
    for mean, entries in ((1.0, 1), (4.0, 3)):
        values.add(torch.tensor(mean), torch.tensor(1.0), entries)
    assert values.mean_loss() == (1.0 + 3 * 4.0) / 4


def test_without_a_folder_no_state_is_said_to_be_kept(loop):
    assert "kept" not in str(loop(None).diverged("training loss", math.inf, 17, 3))


def test_noise_has_the_stated_sizes_and_none_draws_nothing():
    torch.manual_seed(0)
    x = torch.full((200, 50, 3), 2.0)
    batch = Batch(x, torch.zeros(200, 1), None)
    added = with_noise(batch, 0.5, 0.0).x - x
    assert abs(float(added.std()) - 0.5) < 0.01 and abs(float(added.mean())) < 0.02
    factor = with_noise(batch, 0.0, 0.1).x / x
    assert float(factor.std(dim=1).max()) < 1e-6
    assert abs(float(factor[:, 0].std()) - 0.1) < 0.01
    assert float(factor[:, 0].std(dim=1).mean()) > 0.05  # every channel has its own
    assert torch.equal(batch.x, torch.full((200, 50, 3), 2.0))
    state = torch.get_rng_state()
    assert with_noise(batch, 0.0, 0.0) is batch
    assert torch.equal(state, torch.get_rng_state())
