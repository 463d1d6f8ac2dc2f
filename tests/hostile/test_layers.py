"""Bad input to recurrences, layers, cells, models and neural ODEs: one clear error.

Odd input: the right numbers.
"""

import numpy as np
import pytest
import torch
from refusals import wrong_values
from torch.nn.utils.rnn import pack_sequence

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
REVERSIBLE, VERLET = {"memory": "reversible"}, ["velocity-verlet"]
WIDTHS = [[4, 3], [4, 6, 5], [4, 0, 4], 4]
STEPS = [0, -1.0, nan, inf, "x", None, True, 10**400, 1 + 0j, torch.tensor(0.1)]


@pytest.mark.covering
@pytest.mark.parametrize("name, value", [*(("dt", dt) for dt in STEPS), ("memory", "bogus")])
@pytest.mark.parametrize("kind", IN_C)
def test_steps_and_memory(kind, name, value, refused):
    refused(lambda: model_class(kind)(F, H, **{name: value}), names=name)


@wrong_values(
    (ah.CoRNN, {}, {"frequency": [-1.0], "scheme": ["implict"], "trainable_dt": [1]}),
    (ah.CoRNN, {"trainable_dt": True}, {"dt": [1.5], "input_scale": [-1.0]}),
    (ah.CoRNN, LEARNED, {"damping": [-1.0, 0.0], "frequency": [0.0]}),
    (ah.UnICORNN, THREE, {"dt": [[0.1], [0.1, 0.1, -1.0]], "skipped_layers": [1, 3]}),
    (ah.UnICORNN, {}, {"frequency": [-1.0], "trainable_timescales": [0], "timescale_range": [-1]}),
    (ah.LEM, {"multiscale": False}, {"gate_floor": [0.5], "chrono_length": [100]}),
    (ah.LEM, {"bias": False}, {"gate_floor": [1.5], "chrono_length": [100]}),
    (ah.LEM, {"dt": 0.2}, {"chrono_length": [10]}),
    (ah.LinOSS, {"paired": True}, {"hidden_size": [5], "scheme": ["explicit"], "damping": [True]}),
    (ah.NeuralOscillator, {}, {"scheme": ["verlet"], "activation": ["tan", torch.tanh]}),
    (ah.MultiLayerNeuralOscillator, THREE, {"hidden_sizes": WIDTHS}),
    (ah.MultiLayerNeuralOscillator, REVERSIBLE, {"activation": ["sin"], "scheme": VERLET}),
    (ah.ResonatorBank, {}, {"dt": [0.0], "periods": [(10.0, 2.0)], "q": [0, (0.0, 1.0)]}),
    (ah.SkewRNN, {}, {"dt": [0.0]}),
    (ah.ChronoLSTM, {}, {"chrono_length": [2], "bias": [False]}),
    (ah.LEMCell, {}, {"hidden_size": [0], "dt": [nan]}),
    *((cell, {}, {"dt": [nan]}) for cell in (ah.CoRNNCell, ah.UnICORNNCell)),
    input_size=F,
    hidden_size=H,
)
def test_options(call, name, refused):
    refused(call, names=name)


X, WORDS, CELL = torch.ones(B, T, F), torch.ones(B, T).long(), ah.LEMCell(F, H)
LENGTHS = [torch.tensor(given) for given in ([0, 3, 3], [8, 3, 3], [3.0, 3, 3], [3])]
MINE = type("Mine", (ah.LEM,), {})


def model(x=X, lengths=None, elapsed=None, output_size=2, hidden_size=H, **options):
    sizes = {"input_size": F, "output_size": output_size, "hidden_size": hidden_size}
    return ah.SequenceModel(**{"layer": "LEM", **sizes, **options})(x, lengths, elapsed)


def reader(x=WORDS, return_state=False, **options):
    """A model of texts, of seven words."""
    options = {"hidden_size": H, "embedding_size": 3, **options}
    return ah.SequenceModel("LEM", 7, 7, **options)(x, return_state=return_state)


BANK = ah.ResonatorBank(F, H)
EMBEDDING = ah.SequenceModel("LEM", 7, 7, hidden_size=H, embedding_size=3).embedding
POOLED = {"x": X, "biases": torch.zeros(2, 1, H)}
WEIGHTS = [CoRNNWeights(data(H, F), data(H, H), data(H, H), data(H))]
CALL = {"x": data(), "weights": WEIGHTS, "y0": torch.zeros(1, B, H), "z0": torch.zeros(1, B, H)}
CALL |= {"dt": 0.1, "frequency": 1.0, "damping": 1.0}


