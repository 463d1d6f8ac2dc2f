"""Many runs, some at a time: none twice, and one that fails or is held stops no other."""

import multiprocessing
import subprocess
import sys
from dataclasses import replace

import pytest

from anharmonic.train import rows as module
from anharmonic.train.folder import locked, run_folder
from anharmonic.train.results import read_results
from anharmonic.train.rows import Row, fit_rows, without_results

# Forked from a process that has imported PyTorch; the slow test starts them as users do.
FORKS = multiprocessing.get_context("forkserver")


def test_two_at_a_time_give_what_one_after_the_other_gives(
    tiny, environment, tmp_path, monkeypatch, outcome
):
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: FORKS)
    good = [Row(f"seed {seed}", tiny(epochs=1, seed=seed)) for seed in (0, 1)]
    assert without_results([*good, good[0]], []) == good
    assert fit_rows(good[:1], environment, say=lambda line: None) == []
    left = without_results(good, read_results(environment.results_path))
    assert left == good[1:] and fit_rows(left, environment, say=lambda line: None) == []
    bad = Row("bad", tiny(model_options={"dropout": 2.0}))
    elsewhere, said = replace(environment, out=tmp_path / "jobs"), []
    (failed,) = fit_rows([bad, *good], elsewhere, 2, say=said.append)
    assert failed.startswith("bad: dropout must be")
    assert len(said) == 3 and said[2].startswith("[3/3] ")
    one, other = (outcome(row.run, environment) for row in good)
    assert [outcome(row.run, elsewhere) for row in good] == [one, other] and one[0] != other[0]


def test_a_row_that_fails_or_is_another_processs_does_not_stop_the_others(
    tiny, environment, capsys
):
    bad, held = Row("bad", tiny(model_options={"dropout": 2.0})), Row("held", tiny(epochs=1))
    free, said = Row("free", tiny(epochs=1, seed=4)), []
    with locked(run_folder(held.run, environment)):
        (failure,) = fit_rows([bad, held, free], environment, say=said.append, debug=True)
    assert failure.startswith("bad: dropout must be") and said[0] == "[1/3] bad"
    assert "Traceback" in capsys.readouterr().err
    assert sum("another process" in line for line in said) == 1
    assert [result.run for result in read_results(environment.results_path)] == [free.run]


def test_a_long_training_without_a_bar_says_now_and_then_that_it_goes_on(
    tiny, environment, monkeypatch
):
    monkeypatch.setattr(module, "_BETWEEN_LINES", 0.0)
    said = []
    fit_rows([Row("one", tiny(epochs=3))], environment, say=said.append)
    assert [line.split(",")[0].strip() for line in said[1:-1]] == ["epoch 1 of 3", "epoch 2 of 3"]
    assert "validation" in said[1]


def command(words):
    return [sys.executable, "-m", "anharmonic", *words.split()]


@pytest.mark.slow
def test_warnings_of_other_processes_look_as_those_of_this_one(tmp_path):
    head = "id,time,v,label\n"
    rows = [f"{i // 8},{i},{i % 3},{'ab'[i // 8 % 2]}\n" for i in range(96)]
    (tmp_path / "mine.csv").write_text(head + "".join(rows[:50]) + head + "".join(rows[50:]))
    words = "compare mine.csv --models lstm gru --seeds 0 --hidden-size 2 --epochs 1 --jobs 2"
    done = subprocess.run(command(words), cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("anharmonic: warning: ") == 3 and "UserWarning" not in done.stderr
