"""Choice of kernel, precision and memory policy for a call.

``choose`` and ``use_backend`` select the kernel, ``use_precision`` its precision. A memory policy
defines what is saved for the backward pass: every state, some states, or only the last.

- *stored*: everything that the backward pass needs. In the reference this is plain autograd.
- *chunked*: the states at the start of every chunk of time, which is recomputed in the backward
  pass. Memory grows with T / K + K for chunks of K steps.
- *reversible*: only the final states, for recurrences whose steps can be undone bit for bit.

Stored and chunked give the same outputs bit for bit. In the reference, chunked sums weight
gradients within a chunk first, so they differ from stored ones in the last digits.
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
"""The fast backends of each kernel, in the order that "auto" tries."""


class ContextSetting:
    """A setting that ``with`` blocks change.

    A compiler cannot see thread-local values. Code under ``torch.compile`` follows the block last
    entered or left in any thread, and is recompiled when that changes.

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
        """Return a block in which the setting has this value."""
        token = self._here.set(value)
        self._latest = value
        try:
            yield
        finally:
            self._here.reset(token)
            self._latest = self._here.get()

    def get(self) -> str:
        """Return the current value."""
        return self._latest if torch.compiler.is_compiling() else self._here.get()


def interpreted() -> bool:
    """Return whether Triton's interpreter runs the kernels on the CPU, for tests."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def _missing() -> dict[str, str]:
    """Return why a fast backend is missing; empty if it is available."""
    native = triton = ""
    try:
        native = library.why_not()
    except ValueError:
        pass  # the environment requests an unavailable backend; the first call reports it
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
        ValueError: If the backend is not available.

    Example:
        >>> import anharmonic as ah, torch
        >>> with ah.use_backend("reference"):
        ...     output, state = ah.LEM(3, 4)(torch.zeros(5, 2, 3))
    """
    _known(backend, {name for kernel in KERNELS for name in available_backends(kernel)})
    with _BACKEND.set_to(backend):
        yield


def forced() -> str:
    """Return the backend requested by ``use_backend`` or the environment; "auto" if none."""
    return _BACKEND.get()


@contextmanager
def use_precision(precision: str) -> Iterator[None]:
    """Round the operands of a recurrence's matrix products within a ``with`` block.

    The setting applies to this thread or task, to input products, recurrent products and their
    gradients. A backward pass uses the precision of its forward pass. Sums, states, nonlinearities
    and bias gradients stay in float32.

    GPU kernels support all three precisions. On a CPU, ``"bfloat16"`` needs a processor with
    AVX512-BF16; on Linux it uses AMX if the processor has it. coRNN, UnICORNN, LEM and the
    oscillator then train up to twice as fast, but slower on Intel processors without AMX. On other
    processors products stay in float32, with a single warning. The reference backend, other layers
    and other dtypes compute in the dtype of the tensors.

    Args:
        precision: ``"float32"`` (the default, no rounding), ``"tf32"`` (10 fraction bits) or
            ``"bfloat16"`` (7 fraction bits).

    Raises:
        ValueError: If the precision is unknown.

    Example:
        >>> import anharmonic as ah, torch
        >>> with ah.use_precision("bfloat16"):
        ...     output, state = ah.CoRNN(3, 4)(torch.zeros(5, 2, 3))
    """
    with _PRECISION.set_to(choice("precision", precision, PRECISIONS)):
        yield


def current_precision() -> str:
    """Return the precision set by ``use_precision``."""
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
        kernel: One of ``KERNELS``, or "" if only the reference supports it.
        backend: A backend's name. "auto" takes the one from ``use_backend`` or the environment,
            otherwise the first suitable fast backend, otherwise the reference. If only a missing
            library prevents a fast one, there is a single warning.
        tensors: Every floating-point tensor of the call.
        not_native: Why the C library cannot run this call, apart from the tensors; or None.
        unfit_for_triton: Returns the same for the GPU kernels. Its second argument is whether to
            trust them on this device without a trial.
        reference_only: Why only the reference can run this call with any tensors; or None.

    Raises:
        ValueError: If the backend is unknown, unavailable or cannot run on these tensors.
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
    """Check that a backend is known and available."""
    if backend not in names and backend in ("native", "triton") and _MISSING[backend]:
        raise ValueError(
            message(
                f"backend {backend!r} must be available here", _MISSING[backend],
                "use backend='auto'",
            )
        )  # fmt: skip
    choice("backend", backend, ["auto", *sorted(names)])


def transformed() -> str | None:
    """Return the name of an active transform, which allows only plain tensor operations.

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
    # Devices without autocast, such as "meta", raise an error here.
    return kind != "meta" and torch.is_autocast_enabled(kind)


def unfit_for_cpu(tensors: Sequence[Tensor]) -> str | None:
    """Return why compiled CPU code cannot run on these tensors; None if it can.

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
    # A compiler resolves its own transforms and finally calls the operator.
    return None if torch.compiler.is_compiling() else transformed()


def needs_gradient(tensors: Iterable[Tensor | None]) -> bool:
    """Return whether a backward pass may follow a call with these tensors."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


GRID_LIMIT = 2.0**10
"""Bound of states under the reversible policy (GRID_LIMIT in csrc/unicornn.h)."""
POLICIES = ("auto", "stored", "chunked", "reversible")
STORED_WITH_OUTPUT = 2**30
"""Largest size of states that "auto" stores if the caller holds all outputs anyway."""
STORED_WITHOUT_OUTPUT = 8 * 2**20
"""Largest size of states that "auto" stores if only the final state is requested."""


def checked_policy(memory: str, *, invertible: bool, bidirectional: bool) -> str:
    """Check that a policy is known and suits the recurrence; return it."""
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
    """Resolve "auto" to "stored" or "chunked"; keep other policies.

    A caller who gets the output at all steps (``return_sequence``) holds as much anyway.

    Example:
        >>> resolve("auto", True, 10**9), resolve("auto", False, 10**9)
        ('stored', 'chunked')
    """
    if memory != "auto":
        return memory
    limit = STORED_WITH_OUTPUT if return_sequence else STORED_WITHOUT_OUTPUT
    return "stored" if stored_bytes <= limit else "chunked"


def state_bytes(steps: int, state: Sequence[Tensor]) -> int:
    """Return the size of all variables' states [L, B, H] over all steps, in bytes.

    Example:
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
