import os
import subprocess
import warnings

import numpy as np
import pytest
import torch

import anharmonic
from anharmonic.diagnostics import machine


def test_hardware_memory_versions():
    assert machine.hardware("cpu")
    assert 10 < machine.peak_memory_mb("cpu") < 1e6
    found = machine.versions(["torch", "no-such-package"])
    # A CUDA build has the version 2.13.0, and calls itself 2.13.0+cu130.
    assert torch.__version__.startswith(found["torch"])
    assert found["no-such-package"] == "not installed"
    found = machine.cpu()
    assert (found["instruction_set"] is None) == (found["backend"] == "reference")


def test_peak_memory_without_proc(monkeypatch):
    def closed(*arguments, **named):
        raise PermissionError

    monkeypatch.setattr(machine.Path, "read_text", closed)
    monkeypatch.setattr(machine.Path, "write_text", closed)
    machine.reset_peak_memory("cpu")
    assert 10 < machine.peak_memory_mb("cpu") < 1e6


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
    unfixed = set()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        machine._collect_unfixed(unfixed)
        for operation in ("cumsum_cuda", "cumsum_cuda"):
            text = f"{operation} does not have a deterministic implementation, but you set"
            warnings.warn(text, stacklevel=2)
        warnings.warn("something else", stacklevel=2)
    assert unfixed == {"cumsum_cuda"}


def test_commit_only_of_the_packages_own_checkout(tmp_path, monkeypatch):
    init = tmp_path / "anharmonic" / "__init__.py"
    others = [tmp_path / name for name in ("papers/src/models/mine.py", "src/other/table.yaml")]
    results = tmp_path / "papers/results/all.jsonl"
    for path in (init, *others, results):
        path.parent.mkdir(parents=True)
        path.write_text("1")
    monkeypatch.setattr(anharmonic, "__file__", str(init))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.commit() is None

    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *names, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    assert machine.commit() is None  # in a checkout, but not part of it
    git("add", ".")
    git("commit", "-m", "all")
    head = machine.commit()
    assert head is not None and len(head) == 40
    results.write_text("12")
    assert machine.commit() == head  # results were added, no source is another
    for changed in (init, *others):
        changed.write_text("x = 1\n")
        assert machine.commit() == head + "-dirty", changed
        changed.write_text("1")
    monkeypatch.setenv("PATH", "")
    assert machine.commit() is None


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
def test_peak_memory_is_that_of_a_sitting():
    much = np.ones(25_000_000)  # 200 MB
    del much
    before = machine.peak_memory_mb("cpu")
    with machine.torch_settings("cpu", None):
        # All but 50 MB of it is gone from the peak.
        assert machine.peak_memory_mb("cpu") < before - 150
        much = np.ones(25_000_000)
        assert machine.peak_memory_mb("cpu") > before - 50
        del much
