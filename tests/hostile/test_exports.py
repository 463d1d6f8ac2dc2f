"""What has no form in C, ONNX or torch.export is refused before a file is written."""

from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import wrong_values

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c, write_onnx, write_torch
from anharmonic.nn import HiddenState, StepLayer


class Own(StepLayer):
    """A layer of a user, in C by its code."""

    def __init__(self, input_size, hidden_size, *, device=None, dtype=None, **options):
        super().__init__(input_size, hidden_size, **options)
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, inputs):
        return {"weight_ih": (self.hidden_size, inputs)}

    def step_function(self, u, state, w, dt):
        return HiddenState(torch.tanh(u + state.h))


class ByBatch(Own):
    def step_function(self, u, state, w, dt):
        return super().step_function(u * state.h.shape[0], state, w, dt)


def network(layer="LEM", inputs=3, **options):
    return lambda: ah.SequenceModel(layer, inputs, 4, hidden_size=5, **options)


def readout(module):
    made = network()()
    made.linear = module
    return made


def unfinite():
    made = network()()
    with torch.no_grad():
        made.linear.weight.fill_(float("nan"))
    return made


def int8(*calibration):
    return {"weights": "int8", "calibration": [*calibration]}


def resonators(**options):
    x = np.random.default_rng(2).normal(size=(9, 3, 30))
    return ResonatorClassifier(5, random_state=0, **options).fit(x, np.arange(9) % 3)


def preparation(**options):
    given = {"mean": (1.0, 2.0, 3.0), "std": (2.0, 5.0, 1.0), "missing": "error"}
    return Preprocessing(**{"standardise": True, **given, **options})


GAPS, STEPS = preparation(elapsed="channel"), preparation(elapsed="step")
LEVELS = preparation(level_shift=(0.0,) * 6, level_scale=(1.0,) * 6)
FORECAST = preparation(horizon=2, forecast=(0, 1), target_scale=(1.0, 1.0))
INT8, NAN = int8(np.ones((5, 3))), np.full((9, 3), np.nan)
UNEVEN = {"hidden_sizes": [9, 5], "num_layers": 2}
VERLET = {"scheme": "velocity-verlet", "num_layers": 2}
PERCEPTRON = torch.nn.Sequential(torch.nn.Linear(5, 4))
NAMES = ("", "Gait", "2nd", "../gait", "math", "limits", "a" * 32)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda: None, {}, "SequenceModel"),
        (lambda: ah.LEM(3, 4), {}, "SequenceModel"),
        (lambda: "nowhere", {}, "nowhere"),
        (unfinite, {}, "finite"),
        (network("RNN"), {}, "defines its step"),
        (network("LinOSSNetwork"), {}, "LinOSSNetwork"),
        (network("MultiLayerNeuralOscillator", **UNEVEN), {}, "MultiLayerNeuralOscillator"),
        (network("NeuralOscillator", **VERLET), {}, "layer above reads something else"),
        (network(ByBatch), {}, "number of sequences"),
        (network(Own), INT8, "whole numbers"),
        (network(bidirectional=True), {}, "bidirectional must be False"),
        (network(bidirectional=True, inputs=STEPS.size), {"preparation": STEPS}, "--streaming"),
        (network(embedding_size=2), {}, "ONNX"),
        # Known only at the end of a sequence.
        (network(inputs=LEVELS.size), {"preparation": LEVELS}, "known at its end"),
        (network("GRU", STEPS.size), {"preparation": STEPS}, "--elapsed channel"),
        (network("UnICORNN", STEPS.size, patch=3), {"preparation": STEPS}, "patch must be 1"),
        (network("GRU", GAPS.size), {"preparation": GAPS, **INT8}, "run must be 'ignore', as"),
        (network("GRU", FORECAST.size), {"preparation": FORECAST, **INT8}, "the run must be 0"),
        (lambda: readout(PERCEPTRON), {}, "readout must be one nn.Linear with a bias"),
        (lambda: readout(torch.nn.Linear(5, 4, bias=False)), {}, "readout must be one nn.Linear"),
        (network(multiscale=False), INT8, "LEM-one-scale"),
        (network(), int8(NAN), "finite"),
        (network(), {"weights": "int8", "calibration": "none.npz"}, "none.npz"),
        (resonators, INT8, "'float' for resonators"),
        (resonators, {"lut": True}, "False for resonators"),
        (lambda: resonators(scaling="series"), {}, "scaling='train'"),
        (resonators, {"class_names": [*"abc"]}, "class_names must be left out, as only"),
        (resonators, {"preparation": GAPS}, "preparation must be left out, as only"),
        (lambda: ResonatorClassifier(5), {}, "fitted"),
    ],
)
def test_what_has_no_form_in_c_is_refused(make, options, said, refused):
    refused(lambda: write_c(make(), "new", **options), ValueError, TypeError, OSError, names=said)
    assert not list(Path().glob("new/*"))


def as_c(**options):
    write_c(network()(), "new", **options)


@wrong_values(
    (as_c, {}, {"name": NAMES, "class_names": [["a"], [1, 2, 3, 4]], "examples": [[NAN]]}),
    (as_c, {"calibration": None}, {"weights": ["int4"]}),
    (as_c, {"weights": "int8"}, {"calibration": [None, [], [np.zeros(3)], [np.ones((9, 5))]]}),
)
def test_options_of_c_are_refused(call, name, refused):
    refused(call, ValueError, TypeError, OSError, names=name)
    assert not list(Path().glob("new/*"))


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda: torch.nn.Linear(2, 2), {}, "SequenceModel"),
        (lambda: "nowhere", {}, "nowhere"),
        (lambda: ah.LSTM(3, 4), {}, "write_c"),
        (network("GRU"), {}, "write_c"),
        (network(), {"path": "none/graph"}, "make the folder first"),
        (network(), {"path": "."}, "Is a directory"),
        (network(), {"step": True}, "step"),
    ],
)
@pytest.mark.parametrize("write", [write_onnx, write_torch])
def test_what_is_no_graph_is_refused(write, make, options, said, refused):
    if write is write_onnx:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed (extra onnx)")
    call = {"path": "graph", **options}
    refused(lambda: write(make(), **call), ValueError, TypeError, OSError, names=said)
    assert not list(Path().iterdir())


def test_a_file_is_no_folder(refused):
    Path("taken").write_text("x")
    refused(lambda: write_c(network()(), "taken"), OSError)
