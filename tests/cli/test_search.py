import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.cli.search import _with, train_command
from anharmonic.cli.train import read
from anharmonic.data import make_task
from anharmonic.train import read_results
from anharmonic.train.recipe import recipe
from anharmonic.train.trials import BestTrial

pytest.importorskip("optuna", reason="the search is Optuna's")
SMALL = "--length 8 --steps-per-epoch 2 --valid-size 8 --test-size 8 --epochs 2"
QUICK = (*SMALL.split(), "--hidden-size", "4", "--num-layers", "1", "--threads", "1")


def test_the_best_trial_is_a_command_that_runs(cli, done, tmp_path):
    words = ("lem", "adding", *QUICK, "--storage=my trials.db", "--no-progress")
    code, out, err = cli("search", *words, "--trials", "2")
    assert code == 0 and err == ""
    results = read_results(tmp_path / "runs" / "searches" / "results.jsonl")
    best = min(results, key=lambda result: result.valid)
    first, line = out.splitlines()
    assert first == f"best of 2 trials: validation {best.valid:.6g}"
    said = shlex.split(line)
    assert said[:2] == ["anharmonic", "train"] and "trials" not in line
    asked = read(said[2:])
    assert (asked.given["lr"], asked.given["clip_norm"]) == (best.run.lr, best.run.clip_norm)
    assert asked.given["model_options"]["dt"] == best.run.model_options["dt"]
    # What was given is not searched.
    assert {result.run.model_options["hidden_size"] for result in results} == {4}
    assert cli("search", *words, "--trials", "2")[1] == out  # nothing to do
    more = cli("search", *words[:-1], "--trials", "3")[2]
    assert re.search(r"^trial 3 of 3: (validation \S+|stopped.*); best \S+$", more, re.M)
    assert "trial 2" not in more
    done(*said[1:])


def test_the_command_trains_the_model_of_the_best_trial():
    task, given = make_task("adding", {"length": 100}), {"model_options": {}, "task_options": {}}
    run = recipe("LEM", task, {"model_options": {"dt": 0.5}}).run
    best = BestTrial(replace(run, model_options=run.model_options | {"dt": 0.01}), {"dt": 0.01},
                     valid=0.1, trials=1)  # fmt: skip
    words = shlex.split(
        train_command(best, ["lem", "adding"], lambda values: _with("LEM", task, given, values))
    )
    # With so small a dt alone, the recipe would leave chrono_length out.
    assert read(words[2:]).given["model_options"] == {"dt": 0.01, "chrono_length": 100}


def test_a_small_file_is_judged_by_folds(cli, data, runs):
    words = ("--epochs", "1", "--hidden-size", "4", "--trials", "1", "--threads", "1")
    code, out, err = cli("search", "gru", data, *words, "--seed", "7", "--streaming")
    assert code == 0 and "1 trial, judged by 3 folds; time: at most" in err
    found = runs("runs/searches")
    assert sorted(run.task_options["fold"] for run in found) == [0, 1, 2]
    assert {run.seed for run in found} == {7}
    assert not any(run.model_options["bidirectional"] for run in found)
    assert "--streaming" in out.splitlines()[1].split()
    first, line = out.splitlines()
    assert first.startswith("best of 1 trial:") and "fold" not in line


def test_what_cannot_be_folded_is_judged_by_a_validation_part(cli, done, tmp_path):
    y = np.arange(400)[None] // 10 % 2
    np.savez(tmp_path / "one.npz", x=np.sin(np.arange(400.0))[None] * y, y=y)
    words = ("--window", "20", "--epochs", "1", "--hidden-size", "4", "--trials", "1")
    code, out, err = cli("search", "gru", str(tmp_path / "one.npz"), *words, "--threads", "1")
    assert code == 0 and "1 trial, judged by validation" in err
    done(*shlex.split(out.splitlines()[1])[1:])
