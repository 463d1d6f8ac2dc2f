import math

import pytest
import torch

from anharmonic.data.base import Batch
from anharmonic.data.graph_batch import GraphBatch
from anharmonic.data.metrics import TaskMetric
from anharmonic.ops.graph import Adjacency


def batch(y: torch.Tensor, lengths: torch.Tensor | None = None) -> Batch:
    return Batch(torch.zeros(y.shape[0], 1, 1), y, lengths)


def test_accuracy_counts_sequences_not_batches() -> None:
    metric = TaskMetric("accuracy")
    metric.update(torch.tensor([[0.0, 1], [0, 1], [0, 1]]), batch(torch.tensor([1, 1, 1])))
    metric.update(torch.tensor([[0.0, 1]]), batch(torch.tensor([0])))
    assert metric.value() == 75.0
    assert metric.higher_is_better


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mse", 4.0), ("rmse", 2.0), ("nrmse", 2.0 / math.sqrt(10 / 3)), ("nmse", 4.0), ("mae", 2.0)],
)
def test_errors_are_over_the_whole_set(name: str, expected: float) -> None:
    # Errors 2, 2 and 2; targets 1, 3 and 0; batches of two sizes.
    metric = TaskMetric(name)
    metric.update(torch.tensor([[3.0], [5.0]]), batch(torch.tensor([[1.0], [3.0]])))
    metric.update(torch.tensor([[-2.0]]), batch(torch.tensor([[0.0]])))
    assert metric.value() == pytest.approx(expected, rel=1e-12)
    assert not metric.higher_is_better


@pytest.mark.parametrize("name", ["mse", "rmse", "nrmse", "mae"])
def test_padding_does_not_count(name: str) -> None:
    gen = torch.Generator().manual_seed(0)
    y, p = torch.randn(2, 4, 3, generator=gen), torch.randn(2, 4, 3, generator=gen)
    padded, bare = TaskMetric(name), TaskMetric(name)
    padded.update(p, batch(y, torch.tensor([4, 2])))
    bare.update(p[:1], batch(y[:1]))
    bare.update(p[1:, :2], batch(y[1:, :2]))
    assert padded.value() == pytest.approx(bare.value(), rel=1e-12)
    wrong = TaskMetric(name)
    wrong.update(p, batch(y))
    assert wrong.value() != pytest.approx(bare.value(), rel=1e-3)


def test_lengths_do_not_matter_for_one_value_per_sequence() -> None:
    metric = TaskMetric("mse")
    metric.update(torch.zeros(2, 3), batch(torch.ones(2, 3), torch.tensor([1, 5])))
    assert metric.value() == 1.0


def test_sums_are_float64() -> None:
    # In float32, adding 1e-8 to 1 ten thousand times would change nothing.
    metric = TaskMetric("mse")
    metric.update(torch.tensor([[1.0]]), batch(torch.zeros(1, 1)))
    for _ in range(1000):
        metric.update(torch.full((1, 1), 1e-4), batch(torch.zeros(1, 1)))
    assert metric.value() * 1001 == pytest.approx(1 + 1000 * 1e-8, rel=1e-10)


@pytest.mark.parametrize("name", ["accuracy", "f1", "mse", "rmse", "nrmse", "nmse", "mae"])
def test_nan_stays_nan(name: str) -> None:
    y = torch.tensor([0, 1]) if name == "accuracy" else torch.ones(2, 2)
    metric = TaskMetric(name)
    metric.update(torch.tensor([[1.0, 0.0], [math.nan, 0.0]]), batch(y))
    metric.update(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), batch(y))
    assert math.isnan(metric.value())


def test_nan_in_padding_is_ignored() -> None:
    metric = TaskMetric("mse")
    p = torch.tensor([[[1.0], [math.nan]]])
    metric.update(p, batch(torch.zeros(1, 2, 1), torch.tensor([1])))
    assert metric.value() == 1.0


def test_nrmse_of_zero_targets_is_nan() -> None:
    metric = TaskMetric("nrmse")
    metric.update(torch.ones(1, 1), batch(torch.zeros(1, 1)))
    assert math.isnan(metric.value())


def test_scale_multiplies_the_value() -> None:
    for name, expected in (("nmse", 4.0 / 0.25), ("mae", 2.0 / 0.25), ("rmse", 2.0 / 0.25)):
        metric = TaskMetric(name, scale=1 / 0.25)
        metric.update(torch.tensor([[3.0], [1.0]]), batch(torch.tensor([[1.0], [3.0]])))
        assert metric.value() == pytest.approx(expected, rel=1e-12)


def test_f1_counts_labels_over_all_batches() -> None:
    # A mean of the batches' values would be 50.
    metric = TaskMetric("f1")
    metric.update(torch.tensor([[1.0, 1.0, -1.0]]), batch(torch.tensor([[1.0, 1.0, 0.0]])))
    metric.update(torch.tensor([[-1.0, -1.0, -1.0]]), batch(torch.tensor([[1.0, 0.0, 0.0]])))
    assert metric.value() == pytest.approx(100 * 2 * 2 / (2 * 2 + 0 + 1))
    assert metric.higher_is_better


