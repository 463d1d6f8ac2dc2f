"""Bad input to estimators, resonators, exports, diagnostics, suites and data classes."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic import diagnostics as looks
from anharmonic.data import make_task
from anharmonic.nn import ResonatorFeatures
from anharmonic.testing import check_graph_layer, check_sequence_layer, check_task
from anharmonic.train import Range, Run, RunEnvironment, compare, search

nan, inf = float("nan"), float("inf")
X = np.random.default_rng(0).standard_normal((12, 2, 9)).astype(np.float32)
Y = np.arange(12) % 2
FEW = {"num_oscillators": 20, "random_state": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, options, x, y",
    [
        ("ResonatorClassifier", FEW, [1, 2, 3], [0, 1, 0]),
        ("ResonatorClassifier", FEW, np.full((12, 2, 9), "a"), Y),
        ("ResonatorClassifier", FEW, X, np.where(Y, nan, 1.0)),
        ("ResonatorClassifier", FEW, X, np.stack([Y, Y], 1)),
        ("ResonatorClassifier", FEW, X, np.linspace(0, 1, 12)),
        ("ResonatorClassifier", FEW | {"num_oscillators": 2.5}, X, Y),
        ("ResonatorClassifier", FEW | {"num_biases": 0}, X, Y),
        ("ResonatorClassifier", FEW | {"num_biases": "two"}, X, Y),
        ("ResonatorClassifier", FEW | {"pools": ["most"]}, X, Y),
        ("ResonatorClassifier", FEW | {"pools": "end"}, X, Y),
        ("ResonatorClassifier", FEW | {"pools": []}, X, Y),
        ("ResonatorClassifier", FEW | {"random_state": "a"}, X, Y),
        ("ResonatorClassifier", FEW | {"alphas": [-1.0]}, X, Y),
        ("ResonatorClassifier", FEW | {"alphas": []}, X, Y),
        ("ResonatorRegressor", FEW, X, np.full(12, "a")),
        ("ResonatorRegressor", FEW, X, np.full(12, inf)),
        ("SequenceClassifier", {"device": "gpu"}, X, Y),
        ("SequenceClassifier", {"model_options": {"width": 3}, "max_steps": 1}, X, Y),
        ("SequenceForecaster", {"valid_share": 1.0}, X, None),
    ],
)
def test_estimators(kind, options, x, y):
    """Some of these are scikit-learn's own errors, whose words are its own."""
    estimators = pytest.importorskip("anharmonic.estimators", exc_type=ImportError)
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(estimators, kind)(**options).fit(x, y)
    assert "broadcast" not in str(caught.value) and "subscript" not in str(caught.value)
    assert len(str(caught.value)) > 20, str(caught.value)


SERIES = X.transpose(0, 2, 1)


def features(**options):
    return ResonatorFeatures(**{"num_oscillators": 9, **options})


def sample(x_t, **options):
    return features().fit(SERIES).stream(num_streams=2).update(x_t, **options)


RESONATORS = {
    "scaling": lambda: features(scaling="most").fit(SERIES),
    "fit nothing": lambda: features().fit(SERIES[:0]),
    "fit of mixed channels": lambda: features().fit([np.zeros((3, 2)), np.zeros((3, 1))]),
    "fit of an empty series": lambda: features().fit([np.zeros((0, 2))]),
    "fit of one axis": lambda: features().fit([np.zeros(3)]),
    "transform before fit": lambda: features().transform(SERIES),
    "transform nan": lambda: features().fit(SERIES).transform(SERIES * nan),
    "sample of another shape": lambda: sample(np.ones((3, 2))),
    "sample of one axis": lambda: sample(np.ones(2)),
    "sample None": lambda: sample(None),
    "sample inf": lambda: sample(np.full((2, 2), inf)),
    "sample words": lambda: sample([["a", "b"], ["c", "d"]]),
    "elapsed nan": lambda: sample(np.ones((2, 2)), elapsed=nan),
    "elapsed text": lambda: sample(np.ones((2, 2)), elapsed="1"),
    "bank of q 0": lambda: ah.ResonatorBank(2, 4, q=0),
}
ones, gradients = torch.ones(5, 2, 2), partial(looks.state_gradients, ah.LEM(2, 3))
LOOKS = {
    "gradients of None": lambda: looks.state_gradients(None, ones),
    "gradients of another width": lambda: gradients(torch.ones(5, 2, 3)),
    "gradients of nan": lambda: gradients(ones * nan),
    "gradients of float64": lambda: gradients(ones.double()),
    "gradients of numpy": lambda: gradients(ones.numpy()),
    "gradients of nothing": lambda: gradients(ones[:0]),
    "histogram of negatives": lambda: looks.scale_histogram(-torch.ones(9)),
    "histogram of nan": lambda: looks.scale_histogram(torch.full((9,), nan)),
    "histogram of nothing": lambda: looks.scale_histogram(torch.ones(0)),
    "histogram of 0 bins": lambda: looks.scale_histogram(torch.ones(9), bins=0),
    "distance beyond": lambda: looks.mean_average_distance(
        torch.ones(3, 2), torch.tensor([[0], [7]])
    ),
    "grid text": lambda: looks.grid_graph("3", 3),
}


def c_of(model, folder="out", **options):
    from anharmonic.export import write_c

    return write_c(model, folder, **options)


def onnx_of(model, path="m.onnx", **options):
    pytest.importorskip("onnxscript")
    from anharmonic.export import write_onnx

    return write_onnx(model, path, **options)


def model(layer="LEM", **options):
    return ah.SequenceModel(layer, 2, 3, hidden_size=4, **options)


def int8(*calibration):
    return c_of(model(), weights="int8", calibration=[*calibration])


