import warnings

import pytest
import torch

from anharmonic.data.registry import list_tasks
from anharmonic.nn.registry import list_models
from anharmonic.train.options import (
    check_model_options,
    check_readout,
    check_task_options,
    model_option_parameters,
    without_defaults,
    wrong_type,
)

_LAYER = {"num_layers": 1, "bias": True, "dropout": 0.0, "bidirectional": False}
_IMAGES = {"split_seed": 1234, "train_size": None, "test_size": None}
_CITATIONS = {"split": "public", "split_number": 0, "normalise_features": False}
_TRAFFIC = {
    "split": 0,
    "undirected": True,
    "published_numbering": False,
    "normalise_features": False,
}
DEFAULTS = {
    "CoRNN": {
        **_LAYER,
        "dt": 0.05,
        "frequency": 1.0,
        "damping": 1.0,
        "scheme": "explicit",
        "trainable_dt": False,
        "trainable_frequency": False,
        "trainable_damping": False,
    },
    "UnICORNN": {
        **_LAYER,
        "dt": 0.1,
        "frequency": 1.0,
        "trainable_timescales": True,
        "skipped_layers": None,
    },
    "LEM": {**_LAYER, "dt": 1.0, "multiscale": True, "gate_floor": None, "chrono_length": None},
    "NeuralOscillator": {
        **_LAYER,
        "dt": 0.05,
        "scheme": "symplectic-euler",
        "activation": "tanh",
    },
    "MultiLayerNeuralOscillator": {
        **_LAYER,
        "hidden_sizes": None,
        "dt": 0.05,
        "scheme": "symplectic-euler",
        "activation": "tanh",
    },
    "SkewRNN": {**_LAYER, "memory": "auto", "dt": 0.01},
    "RNN": _LAYER,
    "LSTM": _LAYER,
    "GRU": _LAYER,
    "ChronoLSTM": {**_LAYER, "chrono_length": 100},
    "AntisymmetricRNN": {**_LAYER, "dt": 0.05, "diffusion": 0.1},
    "GatedAntisymmetricRNN": {**_LAYER, "dt": 0.05, "diffusion": 0.1},
    "ExpRNN": {**_LAYER, "initialisation": "cayley"},
    "IndRNN": {**_LAYER, "activation": "relu", "longest_dependency": None},
    "FastRNN": {**_LAYER, "update_weight": 0.05, "carry_weight": 0.95},
    "FastGRNN": {**_LAYER, "gate_scale": 0.95, "gate_shift": 0.02},
    "LipschitzRNN": {
        **_LAYER,
        "dt": 0.05,
        "skewness": 0.75,
        "diffusion": 0.1,
        "scheme": "euler",
    },
    "NeuralODE": {
        "dynamics": "skew",
        "width": 32,
        "num_layers": 1,
        "matrix_activation": "identity",
        "normalisation": "regression",
        "end_time": 1.0,
        "solver": "dopri5",
        "rtol": 1e-4,
        "atol": 1e-6,
        "step_size": None,
        "adjoint": False,
        "max_evaluations": 10_000,
    },
    "breast-cancer": {"metric": "accuracy", "split_seed": 1234},
    "beijing-air": {
        "train_size": 306_869,
        "valid_size": 38_358,
        "test_size": 38_358,
        "split_seed": 1234,
    },
    "adding": {
        "length": 500,
        "valid_size": 1000,
        "test_size": 1000,
        "steps_per_epoch": 100,
        "data_seed": 1234,
    },
    "lorenz96": {"forcing": 0.9, "length": 2000, "horizon": 25, "data_seed": 1234},
    "fitzhugh-nagumo": {"tolerance": "default", "data_seed": 1234},
    "digits": {"split_seed": 1234},
    "smnist": {**_IMAGES, "valid_size": 3000, "pool": 1},
    "psmnist": {**_IMAGES, "valid_size": 3000, "pool": 1, "permutation": "lem"},
    "noise-padded-cifar10": {
        **_IMAGES,
        "valid_size": 2000,
        "form": "original",
        "length": 1000,
        "noise": "normal",
        "noise_seed": 5544,
    },
    "spoken-digits": {
        "split": "official",
        "max_length": None,
        "subsample": 1,
        "split_seed": 1234,
        "valid_speaker": "theo",
        "test_speaker": "yweweler",
        "train_size": None,
    },
    **{name: _CITATIONS for name in ("cora", "citeseer", "pubmed")},
    **{
        name: {"split": 0, "undirected": False, "reverse": False, "normalise_features": False}
        for name in (
            "texas",
            "wisconsin",
            "cornell",
            "cornell-old",
            "film",
            "chameleon",
            "squirrel",
            "chameleon-filtered",
            "squirrel-filtered",
        )
    },
    **{
        name: {"split": 0, "undirected": False, "normalise_features": False}
        for name in (
            "genius",
            "arxiv-year",
            "snap-patents",
        )
    },
    "synthetic-cora": {"homophily": 0.0, "repeat": 1, "normalise_features": False},
    **{
        name: {"split": 0, "normalise_features": False}
        for name in (
            "twitch-de",
            "tolokers",
            "minesweeper",
            "fb100-reed98",
            "fb100-amherst41",
            "fb100-johns-hopkins55",
            "fb100-cornell5",
        )
    },
    "ppi": {},
    "mnist-superpixels": {"split_seed": 1234, "train_size": None},
    **{name: _TRAFFIC for name in ("chameleon-traffic", "squirrel-traffic")},
    "zinc-rebuilt": {"atoms": "onehot"},
    "file": {"target": "auto", "standardise": True, "missing": "error", "split_seed": 1234},
}


