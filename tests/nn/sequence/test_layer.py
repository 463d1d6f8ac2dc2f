"""A layer from a step function, on the simplest of recurrences: a sum."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from anharmonic.nn import HiddenState, StepLayer
from anharmonic.nn.registry import SEQUENCE_LAYERS, model_class

F64 = torch.float64


class Sum(StepLayer):
    """h_n = h_{n-1} + V x_n."""

    def __init__(self, input_size=2, hidden_size=3, num_layers=1, **options):
        super().__init__(input_size, hidden_size, num_layers, bias=False, **options)
        self.make_parameters(dtype=F64)

    def parameter_shapes(self, input_size):
        return {"weight_ih": (self.hidden_size, input_size), "bias": (self.hidden_size,)}

    def init_parameter(self, name, parameter):
        parameter.normal_()

    def step_function(self, u, state, w, dt):
        return HiddenState(state.h + u)


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


def test_input_products_are_made_once_for_the_whole_sequence(monkeypatch, loops):
    layer, calls = Sum(), []
    drive = layer.drive
    monkeypatch.setattr(layer, "drive", lambda x, w: calls.append(x.shape) or drive(x, w))
    layer(torch.zeros(100, 4, 2, dtype=F64))
    assert calls == [(100, 4, 2)]


class TwoViews(Sum):
    """h_n = (h_{n-1} + V x_n) W U, with W and U as two views of one parameter."""

    def parameter_shapes(self, input_size):
        H = self.hidden_size
        return super().parameter_shapes(input_size) | {"weight_hh": (2 * H, H)}

    def prepare(self, w):
        return w.weight_hh.chunk(2)

    def step_function(self, u, state, w, dt):
        return HiddenState((state.h + u) @ w[0] @ w[1])


def test_a_layer_with_two_views_of_one_weight_exports_with_a_free_length():
    torch.manual_seed(0)
    layer, x = TwoViews().eval(), torch.randn(9, 2, 2, dtype=F64)
    free = ({0: torch.export.Dim("time", min=2)},)
    with torch.no_grad():
        program = torch.export.export(layer, (x[:4],), dynamic_shapes=free)
        torch.testing.assert_close(program.module()(x)[0], layer(x)[0])
    torch._dynamo.reset()  # or a later export with a free batch is given this one's


@pytest.mark.parametrize("name", SEQUENCE_LAYERS)
def test_one_weight_in_float64_is_refused(name):
    layer = model_class(name)(2, 4)
    for weight in layer.parameters():
        weight.data = weight.data.double()
        with pytest.raises((TypeError, ValueError, RuntimeError), match=r"dtype|float64|Double"):
            layer(torch.randn(7, 3, 2))
        weight.data = weight.data.float()
    layer(torch.randn(7, 3, 2))


# ---- layers that are not finished ----
def changed(**methods):
    return type("Changed", (Sum,), methods)


def stepping(step):
    return changed(step_function=lambda self, u, state, w, dt: step(u, state))


SHAPES = ({}, None, [("weight_ih", (5, 3))], {"weight_ih": (-1, 3)}, {"a.b": (3,)}, {"w": 3})
lacking_shapes = changed(parameter_shapes=StepLayer.parameter_shapes)
lacking_a_step = changed(step_function=StepLayer.step_function)


@pytest.mark.parametrize("steps", [4, 40])
@pytest.mark.parametrize(
    "kind, error, words",
    [
        (lacking_shapes, NotImplementedError, "no parameter_shapes"),
        (lacking_a_step, NotImplementedError, "no step_function"),
        (changed(__init__=StepLayer.__init__), ValueError, "make_parameters"),
        *(
            (changed(parameter_shapes=lambda self, F, shapes=shapes: shapes), ValueError,
             "parameter_shapes of Changed must be")
            for shapes in SHAPES
        ),
        (stepping(lambda u, state: None), ValueError, "got NoneType"),
        (stepping(lambda u, state: torch.tanh(u)), ValueError, "return HiddenState"),
        (stepping(lambda u, state: HiddenState(u[:, :1])), ValueError, r"got \[B, 1\]"),
        (stepping(lambda u, state: HiddenState(u.detach().numpy())), ValueError, "got ndarray"),
        (stepping(lambda u, state: HiddenState(state.h.add_(1))), ValueError, "in place"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*is not compiled")
def test_a_layer_that_is_not_finished(kind, error, words, steps):
    with pytest.raises(error, match=words):
        kind(3, 5)(torch.ones(steps, 2, 3, dtype=F64))


def test_a_layer_that_does_not_keep_its_arguments_is_printed():
    class Bare(Sum):
        def __init__(self, F, H):
            super().__init__(F, H)

    assert repr(Bare(3, 5)) == "Bare()"


def test_a_bias_that_is_named_first_may_be_left_out():
    class BiasFirst(Sum):
        def parameter_shapes(self, input_size):
            return {"bias": (self.hidden_size,), "weight_ih": (self.hidden_size, input_size)}

    layer, x = BiasFirst(), torch.ones(4, 1, 2, dtype=F64)
    torch.testing.assert_close(layer(x)[0][-1, 0], 4 * layer.weight_ih_l0.sum(1))
