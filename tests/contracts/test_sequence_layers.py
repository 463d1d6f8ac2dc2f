"""The public suite over every registered sequence layer and its variants, and what it leaves out.

This package's models run on the reference and, where there is a faster backend, as users have them.
"""

import functools
import warnings

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.nn import SequenceLayer, list_models, model_class
from anharmonic.testing import sequence_layer_checks

F, H = 3, 5


def has_equation(name):
    """Whether a layer has an ``Equation``: it runs on more backends and under more of PyTorch."""
    of_layer = getattr(model_class(name), "equation", SequenceLayer.equation)
    return of_layer is not SequenceLayer.equation


TORCH = ("RNN", "LSTM", "GRU", "ChronoLSTM")  # torch's own layers draw a mask at every step
VARIANTS = {
    "CoRNN": [
        {"dt": 0.3, "frequency": 2.0, "damping": 0.7},
        {"dt": 0.3, "scheme": "implicit", "bias": False},
        {"dt": 0.3, "trainable_dt": True, "trainable_frequency": True, "trainable_damping": True},
    ],
    "UnICORNN": [
        {"dt": 0.4, "frequency": 1.5},
        {"dt": 0.4, "trainable_timescales": False, "bias": False},
        {"num_layers": 4, "dt": [0.1, 0.2, 0.3, 0.4], "skipped_layers": 2},
        {"num_layers": 3, "skipped_layers": 2, "bidirectional": True},
    ],
    "LEM": [
        {"dt": 0.6},
        {"dt": 0.3, "multiscale": False, "bias": False},
        {"gate_floor": 0.25, "chrono_length": 20},
    ],
    "NeuralOscillator": [
        {"dt": 0.2},
        # Pendula with noise for input are chaotic: roundings grow with the time that passes.
        {"dt": 0.05, "scheme": "velocity-verlet", "activation": "sin", "bias": False},
    ],
    "MultiLayerNeuralOscillator": [
        {"dt": 0.2},
        {"dt": 0.05, "scheme": "velocity-verlet", "activation": "sin", "bias": False},
        {"num_layers": 2, "hidden_sizes": [7, 6], "dt": 0.2},
    ],
    "SkewRNN": [{"dt": 0.3}, {"dt": 0.1, "bias": False}],
    "LinOSSNetwork": [{}, {"scheme": "implicit-explicit", "damping": True, "state_size": 2}],
    "RNN": [{}],
    "LSTM": [{}, {"bias": False}],
    "GRU": [{}],
    "ChronoLSTM": [{"chrono_length": 20}],
    "FastGRNN": [{}],
    "ResonatorBank": [{"periods": [2.5, 40.0]}, {"dt": 0.5, "bias": False}],
}
OURS = [name for name in VARIANTS if has_equation(name)]
DEEP, BOTH_WAYS = {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}
BACKENDS = ["auto", "reference"] if len(ops.available_backends("lem")) > 1 else ["reference"]


def stacks(name, options):
    """A variant as it is, deep, and deep in both directions."""
    if "num_layers" in options:
        return [options]
    deep = [DEEP] if name in OURS and options == VARIANTS[name][0] else []
    return [options, *({**options, **stack} for stack in (*deep, BOTH_WAYS))]


def backends(name, options):
    """Where a layer's numbers may differ: baselines and rare activations have one backend."""
    if name not in OURS:
        return BACKENDS[:1]
    return ["reference"] if "activation" in options else BACKENDS


CHECKS = [
    pytest.param(
        *(name, options, backend, title, check),
        id=f"{name}-{options}-{backend}-{title}",
        # Through several walks this takes seconds: the fast suite has it in one walk.
        marks=[pytest.mark.slow] * (title == "stable_for_long" and "num_layers" in options),
    )
    for name, variants in VARIANTS.items()
    for variant in variants
    for options in stacks(name, variant)
    for backend in backends(name, options)
    for title, check in sequence_layer_checks(functools.partial(model_class(name), **options))
]
ours = pytest.mark.parametrize("name", OURS)
every = pytest.mark.parametrize("name", list_models())


def make(name, **options):
    torch.manual_seed(0)
    return model_class(name)(F, H, **{"dtype": torch.float64, **options})


def sequences(batch, steps):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(steps, batch, F, generator=generator, dtype=torch.float64)


def test_every_layer_of_the_library_is_covered():
    library = [n for n in list_models() if model_class(n).__module__.startswith("anharmonic.")]
    assert set(VARIANTS) == set(library)


@pytest.mark.covering("name title", "backend title", "name options backend")
@pytest.mark.parametrize("name, options, backend, title, check", CHECKS)
def test_contract(name, options, backend, title, check):
    with ah.use_backend(backend):
        check()


