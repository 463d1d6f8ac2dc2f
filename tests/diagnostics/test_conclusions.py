"""Sentences follow the numbers, and there are none where nothing is wrong."""

import pytest

from anharmonic.diagnostics import conclusions


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([1.0, 0.5, 0.1], None),
        ([1.0, 0.005, 1e-5], "vanish"),
        ([1.0, 10.0, 2e3], "explode"),
        ([1.0, float("inf"), float("inf")], "explode"),
        ([0.0, 0.0, 0.0], None),
    ],
)
def test_gradients(sizes, said):
    found = conclusions.gradients_over_time([0, 7, 90], sizes, has_dt=True)
    without = conclusions.gradients_over_time([0, 7, 90], sizes, has_dt=False)
    assert len(found) == len(without) == bool(said)
    for one, other in zip(found, without, strict=True):
        assert said in one and "smaller dt" in one and "smaller dt" not in other
        assert said == "explode" or ("90 steps" in one and "after 7" in one)


@pytest.mark.parametrize(
    ("readout", "remedy"),
    [
        ("last", "Try --readout mean, --patch for fewer steps."),
        ("mean", "Try --patch for fewer steps."),
        ("all", "Try another model."),  # of a target per step
    ],
)
def test_a_remedy_can_be_followed(readout, remedy):
    (said,) = conclusions.gradients_over_time([0, 9], [1.0, 0.0], has_dt=False, readout=readout)
    assert said.endswith(remedy)


def test_what_is_wrong_is_said_and_what_is_fine_is_not():
    assert conclusions.chaos(-0.01, 1000) == () == conclusions.chaos(0.001, 1000)
    assert conclusions.chaos(float("nan"), 100) == ()
    assert "69 steps" in conclusions.chaos(0.01, 1000)[0]
    grown, steady = [1.0] * 5 + [60.0] * 5, [3.0] * 10
    (said,) = conclusions.energies(["layer 1", "layer 2"], [steady, grown])
    assert "layer 2" in said and "60" in said and "dt" in said
    assert conclusions.smoothing([1.0, 0.3, 0.5]) == () == conclusions.smoothing([0.0, 0.0])
    assert "2 layers" in conclusions.smoothing([1.0, 0.1, 1e-6])[0]
    assert conclusions.adjoint(1.4) == ()
    assert "skew" in conclusions.adjoint(12.0)[0]


@pytest.mark.parametrize(
    ("loss", "valid", "norms", "said"),
    [
        ([3.0, 2.0, 1.5, 1.49], [3.0, 2.0, 1.6, 1.6], [1.0, 2.0, 1.0], ""),
        ([3.0, 2.0, 1.5, 1.0], [], [], "--epochs"),
        ([3.0, 2.0, 1.0, 0.5], [3.0, 1.0, 1.5, 2.0], [], "epoch 2 and 2 times"),
        ([3.0, 2.0, 1.5, 1.49], [], [1.0, 1.0, 500.0, 1.0], "500"),
        ([2.0], [2.0], [1.0], ""),
    ],
)
def test_training(loss, valid, norms, said):
    found = conclusions.training(loss, valid, norms)
    assert (len(found) == 1 and said in found[0]) if said else found == ()


def test_noise_is_recommended_for_numbers_and_epochs_left_out_of_a_long_curve_are_counted():
    epochs = [1.0, 101.0, 201.0, 300.0]
    facts = ([3.0, 2.0, 1.0, 0.5], [3.0, 1.0, 1.5, 2.0], [], epochs)
    (said,) = conclusions.training(*facts)
    assert "--input-noise" in said and "lowest in epoch 101" in said
    assert "--select" not in said  # "best" is the default
    assert "--input-noise" not in conclusions.training(*facts, takes_noise=False)[0]
    assert conclusions.training([3.0, 2.0, 1.5, 1.0], [], [], epochs) == ()
