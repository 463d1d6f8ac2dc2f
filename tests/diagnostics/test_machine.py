import torch

from anharmonic.diagnostics import machine


def test_hardware_memory_versions():
    assert machine.hardware("cpu")
    assert 10 < machine.peak_memory_mb("cpu") < 1e6
    found = machine.versions(["torch", "no-such-package"])
    # A CUDA build has the version 2.13.0, and calls itself 2.13.0+cu130.
    assert torch.__version__.startswith(found["torch"])
    assert found["no-such-package"] == "not installed"


def test_the_instruction_set_is_that_of_the_native_backend():
    found = machine.cpu()
    assert (found["instruction_set"] is None) == (found["backend"] == "reference")


def test_peak_memory_without_proc(monkeypatch):
    def closed(*arguments, **named):
        raise PermissionError

    monkeypatch.setattr(machine.Path, "read_text", closed)
    monkeypatch.setattr(machine.Path, "write_text", closed)
    machine.reset_peak_memory("cpu")
    assert 10 < machine.peak_memory_mb("cpu") < 1e6
