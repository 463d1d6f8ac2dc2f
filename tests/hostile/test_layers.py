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
IN_C = ["CoRNN", "UnICORNN", "LEM", "NeuralOscillator", "MultiLayerNeuralOscillator"]
SLOW = [pytest.param(name, marks=[pytest.mark.slow] * (name != "LEM")) for name in SEQUENCE_LAYERS]
each_layer = pytest.mark.parametrize("kind", SLOW)
nan, inf = float("nan"), float("inf")


def make(kind, *sizes, **options):
    torch.manual_seed(0)
    return model_class(kind)(*(sizes or (F, H)), **options)


def data(*shape, dtype=torch.float32):
    return torch.randn(shape or (T, B, F), generator=torch.Generator().manual_seed(1)).to(dtype)


@each_layer
def test_weights_of_nan_are_not_hidden(kind):
    layer = make(kind)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(nan)
    try:
        output, _ = layer(data())
    except ValueError:
        return
    assert not output.isfinite().all()


@each_layer
def test_strides_change_no_number(kind):
    layer = make(kind)
    strided = data(2 * T, B, 2 * F)[::2, :, ::2]
    for x in (
        strided,
        strided.transpose(0, 1).contiguous().transpose(0, 1),
        data(1, 1, F).expand(T, B, F),
        data(T + B).as_strided((T, B, F), (1, 1, 0)),
        torch.complex(data(), data()).conj().imag,  # negated where it is read
    ):
        copy = x.resolve_neg().clone(memory_format=torch.contiguous_format)
        expected, _ = layer(copy)
        assert torch.equal(layer(x)[0], expected)
    for weight in layer.parameters():
        weight.data = torch.stack([weight.data, weight.data], -1)[..., 0]
    torch.testing.assert_close(layer(x)[0], expected)


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


slow = pytest.mark.slow
NORMAL = (F, H), (T, B, F)
ODD = [
    pytest.param(*NORMAL, {}, 1e38, id="huge numbers"),
    pytest.param(*NORMAL, {}, 1e-42, id="tiny numbers"),
    pytest.param(*NORMAL, {"dt": 1e30}, 1, id="a step beyond all", marks=slow),
    pytest.param((1, 1), (1, 1, 1), {}, 1, id="one of each", marks=slow),
    pytest.param((1, 2), (3, 2, 1), {"num_layers": 200}, 1, id="deep", marks=slow),
]


@pytest.mark.covering
@pytest.mark.parametrize("sizes, shape, options, scale", ODD)
@pytest.mark.parametrize("kind", [*IN_C, "SkewRNN", "ResonatorBank"])
def test_odd_calls_equal_the_reference(kind, sizes, shape, options, scale):
    found, has_gradient = [], scale == 1 and "dt" not in options
    for backend in ("auto", "reference"):
        layer = make(kind, *sizes, **options)
        with ah.use_backend(backend), torch.set_grad_enabled(has_gradient):
            output, _ = layer(scale * data(*shape))
            if has_gradient:
                output.pow(2).sum().backward()
        found.append([output, *(p.grad for p in layer.parameters() if has_gradient)])
    torch.testing.assert_close(*found, rtol=2e-5, atol=2e-5, equal_nan=True)


