"""Windows of the past and the next values, part by part."""

import numpy as np
import pytest

from anharmonic.data import DataOptions
from anharmonic.data.preprocessing import Preprocessing, windows_of
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import window_length


def series(*lengths):
    x = np.arange(2.0 * sum(lengths), dtype=np.float32).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences("here", x, offsets, channels=("a", "b"))


def test_forecasts_learn_from_windows_at_every_step_of_every_part():
    parts = {"train": series(10, 8), "valid": series(6), "test": series(7)}
    before = Preprocessing.fit(parts["train"], True, "error")
    options = DataOptions(window=3, horizon=2, forecast=("b",))
    how, made, tested = windows_of(parts, window_length(options, parts), options, before)
    assert {name: len(part) for name, part in made.items()} == {"train": 10, "valid": 2, "test": 3}
    assert not tested and (how.window, how.horizon, how.forecast) == (3, 2, (1,))
    first = made["test"]
    assert first.x[:3].tolist() == [[0, 1], [2, 3], [4, 5]] and first.y[0].tolist() == [7, 9]
    assert how.forecast_names == ("b",) and how.mean == before.mean
    # Values two and four above the last known one.
    assert how.target_scale == pytest.approx([np.sqrt((2**2 + 4**2) / 2)])


@pytest.mark.parametrize("stride, count", [(None, 2 + 1), (1, 5 + 3), (2, 3 + 2)])
def test_only_training_is_cut_by_the_stride(stride, count):
    parts = {"train": series(8, 6), "test": series(9, 4)}
    before = Preprocessing.fit(parts["train"], True, "error")
    how, made, tested = windows_of(parts, 4, DataOptions(window=4, stride=stride), before)
    assert len(made["train"]) == count and how.window == 4
    assert list(tested) == ["test"] and tested["test"].owners.tolist() == [0, 0, 0, 1]
    assert made["test"].lengths.tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize(
    "horizon, shortest, window",
    [(1, 100, 16), (5, 100, 20), (10, 1000, 40), (10, 40, 9), (3, 5, 1)],
)
def test_the_window_follows_from_the_horizon_and_the_series(horizon, shortest, window):
    parts = {"train": series(2000), "test": series(shortest, 300)}
    assert window_length(DataOptions(horizon=horizon), parts) == window
    assert window_length(DataOptions(window=7, horizon=horizon), parts) == 7
