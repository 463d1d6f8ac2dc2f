"""Bad input to estimators, resonators, exports, diagnostics, suites and data classes."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import wrong_values

import anharmonic as ah
from anharmonic import diagnostics as looks
from anharmonic.data import make_task
from anharmonic.nn import ResonatorFeatures
from anharmonic.train import Range, Run, RunEnvironment, compare, fit, recipe, search
from anharmonic.train.recipe import folds_of
from anharmonic.train.rows import fit_rows

nan, inf = float("nan"), float("inf")
X = np.random.default_rng(0).standard_normal((12, 2, 9)).astype(np.float32)
Y = np.arange(12) % 2
FEW = {"num_oscillators": 20, "random_state": 0}
BRIEF = {"hidden_size": 4, "max_steps": 3, "random_state": 0}
NETWORK, RESONATORS = "SequenceClassifier", "ResonatorClassifier"
TWICE = {"class_weights": "balanced"}
TASK_OPTIONS = {"window": 10, "horizon": 2, "missing": "mean"}
ESTIMATORS = [
    (NETWORK, {"model": "LEMM"}, "did you mean 'LEM'"),
    (NETWORK, {"max_steps": 0}, "max_steps"),
    (NETWORK, {"missing": "zero"}, "missing"),
    (NETWORK, {"device": "gpu"}, "device"),
    (NETWORK, {"model_options": {"width": 3}}, "width"),
    (NETWORK, {"run_options": {"speed": 1}}, "speed"),
    (NETWORK, {"class_weight": "even"}, "even"),
    (NETWORK, {"lr": 0.1, "run_options": {"lr": 0.1}}, "'lr' in run_options must be absent"),
    (NETWORK, {"run_options": {"seed": 3}}, "must be absent with random_state; got 3"),
    (NETWORK, {"class_weight": {0: 9.0}, "run_options": TWICE}, "class_weights of run_options"),
    *(
        (NETWORK, {"run_options": {"task_options": {name: value}}}, "left to the estimator")
        for name, value in TASK_OPTIONS.items()
    ),
    (RESONATORS, {"num_oscillators": 0}, "num_oscillators"),
    (RESONATORS, {"scaling": "none"}, "scaling"),
    (RESONATORS, {"class_weight": {"none": 1}}, "class_weight"),
    (RESONATORS, {"num_biases": 0}, "num_biases"),
    (RESONATORS, {"pools": ["most"]}, "pools"),
    (RESONATORS, {"pools": "end"}, "pools"),
    (RESONATORS, {"pools": []}, "pools"),
    (RESONATORS, {"random_state": "a"}, "a"),
    (RESONATORS, {"alphas": [-1.0]}, "alphas"),
    (RESONATORS, {"alphas": []}, "alphas"),
    ("SequenceForecaster", {"horizon": 0}, "horizon"),
    ("SequenceForecaster", {"horizon": 9}, "steps of X must be more than horizon=9"),
    ("SequenceForecaster", {"forecast": [7]}, "forecast"),
    ("SequenceForecaster", {"window": 8}, "window"),
    ("SequenceForecaster", {"valid_share": 1.0}, "valid_share"),
    *(
        ("SequenceForecaster", {name: wrong}, f"{name} must be a list")
        for name in ("forecast", "known", "quantiles")
        for wrong in (1, 0.5, "1", {1: 2}, np.ones((1, 1)))
    ),
]


def estimator(kind, **options):
    estimators = pytest.importorskip("anharmonic.estimators", exc_type=ImportError)
    few = BRIEF if kind.startswith("Sequence") else FEW
    return getattr(estimators, kind)(**few | options)


@pytest.mark.parametrize("kind, options, words", ESTIMATORS)
def test_options_of_estimators(kind, options, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        estimator(kind, **options).fit(X, None if "Forecaster" in kind else Y)
    assert words in str(caught.value), str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, x, y",
    [
        (RESONATORS, [1, 2, 3], [0, 1, 0]),
        (RESONATORS, np.full((12, 2, 9), "a"), Y),
        (RESONATORS, X, np.where(Y, nan, 1.0)),
        (RESONATORS, X, np.stack([Y, Y], 1)),
        (RESONATORS, X, np.linspace(0, 1, 12)),
        ("ResonatorRegressor", X, np.full(12, "a")),
        ("ResonatorRegressor", X, np.full(12, inf)),
    ],
)
def test_data_of_estimators(kind, x, y):
    """Some of these are scikit-learn's own errors, whose words are its own."""
    with pytest.raises((ValueError, TypeError)) as caught:
        estimator(kind).fit(x, y)
    assert "broadcast" not in str(caught.value) and "subscript" not in str(caught.value)
    assert len(str(caught.value)) > 20, str(caught.value)


SERIES = X.transpose(0, 2, 1)