# LinOSSNetwork names its weights otherwise: see tests/nn/sequence/test_linoss.py.
@pytest.mark.parametrize("name", [n for n in list_models() if n not in (*TORCH, "LinOSSNetwork")])
def test_dropout_is_one_mask_per_sequence(name):
    torch.manual_seed(0)
    layer = model_class(name)(F, 20, num_layers=2, dropout=0.5)
    layer(sequences(1, 30).float())[0].square().sum().backward()
    # A neuron that is dropped at every step of the only sequence gives its weights no gradient.
    dropped = (layer.weight_ih_l1.grad == 0).all(0)
    assert 0 < dropped.sum() < 20


@ours
def test_reversible_memory_is_for_one_direction_of_some_models(name):
    cls = model_class(name)
    with pytest.raises(ValueError, match=r"reversible.*use memory='chunked'"):
        cls(F, H, memory="reversible", bidirectional=True)
    if name not in ("UnICORNN", "MultiLayerNeuralOscillator"):
        with pytest.raises(ValueError, match=r"memory must be .*chunked"):
            cls(F, H, memory="reversible")
    else:
        layer = cls(F, H, memory="reversible")
        assert layer(torch.zeros(5, 0, F))[0].shape == (5, 0, H)


@ours
def test_a_changed_step_size_is_that_of_the_layer_and_of_its_saved_model(name, tmp_path):
    layer = make(name, dtype=torch.float32)
    if "dt" not in layer.config():
        pytest.skip("it has no step size")
    x = torch.randn(9, 2, F)
    before, layer.dt = layer(x)[0], layer.dt / 2
    ah.save_pretrained(layer, tmp_path / "model")
    after = layer(x)[0]
    assert not torch.equal(before, after)
    assert torch.equal(after, ah.from_pretrained(tmp_path / "model")(x)[0])


@ours
def test_autocast_keeps_the_weights_dtype(name):
    layer = make(name, dtype=torch.float32)
    x = sequences(2, 5).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = layer(x.bfloat16())
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, layer(x.bfloat16().float())[0])


@ours
def test_gradients_of_each_sample(name):
    layer, x = make(name), sequences(6, 5)

    def loss(parameters, x):
        output, _ = torch.func.functional_call(layer, parameters, (x[:, None],))
        return output.square().sum()

    gradients = torch.func.grad(loss)
    parameters = {key: value.detach() for key, value in layer.named_parameters()}
    found = torch.func.vmap(gradients, in_dims=(None, 1))(parameters, x)
    for k in range(5):
        alone, mapped = gradients(parameters, x[:, k]), {key: v[k] for key, v in found.items()}
        torch.testing.assert_close(mapped, alone, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("steps", [500, pytest.param(2000, marks=pytest.mark.slow)])
@every
def test_defaults_are_stable(name, steps):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = model_class(name)(F, H)
    x = 10 * torch.randn(steps, 2, F, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        output, state = layer(x)
    assert type(state) is model_class(name).state_type
    limit = 100.0
    if name == "ExpRNN":  # keeps the norm of what it has, and adds V u_n and at most b
        limit = (layer.weight_ih_l0.norm() * x.norm(dim=-1) + layer.bias_l0.norm()).sum(0).max()
    assert output.isfinite().all() and output.abs().max() < limit


@ours
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_jit_trace_says_what_to_do(name):
    layer, x = make(name), sequences(2, 5)
    if ops.available_backends(layer.equation().kernel or "skew") == ["reference"]:
        pytest.skip("nothing compiled runs this layer here")
    with pytest.raises(TypeError, match=r"torch\.jit\.trace cannot record .* torch\.export"):
        torch.jit.trace(layer, (x,), check_trace=False)
    with ah.use_backend("reference"):
        traced = torch.jit.trace(layer, (x,), check_trace=False, strict=False)
    torch.testing.assert_close(traced(x)[0], layer(x)[0], rtol=1e-12, atol=1e-13)


# ---- the layers torch brings ----
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_same_numbers_as_torch(name):
    torch_class = getattr(torch.nn, name)
    options = {"num_layers": 2, "bidirectional": True}
    torch.manual_seed(0)
    ours = getattr(ah, name)(3, 4, **options)
    torch.manual_seed(0)
    theirs = torch_class(3, 4, **options)
    x = torch.randn(5, 2, 3)
    output, state = ours(x)
    expected, last = theirs(x)
    assert torch.equal(output, expected)
    last = last if isinstance(last, tuple) else (last,)
    assert len(state) == len(last) and all(map(torch.equal, state, last))
    assert isinstance(ours, torch_class)


def test_a_bare_tensor_is_a_state_where_there_is_one_variable():
    layer = ah.GRU(3, 4)
    x, h = torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    assert torch.equal(layer(x, h)[0], layer(x, (h,))[0])
