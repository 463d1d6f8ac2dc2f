"""Bad input to recurrences called by hand, odd calls of the C library, and its backends."""

import copy

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.nn.registry import model_class
from anharmonic.ops.cornn import CoRNNWeights, cornn

pytestmark = pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
T, B, F, H = 7, 3, 2, 4
LAYERS_IN_C = ("CoRNN", "UnICORNN", "LEM", "NeuralOscillator", "MultiLayerNeuralOscillator")
nan, inf = float("nan"), float("inf")


def data(*shape):
    return torch.randn(shape or (T, B, F), generator=torch.Generator().manual_seed(1))


def called(**changes):
    weights = CoRNNWeights(data(H, F), data(H, H), data(H, H), data(H))
    state = torch.zeros(1, B, H)
    arguments = {
        **{"x": data(), "weights": [weights], "y0": state, "z0": state},
        **{"dt": 0.1, "frequency": 1.0, "damping": 1.0},
    }
    return cornn(**{**arguments, **changes})


CALLS = {
    "x numpy": {"x": np.ones((T, B, F))},
    "x float64": {"x": data().double(), "backend": "native"},
    "y0 of another batch": {"y0": torch.zeros(1, B + 1, H)},
    "weights of tuples": {"weights": [(torch.ones(H, F),) * 4]},
    "lengths float": {"lengths": torch.ones(3)},
    "output": {"output": "most"},
    "memory": {"memory": "most"},
    "memory reversible": {"memory": "reversible"},
    "backend": {"backend": "most"},
    "scheme": {"scheme": "rk4"},
    "bidirectional with one": {"bidirectional": True},
    "dt text": {"dt": "a"},
}


@pytest.mark.parametrize("changes", CALLS.values(), ids=CALLS)
def test_calls_by_hand(changes, refused):
    refused(lambda: called(**changes))


STEPS = [0, -1.0, nan, inf, "x", None, True, 10**400, 1 + 0j, torch.tensor(0.1)]


@pytest.mark.covering
@pytest.mark.parametrize("dt", STEPS, ids=[str(i) for i in range(len(STEPS))])
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_steps(kind, dt, refused):
    refused(lambda: model_class(kind)(F, H, dt=dt), names="dt")


@pytest.mark.covering
@pytest.mark.parametrize("memory", ["bogus", None, 3, ""])
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_memory(kind, memory, refused):
    refused(lambda: model_class(kind)(F, H, memory=memory), names="memory")


def both(layer, *inputs, **options):
    """Outputs and gradients of the C library and of the reference."""
    found = []
    for backend in ("auto", "reference"):
        one = copy.deepcopy(layer)
        with ah.use_backend(backend):
            output, _ = one(*inputs, **options)
            output.pow(2).sum().backward()
        found.append([output.detach(), *(p.grad for p in one.parameters() if p.grad is not None)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_odd_calls_equal_the_reference(kind):
    layer = model_class(kind)
    torch.manual_seed(0)
    both(layer(1, 1), data(1, 1, 1))
    both(layer(1, 2, num_layers=200), data(3, 2, 1))
    both(layer(F, H), data(), elapsed=torch.zeros(T, B))
    both(layer(F, H), data(), elapsed=torch.rand(1, 1).expand(T, B))
    both(layer(F, H, num_layers=2, bidirectional=True, memory="chunked"), data(41, 5, F))
    with torch.no_grad():
        out = []
        for backend in ("auto", "reference"):
            torch.manual_seed(0)
            with ah.use_backend(backend):
                out.append(layer(F, H, dt=1e30)(data())[0])
    torch.testing.assert_close(*out, rtol=2e-5, atol=2e-5, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_threads_between_forward_and_backward_change_no_bit(kind):
    torch.manual_seed(0)
    layer, x = model_class(kind)(F, 32), data(40, 32, F)
    before = torch.get_num_threads()

    def gradients(forward, backward):
        layer.zero_grad()
        torch.set_num_threads(forward)
        output, _ = layer(x)
        torch.set_num_threads(backward)
        output.pow(2).sum().backward()
        return [output.detach(), *(p.grad.clone() for p in layer.parameters())]

    try:
        expected = gradients(1, 1)
        for threads in ((2, 1), (1, 7)):
            for a, b in zip(expected, gradients(*threads), strict=True):
                assert torch.equal(a, b)
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_memory_that_runs_out_in_c_is_an_error(in_child):
    def work():
        torch.set_num_threads(1)
        ah.LEM(1, 2048)(data(4, 64, 1))[0].sum().backward()

    what, text = in_child(work, megabytes=20)
    assert what in ("MemoryError", "RuntimeError", "ValueError"), (what, text)
    assert "memory" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "variable", ["ANHARMONIC_BACKEND", "ANHARMONIC_INSTRUCTION_SET"], ids=["backend", "set"]
)
def test_an_unknown_name_in_the_environment(process, variable, tiny):
    code, _, error = process("train", "lem", "digits", *tiny, **{variable: "bogus"})
    assert code == 2
    assert variable in error or "backend" in error or "instruction" in error
    assert "bogus" in error and "Traceback" not in error


def test_float64_scalars_stay_float64():
    torch.manual_seed(0)
    third = 1 / 3  # no float32 number
    layer = ah.CoRNN(F, H, dt=third, frequency=third, damping=third, dtype=torch.float64)
    trainable = ah.CoRNN(
        F,
        H,
        **{"dt": third, "frequency": third, "damping": third, "dtype": torch.float64},
        **{"trainable_dt": True, "trainable_frequency": True, "trainable_damping": True},
    )
    weights = layer.state_dict()
    trainable.load_state_dict({**trainable.state_dict(), **weights})
    x = data().double()
    for backend in ("auto", "reference"):
        with ah.use_backend(backend), torch.no_grad():
            torch.testing.assert_close(layer(x)[0], trainable(x)[0], rtol=1e-13, atol=1e-13)
