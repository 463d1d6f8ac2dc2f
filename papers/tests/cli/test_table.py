import dataclasses
import shlex

import pytest

from anharmonic.cli.train import command_of, read
from anharmonic.train.recipe import fill
from anharmonic.train.results import append, read_results
from anharmonic.train.run import Run, RunEnvironment
from anharmonic_papers.tables import list_tables
from anharmonic_papers.tables.registry import table

SMALL = ("--epochs", "1", "--length", "8", "--train-size", "50", "--eval-size", "8")
QUIET = ("--threads", "1", "--no-progress")


def test_a_table_runs_reports_and_is_not_repeated(cli, tmp_path):
    words = ("table", "demo", "--rows", "adding-lem", "adding-lstm", *SMALL, *QUIET)
    code, out, _ = cli(*words)
    assert code == 0
    assert "[1/2] demo: adding-lem, seed 0" in out and "[2/2] demo: adding-lstm, seed 0" in out
    assert out.count("Demo: four models on two short tasks") == 1
    assert "reduced" in out and "brackets" in out and "not run" in out
    results = read_results(tmp_path / "results" / "demo.jsonl")
    assert [(r.run.model, r.run.reduced) for r in results] == [("LEM", True), ("LSTM", True)]
    again = cli(*words)[1]
    assert "[1/" not in again and "brackets" in again
    assert cli("report", "demo", "--html", "page.html")[:2] == (0, "wrote page.html\n")
    assert 'class="reduced"' in (tmp_path / "page.html").read_text()


def test_results_of_other_tables_count_in_the_default_folder_only(cli, tmp_path, make_result):
    run = table("lem-fitzhugh-nagumo").row("lem").run
    append(tmp_path / "results" / "lem-fitzhugh-nagumo.jsonl", make_result(run))
    words = ("table", "lem-fhn-no-multiscale", "--rows", "lem", "--seeds", "0", "1", "--dry-run")
    out = cli(*words)[1]
    assert out.count("has a result") == 1 and out.count("would run") == 1
    append(tmp_path / "mine" / "other.jsonl", make_result(run))
    assert cli(*words, "--results", "mine/results.jsonl")[1].count("would run") == 2
    assert cli(*words, "--results", "mine/other.jsonl")[1].count("would run") == 1


def test_dry_run_lists_says_what_has_no_effect_and_does_nothing(cli, tmp_path):
    code, out, _ = cli("table", "demo", "--dry-run")
    assert code == 0 and out.count("would run") == 8
    words = ("table", "demo", "--rows", "digits-lem", "digits-lstm", "adding-lem", "--dry-run")
    first, second, *rest = cli(*words, "--train-size", "64", "--length", "20")[1].splitlines()
    assert first == "demo: --length 20 has no effect on digits-lem, digits-lstm"
    assert second == "demo: --train-size 64 has no effect on digits-lem, digits-lstm"
    assert not any("no effect" in line for line in rest)
    assert f"    {command_of(table('demo').row('digits-lstm').run)}" in rest
    assert not any(tmp_path.iterdir())


def test_a_failing_row_is_reported_and_the_others_go_on(cli, tmp_path):
    folder = tmp_path / "data" / "sequence"
    folder.mkdir(parents=True)
    (folder / "mnist.npz").write_bytes(b"")  # cannot be read
    code, _, err = cli("table", "lem-psmnist", "demo", *SMALL, *QUIET, "--data-dir", "data")
    assert code == 2 and "length of psmnist must be 784, 196, 49, 16 or 4" in err
    words = ("table", "lem-smnist", "--rows", "lem", "lstm", "--epochs", "1", "--length", "4")
    code, out, _ = cli(*words, *QUIET, "--data-dir", "data")
    assert code == 1 and out.count("    failed: ") == 2
    assert "failed: lem-smnist: lstm, seed 0: " in out and "mnist.npz" in out


@pytest.mark.parametrize("debug", [True, False])
def test_debug_shows_the_trace_of_a_failing_row(cli, monkeypatch, debug):
    def fail(*arguments, **options):
        raise RuntimeError("broken")

    monkeypatch.setattr("anharmonic.train.rows.fit", fail)
    words = ("table", "demo", "--rows", "digits-lem", "digits-lstm")
    code, out, err = cli(*words, *(["--debug"] if debug else []))
    assert code == 1 and out.count("    failed: broken") == 2
    assert err.count("Traceback") == err.count('raise RuntimeError("broken")') == 2 * debug


def test_help(cli):
    code, out, _ = cli("table", "--help-all")
    out = out.replace("[no-]", "")
    assert code == 0 and "--dry-run" in out and "--eval-size" in out
    flags = {"--" + f.name.replace("_", "-") for f in dataclasses.fields(RunEnvironment)}
    assert all((flag in out) == (flag not in ("--file", "--start-from")) for flag in flags)


def settings_of(run):
    fields = {f.name for f in dataclasses.fields(run) if getattr(run, f.name) != f.default}
    of_model = {(run.model, option) for option in run.model_options}
    return fields | of_model | {(run.task, option) for option in run.task_options}


def test_the_command_of_a_row_trains_the_same_run():
    """Rows until every field, option of a model and option of a task that a table sets occurs."""
    runs = [row.run for name in list_tables() for row in table(name).rows if row.run is not None]
    demo, seen = {row.run for row in table("demo").rows}, set()
    for run in sorted(runs, key=lambda run: len(settings_of(run)), reverse=True):
        if run in demo or not settings_of(run) <= seen:
            seen |= settings_of(run)
            asked = read(shlex.split(command_of(run))[2:])
            assert Run(asked.task, asked.model, **asked.given).hash == run.hash
            if run in demo:  # whose data need not be read for what is left open
                filled = fill(asked.model, asked.task, asked.given, RunEnvironment())
                assert filled.run.hash == run.hash
