import pytest

import anharmonic as ah
from anharmonic import _plugins
from anharmonic.data.registry import task_parameters
from anharmonic.data.synthetic import AddingProblem
from anharmonic.nn.registry import list_models
from anharmonic.train import Run, RunEnvironment
from anharmonic.train.options import (
    _defaults,
    check_model_options,
    check_task_options,
    frozen_defaults,
    model_option_parameters,
    task_option_parameters,
)

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
    monkeypatch.setitem(ah.LEM.__init__.__kwdefaults__, "dt", 0.5)
    before = AddingProblem.__init__.__defaults__
    monkeypatch.setattr(AddingProblem.__init__, "__defaults__", (9, *before[1:]))
    caches = (task_parameters, task_option_parameters, model_option_parameters, _defaults)
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


@pytest.mark.papers
def test_whole_numbers_for_floats_become_floats():
    options = check_model_options("UnICORNN", {"dt": [1, 0.5], "num_layers": 2})
    assert [type(dt) for dt in options["dt"]] == [float, float]
    assert type(options["num_layers"]) is int
    assert type(check_task_options("lorenz96", {"forcing": 8})["forcing"]) is float


def test_options_that_a_class_hands_on_are_its_base_classs_and_some_nobody_may_set(monkeypatch):
    class Leaky(ah.nn.StepLayer):
        def __init__(self, input_size, hidden_size, num_layers=1, *, leak=0.1, **options): ...

    monkeypatch.setattr("anharmonic.train.options.model_class", lambda name: Leaky)
    found = model_option_parameters.__wrapped__("Leaky")
    assert {"hidden_size", "leak", "num_layers", "dropout", "bidirectional"} <= set(found)
    assert not {"options", "batch_first", "input_size", "device", "dtype"} & set(found)