def features(**options):
    return ResonatorFeatures(**{"num_oscillators": 9, **options})


def sample(x_t, **options):
    return features().fit(SERIES).stream(num_streams=2).update(x_t, **options)


FEATURES = {
    "scaling": lambda: features(scaling="most").fit(SERIES),
    "fit nothing": lambda: features().fit(SERIES[:0]),
    "fit of mixed channels": lambda: features().fit([np.zeros((3, 2)), np.zeros((3, 1))]),
    "fit of an empty series": lambda: features().fit([np.zeros((0, 2))]),
    "fit of one axis": lambda: features().fit([np.zeros(3)]),
    "transform before fit": lambda: features().transform(SERIES),
    "transform nan": lambda: features().fit(SERIES).transform(SERIES * nan),
    "sample of another shape": lambda: sample(np.ones((3, 2))),
    "sample None": lambda: sample(None),
    "sample inf": lambda: sample(np.full((2, 2), inf)),
    "sample words": lambda: sample([["a", "b"], ["c", "d"]]),
    "elapsed nan": lambda: sample(np.ones((2, 2)), elapsed=nan),
    "elapsed text": lambda: sample(np.ones((2, 2)), elapsed="1"),
    "bank of q 0": lambda: ah.ResonatorBank(2, 4, q=0),
}
ones, lem, cornn = torch.ones(5, 2, 2), ah.LEM(2, 3), ah.CoRNN(2, 3)
gradients = partial(looks.state_gradients, lem)
nodes, edges = torch.ones(3, 2), torch.tensor([[0], [1]])


def adjoint(loss=torch.sum, **options):
    return looks.adjoint_norms(ah.NeuralODE(2, "skew"), ones[0], loss, **options)


