import pytest

from anharmonic.experiments.registry import list_tables
from anharmonic.models.registry import list_models
from anharmonic.tasks.registry import list_tasks


def test_list_shows_everything(cli):
    code, out, _ = cli("list")
    assert code == 0
    for name in (*list_models(), *list_tasks(), *list_tables()):
        assert f"\n  {name} " in out


@pytest.mark.parametrize(
    ("kind", "names"), [("models", list_models), ("tasks", list_tasks), ("tables", list_tables)]
)
def test_list_of_one_kind_is_one_line_each(cli, kind, names):
    out = cli("list", kind)[1]
    assert [line.split()[0] for line in out.splitlines()] == names()


def test_list_refuses_other_words(cli):
    code, _, err = cli("list", "modles")
    assert code == 2 and "what to list must be one of 'models', 'tasks', 'tables'" in err


def test_list_help(cli):
    assert cli("list", "--help")[1].startswith("usage: anharmonic list")
