"""A command reads the file of the user once, hashes it once, and loads few of its own."""

import hashlib

import pytest

from anharmonic.data import readers

QUICK = ("--epochs", "1", "--hidden-size", "2", "--threads", "1", "--no-progress")


@pytest.fixture
def table(tmp_path):
    """Forty sequences of two classes, a row per step."""
    rows = [f"s{n},{t},{(1 + n % 2) * (t % 3)},{'ab'[n % 2]}" for n in range(40) for t in range(6)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["id,time,x,label", *rows]) + "\n")
    return path


@pytest.fixture
def counted(monkeypatch):
    """How often a file was read and hashed since the last look."""
    calls = []
    parse, digest = readers.READERS[".csv"], hashlib.file_digest
    monkeypatch.setitem(readers.READERS, ".csv", lambda *a: calls.append("read") or parse(*a))
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: calls.append("hashed") or digest(*a))

    def look():
        seen = {word: calls.count(word) for word in ("read", "hashed")}
        calls.clear()
        return seen

    return look


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("train", "gru"), ("--folds", "2", "--refit")),
        (("train", "gru"), ("--seeds", "0", "1")),
        (("compare",), ("--models", "gru", "resonators", "--seeds", "0", "1", "--folds", "2")),
        (("search", "gru"), ("--trials", "2", "--folds", "2")),
    ],
    ids=["train, folds", "train, seeds", "compare", "search"],
)
def test_a_command_reads_once(done, table, counted, command, words):
    if command[0] == "search":
        pytest.importorskip("optuna")
    done(*command, table, *words, *QUICK)
    assert counted() == {"read": 1, "hashed": 1}


def test_predictions_read_once(done, table, tmp_path, counted):
    done("train", "gru", table, *QUICK)
    assert counted() == {"read": 1, "hashed": 1}
    (folder,) = (tmp_path / "runs").glob("file-*")
    done("predict", folder, table)
    assert counted() == {"read": 1, "hashed": 0}
    other = table.with_name("other.csv")
    other.write_text("\n".join(table.read_text().splitlines()[:-6]) + "\n")
    assert "accuracy" in done("predict", folder, other, "--evaluate")
    assert counted() == {"read": 1, "hashed": 1}  # the digest says whether it was trained on


@pytest.mark.slow
def test_training_on_a_file_loads_nothing_of_other_kinds_of_models(table, monkeypatch, run_python):
    monkeypatch.chdir(table.parent)
    code = (
        "import sys; from anharmonic.cli.main import main; print(main(sys.argv[1:]), *sys.modules)"
    )
    done = run_python(code, "train", "lem", "mine.csv", "--epochs", "1")
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    own = [name for name in modules if name.startswith("anharmonic.")]
    assert len(own) <= 90, own
    others = ("nn.graph", "nn.ode", "resonator")
    assert [name for name in own if any(part in name for part in others)] == []
