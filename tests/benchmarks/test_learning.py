"""Networks beside MiniRocket: what is stored is good, and a set can be measured."""

from argparse import Namespace

import numpy as np

import learning
from harness import results


def test_what_is_stored_beats_the_baseline():
    for one in results.read("learning"):
        name, _, model = one["case"].partition(", ")
        if name in learning.RULES and model in learning.OURS:
            assert np.mean(one["accuracy"]) > one["baseline"] + 15, one["case"]


def test_it_trains_on_a_set_of_a_folder(tmp_path, monkeypatch, environment):
    rng = np.random.default_rng(0)
    arrays = {}
    for part in ("train", "test"):
        lengths = rng.integers(5, 9, 12)
        arrays[f"x_{part}"] = rng.random((lengths.sum(), 1)).astype("f4")
        arrays[f"offsets_{part}"] = np.concatenate([[0], np.cumsum(lengths)])
        arrays[f"y_{part}"] = np.array(["a", "b"] * 6)
    np.savez(tmp_path / "Coffee.npz", **arrays)
    cases = learning.cases(Namespace(quick=True, data=tmp_path))
    found = {"case": "Coffee, LEM", **cases["Coffee, LEM"](), **environment}
    rows = learning.tables([found])["learning-others"].splitlines()
    row = next(line for line in rows if line.startswith("| Coffee"))
    assert "12 / 12, 5-8, 1, 2" in row and row.count("|") == 8


def test_digits_are_cut_as_the_page_says():
    arrays = learning.load("digits")
    assert [len(arrays[f"y_{part}"]) for part in ("train", "test")] == [1438, 359]
    assert set(np.diff(arrays["offsets_test"])) == {64}
