"""Bad input to estimators, resonators, diagnostics, runs and tasks."""

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


# ---- estimators ----
def estimator(kind, **options):
    estimators = pytest.importorskip("anharmonic.estimators", exc_type=ImportError)
    brief = {"hidden_size": 4, "max_steps": 3} if "Seq" in kind else {"num_oscillators": 20}
    return getattr(estimators, kind)(**{"random_state": 0, **brief, **options})


def network(**options):
    estimator("SequenceClassifier", **options).fit(X, Y)


def run_options(**options):
    network(run_options=options)


def resonators(**options):
    estimator("ResonatorClassifier", **options).fit(X, Y)


def forecaster(**options):
    estimator("SequenceForecaster", **options).fit(X)


LISTS = [1, 0.5, "1", {1: 2}, np.ones((1, 1))]
LEFT_TO_IT = [{"window": 10}, {"horizon": 2}, {"missing": "mean"}]


@wrong_values(
    (network, {}, {"model": ["LEMM"], "max_steps": [0], "missing": ["zero"], "device": ["gpu"]}),
    (network, {}, {"model_options": [{"width": 3}], "class_weight": ["even"]}),
    (network, {"lr": 0.1}, {"run_options": [{"lr": 0.1}, {"seed": 3}]}),
    (run_options, {}, {"speed": [1], "task_options": LEFT_TO_IT}),
    (network, {"class_weight": {0: 9.0}}, {"run_options": [{"class_weights": "balanced"}]}),
    (resonators, {}, {"num_oscillators": [0], "num_biases": [0], "scaling": ["none"]}),
    (resonators, {}, {"class_weight": [{"none": 1}], "pools": [["most"], "end", []]}),
    (resonators, {}, {"alphas": [[-1.0], []]}),
    (forecaster, {}, {"horizon": [0, 9], "window": [8], "valid_share": [1.0]}),
    (forecaster, {}, {"forecast": [[7], *LISTS], "known": LISTS, "quantiles": LISTS}),
)
def test_options_of_estimators(call, name):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert name in str(caught.value), str(caught.value)


SERIES = X.transpose(0, 2, 1)


def features(sequences=SERIES, **options):
    return ResonatorFeatures(**{"num_oscillators": 9, **options}).fit(sequences)


def sample(**changes):
    features().stream(num_streams=2).update(**{"x_t": np.ones((2, 2)), **changes})


MIXED, EMPTY = [np.zeros((3, 2)), np.zeros((3, 1))], [np.zeros((0, 2))]


@wrong_values(
    (features, {}, {"scaling": ["most"], "sequences": [SERIES[:0], MIXED, EMPTY, [np.zeros(3)]]}),
    (lambda sequences: features().transform(sequences), {}, {"sequences": [SERIES * nan]}),
    (ResonatorFeatures().transform, {}, {"sequences": [SERIES]}),  # not fitted
    (sample, {}, {"x_t": [np.ones((3, 2)), None, np.full((2, 2), inf), [["a", "b"]] * 2]}),
    (sample, {}, {"elapsed": [nan, "1", -1.0]}),
    (
        lambda num_streams: features().stream(num_streams), {},
        {"num_streams": [0, -1, 2.0, "2", 10**9, 2**63, 10**30]},  # more than memory holds
    ),
)  # fmt: skip
def test_features(call, name, refused):
    refused(call, names=name)


# ---- diagnostics ----
ones, one = torch.ones(5, 2, 2), torch.ones(5, 1, 2)
lem, cornn, both_ways = ah.LEM(2, 3), ah.CoRNN(2, 3), {"bidirectional": True}
single, projected = ah.LEM(2, 3, multiscale=False), torch.nn.LSTM(2, 3, proj_size=1)
no_layers = [torch.nn.Linear(2, 2), ah.LinOSSNetwork(2, 4), ah.LEM(2, 3, **both_ways)]
no_springs = [ah.NeuralOscillator(2, 3), "UnICORNN", ah.UnICORNN(2, 3, **both_ways)]
nodes, edges = torch.ones(3, 2), torch.tensor([[0], [1]])
mixed = [nodes, torch.ones(3, 4)]


def distance(edge_index):
    looks.mean_average_distance(nodes, edge_index)


def adjoint(ode=None, loss=torch.sum, points=10):
    looks.adjoint_norms(ode or ah.NeuralODE(2, "skew"), ones[0], loss, points=points)


def energy(layer=None, **changes):
    state = (torch.zeros(1, 2, 3),) * 2
    ah.hamiltonian(layer or ah.UnICORNN(2, 3), **{"state": state, "x_t": ones[0], **changes})


