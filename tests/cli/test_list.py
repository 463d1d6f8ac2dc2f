import pytest

from anharmonic.data.registry import describe_tasks, list_tasks
from anharmonic.nn.registry import MODEL_KINDS, list_models

pytestmark = pytest.mark.papers  # tables and figures are theirs


def test_list_shows_everything_and_of_one_kind_one_line_each(done):
    from anharmonic_papers.figures.registry import list_figures
    from anharmonic_papers.tables import list_tables

    models = [name for kind in MODEL_KINDS for name in list_models(kind)]
    everything = done("list")
    assert all(f"\n  {name} " in everything for name in list_tasks())
    names = {"models": models, "tables": list_tables(), "figures": list_figures()}
    for kind, expected in names.items():
        assert [line.split()[0] for line in done("list", kind).splitlines()] == expected
        assert all(f"\n  {name} " in everything for name in expected)
    assert "Demo: four models on two short tasks. Source: this package." in done("list", "tables")


def test_list_of_tasks_says_all_that_is_known_of_them(done):
    out = done("list", "tasks")
    assert max(map(len, out.splitlines())) <= 100
    heads = [line.split(":")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert heads == list_tasks()
    words = " ".join(out.split())
    for task in describe_tasks():
        for part in (task.input, task.target, task.metric, task.source, task.licence):
            assert part in words, (task.name, part)
        assert all(f"{count} " in words for count in task.sizes.values())


@pytest.mark.parametrize("columns", [80, 40])
def test_list_wraps_at_words_in_a_terminal(cli, monkeypatch, columns):
    piped = {word: cli("list", *word.split())[1] for word in ("", "tables", "tasks")}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    for word, whole in piped.items():
        out = cli("list", *word.split())[1]
        assert out.split() == whole.split()
        if columns == 80:
            assert max(map(len, out.splitlines())) <= 80


def test_list_refuses_other_words_and_tables_without_their_package(refused, monkeypatch):
    assert "what to list must be one of 'models', 'tasks', 'tables'" in refused("list", "modles")
    monkeypatch.setattr("anharmonic._plugins.names", lambda group: [])
    assert "pip install -e papers" in refused("list", "tables")
