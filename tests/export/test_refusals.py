"""What has no form in C is refused before a file is written."""

import re

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.estimators import ResonatorClassifier
from anharmonic.export import write_c
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


def resonators(**options):
    x = np.random.default_rng(2).normal(size=(9, 3, 30))
    return ResonatorClassifier(5, random_state=0, **options).fit(x, np.arange(9) % 3)


def preparation(**options):
    given = {"mean": (1.0, 2.0, 3.0), "std": (2.0, 5.0, 1.0), "missing": "error"}
    return Preprocessing(**{"standardise": True, **given, **options})


GAPS, STEPS = preparation(elapsed="channel"), preparation(elapsed="step")
LEVELS = preparation(level_shift=(0.0,) * 6, level_scale=(1.0,) * 6)
FORECAST = preparation(horizon=2, forecast=(0, 1), target_scale=(1.0, 1.0))
INT8 = {"weights": "int8", "calibration": [np.ones((5, 3))]}
UNEVEN = {"hidden_sizes": [9, 5], "num_layers": 2}
VERLET = {"scheme": "velocity-verlet", "num_layers": 2}
PERCEPTRON = torch.nn.Sequential(torch.nn.Linear(5, 4))
NAMES = ("", "Gait", "2nd", "../gait", "math", "limits", "a" * 32)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda: ah.LEM(3, 4), {}, "SequenceModel"),
        (network("RNN"), {}, "layer .*UnICORNN.*defines its step.*RNN"),
        (network("LinOSSNetwork"), {}, "layer .*LinOSSNetwork"),
        (network("MultiLayerNeuralOscillator", **UNEVEN), {}, "layer .*MultiLayerNeuralOscillator"),
        (network("NeuralOscillator", **VERLET), {}, "layer above reads something else"),
        (network(ByBatch), {}, "ByBatch.*number of sequences"),
        (network(Own), INT8, "layer must be one of.*whole numbers"),
        (network(bidirectional=True), {}, "bidirectional must be False.*True"),
        (network(bidirectional=True, inputs=STEPS.size), {"preparation": STEPS}, "--streaming"),
        (network(embedding_size=2), {}, "embedding_size .*2.*ONNX"),
        # Known only at the end of a sequence.
        (network(inputs=LEVELS.size), {"preparation": LEVELS}, "scale_each .*known at its end"),
        (network("GRU", STEPS.size), {"preparation": STEPS}, "layer must be .*--elapsed channel"),
        (network("UnICORNN", STEPS.size, patch=3), {"preparation": STEPS}, "patch must be 1"),
        (
            network("GRU", GAPS.size),
            {"preparation": GAPS, **INT8},
            "--elapsed .elapsed. of the run must be 'ignore', as",
        ),
        (
            network("GRU", FORECAST.size),
            {"preparation": FORECAST, **INT8},
            "--horizon .horizon. of the run must be 0",
        ),
        (lambda: readout(PERCEPTRON), {}, "readout must be one nn.Linear with a bias.*ONNX"),
        (lambda: readout(torch.nn.Linear(5, 4, bias=False)), {}, "readout must be one nn.Linear"),
        *(
            (network(), {"name": name}, rf"name must be up to 31 .*; got {re.escape(repr(name))};")
            for name in NAMES
        ),
        (network(), {"weights": "int8"}, "calibration .*training data"),
        (network(), {"weights": "int4", "calibration": None}, "weights must be one of .*int4"),
        (network(), {**INT8, "calibration": [np.zeros(3)]}, r"calibration .*\[T, 3\].*\(3,\)"),
        (network(multiscale=False), INT8, "layer .*LEM-one-scale.*floating-point"),
        (resonators, INT8, "weights .*'float' for resonators.*int8.*network"),
        (resonators, {"lut": True}, "lut .*False for resonators"),
        (lambda: resonators(scaling="series"), {}, "scaling .*'train'.*'series'.*scaling='train'"),
        (resonators, {"class_names": [*"abc"]}, "class_names must be left out, as only"),
        (resonators, {"preparation": GAPS}, "preparation must be left out, as only"),
        (lambda: ResonatorClassifier(5), {}, "model .*fitted.*ResonatorClassifier.*fit"),
    ],
)
def test_what_has_no_form_in_c_is_refused(tmp_path, make, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        write_c(make(), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())
