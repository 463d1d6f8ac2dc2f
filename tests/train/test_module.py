import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.data.synthetic import AddingProblem
from anharmonic.train.module import EpochBatches, TrainingModule


def batches(epoch):
    return Batches(2, lambda i: Batch(torch.full((4, 3, 1), float(epoch)), torch.zeros(4, 1), None))


def test_epoch_batches_are_one_devices_shares():
    shares = list(EpochBatches(batches(7), rank=1, world=2, loss="squared_error"))
    assert len(shares) == len(EpochBatches(batches(7), 1, 2, "squared_error")) == 2
    assert shares[0].batch.x.shape == (2, 3, 1)
    assert float(shares[0].batch.x.max()) == 7.0
    assert (shares[0].weight, shares[0].entries) == (2 / 4, 4)


def test_workers_make_the_same_batches_and_draw_nothing():
    state = torch.get_rng_state()
    ahead = list(EpochBatches(batches(3), 0, 1, "squared_error", workers=2))
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(ahead, EpochBatches(batches(3), 0, 1, "squared_error"), strict=True):
        assert torch.equal(one.batch.x, other.batch.x) and one.batch.lengths is None
        assert one[1:] == other[1:]


@pytest.mark.parametrize(
    ("clip_norm", "text"),
    [(None, "no gradient clipping"), (2.0, r"too weak clipping .clip_norm=2")],
)
def test_diverged_error_says_what_to_try(tiny, clip_norm, text):
    run = tiny(clip_norm=clip_norm, lr_drop_epoch=2)
    linear = torch.nn.Linear(1, 1)
    module = TrainingModule(run, linear, AddingProblem(), batches, None, "folder/resume.ckpt")
    module.saved_epoch = 2
    module.trainer = type("Trainer", (), {"current_epoch": 2, "num_training_batches": 6})()  # type: ignore[assignment]
    error = module.diverged("training loss", float("inf"), 17)
    assert (error.step, error.epoch, error.value) == (17, 3, float("inf"))
    assert error.lr == pytest.approx(0.001)
    message = rf"inf at step 17, epoch 3, with learning rate 0\.001.*{text}.*folder/resume\.ckpt"
    with pytest.raises(RuntimeError, match=message):
        raise error