def unfinite():
    made = model()
    with torch.no_grad():
        made.linear.weight.fill_(nan)
    return made


def taken(write):
    Path("taken").write_text("x")
    return write(model(), "taken")


EXPORTS = {
    "C of None": lambda: c_of(None),
    "C of a layer of torch": lambda: c_of(torch.nn.Linear(2, 2)),
    "C of no folder": lambda: c_of("nowhere"),
    "C of a bidirectional model": lambda: c_of(model(bidirectional=True)),
    "C of an embedding": lambda: c_of(model(embedding_size=2)),
    "C of NaN": lambda: c_of(unfinite()),
    "C of weights": lambda: c_of(model(), weights="int4"),
    "C without calibration": lambda: c_of(model(), weights="int8"),
    "C calibration empty": int8,
    "C calibration nan": lambda: int8(np.full((9, 2), nan, np.float32)),
    "C calibration of other width": lambda: int8(np.ones((9, 5), np.float32)),
    "C calibration text": lambda: c_of(model(), weights="int8", calibration="none.npz"),
    "C class names": lambda: c_of(model(), class_names=["a"]),
    "C class names numbers": lambda: c_of(model(), class_names=[1, 2, 3]),
    "C into a file": lambda: taken(c_of),
    "C examples nan": lambda: c_of(model(), examples=[np.full((9, 2), nan)]),
    "ONNX of None": lambda: onnx_of(None),
    "ONNX of no folder": lambda: onnx_of("nowhere"),
    "ONNX of an LSTM": lambda: onnx_of(model("LSTM")),
    "ONNX into no folder": lambda: onnx_of(model(), "nowhere/m.onnx"),
    "ONNX onto a folder": lambda: onnx_of(model(), "."),
    "ONNX step of a model": lambda: onnx_of(model(), step=True),
}
adding = partial(Run, "adding", "LEM")
LR = {"lr": Range(1e-3, 1e-2)}
RUNS = {
    "task": lambda: Run("bogus", "LEM"),
    "model": lambda: Run("adding", "Evil"),
    "model a class": lambda: Run("adding", ah.LEM),
    "options a list": lambda: adding([]),
    "options of numbers": lambda: adding({1: 2}),
    "option a set": lambda: adding({"length": {1}}),
    "option nan": lambda: adding({}, {"dropout": nan}),
    "dtype option": lambda: adding({}, {"dtype": "x"}),
    **{
        f"{name} {value}": partial(adding, **{name: value})
        for name, value in [
            *[
                ("epochs", 0),
                ("batch_size", 0),
                ("patience", 0),
                ("lr_drop_epoch", 0),
                ("seed", -1),
            ],
            *[("clip_norm", nan), ("clip_norm", 0), ("lr", 0.0), ("lr", 11)],
            *[("weight_decay", -0.1), ("label_smoothing", 2.0)],
            *[("schedule", "most"), ("optimizer", "most")],
        ]
    },
    **{
        f"{name} {value}": partial(RunEnvironment, **{name: value})
        for name, value in [
            *[("device", "tpu"), ("device", "gpu"), ("devices", 0), ("threads", 0)],
            *[("threads", 100_000), ("out", None), ("data_dir", 3), ("progress", "yes")],
            ("logger", "tensorbord"),
        ]
    },
    "range turned": lambda: Range(1.0, 0.5),
    "range of logarithms": lambda: Range(0.0, 1.0, log=True),
    "range empty": lambda: Range(1.0, 1.0),
    "range nan": lambda: Range(nan, 1.0),
    "search nothing": lambda: search(adding(), {}, 1, RunEnvironment(), Path("s")),
    "search trials": lambda: search(adding(), LR, 0, RunEnvironment(), Path("s")),
    "search name": lambda: search(adding(), {"width": Range(1, 2)}, 1, RunEnvironment(), Path("s")),
    "search sampler": lambda: search(adding(), LR, 1, RunEnvironment(), Path("s"), sampler="most"),
    "compare nothing": lambda: compare("bogus"),
    "compare models": lambda: compare("digits", models=["Evil"]),
    "compare no models": lambda: compare("digits", models=[]),
    "compare seeds": lambda: compare("digits", seeds=[]),
    "compare folds": lambda: compare("digits", folds=1),
    "task option": lambda: make_task("adding", {"width": 3}),
    "task without its file": lambda: make_task("file", {}),
    "task with another's file": lambda: make_task("adding", {}, file=Path("mine.npz")),
    **{
        f"{name} {value}": partial(make_task, "adding", {name: value})
        for name, value in [
            *[("length", 1), ("length", "9"), ("valid_size", 0), ("test_size", 0)],
            *[("steps_per_epoch", 0), ("data_seed", -1)],
        ]
    },
}
CALLS = RESONATORS | LOOKS | EXPORTS | RUNS


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call, refused):
    refused(call, ValueError, TypeError, OSError, RuntimeError)
    assert not Path("out/model.c").exists() and not Path("m.onnx").exists()


class Zero(torch.nn.Module):
    """No layer at all."""

    def forward(self, *words, **options):
        return torch.zeros(1)


SUITES = {
    "layer None": lambda: check_sequence_layer(None),
    "layer of None": lambda: check_sequence_layer(lambda *sizes, **options: None),
    "layer of nothing": lambda: check_sequence_layer(lambda *sizes, **options: Zero()),
    "graph layer of None": lambda: check_graph_layer(lambda: None, width=4),
    "graph layer of nothing": lambda: check_graph_layer(lambda: Zero(), width=4),
    "task of None": lambda: check_task(lambda: None),
}


@pytest.mark.parametrize("call", SUITES.values(), ids=SUITES)
def test_suites_fail_where_there_is_nothing_to_test(call):
    with pytest.raises((AssertionError, TypeError, ValueError, AttributeError)):
        call()
