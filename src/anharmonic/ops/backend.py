"""How a call is computed: by which kernel, how precisely, and with what saved for its gradient.

``choose`` and ``use_backend`` name the kernel, ``use_precision`` its precision. A memory policy
says what is saved for the backward pass: every state, a state now and then, or the last only.

- *stored*: whatever the backward pass needs of every step. In the reference this is plain autograd.
- *chunked*: the states at the start of every chunk of time; a chunk is walked again when its
  gradient is due. Memory grows with T / K + K for chunks of K steps.
- *reversible*: the end states only, for recurrences whose steps can be undone bit for bit.

The outputs are the same bits in stored and chunked. In the reference, weight gradients are summed
within a chunk first, so that they differ from stored ones in the last places.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from anharmonic._checks import choice, message, require
from anharmonic.ops import library

KERNELS: dict[str, tuple[str, ...]] = {
    "cornn": ("native", "triton"),
    "unicornn": ("native", "triton"),
    "lem": ("native", "triton"),
    "oscillator": ("native",),
    "skew": (),
    "neighbour_sum": ("native",),
    "gradient_gate": ("native",),
    "resonator_pool": ("native",),
    "resonator_respond": ("native",),
}
"""The fast backends of each kernel, in the order in which "auto" tries them."""


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


def interpreted() -> bool:
    """Return whether Triton's interpreter runs the kernels, on the CPU: for tests."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def _missing() -> dict[str, str]:
    """Why a fast backend is not there, by its name; empty if it is."""
    native = triton = ""
    try:
        native = library.why_not()
    except ValueError:
        pass  # the environment asks for what cannot run: the first call says so
    if importlib.util.find_spec("triton") is None:
        triton = "no package triton (a PyTorch for CUDA brings it; on Linux: pip install triton)"
    elif torch.version.cuda is None and not interpreted():
        triton = "a PyTorch without CUDA"
    return {"native": native, "triton": triton}


_MISSING = _missing()
_BACKEND = ContextSetting("backend", os.environ.get("ANHARMONIC_BACKEND") or "auto")
_PRECISION = ContextSetting("precision", "float32")
PRECISIONS = ("float32", "tf32", "bfloat16")


def available_backends(kernel: str) -> list[str]:
    """List the backends that can run a kernel here.

    Raises:
        ValueError: If no kernel has that name.

    Example:
        >>> "reference" in available_backends("lem")
        True
    """
    fast = KERNELS[choice("kernel", kernel, KERNELS)]
    return ["reference", *(name for name in fast if not _MISSING[name])]


@contextmanager
def use_backend(backend: str) -> Iterator[None]:
    """Force a backend within a ``with`` block (in this thread or task only).

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
    _known(backend, {name for kernel in KERNELS for name in available_backends(kernel)})
    with _BACKEND.set_to(backend):
        yield


def forced() -> str:
    """Return the backend that ``use_backend`` or the environment ask for; "auto" if none."""
    return _BACKEND.get()


@contextmanager
def use_precision(precision: str) -> Iterator[None]:
    """Round the operands of a recurrence's matrix products within a ``with`` block.

    It counts in this thread or task, for input products, recurrent products and their gradients
    alike; a backward pass takes what its forward pass took. Sums are float32, and so are states,
    nonlinearities and bias gradients.

    GPU kernels know all three precisions. On a CPU, ``"bfloat16"`` needs a processor with
    AVX512-BF16: coRNN, UnICORNN, LEM and the oscillator then train up to twice as fast. On other
    processors products stay in float32, and a warning says so once. The reference backend, other
    layers and other dtypes compute in the dtype of the tensors.

    Args:
        precision: ``"float32"`` (the default: nothing is rounded), ``"tf32"`` (10 bits behind the
            binary point) or ``"bfloat16"`` (7 bits).

    Raises:
        ValueError: If there is no such precision.

    Example:
        >>> import anharmonic as ah, torch
        >>> with ah.use_precision("bfloat16"):
        ...     output, state = ah.CoRNN(3, 4)(torch.zeros(5, 2, 3))
    """
    with _PRECISION.set_to(choice("precision", precision, PRECISIONS)):
        yield


def current_precision() -> str:
    """Return the precision that ``use_precision`` asks for."""
    return _PRECISION.get()


def choose(
    kernel: str,
    backend: str,
    tensors: Sequence[Tensor],
    *,
    not_native: str | None = None,
    unfit_for_triton: Callable[[Sequence[Tensor], bool], str | None] | None = None,
    reference_only: str | None = None,
) -> str:
    """Choose the backend that runs a kernel on these tensors.

    Args:
        kernel: One of ``KERNELS``, or "" for what only the reference runs.
        backend: A backend's name; "auto" takes what ``use_backend`` or the environment say, else
            the first fast backend that fits, else the reference. Where only a missing library
            stands in the way of a fast one, a warning says so, once.
        tensors: Every floating-point tensor of the call.
        not_native: Why the C library cannot run this call, beside the tensors; or None.
        unfit_for_triton: Says the same of the GPU kernels; its second argument is whether they are
            taken as right on this device without a trial.
        reference_only: Why only the reference can run this call, whatever its tensors; or None.

    Raises:
        ValueError: If the backend does not exist, is not there or cannot run on these tensors.
    """
    fast = KERNELS.get(kernel, ())
    if backend == "auto":
        backend = _BACKEND.get()
    if backend == "auto":
        if reference_only is not None:
            return "reference"
        if "native" in fast and not_native is None and unfit_for_cpu(tensors) is None:
            if not _MISSING["native"]:
                return "native"
            library.warn_once()
        here = "triton" in fast and tensors[0].is_cuda and not _MISSING["triton"]
        if here and unfit_for_triton is not None and unfit_for_triton(tensors, False) is None:
            return "triton"
        return "reference"
    _known(backend, available_backends(kernel) if kernel else ["reference"])
    reason = None
    if backend == "native":
        reason = not_native or unfit_for_cpu(tensors)
    elif backend == "triton" and unfit_for_triton is not None:
        reason = unfit_for_triton(tensors, True)
    if backend != "reference" and (reason := reason or reference_only) is not None:
        raise ValueError(
            message(
                f"backend {backend!r} must be able to run this input", reason, "use backend='auto'"
            )
        )
    return backend


def _known(backend: str, names: Collection[str]) -> None:
    """Check that a backend exists and is there."""
    if backend not in names and backend in ("native", "triton") and _MISSING[backend]:
        raise ValueError(
            message(
                f"backend {backend!r} must be available here", _MISSING[backend],
                "use backend='auto'",
            )
        )  # fmt: skip
    choice("backend", backend, ["auto", *sorted(names)])


def transformed() -> str | None:
    """Name the transform that is active, under which only plain tensor operations work.

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


