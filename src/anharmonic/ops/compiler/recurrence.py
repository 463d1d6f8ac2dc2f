"""``recurrence(step)``: run a step in plain PyTorch over sequences at compiled speed."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from anharmonic._checks import choice, described, listed, message, require
from anharmonic._tensors import Unchanged, WrongStep, check_step, watched
from anharmonic.ops.backend import (
    checked_compiled,
    checked_policy,
    forced,
    needs_gradient,
    unfit_for_cpu,
)
from anharmonic.ops.compiler.cache import find, walk
from anharmonic.ops.compiler.kernel import Kernel
from anharmonic.ops.compiler.trace import Example, Unsupported
from anharmonic.ops.compiler.values import Value
from anharmonic.ops.reference import without_autocast

OUTPUTS = ("all", "last", "none")


class Compiling:
    """Runs steps compiled where that is possible, and remembers how the last call ran.

    Args:
        name: The name of the step, for messages.
        compiled: "auto", True or False.
        warns: Whether to warn about a loop.
    """

    def __init__(self, name: str, compiled: bool | str, warns: bool = True) -> None:
        self.compiled, self._name, self._warns = checked_compiled(compiled), name, warns
        self._kernel: Kernel | None = None
        self._reason: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy and pickle, without the kernel."""
        return {**self.__dict__, "_kernel": None, "_reason": None}

    def run_compiled(
        self, form: Form, memory: str, return_sequence: bool
    ) -> tuple[Tensor | None, Sequence[Tensor]] | None:
        """Return output and last state of the compiled step; None if the loop must run.

        Raises:
            ValueError: If the loop must run, and ``compiled`` is True.
        """
        if not (self.compiled and form.steps and form.batch):
            return None
        if forced() != "auto":
            self.run_loop(f"the backend {forced()!r} is chosen")
            return None
        tensors = [*form.inputs, *form.state]
        reason = unfit_for_cpu([t for t in (*tensors, *form.weights) if t.is_floating_point()])
        if watched():
            reason = "a compiler or a mode watches every operator"
        try:
            if reason is not None:
                raise Unsupported(reason)
            gradient = needs_gradient((*tensors, *form.weights))
            kernel = find(form.example(), form.batch, form.loop, self._name, exactly=gradient)
        except Unsupported as error:
            self.run_loop(str(error))
            if self.compiled is True:
                expected = f"{self._name} must be a step that can be compiled"
                came, advice = f"one that cannot: {error}", "change it"
                if reason is not None:  # the step is not to blame
                    expected = f"for compiled=True, {self._name} must be called with "
                    expected += "float32 or float64 on a CPU, outside of other compilers"
                    came, advice = reason, "convert inputs and weights with .to(torch.float32)"
                advice += ", or leave compiled='auto', which then runs a loop in PyTorch"
                raise ValueError(message(expected, came, advice)) from error
            if reason is None and self._warns:
                _warn_of_loop(self._name, str(error))
            return None
        self._kernel = kernel
        cut = kernel.cut(form.steps, form.batch, memory if gradient else None, return_sequence)
        return walk(kernel, cut, return_sequence, form.inputs, form.state, form.weights)

    def run_loop(self, reason: str) -> None:
        """Keep for ``explain`` why the last call ran as a loop."""
        self._kernel, self._reason = None, reason

    def explain(self) -> str:
        """Return what is computed once, per tile and per step, or why the loop runs."""
        if self._kernel is not None:
            return _explained(self._name, self._kernel)
        if self._reason is None:
            return f"{self._name} was not called yet, so it is not compiled yet."
        return f"{self._name} runs as a loop in PyTorch: {self._reason}."


class Recurrence(Compiling):
    """The result of ``recurrence``; see there."""

    def __init__(self, step: Callable[..., Any], compiled: bool | str = "auto") -> None:
        require(
            callable(step), "step", step, "a function of (u, state, weights)",
            "write one step, see docs/your-own-recurrence.md", TypeError,
        )  # fmt: skip
        super().__init__(_name(step), compiled)
        self.step = step

    def __repr__(self) -> str:
        return f"recurrence({self._name})"

    def __call__(
        self, inputs: Any, state: Any, weights: Any = (), *, memory: str = "auto",
        output: str = "all",
    ) -> tuple[Tensor | None, Any]:  # fmt: skip
        """Run the step over sequences.

        Args:
            inputs: The input of all steps: a tensor, or a tuple of tensors.
            state: The state before the first step: a tensor, or a tuple of tensors.
            weights: Tensors and numbers shared by all steps, such as a dictionary.
            memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps
                some and recomputes the rest, "auto" chooses by size.
            output: Which steps of the output to return: "all", the "last", or "none".

        Shape:
            inputs [T, B, F] each; state [B, H] each. The output, the first variable of the state
            after each step, is [T, B, H], or [B, H] for "last".

        Returns:
            The output, and the state after the last step.

        Raises:
            ValueError: If a shape or name does not fit, or ``compiled=True`` and compiling fails.
        """
        checked_policy(memory, invertible=False, bidirectional=False)
        choice("output", output, OUTPUTS)
        form = Form(self.step, inputs, state, weights)
        with without_autocast(form.inputs[0]):
            steps = self.run_compiled(form, memory, output == "all")
            if steps is None:
                steps = form.loop(form.inputs, form.state, form.weights, output == "all")
        outputs, ends = steps
        after = tree_unflatten(list(ends), form.state_form)
        return (ends[0] if output == "last" else outputs), after


