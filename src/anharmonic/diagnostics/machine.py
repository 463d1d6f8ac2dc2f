"""The machine a number was measured on, and the memory of this process."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

import anharmonic
from anharmonic.ops import available_backends, library

if sys.platform != "win32":
    import resource


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Versions of this package, of Python, and of the packages named.

    Args:
        packages: As pip calls them.

    Example:
        >>> sorted(versions(["torch"]))
        ['anharmonic', 'python', 'torch']
    """
    found = {"anharmonic": anharmonic.__version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def hardware(device: str) -> str:
    """Name of the GPU or of the processor.

    Args:
        device: "cpu" or "cuda".
    """
    if device == "cuda":
        return torch.cuda.get_device_name()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu() -> dict[str, str | int | None]:
    """The processor, its cores, the system, and which of our backends computes on it.

    ``instruction_set`` is that of the compiled kernels, None where the reference computes.

    Example:
        >>> sorted(cpu())
        ['backend', 'cores', 'instruction_set', 'processor', 'system']
    """
    native = "native" in available_backends("lem")
    return {
        "processor": hardware("cpu"),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "backend": "native" if native else "reference",
        "instruction_set": library.instruction_set() if native else None,
    }


def peak_memory_mb(device: str) -> float:
    """Peak memory in MB (10**6 bytes): resident memory of this process, or the GPU's allocator's.

    It is the peak since `reset_peak_memory`. What cannot be reset (resident memory on macOS, or
    where the system keeps /proc closed) is the peak since the process began, earlier runs and
    other work of the same process included.

    Args:
        device: "cpu" or "cuda".
    """
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e6
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def reset_peak_memory(device: str) -> None:
    """Lets `peak_memory_mb` count from now on, where the system can.

    Args:
        device: "cpu" or "cuda".
    """
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    elif sys.platform == "linux":
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
