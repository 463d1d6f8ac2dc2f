"""Information on the machine, its memory, and PyTorch's settings."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

import anharmonic
from anharmonic import _checks
from anharmonic.ops import available_backends, library

if sys.platform != "win32":
    import resource


def check_system() -> None:
    """Refuse systems that do not support training."""
    if sys.platform == "win32":
        advice = "train inside the Windows Subsystem for Linux (WSL)"
        raise RuntimeError(_checks.message("training runs on Linux and macOS", "Windows", advice))


def choose_device(device: str) -> str:
    """Resolve "auto", and check that a requested GPU exists."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        built = "has no CUDA" if torch.version.cuda is None else "finds no GPU"
        expected, came = 'device "cuda" needs a GPU that PyTorch can use', torch.__version__
        advice = 'choose device "cpu" or "auto", or install a CUDA build of PyTorch'
        raise ValueError(_checks.message(expected, f"PyTorch {came}, which {built}", advice))
    return device


def versions(packages: Sequence[str] = ("torch", "numpy")) -> dict[str, str]:
    """Return the versions of this package, of Python, and of the named packages.

    Args:
        packages: Their names for pip; by default those that affect the results of a training.

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
    """Return the name of the GPU or of the processor.

    Args:
        device: "cpu" or "cuda".

    Example:
        >>> isinstance(hardware("cpu"), str)
        True
    """
    if device == "cuda":
        return torch.cuda.get_device_name()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cpu() -> dict[str, str | int | None]:
    """Describe the processor, its cores, the system and the backend in use.

    ``instruction_set`` is that of the compiled kernels, None for the reference.

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
    """Return the peak memory in MB (10**6 bytes), of this process or of the GPU's allocator.

    It is the peak since `reset_peak_memory`. If the system cannot reset it (macOS, or without
    access to /proc), it is the peak since the process began, including earlier runs.

    Args:
        device: "cpu" or "cuda".

    Example:
        >>> peak_memory_mb("cpu") > 1
        True
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
    """Restart the count of `peak_memory_mb`, if the system supports it.

    Args:
        device: "cpu" or "cuda".

    Example:
        >>> reset_peak_memory("cpu")
        >>> peak_memory_mb("cpu") > 1
        True
    """
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    elif sys.platform == "linux":
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def commit() -> str | None:
    """Return the git commit of the package's checkout, or None without a checkout.

    It ends in "-dirty" if files of the package, or of any folder ``src`` in the checkout, differ.
    Result lines, which runs append, do not count.

    Example:
        >>> found = commit()
        >>> found is None or len(found) >= 7
        True
    """
    here = Path(anharmonic.__file__).parent

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    try:
        # A package inside somebody else's checkout (a virtual environment) is not tracked there.
        if git("ls-files", "--error-unmatch", "__init__.py").returncode != 0:
            return None
        head = git("rev-parse", "HEAD").stdout.strip()
        sources = (str(here), ":(top,glob)**/src/**")
        dirty = git("diff", "--quiet", "HEAD", "--", *sources).returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (head + "-dirty" if dirty else head) or None


@contextlib.contextmanager
def torch_settings(device: str, threads: int | None) -> Iterator[set[str]]:
    """Set threads and deterministic algorithms within a block, then restore them.

    Peak memory is counted from here.

    Args:
        device: "cpu" or "cuda".
        threads: CPU threads; None leaves PyTorch's number.

    Returns:
        A set that collects the nondeterministic operations on this device.

    Example:
        >>> with torch_settings("cpu", 1) as unfixed:
        ...     torch.get_num_threads(), sorted(unfixed)
        (1, [])
    """
    unfixed: set[str] = set()
    reset_peak_memory(device)
    threads_before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    fixed_before = torch.are_deterministic_algorithms_enabled()
    warn_only_before = torch.is_deterministic_algorithms_warn_only_enabled()
    benchmark_before = torch.backends.cudnn.benchmark
    try:
        with warnings.catch_warnings():
            if device == "cuda":
                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
                torch.use_deterministic_algorithms(True, warn_only=True)
                torch.backends.cudnn.benchmark = False
                _collect_unfixed(unfixed)
            yield unfixed
    finally:
        torch.use_deterministic_algorithms(fixed_before, warn_only=warn_only_before)
        torch.backends.cudnn.benchmark = benchmark_before
        torch.set_num_threads(threads_before)


def _collect_unfixed(unfixed: set[str]) -> None:
    """Collect the names of nondeterministic operations from PyTorch's warnings."""
    marker = " does not have a deterministic implementation"
    show = warnings.showwarning

    def collect(message: Warning | str, *rest: object, **more: object) -> None:
        name, found, _ = str(message).partition(marker)
        if found:
            unfixed.add(name)
        else:
            show(message, *rest, **more)  # type: ignore[arg-type]  # passed on unread

    warnings.filterwarnings("always", message=f".*{marker}")
    warnings.showwarning = collect
