"""Accuracy: what is read, split, judged and compared."""

from argparse import Namespace

import numpy as np
import pytest

import early
import equal_time
import learning
import multivariate
import ucr
from anharmonic.data import save_npz, sequences_from
from anharmonic.train import estimate
from harness import results

pytest.importorskip("sklearn")


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
    x = [np.stack([wave, 0.1 * rng.normal(size=len(wave))], axis=1) for wave in waves]
    return dict.fromkeys(("train", "test"), sequences_from(x, y))


def test_networks_on_a_set_of_a_folder(tmp_path, measured, unequal):
    save_npz(tmp_path / "Coffee.npz", unequal)
    table = learning.tables(measured("learning", "Coffee, LEM"))["learning-others"]
    (row,) = (line for line in table.splitlines() if line.startswith("| Coffee"))
    assert "20 / 20, 5-8, 2, 2" in row and row.endswith("| - | - | - |")


def test_resonators_on_several_channels_of_unequal_lengths(measured, monkeypatch, unequal):
    monkeypatch.setattr(learning, "load", lambda name: unequal)
    (one,) = measured("multivariate", "watch_imu, resonators")
    assert one["accuracy"] == [1.0]
    assert "| watch_imu | 20 / 20, 5-8, 2, 2 |" in multivariate.tables([one])["multivariate"]
    rows = ucr.padded(learning.parts_of(unequal))["train"]  # what rivals read
    assert rows.shape == (20, 2, ucr.SHORTEST)
    assert rows[0, :, 1:5].all() and not rows[0, :, 5:].any()


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
    data = learning.load("digits")
    assert [len(data[part]) for part in ("train", "test")] == [1438, 359]
    assert set(data["test"].lengths) == {64}


@pytest.mark.papers
def test_the_time_decides_the_epochs(monkeypatch):
    monkeypatch.setattr(equal_time, "TASKS", {"digits": (6, {})})
    monkeypatch.setattr(estimate, "expected_seconds", lambda run, *_: 2 * run.epochs)
    measure, *given = equal_time.cases(Namespace(quick=False))["digits, UnICORNN, seed 1"]
    one = measure(*given)
    assert (one["model"], one["seed"], one["epochs"]) == ("UnICORNN", 1, 3)
    table = equal_time.tables([{**one, **results.environment([])}])["equal-time"]
    assert f"| digits | 6 | - | {one['test']:.1f} (3, " in table


def test_archive_files_and_stored_arrays_are_read_alike(tmp_path):
    rows = np.array([[1, 0.5, np.nan, 1.5, np.nan], [2, 3.0, 4.0, 5.0, 6.0]])
    (tmp_path / "Text").mkdir()
    for part in ("TRAIN", "TEST"):
        np.savetxt(tmp_path / "Text" / f"Text_{part}.tsv", rows, delimiter="\t")
    arrays = {f"x_{part}": rows[:, 1:] for part in ("train", "test")}
    np.savez(tmp_path / "Arrays.npz", **arrays, y_train=rows[:, 0], y_test=rows[:, 0])
    assert ucr.names_in(tmp_path) == ["Arrays", "Text"]
    for name in ("Arrays", "Text"):
        series, classes = ucr.load(tmp_path, name)["test"]
        assert [one.tolist() for one in series] == [[0.5, 1.0, 1.5], [3.0, 4.0, 5.0, 6.0]]
        assert classes.tolist() == [1, 2]


def test_ranks_share_places_and_clear_differences_are_found():
    rng = np.random.default_rng(0)
    good = rng.uniform(0.7, 0.9, 40)
    accuracy = np.stack([good + 0.05, good, good + rng.normal(0, 0.001, 40)], axis=1)
    assert ucr.mean_ranks(np.array([[0.9, 0.8, 0.9]])).tolist() == [1.5, 3, 1.5]
    apart = ucr.different(accuracy)
    assert apart[0, 1] and apart[0, 2] and not apart[1, 2]


@pytest.fixture
def waves(tmp_path):
    """Slow and fast waves in the folder of the test, as a set of a name."""

    def write(name):
        rng, y = np.random.default_rng(0), np.arange(20) % 2
        x = np.sin(np.where(y, 0.3, 0.9)[:, None] * np.arange(30))
        x = x + 0.1 * rng.normal(size=x.shape)
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)

    return write


def test_resonators_are_measured_and_summed_up(tmp_path, waves, measured):
    waves("Waves")
    methods = ("resonators", "resonators 0.1")
    found = measured("ucr", *(f"Waves, {method}, seed 0" for method in methods))
    assert "| resonators 0.1 | 100.00 % | 1.50 | 0, 1, 0 |" in ucr.tables(found)["ucr"]
    ucr.draw(found).savefig(tmp_path / "ranks.png")
    with pytest.raises(SystemExit, match="--data FOLDER"):
        ucr.cases(Namespace(quick=True, data=None))


def test_a_series_is_answered_at_the_first_sure_share_or_at_the_end():
    sure, unsure = [0.05, 0.95], [0.55, 0.45]
    chances = np.array([[unsure, unsure]] * 3 + [[sure, unsure]] * 7)
    found = early.answers(chances, np.array(["a", "b"]), np.array(["b", "a"]))
    assert found["accuracy"] == [0.5] * 3 + [1.0] * 7
    assert found["stops"]["0.9"] == {"accuracy": 1.0, "seen": pytest.approx((0.4 + 1.0) / 2)}
    assert found["stops"]["0.5"] == {"accuracy": 0.5, "seen": pytest.approx(0.1)}


def test_early_answers_are_measured_and_shown(tmp_path, waves, measured):
    waves("Trace")
    (ours,) = measured("early", "Trace, resonators")
    assert all(ours[kind]["accuracy"][-1] > 0.9 for kind in early.KINDS)
    assert "give the same" in early.tables([ours])["early"]
    early.draw(results.read("early")).savefig(tmp_path / "early.png")
