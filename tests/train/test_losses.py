"""Losses of batches and of their shares, and metrics of a whole set."""

import math

import pytest
import torch
from torch.nn import functional

from anharmonic.data.base import Batch, Batches
from anharmonic.data.synthetic import AddingProblem
from anharmonic.data.tabular import TableBatch
from anharmonic.train.losses import count_entries, share_of, summed_loss, trivial_loss
from anharmonic.train.scoring import detailed_scores


def batches():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(5, 7, n, generator=generator) for n in (3, 4))
    lengths = torch.tensor([7, 2, 5, 1, 3])
    return {
        "cross_entropy": Batch(x, torch.tensor([0, 1, 3, 2, 1]), None),
        "squared_error": Batch(x, y[:, 0], lengths),
        "steps": Batch(x, y, None),
        "ragged": Batch(x, y, lengths),
    }


def prediction(kind, x):
    x = x if kind in ("steps", "ragged") else x.sum(1)
    return torch.sin(x @ torch.arange(12.0).reshape(3, 4))


def loss_of(kind):
    return kind if kind == "cross_entropy" else "squared_error"


USUAL = {
    "cross_entropy": functional.cross_entropy,
    "squared_error": functional.mse_loss,
    "binary_cross_entropy": functional.binary_cross_entropy_with_logits,
}


@pytest.mark.parametrize("kind", ["cross_entropy", "squared_error", "steps"])
def test_losses_are_the_usual_ones(kind):
    batch, loss = batches()[kind], loss_of(kind)
    output = prediction(kind, batch.x)
    mean = summed_loss(output, batch, loss) / count_entries(batch, loss)
    torch.testing.assert_close(mean, USUAL[loss](output, batch.y))


@pytest.mark.parametrize("lacking", [False, True])
@pytest.mark.parametrize("loss", USUAL)
def test_padding_and_steps_without_a_target_do_not_count(loss, lacking):
    batch = batches()["ragged"]
    real = torch.arange(7) < batch.lengths[:, None]
    known = real & ((torch.rand(5, 7) > 0.5) | (torch.arange(7) == 0)) if lacking else real
    outputs = 1 if loss == "cross_entropy" else 4
    if loss == "cross_entropy":
        y = torch.where(known, torch.randint(4, (5, 7)), -1 if lacking else 0)
    else:
        y = torch.where(known[..., None], (batch.y > 0).float(), math.nan)
    output = prediction("ragged", batch.x).masked_fill(~real[..., None], math.nan).requires_grad_()
    mine = batch._replace(y=y, known=known if lacking else None)
    total = summed_loss(output, mine, loss)
    assert count_entries(mine, loss) == outputs * int(known.sum())
    mean = USUAL[loss](output[known], y[known])
    torch.testing.assert_close(total / count_entries(mine, loss), mean)
    (gradient,) = torch.autograd.grad(total, output)
    assert gradient.isfinite().all() and (gradient[~known] == 0).all()


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["cross_entropy", "squared_error", "steps", "ragged"])
@pytest.mark.parametrize("world", [1, 2, 3, 5, 8])
def test_shares_add_up_to_the_batch(kind, world):
    target, batch = loss_of(kind), batches()[kind]
    weight = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()

    def gradient(part, factor):
        x = part.x.double()
        x = x if kind in ("steps", "ragged") else x.sum(1)
        part = part._replace(y=part.y if target == "cross_entropy" else part.y.double())
        (result,) = torch.autograd.grad(summed_loss(x @ weight, part, target) * factor, weight)
        return result

    whole = gradient(batch, 1.0 / count_entries(batch, target))
    shares = [share_of(batch, rank, world, target) for rank in range(world)]
    # What DistributedDataParallel does: the mean over devices.
    mean = sum(gradient(share.batch, share.weight) for share in shares) / world
    torch.testing.assert_close(mean, whole)
    assert {share.entries for share in shares} == {count_entries(batch, target)}
    assert all(len(share.batch.x) >= 1 for share in shares)


def test_shares_of_rows_stay_rows():
    batch = TableBatch(torch.randn(9, 3), torch.arange(9) % 2, None)
    shares = [share_of(batch, rank, 2, "cross_entropy").batch for rank in (0, 1)]
    assert [len(share.inputs) for share in shares] == [1, 1]
    assert torch.equal(torch.cat([share.x for share in shares]), batch.x)


@pytest.mark.parametrize(
    ("kind", "loss", "unit"),
    [
        ("squared_error", "squared_error", 4.0),
        ("ragged", "squared_error", 4.0),
        ("steps", "absolute_error", 2.0),
    ],
)
def test_errors_are_in_units_of_the_scale(kind, loss, unit):
    batch = batches()[kind]
    output = prediction(kind, batch.x)
    scaled = batch._replace(shift=torch.ones(5, 4), scale=torch.full((5, 4), 2.0))
    found, expected = (summed_loss(output, one, loss) for one in (scaled, batch))
    torch.testing.assert_close(unit * found, expected)
    part = share_of(scaled._replace(elapsed=torch.ones(5, 7)), 1, 2, loss).batch
    assert part.elapsed.shape == (3, 7) and part.scale.shape == (3, 4)


