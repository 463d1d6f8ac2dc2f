"""Every row against the papers' numbers and settings, and those of the published code.

ANHARMONIC_PAPERS names a folder with two files, facts read from the papers and from their code:
``experiments.yaml`` (by the id of our tables) and ``published-settings.yaml``.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from anharmonic.data import task_options
from anharmonic.nn.registry import constructor_arguments, model_class
from anharmonic_papers.report.summary import experiments as experiments_of_papers
from anharmonic_papers.tables import list_tables, table

FOLDER = os.environ.get("ANHARMONIC_PAPERS", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="ANHARMONIC_PAPERS does not name the folder of the papers' numbers"
)

TABLES = [one.id for one in experiments_of_papers() if one.id in list_tables()]
RETRAINED = ["cornn-retraining-statistics", "unicornn-retraining-statistics"]
TRAINED = [name for name in TABLES if name not in RETRAINED]
# Our labels where the papers print others.
PRINTED = {
    ("cornn-smnist", "coRNN 128"): "coRNN small",
    ("cornn-smnist", "coRNN 256"): "coRNN big",
    ("cornn-psmnist", "coRNN 128"): "coRNN small",
    ("cornn-psmnist", "coRNN 256"): "coRNN big",
    ("unicornn-psmnist", "UnICORNN 128"): "UnICORNN",
    ("unicornn-psmnist", "UnICORNN 256"): "UnICORNN",
    ("lem-fhn-no-multiscale", "LEM without multiscale"): "LEM without multiscale (single tuned dt)",
    ("graphcon-depth-cora", "GCN"): "GCN+DropEdge",
    **{("g2-p-sensitivity", f"p = {p}"): "G2-GraphSAGE" for p in range(1, 6)},
    ("g2-rate-gnn-ablation", "separate gate"): "G2-GraphSAGE with separate rate GNN",
    ("g2-rate-gnn-ablation", "shared"): "G2-GraphSAGE shared",
    **{("g2-parameter-matched", model): "G2-GCN against GCN" for model in ("GCN", "G²-GCN")},
    ("g2-single-rate-channels", "a rate per channel"): "G2-GraphSAGE multi-rate channels",
    ("g2-single-rate-channels", "a single rate"): "G2-GraphSAGE single-rate channels",
}
# Rows of ours that a paper's table does not have, and rows of papers that ours do not have.
ADDED = {("cornn-adding", label) for label in (
    "LSTM", "LEM", "chrono-LSTM", "GRU", "UnICORNN", "UnICORNN, gates from the start",
    "UnICORNN, gates from the start, searched",
)} | {("cornn-variants", "coRNN"), ("cornn-imdb", "LEM, short")}  # fmt: skip
CONSTANT = ("g2-node-regression", "constant: mean of the training targets")
LEFT_OUT = {
    ("g2-depth-cora", "GCN+DropEdge"),
    ("g2-single-rate-channels", "GraphSAGE"),
    ("g2-synthetic-cora", "GGCN"),
}
PUBLISHED = "(published code)"


def load(name):
    return yaml.safe_load((Path(FOLDER) / name).read_text(encoding="utf-8"))


def runs(names):
    """The rows of some tables that have a run."""
    return [row for name in names for row in table(name).rows if row.run is not None]


@pytest.fixture(scope="module")
def experiments():
    return {entry["id"]: entry for entry in load("experiments.yaml")["experiments"]}


@pytest.fixture(scope="module")
def published():
    return load("published-settings.yaml")["experiments"]


def printed(entry, row):
    """What the papers say of a row's model, or None."""
    exact = [model for model in entry["models"] if model["model"] == row.label]
    if len(exact) == 1:
        return exact[0]
    # Their name of it: the row's, without what our variant of it adds.
    label = row.label.removesuffix(f" {PUBLISHED}").split(", ")[0]
    label = PRINTED.get((entry["id"], label), label.replace("²", "2"))
    units = re.search(r" (128|256)$", row.label)
    found = [
        model
        for model in entry["models"]
        if label in model["model"].split(", ")
        and not (units and model["units"] != int(units[1]))
        and model.get("chrono") in (None, row.label.endswith(", chrono"))
    ]
    assert len(found) <= 1, found
    return found[0] if found else None


def of_group(entry, value, group):
    """What of a value belongs to a group of rows: values stand by it, or in an order."""
    if isinstance(value, dict):
        by_group = {name.replace("=", " = "): one for name, one in value.items()}
        return by_group[group.removesuffix(" layers")]
    if isinstance(value, list):
        return value[entry["metric"]["order"].index(group)]
    return value


def number(entry, model, group):
    """The printed number of a model and its deviation, as far as there are any."""
    found = of_group(entry, model.get("value", model.get("mean")), group)
    if isinstance(found, dict):
        return found["mean"], found["std"]
    return found, None if "value" in model else of_group(entry, model.get("std"), group)


