import ast
import dataclasses
import inspect
import itertools
from pathlib import Path

import pytest

from anharmonic.train import Run, RunEnvironment


def test_hash_of_a_fixed_run_never_changes():
    run = Run(
        task="adding",
        model="LEM",
        task_options={"length": 500},
        model_options={"hidden_size": 64, "dt": 0.1},
        seed=7,
        epochs=3,
        lr_drop_epoch=2,
        clip_norm=1,
        patience=5,
    )
    # If this fails, committed results lose their names: give the new field a default and list it
    # in _ADDED_LATER, or give the constructor its old default back, instead of changing the
    # numbers here.
    assert run.hash == "1fe5b9c1c91b"


def test_json_round_trip_and_defaults(tiny):
    run = tiny(patience=2, clip_norm=0.5, select="last", reduced=True)
    assert Run.from_json(run.to_json()) == Run.from_json(run.to_json(indent=2)) == run
    assert Run.from_json('{"task": "adding", "model": "lem"}') == Run("adding", "LEM")
    assert hash(run) == hash(Run.from_json(run.to_json()))


LEM = {"task": "adding", "model": "LEM"}
STEPS = {**LEM, "model": "UnICORNN", "model_options": {"num_layers": 2, "dt": [1, 2]}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LEM, {"task": "adding", "model": "lem", "model_options": {"hidden_size": 128}}),
        (LEM, LEM | {"task_options": {"length": 500}}),
        (LEM, LEM | {"model_options": {"dt": 1, "num_layers": 1}}),
        *((LEM | {name: 1}, LEM | {name: 1.0}) for name in ("lr", "clip_norm")),
        (STEPS, STEPS | {"model_options": {"num_layers": 2, "dt": [1.0, 2.0]}}),
    ],
)
def test_one_meaning_has_one_hash(one, other):
    assert Run(**one).hash == Run(**other).hash


@pytest.mark.papers
def test_every_field_changes_the_hash():
    other = {
        "task": "lorenz96",
        "model": "GRU",
        "task_options": {"length": 9},
        "model_options": {"bias": False},
        "seed": 1,
        "epochs": 1,
        "batch_size": 1,
        "lr": 0.5,
        "lr_drop_epoch": 1,
        "clip_norm": 1.0,
        "weight_decay": 0.1,
        "patience": 1,
        "select": "last",
        "readout": "mean",
        "patch": 2,
        "optimizer": "adamw",
        "betas": (0.8, 0.99),
        "schedule": "cosine",
        "warmup": 0.1,
        "ema_decay": 0.9,
        "label_smoothing": 0.1,
        "class_weights": "balanced",
        "input_noise": 0.1,
        "amplitude_noise": 0.1,
        "decay_output": False,
        "reduced": True,
        "initial": "0" * 64,
        "new_head": True,
        "code": "0" * 12,
    }
    assert set(other) == {field.name for field in dataclasses.fields(Run)}
    needed = {"new_head": {"initial": "0" * 64}}
    runs = [Run(**LEM | needed.get(name, {}) | {name: value}) for name, value in other.items()]
    assert len({run.hash for run in [Run(**LEM), *runs]}) == len(other) + 1


def test_options_are_copied_and_kept_as_they_were_written():
    options = {"length": 500}
    run = Run("adding", "LEM", options)
    options["length"] = 10
    assert run.task_options == {"length": 500}
    assert Run.from_json(run.to_json()) == run != Run("adding", "LEM")


FILE = r"got a file, '.*x.*'; pass task=\"file\" with .*sha256.*RunEnvironment\(file=path\)"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "my/x.npz"}, FILE),
        ({"task": "x_TRAIN.ts"}, FILE),
        ({"task": Path("x.NPZ")}, FILE),
        ({"task": "file"}, r'that holds "sha256"; got \[\].*file_digest'),
        ({"task": "cora"}, "task 'cora' must be one for graphs; got 'LEM'"),
        ({"model": "GraphCON"}, r"task 'adding' must be one for sequences; got.*Graph"),
        ({"model": "NeuralODE"}, "task 'adding' must be one for sequences; got 'Neural"),
        pytest.param(
            {"task": "breast-cancer"},
            "'breast-cancer' must be one for tables of numbers; got",
            marks=pytest.mark.papers,
        ),
        pytest.param(
            {"task": "lorenz96", "readout": "mean"},
            "readout on task 'lorenz96' must be .*; got 'mean'",
            marks=pytest.mark.papers,
        ),
        pytest.param(
            {"task": "imdb", "input_noise": 0.1},
            "input_noise must be 0 on task 'imdb'.*not sequences of",
            marks=pytest.mark.papers,
        ),
    ],
)
def test_tasks_models_and_settings_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Run(**LEM | fields)


ADDING = '{"task": "adding", "model": "LEM", %s}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a run's JSON must be JSON"),
        ("[" * 100_000, "a run's JSON must be JSON"),
        ("[]", "a run's JSON must be a JSON object; got list"),
        ('{"task": "adding"}', "no key 'model'"),
        (ADDING % '"epoch": 3', "key 'epoch' .did you mean 'epochs'"),
        (ADDING % '"epochs": "3"', "epochs must be an int >= 1; got .*'3'"),
        (ADDING % '"lr": null', "lr must be a finite number.*got .*None"),
        (ADDING % '"reduced": 1', "reduced must be True or False; got .*1"),
        (ADDING % '"select": "x"', "select"),
    ],
)
def test_bad_json(text, message):
    with pytest.raises(ValueError, match=message):
        Run.from_json(text)


def test_every_field_is_documented():
    for cls in (Run, RunEnvironment):
        body = ast.parse(inspect.getsource(cls)).body[0].body
        for node, following in itertools.pairwise(body):
            if isinstance(node, ast.AnnAssign):
                assert isinstance(following, ast.Expr), ast.unparse(node)
