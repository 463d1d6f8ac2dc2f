"""A command reads the file of the user once, hashes it once, and runs through few of its own."""

import hashlib
import json
from pathlib import Path

import pytest

import anharmonic
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
def test_a_command_reads_once(cli, table, counted, command, words):
    if command[0] == "search":
        pytest.importorskip("optuna")
    code, _, err = cli(*command, table, *words, *QUICK)
    assert code == 0, err
    assert counted() == {"read": 1, "hashed": 1}


def test_predictions_read_once(cli, table, tmp_path, counted):
    assert cli("train", "gru", table, *QUICK)[0] == 0
    assert counted() == {"read": 1, "hashed": 1}
    (folder,) = (tmp_path / "runs").glob("file-*")
    assert cli("predict", folder, table)[0] == 0
    assert counted() == {"read": 1, "hashed": 0}
    other = table.with_name("other.csv")
    other.write_text("\n".join(table.read_text().splitlines()[:-6]) + "\n")
    code, out, err = cli("predict", folder, other, "--evaluate")
    assert code == 0 and "accuracy" in out, err
    assert counted() == {"read": 1, "hashed": 1}  # the digest says whether it was trained on


# Counts files of which a function is entered, and files of which anything runs.
COUNT = """
import inspect, json, sys
root, called, run = sys.argv.pop(1), set(), set()

def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        run.add(code.co_filename)
        if code.co_flags & inspect.CO_OPTIMIZED:  # a function, and no body of a module or class
            called.add(code.co_filename)

sys.setprofile(look)
from anharmonic.cli.main import main
code = main(sys.argv[1:])
sys.setprofile(None)
print(json.dumps([code, sorted(called), sorted(run)]))
"""


@pytest.mark.slow
def test_training_on_a_file_runs_through_few_files(table, monkeypatch, run_python):
    monkeypatch.chdir(table.parent)
    root = str(Path(anharmonic.__file__).parent) + "/"
    done = run_python(COUNT, root, "train", "lem", "mine.csv", "--epochs", "1")
    code, *names = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    called, run = ([name.removeprefix(root) for name in part] for part in names)
    assert len(called) <= 60, called
    assert len(run) <= 90, run
    others = [name for name in run if "nn/graph" in name or "nn/ode" in name or "resonator" in name]
    assert others == []