@wrong_values(
    (model, {}, {"layer": [torch.nn.LSTM], "readout": ["first"], "width": [3]}),
    (model, {}, {"hidden_size": [0], "output_size": [0], "input_dropout": [1.0]}),
    (model, {}, {"x": [[[1.0]], X[0], pack_sequence([X[0]])], "lengths": LENGTHS}),
    (model, {}, {"elapsed": [torch.ones(T, B), [1.0]], "embedding_dropout": [0.5]}),
    (model, {"layer": "LSTM"}, {"elapsed": [torch.ones(B, T)]}),
    (model, {"layer": MINE}, {"leaks": [0.5]}),
    (model, {"readout": "all"}, {"patch": [2]}),
    (reader, {}, {"x": [torch.full((1, 2), 7), torch.zeros(1, 2), WORDS[0]]}),
    (reader, {}, {"patch": [2], "tie_embedding": [True]}),
    (reader, {"return_state": True}, {"bidirectional": [True], "readout": ["mean"]}),
    (EMBEDDING.load, {}, {"vectors": [torch.ones(3, 7)]}),
    (BANK.pool, POOLED, {"x": [X[..., :1]], "biases": [torch.zeros(1, 1, H)]}),
    (BANK.pool, POOLED, {"lengths": LENGTHS[1:2]}),
    (BANK.pool, POOLED, {"elapsed": [torch.ones(B, 4), -torch.ones(B, T)]}),
    (cornn, CALL, {"output": ["most"], "memory": ["most", "reversible"], "backend": ["most"]}),
    (cornn, CALL, {"scheme": ["rk4"], "dt": ["a"], "lengths": [torch.ones(3), LENGTHS[1]]}),
    (cornn, CALL, {"x": [np.ones((T, B, F))], "y0": [torch.zeros(1, B + 1, H)]}),
    (cornn, CALL, {"weights": [[(torch.ones(H, F),) * 4]]}),
    (cornn, CALL | {"bidirectional": True}, {"weights": [WEIGHTS]}),
    (cornn, CALL | {"backend": "native"}, {"x": [data().double()]}),
    (model_class, {}, {"name": [3]}),
    (ah.list_models, {}, {"kind": ["bogus"]}),
    (ah.cite, {}, {"model": ["bogus", type("Mine", (ah.nn.SequenceLayer,), {})]}),
    (ah.save_pretrained, {"folder": "x"}, {"model": [torch.nn.Linear(2, 2), MINE(2, 3)]}),
)
def test_calls(call, name, refused):
    refused(call, names=name)


CALLS = {
    "cell, three axes": lambda: CELL(torch.ones(1, B, F)),
    "cell, int": lambda: CELL(torch.ones(B, F).long()),
    "cell, state of another batch": lambda: CELL(torch.ones(B, F), (torch.zeros(1, H),) * 2),
    "cell, state a tensor": lambda: CELL(torch.ones(B, F), torch.zeros(B, H)),
    "unknown layer": lambda: model(layer="TRANSFORMER"),
    "patches of nothing": lambda: model(X[:, :0], elapsed=X[:, :0, 0], patch=4),
    "no matrix": lambda: ah.NeuralODE(3, "regular").state_matrix(torch.zeros(2, 3), 0.0),
    "use_precision": lambda: ah.use_precision("bogus").__enter__(),
    "use_backend": lambda: ah.use_backend("cuda9").__enter__(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_other_calls(call, refused):
    refused(call)


ODE, START = {"hidden_size": 3}, torch.zeros(2, 3)
ENDS = [[0.0, end] for end in (0.0, -1.0, nan, inf)]
STATES = [torch.ones(2, 4), torch.tensor(1.0), torch.ones(2, 3).long(), torch.full((2, 3), nan)]
STATES += [torch.ones(2, 3, device="meta"), [[1.0] * 3], torch.ones(0, 3)]


@wrong_values(
    (ah.NeuralODE, ODE, {"hidden_size": [0], "dynamics": ["bogus"], "solver": ["bogus"]}),
    (ah.NeuralODE, ODE, {"rtol": [0], "atol": [-1], "end_time": [0]}),
    (ah.NeuralODE, ODE, {"max_evaluations": [0], "adjoint": [1], "width": [0], "num_layers": [0]}),
    (ah.NeuralODE, ODE, {"matrix_activation": ["relu"], "normalisation": ["none"]}),
    (ah.NeuralODE, ODE | {"solver": "dopri5"}, {"step_size": [0.1]}),
    (ah.NeuralODE, ODE | {"solver": "rk4"}, {"step_size": [None]}),
    (ah.NeuralODE, ODE | {"dynamics": "regular"}, {"matrix_activation": ["tanh"]}),
    (ah.NeuralODE(3).trajectory, {"z": START}, {"times": [*ENDS, [1.0, 1.0 + 1e-9], [0.0], 1.0]}),
    (ah.NeuralODE(3).forward, {}, {"z": STATES}),
    (ah.NeuralODENetwork(2, 1).forward, {}, {"x": [torch.ones(4, 3), torch.full((4, 2), nan)]}),
)
def test_neural_odes(call, name, refused):
    pytest.importorskip("torchdiffeq")
    refused(call, names=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_C)
def test_threads_between_forward_and_backward_change_no_bit(kind):
    layer, x, found = model_class(kind)(F, 32), data(40, 32, F), []
    before = torch.get_num_threads()
    try:
        for forward, backward in ((1, 1), (2, 1), (1, 7)):
            layer.zero_grad()
            torch.set_num_threads(forward)
            output, _ = layer(x)
            torch.set_num_threads(backward)
            output.pow(2).sum().backward()
            found.append([output.detach(), *(p.grad.clone() for p in layer.parameters())])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


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
