"""Which implementation of a kernel runs: picks one, explains the choice, can be forced."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import choice, message
from anharmonic.ops.bridge import library

Chain = Callable[..., Any]
"""What a backend registers. For a recurrence it is
``chain(x, weights, y0, z0, *, <settings>, lengths, masks, elapsed, return_sequence, memory)``, with
the settings of its model (``dt`` and the like).

It runs a stack in one direction: x [T, B, F], one entry of weights per layer, y0, z0 [L, B, H],
lengths [B] (int64, CPU) or None, masks L - 1 times [B, H] or None, elapsed [T, B] in walking order
or None, memory one of ``memory.POLICIES``; returns outputs [T, B, H] (None unless
``return_sequence``), final y and final z [L, B, H].

On a graph it is ``chain(<tensors>, graph, *, <the kernel's own>)``, with tensors [N, F] of nodes or
[E, H] of edges; it returns a tensor.
"""

Fits = Callable[[Sequence[Tensor]], str | None]
"""``fits(tensors)``: why a backend cannot run on these tensors, or None if it can."""


class ContextSetting:
    """A setting that ``with`` blocks change.

    A compiler cannot see what is bound to a thread: code under ``torch.compile`` follows the block
    that was entered or left last in any thread, and is compiled again when that changes.

    Args:
        name: For messages of Python.
        default: The value outside of all blocks.

    Example:
        >>> colour = ContextSetting("colour", "red")
        >>> with colour.set_to("blue"):
        ...     colour.get()
        'blue'
        >>> colour.get()
        'red'
    """

    def __init__(self, name: str, default: str) -> None:
        self._here: ContextVar[str] = ContextVar(name, default=default)
        self._latest = default

    @contextmanager
    def set_to(self, value: str) -> Iterator[None]:
        """A block in which the setting has this value."""
        token = self._here.set(value)
        self._latest = value
        try:
            yield
        finally:
            self._here.reset(token)
            self._latest = self._here.get()

    def get(self) -> str:
        """The value that holds here."""
        return self._latest if torch.compiler.is_compiling() else self._here.get()


class _Backend(NamedTuple):
    chain: Chain
    fits: Fits
    wanted: Fits


_BACKENDS: dict[str, dict[str, _Backend]] = {}
_MISSING: dict[str, str] = {}
_BACKEND = ContextSetting("backend", os.environ.get("ANHARMONIC_BACKEND") or "auto")


def register(
    kernel: str,
    backend: str,
    chain: Chain,
    fits: Fits = lambda tensors: None,
    wanted: Fits | None = None,
) -> None:
    """Adds one implementation of a kernel; called by each kernel's package, the reference first.

    Args:
        kernel: The kernel's public name, e.g. ``"lem"``.
        backend: The backend's name, e.g. ``"reference"``.
        chain: Runs a stack in one direction.
        fits: Says why the backend cannot run on given tensors; None if it can.
        wanted: Says why "auto" does not take it, if there is more to that than ``fits``.
    """
    _BACKENDS.setdefault(kernel, {})[backend] = _Backend(chain, fits, wanted or fits)


def register_native(kernel: str, chain: Chain, fits: Fits | None = None) -> None:
    """Registers a kernel's chain in the C library, or says why there is none."""
    try:
        missing = library.why_not()
    except ValueError:
        missing = ""  # the environment asks for what cannot run: the first call says so
    if missing:
        register_missing("native", missing)
    else:
        register(kernel, "native", chain, fits or unfit_for_cpu)


def register_missing(backend: str, reason: str) -> None:
    """Says why a backend is not there, for the error of whoever forces it."""
    _MISSING[backend] = reason


def available_backends(kernel: str) -> list[str]:
    """Lists the backends that can run a kernel here.

    Raises:
        ValueError: If no kernel has that name.

    Example:
        >>> "reference" in available_backends("lem")
        True
    """
    return list(_BACKENDS[choice("kernel", kernel, _BACKENDS)])


@contextmanager
def use_backend(backend: str) -> Iterator[None]:
    """Forces a backend within a ``with`` block (in this thread or task only).

    The environment variable ``ANHARMONIC_BACKEND`` does the same for a whole process.

    Args:
        backend: ``"auto"`` (the fastest that fits) or one of ``ops.available_backends(...)``.

    Raises:
        ValueError: If there is no such backend here.

    Example:
        >>> import anharmonic as ah, torch
        >>> with ah.use_backend("reference"):
        ...     output, state = ah.LEM(3, 4)(torch.zeros(5, 2, 3))
    """
    _known(backend, {name for table in _BACKENDS.values() for name in table})
    with _BACKEND.set_to(backend):
        yield


def forced() -> str:
    """The backend that ``use_backend`` or the environment ask for; "auto" if none.

    Example:
        >>> with use_backend("reference"):
        ...     forced()
        'reference'
    """
    return _BACKEND.get()


def pick(kernel: str, backend: str, tensors: Sequence[Tensor], unfit: str | None = None) -> Chain:
    """Returns the chain of ``kernel`` that runs on these tensors.

    Args:
        kernel: The kernel's public name.
        backend: A backend's name; "auto" takes what ``use_backend`` or the environment say, else
            the first fast backend that fits, else the reference. Where only a missing library
            stands in the way of a fast one, a warning says so, once.
        tensors: Every floating-point tensor of the call.
        unfit: Why only the reference can run this call, whatever its tensors; None if others can.

    Raises:
        ValueError: If the backend does not exist, is not there or cannot run on these tensors.
    """
    table = _BACKENDS[kernel]
    if backend == "auto":
        backend = _BACKEND.get()
    if backend == "auto" and unfit is None:
        for name, (chain, _, wanted) in table.items():
            if name != "reference" and wanted(tensors) is None:
                return chain
        if "native" in _MISSING and unfit_for_cpu(tensors) is None:
            library.warn_once()
    if backend == "auto":
        return table["reference"].chain
    _known(backend, table)
    reason = table[backend].fits(tensors)
    if reason is None and backend != "reference":
        reason = unfit
    if reason is not None:
        raise ValueError(
            message(
                f"backend {backend!r} must be able to run this input", reason, "use backend='auto'"
            )
        )
    return table[backend].chain


def _known(backend: str, names: Collection[str]) -> None:
    if backend in _MISSING and backend not in names:
        raise ValueError(
            message(
                f"backend {backend!r} must be available here", _MISSING[backend],
                "use backend='auto'",
            )
        )  # fmt: skip
    choice("backend", backend, ["auto", *sorted(names)])


def transformed() -> str | None:
    """Names the transform that is active, under which only plain tensor operations work.

    Example:
        >>> transformed() is None
        True
        >>> torch.func.vmap(lambda x: x if transformed() is None else -x)(torch.ones(1))
        tensor([-1.])
    """
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "a transform of torch.func"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    return None


def unfit_for_cpu(tensors: Sequence[Tensor]) -> str | None:
    """The ``fits`` of compiled CPU code: plain tensors on the CPU, all float32 or all float64.

    Example:
        >>> unfit_for_cpu([torch.zeros(1), torch.zeros(2)]) is None
        True
        >>> unfit_for_cpu([torch.zeros(1), torch.zeros(2, dtype=torch.float64)])
        'torch.float32 beside torch.float64'
    """
    dtype = tensors[0].dtype
    if dtype is not torch.float32 and dtype is not torch.float64:
        return f"{dtype}"
    for tensor in tensors:
        if tensor.dtype is not dtype:
            return f"{dtype} beside {tensor.dtype}"
        if not tensor.is_cpu:
            return f"a tensor on {tensor.device}"
    # A compiler sees through its own transforms, and calls the operator in the end.
    return None if torch.compiler.is_compiling() else transformed()


def without_scalar_tensors(fits: Fits) -> Fits:
    """The ``fits`` of a backend whose numbers (dt and the like) get no gradient.

    Example:
        >>> without_scalar_tensors(unfit_for_cpu)([torch.zeros(2), torch.tensor(0.1)])
        'a scalar that is a tensor'
    """

    def unfit(tensors: Sequence[Tensor]) -> str | None:
        for tensor in tensors:
            if tensor.dim() == 0:
                return "a scalar that is a tensor"
        return fits(tensors)

    return unfit


def needs_gradient(tensors: Iterable[Tensor | None]) -> bool:
    """Whether a backward pass may follow a call with these tensors.

    Example:
        >>> needs_gradient([None, torch.zeros(1)])
        False
        >>> needs_gradient([torch.zeros(1, requires_grad=True)])
        True
    """
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False