MODELS = [*list_models(), *list_models("tabular")]


@pytest.mark.parametrize("name", [*MODELS, *list_tasks()])
def test_defaults_of_constructors_never_change(name):
    # A default is left out of a run's hash: another default would be another training under the
    # name of an old one. New options are added to the table above.
    is_model = name in MODELS
    task, model = ("adding", name) if is_model else (name, "LEM")
    field = "model_options" if is_model else "task_options"
    values = {"task_options": {}, "model_options": {}, field: DEFAULTS[name]}
    assert without_defaults(task, model, values)[field] == {}


def test_only_defaults_are_left_out():
    values = {
        "seed": 0,
        "task_options": {"length": 9, "valid_size": 1000},
        "model_options": {"hidden_size": 128, "bias": False, "dropout": 0.0},
    }
    assert without_defaults("adding", "LEM", values) == {
        "seed": 0,
        "task_options": {"length": 9},
        "model_options": {"hidden_size": 128, "bias": False},
    }


def test_whole_numbers_for_floats_become_floats():
    options = check_model_options("UnICORNN", {"dt": [1, 0.5], "num_layers": 2})
    assert [type(dt) for dt in options["dt"]] == [float, float]
    assert type(options["num_layers"]) is int
    assert type(check_task_options("lorenz96", {"forcing": 8})["forcing"]) is float


def test_impossible_models_are_refused():
    with pytest.raises(ValueError, match="dt must be a finite number"):
        check_model_options("LEM", {"dt": -1})
    with pytest.raises(ValueError, match="bias=True"):
        check_model_options("ChronoLSTM", {"bias": False})


@pytest.mark.parametrize("model", list_models())
def test_trying_a_model_draws_nothing_and_says_nothing(model):
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_model_options(model, {})["hidden_size"] == 128
        if "dt" in model_option_parameters(model):
            check_model_options(model, {"dt": 50.0})  # warned of as unstable when it is trained
    assert torch.equal(torch.get_rng_state(), state)


def test_options_nobody_may_set():
    assert not {"input_size", "batch_first", "device", "dtype"} & set(
        model_option_parameters("LSTM")
    )


def test_readout():
    check_readout("lorenz96", "all", "last")
    check_readout("file", None, "mean")
    with pytest.raises(ValueError, match=r"readout='mean' needs .*; got task 'x', .*leave readout"):
        check_readout("x", "all", "mean")


def test_wrong_type():
    with pytest.raises(TypeError, match=r"out must be a path; got out=3 \(int\); pass one"):
        wrong_type("out", "a path", 3)
