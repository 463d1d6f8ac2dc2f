"""What a run is known by: settings, their defaults, and the code of a model that others add."""

import ast
import dataclasses
import importlib
import inspect
import itertools
import json
import sys
from importlib.metadata import EntryPoint

import pytest

import anharmonic as ah
from anharmonic import _plugins
from anharmonic.data.registry import task_parameters
from anharmonic.data.synthetic import AddingProblem
from anharmonic.nn.registry import list_models
from anharmonic.train import Result, Run, RunEnvironment, fit
from anharmonic.train.options import (
    _defaults,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)
from anharmonic.train.trials import space_around


def test_json_round_trip_and_defaults(tiny):
    run = tiny(patience=2, clip_norm=0.5, select="last", reduced=True)
    assert Run.from_json(run.to_json()) == Run.from_json(run.to_json(indent=2)) == run
    assert hash(run) == hash(Run.from_json(run.to_json()))
    # Options are copied, and kept as they were written.
    options = {"length": 500}
    run = Run("adding", "LEM", options)
    options["length"] = 10
    assert run.task_options == {"length": 500} and Run.from_json(run.to_json()) == run
    assert run != Run("adding", "LEM")


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
    counts = ("seed", "epochs", "batch_size", "lr_drop_epoch", "patience", "clip_norm")
    shares = ("weight_decay", "warmup", "label_smoothing", "input_noise", "amplitude_noise")
    other = dict.fromkeys(counts, 1) | dict.fromkeys(shares, 0.1)
    other |= {
        "task": "lorenz96",
        "model": "GRU",
        "task_options": {"length": 9},
        "model_options": {"bias": False},
        "lr": 0.5,
        "select": "last",
        "readout": "mean",
        "patch": 2,
        "optimizer": "adamw",
        "betas": (0.8, 0.99),
        "schedule": "cosine",
        "ema_decay": 0.9,
        "class_weights": "balanced",
        "decay_output": False,
        "precision": "bfloat16",
        "reduced": True,
        "initial": "0" * 64,
        "new_head": True,
        "code": "0" * 12,
    }
    assert set(other) == {field.name for field in dataclasses.fields(Run)}
    needed = {"new_head": {"initial": "0" * 64}}
    runs = [Run(**LEM | needed.get(name, {}) | {name: value}) for name, value in other.items()]
    assert len({run.hash for run in [Run(**LEM), *runs]}) == len(other) + 1


@pytest.mark.papers
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "lorenz96", "readout": "mean"}, "readout on task 'lorenz96' must be .*'mean'"),
        ({"task": "imdb", "input_noise": 0.1}, "input_noise must be 0 on task 'imdb'.*sequences"),
    ],
)
def test_settings_that_do_not_fit_a_task_are_refused(fields, message):
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
        (ADDING % '"lr": null', "lr must be a finite number.*got .*None"),
        (ADDING % '"reduced": 1', "reduced must be True or False; got .*1"),
        (ADDING % '"epochs": true', "epochs must be an int"),
        (ADDING.replace("adding", "../../etc/passwd") % '"seed": 0', "task must be one of"),
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


KINDS = ("sequence", "graph", "tabular")
ADDED = {name for kind in KINDS for name in _plugins.names(f"anharmonic.{kind}_models")}
OWN = [("task", name) for name in ("adding", "digits", "cora", "file", "graph")]
OWN += [("model", name) for kind in KINDS for name in list_models(kind) if name not in ADDED]


@pytest.mark.parametrize(("kind", "name"), OWN)
def test_every_default_is_frozen(kind, name):
    # A default is left out of a run's hash: another default would be another training under the
    # name of an old one. The default of a new option is added to frozen_defaults.json.
    known = (task_option_parameters if kind == "task" else model_option_parameters)(name)
    options = {name for name, p in known.items() if p.default is not p.empty}
    sequence = kind == "model" and name in list_models()
    assert frozen_defaults(kind, name).keys() == options | ({"hidden_size"} if sequence else set())


