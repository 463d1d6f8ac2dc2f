"""``anharmonic info``: installed packages, and the CPU backend with the reason for it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from anharmonic._checks import choice

USAGE = "usage: anharmonic info [--json]"
_BACKEND = "ANHARMONIC_BACKEND"
_DATA = "ANHARMONIC_DATA"
_OPTIONAL = ("pyarrow", "scikit-learn", "torch_geometric", "torchdiffeq", "optuna", "onnx")
"""The main package of each job that an extra adds, by its name for installation."""


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic info`` with these arguments and return the exit code."""
    if set(words) & {"-h", "--help"}:
        print(USAGE)
        print("Print versions, threads, the CPU backend and its reason, and the data folder.")
        print("--json prints one JSON object.")
        return 0
    for word in words:
        choice("the option", word, ("--json",))
    facts = gather()
    print(json.dumps(facts, indent=2) if words else "\n".join(_lines(facts)))
    return 0


def gather() -> dict[str, Any]:
    """Return the command's output as JSON values.

    Example:
        >>> facts = gather()
        >>> facts["backend"] in ("native", "reference")
        True
    """
    import torch

    import anharmonic
    from anharmonic.data.download import data_folder
    from anharmonic.ops import library

    backend, reason = _backend()
    path = library.path()
    return {
        "anharmonic": anharmonic.__version__,
        "package": str(Path(anharmonic.__file__).parent),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "optional": {name: _version(name) for name in _OPTIONAL},
        "threads": torch.get_num_threads(),
        "backend": backend,
        "backend_reason": reason,
        "library": None if path is None else str(path),
        "instruction_set": library.instruction_set(),
        "instruction_sets": list(library.available()),
        "instruction_set_forced": bool(os.environ.get(library.FORCED)),
        "bfloat16": _bfloat16(),
        "data": str(data_folder()),
        "data_named": bool(os.environ.get(_DATA)),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _backend() -> tuple[str, str]:
    """Return the default backend on the CPU, and the reason for it."""
    from anharmonic.ops import available_backends, library

    forced = os.environ.get(_BACKEND) or "auto"
    choice(_BACKEND, forced, ["auto", *available_backends("lem")])
    if forced != "auto":
        return forced, f"forced by {_BACKEND}"
    if library.library() is None:
        return "reference", library.why_not()
    return "native", "the compiled C library is installed"


def _bfloat16() -> str | None:
    """Return the instructions for products in bfloat16, or None."""
    from anharmonic.ops import library

    if not library.has_bfloat16():
        return None
    return "AMX" if library.has_amx() else "AVX512-BF16"


def _lines(facts: dict[str, Any]) -> list[str]:
    from anharmonic.ops.library import FORCED

    if facts["instruction_set"] is None:
        instructions = "none"
    else:
        why = f"forced by {FORCED}" if facts["instruction_set_forced"] else "best"
        known = ", ".join(facts["instruction_sets"])
        instructions = f"{facts['instruction_set']} ({why}; this processor can run {known})"
    data = f"from {_DATA}" if facts["data_named"] else f"the default; {_DATA} is not set"
    said = {
        "anharmonic": f"{facts['anharmonic']} ({facts['package']})",
        "Python": facts["python"],
        "PyTorch": facts["torch"],
        **{name: version or "not installed" for name, version in facts["optional"].items()},
        "threads": facts["threads"],
        "CPU backend": f"{facts['backend']} ({facts['backend_reason']})",
        "C library": facts["library"] or "none",
        "instruction set": instructions,
        "bfloat16": f"products by {facts['bfloat16']}" if facts["bfloat16"] else "none",
        "data folder": f"{facts['data']} ({data})",
    }
    width = max(map(len, said))
    return [f"{name.ljust(width)}  {value}" for name, value in said.items()]
