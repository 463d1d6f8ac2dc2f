"""The public suite over the library's tasks."""

import functools

import pytest

from anharmonic.data import make_task
from anharmonic.testing import task_checks

CHECKS = list(dict(task_checks(lambda: None)))


@pytest.mark.covering
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "name, options", [("adding", {"length": 12, "steps_per_epoch": 3}), ("digits", {})]
)
def test_contract(name, options, check):
    dict(task_checks(functools.partial(make_task, name, options)))[check]()


@pytest.mark.parametrize("check", CHECKS)
def test_cora(check, graph_data):
    folder = graph_data("planetoid_cora")
    dict(task_checks(functools.partial(make_task, "cora", {}, data_dir=folder)))[check]()


@pytest.mark.parametrize("check", CHECKS)
def test_a_file(check, data):
    dict(task_checks(functools.partial(make_task, "file", {}, file=data)))[check]()