def recurrence(step: Callable[..., Any], *, compiled: bool | str = "auto") -> Recurrence:
    """Make a recurrence from one step that runs at compiled speed.

    The first call traces the step, compiles it to C, forward and backward, and compares it with the
    loop in PyTorch. This takes a few seconds. The code is cached for later processes. Steps that
    cannot be compiled run as the loop, with a warning that gives the reason.

    Args:
        step: ``step(u, state, weights)`` returns the new state. Its tensors have one row for each
            sequence of a batch: u is [B, F] and each variable of the state [B, H]. It gets u and
            state in the form of the call (a tensor, a tuple, a named tuple) and may only call
            PyTorch. It must not depend on the batch size. Everything that needs a gradient must be
            in the weights.
        compiled: "auto" compiles if possible, True raises an error otherwise, False never compiles.
            Under ``use_backend("reference")`` the loop runs in any case.

    Returns:
        A function of ``(inputs, state, weights)``; see ``Recurrence.__call__``.

    Raises:
        ValueError: If ``compiled`` has another value.

    Example:
        >>> import torch
        >>> import anharmonic as ah
        >>> def leaky(u, h, w):
        ...     return torch.lerp(h, torch.tanh(u @ w["V"] + h @ w["W"] + w["b"]), 0.1)
        >>> run = ah.recurrence(leaky, compiled=False)
        >>> w = {"V": torch.ones(2, 3), "W": torch.eye(3), "b": torch.zeros(3)}
        >>> output, h = run(torch.ones(5, 4, 2), torch.zeros(4, 3), w)
        >>> output.shape, torch.equal(output[-1], h)
        (torch.Size([5, 4, 3]), True)
    """
    return Recurrence(step, compiled)


def explain(recurrence: Any) -> None:
    """Print how a recurrence runs: what it computes when, and what it saves.

    Args:
        recurrence: The result of ``recurrence``, or a sequence layer.

    Raises:
        TypeError: If it is neither.

    Example:
        >>> def average(u, h, w):
        ...     return (u + h) / 2
        >>> explain(Recurrence(average))
        average was not called yet, so it is not compiled yet.
    """
    said = getattr(recurrence, "explain", None)
    require(
        callable(said) and not isinstance(recurrence, type), "recurrence", recurrence,
        "what ah.recurrence returned, or a sequence layer",
        "of a model pass its layer, of a step what ah.recurrence makes of it", TypeError,
    )  # fmt: skip
    print(recurrence.explain())


