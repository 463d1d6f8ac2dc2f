import pytest

from anharmonic.train import Run
from anharmonic.train.notices import Notices

CALM = {
    "epoch": [1, 2, 3, 4],
    "train_loss": [1.0, 0.6, 0.4, 0.45],
    "grad_norm": [0.1, 0.09, 0.08, 0.1],
    "grad_norm_max": [0.5, 0.4, 0.6, 0.9],
}


def test_calm_training_is_not_commented():
    assert Notices(Run("adding", "LEM")).of(CALM) == ""
    assert Notices(Run("adding", "LEM")).of({"epoch": [1], "train_loss": [1.0]}) == ""


def test_a_spike_is_said_once_with_its_remedy():
    notices = Notices(Run("adding", "LEM", lr=0.02))
    spike = CALM | {"grad_norm_max": [0.5, 0.4, 0.6, 1830.0]}
    text = notices.of(spike)
    assert "Epoch 4" in text and "1.83e+03" in text and "clip_norm" in text and "0.02" in text
    assert notices.of(spike) == ""


@pytest.mark.parametrize(("clip", "said"), [(0.5, False), (100.0, True)])
def test_a_spike_that_is_clipped_is_harmless(clip, said):
    spike = CALM | {"grad_norm_max": [0.5, 0.4, 0.6, 1830.0]}
    assert bool(Notices(Run("adding", "LEM", clip_norm=clip)).of(spike)) == said


def test_a_loss_that_jumps_is_said():
    text = Notices(Run("adding", "LEM", lr=0.3)).of(CALM | {"train_loss": [1.0, 0.6, 0.4, 0.9]})
    assert "from 0.4 to 0.9" in text and "lr" in text and "0.3" in text
