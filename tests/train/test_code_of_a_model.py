"""Runs of a model that another package adds."""

import importlib
import sys
from importlib.metadata import EntryPoint

import pytest

from anharmonic import _plugins
from anharmonic.train import Run, RunEnvironment, fit

OPTIONS = {"length": 10, "steps_per_epoch": 2, "valid_size": 50, "test_size": 50}
SOURCE = """
import anharmonic as ah
class Mine(ah.LEM):
    def __init__(self, input_size, hidden_size, *, dt={dt}, **options):
        super().__init__(input_size, hidden_size, dt=dt, **options)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Define the model "Mine" with a default step size."""
    monkeypatch.syspath_prepend(tmp_path)
    group = "anharmonic.sequence_models"
    found = {group: {"Mine": EntryPoint("Mine", "its_module:Mine", group)}}
    monkeypatch.setattr(_plugins, "_found", lambda asked: found.get(asked, {}))

    def define(dt):
        (tmp_path / "its_module.py").write_text(SOURCE.format(dt=dt))
        importlib.invalidate_caches()
        sys.modules.pop("its_module", None)

    yield define
    sys.modules.pop("its_module", None)


def test_edited_code_is_another_run(mine, tmp_path):
    environment = RunEnvironment(out=tmp_path / "runs", progress=False)
    found = []
    for dt in (0.5, 0.01, 0.5):
        mine(dt)
        run = Run("adding", "Mine", OPTIONS, {"hidden_size": 4}, epochs=1)
        found.append(fit(run, environment))
    first, edited, again = found
    assert edited.test != first.test == again.test
    assert edited.run.code != first.run.code and first.hash == again.hash != edited.hash
    assert Run.from_json(first.run.to_json()) == first.run
    with pytest.raises(TypeError, match="code must be a digest"):
        Run("adding", "Mine", code=3)


def test_models_of_this_project_have_no_code():
    assert Run("adding", "LEM").code is None
