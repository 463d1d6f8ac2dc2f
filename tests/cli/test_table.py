import pytest

from anharmonic.cli.table import read_folder
from anharmonic.experiments.base import Budget, shrink
from anharmonic.experiments.registry import table
from anharmonic.training.results import append, read

SMALL = ("--epochs", "1", "--length", "8", "--train-size", "50", "--eval-size", "8")
QUIET = ("--threads", "1", "--no-progress")


def test_a_table_runs_reports_and_is_not_repeated(cli, tmp_path):
    words = ("table", "demo-adding", "--rows", "lem", "lstm", *SMALL, *QUIET)
    code, out, _ = cli(*words)
    assert code == 0
    assert "[1/2] demo-adding: lem, seed 0" in out and "[2/2] demo-adding: lstm, seed 0" in out
    assert "reduced budget: 1 epoch, length 8" in out and "not run" in out
    results = read(tmp_path / "results" / "demo-adding.jsonl")
    assert [r.run.model for r in results] == ["LEM", "LSTM"]
    assert all(r.run.reduced for r in results)
    again = cli(*words)[1]
    assert "[1/" not in again and "reduced budget" in again
    code, out, _ = cli("report", "demo-adding", "--html", "page.html")
    assert code == 0 and 'class="reduced"' in (tmp_path / "page.html").read_text()


def test_results_of_another_table_count(cli, tmp_path, make_result):
    run = table("lem-fitzhugh-nagumo").row("lem").run
    append(tmp_path / "results" / "lem-fitzhugh-nagumo.jsonl", make_result(run))
    words = ("table", "lem-fhn-no-multiscale", "--rows", "lem", "--seeds", "0", "1", "--dry-run")
    out = cli(*words)[1]
    assert out.count("has a result") == 1 and out.count("would run") == 1
    assert len(read_folder(tmp_path / "results" / "other.jsonl")) == 1


def test_dry_run_lists_and_does_nothing(cli, tmp_path):
    code, out, _ = cli("table", "demo", "--dry-run")
    assert code == 0 and out.count("would run") == 8
    assert not (tmp_path / "results").exists() and not (tmp_path / "runs").exists()


def test_a_failing_row_is_reported_and_the_others_go_on(cli, tmp_path):
    # An empty file where the data should be: psMNIST cannot be read.
    folder = tmp_path / "data" / "sequence"
    folder.mkdir(parents=True)
    (folder / "mnist.npz").write_bytes(b"")
    words = ("--epochs", "1", "--length", "8", "--train-size", "50", "--eval-size", "8")
    words = ("table", "lem-psmnist", "demo-adding", *words, *QUIET, "--data-dir", "data")
    code, _, err = cli(*words)
    assert code == 2 and "length of psmnist must be 784, 196, 49, 16 or 4" in err
    words = ("table", "lem-smnist", "--rows", "lem", "lstm", "--epochs", "1", "--length", "4")
    code, out, _ = cli(*words, *QUIET, "--data-dir", "data")
    assert code == 1
    assert out.count("    failed: ") == 2
    assert "failed: lem-smnist: lstm, seed 0: " in out and "mnist.npz" in out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "anharmonic table takes the names of tables first"),
        (("lem-smist",), "did you mean 'lem-smnist'"),
        (("demo", "--rows", "nothing"), "row must be one of"),
        (("lem-smnist", "--rows", "exprnn"), "a model that is not in this package yet"),
        (("lem-fitzhugh-nagumo", "--length", "5"), "length must belong to a task"),
        (("demo", "--epochs", "0"), "epochs must be an int >= 1"),
        (("demo", "--row", "lem"), "did you mean '--rows'"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(cli, words, text):
    code, _, err = cli("table", *words)
    assert code == 2 and text in err and len(err.splitlines()) == 1


def test_help(cli):
    code, out, _ = cli("table", "--help")
    assert code == 0 and "--dry-run" in out and "--eval-size" in out


def test_reduced_and_full_have_different_results():
    run = table("demo-adding").row("lem").run
    assert shrink(run, Budget(epochs=run.epochs)).hash != run.hash