THREE, LEARNED = {"num_layers": 3}, {"trainable_damping": True, "trainable_frequency": True}
OPTIONS = [
    ("CoRNN", {"dt": 1.5, "trainable_dt": True}, "dt"),
    ("CoRNN", {"frequency": -1.0}, "frequency"),
    ("CoRNN", {"damping": -1.0, **LEARNED}, "damping"),
    ("CoRNN", {"damping": 0.0, **LEARNED}, "damping must be > 0 if it is learned"),
    ("CoRNN", {"frequency": 0.0, **LEARNED}, "frequency must be > 0 if it is learned"),
    ("CoRNN", {"scheme": "implict"}, "did you mean 'implicit'?"),
    ("CoRNN", {"trainable_dt": 1}, "trainable_dt"),
    ("CoRNN", {"input_scale": -1.0}, "input_scale"),
    ("UnICORNN", {**THREE, "dt": [0.1]}, "one for each of 3 layers"),
    ("UnICORNN", {**THREE, "dt": [0.1, 0.1, -1.0]}, "dt[2]"),
    ("UnICORNN", {"frequency": -1.0}, "frequency"),
    ("UnICORNN", {**THREE, "skipped_layers": 1}, "skipped_layers must be None or at least 2"),
    ("UnICORNN", {**THREE, "skipped_layers": 3}, "below num_layers=3"),
    ("UnICORNN", {"trainable_timescales": 0}, "trainable_timescales"),
    ("UnICORNN", {"timescale_range": -1.0}, "timescale_range"),
    ("LEM", {"gate_floor": 1.5}, "gate_floor"),
    ("LEM", {"gate_floor": 0.5, "multiscale": False}, "gate_floor or set multiscale=True"),
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
    ("MultiLayerNeuralOscillator", {"hidden_sizes": 4}, "hidden_sizes must be a list of ints"),
    ("MultiLayerNeuralOscillator", {"memory": "reversible", "activation": "sin"}, "'sin'"),
    ("MultiLayerNeuralOscillator", {"memory": "reversible", "scheme": "velocity-verlet"}, "chunk"),
    ("ResonatorBank", {"dt": 0.0}, "dt"),
    ("ResonatorBank", {"periods": (10.0, 2.0)}, "periods"),
    ("ResonatorBank", {"q": (0.0, 1.0)}, "q"),
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


def reads(**options):
    """A model that reads words, of which there are seven."""
    return ah.SequenceModel("LEM", 7, 7, hidden_size=H, **{"embedding_size": 3, **options})


CELL, BANK = ah.LEMCell(F, H), ah.ResonatorBank(F, H)
X, WORDS = torch.ones(B, T, F), torch.ones(B, T).long()
BIASES = torch.zeros(2, 1, H)
MODELS = [
    ("", lambda: ah.LEMCell(F, 0)),
    ("", lambda: CELL(torch.ones(1, B, F))),
    ("", lambda: CELL(torch.ones(B, F).long())),
    ("", lambda: CELL(torch.ones(B, F), (torch.zeros(1, H),) * 2)),
    ("", lambda: CELL(torch.ones(B, F), torch.zeros(B, H))),
    *(
        ("dt", lambda cell=cell: cell(F, H, dt=nan))
        for cell in (ah.CoRNNCell, ah.UnICORNNCell, ah.LEMCell)
    ),
    ("TRANSFORMER", lambda: model("TRANSFORMER")),
    ("3", lambda: model_class(3)),
    ("derived from SequenceLayer", lambda: model(torch.nn.LSTM)),
    ("width", lambda: model(width=3)),
    ("option of Mine", lambda: model(type("Mine", (ah.LEM,), {}), leaks=0.5)),
    ("readout", lambda: model(readout="first")),
    ("hidden_size", lambda: ah.SequenceModel("LEM", F, 2, hidden_size=0)),
    ("output_size", lambda: ah.SequenceModel("LEM", F, 0, hidden_size=H)),
    ("patch must be 1", lambda: model(readout="all", patch=2)),
    ("input_dropout must be", lambda: model(input_dropout=1.0)),
    ("list", lambda: model()([[1.0]])),
    ("[7, 2]", lambda: model()(X[0])),
    ("PackedSequence", lambda: model()(torch.nn.utils.rnn.pack_sequence([X[0]]))),
    ("at least one time", lambda: model(patch=4)(X[:, :0], elapsed=X[:, :0, 0])),
    *(
        ("lengths", lambda given=given: model()(X, torch.tensor(given)))
        for given in ([0, 3, 3], [8, 3, 3], [3.0, 3, 3], [3])
    ),
    ("[3, 7]", lambda: model()(X, elapsed=torch.ones(T, B))),
    ("elapsed", lambda: model()(X, elapsed=[1.0])),
    ("elapsed", lambda: model("LSTM")(X, elapsed=torch.ones(B, T))),
    ("ends of x must be in [0, 7); got [7, 7]; number", lambda: reads()(torch.full((1, 2), 7))),
    ("torch.int64 or torch.int32", lambda: reads()(torch.zeros(1, 2))),
    ("x[None]", lambda: reads()(WORDS[0])),
    ("embedding_dropout must be 0.0 without", lambda: model(embedding_dropout=0.5)),
    ("[7, 4]; got [7, 3]; choose", lambda: reads(tie_embedding=True)),
    ("patch must be 1 with an embedding; got 2; leave", lambda: reads(patch=2)),
    ("[7, 3]; got shape [3, 7]", lambda: reads().embedding.load(torch.ones(3, 7))),
    ("carries a state", lambda: reads(bidirectional=True)(WORDS, return_state=True)),
    ("carries a state", lambda: reads(readout="mean")(WORDS, return_state=True)),
    ("[B, T, 2]", lambda: BANK.pool(X[..., :1], BIASES)),
    ("[2, M, 4]", lambda: BANK.pool(X, BIASES[:1])),
    ("1 to 7", lambda: BANK.pool(X, BIASES, torch.tensor([8, 1, 1]))),
    ("elapsed must", lambda: BANK.pool(X, BIASES, elapsed=torch.ones(B, 4))),
    ("elapsed must", lambda: BANK.pool(X, BIASES, elapsed=-torch.ones(B, T))),
    ("bogus", lambda: ah.cite("bogus")),
    ("cite the source of your own", lambda: ah.cite(type("Mine", (ah.nn.SequenceLayer,), {}))),
    ("bogus", lambda: ah.list_models("bogus")),
    ("bogus", lambda: ah.use_precision("bogus").__enter__()),
    ("cuda9", lambda: ah.use_backend("cuda9").__enter__()),
    ("", lambda: called(bidirectional=True)),
    ("float64", lambda: called(x=data().double(), backend="native")),
    ("save other modules with torch", lambda: ah.save_pretrained(torch.nn.Linear(2, 2), "x")),
    ("", lambda: ah.save_pretrained(type("Mine", (ah.LEM,), {})(2, 3), "x")),
]


@pytest.mark.parametrize("names, call", MODELS)
def test_models(names, call, refused):
    refused(call, names=names)


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


VALUES = {
    ode: {
        **{"dynamics": ["bogus"], "solver": ["bogus"], "rtol": [0], "atol": [-1], "end_time": [0]},
        **{"max_evaluations": [0], "adjoint": [1], "width": [0], "num_layers": [0]},
        **{"matrix_activation": ["relu"], "normalisation": ["none"]},
    },
    called: {
        **{"output": ["most"], "memory": ["most", "reversible"], "backend": ["most"]},
        **{"scheme": ["rk4"], "dt": ["a"], "lengths": [torch.ones(3)]},
        **{"x": [np.ones((T, B, F))], "y0": [torch.zeros(1, B + 1, H)]},
        "weights": [[(torch.ones(H, F),) * 4]],
    },
}


@wrong_values(VALUES)
def test_values(make, name, value, refused):
    if make is ode:
        pytest.importorskip("torchdiffeq")
    refused(lambda: make(**{name: value}), names=name)


def ended(*times):
    return ah.NeuralODE(3).trajectory(torch.zeros(2, 3), list(times))


ODES = [
    ("", lambda: ah.NeuralODE(0)),
    ("step_size", lambda: ah.NeuralODE(3, solver="dopri5", step_size=0.1)),
    ("step_size", lambda: ah.NeuralODE(3, solver="rk4")),
    ("matrix_activation", lambda: ah.NeuralODE(3, "regular", matrix_activation="tanh")),
    ("state_matrix", lambda: ah.NeuralODE(3, "regular").state_matrix(torch.zeros(2, 3), 0.0)),
    ("[2, 4]", lambda: ah.NeuralODE(3)(torch.ones(2, 4))),
    ("", lambda: ah.NeuralODE(3)(torch.tensor(1.0))),
    ("int64", lambda: ah.NeuralODE(3)(torch.ones(2, 3).long())),
    ("", lambda: ah.NeuralODE(3)(torch.full((2, 3), nan))),
    ("meta", lambda: ah.NeuralODE(3)(torch.ones(2, 3, device="meta"))),
    ("list", lambda: ah.NeuralODE(3)([[1.0] * 3])),
    ("", lambda: ah.NeuralODE(3)(torch.ones(0, 3))),
    ("", lambda: ah.NeuralODENetwork(2, 1)(torch.ones(4, 3))),
    ("", lambda: ah.NeuralODENetwork(2, 1)(torch.full((4, 2), nan))),
    *(("strictly increasing", lambda end=end: ended(0.0, end)) for end in (0.0, -1.0, nan, inf)),
    ("strictly increasing in torch.float32; got 1, 1", lambda: ended(1.0, 1.0 + 1e-9)),
    ("times must be a list of at least two", lambda: ended(0.0)),
    ("times", lambda: ah.NeuralODE(3).trajectory(torch.zeros(2, 3), 1.0)),
]


@pytest.mark.parametrize("names, call", ODES)
def test_neural_odes(names, call, refused):
    pytest.importorskip("torchdiffeq")
    refused(call, names=names)


STEPS = [0, -1.0, nan, inf, "x", None, True, 10**400, 1 + 0j, torch.tensor(0.1)]


@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "value"),
    [*(("dt", dt) for dt in STEPS), *(("memory", memory) for memory in ("bogus", None, 3, ""))],
)
@pytest.mark.parametrize("kind", IN_C)
def test_steps_and_memory(kind, name, value, refused):
    refused(lambda: model_class(kind)(F, H, **{name: value}), names=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_C)
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
    third = dict.fromkeys(("dt", "frequency", "damping"), 1 / 3)  # no float32 number
    learned = {"trainable_dt": True, "trainable_frequency": True, "trainable_damping": True}
    for backend in ("auto", "reference"):
        with ah.use_backend(backend), torch.no_grad():
            fixed, trained = (
                make("CoRNN", **third, **options, dtype=torch.float64)(data().double())[0]
                for options in ({}, learned)
            )
        torch.testing.assert_close(fixed, trained, rtol=1e-13, atol=1e-13)
