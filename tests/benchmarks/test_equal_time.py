"""Accuracy after the same time of training."""

from argparse import Namespace

import pytest

import equal_time


@pytest.mark.papers
def test_the_time_decides_the_epochs(environment, monkeypatch):
    monkeypatch.setattr(equal_time, "SECONDS", {"digits": 60})
    quick = equal_time.cases(Namespace(quick=True))
    assert len(quick) == len(equal_time.MODELS) * len(equal_time.SEEDS)
    one = quick["digits, UnICORNN, seed 1"]()
    assert (one["model"], one["seed"]) == ("UnICORNN", 1) and one["epochs"] < 20
    found = [{**one, **environment, "test": score} for score in (80.0, 82.0)]
    found += [{**one, **environment, "model": "LEM", "test": 90.0, "epochs": 7}]
    table = equal_time.tables(found)["equal-time"]
    assert f"| digits | 60 | 90.0 (7) | 81.0 ± 1.4 ({one['epochs']}) | - | - |" in table
