"""Questions whose quick runs need no more than a look: cases are measured, and tables show them."""

import numpy as np
import pytest

import bfloat16
import multivariate
import recipe
import scaling
import seeds
import small_batches
import ucr
from anharmonic.ops import library


def test_networks_by_the_recipe_are_trained_beside_resonators(waves, measured):
    pytest.importorskip("sklearn")
    waves("CBF", 12)
    found = measured("recipe")
    assert [one["case"] for one in found] == [f"CBF, {method}" for method in recipe.METHODS]
    assert found[0]["accuracy"] == 1.0 and all(one["per class"] == 6 for one in found)
    assert "| CBF | 6 | 100.0 (" in recipe.tables(found)["recipe"]


def test_a_seed_is_trained_by_the_recipe_and_the_worst_is_shown(measured, monkeypatch):
    monkeypatch.setattr(seeds, "MODELS", {"digits": ("CoRNN", "UnICORNN")})
    (one,) = measured("seeds", "digits, UnICORNN, seed 3")
    assert (one["task"], one["model"], one["seed"]) == ("digits", "UnICORNN", 3)
    found = [{**one, "test": score} for score in (80.0, 82.0, 75.0)]
    assert "| digits | UnICORNN | 3 | 79.0 | 75.0 |" in seeds.tables(found)["seeds"]


@pytest.mark.slow
def test_small_batches_of_each_size_are_shown(measured):
    names = ["H 32, T 100, 1 thread, B 2", "H 32, one step, 1 thread, B 1"]
    found = measured("small_batches", *names)
    assert all(set(one["seconds"]) == {"nn.LSTM", *small_batches.MODELS} for one in found)
    text = small_batches.tables(found)["small-batches"]
    assert "| LEM, H 32, T 100, 1 thread |  | " in text
    assert "| UnICORNN, H 32, one step, 1 thread |" in text


@pytest.mark.slow
@pytest.mark.skipif(not library.has_bfloat16(), reason="no products in bfloat16 here")
def test_bfloat16_has_larger_errors(measured, monkeypatch):
    digits = bfloat16.data_sets()["digits"]
    small = {"digits": tuple(part[:40] for part in digits)}
    monkeypatch.setattr(bfloat16, "data_sets", lambda: small)
    found = measured("bfloat16")
    for one in found:
        if one["case"].startswith("errors"):
            assert max(one["float32"]) < 1e-5 < max(one["bfloat16"]) < 0.1
    text = bfloat16.tables(found)["bfloat16"]
    assert "| CoRNN, bfloat16 |" in text and "| digits, LEM |" in text


@pytest.mark.slow
def test_costs_of_shards_and_computed_gains_are_shown(measured):
    found = measured("scaling", "shards, first run", "shards, second run", "a training step")
    tables = scaling.tables(found)
    assert tables["shards"].count(" ms |") == 6
    assert "| 64 cores |" in tables["speed-up"] and "| one GPU |" in tables["cost"]


def test_one_process_gains_nothing_and_a_share_of_one_sequence_is_the_end():
    assert scaling.speed_up(1, 64, 1.0, 0.1, 0.0) == pytest.approx(1)
    most = (1 + 0.1 * 64) / (1 + 0.1)
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(128, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.5) < most


def test_a_ring_pays_for_each_process_and_a_tree_for_each_doubling():
    assert scaling.reduce_formula(2, 0, 1.0, 1.0) == 2
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0) == 2046
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0, tree=True) == 20


def test_series_of_unequal_lengths_are_measured_and_shown(environment):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    lengths, y = rng.integers(20, 40, 20), np.array(["slow", "fast"] * 10)
    waves = [
        np.stack([np.sin(speed * np.arange(n)), rng.normal(size=n)], axis=1)
        for speed, n in zip(np.where(y == "slow", 0.3, 0.9), lengths, strict=True)
    ]
    arrays = {}
    for part in ("train", "test"):
        arrays |= {f"x_{part}": np.concatenate(waves).astype("f4"), f"y_{part}": y}
        arrays |= {f"offsets_{part}": np.cumsum([0, *lengths])}
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
