import dataclasses

import pytest

from anharmonic.train import Run, read_results
from anharmonic.train.notices import Notices, has_learned, not_learned

CALM = {
    "epoch": [1, 2, 3, 4],
    "train_loss": [1.0, 0.6, 0.4, 0.45],
    "grad_norm": [0.1, 0.09, 0.08, 0.1],
    "grad_norm_max": [0.5, 0.4, 0.6, 0.9],
}
SPIKE = CALM | {"grad_norm_max": [0.5, 0.4, 0.6, 1830.0]}


@pytest.mark.parametrize(
    ("curve", "settings", "words"),
    [
        pytest.param(CALM, {}, [], id="calm"),
        pytest.param({"epoch": [1], "train_loss": [1.0]}, {}, [], id="one epoch"),
        pytest.param(SPIKE, {}, ["Epoch 4", "1.83e+03", "clip_norm", "0.02"], id="a spike"),
        pytest.param(SPIKE, {"clip_norm": 0.5}, [], id="a spike that is clipped"),
        pytest.param(SPIKE, {"clip_norm": 100.0}, ["Epoch 4"], id="a spike that is hardly clipped"),
        pytest.param(
            CALM | {"train_loss": [1.0, 0.6, 0.4, 0.9]}, {}, ["from 0.4 to 0.9", "lr", "0.02"],
            id="a loss that jumps",
        ),
        pytest.param(CALM | {"train_loss": [1.1, 1.09, 1.08, 1.1]}, {}, [], id="it wavers yet"),
    ],
)  # fmt: skip
def test_what_a_curve_shows_is_said_once_with_its_remedy(curve, settings, words):
    notices = Notices(Run("adding", "LEM", lr=0.02, **settings))
    text = notices.of(curve)
    assert bool(text) == bool(words) and all(word in text for word in words)
    assert notices.of(curve) == ""


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
        assert "a smaller dt" in not_learned(lem)


def test_results_of_older_versions_say_nothing(result):
    assert result.trivial_loss == pytest.approx(1 / 6, rel=0.5)  # of few sums of two uniforms
    older = dataclasses.replace(result, trivial_loss=None)
    assert not_learned(older) == "" and "trivial_loss" not in older.to_json()


@pytest.mark.parametrize(
    ("given", "learned"),
    [
        ((56.0, 55.0, "accuracy", True), False),  # 1 of 45 points
        ((60.0, 55.0, "accuracy", True), True),
        ((60.0, 55.0, "accuracy", True, 6.0), False),  # within its spread
        ((90.0, 100.0, "accuracy", True), False),  # the baseline is perfect
        ((0.5, 1.0, "mse", False), True),
        ((0.96, 1.0, "mse", False), False),
        ((1.5, 1.0, "mse", False), False),
        ((0.9, 0.5, "r2", True), True),
    ],
)
def test_more_than_a_little_of_the_way_to_a_perfect_answer(given, learned):
    assert has_learned(*given) is learned
