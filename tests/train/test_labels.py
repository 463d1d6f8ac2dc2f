"""Several labels of a sequence, and steps without a target: from a file to metrics."""

import csv
import dataclasses

import numpy as np
import pytest
import sklearn.metrics

from anharmonic.cli.predict import csv_text
from anharmonic.data.own import FileTask
from anharmonic.data.scores import ScoreTable
from anharmonic.train import Evaluation, Predictions, evaluate_run, predict, read_report

SMALL = {"model_options": {"hidden_size": 8}, "epochs": 10, "lr": 0.04}
SMALL |= {"input_noise": 0.0, "amplitude_noise": 0.0}


@pytest.fixture
def train(environment, filled):
    def make(path, **options):
        here = dataclasses.replace(environment, file=path)
        return filled("GRU", {**SMALL, "task_options": options}, here)

    return make


def labelled(count=80, seed=0):
    """Sequences [N, 10, 2]; a: channel 0 is high, b: channel 1 is."""
    rng = np.random.default_rng(seed)
    y = rng.random((count, 2)) < 0.4
    x = rng.normal(size=(count, 10, 2)) + 2.0 * y[:, None]
    return x.astype("f4"), y


def names_of(y, names="ab"):
    return ["|".join(np.array(list(names))[row]) or "|" for row in y]


def test_labels_in_columns_of_an_array(train, tmp_path):
    x, y = labelled()
    np.savez(tmp_path / "mine.npz", x=x, y=y.astype(int))
    result, folder, task = train(tmp_path / "mine.npz", target="labels")
    assert (result.metric, result.run.readout) == ("f1", "mean") and result.test > 80
    assert task.class_names == ("0", "1") and task.loss == "binary_cross_entropy"
    report = read_report(folder)
    assert [one.name for one in report.classes] == ["0", "1"]
    assert report.metrics["f1_micro"] == pytest.approx(result.test)
    # What predict says, measured by scikit-learn, is what evaluating says.
    new, truth = labelled(30, 1)
    np.savez(tmp_path / "new.npz", x=new, y=truth.astype(int))
    found = evaluate_run(folder, tmp_path / "new.npz")
    said = predict(folder, tmp_path / "new.npz").values > 0.5
    f1 = sklearn.metrics.f1_score(truth, said, average="micro")
    assert found.scores.metrics["f1_micro"] == pytest.approx(100 * f1)
    assert found.is_better and found.judged_by == "f1"
    assert list(found.predictions.labels) == names_of(said, "01")


def test_evaluating_judges_labels_by_the_metric_of_the_training():
    one, other = (
        ScoreTable(9, {"accuracy": 50.0, "f1": f1, "f1_micro": micro})
        for f1, micro in ((20.0, 60.0), (40.0, 30.0))
    )
    nothing = Predictions((), ("a", "b"), np.zeros((0, 2), "f4"))
    found = Evaluation(nothing, one, other, "each label's more frequent value")
    assert found.judged_by == "f1" and found.is_better
    assert not dataclasses.replace(found, scores=other, trivial=one).is_better


def test_labels_as_text_and_in_columns_of_a_table_are_the_same(train, tmp_path):
    x, y = labelled(40)
    head = ",".join(f"{c}_{t}" for c in "uv" for t in range(10))
    rows = [",".join(f"{v:.4f}" for v in one.T.ravel()) for one in x]
    texts = names_of(y)
    text = "\n".join([f"label,{head}", *(f"{t},{r}" for t, r in zip(texts, rows, strict=True))])
    (tmp_path / "text.csv").write_text(text)
    lines = [f"{int(a)},{int(b)},{r}" for (a, b), r in zip(y, rows, strict=True)]
    (tmp_path / "columns.csv").write_text("\n".join([f"a,b,{head}", *lines]))
    first = FileTask(tmp_path / "text.csv", target="labels")
    second = FileTask(tmp_path / "columns.csv", target="labels", target_column="a|b")
    assert first.class_names == second.class_names == ("a", "b")
    for one, other in zip(first.splits(), second.splits(), strict=True):
        assert (one.y == other.y).all() and (one.x == other.x).all()
    assert "labels a " in first.summary()
    _, folder, _ = train(tmp_path / "columns.csv", target="labels", target_column="a|b")
    assert evaluate_run(folder, tmp_path / "columns.csv").scores.count == 40
    (tmp_path / "none.csv").write_text("\n".join([head, *rows]))
    assert len(predict(folder, tmp_path / "none.csv").labels) == 40


@pytest.mark.parametrize(
    ("y", "said"), [([[0, 2], [1, 0]] * 10, "0 or 1"), (["|"] * 20, "at least one")]
)
def test_what_are_no_labels(tmp_path, y, said):
    np.savez(tmp_path / "mine.npz", x=np.random.default_rng(0).random((20, 5)), y=y)
    with pytest.raises(ValueError, match=said):
        FileTask(tmp_path / "mine.npz", target="labels")


def partly(path, name, y):
    """A long table of 12 recordings of 12 steps with a target at two of three."""
    value = y + 0.1 * np.random.default_rng(1).normal(size=y.shape)
    rows = [
        f"{i},{t},{value[i, t]:.3f},{'' if t % 3 == 2 else name(y[i, t])}"
        for i, t in np.ndindex(y.shape)
    ]
    path.write_text("\n".join(["id,time,a,label", *rows]))
    return path


NAMES = {
    "whole": str,
    "text": lambda v: "no yes".split()[v],
    "value": lambda v: f"{v + 0.5}",
    "labels": lambda v: "|" if v == 0 else "on|warm",
}


@pytest.mark.fast("text", "value", "labels")
@pytest.mark.parametrize("kind", NAMES)
def test_steps_without_a_target_are_left_out(train, tmp_path, kind):
    y = np.random.default_rng(0).integers(0, 2, (12, 12))
    path = partly(tmp_path / "mine.csv", NAMES[kind], y)
    result, folder, task = train(path, **({"target": "labels"} if kind == "labels" else {}))
    assert "33 % of the steps without a target" in task.summary() and task.readout == "all"
    count = task.sizes["test"] * 8
    assert read_report(folder).count == count
    assert result.tested == count * (2 if kind == "labels" else 1)
    assert result.test < 0.45 if kind == "value" else result.test > 80
    assert kind == "value" or len(task.class_names) == 2
    found = evaluate_run(folder, path)
    assert found.scores.count == 12 * 8
    values = found.predictions.values
    assert len(values) == 12 and len(values[0]) == 12  # predicted all the same
    for row in csv.DictReader(csv_text(found.predictions).splitlines()):
        step, number = int(row["step"]), int(row["index"])
        expected = "" if step % 3 == 2 else NAMES[kind](y[number, step])
        assert row["target"] == expected and row["prediction"]
