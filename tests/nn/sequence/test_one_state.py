"""The loop that the baselines share, on the simplest of recurrences: a sum."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from anharmonic.nn.sequence.one_state import OneStateLayer, OneStateODELayer
from anharmonic.nn.stability import StabilityWarning

F64 = torch.float64


class Sum(OneStateLayer):
    """h_n = h_{n-1} + V x_n."""

    def __init__(self, input_size=2, hidden_size=3, num_layers=1, **options):
        words = {"bias": False, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        super().__init__(input_size, hidden_size, num_layers, *{**words, **options}.values())
        self._make_layers(dtype=F64)

    def _shapes(self, layer, widths):
        return {"weight_ih": (self.hidden_size, widths[layer]), "bias": (self.hidden_size,)}

    def _initialise(self, stem, parameter, width):
        parameter.normal_()

    def _update(self, suffix):
        return lambda h, u, gap: h + u


def test_a_sum_in_both_directions_over_ragged_sequences():
    torch.manual_seed(0)
    layer, x = Sum(bidirectional=True), torch.randn(5, 2, 2, dtype=F64)
    lengths = torch.tensor([3, 5])
    output, state = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
    padded, _ = pad_packed_sequence(output)
    forward, back = layer.weight_ih_l0, layer.weight_ih_l0_reverse
    for b, n in enumerate(lengths.tolist()):
        for t in range(n):
            seen = torch.cat((forward @ x[: t + 1, b].sum(0), back @ x[t:n, b].sum(0)))
            torch.testing.assert_close(padded[t, b], seen)
        total = x[:n, b].sum(0)
        torch.testing.assert_close(state.h[:, b], torch.stack((forward @ total, back @ total)))


def test_the_dropout_mask_is_one_per_sequence():
    torch.manual_seed(0)
    layer = Sum(num_layers=2, dropout=0.5)
    x = torch.randn(4, 30, 2, dtype=F64)
    layer.weight_ih_l1.data = torch.eye(3, dtype=F64)
    below = (x @ layer.weight_ih_l0.t()).cumsum(0)
    steps = layer(x)[0].diff(dim=0, prepend=torch.zeros(1, 30, 3, dtype=F64))
    factors = (steps / below).round(decimals=9)
    assert set(factors.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(factors, factors[:1].expand_as(factors))
    layer.eval()
    torch.testing.assert_close(layer(x)[0], below.cumsum(0))


def test_input_products_are_made_once_for_the_whole_sequence(monkeypatch):
    layer, calls = Sum(), []
    drive = layer._drive
    monkeypatch.setattr(
        layer, "_drive", lambda x, suffix: calls.append(x.shape) or drive(x, suffix)
    )
    layer(torch.zeros(7, 4, 2, dtype=F64))
    assert calls == [(7, 4, 2)]


class Leak(Sum, OneStateODELayer):
    """h' = -gamma h + V x."""

    def __init__(self, dt, diffusion):
        super().__init__()
        self._set_step(dt, diffusion)

    def _update(self, suffix):
        return lambda h, u, gap: self._moved(h, u - self.diffusion * h, gap)


def test_a_step_of_the_leak_is_the_linear_one_and_gaps_multiply_it():
    layer = Leak(dt=0.1, diffusion=3.0)
    x, h = torch.zeros(2, 1, 2, dtype=F64), torch.ones(1, 1, 3, dtype=F64)
    _, state = layer(x, (h,), elapsed=torch.tensor([[1.0], [2.5]], dtype=F64))
    torch.testing.assert_close(state.h, h * (1 - 0.3) * (1 - 0.75))


def test_steps_and_gaps_that_overshoot_the_leak_are_warned_of():
    with pytest.warns(
        StabilityWarning, match=r"dt \* diffusion must be < 2; got dt=1, diffusion=2"
    ):
        Leak(dt=1.0, diffusion=2.0)
    with pytest.warns(StabilityWarning, match="dt must be <= 1; got dt=1.5, diffusion=0.1"):
        Leak(dt=1.5, diffusion=0.1)
    layer = Leak(dt=0.1, diffusion=3.0)
    x = torch.zeros(2, 1, 2, dtype=F64)
    layer(x, elapsed=torch.full((2, 1), 6.0, dtype=F64))
    with pytest.warns(StabilityWarning, match="elapsed up to 7"):
        layer(x, elapsed=torch.full((2, 1), 7.0, dtype=F64))


@pytest.mark.parametrize(
    "arguments, words",
    [((0.0, 1.0), "dt must be a finite number in"), ((0.1, -1.0), "diffusion must be a finite")],
)
def test_refused_step_sizes(arguments, words):
    with pytest.raises(ValueError, match=words):
        Leak(*arguments)
