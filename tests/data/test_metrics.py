"""Metrics over batches, and the scores of an evaluation as scikit-learn measures them."""

import math

import numpy as np
import pytest
import sklearn.metrics as measures
import torch

from anharmonic.data.base import Batch
from anharmonic.data.graph_batch import GraphBatch
from anharmonic.data.metrics import TaskMetric, accuracy_interval
from anharmonic.data.scores import ScoreTable, score_table
from anharmonic.ops.graph import Adjacency


def batch(y, lengths=None):
    return Batch(torch.zeros(len(y), 1, 1), y, None if lengths is None else torch.tensor(lengths))


def measured(name, *fed, scale=1.0):
    """The metric of pairs of a prediction and a batch."""
    metric = TaskMetric(name, scale)
    for prediction, one in fed:
        metric.update(prediction, one)
    return metric.value()


def pairs(*rows):
    """Pairs of scores and a batch, of lists."""
    return [(torch.tensor(scores), batch(torch.tensor(y))) for scores, y in rows]


RIGHT, THREE = ([[0.0, 1]] * 3, [1, 1, 1]), [([[2.0, 0, 0]] * 2, [0, 0])]
THREE.append(([[0.0, 2, 0], [2, 0, 0]], [1, 1]))
UNSURE = pairs(([[0.0, 0], [1, 3]], [0, 1]), ([[2.0, -1]], [1]))
ERRORS = {"mse": 4.0, "rmse": 2.0, "nrmse": 2 / math.sqrt(10 / 3), "nmse": 4.0, "mae": 2.0}
OFF_BY_TWO = pairs(([[3.0], [5.0]], [[1.0], [3.0]]), ([[-2.0]], [[0.0]]))
EXACT = (math.log(2) + math.log1p(math.exp(-2)) + math.log1p(math.exp(3))) / 3


@pytest.mark.parametrize(
    ("name", "fed", "expected"),
    [
        ("accuracy", pairs(RIGHT, ([[0.0, 1]], [0])), 75.0),  # of sequences, not of batches
        ("mse", [(torch.zeros(2, 3), batch(torch.ones(2, 3), [1, 5]))], 1.0),
        # A mean of the batches' values would be 50.
        ("f1", pairs(([[1.0, 1, -1]], [[1.0, 1, 0]]), ([[-1.0, -1, -1]], [[1.0, 0, 0]])), 80.0),
        ("cross_entropy", UNSURE, EXACT),
        ("bits_per_character", UNSURE, EXACT / math.log(2)),
        ("perplexity", UNSURE, math.exp(EXACT)),
        ("balanced_accuracy", pairs(*THREE), 75.0),  # of the classes that occur
        ("balanced_accuracy", pairs(*THREE, ([[math.nan] * 3], [0])), math.nan),
        *((name, OFF_BY_TWO, value) for name, value in ERRORS.items()),
        ("nrmse", pairs(([[1.0]], [[0.0]])), math.nan),  # nothing to compare with
        ("f1", pairs(([[-1.0] * 3] * 2, [[0.0] * 3] * 2)), 0.0),  # as in scikit-learn
        ("f1", pairs(([[math.nan] * 3] * 2, [[0.0] * 3] * 2)), math.nan),
    ],
)
def test_what_is_counted_over_all_batches(name, fed, expected):
    for scale in (1.0, 4.0):
        found = measured(name, *fed, scale=scale)
        assert found == pytest.approx(scale * expected, rel=1e-12, nan_ok=True)
    is_share = name in ("accuracy", "balanced_accuracy", "f1")
    assert TaskMetric(name).higher_is_better == is_share


@pytest.mark.parametrize("name", ["mse", "nrmse", "mae"])
def test_padding_does_not_count(name):
    gen = torch.Generator().manual_seed(0)
    y, p = torch.randn(2, 4, 3, generator=gen), torch.randn(2, 4, 3, generator=gen)
    bare = measured(name, (p[:1], batch(y[:1])), (p[1:, :2], batch(y[1:, :2])))
    assert measured(name, (p, batch(y))) != pytest.approx(bare, rel=1e-3)
    p[1, 2:] = math.nan
    assert measured(name, (p, batch(y, [4, 2]))) == pytest.approx(bare, rel=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "f1", "mse", "rmse", "nrmse", "nmse", "mae"])
def test_nan_stays_nan(name):
    y = batch(torch.tensor([0, 1]) if name == "accuracy" else torch.ones(2, 2))
    bad = torch.tensor([[1.0, 0.0], [math.nan, 0.0]])
    assert math.isnan(measured(name, (bad, y), (torch.ones(2, 2), y)))


def test_metrics_take_graphs():
    graph = Adjacency(torch.tensor([[0], [1]]), 3)
    classes = GraphBatch(torch.zeros(3, 1), graph, torch.tensor([0, 1]), torch.tensor([2, 0]), None)
    assert measured("accuracy", (torch.eye(2), classes)) == 100.0


