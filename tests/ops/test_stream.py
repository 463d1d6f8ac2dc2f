"""Prepared steps of a stream give what whole sequences give, whatever changes in between."""

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.fx.experimental.proxy_tensor

import anharmonic as ah
from anharmonic.ops import available_backends

pytestmark = pytest.mark.skipif(
    "native" not in available_backends("lem"), reason="steps are prepared for the C library"
)
LAYERS = {
    "cornn": lambda: ah.CoRNN(3, 17, num_layers=2),
    "unicornn": lambda: ah.UnICORNN(3, 17, num_layers=3, skipped_layers=2),
    "reversible": lambda: ah.UnICORNN(3, 17, memory="reversible"),
    "lem": lambda: ah.LEM(3, 17, bias=False),
    "clipped": lambda: ah.LEM(3, 17, gate_floor=0.3),
}


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(0)
    with torch.no_grad():
        yield LAYERS[request.param]()


def fits(layer, x, state):
    """Whether the next step would be a prepared one."""
    equation = layer.equation()
    return layer._stream.fits(equation, layer._weights(equation), x, state)


def prepared(layer, x, state=None):
    """Takes two steps, and makes sure that the next would be a prepared one."""
    for _ in range(2):
        _, state = layer.step(x, state)
    assert fits(layer, x, state)
    return state


def usual(layer, x, state):
    """What the layer gives the usual way."""
    output, last = layer(x[None], state)
    return output[0], last


def same(step, other):
    (output, state), (wanted, end) = step, other
    return all(map(torch.equal, (output, *state), (wanted, *end)))


@pytest.fixture
def x():
    return torch.randn(2, 3)


@pytest.fixture
def state(layer, x):
    return prepared(layer, x)


