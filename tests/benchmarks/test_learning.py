"""The page on models shows what the benchmark measured, and the benchmark runs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "learning.py"


@pytest.fixture
def learning(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import learning

    return learning


@pytest.mark.parametrize("name", ["learning", "learning-others"])
def test_the_page_shows_the_stored_numbers(learning, name):
    stored = json.loads((SCRIPT.parent / f"{name}.json").read_text())
    begin, end = learning.marks(name)
    before, _, rest = learning.PAGE.read_text(encoding="utf-8").partition(begin)
    shown = rest.partition(end)[0]
    rows = learning.table(stored["sets"], stored["seeds"], stored["machine"])
    assert before and shown == rows


def test_what_is_stored_beats_the_trivial_answer():
    stored = json.loads((SCRIPT.parent / "learning.json").read_text())
    for name, by_model in stored["sets"].items():
        for model in {"LEM", "CoRNN", "UnICORNN"} & set(by_model):
            mean = np.mean(by_model[model]["accuracy"])
            assert mean > by_model[model]["trivial"] + 15, (name, model)


def test_it_trains_on_the_sets_of_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {}
    for part in ("train", "test"):
        lengths = rng.integers(5, 9, 12)
        arrays[f"x_{part}"] = rng.random((lengths.sum(), 1)).astype("f4")
        arrays[f"offsets_{part}"] = np.concatenate([[0], np.cumsum(lengths)])
        arrays[f"y_{part}"] = np.array(["a", "b"] * 6)
    np.savez(tmp_path / "Noise.npz", **arrays)
    rival = {"Noise": {"accuracy": [50.0], "seconds": 1.0}}
    (tmp_path / "minirocket.json").write_text(json.dumps(rival))
    words = [str(tmp_path), "--out", str(tmp_path / "runs"), "--models", "LEM", "--seeds", "0"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words, "--epochs", "2"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| Noise"))
    assert "12 / 12, 5-8, 1, 2" in row and row.count("|") == 8
