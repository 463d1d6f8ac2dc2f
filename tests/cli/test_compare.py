import html
import shlex
import shutil
import sys

import numpy as np
import pytest

from anharmonic.cli.compare import task_named
from anharmonic.data import write_shards
from anharmonic.train import RunEnvironment
from anharmonic.train.comparison import plan

QUICK = ("--epochs", "1", "--hidden-size", "4", "--threads", "1", "--no-progress")


def predict_command(out):
    (command,) = [line.strip() for line in out.splitlines() if "anharmonic predict" in line]
    return shlex.split(command)[1:]


def test_a_table_says_what_was_found(cli, data, runs, tmp_path):
    words = ("compare", data, "--models", "lem", "lstm", "--seeds", "0", "--valid-share", "0.2")
    code, out, err = cli(*words, *QUICK)
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert {"LEM", "LSTM", "(baseline)"} <= {line.split()[0] for line in lines if line}
    assert "on mine" in out and "sorted by validation" in out
    assert len(runs()) == 2
    (tmp_path / "compare.html").unlink()  # as after a kill before it was written
    assert cli(*words, *QUICK)[1] == out  # nothing to train
    assert "LSTM" in (tmp_path / "compare.html").read_text()


@pytest.mark.parametrize(("window", "advice"), [("200", "--folds 5"), ("20", "--valid-share 0.15")])
def test_advice_for_a_fair_ranking_is_accepted(done, tmp_path, window, advice):
    rng = np.random.default_rng(0)
    count, steps = (20, 40) if window == "200" else (2, 400)
    y = np.arange(steps) // 10 % 2 * np.ones((count, 1), int)
    np.savez(tmp_path / "mine.npz", x=rng.normal(size=(count, steps)) + 9 * y, y=y)
    words = ("compare", str(tmp_path / "mine.npz"), "--models", "gru", "lstm", "--seeds", "0")
    words = (*words, "--window", window, *QUICK[2:], "--epochs", "9", "--lr", "0.02")
    assert f"Use {advice} for a fair ranking." in " ".join(done(*words).split())
    done(*words, *advice.split())


def test_a_folder_of_recordings(done, tmp_path):
    rng = np.random.default_rng(0)
    for number in range(24):
        folder = tmp_path / "mine" / ("up", "down")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        wave = np.sin(np.arange(30 + number) * (0.2, 0.9)[number % 2] + rng.uniform(0, 6))
        np.save(folder / f"s{number // 2}_{number}.npy", wave)
    words = ("--models", "resonators", "lem", "--seeds", "0", "--group-pattern", r"/(s\d+)_")
    out = done("compare", "mine", *words, *QUICK)
    assert "of mine" in out and "(baseline)" in out and "Resonators" in out
    done(*predict_command(out)[:2], "mine", "--output", "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 25


def test_shards(done, tmp_path):
    rng = np.random.default_rng(0)
    part = [(rng.normal(size=(60, 5, 1)), np.arange(60) % 2)]
    write_shards(tmp_path / "mine", {"train": part, "valid": part, "test": part})
    words = ("--models", "lstm", "--seeds", "0", "--steps-per-epoch", "3", *QUICK)
    _, folder, new, *_ = predict_command(done("compare", "mine", *words))
    assert new == "NEW.npz"
    assert "The run made 3 optimiser steps." in done("diagnose", folder, "--file", "mine")


def test_progress_is_said_and_the_command_that_is_printed_predicts(cli, data, tmp_path):
    words = ("--models", "lem", "lstm", "--seeds", "0", "1", "--epochs", "1", "--threads", "1")
    code, out, err = cli("compare", data, *words, "--out", "my 'runs'")
    said = err.splitlines()
    assert said[0].startswith("mine.npz: 40 sequences (34 train, 0 valid, 6 test)"), said[0]
    chosen = said[said.index("Chosen from the data:") + 1 :]
    assert chosen[0].startswith("* all models: batch_size 16") and "* LEM: dt 0.5" in chosen
    assert err.count("batch_size") == 1 and "test accuracy" in err
    (place,) = (n for n, line in enumerate(said) if line.startswith("4 trainings; "))
    assert "estimated time: " in said[place] and said[place + 1] == "[1/4] LEM, seed 0"
    assert max(map(len, said[: place + 1])) <= 80
    command = predict_command(out)
    page = html.unescape((tmp_path / "compare.html").read_text())
    assert code == 0 and shlex.join(command) in page
    shutil.copy(data, tmp_path / f"NEW{data.suffix}")
    assert "wrote predictions.csv" in cli(*command)[1]


def test_a_failure_is_said_and_the_others_stand(cli, refused, data):
    words = ("compare", data, "--models", "lem", "graphcon", "--seeds", "0", *QUICK)
    code, out, _ = cli(*words)
    assert code == 1 and "LEM" in out and "failed: GraphCON: " in out
    words = ("compare", data, "--models", "graphcon", "--seeds", "0", *QUICK)
    assert "GraphCON" in refused(*words)


def test_a_graph_is_known_by_what_is_in_the_file(data, tmp_path):
    graph = tmp_path / "graph.npz"
    np.savez(graph, x=np.eye(3), edge_index=np.zeros((2, 1), int), y=np.arange(3))
    found = [task_named(name) for name in (str(graph), str(data), "Digits")]
    assert found == [("graph", graph), ("file", data), ("digits", None)]


def test_models_that_stream_and_resonators_where_scikit_learn_is(done, data, runs, monkeypatch):
    pytest.importorskip("sklearn")
    here = RunEnvironment(file=data)
    made = plan("file", here)
    assert next(iter(made.recipes)) == "Resonators" and made.notes == ()
    assert "difference" not in made.recipes["Resonators"].run.task_options
    found = plan("file", here, streaming=True).recipes
    assert found["LEM"].run.model_options["bidirectional"] is False
    assert found["Resonators"].run.task_options["elapsed"] == "ignore"
    done("compare", data, "--streaming", "--models", "lem", "--seeds", "0", *QUICK)
    assert runs()[0].model_options["bidirectional"] is False
    monkeypatch.setitem(sys.modules, "sklearn", None)
    (note,) = plan("file", here).notes
    assert note.startswith("Resonators is left out") and "scikit-learn" in note
    with pytest.raises(ImportError):
        plan("file", here, models=["resonators"])
