import time

import pytest
import torch

from anharmonic.data import make_task
from anharmonic.train import Run, RunEnvironment
from anharmonic.train.estimate import expected_seconds
from anharmonic.train.watching import in_words

OPTIONS = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 4}


def expected(epochs, **options):
    options = {**OPTIONS, **options}
    run = Run("adding", "LEM", options, {"hidden_size": 4}, epochs=epochs, batch_size=8)
    return expected_seconds(run, make_task("adding", options), RunEnvironment(threads=1))


def test_time_is_that_of_all_steps(monkeypatch):
    clock = iter(range(100))  # every look at the clock is a second later
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    # Three steps in one second, three validations in another: 4 steps and 1 validation an epoch.
    assert expected(6) == pytest.approx(6 * (4 + 1) / 3, rel=0.01)
    assert expected(6, steps_per_epoch=8) == pytest.approx(6 * (8 + 1) / 3, rel=0.01)


def test_random_numbers_and_settings_stay():
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    expected(1)
    assert torch.equal(before, torch.get_rng_state()) and torch.get_num_threads() == threads


def test_words_grow_with_the_time():
    assert in_words(3) == "a few seconds"
    assert in_words(31) == "about 40 s"
    assert in_words(240) == "about 4 min"
    assert in_words(4 * 3600) == "about 4 h"
