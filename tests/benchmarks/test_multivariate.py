"""Series of several channels and any lengths."""

import numpy as np
import pytest

import multivariate
import ucr

pytest.importorskip("sklearn")


def test_series_of_unequal_lengths_are_measured_and_shown(environment):
    rng = np.random.default_rng(0)
    lengths, y = rng.integers(20, 40, 20), np.array(["slow", "fast"] * 10)
    speeds = np.where(y == "slow", 0.3, 0.9)
    waves = [
        np.stack([np.sin(s * np.arange(n)), rng.normal(size=n)], axis=1)
        for s, n in zip(speeds, lengths, strict=True)
    ]
    offsets = np.cumsum([0, *lengths])
    arrays = {}
    for part in ("train", "test"):
        arrays |= {f"x_{part}": np.concatenate(waves).astype("f4"), f"y_{part}": y}
        arrays |= {f"offsets_{part}": offsets}
    found = multivariate.measure(arrays, "resonators", range(2))
    assert found["accuracy"] == [1.0, 1.0]
    assert found["facts"] == [20, 20, lengths.min(), lengths.max(), 2, 2]
    text = multivariate.tables([{"case": "watch_imu, resonators", **found, **environment}])
    assert "| watch_imu | 20 / 20, " in text["multivariate"]
    assert "100.0 (100.0-100.0), " in text["multivariate"]


def test_shorter_series_are_padded_in_every_channel():
    series = [np.ones((2, 12), np.float32), np.ones((2, 10), np.float32)]
    rows = ucr.padded({"train": (series, np.arange(2)), "test": (series, np.arange(2))})["train"]
    assert rows.shape == (2, 2, 12)
    assert rows[1, :, :10].all() and not rows[1, :, 10:].any()
