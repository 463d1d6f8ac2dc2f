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


def test_whole_set_without_dropout():
    model = Noisy()
    sizes = [3, 1]
    batches = Batches(
        2, lambda i: Batch(torch.full((sizes[i], 1, 1), 2.0 + i), torch.zeros(sizes[i], 1), None)
    )
    state = torch.get_rng_state()
    value = evaluate(model, batches, AddingProblem(), torch.device("cpu"))
    assert value.metric == value.loss == pytest.approx((3 * 4 + 9) / 4)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())


def test_nothing_to_measure_on_is_refused():
    with pytest.raises(ValueError, match="known targets must be at least one; got 0; give data"):
        detailed_scores(Noisy(), Batches(0, lambda i: None), AddingProblem())


def test_mode_comes_back_after_an_error():
    model = Noisy()

    def broken(index):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        evaluate(model, Batches(1, broken), AddingProblem(), torch.device("cpu"))
    assert model.training


class Answering(torch.nn.Module):
    """Gives the inputs back."""

    def forward(self, x, *others):
        return x


@pytest.fixture
def per_step():
    """Two batches of classes per step; what is padding is wrong."""
    task = AddingProblem()
    task.target, task.metric, task.class_names = "class", "accuracy", ("a", "b")
    right = torch.tensor([[9.0, 0.0], [0.0, 9.0]])  # a score of both classes for each class
    first = Batch(
        right[torch.tensor([[0, 1, 0], [1, 0, 0]])], torch.tensor([[0, 1, 1], [0, 1, 1]]), None
    )
    first = first._replace(lengths=torch.tensor([2, 1]))
    second = Batch(right[torch.tensor([[1, 1]])], torch.tensor([[1, 0]]), None)
    return task, Batches(2, [first, second].__getitem__)


def test_classes_of_all_real_steps(per_step):
    task, batches = per_step
    found = detailed_scores(Answering(), batches, task)
    assert (found.count, found.confusion) == (5, ((1, 2), (0, 2)))
    assert found.metrics["accuracy"] == 60.0
    assert found.classes[0] == ("a", 100.0, pytest.approx(100 / 3), 50.0, 3, pytest.approx(2 / 3))
    assert found.metrics["accuracy"] == evaluate(Answering(), batches, task, CPU).metric


def test_values_of_all_real_steps():
    x, y = torch.zeros(2, 3, 1), torch.tensor([[[1.0], [2.0], [9.0]], [[3.0], [9.0], [9.0]]])
    batch = Batch(x, y, torch.tensor([2, 1]))
    found = detailed_scores(Answering(), Batches(1, lambda i: batch), AddingProblem())
    assert (found.count, found.metrics["mse"], found.metrics["mae"]) == (3, 14 / 3, 2.0)
    assert found.metrics["r2"] == pytest.approx(1 - 14 / 2)


def test_nodes_that_count():
    graph = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3)
    y, rows = torch.tensor([0, 1, 1]), torch.tensor([2, 0])
    part = NodeDataset(torch.tensor([[2.0, 1.0]] * 3), graph, y, rows)
    task = AddingProblem()
    task.target, task.metric, task.class_names = "class", "accuracy", ("a", "b")
    assert detailed_scores(Answering(), part.batches(1), task).confusion == ((1, 0), (1, 0))
