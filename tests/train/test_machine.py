import os
import subprocess
import warnings

import numpy as np
import pytest
import torch

import anharmonic
from anharmonic.diagnostics import machine
from anharmonic.diagnostics.machine import peak_memory_mb


def test_choose_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.choose_device("auto") == "cpu"
    with pytest.raises(ValueError, match=r'"cuda" needs a GPU.*choose device "cpu" or "auto"'):
        machine.choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.choose_device("auto") == "cuda"


def test_settings_come_back():
    threads = torch.get_num_threads()
    with pytest.raises(KeyError), machine.torch_settings("cpu", threads + 1):
        assert torch.get_num_threads() == threads + 1
        raise KeyError
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_nondeterministic_operations_are_collected():
    unfixed: set[str] = set()
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        machine._collect_unfixed(unfixed)
        for _ in range(2):
            warnings.warn(
                "cumsum_cuda does not have a deterministic implementation, but you set",
                stacklevel=2,
            )
        warnings.warn("something else", stacklevel=2)
    assert unfixed == {"cumsum_cuda"}
    del others


def test_commit_only_of_the_packages_own_checkout(tmp_path, monkeypatch):
    package = tmp_path / "anharmonic"
    package.mkdir()
    init = package / "__init__.py"
    init.write_text("")
    monkeypatch.setattr(anharmonic, "__file__", str(init))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.commit() is None

    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *names, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    others = {}
    for name in ("papers/src/models/mine.py", "src/other/table.yaml", "papers/results/all.jsonl"):
        others[name] = tmp_path / name
        others[name].parent.mkdir(parents=True)
        others[name].write_text("1")
    git("init")
    assert machine.commit() is None  # in a checkout, but not part of it
    git("add", ".")
    git("commit", "-m", "all")
    head = machine.commit()
    assert head is not None and len(head) == 40
    others.pop("papers/results/all.jsonl").write_text("12")
    assert machine.commit() == head  # results were added, no source is another
    for changed in (init, *others.values()):
        before = changed.read_text()
        changed.write_text("x = 1\n")
        assert machine.commit() == head + "-dirty", changed
        changed.write_text(before)
    monkeypatch.setenv("PATH", "")
    assert machine.commit() is None


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
def test_peak_memory_is_that_of_a_sitting():
    much = np.ones(25_000_000)  # 200 MB
    del much
    before = peak_memory_mb("cpu")
    with machine.torch_settings("cpu", None):
        # All but 50 MB of it is gone from the peak.
        assert peak_memory_mb("cpu") < before - 150
        much = np.ones(25_000_000)
        assert peak_memory_mb("cpu") > before - 50
        del much
