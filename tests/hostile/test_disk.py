"""A disk that fills up, or a folder that may no longer be written, at any moment loses nothing."""

import errno
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

TINY = ("--epochs", "2", "--hidden-size", "2", "--threads", "1")
COMMANDS = {
    "train": ("train", "lem", "d.npz", *TINY),
    "compare": ("compare", "d.npz", "--models", "GRU", "FastGRNN", "--seeds", "0", *TINY),
    "search": ("search", "gru", "d.npz", "--trials", "3", *TINY),
    "table": (
        *("table", "demo", "--rows", "adding-lem", "adding-lstm", "--results", "runs/r.jsonl"),
        *("--epochs", "1", "--length", "5", "--train-size", "50", "--threads", "1"),
    ),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Disk:
    """Counts what changes files below the working folder; from one moment on, nothing does.

    A write of which no more fits comes first, as disks do it: some bytes of it are taken.
    """

    used = None

    def __init__(self, patch, number, last=10**9):
        self.number, self.left, self.count, self.home = number, last, 0, Path.cwd()
        self.changes = {"os.mkdir", "os.rename", "os.symlink"}
        if number == errno.EROFS:  # on a full disk files can be deleted
            self.changes |= {"os.remove", "os.rmdir"}
        self._write = os.write
        patch.setattr(os, "write", self.write)
        patch.setattr(Disk, "used", self)

    def fail(self, path=None):
        self.count += 1
        self.left -= 1
        if self.left < 0:
            raise OSError(self.number, os.strerror(self.number), path)

    def look(self, event, path, flags):
        if event in self.changes or (event == "open" and flags & WRITES):
            if not isinstance(path, int) and self.home in Path(os.path.abspath(path)).parents:
                self.fail(path)

    def write(self, descriptor, data):
        if self.left == 0 and self.number == errno.ENOSPC and len(data) > 1:
            self.left -= 1
            return self._write(descriptor, bytes(data)[: len(data) // 2])
        self.fail()
        return self._write(descriptor, data)


@sys.addaudithook
def look(event, words):
    """Python tells what it is about to open, rename or delete."""
    if Disk.used is not None and event in ("open", *Disk.used.changes):
        Disk.used.look(event, words[0], words[-1])


@pytest.mark.filterwarnings("ignore:.*is skipped, because:UserWarning")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
@pytest.mark.parametrize(
    ("name", "step"),  # every moment, which is slow, and three moments of a training
    [
        pytest.param("train", 13, id="train, three moments"),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("train", "compare")),
        # A lock left behind is waited for half a minute.
        pytest.param("search", 9, marks=pytest.mark.slow),
        pytest.param("table", 1, marks=[pytest.mark.slow, pytest.mark.papers]),
    ],
)
def test_from_any_write_on(name, step, number, cli, arrays, outcome, tmp_path, monkeypatch):
    signal.alarm(0)  # every moment is a training of its own

    def start(last):
        (tmp_path / str(last)).mkdir()
        monkeypatch.chdir(tmp_path / str(last))
        np.savez("d.npz", x=arrays["x"], y=arrays["y"])
        with monkeypatch.context() as patch:
            disk = Disk(patch, number, last)
            return disk, *cli(*COMMANDS[name])

    disk, code, _, error = start(10**9)
    assert code == 0 and disk.count > 20, error
    expected = sorted(outcome().values())
    for last in range(0, disk.count, step):
        _, code, said, error = start(last)
        said += error
        assert code in (1, 2) and "Traceback" not in said and "unexpected" not in said, said
        assert "; got " in said and os.strerror(number) in said, said
        assert "the file or address" not in said, said
        kept = outcome(is_whole=False)
        code, _, error = cli(*COMMANDS[name])
        assert code == 0, error
        found = outcome(is_whole=False)
        assert kept.items() <= found.items()
        if name == "search":  # a trial that was created and no more keeps its place in the draws
            assert len(found) == len(expected)
        else:
            assert sorted(found.values()) == expected
        assert number == errno.EROFS or not list(Path.cwd().rglob("*.tmp"))