def best_constant(batches, task, width, **options):
    """The smallest mean loss of any constant, found by descent."""
    answer = torch.zeros(width, requires_grad=True)
    descent = torch.optim.LBFGS([answer], max_iter=200, line_search_fn="strong_wolfe")
    count = sum(count_entries(batch, task.loss) for batch in batches)

    def loss():
        descent.zero_grad()
        total = 0.0
        for batch in batches:
            shape = batch.y.shape if task.target == "class" else batch.y.shape[:-1]
            total += summed_loss(answer.expand(*shape, width), batch, task.loss, **options)
        (total / count).backward()
        return total / count

    descent.step(loss)
    return loss().item()


@pytest.fixture
def task():
    return AddingProblem()


@pytest.mark.covering
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 1.0, 3.0])])
@pytest.mark.parametrize("per_step", [False, True])
def test_the_trivial_loss_of_classes_is_the_least(task, smoothing, weights, per_step):
    task.target, task.output_size = "class", 3
    if per_step:  # what is after the end is of no class
        y, lengths = torch.tensor([[0, 0, 1], [2, 1, 1]]), torch.tensor([3, 1])
    else:
        y, lengths = torch.tensor([0, 0, 1, 2, 0]), None
    batches = [Batch(torch.zeros(len(y), 3, 1), y, lengths)]
    options = {"label_smoothing": smoothing, "class_weights": weights}
    found = trivial_loss(batches, task, **options)
    assert found == pytest.approx(best_constant(batches, task, 3, **options), rel=1e-5)


@pytest.mark.parametrize(("target", "metric"), [("value", "mse"), ("labels", "f1")])
def test_the_trivial_loss_of_numbers_is_the_least(task, target, metric):
    task.target, task.metric = target, metric
    parts = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]).split(2)
    batches = [Batch(torch.zeros(len(y), 3, 1), y, None) for y in parts]
    found = trivial_loss(batches, task)
    assert found == pytest.approx(best_constant(batches, task, 2), rel=1e-5)


@pytest.mark.parametrize(
    ("metric", "horizon", "scale", "expected"),
    [
        ("mae", 0, 1.0, 8 / 3),  # of the median
        ("mse", 1, 2.0, (0 + 0.25 + 16) / 3),  # of the last value, which is 1
        ("mae", 0, 2.0, 4 / 3),  # scaled targets that are no forecasts have a constant too
    ],
)
def test_the_trivial_loss_of_absolute_errors_and_of_changes(task, metric, horizon, scale, expected):
    task.metric, task.horizon = metric, horizon
    ones, y = torch.ones(3, 1), torch.tensor([[1.0], [2.0], [9.0]])
    batch = Batch(torch.zeros(3, 3, 1), y, None)
    if scale != 1.0:
        batch = batch._replace(shift=ones, scale=scale * ones)
    assert trivial_loss([batch], task) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["cross_entropy", "squared_error", "steps", "ragged"])
def test_whole_weights_are_repeated_sequences(kind):
    batch, weights, loss = batches()[kind], torch.tensor([1, 3, 2, 1, 2]), loss_of(kind)
    again = Batch(*(part if part is None else part.repeat_interleave(weights, 0) for part in batch))
    found = summed_loss(prediction(kind, batch.x), batch._replace(weight=weights.float()), loss)
    torch.testing.assert_close(found, summed_loss(prediction(kind, again.x), again, loss))


def test_scores_are_of_all_real_steps_and_leave_the_model_in_its_mode(task):
    class Answering(torch.nn.Module):
        def forward(self, x, *others):
            assert not (self.training or torch.is_grad_enabled())
            return x

    right = torch.tensor([[9.0, 0.0], [0.0, 9.0]])  # a score of both classes for each class
    said, true = torch.tensor([[0, 1, 0], [1, 0, 0]]), torch.tensor([[0, 1, 1], [0, 1, 1]])
    batch = Batch(right[said], true, torch.tensor([2, 1]))  # what is padding is wrong
    task.target, task.metric, task.class_names = "class", "accuracy", ("a", "b")
    model = Answering()
    found = detailed_scores(model, Batches(2, lambda i: batch), task)
    assert (found.count, found.confusion) == (6, ((2, 2), (0, 2))) and model.training
    assert found.metrics["accuracy"] == pytest.approx(100 * 4 / 6)
    with pytest.raises(ValueError, match="known targets must be at least one; got 0; give data"):
        detailed_scores(model, Batches(0, lambda i: batch), task)
