"""Bad input to recurrences, layers, cells, models and neural ODEs: one clear error.

Odd input: the right numbers.
"""

import numpy as np
import pytest
import torch
from refusals import wrong_values

import anharmonic as ah
from anharmonic.nn.registry import SEQUENCE_LAYERS, model_class
from anharmonic.ops.cornn import CoRNNWeights, cornn

pytestmark = pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
T, B, F, H = 7, 3, 2, 4
NATIVE = (
    "CoRNN",
    "UnICORNN",
    "LEM",
    "NeuralOscillator",
    "MultiLayerNeuralOscillator",
    "SkewRNN",
    "ResonatorBank",
)
each_layer = pytest.mark.parametrize(
    "kind",
    [
        name if name == "LEM" else pytest.param(name, marks=pytest.mark.slow)
        for name in SEQUENCE_LAYERS
    ],
)
nan, inf = float("nan"), float("inf")


def make(kind, *sizes, **options):
    torch.manual_seed(0)
    return model_class(kind)(*(sizes or (F, H)), **options)


def data(*shape, dtype=torch.float32):
    return torch.randn(shape or (T, B, F), generator=torch.Generator().manual_seed(1)).to(dtype)


@each_layer
@pytest.mark.parametrize("value", [nan, inf])
def test_what_is_not_finite_is_not_hidden(kind, value):
    layer = make(kind)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(value)
    try:
        output, _ = layer(data())
    except ValueError:
        return
    assert not output.isfinite().all() or value == inf


@each_layer
def test_views_give_the_numbers_of_copies(kind):
    layer = make(kind)
    x = data(2 * T, B, 2 * F)[::2, :, ::2]
    expected, _ = layer(x.contiguous().clone())
    for view in (x, x.contiguous().transpose(0, 1).contiguous().transpose(0, 1), x.flip(0).flip(0)):
        assert torch.equal(layer(view)[0], expected)
    wide = data(1, 1, F).expand(T, B, F)
    assert torch.equal(layer(wide)[0], layer(wide.contiguous())[0])
    overlapping = data(T + B).as_strided((T, B, F), (1, 1, 0))
    assert torch.equal(layer(overlapping)[0], layer(overlapping.contiguous().clone())[0])
    negated = torch.complex(data(), data()).conj().imag
    assert torch.equal(layer(negated)[0], layer(negated.resolve_neg().clone())[0])


@each_layer
def test_strided_weights_give_the_numbers_of_copies(kind):
    layer = make(kind)
    expected, _ = layer(data())
    for weight in layer.parameters():
        weight.data = torch.stack([weight.data, weight.data], -1)[..., 0]
    torch.testing.assert_close(layer(data())[0], expected)


@each_layer
@pytest.mark.parametrize("touched", ["x", "weight", "output"])
def test_what_changes_in_place_before_backward_is_an_error_or_harmless(kind, touched):
    def gradients(change):
        layer = make(kind)
        leaf = data().requires_grad_()
        x = leaf * 1
        output, _ = layer(x)
        total = output.sum()
        if change:
            with torch.no_grad():
                for tensor in {"x": [x], "output": [output]}.get(touched, layer.parameters()):
                    tensor.mul_(3)
        total.backward()
        return [leaf.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]

    expected = gradients(change=False)
    try:
        found = gradients(change=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error) or "modified inplace" in str(error)
    else:
        for a, b in zip(expected, found, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1e38, 1e-42])
@pytest.mark.parametrize("kind", NATIVE)
def test_huge_and_tiny_numbers_as_in_the_reference(kind, scale):
    layer = make(kind)
    with torch.no_grad():
        expected, _ = layer(data() * scale)
        with ah.use_backend("reference"):
            found, _ = layer(data() * scale)
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5, equal_nan=True)