@pytest.mark.parametrize(
    ("name", "prediction", "y", "said"),
    [
        ("f1", (2,), (2, 1), r"prediction must be \[2, 1\] as y; got shape \[2\]"),
        ("mse", (2,), (2, 1), r"prediction must be \[2, 1\] as y; got .*\[2\]"),
        ("accuracy", (2, 5, 3), (2,), r"prediction must be \[B, C\] and y \[B\]"),
        ("cross_entropy", (2,), (2,), r"prediction must be \[B, C\] and y \[B\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(name, prediction, y, said):
    with pytest.raises(ValueError, match=said):
        measured(name, (torch.zeros(prediction), batch(torch.zeros(y))))


def test_what_is_no_metric_or_was_fed_nothing_is_refused():
    with pytest.raises(ValueError, match="scale must be a finite number"):
        TaskMetric("mse", 0.0)
    with pytest.raises(ValueError, match=r"metric must be one of .* did you mean 'accuracy'"):
        TaskMetric("acuracy")
    with pytest.raises(ValueError, match=r"mse must be fed .*; got 0; call update"):
        TaskMetric("mse").value()


def test_sums_and_counts_are_exact_beyond_float32():
    # There, adding 1e-8 to 1 a thousand times would change nothing.
    small = [(torch.full((1, 1), 1e-4), batch(torch.zeros(1, 1)))] * 1000
    found = measured("mse", (torch.tensor([[1.0]]), batch(torch.zeros(1, 1))), *small)
    assert found * 1001 == pytest.approx(1 + 1000 * 1e-8, rel=1e-10)
    scores = torch.ones(1000, 701)  # 200 * 700,999 is no number of float32
    scores[0, 0] = -1.0
    found = measured("f1", (scores, batch(torch.ones(1000, 701))))
    assert found == 200.0 * 700_999 / (700_999 + 701_000)


@pytest.mark.parametrize("name", ["accuracy", "cross_entropy", "bits_per_character"])
def test_classes_per_step_are_counted_without_padding(name):
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    y, real = torch.tensor([[0, 1, 2], [3, 0, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]]).bool()
    flat = measured(name, (scores[real], batch(y[real])))
    scores[~real] = torch.nan
    assert measured(name, (scores, batch(y, [3, 1]))) == flat
    assert measured(name, (scores[:1], batch(y[:1]))) >= 0  # of equal length


# Scores of an evaluation.


def calibration_error(confidence, hit):
    """ECE with ten bins, as its definition says."""
    total = 0.0
    for low in np.arange(10) / 10:
        inside = (confidence > low) & (confidence <= low + 0.1)
        if inside.any():
            total += inside.mean() * abs(hit[inside].mean() - confidence[inside].mean())
    return total


def drawn(count, width, seed=0):
    gen = torch.Generator().manual_seed(seed)
    shares = torch.randn(count // 2, width, generator=gen).double().softmax(1)
    shares = shares.repeat(2, 1)  # each twice: equal scores are in order by half
    return shares, torch.randint(0, width, (count,), generator=gen)


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_are_measured_as_scikit_learn_does(classes):
    shares, y = drawn(200, classes)
    found = score_table("class", shares, y)
    true, guess, p = y.numpy(), shares.argmax(1).numpy(), shares.numpy()
    # torchmetrics computes the curve in float32.
    area = measures.roc_auc_score(true, p[:, 1] if classes == 2 else p, multi_class="ovr")
    brier = np.square(p - np.eye(classes)[true]).sum(1).mean()
    if classes == 2:
        brier = measures.brier_score_loss(true, p[:, 1])
    expected = {
        "accuracy": 100 * measures.accuracy_score(true, guess),
        "balanced_accuracy": 100 * measures.balanced_accuracy_score(true, guess),
        "f1": 100 * measures.f1_score(true, guess, average="macro"),
        "auroc": area,
        "ece": calibration_error(p.max(1), true == guess),
        "brier": brier,
    }
    assert found.metrics == pytest.approx(expected, rel=1e-6)
    assert found.count == 200 and not found.left_out
    columns = measures.precision_recall_fscore_support(true, guess)
    for place, one in enumerate(found.classes):
        precision, recall, f1, support = (column[place] for column in columns)
        expected = (100 * precision, 100 * recall, 100 * f1, support)
        assert one[1:5] == pytest.approx(expected, rel=1e-12)
        area = measures.roc_auc_score(true == place, p[:, place])
        assert one.auroc == pytest.approx(area, rel=1e-12)
    np.testing.assert_array_equal(found.confusion, measures.confusion_matrix(true, guess))


def test_a_class_that_does_not_occur():
    shares, y = drawn(60, 4)
    y[y == 2] = 1
    shares[:, 3] = 0  # never predicted
    found = score_table("class", shares, y, ("a", "b", "c", "d"))
    assert "auroc" not in found.metrics and "'c'" in found.left_out["auroc"]
    true, guess = y.numpy(), shares.argmax(1).numpy()
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        balanced = measures.balanced_accuracy_score(true, guess)
    f1 = measures.f1_score(true, guess, average="macro", zero_division=0)
    assert found.metrics["balanced_accuracy"] == pytest.approx(100 * balanced, rel=1e-12)
    assert found.metrics["f1"] == pytest.approx(100 * f1, rel=1e-12)
    assert found.classes[2].recall == 0 == found.classes[2].support
    assert found.classes[3].precision == 0 < found.classes[3].support


def test_labels_are_measured_as_scikit_learn_does():
    gen = torch.Generator().manual_seed(0)
    scores, y = torch.randn(100, 3, generator=gen), torch.rand(100, 3, generator=gen) > 0.4
    found = score_table("labels", scores, y.float())
    true, guess, p = y.numpy(), scores.numpy() > 0, scores.double().sigmoid().numpy()
    areas = [measures.roc_auc_score(true[:, k], p[:, k]) for k in range(3)]
    confidence = np.maximum(p, 1 - p).ravel()
    expected = {
        "accuracy": 100 * (true == guess).mean(),
        "f1_micro": 100 * measures.f1_score(true, guess, average="micro"),
        "f1": 100 * measures.f1_score(true, guess, average="macro"),
        "auroc": measures.roc_auc_score(true, scores.numpy()),
        "ece": calibration_error(confidence, (true == guess).ravel()),
        "brier": np.mean([measures.brier_score_loss(true[:, k], p[:, k]) for k in range(3)]),
    }
    assert found.metrics == pytest.approx(expected, rel=1e-6)
    assert [one.auroc for one in found.classes] == pytest.approx(areas)
    assert [one.support for one in found.classes] == true.sum(0).tolist()
    y[:, 1] = True
    assert "'1'" in score_table("labels", scores, y.float()).left_out["auroc"]


def guessed(outputs):
    """True values, and guesses that are off by a tenth of their spread."""
    gen = torch.Generator().manual_seed(0)
    y = torch.randn(50, outputs, generator=gen).double()
    return y, y + 0.1 * torch.randn(50, outputs, generator=gen)


@pytest.mark.parametrize("outputs", [1, 3])
def test_values_are_measured_as_scikit_learn_does(outputs):
    y, guess = guessed(outputs)
    mse, r2 = measures.mean_squared_error(y, guess), measures.r2_score(y, guess)
    mae = measures.mean_absolute_error(y, guess)
    table = score_table("value", guess, y, [*"abc"[:outputs]])
    expected = {"mse": mse, "rmse": mse**0.5, "mae": mae, "r2": r2}
    assert table.metrics == pytest.approx(expected, rel=1e-6)
    for k, one in enumerate(table.outputs):
        mse = measures.mean_squared_error(y[:, k], guess[:, k])
        mae = measures.mean_absolute_error(y[:, k], guess[:, k])
        expected = (mse**0.5, mae, measures.r2_score(y[:, k], guess[:, k]))
        assert (one.rmse, one.mae, one.r2) == pytest.approx(expected)
    assert [one.name for one in table.outputs] == [*"abc"[:outputs]]


def test_a_forecast_is_measured_by_channel_and_step():
    y, guess = guessed(3 * 2)  # two channels, three steps
    table = score_table("value", guess, y, ("a", "b"), horizon=3)
    for place, one in enumerate(table.outputs):
        true, said = y[:, place::2], guess[:, place::2]
        assert one.rmse == pytest.approx(measures.mean_squared_error(true, said) ** 0.5)
        assert one.r2 == pytest.approx(measures.r2_score(true, said))  # the mean over steps
        by_step = measures.mean_squared_error(true, said, multioutput="raw_values") ** 0.5
        assert one.rmse_by_step == pytest.approx(by_step)
    assert table.metrics["r2"] == pytest.approx(measures.r2_score(y, guess))
    assert ScoreTable.from_json(table.to_json()) == table
    with pytest.raises(ValueError, match="report must be"):
        ScoreTable.from_json('{"count": 3}')


def test_what_cannot_be_measured_is_left_out_or_refused():
    for count in (1, 4):
        found = score_table("value", torch.zeros(count, 1), torch.ones(count, 1))
        assert list(found.metrics) == ["mse", "rmse", "mae"] and list(found.left_out) == ["r2"]
    for shares, count, said in (
        (torch.zeros(3, 2), 2, "y must be of shape"),
        (torch.zeros(0, 2), 0, "got 0"),
        (torch.full((3, 2), torch.nan), 3, "got 3"),
    ):
        with pytest.raises(ValueError, match=said):
            score_table("class", shares, torch.zeros(count, dtype=torch.int64))


@pytest.mark.parametrize("right, count", [(0, 5), (1, 7), (18, 20), (250, 1000), (5, 5), (1, 1)])
def test_intervals_are_wilsons(right, count):
    """Its ends are where a test of that share would just not be refused."""
    low, high = (bound / 100 for bound in accuracy_interval(100 * right / count, count))
    assert 0 <= low <= right / count <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            distance = abs(right / count - end) / (end * (1 - end) / count) ** 0.5
            assert distance == pytest.approx(1.959964, rel=1e-9)
    assert high - low < 1
