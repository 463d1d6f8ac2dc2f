"""Layers of one's own in C: written from the code of their step in PyTorch."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import anharmonic as ah
from anharmonic.export import write_c
from anharmonic.export.c import expected_outputs
from anharmonic.export.plan import plan
from anharmonic.nn import HiddenState, StepLayer

H = 6
pytestmark = pytest.mark.usefixtures("loops")


class Own(StepLayer):
    def __init__(
        self, input_size, hidden_size, num_layers=1, *, device=None, dtype=None, **options
    ):
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, inputs):
        return {"weight_ih": (H, inputs), "weight_hh": (H, H), "scale": (H,)}


class Past(NamedTuple):
    y: torch.Tensor
    before: torch.Tensor
    far: torch.Tensor


class LEM(Own):
    """Three variables, of which two are copies of the past; the name is that of a layer in C."""

    state_type = Past

    def step_function(self, u, state, w, dt):
        now, before, far = state
        new = torch.tanh(u + F.linear(far, w.weight_hh)) - 0.3 * before
        return Past(new, now, before)


class Everything(Own):
    """Every function that a step may call."""

    state_type = HiddenState
    functions = (
        torch.tanh, torch.sigmoid, torch.relu, torch.exp, torch.sin, torch.cos, torch.atan,
        torch.abs, torch.neg, torch.erf, torch.floor, torch.round, torch.trunc, torch.sign,
        F.softplus, F.gelu, F.elu, F.leaky_relu, F.hardtanh, torch.square, torch.reciprocal,
        lambda x: torch.log1p(x * x), lambda x: torch.sqrt(1 + x * x), lambda x: x.clamp(-0.2, 0.4),
        lambda x: torch.rsqrt(1 + x * x), lambda x: (1 + x * x) ** 0.3,
        lambda x: torch.softmax(x, -1), lambda x: x - x.mean(1, keepdim=True),
        lambda x: x - x.amax(1, keepdim=True), lambda x: x - x.amin(1, keepdim=True),
        lambda x: torch.where(x > 0.1, x, 0.5 * x), lambda x: torch.where(x <= -0.1, x, 2 * x),
        lambda x: torch.where((x > 0) & (x < 0.2), x, -x), lambda x: torch.maximum(x, -x / 2),
        lambda x: torch.where((x < 0) | (x >= 0.3), x, 0), lambda x: torch.minimum(x, x * x),
        lambda x: torch.where(~(x == 0), x, 1), lambda x: torch.atan2(x, 2 + x),
        lambda x: torch.cat([x[:, 2:], x[:, :2]], 1), lambda x: F.pad(x[:, :-1], (1, 0), value=0.5),
        lambda x: x / (1 + x.pow(2).sum(-1, keepdim=True)).sqrt(), lambda x: x.expm1().cosh(),
        lambda x: torch.full_like(x, 0.3) * x, lambda x: (x + 0.1) % 0.4, lambda x: x % -0.3,
        lambda x: torch.fmod(x, 0.25), F.silu, lambda x: torch.cat(x.chunk(3, -1)[::-1], -1),
        lambda x: x - (-(-x * x)),
    )  # fmt: skip

    def step_function(self, u, state, w, dt):
        x = u + F.linear(state.h, w.weight_hh)
        normed = F.layer_norm(x, x.shape[-1:], w.scale + 1)
        total = sum((0.02 * (k % 3 + 1) * f(x) for k, f in enumerate(self.functions)), normed)
        return HiddenState(torch.tanh(total + F.linear(torch.full_like(x, 0.2), w.weight_hh)))


class Latest(Everything):
    """The largest of the input and of what was: NaN comes in on the left, then on the right."""

    def step_function(self, u, state, w, dt):
        return HiddenState(torch.maximum(u, 0.1 * state.h))


class Least(Everything):
    def step_function(self, u, state, w, dt):
        return HiddenState(torch.minimum(u, 0.1 * state.h))


class Columns(Everything):
    """The largest of columns, of which the first is a number and the last is NaN."""

    def step_function(self, u, state, w, dt):
        logarithms = torch.log(w.scale + 0 * state.h)
        return HiddenState(torch.sin(state.h) + logarithms.amax(1, keepdim=True))


def own(kind, **options):
    torch.manual_seed(0)
    return ah.SequenceModel(kind, 3, 4, hidden_size=H, **options).eval()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Gives the folder of a model in C. Every model is written once: tracing takes seconds."""
    folders = {}

    def write(kind, made):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind.__name__)
            write_c(made, folders[kind])
        return folders[kind]

    return write


@pytest.mark.parametrize("kind", [Everything, LEM])
def test_a_step_in_c_is_that_of_pytorch(written, check, program, kind):
    made = own(kind, num_layers=1 if kind is Everything else 2)
    folder = written(kind, made)
    check(folder)
    x = np.random.default_rng(1).normal(size=(100, 3)).astype(np.float32)
    exact = expected_outputs(made, plan(made), x)
    double = program(folder, 4, double=True)(x)
    np.testing.assert_allclose(double, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [Everything, Latest, Least, Columns])
def test_nan_spreads_as_in_pytorch(written, program, kind):
    made = own(kind)
    if kind is Columns:
        with torch.no_grad():
            made.layer.scale_l0.copy_(torch.linspace(1, -1, H))
    x = np.zeros((4, 3), np.float32)
    x[1, 2] = np.nan
    with torch.no_grad():
        assert made(torch.from_numpy(x)[None]).isnan().all()
    assert np.isnan(program(written(kind, made), 4)(x)).all()


def test_a_table_for_tanh_needs_no_other_function(tmp_path, check):
    with pytest.raises(ValueError, match=r"--lut .lut. must be False.*functions other than tanh"):
        write_c(own(Everything), tmp_path, lut=True)
    write_c(own(LEM), tmp_path, lut=True)
    assert "math.h" not in (tmp_path / "model.c").read_text()
    check(tmp_path, math=False)
