import numpy as np
import pytest
import sklearn.metrics as measures
import torch

from anharmonic.data.metrics import accuracy_interval
from anharmonic.data.scores import ScoreTable, score_table


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
