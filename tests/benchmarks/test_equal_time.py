"""Accuracy after the same time of training."""

from argparse import Namespace

import pytest

import equal_time
from anharmonic.train import estimate


@pytest.mark.papers
def test_the_time_decides_the_epochs(environment, monkeypatch):
    monkeypatch.setattr(equal_time, "TASKS", {"digits": (60, {})})
    quick = equal_time.cases(Namespace(quick=True))
    assert len(quick) == len(equal_time.MODELS) * len(equal_time.SEEDS)
    monkeypatch.setattr(estimate, "expected_seconds", lambda run, *_: 2.0 * run.epochs)
    one, three = (
        quick["digits, UnICORNN, seed 1"](),
        equal_time.trained("digits", "LEM", 0, seconds=6.0),
    )
    assert (one["model"], one["seed"], one["epochs"], three["epochs"]) == ("UnICORNN", 1, 1, 3)
    found = [{**one, **environment, "test": score, "seconds": 9.0} for score in (80.0, 82.0)]
    found += [{**three, **environment, "test": 90.0, "seconds": 58.0}]
    table = equal_time.tables(found)["equal-time"]
    assert "| digits | 60 | 90.0 (3, 58 s) | 81.0 ± 1.4 (1, 9 s) | - | - |" in table
