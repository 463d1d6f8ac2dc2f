"""Sentences follow the numbers, and there are none where nothing is wrong."""

import math
from functools import partial

import pytest

from anharmonic.data.scores import ClassScores, ScoreTable
from anharmonic.diagnostics import conclusions
from anharmonic.diagnostics.base import Section
from anharmonic.diagnostics.conclusions import adjoint, budget, chaos, energies, recalls, smoothing
from anharmonic.train.diagnosis import _scores, in_short

gradients = partial(conclusions.gradients_over_time, [0, 7, 90])
training = conclusions.training
OVERFIT = [3.0, 2.0, 1.0, 0.5], [3.0, 1.0, 1.5, 2.0], []
LONG = [1.0, 101.0, 201.0, 300.0]  # epochs of a curve that was thinned
EIGHT = {str(n): float(n) for n in range(8)}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (gradients([1.0, 0.5, 0.1], has_dt=True), None),
        (gradients([0.0, 0.0, 0.0], has_dt=True), None),
        (gradients([1.0, 0.005, 1e-5], has_dt=True), "vanish: over 90 steps*after 7*smaller dt"),
        (gradients([1.0, 0.005, 1e-5], has_dt=False), "vanish*not smaller dt"),
        (gradients([1.0, 10.0, 2e3], has_dt=True), "explode*smaller dt"),
        (gradients([1.0, math.inf, math.inf], has_dt=False), "explode*not smaller dt"),
        (
            gradients([1.0, 0.0, 0.0], has_dt=False, readout="last"),
            "Try --readout mean, --patch for fewer steps.",
        ),
        (gradients([1.0, 0.0, 0.0], has_dt=False, readout="mean"), "Try --patch for fewer steps."),
        # Of a target per step.
        (gradients([1.0, 0.0, 0.0], has_dt=False, readout="all"), "Try another model."),
        (energies(["layer 1", "layer 2"], [[3.0] * 10, [1.0] * 5 + [60.0] * 5]), "layer 2*60*dt"),
        (chaos(0.001, 1000), None),
        (chaos(math.nan, 100), None),
        (smoothing([1.0, 0.3, 0.5]), None),
        (smoothing([0.0, 0.0]), None),
        (smoothing([1.0, 0.1, 1e-6]), "2 layers*Try GraphCON, fewer*not smaller dt"),
        (smoothing([1.0, 0.1, 1e-6], has_dt=True), "2 layers*Try a smaller dt, fewer*not GraphCON"),
        (adjoint(1.4), None),
        (training([3.0, 2.0, 1.5, 1.49], [3.0, 2.0, 1.6, 1.6], [1.0, 2.0, 1.0]), None),
        (training([2.0], [2.0], [1.0]), None),
        (training([3.0, 2.0, 1.5, 1.0], [], []), "--epochs"),
        (training([3.0, 2.0, 1.5, 1.0], [], [], LONG), None),
        (training([3.0, 2.0, 1.5, 1.49], [], [1.0, 1.0, 500.0, 1.0]), "500"),
        # Noise is for numbers alone, and "best" is the default of --select.
        (training(*OVERFIT), "epoch 2 and 2 times*--input-noise*not --select"),
        (training(*OVERFIT, takes_noise=False), "epoch 2*not --input-noise"),
        (training(*OVERFIT, LONG), "lowest in epoch 101"),
        (recalls({"a": 50.0, "b": 100.0}, "test"), None),
        (recalls({"a": 20.0, "b": 100.0, "c": 0.0}, "test"), "c (recall 0 %), a (recall 20 %)."),
        (recalls(EIGHT, "test"), "4 (recall 4 %) and 3 more classes"),
        (
            recalls({"a": 20.0}, "test", are_labels=True),
            "Labels mostly missed in the test set: a (recall 20 %). Try more exam"
            "*more examples or longer training.",
        ),
        (budget(1000, 2000), None),
        (budget(999, 2000), "999"),
        (conclusions.above_baseline("mse", 0.1, 0.2, True), None),
    ],
)
def test_what_is_wrong_is_said_and_what_is_fine_is_not(found, said):
    assert len(found) == (said is not None)
    for words in (said or "").split("*"):
        text = words.removeprefix("not ")
        assert not found or (text in found[0]) != words.startswith("not ")


def test_classes_that_do_not_occur_are_not_missed():
    classes = (ClassScores("here", 60.0, 60.0, 60.0, 3), ClassScores("absent", 0.0, 0.0, 0.0, 0))
    assert _scores("validation", ScoreTable(3, {}, classes=classes)).found == ()


def test_no_measurement_is_praised_that_was_not_made():
    names = ("Training", "Metrics of the validation set", "Smoothing over depth")
    numbers = {"test accuracy": "80 %", "baseline accuracy": "-"}
    said = in_short([Section(name, "", numbers) for name in names])
    assert said == ["Test accuracy 80 %.", "None of the checks found a problem."]