def in_autocast(x: Tensor) -> bool:
    """Return whether autocast is on for the device of a tensor."""
    kind = x.device.type
    # Devices without autocast, such as "meta", refuse the question.
    return kind != "meta" and torch.is_autocast_enabled(kind)


def unfit_for_cpu(tensors: Sequence[Tensor]) -> str | None:
    """Say why compiled CPU code cannot run on these tensors; None if it can.

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


def needs_gradient(tensors: Iterable[Tensor | None]) -> bool:
    """Return whether a backward pass may follow a call with these tensors."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


GRID_LIMIT = 2.0**10
"""States of the reversible policy are smaller (GRID_LIMIT in csrc/unicornn.h)."""
POLICIES = ("auto", "stored", "chunked", "reversible")
STORED_WITH_OUTPUT = 2**30
"""Bytes of states that auto stores where the caller holds all outputs anyway."""
STORED_WITHOUT_OUTPUT = 8 * 2**20
"""Bytes of states that auto stores where only the end is asked for."""


def checked_policy(memory: str, *, invertible: bool, bidirectional: bool) -> str:
    """Check the name of a policy and that it fits the recurrence; return it."""
    choice("memory", memory, POLICIES)
    if memory == "reversible":
        advice = "use memory='chunked'"
        require(
            invertible, "memory", memory,
            "another policy for this model (steps that can be undone: those of UnICORNN, and of "
            "MultiLayerNeuralOscillator with tanh and symplectic Euler)", advice,
        )  # fmt: skip
        require(not bidirectional, "bidirectional", True, "False with memory='reversible'", advice)
    return memory


def off_grid(found: str) -> OverflowError:
    """Return the error of a state that leaves the grid of the reversible policy."""
    return OverflowError(
        message(
            f"with memory='reversible' states must stay within the grid, |y|, |z| < {GRID_LIMIT:g}",
            found,
            "use a smaller dt, scale the input, or take memory='chunked'",
        )
    )


def resolve(memory: str, return_sequence: bool, stored_bytes: int) -> str:
    """Turn "auto" into "stored" or "chunked"; other policies stay.

    Args:
        memory: One of ``POLICIES``.
        return_sequence: Whether the output at all steps is asked for (the caller then holds as
            much anyway).
        stored_bytes: What storing all states takes.

    Example:
        >>> resolve("auto", True, 10**9), resolve("auto", False, 10**9)
        ('stored', 'chunked')
    """
    if memory != "auto":
        return memory
    limit = STORED_WITH_OUTPUT if return_sequence else STORED_WITHOUT_OUTPUT
    return "stored" if stored_bytes <= limit else "chunked"


def state_bytes(steps: int, state: Sequence[Tensor]) -> int:
    """Bytes of a state, all layers [L, B, H] of each variable, at all steps.

    Example:
        >>> import torch
        >>> state_bytes(100, (torch.zeros(2, 8, 32), torch.zeros(2, 8, 32)))
        409600
    """
    return steps * sum(variable.numel() * variable.element_size() for variable in state)


def checked_compiled(compiled: bool | str) -> bool | str:
    """Check the argument ``compiled``, and return it."""
    require(
        isinstance(compiled, bool) or compiled == "auto", "compiled", compiled,
        "True, False or 'auto'", "leave it out to compile where that is possible",
    )  # fmt: skip
    return compiled