@pytest.mark.parametrize("name", TABLES)
def test_numbers_are_the_printed_ones(name, experiments, published):
    entry, seen = experiments[name], set()
    for row in table(name).rows:
        if (name, row.label) in ADDED:
            assert not row.reported, row.id
            continue
        if (name, row.label) == CONSTANT:
            constant = published[name]["derived_reference"]["constant_training_mean"][row.group]
            expected, parameters = (constant["mean"], constant["std"]), None
        else:
            model = printed(entry, row)
            assert model is not None, f"{row.id}: no such model in the papers"
            seen.add(model["model"])
            expected, parameters = number(entry, model, row.group), model.get("params")
            if "links reversed" in row.label:
                expected = None, None
        ours = tuple(float(text) if text else None for text in (row.reported, row.spread))
        assert ours == expected, row.id
        assert (row.parameters or None) == parameters, row.id
    left_out = {(name, model["model"]) for model in entry["models"]} - {(name, m) for m in seen}
    assert left_out == {pair for pair in LEFT_OUT if pair[0] == name}


# Our names of settings: those of the papers' prose, and their letters by model.
NAMES = {"batch": "batch_size", "units": "hidden_size", "hidden": "hidden_size",
         "layers": "num_layers", "separate_rate_gnn": "separate_gate",
         "separate_gate_network": "separate_gate", "drop_in": "input_dropout",
         "drop": "output_dropout", "dropout_used": "dropout", "clip_grad_norm": "clip_norm",
         "epochs_run": "epochs", "gamma": "frequency",
         "clip": "clip_norm", "input_embedding": "embedding_size",
         "shared_embeddings": "tie_embedding", "max_time_steps": "window",
         "l2_penalty": "weight_decay"}  # fmt: skip
ALPHA = {"UnICORNN": "frequency", "GraphCON": "damping"}
# What the sources say beside a run's settings: their own seed, what has no effect, where it holds.
BESIDE = {
    "T_tuned", "N_tuned", "seed", "schedule", "dropout_stored", "heads_gat", "epochs_set",
    "options_conv", "classes", "select_by", "dataset", "conv", "model", "optimizer", "hom_level",
    "embedding", "inter_layer_dropout", "state_dropout", "steps_per_turn", "turns",
    "weight_averaging", "lr_decay", "evaluation", "dynamic_evaluation",
}  # fmt: skip
# Rows whose settings are printed with another table.
ELSEWHERE = {
    ("cornn-adding", "LEM"): ("lem-adding", "LEM"),
    ("unicornn-psmnist", "coRNN"): ("cornn-psmnist", "coRNN 256"),
    ("unicornn-ncifar", "coRNN"): ("cornn-ncifar", "coRNN"),
    ("unicornn-imdb", "coRNN"): ("cornn-imdb", "coRNN"),
    ("lem-adding", "coRNN"): ("cornn-adding", "coRNN"),
    ("lem-smnist", "coRNN"): ("cornn-smnist", "coRNN 128"),
    ("lem-psmnist", "coRNN"): ("cornn-psmnist", "coRNN 128"),
    ("lem-ncifar", "coRNN"): ("cornn-ncifar", "coRNN"),
    ("lem-fhn-no-multiscale", "LEM"): ("lem-fitzhugh-nagumo", "LEM"),
    ("graphcon-depth-mnist", "GraphCON-GCN"): ("graphcon-mnist-superpixel", "GraphCON-GCN"),
}
# Settings in which a row's group, label or note differs from its source.
OTHERWISE = {
    ("cornn-adding", "LEM"): {"dt"},  # by the rule 1/sqrt(T)
    ("lem-fitzhugh-nagumo", "LEM, dt = 2"): {"dt"},  # of Figure 5.4
    ("graphcon-depth-mnist", "GraphCON-GCN"): {"num_layers"},
    ("graphcon-sensitivity", "GraphCON-GCN"): {"num_layers"},  # 16 of the paper's 32
}
VARIED = (
    "standardised",
    "kinds of atoms",
    "searched",
    "reversed",
    "short",
    "moved images",
    "small",
    "gates from the start",
    " epochs",
)  # rows of ours in which a printed setting is varied
# Epochs that the papers print for all models of these tables at once.
IMAGES = re.compile("(smnist|psmnist|ncifar)$")
# Published rows whose settings are those of another experiment's code.
CODE_OF = {"graphcon-depth-zinc": "graphcon-zinc", "g2-multirate-exponent": "g2-node-regression"}
RESIDUALS = {
    "R X minus the convolution's own linear map": "v2",
    "R X added to the convolution": "plain",
}


def value_in(run, name):
    """A run's setting, or the default of the option of its model or its task."""
    known = vars(run) | run.task_options | run.model_options
    if name in known:
        return known[name]
    model = constructor_arguments(model_class(run.model))
    # (What neither has is not done.)
    return model[name].default if name in model else task_options(run.task).get(name, False)


