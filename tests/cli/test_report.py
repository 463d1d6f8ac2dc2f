import pytest

from anharmonic.experiments.registry import list_tables, table
from anharmonic.training.results import append


@pytest.fixture
def results(tmp_path, make_result):
    run = table("demo").row("digits-lem").run
    append(tmp_path / "results" / "demo.jsonl", make_result(run, test=91.25))


def test_report_needs_results(cli):
    code, _, err = cli("report")
    assert code == 2 and "results must be a file of result lines" in err


def test_report_prints_all_tables_or_those_named(cli, results):
    code, out, _ = cli("report")
    assert code == 0 and "91.25" in out
    assert all(f"{name}: " in out for name in list_tables())
    assert "lem-smnist: " not in cli("report", "demo")[1]


def test_report_reads_one_file(cli, results):
    assert "91.25" in cli("report", "demo", "--results", "results/demo.jsonl")[1]


def test_report_writes_html_and_markdown(cli, results, tmp_path):
    code, out, _ = cli("report", "demo", "--html", "new/page.html", "--markdown", "new/page.md")
    assert code == 0 and out == "wrote new/page.html\nwrote new/page.md\n"
    assert "91.25" in (tmp_path / "new/page.html").read_text(encoding="utf-8")
    assert "| LEM | 91.25 | 1 |" in (tmp_path / "new/page.md").read_text(encoding="utf-8")


def test_report_refuses_unknown_tables(cli, results):
    code, _, err = cli("report", "lem-smist")
    assert code == 2 and "did you mean 'lem-smnist'" in err