def energy(layer=None, x_t=ones[0]):
    state = (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
    return ah.hamiltonian(layer or ah.UnICORNN(2, 3), state, x_t)


LOOKS = [
    ("layer", lambda: looks.state_gradients(None, ones)),
    ("", lambda: gradients(torch.ones(5, 2, 3))),
    ("", lambda: gradients(ones * nan)),
    ("one number; got shape [2]", lambda: gradients(ones, lambda o: o.flatten(1).sum(1))),
    ("a recurrent layer", lambda: looks.jacobian_norms(torch.nn.Linear(2, 2), ones)),
    ("part of its state", lambda: looks.jacobian_norms(ah.LinOSSNetwork(2, 4), ones[:, :1])),
    ("bidirectional", lambda: looks.jacobian_norms(ah.LEM(2, 3, bidirectional=True), ones)),
    ("x must be one sequence, [T, 1, F]", lambda: looks.jacobian_norms(lem, ones)),
    ("x must be one sequence", lambda: looks.lyapunov_exponent(lem, ones)),
    ("[0, 5); got 5", lambda: looks.lyapunov_exponent(lem, ones[:, :1], discard=5)),
    ("start", lambda: looks.map_lyapunov_exponent(lambda s, _: s, ones[0], ones)),
    ("layer must be a CoRNN", lambda: looks.energy_along(lem, ones)),
    ("layer must be a UnICORNN", lambda: looks.reversibility_error(cornn, ones)),
    ("layer must be a CoRNN", lambda: looks.weight_assumption(lem)),
    ("layer must be a UnICORNN", lambda: looks.weight_norms(cornn)),
    ("layer must be a UnICORNN", lambda: looks.effective_steps(lem)),
    ("layer must be a LEM or an LSTM", lambda: looks.gates(cornn, ones)),
    ("no projection", lambda: looks.gates(ah.LEM(2, 3, multiscale=False), ones)),
    ("no projection", lambda: looks.gates(torch.nn.LSTM(2, 3, proj_size=1), ones)),
    ("positive and finite", lambda: looks.scale_histogram(-torch.ones(9))),
    ("positive and finite", lambda: looks.scale_histogram(torch.ones(0))),
    ("bins", lambda: looks.scale_histogram(torch.ones(9), bins=0)),
    ("high must be above low=2", lambda: looks.scale_histogram(nodes, low=2.0, high=1.0)),
    ("nodes", lambda: looks.mean_average_distance(nodes, torch.tensor([[0], [7]]))),
    ("[..., N, m]", lambda: looks.dirichlet_energy(torch.zeros(3), edges)),
    ("N >= 1", lambda: looks.mean_average_distance(nodes[:0], edges)),
    ("floating-point", lambda: looks.dirichlet_energy(nodes.long(), edges)),
    ("the 4 nodes of x", lambda: looks.dirichlet_energy(torch.ones(4, 2), ah.Adjacency(edges, 3))),
    ("one width", lambda: looks.dirichlet_energy([nodes, torch.ones(3, 4)], edges)),
    ("rows must be an int", lambda: looks.grid_graph("3", 3)),
    ("rows must be an int >= 1", lambda: looks.grid_graph(0, 3)),
    ("GradientGating", lambda: looks.gate_rates(torch.nn.Identity(), nodes, edges)),
    ("points", lambda: adjoint(points=1)),
    ("a NeuralODE", lambda: looks.adjoint_norms(lem, ones[0], torch.sum)),
    ("depends on the end", lambda: adjoint(lambda end: end)),
    ("depends on the end", lambda: adjoint(lambda end: end.detach().sum())),
    *(
        ("a UnICORNN or a MultiLayer", lambda layer=layer: energy(layer))
        for layer in (ah.NeuralOscillator(2, 3), cornn, "UnICORNN")
    ),
    ("bidirectional=False", lambda: energy(ah.UnICORNN(2, 3, bidirectional=True))),
    ("state.y must have shape [1, 5, 3]", lambda: energy(x_t=ones[:, 0])),
    ("[B, 2]", lambda: energy(x_t=torch.ones(2, 3))),
]


@pytest.mark.parametrize("words, call", LOOKS)
def test_diagnostics(words, call, refused):
    refused(call, names=words)


def adding(**fields):
    return Run(**{"task": "adding", "model": "LEM", **fields})


def adding_task(**options):
    return make_task("adding", options)


VALUES = {
    adding: {
        **{"epochs": [0], "batch_size": [0], "patience": [0], "lr_drop_epoch": [0], "seed": [-1]},
        **{"clip_norm": [nan, 0], "lr": [0.0, 11], "weight_decay": [-0.1], "code": [3]},
        **{"label_smoothing": [2.0], "schedule": ["most"], "optimizer": ["most"]},
        **{"task": ["bogus"], "model": ["Evil", ah.LEM], "task_options": [[]], "new_head": [True]},
    },
    RunEnvironment: {
        **{"device": ["tpu", "gpu"], "devices": [0], "threads": [0, 100_000], "out": [None]},
        **{"data_dir": [3], "progress": ["yes"], "logger": ["tensorbord"], "diagnose_every": [0]},
        "diagnose": ["energy", ["enregy"]],
    },
    adding_task: {
        **{"length": [1, "9"], "valid_size": [0], "test_size": [0], "steps_per_epoch": [0]},
        "data_seed": [-1],
    },
}


@wrong_values(VALUES)
def test_values(make, name, value, refused):
    refused(lambda: make(**{name: value}), names=name)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task_options": {1: 2}}, ""),
        ({"task_options": {"length": {1}}}, ""),
        ({"model_options": {"dropout": nan}}, "dropout"),
        ({"model_options": {"dtype": "x"}}, "dtype"),
        ({"task": "my/x.npz"}, "'my/x.npz'; pass task=\"file\" with"),
        ({"task": "x_TRAIN.ts"}, "'x_TRAIN.ts'; pass task=\"file\" with"),
        ({"task": Path("x.NPZ")}, "'x.NPZ'; pass task=\"file\" with"),
        ({"task": "file"}, 'that holds "sha256"; got []'),
        ({"task": "cora"}, "task 'cora' must be one for graphs; got 'LEM'"),
        ({"model": "GraphCON"}, "'adding' must be one for sequences; got 'GraphCON'"),
        ({"model": "NeuralODE"}, "'adding' must be one for sequences; got 'NeuralODE'"),
        ({"model": "ResonatorClassifier"}, "'Resonators', which is fitted in one pass, or"),
        *(
            ({"model": "Resonators", name: 1}, f"{name} must be left out for Resonators")
            for name in ("lr", "epochs", "batch_size", "clip_norm")
        ),
        ({"model": "Resonators", "model_options": {"hidden_size": 3}}, "a key of model_options"),
    ],
)
def test_fields_of_runs(fields, words, refused):
    refused(lambda: adding(**fields), names=words)


LR = {"lr": Range(1e-3, 1e-2)}
RUNS = {
    "recipe without a task": (lambda: recipe("LEM", "digits"), "make it with"),
    "recipe with an option": (
        lambda: recipe("LEM", make_task("digits"), {"hidden_size": 16}),
        "put options of LEM into model_options",
    ),
    "recipe with batch 0": lambda: recipe("LEM", make_task("digits"), {"batch_size": 0}),
    "one fold": lambda: folds_of(adding(), 1),
    "jobs 0": lambda: fit_rows([], RunEnvironment(), 0),
    "fit no run": lambda: fit({"task": "adding"}, RunEnvironment()),
    "fit nowhere": lambda: fit(adding(), "runs"),
    "range turned": lambda: Range(1.0, 0.5),
    "range of logarithms": lambda: Range(0.0, 1.0, log=True),
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
}
CALLS = FEATURES | RUNS


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_calls(call, refused):
    call, words = call if isinstance(call, tuple) else (call, "")
    refused(call, names=words)