@pytest.fixture
def other_defaults(monkeypatch):
    """Another release, in which two constructors have other defaults."""
    caches = (task_parameters, task_option_parameters, model_option_parameters, _defaults)
    before = AddingProblem.__init__.__defaults__
    with monkeypatch.context() as patch:
        patch.setitem(ah.LEM.__init__.__kwdefaults__, "dt", 0.5)
        patch.setattr(AddingProblem.__init__, "__defaults__", (9, *before[1:]))
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


def test_other_defaults_of_constructors_change_no_run(other_defaults):
    assert ah.LEM(1, 1).dt == 0.5 and AddingProblem().length == 9
    run = Run("adding", "LEM")
    # The name that this run has had since the first release.
    assert run.hash == Run("adding", "LEM", {"length": 500}, {"dt": 1.0}).hash == "c2142da957d0"
    assert Run("adding", "LEM", {}, {"dt": 0.5}).hash != run.hash
    task = run.make_task(RunEnvironment())
    assert task.length == 500
    assert run.build_model(task).layer.dt == 1.0


def test_options_that_a_class_hands_on_are_its_base_classs_and_some_nobody_may_set(monkeypatch):
    class Leaky(ah.nn.StepLayer):
        def __init__(self, input_size, hidden_size, num_layers=1, *, leak=0.1, **options): ...

    monkeypatch.setattr("anharmonic.train.options.model_class", lambda name: Leaky)
    found = model_option_parameters.__wrapped__("Leaky")
    assert {"hidden_size", "leak", "num_layers", "dropout", "bidirectional"} <= set(found)
    assert not {"options", "batch_first", "input_size", "device", "dtype"} & set(found)


SMALL = {
    "task_options": {"length": 10, "steps_per_epoch": 2, "valid_size": 50, "test_size": 50},
    "model_options": {"hidden_size": 4},
    "epochs": 1,
}
SOURCE = """
{line}
class Mine(Parent):
    def __init__(self, input_size, hidden_size, *, dt={dt}, **options):
        super().__init__(input_size, hidden_size, dt=dt, **options)
"""
BASE = "import anharmonic as ah\nclass Base(ah.LEM):\n    frequency = {dt}\n"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Define the model "Mine" with a default step size."""
    monkeypatch.syspath_prepend(tmp_path)
    group = "anharmonic.sequence_models"
    found = {group: {"Mine": EntryPoint("Mine", "its_module:Mine", group)}}
    monkeypatch.setattr(_plugins, "_found", lambda asked: found.get(asked, {}))

    def define(dt, line="from anharmonic import LEM as Parent"):
        (tmp_path / "its_module.py").write_text(SOURCE.format(dt=dt, line=line))
        importlib.invalidate_caches()
        sys.modules.pop("its_module", None)

    yield define
    sys.modules.pop("its_module", None)


def test_the_default_step_of_a_layer_of_ones_own_is_searched(mine):
    mine(0.25)
    step = space_around(Run("adding", "Mine", **SMALL))["dt"]
    assert step.low == 0.05 and step.high == 0.75


def test_edited_code_is_another_run(mine, environment):
    found = []
    for dt in (0.5, 0.01, 0.5):
        mine(dt)
        found.append(fit(Run("adding", "Mine", **SMALL), environment))
    first, edited, again = found
    assert edited.test != first.test == again.test
    assert edited.run.code != first.run.code and first.hash == again.hash != edited.hash
    assert Run.from_json(first.run.to_json()) == first.run
    stale = dataclasses.replace(edited.run, seed=1)
    with pytest.raises(ValueError, match=r"code of the run must be .* the code of Mine as it is"):
        fit(stale, environment)
    # A result that was stored before there were codes keeps its name.
    fields = json.loads(first.to_json())
    del fields["run"]["code"]
    old = Result.from_json(json.dumps(fields))
    assert old.run.code == "" and old.hash != first.hash
    mine(0.1)
    assert Result.from_json(json.dumps(fields)).hash == old.hash


def test_edited_base_classes_count_and_models_of_this_project_have_no_code(mine, tmp_path):
    (tmp_path / "its_base.py").write_text(BASE.format(dt=0.5))
    mine(0.5, "from its_base import Base as Parent")
    first = Run("adding", "Mine").code
    (tmp_path / "its_base.py").write_text(BASE.format(dt=0.1))
    assert Run("adding", "Mine").code != first
    assert Run("adding", "LEM").code is None
