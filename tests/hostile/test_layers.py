"""Bad input to layers, cells, models and neural ODEs: one clear error; odd input: right numbers."""

import pytest
import torch

import anharmonic as ah
from anharmonic.nn.registry import SEQUENCE_LAYERS, model_class

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
    "save a Linear": lambda: ah.save_pretrained(torch.nn.Linear(2, 2), "x"),
    "save a subclass": lambda: ah.save_pretrained(type("Mine", (ah.LEM,), {})(2, 3), "x"),
}


@pytest.mark.parametrize("call", MODELS.values(), ids=MODELS)
def test_models(call, refused):
    refused(call)


ODES = {
    "hidden 0": lambda: ah.NeuralODE(0),
    "dynamics": lambda: ah.NeuralODE(3, "bogus"),
    "solver": lambda: ah.NeuralODE(3, solver="bogus"),
    "rtol 0": lambda: ah.NeuralODE(3, rtol=0),
    "atol -1": lambda: ah.NeuralODE(3, atol=-1),
    "end 0": lambda: ah.NeuralODE(3, end_time=0),
    "a step with adaptive steps": lambda: ah.NeuralODE(3, solver="dopri5", step_size=0.1),
    "fixed without a step": lambda: ah.NeuralODE(3, solver="rk4"),
    "max_evaluations 0": lambda: ah.NeuralODE(3, max_evaluations=0),
    "adjoint 1": lambda: ah.NeuralODE(3, adjoint=1),
    "width 0": lambda: ah.NeuralODE(3, width=0),
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
