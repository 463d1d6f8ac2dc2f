"""Quick runs: cases of each question are measured, and its tables show them."""

import os
from argparse import Namespace

import numpy as np
import pytest
import torch

import compiled
import equal_time
import learning
import memory
import multivariate
import scaling
import seeds
import small_batches
from anharmonic.train import estimate
from harness import isolated, results
from harness.speed import Case

can_reset_the_peak = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)


@pytest.mark.slow
def test_small_batches_of_each_size(measured):
    names = ["H 32, T 100, 1 thread, B 2", "H 32, one step, 1 thread, B 1"]
    found = measured("small_batches", *names)
    assert all(set(one["seconds"]) == {"nn.LSTM", *small_batches.MODELS} for one in found)
    text = small_batches.tables(found)["small-batches"]
    assert "| LEM, H 32, T 100, 1 thread |  | " in text
    assert "| UnICORNN, H 32, one step, 1 thread |" in text


@pytest.mark.fast("a GRU as a function")
@pytest.mark.parametrize("name", ["MinimalGate", "a GRU as a function"])
def test_a_step_is_compiled_and_looped(measured, name, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # takes seconds, tested by it
    text = compiled.tables(measured("compiled", f"{name}; B 32, H 128, T 1,000"))["compiled"]
    other = {"MinimalGate": "torch.compile", "a GRU as a function": "nn.GRU"}[name]
    assert f"| layer; batch, units, steps | compiled | loop | {other} | nn.LSTM |" in text


def test_the_gru_as_a_function_is_that_of_torch():
    torch.manual_seed(0)
    ours, theirs = compiled.FunctionGRU(3, 4), torch.nn.GRU(3, 4)
    ours.load_state_dict(theirs.state_dict())
    ours.compiled = False
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])


@can_reset_the_peak
@pytest.mark.slow
def test_a_step_of_ones_own_through_a_million_time_steps_takes_under_5_mb():
    chunked, stored = (
        isolated.run(compiled.long_step, steps=1_000_000, policy=policy)["megabytes"]
        for policy in ("chunked", "stored")
    )
    # A float of every neuron and step: the measure sees it.
    assert chunked < 5 and stored > 128


def test_memory_of_every_case(measured):
    pytest.importorskip("torch_geometric", reason="the convolution is PyG's")
    found = measured("memory")
    # The kernel counts pages in batches: a step that needs nothing may end a little below zero.
    assert all(one["is_finite"] and one["peak_mb"] > -1 for one in found)
    tables = memory.tables(found)
    assert all(f"| {title} |" in tables["memory"] for title in memory.SEQUENCES)
    assert "| GraphCON, Adjacency, checkpoint |" in tables["graph-memory"]
    assert tables["large-graph-memory"].count(" MB ") == 4
    assert "NOT" not in "".join(tables.values())
    found[0]["is_finite"] = False
    assert "NOT FINITE" in memory.tables(found)["memory"]


@can_reset_the_peak
@pytest.mark.slow
def test_the_peak_is_that_of_the_step_and_grows_with_its_length():
    cases = [Case("nn.LSTM", 1, 8, 128, steps) for steps in (1000, 3000)]
    short, long = (isolated.run(memory.sequence_step, case=case)["peak_mb"] for case in cases)
    # At least output, gates, cells and the gradient of the output are held.
    assert short > 4 * 1000 * 8 * 128 * 7 / 1e6
    assert 2.5 < long / short < 3.5


@pytest.mark.slow
def test_a_process_that_fails_says_why():
    with pytest.raises(ValueError, match="reversible"):
        isolated.run(memory.sequence_step, case=Case("LEM", 1, 1, 4, 3, memory="reversible"))


def test_what_is_stored_beats_the_baseline():
    for one in results.read("learning"):
        name, _, model = one["case"].partition(", ")
        if name in learning.RULES and model in learning.OURS:
            assert np.mean(one["accuracy"]) > one["baseline"] + 15, one["case"]


