"""A disk that fills up, or a folder that may no longer be written, at any moment loses nothing."""

import builtins
import errno
import io
import os
import signal
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

    def __init__(self, patch, number, last=10**9):
        self.number, self.left, self.count = number, last, 0
        self.home, self.descriptors = Path.cwd(), set()
        for name in ("mkdir", "rename", "replace", "symlink"):
            self._replace(patch, os, name)
        if number == errno.EROFS:  # on a full disk files can be deleted
            self._replace(patch, os, "unlink")
            self._replace(patch, os, "rmdir")
        self._open, self._write, self._io_open = os.open, os.write, io.open
        patch.setattr(os, "open", self.open)
        patch.setattr(os, "write", self.write)
        patch.setattr(io, "open", self.io_open)
        patch.setattr(builtins, "open", self.io_open)

    def _fails(self, path=None):
        self.count += 1
        self.left -= 1
        if self.left < 0:
            raise OSError(self.number, os.strerror(self.number), path)

    def _inside(self, path):
        return not isinstance(path, int) and self.home in Path(os.path.abspath(path)).parents

    def _replace(self, patch, module, name):
        before = getattr(module, name)

        def changed(*args, **kwargs):
            paths = [a for a in args if isinstance(a, (str, os.PathLike)) and self._inside(a)]
            if paths:
                self._fails(paths[0])
            return before(*args, **kwargs)

        patch.setattr(module, name, changed)

    def open(self, path, flags, *args, **kwargs):
        ours = bool(flags & WRITES) and self._inside(path)
        if ours:
            self._fails(path)
        descriptor = self._open(path, flags, *args, **kwargs)
        (self.descriptors.add if ours else self.descriptors.discard)(descriptor)
        return descriptor

    def write(self, descriptor, data):
        if descriptor in self.descriptors:
            if self.left == 0 and self.number == errno.ENOSPC and len(data) > 1:
                self.left -= 1
                return self._write(descriptor, bytes(data)[: len(data) // 2])
            self._fails()
        return self._write(descriptor, data)

    def io_open(self, file, mode="r", *args, **kwargs):
        if set(mode) & set("wax+") and self._inside(file):
            self._fails(file)
        return self._io_open(file, mode, *args, **kwargs)


def cases():
    """Every command at every moment, which is slow, and three moments of a training."""
    for name in COMMANDS:
        marks = [pytest.mark.papers] if name == "table" else []
        step = 9 if name == "search" else 1  # a lock left behind is waited for half a minute
        yield pytest.param(name, step, id=name, marks=[*marks, pytest.mark.slow])
    yield pytest.param("train", 13, id="train, three moments")


@pytest.mark.filterwarnings("ignore:.*is left out:UserWarning")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS], ids=["full", "read-only"])
@pytest.mark.parametrize("name, step", cases())
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