def test_f1_without_any_label_is_nan() -> None:
    metric = TaskMetric("f1")
    metric.update(-torch.ones(2, 3), batch(torch.zeros(2, 3)))
    assert math.isnan(metric.value())


def test_metrics_take_graphs() -> None:
    graph = Adjacency(torch.tensor([[0], [1]]), 3)
    y, rows = torch.tensor([0, 1]), torch.tensor([2, 0])
    accuracy = TaskMetric("accuracy")
    accuracy.update(torch.eye(2), GraphBatch(torch.zeros(3, 1), graph, y, rows, None))
    assert accuracy.value() == 100.0
    error = TaskMetric("nmse", scale=2.0)
    values = torch.tensor([[1.0], [0.0]])
    error.update(torch.zeros(2, 1), GraphBatch(torch.zeros(3, 1), graph, values, rows, None))
    assert error.value() == 1.0


def test_errors() -> None:
    with pytest.raises(ValueError, match="scale must be a finite number"):
        TaskMetric("mse", 0.0)
    with pytest.raises(ValueError, match=r"prediction must be \[2, 1\] as y; got shape \[2\]"):
        TaskMetric("f1").update(torch.zeros(2), batch(torch.zeros(2, 1)))
    with pytest.raises(ValueError, match=r"metric must be one of .* did you mean 'accuracy'"):
        TaskMetric("acuracy")
    with pytest.raises(ValueError, match=r"mse must be fed .*; got 0; call update"):
        TaskMetric("mse").value()
    with pytest.raises(ValueError, match=r"prediction must be \[2, 1\] as y; got .*\[2\]"):
        TaskMetric("mse").update(torch.zeros(2), batch(torch.zeros(2, 1)))
    with pytest.raises(ValueError, match=r"prediction must be \[B, C\] and y \[B\]"):
        TaskMetric("accuracy").update(torch.zeros(2, 5, 3), batch(torch.tensor([0, 1])))


def test_cross_entropy_is_the_mean_over_samples() -> None:
    metric = TaskMetric("cross_entropy")
    assert not metric.higher_is_better
    for rows in (slice(0, 2), slice(2, 3)):
        scores = torch.tensor([[0.0, 0.0], [1.0, 3.0], [2.0, -1.0]])[rows]
        y = torch.tensor([0, 1, 1])[rows]
        metric.update(scores, Batch(torch.zeros(len(y), 1, 1), y, None))
    exact = (math.log(2) + math.log1p(math.exp(-2)) + math.log1p(math.exp(3))) / 3
    assert metric.value() == pytest.approx(exact, rel=1e-12)
    with pytest.raises(ValueError, match=r"prediction must be \[B, C\] and y \[B\]"):
        metric.update(torch.zeros(2), Batch(torch.zeros(2, 1, 1), torch.zeros(2), None))


def test_counts_are_exact_beyond_float32() -> None:
    # 200 * 700,999 is no number of float32.
    scores = torch.ones(1000, 701)
    scores[0, 0] = -1.0
    metric = TaskMetric("f1")
    metric.update(scores, batch(torch.ones(1000, 701)))
    assert metric.value() == 200.0 * 700_999 / (700_999 + 701_000)


@pytest.mark.parametrize("name", ["accuracy", "cross_entropy"])
def test_classes_per_step_are_counted_without_padding(name: str) -> None:
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([[0, 1, 2], [3, 0, 0]])
    flat, stepped = TaskMetric(name), TaskMetric(name)
    real = [(0, 0), (0, 1), (0, 2), (1, 0)]
    single = Batch(torch.zeros(4, 1, 1), torch.stack([y[place] for place in real]), None)
    flat.update(torch.stack([scores[place] for place in real]), single)
    scores[1, 1:] = torch.nan
    stepped.update(scores, Batch(torch.zeros(2, 3, 1), y, torch.tensor([3, 1])))
    assert stepped.value() == flat.value()
    whole = TaskMetric(name)
    whole.update(scores[:1], Batch(torch.zeros(1, 3, 1), y[:1], None))
    assert whole.value() >= 0


def test_balanced_accuracy_is_the_mean_recall_over_all_batches():
    metric = TaskMetric("balanced_accuracy")
    scores = torch.tensor([[2.0, 0, 0], [2, 0, 0], [0, 2, 0], [2, 0, 0]])
    for rows, y in ((scores[:2], [0, 0]), (scores[2:], [1, 1])):
        metric.update(rows, Batch(torch.zeros(2, 1, 1), torch.tensor(y), None))
    assert metric.value() == 75.0 and metric.higher_is_better  # of the classes that occur
    metric.update(scores[:1] * math.nan, Batch(torch.zeros(1, 1, 1), torch.tensor([0]), None))
    assert math.isnan(metric.value())