def schedule(text):
    """Epochs in all, and before the learning rate drops."""
    first, *rest = (int(n) for n in re.findall(r"\d+", text.replace("lr/10", "")))
    if "after" in text:
        return {"epochs": first, "lr_drop_epoch": rest[0]}
    if not rest:
        return {"epochs": first, "lr_drop_epoch": None}
    return {"epochs": first * 4 if "3x" in text else first + rest[0], "lr_drop_epoch": first}


def differences(run, settings, beside=()):
    """What of published settings a run has otherwise."""
    wanted = {}
    if "dt_layer1" in settings:  # of two layers
        first, others = settings["dt_layer1"], settings["dt"]
        settings = {k: v for k, v in settings.items() if k != "dt_layer1"} | {"dt": [first, others]}
    for key, value in settings.items():
        name = ALPHA[run.model] if key == "alpha" else NAMES.get(key, key)
        name = "damping" if key == "eps" else name
        if name == "epochs" and isinstance(value, str):
            wanted |= schedule(value)
        elif name not in BESIDE and value is not None:
            nothing = 0.0 if name == "dropout" else None
            words = {"yes": True, "no": False, "none": nothing}
            wanted[name] = words.get(value, value) if isinstance(value, str) else value
    found = {name: value_in(run, name) for name in wanted if name not in beside}
    return {name: (value, wanted[name]) for name, value in found.items() if value != wanted[name]}


@pytest.mark.parametrize("name", TRAINED)
def test_settings_are_the_printed_ones(name, experiments):
    for row in runs([name]):
        if row.settings == "published code" or (name, row.label) == CONSTANT:
            continue
        key = (name, row.label)
        source, label = ELSEWHERE.get(key, key)
        entry = experiments[source]
        model = printed(entry, replace(row, label=label)) or {}
        settings = {k: model[k] for k in ("units", "layers") if k in model} | model.get("hp", {})
        settings = {k: of_group(entry, v, row.group) for k, v in settings.items()}
        if row.settings == "paper":
            assert settings.keys() - {"units", "layers"}, f"{row.id}: no settings are printed"
        if not any(word in row.label for word in VARIED):
            beside = {*OTHERWISE.get(key, ()), *row.search}  # what is searched is not the printed
            assert not differences(row.run, settings, beside), row.id
            if IMAGES.search(name) and row.run.model in ("CoRNN", "LEM"):
                assert (row.run.epochs, row.run.lr_drop_epoch) == (120, 100), row.id


@pytest.mark.parametrize("name", TRAINED)
def test_published_rows_have_the_settings_of_the_code(name, published):
    for row in runs([name]):
        if row.settings != "published code":
            continue
        entry = published[CODE_OF.get(name, name)]
        settings = entry["settings"]
        if name == "graphcon-heterophilic":
            code = settings[row.group.lower()] | settings["common"]
            code["input_dropout"] = code["dropout_used"]
        elif name == "graphcon-mnist-superpixel":
            code = settings[row.run.model_options["conv"]]["code"] | settings["common"]
        else:
            code = dict(settings["code"])
        beside = {"num_layers"} if name in CODE_OF else ()
        if match := re.search(r"lr/10 after epoch (\d+)", code.get("schedule", "")):
            code["lr_drop_epoch"] = int(match[1])
        for words, residual in RESIDUALS.items():
            if words in entry.get("architecture", ""):
                code["residual"] = residual
        if row.run.model_options.get("conv") == "GAT":
            code |= {"heads": 4, "group_mean": True}  # common: gat_quirk
        if row.run.model == "GradientGating":
            code["aggr"] = "mean"  # common: gate
        if "gate_direction" in entry:
            code["neighbours"] = "out"
        assert not differences(row.run, code, beside), row.id


def test_the_published_code_gave_what_was_measured():
    text = " ".join((Path(FOLDER) / "findings.md").read_text(encoding="utf-8").split())
    text = re.search(r"The published code itself(.*?)Its author says", text)[1]
    measured = set()
    for model, part in re.findall(r"(GraphCON-GCN|G²-SAGE) (.*?)(?:;|$)", text):
        label = model.replace("SAGE", "GraphSAGE")
        name = "graphcon-heterophilic" if model.startswith("GraphCON") else "g2-heterophilic"
        for group, mean, std in re.findall(r"(\w+) ([0-9.]+) ± ([0-9.]+)", part):
            measured.add((name, group, f"{label} {PUBLISHED}", mean, std))
    assert len(measured) == 4
    found = {
        (name, row.group, row.label, row.rerun, row.rerun_spread)
        for name in TABLES
        for row in table(name).rows
        if row.rerun
    }
    assert found == measured


def test_retrainings_and_their_means_are_those_of_checked_rows():
    checked = {(row.run.hash, row.settings) for row in runs(TRAINED)}
    assert {(row.run.hash, row.settings) for row in runs(RETRAINED)} <= checked
    printed = {row.run.hash: f"{row.reported} ± {row.spread}" for row in runs(RETRAINED)}
    found = {row.run.hash: row.retrained for row in runs(TABLES) if row.retrained}
    assert printed and {name: found.get(name) for name in printed} == printed
