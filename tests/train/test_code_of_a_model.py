"""Runs of a model that another package adds."""

import dataclasses
import importlib
import json
import sys
from importlib.metadata import EntryPoint

import pytest

from anharmonic import _plugins
from anharmonic.train import Result, Run, fit

OPTIONS = {"length": 10, "steps_per_epoch": 2, "valid_size": 50, "test_size": 50}
SOURCE = """
{line}
class Mine(Parent):
    def __init__(self, input_size, hidden_size, *, dt={dt}, **options):
        super().__init__(input_size, hidden_size, dt=dt, **options)
"""
BASE = """
import anharmonic as ah
class Base(ah.LEM):
    frequency = {dt}
"""


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


def trained(environment):
    return fit(Run("adding", "Mine", OPTIONS, {"hidden_size": 4}, epochs=1), environment)


def test_edited_code_is_another_run(mine, environment):
    found = []
    for dt in (0.5, 0.01, 0.5):
        mine(dt)
        found.append(trained(environment))
    first, edited, again = found
    assert edited.test != first.test == again.test
    assert edited.run.code != first.run.code and first.hash == again.hash != edited.hash
    assert Run.from_json(first.run.to_json()) == first.run
    with pytest.raises(TypeError, match="code must be a digest"):
        Run("adding", "Mine", code=3)
    stale = dataclasses.replace(edited.run, seed=1)
    with pytest.raises(ValueError, match=r"code of the run must be .* the code of Mine as it is"):
        fit(stale, environment)


def test_edited_base_classes_count_and_models_of_this_project_have_no_code(mine, tmp_path):
    (tmp_path / "its_base.py").write_text(BASE.format(dt=0.5))
    mine(0.5, "from its_base import Base as Parent")
    first = Run("adding", "Mine").code
    (tmp_path / "its_base.py").write_text(BASE.format(dt=0.1))
    assert Run("adding", "Mine").code != first
    assert Run("adding", "LEM").code is None


def test_a_stored_result_without_code_keeps_its_name(mine, environment):
    mine(0.5)
    result = trained(environment)
    fields = json.loads(result.to_json())
    del fields["run"]["code"]
    old = Result.from_json(json.dumps(fields))
    assert old.run.code == "" and old.hash != result.hash
    mine(0.1)
    assert Result.from_json(json.dumps(fields)).hash == old.hash