THREE, LEARNED = {"num_layers": 3}, {"trainable_damping": True, "trainable_frequency": True}
OPTIONS = [
    ("CoRNN", {"dt": 1.5, "trainable_dt": True}, "dt"),
    ("CoRNN", {"frequency": -1.0}, "frequency"),
    ("CoRNN", {"damping": -1.0, **LEARNED}, "damping"),
    ("CoRNN", {"damping": 0.0, **LEARNED}, "damping must be > 0 if it is learned"),
    ("CoRNN", {"frequency": 0.0, **LEARNED}, "frequency must be > 0 if it is learned"),
    ("CoRNN", {"scheme": "implict"}, "did you mean 'implicit'?"),
    ("CoRNN", {"trainable_dt": 1}, "trainable_dt"),
    ("UnICORNN", {**THREE, "dt": [0.1]}, "one for each of 3 layers"),
    ("UnICORNN", {**THREE, "dt": [0.1, 0.1, -1.0]}, "dt[2]"),
    ("UnICORNN", {"frequency": -1.0}, "frequency"),
    ("UnICORNN", {**THREE, "skipped_layers": 1}, "skipped_layers must be None or at least 2"),
    ("UnICORNN", {**THREE, "skipped_layers": 3}, "below num_layers=3"),
    ("UnICORNN", {"trainable_timescales": 0}, "trainable_timescales"),
    ("LEM", {"gate_floor": 1.5}, "gate_floor"),
    ("LEM", {"gate_floor": 0.5, "multiscale": False}, "gate_floor or set multiscale=True"),
    ("LEM", {"chrono_length": 100, "multiscale": False}, "multiscale=False, bias=True"),
    ("LEM", {"chrono_length": 100, "bias": False}, "multiscale=True, bias=False"),
    ("LEM", {"chrono_length": 10, "dt": 0.2}, "chrono_length must be > 2 / dt for dt=0.2"),
    ("LinOSS", {"damping": True}, "implicit-explicit"),
    ("LinOSS", {"paired": True, "hidden_size": 5}, "even"),
    ("LinOSS", {"scheme": "explicit"}, "implicit"),
    ("NeuralOscillator", {"scheme": "verlet"}, "did you mean 'velocity-verlet'?"),
    ("NeuralOscillator", {"activation": "tan"}, "did you mean 'tanh'?"),
    ("MultiLayerNeuralOscillator", {"activation": torch.tanh}, "activation"),
    ("MultiLayerNeuralOscillator", {**THREE, "hidden_sizes": [4, 3]}, "3 widths (num_layers)"),
    ("MultiLayerNeuralOscillator", {**THREE, "hidden_sizes": [4, 6, 5]}, "hidden_size=4"),
    ("MultiLayerNeuralOscillator", {**THREE, "hidden_sizes": [4, 0, 4]}, "hidden_sizes[1]"),
    ("MultiLayerNeuralOscillator", {**THREE, "hidden_sizes": [4, 2.0, 4]}, "hidden_sizes[1]"),
    ("MultiLayerNeuralOscillator", {"hidden_sizes": 4}, "hidden_sizes must be a list of ints"),
    ("MultiLayerNeuralOscillator", {"memory": "reversible", "activation": "sin"}, "'sin'"),
    ("MultiLayerNeuralOscillator", {"memory": "reversible", "scheme": "velocity-verlet"}, "chunk"),
    ("ResonatorBank", {"dt": 0.0}, "dt"),
    ("ResonatorBank", {"periods": (10.0, 2.0)}, "periods"),
    ("ResonatorBank", {"q": (0.0, 1.0)}, "q"),
    ("ResonatorBank", {"q": 3.0}, "q"),
    ("SkewRNN", {"dt": 0.0}, "dt"),
    ("ChronoLSTM", {"chrono_length": 2}, "chrono_length must be >= 3"),
    ("ChronoLSTM", {"bias": False}, "bias must be True"),
]


@pytest.mark.parametrize("kind, options, names", OPTIONS)
def test_options(kind, options, names, refused):
    sizes = {"input_size": F, "hidden_size": H}
    refused(lambda: getattr(ah, kind)(**{**sizes, **options}), names=names)


def model(layer="LEM", **options):
    return ah.SequenceModel(layer, F, 2, hidden_size=H, **options)


CELL = ah.LEMCell(F, H)
MODELS = {
    "cell of 0": lambda: ah.LEMCell(F, 0),
    "cell, three axes": lambda: CELL(torch.ones(1, B, F)),
    "cell, int": lambda: CELL(torch.ones(B, F).long()),
    "cell, state of another batch": lambda: CELL(torch.ones(B, F), (torch.zeros(1, H),) * 2),
    "cell, state a tensor": lambda: CELL(torch.ones(B, F), torch.zeros(B, H)),
    "CoRNN cell, dt nan": lambda: ah.CoRNNCell(F, H, dt=nan),
    "UnICORNN cell, dt nan": lambda: ah.UnICORNNCell(F, H, dt=nan),
    "LEM cell, dt nan": lambda: ah.LEMCell(F, H, dt=nan),
    "unknown layer": lambda: model("TRANSFORMER"),
    "layer a number": lambda: model_class(3),
    "layer a class": lambda: model(torch.nn.LSTM),
    "unknown option": lambda: model(width=3),
    "readout": lambda: model(readout="first"),
    "hidden 0": lambda: ah.SequenceModel("LEM", F, 2, hidden_size=0),
    "x a list": lambda: model()([[1.0]]),
    "output 0": lambda: ah.SequenceModel("LEM", 2, 0, hidden_size=4),
    "x of two axes": lambda: model()(torch.ones(T, F)),
    "x packed": lambda: model()(torch.nn.utils.rnn.pack_sequence([torch.ones(3, F)])),
    "lengths 0": lambda: model()(torch.ones(2, T, F), torch.tensor([0, 3])),
    "lengths beyond": lambda: model()(torch.ones(2, T, F), torch.tensor([8, 3])),
    "lengths float": lambda: model()(torch.ones(2, T, F), torch.tensor([3.0, 3])),
    "lengths short": lambda: model()(torch.ones(2, T, F), torch.tensor([3])),
    "elapsed of another shape": lambda: model()(torch.ones(2, T, F), elapsed=torch.ones(T, 2)),
    "elapsed a list": lambda: model()(torch.ones(2, T, F), elapsed=[1.0]),
    "elapsed of an LSTM": lambda: model("LSTM")(torch.ones(2, T, F), elapsed=torch.ones(2, T)),
    "cite": lambda: ah.cite("bogus"),
    "list_models": lambda: ah.list_models("bogus"),
    "use_precision": lambda: ah.use_precision("bogus").__enter__(),
    "use_backend": lambda: ah.use_backend("cuda9").__enter__(),
    "bidirectional with the weights of one": lambda: called(bidirectional=True),
    "native float64 with float32 weights": lambda: called(x=data().double(), backend="native"),
    "save a Linear": lambda: ah.save_pretrained(torch.nn.Linear(2, 2), "x"),
    "save a subclass": lambda: ah.save_pretrained(type("Mine", (ah.LEM,), {})(2, 3), "x"),
}


