"""A command reads the user's file once, and computes its digest once."""

import hashlib

import pytest

from anharmonic.data import readers

QUICK = ("--epochs", "1", "--hidden-size", "4", "--threads", "1", "--no-progress")


@pytest.fixture
def table(tmp_path):
    """Forty sequences of two classes, a row per step."""
    lines = ["id,time,x,label"]
    for number in range(40):
        label = "ab"[number % 2]
        lines += [f"s{number},{t},{(1 + number % 2) * (t % 3)},{label}" for t in range(12)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def counted(monkeypatch):
    """How often a file was read and hashed since the last look."""
    counts = {"read": 0, "hashed": 0}
    parse, digest = readers.READERS[".csv"], hashlib.file_digest

    def read(*arguments):
        counts["read"] += 1
        return parse(*arguments)

    def hashed(*arguments):
        counts["hashed"] += 1
        return digest(*arguments)

    monkeypatch.setitem(readers.READERS, ".csv", read)
    monkeypatch.setattr(hashlib, "file_digest", hashed)

    def look():
        seen = dict(counts)
        counts.update(read=0, hashed=0)
        return seen

    return look


@pytest.mark.parametrize("more", [(), ("--folds", "3", "--refit"), ("--seeds", "0", "1")])
def test_train(cli, table, counted, more):
    code, _, err = cli("train", "gru", table, *QUICK, *more)
    assert code == 0, err
    assert counted() == {"read": 1, "hashed": 1}


@pytest.mark.parametrize("more", [(), ("--folds", "2")])
def test_compare(cli, table, counted, more):
    models = ("--models", "lem", "gru", "resonators", "--seeds", "0", "1")
    code, _, err = cli("compare", table, *models, *QUICK, *more)
    assert code == 0, err
    assert counted() == {"read": 1, "hashed": 1}


def test_search(cli, table, counted):
    pytest.importorskip("optuna")
    code, out, err = cli("search", "gru", table, "--trials", "2", *QUICK)
    assert code == 0 and "best of 2 trials" in out, err
    assert counted() == {"read": 1, "hashed": 1}


def test_predict(cli, table, counted):
    _, out, _ = cli("train", "gru", table, *QUICK)
    folder = next(line for line in out.splitlines() if line.startswith("run folder")).split()[-1]
    counted()
    assert cli("predict", folder, table)[0] == 0
    assert counted() == {"read": 1, "hashed": 0}
    other = table.with_name("other.csv")
    other.write_text("\n".join(table.read_text().splitlines()[:-12]) + "\n")
    code, out, err = cli("predict", folder, other, "--evaluate")
    assert code == 0 and "accuracy" in out, err
    assert counted() == {"read": 1, "hashed": 1}  # the digest says whether it was trained on
