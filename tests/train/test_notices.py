import dataclasses

import pytest

from anharmonic.train import Run, read_results
from anharmonic.train.notices import Notices, not_learned

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
    # One that has hardly fallen yet wavers.
    assert not Notices(Run("adding", "LEM")).of(CALM | {"train_loss": [1.1, 1.09, 1.08, 1.1]})


@pytest.fixture(scope="module")
def result(whole):
    (found,) = read_results(whole.results_path)
    return found


@pytest.mark.parametrize(
    ("losses", "best", "said"),
    [
        ([1.0, 0.99, 0.98], 3, True),
        ([1.2, 1.1, 2.0], 1, True),
        ([1.0, 0.9, 0.5], 3, False),
        ([1.0, 0.9, 0.5], 1, False),  # it learned, though what it learned was no use
        ([0.5, 0.9, 1.5], 1, False),  # what was kept had learned
    ],
)
def test_a_model_that_did_not_learn_its_training_data(result, losses, best, said):
    curve = result.curve | {"train_loss": losses}
    changed = dataclasses.replace(result, curve=curve, best_epoch=best, trivial_loss=1.0)
    text = not_learned(changed)
    assert bool(text) == said
    if said:
        assert f"{min(losses[best - 1], losses[-1]):.3g}" in text and "0.01" in text
        assert "dt" not in text  # an LSTM has none
    lem = dataclasses.replace(changed, run=Run("adding", "LEM"))
    assert not said or "a smaller dt" in not_learned(lem)


def test_results_of_older_versions_say_nothing(result):
    assert result.trivial_loss == pytest.approx(1 / 6, rel=0.5)  # of few sums of two uniforms
    older = dataclasses.replace(result, trivial_loss=None)
    assert not_learned(older) == "" and "trivial_loss" not in older.to_json()
