import numpy as np
import pytest
import sklearn.metrics
import torch

from anharmonic.data.scores import accuracy_interval, score_table


def drawn(count, width, seed=0):
    gen = torch.Generator().manual_seed(seed)
    shares = torch.randn(count, width, generator=gen).double().softmax(1)
    return shares, torch.randint(0, width, (count,), generator=gen)


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_are_measured_as_scikit_learn_does(classes):
    shares, y = drawn(200, classes)
    found = score_table("class", shares, y)
    true, guess = y.numpy(), shares.argmax(1).numpy()
    # torchmetrics computes the curve in float32.
    area = sklearn.metrics.roc_auc_score(
        true, shares[:, 1] if classes == 2 else shares, multi_class="ovr"
    )
    assert found.metrics == pytest.approx(
        {
            "accuracy": 100 * sklearn.metrics.accuracy_score(true, guess),
            "balanced_accuracy": 100 * sklearn.metrics.balanced_accuracy_score(true, guess),
            "f1": 100 * sklearn.metrics.f1_score(true, guess, average="macro"),
            "auroc": area,
        },
        rel=1e-6,
    )
    columns = sklearn.metrics.precision_recall_fscore_support(true, guess)
    for place, one in enumerate(found.classes):
        precision, recall, f1, support = (column[place] for column in columns)
        expected = (100 * precision, 100 * recall, 100 * f1, support)
        assert one[1:] == pytest.approx(expected, rel=1e-12)
    matrix = sklearn.metrics.confusion_matrix(true, guess)
    np.testing.assert_array_equal(found.confusion, matrix)
    assert found.count == 200 and not found.left_out


def test_a_class_that_does_not_occur():
    shares, y = drawn(60, 4)
    y[y == 2] = 1
    shares[:, 3] = 0  # never predicted
    found = score_table("class", shares, y, ("a", "b", "c", "d"))
    assert "auroc" not in found.metrics and "'c'" in found.left_out["auroc"]
    true, guess = y.numpy(), shares.argmax(1).numpy()
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        balanced = sklearn.metrics.balanced_accuracy_score(true, guess)
    f1 = sklearn.metrics.f1_score(true, guess, average="macro", zero_division=0)
    assert found.metrics["balanced_accuracy"] == pytest.approx(100 * balanced, rel=1e-12)
    assert found.metrics["f1"] == pytest.approx(100 * f1, rel=1e-12)
    assert found.classes[2].recall == 0 == found.classes[2].support
    assert found.classes[3].precision == 0 < found.classes[3].support


def test_labels_are_measured_as_scikit_learn_does():
    gen = torch.Generator().manual_seed(0)
    scores, y = torch.randn(100, 3, generator=gen), torch.rand(100, 3, generator=gen) > 0.4
    found = score_table("labels", scores, y.float())
    true, guess = y.numpy(), scores.numpy() > 0
    assert found.metrics == pytest.approx(
        {
            "accuracy": 100 * (true == guess).mean(),
            "f1_micro": 100 * sklearn.metrics.f1_score(true, guess, average="micro"),
            "f1": 100 * sklearn.metrics.f1_score(true, guess, average="macro"),
            "auroc": sklearn.metrics.roc_auc_score(true, scores.numpy()),
        },
        rel=1e-6,
    )
    assert [one.support for one in found.classes] == true.sum(0).tolist()
    y[:, 1] = True
    assert "'1'" in score_table("labels", scores, y.float()).left_out["auroc"]


@pytest.mark.parametrize("outputs", [1, 3])
def test_values_are_measured_as_scikit_learn_does(outputs):
    gen = torch.Generator().manual_seed(0)
    y = torch.randn(50, outputs, generator=gen).double()
    guess = y + 0.1 * torch.randn(50, outputs, generator=gen)
    mse = sklearn.metrics.mean_squared_error(y, guess)
    assert score_table("value", guess, y).metrics == pytest.approx(
        {
            "mse": mse,
            "rmse": mse**0.5,
            "mae": sklearn.metrics.mean_absolute_error(y, guess),
            "r2": sklearn.metrics.r2_score(y, guess),
        },
        rel=1e-6,
    )


@pytest.mark.parametrize("count", [1, 4])
def test_no_share_of_a_spread_that_is_not_there(count):
    found = score_table("value", torch.zeros(count, 1), torch.ones(count, 1))
    assert list(found.metrics) == ["mse", "rmse", "mae"] and list(found.left_out) == ["r2"]


@pytest.mark.parametrize(
    ("prediction", "y", "said"),
    [
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64), "y must be of shape"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), "got 0"),
        (torch.full((3, 2), torch.nan), torch.zeros(3, dtype=torch.int64), "got 3"),
    ],
)
def test_what_cannot_be_measured(prediction, y, said):
    with pytest.raises(ValueError, match=said):
        score_table("class", prediction, y)


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


def test_intervals_narrow_with_the_count():
    widths = [accuracy_interval(80.0, count) for count in (10, 100, 10_000)]
    low, high = zip(*widths, strict=True)
    assert low[0] < low[1] < low[2] < 80 < high[2] < high[1] < high[0]
