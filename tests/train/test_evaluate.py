import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.data.graph_batch import NodeDataset
from anharmonic.data.synthetic import AddingProblem
from anharmonic.ops.graph import Adjacency
from anharmonic.train.evaluate import detailed_scores, evaluate

CPU = torch.device("cpu")


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x, lengths):
        assert not torch.is_grad_enabled()
        return self.dropout(x[:, 0])


def test_whole_set_without_dropout_and_the_mode_comes_back():
    model, sizes = Noisy(), [3, 1]
    batches = Batches(
        2, lambda i: Batch(torch.full((sizes[i], 1, 1), 2.0 + i), torch.zeros(sizes[i], 1), None)
    )
    state = torch.get_rng_state()
    value = evaluate(model, batches, AddingProblem(), CPU)
    assert value.metric == value.loss == pytest.approx((3 * 4 + 9) / 4)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())
    with pytest.raises(IndexError):
        evaluate(model, Batches(1, [].__getitem__), AddingProblem(), CPU)
    assert model.training


def test_nothing_to_measure_on_is_refused():
    with pytest.raises(ValueError, match="known targets must be at least one; got 0; give data"):
        detailed_scores(Noisy(), Batches(0, lambda i: None), AddingProblem())


class Answering(torch.nn.Module):
    """Gives the inputs back."""

    def forward(self, x, *others):
        return x


@pytest.fixture
def classes():
    """A task of two classes."""
    task = AddingProblem()
    task.target, task.metric, task.class_names = "class", "accuracy", ("a", "b")
    return task


def test_classes_of_all_real_steps(classes):
    right = torch.tensor([[9.0, 0.0], [0.0, 9.0]])  # a score of both classes for each class
    batches = [  # what is padding is wrong
        Batch(right[torch.tensor(said)], torch.tensor(true), lengths)
        for said, true, lengths in (
            ([[0, 1, 0], [1, 0, 0]], [[0, 1, 1], [0, 1, 1]], torch.tensor([2, 1])),
            ([[1, 1]], [[1, 0]], None),
        )
    ]
    batches = Batches(2, batches.__getitem__)
    found = detailed_scores(Answering(), batches, classes)
    assert (found.count, found.confusion) == (5, ((1, 2), (0, 2)))
    assert found.metrics["accuracy"] == 60.0
    assert found.classes[0] == ("a", 100.0, pytest.approx(100 / 3), 50.0, 3, pytest.approx(2 / 3))
    assert found.metrics["accuracy"] == evaluate(Answering(), batches, classes, CPU).metric


def test_values_of_all_real_steps():
    x, y = torch.zeros(2, 3, 1), torch.tensor([[[1.0], [2.0], [9.0]], [[3.0], [9.0], [9.0]]])
    batch = Batch(x, y, torch.tensor([2, 1]))
    found = detailed_scores(Answering(), Batches(1, lambda i: batch), AddingProblem())
    assert (found.count, found.metrics["mse"], found.metrics["mae"]) == (3, 14 / 3, 2.0)
    assert found.metrics["r2"] == pytest.approx(1 - 14 / 2)


def test_nodes_that_count(classes):
    graph = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3)
    y, rows = torch.tensor([0, 1, 1]), torch.tensor([2, 0])
    part = NodeDataset(torch.tensor([[2.0, 1.0]] * 3), graph, y, rows)
    assert detailed_scores(Answering(), part.batches(1), classes).confusion == ((1, 0), (1, 0))
