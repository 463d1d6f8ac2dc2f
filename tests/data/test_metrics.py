import math

import pytest
import torch

from anharmonic.data.base import Batch
from anharmonic.data.graph_batch import GraphBatch
from anharmonic.data.metrics import TaskMetric
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
        # Nothing to compare with.
        ("nrmse", pairs(([[1.0]], [[0.0]])), math.nan),
        ("f1", pairs(([[-1.0] * 3] * 2, [[0.0] * 3] * 2)), math.nan),
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
