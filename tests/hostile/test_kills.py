"""Comparisons and searches that are killed at any moment end as if they had not been."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

COMMANDS = {
    "compare": (
        *("compare", "d.npz", "--models", "GRU", "FastGRNN", "--seeds", "0", "1"),
        *("--epochs", "2", "--hidden-size", "2"),
    ),
    "compare, two at a time": (
        *("compare", "d.npz", "--models", "GRU", "FastGRNN", "--seeds", "0", "1"),
        *("--epochs", "2", "--hidden-size", "2", "--jobs", "2"),
    ),
    "search": ("search", "gru", "d.npz", "--trials", "8", "--epochs", "6", "--hidden-size", "2"),
}
SAYS = re.compile(r"same command (again to go on|continues)")


def start(words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "anharmonic", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def outcome():
    """What all result lines say, but for times and places; every line must be whole."""
    found = []
    for path in sorted(Path("runs").rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            result = json.loads(line)
            if "hash" in result:
                found.append((result["hash"], result["test"], result["valid"]))
    assert len({hash_ for hash_, *_ in found}) == len(found)
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_and_started_again(words, number, arrays, tmp_path, monkeypatch):
    signal.alarm(0)  # several processes in a row: each has a limit of its own
    rng = random.Random(int(number))
    found = []
    for place in ("whole", "cut"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        np.savez("d.npz", x=arrays["x"], y=arrays["y"])
        kills = 0 if place == "whole" else 3
        for _ in range(kills):
            process = start(words)
            time.sleep(rng.uniform(2.0, 12.0))
            process.send_signal(number)
            said, _ = process.communicate(timeout=300)
            # It may have been done before, or be asked before its handlers were there.
            codes = {signal.SIGINT: 130, signal.SIGTERM: 143}
            assert process.returncode in (0, -number, codes.get(number)), said
            if "<frozen importlib" in said and said.rstrip().endswith("KeyboardInterrupt"):
                continue  # asked while Python was still loading PyTorch: nothing had begun
            assert "unexpected" not in said and "Traceback" not in said, said
            assert process.returncode != codes.get(number) or SAYS.search(said), said
        process = start(words)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        found.append(outcome())
    assert found[0] and found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_in_the_middle(name, number, code, arrays):
    """Between the first row and the last: what is finished is kept, and how to go on is said."""
    np.savez("d.npz", x=arrays["x"], y=arrays["y"])
    words = [*COMMANDS[name], "--epochs", "40"]
    process = start(words)
    results = Path("runs", *["searches"] * (name == "search"), "results.jsonl")
    while not results.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=100)
    assert process.returncode == code and SAYS.search(said), said
    assert "Traceback" not in said and 1 <= len(outcome()) < 8, said


TABLE = (
    *("table", "demo", "--rows", "adding-lem", "adding-lstm", "adding-cornn"),
    *("--results", "runs/results.jsonl", "--epochs", "2", "--length", "5"),
    *("--train-size", "500", "--eval-size", "50", "--threads", "1", "--seeds", "0", "1"),
)


@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_several_processes_on_one_table(number, tmp_path, monkeypatch):
    """Three at once, some of them killed at any moment: every row once, as from one process."""
    signal.alarm(0)
    rng = random.Random(int(number))
    found = []
    for place in ("one", "many"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        for _ in range(4 if place == "many" else 0):
            processes = [start(TABLE) for _ in range(3)]
            time.sleep(rng.uniform(3.0, 15.0))
            for process in processes[: rng.randint(1, 3)]:
                process.send_signal(number)
            for process in processes:
                said, _ = process.communicate(timeout=300)
                assert process.returncode in (0, -number, 128 + number), said
                assert "unexpected" not in said and "Traceback" not in said, said
        process = start(TABLE)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        found.append(outcome())
    assert len(found[0]) == 6 and found[0] == found[1]
