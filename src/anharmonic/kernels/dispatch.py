"""Which implementation of a kernel runs: picks one, explains the choice, can be forced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anharmonic._checks import choice

_IMPLEMENTATIONS: dict[str, dict[str, Callable[..., Any]]] = {}


def register(kernel: str, backend: str, implementation: Callable[..., Any]) -> None:
    """Adds one implementation of a kernel; called once by each kernel's package.

    Args:
        kernel: The kernel's public name, e.g. ``"lem"``.
        backend: The backend's name, e.g. ``"reference"``.
        implementation: A function with the kernel's signature, without ``backend``.
    """
    _IMPLEMENTATIONS.setdefault(kernel, {})[backend] = implementation


def available_backends(kernel: str) -> list[str]:
    """Lists the backends that can run a kernel here.

    Raises:
        ValueError: If no kernel has that name.

    Example:
        >>> available_backends("lem")
        ['reference']
    """
    return list(_IMPLEMENTATIONS[choice("kernel", kernel, _IMPLEMENTATIONS)])


def implementation(kernel: str, backend: str) -> Callable[..., Any]:
    """Returns the implementation of ``kernel`` that ``backend`` names.

    ``"auto"`` takes the fastest one that fits; the reference is the only one so far.

    Raises:
        ValueError: If the backend does not exist or cannot run here.
    """
    table = _IMPLEMENTATIONS[kernel]
    choice("backend", backend, ["auto", *table])
    return table["reference" if backend == "auto" else backend]
