"""Runs that commands train in a moment."""

import re

import pytest

from anharmonic.train import read_results

QUICK = ("--epochs", "1", "--hidden-size", "4", "--threads", "1", "--no-progress")


def ended(cli, words, expected):
    """Run a command, which must end with a code: its standard output and error."""
    code, out, err = cli(*words)
    assert code == expected, err
    return out, err


@pytest.fixture
def done(cli):
    """Runs a command, which must succeed: its standard output."""
    return lambda *words: ended(cli, words, 0)[0]


@pytest.fixture
def refused(cli):
    """Runs a command, which must be refused: its standard error."""
    return lambda *words: ended(cli, words, 2)[1]


@pytest.fixture
def train_quickly(done, tmp_path):
    """Trains with a command, by default as short as can be: its folder and what was said."""

    def run(*words, quick=QUICK):
        out = done("train", *words, *quick)
        return tmp_path / re.search(r"run folder +(.*)", out)[1], out

    return run


@pytest.fixture
def runs(tmp_path):
    """Gives the runs whose results are in a folder."""
    return lambda folder="runs": [
        result.run for result in read_results(tmp_path / folder / "results.jsonl")
    ]