@pytest.fixture
def unequal():
    """A set of slow and fast waves of 5 to 8 steps beside noise, ten of each in both parts."""
    rng, y = np.random.default_rng(0), np.array(["slow", "fast"] * 10)
    lengths = [5, 8, *rng.integers(5, 9, 18)]
    speeds = np.where(y == "slow", 0.3, 1.5)
    waves = [np.sin(speed * np.arange(n)) for speed, n in zip(speeds, lengths, strict=True)]
    x = np.concatenate(waves).astype("f4")
    x = np.stack([x, 0.1 * rng.normal(size=len(x)).astype("f4")], axis=1)
    one = {"x": x, "offsets": np.cumsum([0, *lengths]), "y": y}
    return {f"{key}_{part}": of for part in ("train", "test") for key, of in one.items()}


def test_networks_on_a_set_of_a_folder(tmp_path, measured, unequal):
    np.savez(tmp_path / "Coffee.npz", **unequal)
    rows = learning.tables(measured("learning", "Coffee, LEM"))["learning-others"].splitlines()
    row = next(line for line in rows if line.startswith("| Coffee"))
    assert "20 / 20, 5-8, 2, 2" in row and row.count("|") == 8


def test_resonators_on_several_channels_of_unequal_lengths(measured, monkeypatch, unequal):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(learning, "load", lambda name: unequal)
    (one,) = measured("multivariate", "watch_imu, resonators")
    assert one["accuracy"] == [1.0]
    text = multivariate.tables([{**one, "accuracy": [1.0, 0.5]}])["multivariate"]
    assert "| watch_imu | 20 / 20, 5-8, 2, 2 | 75.0 (50.0-100.0), " in text


@pytest.mark.papers
def test_networks_on_a_graph(measured, real_data):
    real_data("geom_texas.npz", "graph")
    pytest.importorskip("torch_geometric", reason="the convolution is PyG's")
    (one,) = measured("learning", "texas, PlainGNN")
    stored = next(r for r in results.read("learning") if r["case"] == one["case"])
    assert one["baseline"] == pytest.approx(stored["baseline"])
    assert len(one["accuracy"]) == 3 and one["accuracy"] != one["baseline"]


def test_digits_are_cut_as_the_page_says_and_need_no_other_package(tmp_path):
    assert "digits, LEM" in learning.cases(Namespace(quick=True, data=tmp_path))
    arrays = learning.load("digits")
    assert [len(arrays[f"y_{part}"]) for part in ("train", "test")] == [1438, 359]
    assert set(np.diff(arrays["offsets_test"])) == {64}


def test_a_seed_is_trained_and_the_worst_is_shown(measured, monkeypatch):
    monkeypatch.setattr(seeds, "MODELS", {"digits": ("CoRNN", "UnICORNN")})
    (one,) = measured("seeds", "digits, UnICORNN, seed 3")
    assert (one["task"], one["model"], one["seed"]) == ("digits", "UnICORNN", 3)
    found = [{**one, "test": score} for score in (80.0, 82.0, 75.0)]
    assert "| digits | UnICORNN | 3 | 79.0 | 75.0 |" in seeds.tables(found)["seeds"]


@pytest.mark.papers
def test_the_time_decides_the_epochs(measured, monkeypatch):
    monkeypatch.setattr(equal_time, "TASKS", {"digits": (60, {})})
    monkeypatch.setattr(estimate, "expected_seconds", lambda run, *_: run.epochs / 3)
    (one,) = measured("equal_time", "digits, UnICORNN, seed 1")
    assert (one["model"], one["seed"], one["epochs"]) == ("UnICORNN", 1, 3)
    found = [{**one, "test": score, "seconds": 9.0} for score in (80.0, 82.0)]
    table = equal_time.tables(found)["equal-time"]
    assert "| digits | 60 | - | 81.0 ± 1.4 (3, 9 s) | - | - |" in table


@pytest.mark.slow
def test_costs_of_shards_and_computed_gains(measured):
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