@pytest.mark.covering(2)
@pytest.mark.parametrize("batch", [(), (1,), (5,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_stream_is_the_whole_sequence(layer, batch, dtype):
    layer.to(dtype)
    x = torch.randn(30, *batch, 3, dtype=dtype)
    whole, last = layer(x)
    state, outputs = None, []
    for x_t in x:
        output, state = layer.step(x_t, state)
        outputs.append(output)
    assert fits(layer, x[0], state)
    if layer.memory == "reversible" and dtype is torch.float32:
        # Between calls the state is handed over as float32; within one it keeps to the finer grid.
        torch.testing.assert_close(torch.stack(outputs), whole, rtol=1e-5, atol=1e-6)
    else:
        assert same((torch.stack(outputs), state), (whole, last))


def test_results_do_not_share_memory(layer, x, state):
    before = [t.clone() for t in state]
    output, last = layer.step(x, state)
    wanted = last.y.clone()
    output.zero_()
    assert torch.equal(last.y, wanted) and all(map(torch.equal, state, before))


def dt_changed(layer):
    layer.dt *= 0.5


def transposed(layer):
    """Other matrices; square ones in the same memory."""
    for p in layer.parameters():
        square = p.dim() == 2 and p.shape[0] == p.shape[1]
        p.data = p.data.t() if square else -p.data


def in_place(layer):
    for parameter in layer.parameters():
        parameter.data.mul_(0.5)


CHANGES = {
    "in place": in_place,
    "replaced": lambda layer: [
        setattr(layer, name, torch.nn.Parameter(p * 0.5))
        for name, p in list(layer.named_parameters())
    ],
    "reloaded": lambda layer: layer.load_state_dict(
        {name: value * 0.5 for name, value in layer.state_dict().items()}
    ),
    "dt": dt_changed,
    "transposed": transposed,
}


@pytest.mark.covering
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_layer_steps_with_the_change(layer, x, state, change):
    before = layer.step(x, state)
    CHANGES[change](layer)
    after = layer.step(x, state)
    assert not torch.equal(before[1].z, after[1].z)
    assert same(after, usual(layer, x, state))


def test_other_inputs_go_the_usual_way(layer, x, state):
    wide = torch.randn(4, 3)
    for x_t, s in [
        (wide, layer(wide[None])[1]),
        (x, tuple(t.expand(-1, -1, -1).transpose(1, 2).clone().transpose(1, 2) for t in state)),
        (torch.randn(3, 2).t(), state),
        (torch.randn(2, 3, dtype=torch.complex64).conj().imag, state),
    ]:
        assert same(layer.step(x_t, s), usual(layer, x_t, s))


def test_backends_are_still_forced(layer, x, state):
    with ah.use_backend("reference"):
        assert not fits(layer, x, state)
        output, _ = layer.step(x, state)
    assert torch.allclose(output, layer.step(x, state)[0], atol=1e-5)


def test_bad_input_is_refused_as_ever(layer, x, state):
    if getattr(layer, "memory", "") == "reversible":
        with pytest.raises(OverflowError, match="grid"):
            layer.step(x * float("nan"), state)
    else:
        assert layer.step(x * float("nan"), state)[0].isnan().all()
    for wrong, error, words in (
        ((torch.randn(2, 4), state), ValueError, "shape"),
        ((x.double(), state), TypeError, "dtype"),
        ((x, (state.y[:, :1], state.z)), ValueError, r"state\.y must have shape"),
    ):
        with pytest.raises(error, match=words):
            layer.step(*wrong)


def test_trained_scalars_are_read_at_every_step():
    layer = ah.CoRNN(3, 4, trainable_dt=True)
    x = torch.randn(2, 3)
    with torch.no_grad():
        _, state = layer.step(x)
        before = layer.step(x, state)
        layer.raw_dt += 1
        assert not torch.equal(layer.step(x, state)[0], before[0])
        assert same(layer.step(x, state), usual(layer, x, state))


def test_layers_are_copied_and_pickled_without_their_stream(layer, x, state):
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert not hasattr(twin, "_stream")
        assert same(twin.step(x, state), layer.step(x, state))
        in_place(twin)
        assert same(twin.step(x, state), usual(twin, x, state))


def test_threads_step_one_layer_at_once(layer):
    x = torch.randn(8, 2, 3)
    state = prepared(layer, x[0])
    wanted = [usual(layer, x_t, state) for x_t in x]

    def steps_are_right(x_t, right):
        with torch.no_grad():
            return all(same(layer.step(x_t, state), right) for _ in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(steps_are_right, x, wanted))


class Doubled(ah.LEM):
    """Does more than its kernel."""

    def _run(self, *args):
        output, state = super()._run(*args)
        return 2 * output, state


class Slower(ah.LEM):
    """Changes the equation."""

    def equation(self):
        return dataclasses.replace(super().equation(), dt=self.dt / 2)


def test_layers_of_users():
    x, odd, without, slower = torch.randn(2, 3), ah.LEM(3, 4), ah.LEM(3, 4), Slower(3, 4)
    odd.extra = object()
    without.bias_l0 = None
    with torch.no_grad():
        for layer in (Doubled(3, 4), odd, without):  # what cannot be compared goes the usual way
            _, state = layer.step(x)
            assert all(same(layer.step(x, state), usual(layer, x, state)) for _ in range(2))
        assert without._stream is not None
        state = prepared(slower, x)
        assert same(slower.step(x, state), usual(slower, x, state))
        slower.dt = 0.3
        assert not fits(slower, x, state)
        assert same(slower.step(x, state), usual(slower, x, state))


def test_tracers_see_a_step_as_an_operator():
    layer, x, other = ah.LEM(3, 4), torch.randn(2, 3), torch.randn(2, 3)
    with torch.no_grad():
        state = prepared(layer, x)

        def step(x_t, y, z):
            output, last = layer.step(x_t, (y, z))
            return output, *last

        traced = torch.fx.experimental.proxy_tensor.make_fx(step)(x, *state)
        assert all(map(torch.equal, traced(other, *state), step(other, *state)))


def test_elapsed_steps_are_not_prepared():
    layer = ah.LEM(3, 4)
    x, gap = torch.randn(2, 3), torch.tensor([0.5, 2.0])
    with torch.no_grad():
        _, state = layer.step(x, None, gap)
        assert getattr(layer, "_stream", None) is None
        irregular = layer.step(x, state, gap)
        prepared(layer, x)
        assert not torch.equal(layer.step(x, state)[0], irregular[0])
        assert same(layer.step(x, state, gap), irregular)