class Form:
    """A call as flat lists of tensors, with the form that the step expects.

    Attributes:
        inputs: The inputs [T, B, F].
        state: The variables of the state [B, H].
        weights: The weights that are tensors.
        state_form: Original form of the state.
        steps: T.
        batch: B.
    """

    def __init__(self, step: Callable[..., Any], inputs: Any, state: Any, weights: Any) -> None:
        self._step = step
        self.inputs, self._input_form = tree_flatten(inputs)
        self.state, self.state_form = tree_flatten(state)
        self._leaves, self._weight_form = tree_flatten(weights)
        self._is_tensor = [isinstance(leaf, Tensor) for leaf in self._leaves]
        self.weights = [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]
        _check_rows("inputs", self.inputs, 3)
        _check_rows("state", self.state, 2)
        self.steps, self.batch = self.inputs[0].shape[:2]
        for name, tensor, shape in (
            *(("inputs", x, (self.steps, self.batch)) for x in self.inputs),
            *(("state", s, (self.batch,)) for s in self.state),
        ):
            require(
                tensor.shape[:-1] == shape, name, tensor,
                f"of shape {[*shape, '...']}".replace("'", ""), "give all of them the same batch",
            )  # fmt: skip

    def step(
        self, inputs: Sequence[Tensor], state: Sequence[Tensor], weights: Sequence[Tensor]
    ) -> list[Any]:
        """Take one step on flat lists."""
        given = tree_unflatten(list(inputs), self._input_form)
        unchanged = Unchanged([*inputs, *state])
        new = self._step(given, self.state_of(state), self.weights_of(weights))
        unchanged.check()
        found = self._variables(new)
        check_step(found, state)
        return found

    def _variables(self, new: Any) -> list[Any]:
        """Return a new state as a flat list, ignoring the order of a dictionary's keys."""
        variables, form = tree_flatten(new)
        if form == self.state_form or not isinstance(new, dict):
            return variables
        try:
            return list(self.state_form.flatten_up_to(new))
        except ValueError as error:
            raise WrongStep(
                message(
                    "a step must return a state like the old one",
                    f"a dictionary of {listed(list(map(repr, new)))}",
                    "return the form in which the state is given",
                )
            ) from error

    def state_of(self, state: Sequence[Tensor]) -> Any:
        """Return a state in its original form."""
        return tree_unflatten(list(state), self.state_form)

    def weights_of(self, weights: Sequence[Tensor]) -> Any:
        """Return weights in their original form, including values other than tensors."""
        given = iter(weights)
        leaves = [
            next(given) if tensor else leaf
            for leaf, tensor in zip(self._leaves, self._is_tensor, strict=True)
        ]
        return tree_unflatten(leaves, self._weight_form)

    def loop(
        self, inputs: list[Tensor], state: list[Tensor], weights: list[Tensor],
        return_sequence: bool = True,
    ) -> tuple[Any, list[Tensor]]:  # fmt: skip
        """Run the steps as a loop in PyTorch."""
        outputs = []
        for u in zip(*(x.unbind(0) for x in inputs), strict=True):
            state = self.step(u, state, weights)
            if return_sequence:
                outputs.append(state[0])
        return (torch.stack(outputs) if return_sequence else None), state

    def example(self) -> Example:
        """Return the example to trace the step with."""
        needs = [tensor.requires_grad for tensor in (*self.weights, *self.inputs)]
        return Example(
            self.step, self.weights, [s.shape[-1] for s in self.state],
            [x.shape[-1] for x in self.inputs], tuple(needs), self.inputs[0].dtype,
        )  # fmt: skip


def _check_rows(name: str, tensors: Sequence[Any], dims: int) -> None:
    layout = "[T, B, F]" if dims == 3 else "[B, H]"
    fits = tensors and all(
        isinstance(t, Tensor) and t.dim() == dims and t.is_floating_point() for t in tensors
    )
    if not fits:
        raise ValueError(
            message(
                f"{name} must be floating-point tensors of shape {layout}",
                " and ".join(map(described, tensors)) or "nothing",
                "give one, or a tuple of them; a complex tensor is two, real and imaginary part",
            )
        )
    steps = dims < 3 or tensors[0].shape[0] > 0
    require(steps, name, tensors[0], "at least one step long", "leave the call out")


def _name(step: Callable[..., Any]) -> str:
    return str(getattr(step, "__qualname__", type(step).__name__)).replace("<locals>.", "")


@functools.cache
def _warn_of_loop(name: str, reason: str) -> None:
    text = f"{name} is not compiled and runs as a loop in PyTorch: {reason}."
    warnings.warn(text, UserWarning, stacklevel=5)


def _explained(name: str, kernel: Kernel) -> str:
    """Describe what a kernel computes when."""
    source = kernel.source
    traced, built = kernel.seconds
    times = f"{traced:.1f} s of tracing, {built:.1f} s to compile or load the C code"
    lines = [f"{name} runs compiled ({times}):"]
    nodes = dict.fromkeys(kernel.fixed_nodes)
    waiting = list(nodes)
    while waiting:  # what they are computed from, too
        found = [node for node in waiting.pop().all_input_nodes if node not in nodes]
        nodes |= dict.fromkeys(found)
        waiting += found
    fixed = [
        node
        for node in nodes
        if node.op == "call_function" and not getattr(node.target, "is_view", False)
    ]
    counts = Counter(str(node.target).removeprefix("aten.").partition(".")[0] for node in fixed)
    once = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    lines.append(f"  once per call, from weights alone: {once or 'nothing'}")
    for title, region in (
        ("for many steps together, from inputs", "forward_tile"),
        ("at every step", "forward_step"),
        ("backward, at every step", "backward_step"),
        ("backward, for many steps together", "backward_tile"),
    ):
        lines.append(f"  {title}: {_summary(source.regions[region])}")
    sums = len(source.sums) + len(source.outers)
    lines.append(f"  backward, for gradients of weights: {sums} sums over time and batch")
    lines.append(f"  saved for every step: {_summary(kernel.plan.saved)}")
    return "\n".join(lines)


def _summary(values: Sequence[Value]) -> str:
    """Summarise values by kind, such as "2 products, 3 tanh of 32"."""
    counts = Counter((value.op, value.width) for value in values if value.op != "copy")
    parts = [f"{count} {op} [{width}]" for (op, width), count in sorted(counts.items())]
    return ", ".join(parts) or "nothing"
