"""What a result says about where it was computed, and settings for as long as it is."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

import anharmonic
from anharmonic import _checks
from anharmonic.diagnostics import machine


def check_system() -> None:
    """Refuses systems on which training does not run.

    Raises:
        RuntimeError: On Windows, whose file locks and memory counters are others.

    Example:
        >>> check_system()
    """
    if sys.platform == "win32":
        raise RuntimeError(
            _checks.message(
                "training runs on Linux and macOS",
                "Windows",
                "train inside the Windows Subsystem for Linux (WSL)",
            )
        )


def choose_device(device: str) -> str:
    """Resolves "auto" and checks that a GPU is there if one is asked for.

    Raises:
        ValueError: If "cuda" is asked for and PyTorch finds none.

    Example:
        >>> choose_device("cpu")
        'cpu'
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        built = "has no CUDA" if torch.version.cuda is None else "finds no GPU"
        raise ValueError(
            _checks.message(
                'device "cuda" needs a GPU that PyTorch can use',
                f"PyTorch {torch.__version__}, which {built}",
                'choose device "cpu" or "auto", or install a CUDA build of PyTorch',
            )
        )
    return device


def check_logger(name: str) -> None:
    """Check that the package that a logger writes with is installed.

    Args:
        name: As of `RunEnvironment.logger`.

    Raises:
        ImportError: If it is not.

    Example:
        >>> check_logger("csv")
    """
    if name != "tensorboard" or importlib.util.find_spec("tensorboard"):
        return
    raise ImportError(
        _checks.message(
            "logger='tensorboard' (--logger tensorboard) needs the package tensorboard",
            "an environment without it",
            "run: pip install tensorboard, or choose --logger csv",
        )
    )


def versions() -> dict[str, str]:
    """Versions of the packages that make the numbers.

    Example:
        >>> sorted(versions())
        ['anharmonic', 'numpy', 'python', 'torch']
    """
    return machine.versions(("torch", "numpy"))


def commit() -> str | None:
    """Git commit of the package's own checkout, or None where it lies in none.

    It ends in "-dirty" if files of the package differ, or files in any folder ``src`` of the
    checkout, such as that of a second project there. Result lines, which runs add, do not count.
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
    """Sets threads and deterministic algorithms for a while, and puts back what was there.

    Peak memory counts from here.

    Args:
        device: "cpu" or "cuda".
        threads: CPU threads; None leaves PyTorch's number.

    Returns:
        A set that fills with the operations that have no deterministic form on this device.

    Example:
        >>> with torch_settings("cpu", 1) as unfixed:
        ...     torch.get_num_threads(), sorted(unfixed)
        (1, [])
    """
    unfixed: set[str] = set()
    machine.reset_peak_memory(device)
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
    """Turns PyTorch's warnings about nondeterministic operations into names in a set."""
    marker = " does not have a deterministic implementation"
    show = warnings.showwarning

    def collect(message: Warning | str, *rest: object, **more: object) -> None:
        name, found, _ = str(message).partition(marker)
        if found:
            unfixed.add(name)
        else:
            show(message, *rest, **more)  # type: ignore[arg-type]

    warnings.filterwarnings("always", message=f".*{marker}")
    warnings.showwarning = collect
