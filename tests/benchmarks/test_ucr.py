"""The benchmark on UCR sets: reading, ranks, and what counts as different."""

from argparse import Namespace

import numpy as np
import pytest

import ucr

pytest.importorskip("sklearn")


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


def test_shorter_series_are_padded_in_every_channel():
    series = [np.ones((2, 12), np.float32), np.ones((2, 10), np.float32)]
    rows = ucr.padded({"train": (series, np.arange(2)), "test": (series, np.arange(2))})["train"]
    assert rows.shape == (2, 2, 12)
    assert rows[1, :, :10].all() and not rows[1, :, 10:].any()


def test_ranks_share_places_and_clear_differences_are_found():
    rng = np.random.default_rng(0)
    good = rng.uniform(0.7, 0.9, 40)
    accuracy = np.stack([good + 0.05, good, good + rng.normal(0, 0.001, 40)], axis=1)
    assert ucr.mean_ranks(np.array([[0.9, 0.8, 0.9]])).tolist() == [1.5, 3, 1.5]
    apart = ucr.different(accuracy)
    assert apart[0, 1] and apart[0, 2] and not apart[1, 2]


def test_sets_are_measured_and_summed_up(tmp_path, waves, measured):
    waves("Waves", 20)
    names = [f"Waves, {method}, seed 0" for method in ("resonators", "resonators 0.1")]
    found = measured("ucr", *names)
    assert all(one["accuracy"] > 0.9 for one in found)
    assert "| resonators 0.1 | 100.00 % | 1.50 | 0, 1, 0 |" in ucr.tables(found)["ucr"]
    ucr.draw(found).savefig(tmp_path / "ranks.png")
    assert (tmp_path / "ranks.png").stat().st_size > 1000
    with pytest.raises(SystemExit, match="--data FOLDER"):
        ucr.cases(Namespace(quick=True, data=None))
