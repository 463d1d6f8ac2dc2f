import csv
import io
import re

import numpy as np
import pytest
import torch

from anharmonic.cli.predict import csv_text, evaluation_text
from anharmonic.data.scores import score_table
from anharmonic.train.evaluation import Evaluation
from anharmonic.train.predictions import Ahead, Predictions

TRUTH = torch.tensor([[1.0], [2.0]])


def rows(text):
    return list(csv.reader(io.StringIO(text)))


def ahead(*times):
    """Forecasts of 1 at these times, a row for each series."""
    steps = Ahead(len(times[0]), ("a",), times=np.array(times))
    return Predictions(None, (), np.ones((len(times), steps.horizon), "f4"), ahead=steps)


CASES = {
    "values": (Predictions(None, (), np.array([[1.5]], "f4")), "index,prediction|0,1.5"),
    "several values": (
        Predictions(None, (), np.array([[1.5, 2.0]], "f4")),
        "index,prediction_0,prediction_1|0,1.5,2",
    ),
    "a row per step": (
        Predictions(None, (), [np.array([[1.0], [2.0]], "f4"), np.array([[3.0]], "f4")]),
        "index,step,prediction|0,0,1|0,1,2|1,0,3",
    ),
    "times as numbers": (
        ahead([0.1, 2], [1700000847, 1.7e9 + 0.5], [-7, 1e6], [1700004923.25, 7.90000011771917]),
        "index,step,time,a|0,1,0.1,1|0,2,2,1|1,1,1700000847,1|1,2,1700000000.5,1|2,1,-7,1"
        "|2,2,1000000,1|3,1,1700004923.25,1|3,2,7.90000012,1",
    ),
    "minutes as days": (
        ahead(738000 + np.arange(3) / 1440),
        "index,step,time,a|0,1,738000,1|0,2,738000.0006944,1|0,3,738000.0013889,1",
    ),
    "ten thousand times a second": (
        ahead(1.7e9 + np.arange(3) / 1e4),
        "index,step,time,a|0,1,1700000000,1|0,2,1700000000.0001,1|0,3,1700000000.0002,1",
    ),
    "one step ahead": (
        ahead([1.7e9 + 0.1 * 39]),
        "index,step,time,a|0,1,1700000003.9,1",
    ),
    "what is no time": (
        ahead([np.nan, 1e-300, 2.0]),
        "index,step,time,a|0,1,nan,1|0,2,1e-300,1|0,3,2,1",
    ),
    "a date that is not known": (
        ahead(np.array(["NaT", "3024-01-31"], "M8[us]")),
        "index,step,time,a|0,1,NaT,1|0,2,3024-01-31,1",
    ),
    "nanoseconds": (
        ahead(np.array(["2024-01-31T00:00:00", "2024-01-31T00:00:00.000000001"], "M8[ns]")),
        "index,step,time,a|0,1,2024-01-31T00:00:00.000000000,1|0,2,2024-01-31T00:00:00.000000001,1",
    ),
    "times as dates of one precision": (
        ahead([np.datetime64("2024-01-31T12:30:00")], [np.datetime64("2024-01-31T12:30:00.5")]),
        "index,step,time,a|0,1,2024-01-31T12:30:00.000,1|1,1,2024-01-31T12:30:00.500,1",
    ),
}


@pytest.mark.parametrize(("found", "expected"), CASES.values(), ids=CASES)
def test_a_table_of_predictions(found, expected):
    assert "|".join(map(",".join, rows(csv_text(found)))) == expected


def test_a_run_predicts_and_is_evaluated_in_tables_and_a_file(
    cli, done, refused, data, train_quickly, tmp_path
):
    folder, out = train_quickly("lem", data)
    assert "test accuracy" in out
    assert f"anharmonic predict runs/{folder.name} NEW.npz --output predictions.csv" in out
    out = done("predict", folder, data, "--output", "predictions.csv")
    assert out == "wrote predictions.csv: 40 rows\n"
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert lines[0] == 'index,prediction,p_high,"p_low, <b>"' and len(lines) == 41
    threads, before = ("--threads", "1"), torch.get_num_threads()
    assert done("predict", folder, data, "--output", "-", *threads).splitlines() == lines
    assert torch.get_num_threads() == before
    arrays = dict(np.load(data))
    np.savez(tmp_path / "new.npz", **arrays, groups=np.arange(len(arrays["y"])))
    out = done("predict", folder, "new.npz", "--evaluate")
    assert re.search(rf"^{len(arrays['y'])} answers +model +baseline \(always '\w+'\)$", out, re.M)
    assert re.search(r"^accuracy +[\d.]+ % +[\d.]+ %$", out, re.M)
    assert re.search(r"^macro AUROC +[\d.]+ +0.5$", out, re.M)
    for name, count in zip(*np.unique(arrays["y"], return_counts=True), strict=True):
        assert re.search(rf"^{name} +([\d.]+ % +){{3}}[\d.]+ +{count}$", out, re.M)
    assert re.search(r"^true class / predicted +", out, re.M)
    low, high = map(float, re.search(r"interval of the accuracy: (\S+) to (\S+) %", out).groups())
    assert low < float(re.search(r"^accuracy +([\d.]+)", out, re.M)[1]) < high
    with open(tmp_path / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["target"] for row in rows] == [str(name) for name in arrays["y"]]
    _, out, err = cli("predict", folder, "new.npz", "--evaluate", "--output", "-")
    assert out.startswith("index,") and "baseline" in err
    np.savez(tmp_path / "bare.npz", x=arrays["x"])
    err = refused("predict", folder, "bare.npz", "--evaluate", "--output", "none.csv")
    assert re.fullmatch(".*keys of bare.npz must be x and y.*add the targets.*\n", err)
    assert not (tmp_path / "none.csv").exists()


def test_a_model_that_is_not_better_is_called_so():
    near, far = (score_table("value", torch.tensor([[v], [0.0]]), TRUTH) for v in (1.0, 5.0))
    nothing = Predictions(None, (), np.zeros((2, 1), "f4"))
    for model, baseline, said in ((far, near, True), (near, far, False)):
        text = evaluation_text(Evaluation(nothing, model, baseline, "their mean"))
        assert ("NOT clearly better" in text) == said


def test_the_interval_of_answers_at_every_step_counts_sequences():
    values = [np.array([[0.9, 0.1], [0.2, 0.8]], "f4"), np.array([[0.9, 0.1]] * 98, "f4")]
    scores = score_table("class", torch.from_numpy(np.concatenate(values)), torch.arange(100) % 2)
    targets = [np.array(["a", None]), np.array(["a", "b"] * 49)]
    found = Predictions(None, ("a", "b"), values, targets=targets)
    text = evaluation_text(Evaluation(found, scores, scores, "always 'a'"))
    assert "95 % interval of the accuracy from 2 sequences: 9.8 to 90.9 %" in text


@pytest.mark.parametrize(
    ("word", "written"),
    [
        *((word, f"'{word}") for word in ("=1+1", "@SUM(A1)", "+cmd|x", "-cmd|x", "\t=1")),
        *((word, word) for word in ("-1", "+2.5", "-1e-3", "plain", "a=b")),
        ("a\rb", "a b"),
        ("a\0b", "a b"),
    ],
)
def test_spreadsheets_compute_nothing_and_tables_do_not_break(word, written):
    found = Predictions((word,), (word, "b"), np.array([[0.75, 0.25]], "f4"), ids=(word,))
    head, first = rows(csv_text(found))
    assert first[1:3] == [written, written]
    if written == "a b":
        assert head[3] == "p_a b"