@pytest.mark.parametrize("call", MODELS.values(), ids=MODELS)
def test_models(call, refused):
    refused(call)


def called(**changes):
    weights = CoRNNWeights(data(H, F), data(H, H), data(H, H), data(H))
    state = torch.zeros(1, B, H)
    arguments = {
        **{"x": data(), "weights": [weights], "y0": state, "z0": state},
        **{"dt": 0.1, "frequency": 1.0, "damping": 1.0},
    }
    return cornn(**{**arguments, **changes})


def ode(**options):
    return ah.NeuralODE(3, **options)


@wrong_values(
    {
        ode: {
            **{
                "dynamics": ["bogus"],
                "solver": ["bogus"],
                "rtol": [0],
                "atol": [-1],
                "end_time": [0],
            },
            **{"max_evaluations": [0], "adjoint": [1], "width": [0]},
        },
        called: {
            **{"output": ["most"], "memory": ["most", "reversible"], "backend": ["most"]},
            **{"scheme": ["rk4"], "dt": ["a"], "lengths": [torch.ones(3)]},
            **{"x": [np.ones((T, B, F))], "y0": [torch.zeros(1, B + 1, H)]},
            "weights": [[(torch.ones(H, F),) * 4]],
        },
    }
)
def test_values(make, name, value, refused):
    if make is ode:
        pytest.importorskip("torchdiffeq")
    refused(lambda: make(**{name: value}), names=name)


ODES = {
    "hidden 0": lambda: ah.NeuralODE(0),
    "a step with adaptive steps": lambda: ah.NeuralODE(3, solver="dopri5", step_size=0.1),
    "fixed without a step": lambda: ah.NeuralODE(3, solver="rk4"),
    "regular with tanh": lambda: ah.NeuralODE(3, "regular", matrix_activation="tanh"),
    "other width": lambda: ah.NeuralODE(3)(torch.ones(2, 4)),
    "no axis": lambda: ah.NeuralODE(3)(torch.tensor(1.0)),
    "int": lambda: ah.NeuralODE(3)(torch.ones(2, 3).long()),
    "nan": lambda: ah.NeuralODE(3)(torch.full((2, 3), nan)),
    "meta": lambda: ah.NeuralODE(3)(torch.ones(2, 3, device="meta")),
    "list": lambda: ah.NeuralODE(3)([[1.0] * 3]),
    "empty": lambda: ah.NeuralODE(3)(torch.ones(0, 3)),
    "network of another width": lambda: ah.NeuralODENetwork(2, 1)(torch.ones(4, 3)),
    "network nan": lambda: ah.NeuralODENetwork(2, 1)(torch.full((4, 2), nan)),
}


@pytest.mark.parametrize("call", ODES.values(), ids=ODES)
def test_neural_odes(call, refused):
    pytest.importorskip("torchdiffeq")
    refused(call)


LAYERS_IN_C = NATIVE[:5]
STEPS = [0, -1.0, nan, inf, "x", None, True, 10**400, 1 + 0j, torch.tensor(0.1)]


@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "value"),
    [*(("dt", dt) for dt in STEPS), *(("memory", memory) for memory in ("bogus", None, 3, ""))],
)
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_steps_and_memory(kind, name, value, refused):
    refused(lambda: model_class(kind)(F, H, **{name: value}), names=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS_IN_C)
def test_odd_calls_equal_the_reference(kind):
    for sizes, options, shape in (
        ((1, 1), {}, (1, 1, 1)),
        ((1, 2), {"num_layers": 200}, (3, 2, 1)),
        ((F, H), {"dt": 1e30}, (T, B, F)),
    ):
        found = []
        for backend in ("auto", "reference"):
            layer = make(kind, *sizes, **options)
            with ah.use_backend(backend), torch.set_grad_enabled("dt" not in options):
                output, _ = layer(data(*shape))
                if "dt" not in options:
                    output.pow(2).sum().backward()
            found.append([output, *(p.grad for p in layer.parameters() if p.grad is not None)])
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4, equal_nan=True)


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
