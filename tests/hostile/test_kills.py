"""Commands that are killed at any moment and started again give the same bits."""

import importlib
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from anharmonic.cli.main import main

TINY = ("--hidden-size", "2", "--no-progress", "--threads", "1")
RUN = "runs/file-*"
COMMANDS = {
    "train": (
        *("train", "gru", "k.csv", "--horizon", "2", "--known", "p", "--forecast", "a"),
        *("--quantiles", "0.1", "0.5", "0.9", "--epochs", "5", "--seeds", "0", "1", "2", *TINY),
    ),
    "train on folds and all": (
        *("train", "lem", "d.npz", "--epochs", "5", "--folds", "2", "--refit", *TINY),
    ),
    "resonators": ("train", "resonators", "d.npz", "--num-oscillators", "300", *TINY[2:]),
    "compare, two at a time": (
        *("compare", "d.npz", "--models", "GRU", "FastGRNN", *TINY),
        *("--epochs", "5", "--seeds", "0", "1", "--jobs", "2"),
    ),
    "search": ("search", "gru", "d.npz", "--trials", "4", "--epochs", "5", *TINY),
    "predict": ("predict", RUN, "d.npz"),
    "export": ("export", RUN, "--c", "c"),
    "diagnose": ("diagnose", RUN, "--file", "d.npz", "--html", "page.html"),
}
SAYS = re.compile(r"same command (again to continue|continues)")
KILLS = 5


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Imports what commands need, so that a child forked from here begins at once."""
    for name in ("compare", "diagnose", "export", "predict", "search", "train"):
        importlib.import_module(f"anharmonic.cli.{name}")
    importlib.import_module("anharmonic.train.study")


def begin(words):
    """Runs a command in a forked child; returns its number."""
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(300)
        with open("said.txt", "a") as said:
            sys.stdout = sys.stderr = said
            found = sorted(map(str, Path().glob(RUN)))
            code = main([found[0] if word == RUN else word for word in words])
    except KeyboardInterrupt:  # before the command began
        code = 0
    except BaseException:
        code = 99
    os._exit(code)


def wait(child):
    """The exit code of a child, and what all of them said."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = Path("said.txt").read_text(errors="replace")[-2000:]
    assert "Traceback" not in said and "unexpected" not in said, said
    return code, said


def prepare(name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 6, 2)).astype(np.float32)
    np.savez("d.npz", x=x, y=np.arange(40) % 2)
    rows = "".join(f"{np.sin(i / 3):.5f},{i % 7}\n" for i in range(120))
    Path("k.csv").write_text(f"a,p\n{rows}")
    Path("said.txt").touch()
    if RUN in COMMANDS[name]:
        assert wait(begin(("train", "lem", "d.npz", "--epochs", "1", "--streaming", *TINY)))[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_moment(name, number, outcome, tmp_path, monkeypatch):
    signal.alarm(0)  # several processes in a row: each has a limit of its own
    rng = random.Random(f"{name} {int(number)}")
    found, seconds = [], 0.0
    for place in ("whole", "cut"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        prepare(name)
        for _ in range(KILLS if place == "cut" else 0):
            child = begin(COMMANDS[name])
            time.sleep(rng.uniform(0.0, 1.1 * seconds))
            os.kill(child, number)
            code, said = wait(child)
            assert code in (0, -number, 128 + number), (code, said)
            assert code != 128 + number or SAYS.search(said), said
        began = time.monotonic()
        code, said = wait(begin(COMMANDS[name]))
        seconds = time.monotonic() - began
        assert code == 0, said
        kept = {
            str(path): path.read_bytes()
            for pattern in ("runs/**/best/*", "predictions.csv", "c/*")
            for path in sorted(Path().glob(pattern))
        }
        found.append((sorted(outcome().values()), kept))
    lines, kept = found[0]
    assert kept and (lines or RUN in COMMANDS[name])
    assert found[0] == found[1]
    assert not list(Path("runs").rglob("*.tmp")) or RUN in COMMANDS[name]