@wrong_values(
    (looks.state_gradients, {"x": ones}, {"layer": [None]}),
    (looks.state_gradients, {"layer": lem}, {"x": [torch.ones(5, 2, 3), ones * nan]}),
    (looks.state_gradients, {"layer": lem, "x": ones}, {"loss": [lambda o: o.flatten(1).sum(1)]}),
    (looks.jacobian_norms, {"x": one}, {"layer": no_layers}),
    (looks.jacobian_norms, {"layer": lem}, {"x": [ones]}),
    (looks.lyapunov_exponent, {"layer": lem, "x": one}, {"x": [ones], "discard": [5]}),
    (looks.map_lyapunov_exponent, {"step": torch.add, "inputs": ones}, {"start": [ones[0]]}),
    (looks.energy_along, {"x": ones}, {"layer": [lem]}),
    (looks.reversibility_error, {"x": ones}, {"layer": [cornn]}),
    (looks.weight_assumption, {}, {"layer": [lem]}),
    (looks.weight_norms, {}, {"layer": [cornn]}),
    (looks.effective_steps, {}, {"layer": [lem]}),
    (looks.gates, {"x": ones}, {"layer": [cornn, single, projected]}),
    (looks.scale_histogram, {"values": ones}, {"values": [-ones, ones[:0]], "bins": [0]}),
    (looks.scale_histogram, {"values": ones, "low": 2.0}, {"high": [1.0]}),
    (distance, {}, {"edge_index": [7 * edges]}),
    (looks.mean_average_distance, {"graph": edges}, {"x": [nodes[:0]]}),
    (looks.dirichlet_energy, {"graph": edges}, {"x": [torch.zeros(3), nodes.long(), mixed]}),
    (looks.dirichlet_energy, {"graph": ah.Adjacency(edges, 3)}, {"x": [torch.ones(4, 2)]}),
    (looks.grid_graph, {"columns": 3}, {"rows": ["3", 0]}),
    (looks.gate_rates, {"x": nodes, "graph": edges}, {"model": [torch.nn.Identity()]}),
    (adjoint, {}, {"points": [1], "ode": [lem], "loss": [torch.sin, lambda y: y.detach().sum()]}),
    (energy, {}, {"layer": no_springs, "x_t": [torch.ones(2, 3)]}),
    (energy, {"x_t": ones[:, 0]}, {"state": [(torch.zeros(1, 2, 3),) * 2]}),
)
def test_diagnostics(call, name, refused):
    refused(call, names=name)


# ---- runs and tasks ----
ADDING = {"task": "adding", "model": "LEM"}


def adding_task(**options):
    return make_task("adding", options)


def adding_recipe(**options):
    return recipe("LEM", make_task("adding"), options)


def trials(**changes):
    given = {"space": {"lr": Range(1e-3, 1e-2)}, "trials": 1, "sampler": "random", **changes}
    search(
        Run(**ADDING), given.pop("space"), given.pop("trials"), RunEnvironment(), Path("s"), **given
    )


def rows(runs=(), jobs=1):
    fit_rows(list(runs), RunEnvironment(), jobs)


PATHS = ["my/x.npz", "x_TRAIN.ts", Path("x.NPZ"), "file", "bogus", "cora"]
WIDE = [{"hidden_size": 3}]


@wrong_values(
    (Run, ADDING, {"epochs": [0], "batch_size": [0], "patience": [0], "lr_drop_epoch": [0]}),
    (Run, ADDING, {"seed": [-1], "clip_norm": [nan, 0], "lr": [0.0, 11], "weight_decay": [-0.1]}),
    (Run, ADDING, {"code": [3], "label_smoothing": [2.0], "schedule": ["most"]}),
    (Run, ADDING, {"optimizer": ["most"], "new_head": [True], "task": PATHS}),
    (Run, ADDING, {"model": ["Evil", ah.LEM, "GraphCON", "NeuralODE", "ResonatorClassifier"]}),
    (Run, ADDING, {"task_options": [[], {1: 2}, {"length": {1}}]}),
    (Run, ADDING, {"model_options": [{"dropout": nan}, {"dtype": "x"}]}),
    (Run, ADDING | {"model": "Resonators"}, {"lr": [1], "epochs": [1], "batch_size": [1]}),
    (Run, ADDING | {"model": "Resonators"}, {"clip_norm": [1], "model_options": WIDE}),
    (RunEnvironment, {}, {"device": ["tpu", "gpu"], "devices": [0], "threads": [0, 100_000]}),
    (RunEnvironment, {}, {"out": [None], "data_dir": [3], "progress": ["yes"]}),
    (RunEnvironment, {}, {"logger": ["tensorbord"], "diagnose_every": [0]}),
    (RunEnvironment, {}, {"diagnose": ["energy", ["enregy"]]}),
    (adding_task, {}, {"length": [1, "9"], "valid_size": [0], "test_size": [0]}),
    (adding_task, {}, {"steps_per_epoch": [0], "data_seed": [-1], "width": [3]}),
    (make_task, {"name": "file"}, {"file": [None]}),
    (make_task, {"name": "adding"}, {"file": [Path("mine.npz")]}),
    (adding_recipe, {}, {"batch_size": [0], "hidden_size": [16]}),
    (recipe, {"model": "LEM"}, {"task": ["digits"]}),
    (Range, {"high": 0.5}, {"low": [1.0, nan]}),
    (Range, {"high": 1.0, "log": True}, {"low": [0.0]}),
    (trials, {}, {"space": [{}], "trials": [0], "sampler": ["most"]}),
    (lambda width: trials(space={"width": width}), {}, {"width": [Range(1, 2)]}),
    (compare, {"task": "digits"}, {"models": [[]], "seeds": [[]], "folds": [1]}),
    (lambda model: compare("digits", models=[model]), {}, {"model": ["Evil"]}),
    (compare, {}, {"task": ["bogus"]}),
    (rows, {}, {"jobs": [0]}),
    (folds_of, {"run": Run(**ADDING)}, {"folds": [1]}),
    (fit, {"environment": RunEnvironment()}, {"run": [{"task": "adding"}]}),
    (fit, {"run": Run(**ADDING)}, {"environment": ["runs"]}),
)
def test_values(call, name, refused):
    refused(call, names=name)
