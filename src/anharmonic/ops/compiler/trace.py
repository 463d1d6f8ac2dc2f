"""The graph of one step and of its gradient, recorded by ``make_fx``.

``record`` runs a step on zero rows and returns a tuple of its operators, numbers and shapes. It
takes a fraction of a millisecond and runs at every call to detect changed numbers. ``trace`` makes
the graph. Both refuse steps that one compiled step cannot represent.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from anharmonic._tensors import WrongStep, changed_in_place
from anharmonic.ops.compiler.products import product

aten = torch.ops.aten


class Unsupported(Exception):
    """A step contains something that cannot be compiled; the message names it."""


class Example(NamedTuple):
    """What a step is traced with.

    Attributes:
        step: ``step(inputs, state, weights)`` on flat lists of tensors; returns the new state.
        weights: The weights.
        state: Widths of the state's variables.
        inputs: Widths of the inputs.
        needs: Which weights, and then which inputs, get gradients.
        dtype: What all rows are.
    """

    step: Callable[[list[Tensor], list[Tensor], list[Tensor]], Sequence[Tensor]]
    weights: list[Tensor]
    state: list[int]
    inputs: list[int]
    needs: tuple[bool, ...]
    dtype: torch.dtype


class Trace(NamedTuple):
    """A graph of aten operators: weights, state, inputs, gradients -> new state, gradients.

    Attributes:
        graph: The graph.
        constants: Tensors that the step found outside of its arguments, by name.
        batch: How many rows it was traced with; no other size has this value.
        weights: The nodes of the weights.
        state: The nodes of the state.
        inputs: The nodes of the inputs.
        grad_new: The nodes of the gradients that arrive, one for each variable.
        new: The nodes of the new state.
        grad_weights: The nodes of the weights' gradients; None where there is none.
        grad_state: The nodes of the old state's gradients, likewise.
        grad_inputs: The nodes of the inputs' gradients, likewise.
    """

    graph: fx.Graph
    constants: dict[str, Tensor]
    batch: int
    weights: list[fx.Node]
    state: list[fx.Node]
    inputs: list[fx.Node]
    grad_new: list[fx.Node]
    new: list[fx.Node]
    grad_weights: list[fx.Node | None]
    grad_state: list[fx.Node | None]
    grad_inputs: list[fx.Node | None]


# ---- what a step does, in short ---------------------------------------------------------------
class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every operator with all of its arguments."""

    def __init__(self, rows: Sequence[Tensor], fixed: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        known = [*fixed, *rows]
        self.entries: list[Any] = []
        self.outside: list[Tensor] = []  # kept, so that no other tensor gets their id
        self._names = {id(tensor): number for number, tensor in enumerate(known)}
        self._alive: list[Any] = list(known)
        self._fixed = {_memory(tensor) for tensor in fixed}
        self._rows = {_memory(tensor) for tensor in rows}
        # Steps that differ only in their gradients would leave the same record.
        self._with_gradients = torch.is_grad_enabled()

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if self._with_gradients and not torch.is_grad_enabled():
            raise Unsupported(
                "it turns gradients off or defines its own (torch.no_grad, "
                "torch.autograd.Function); .detach() can be compiled"
            )
        by_value = operator is aten.lift_fresh_copy.default or operator is aten.lift_fresh.default
        self.entries.append(operator)
        self._write(args, by_value)
        if kwargs:
            self._write(tuple(kwargs.items()), by_value)
        given = kwargs or {}
        changed = tree_leaves(given.get("out", args[:1])) if operator._schema.is_mutable else []
        memories = {_memory(tensor) for tensor in changed}
        if memories & self._rows:
            raise changed_in_place()
        if memories & self._fixed:
            raise Unsupported("it changes a tensor in place that is not its own")
        if operator in (aten.var.correction, aten.std.correction):
            # Only the shape matters, and PyTorch warns of the variance of no rows.
            operator, given = aten.sum.dim_IntList, {"keepdim": given.get("keepdim", False)}
            args = args if len(args) > 1 else (*args, None)
        result = operator(*args, **given)
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, Tensor):
                self._names[id(value)] = len(self._names)
                self._alive.append(value)
        return result

    def _write(self, value: Any, by_value: bool) -> None:
        if isinstance(value, Tensor):
            name = self._names.get(id(value))
            if name is not None:
                self.entries.append(name)
            elif by_value:  # numbers that the step makes a tensor of: another tensor every time
                self.entries.append((value.dtype, tuple(value.shape), str(value.tolist())))
            else:
                if value.requires_grad:
                    raise Unsupported(
                        "a tensor that needs a gradient is not among the weights of the step; "
                        "give it as a weight (a layer names it in parameter_shapes)"
                    )
                self.outside.append(value)
                self._fixed.add(_memory(value))
                self.entries.append(("outside", id(value), value.dtype, tuple(value.shape)))
        elif isinstance(value, (tuple, list)):
            self.entries.append(len(value))
            for part in value:
                self._write(part, by_value)
        else:
            self.entries.append((type(value), repr(value)))


def _memory(tensor: Tensor) -> Any:
    if tensor.layout is not torch.strided:
        raise Unsupported("it uses a sparse tensor; give a dense one (W.to_dense())")
    return tensor.untyped_storage()._cdata


_OF_GRAPH = {
    Tensor.register_hook,
    *(getattr(Tensor, name).__get__ for name in ("requires_grad", "grad_fn", "is_leaf")),
}


_TO_PYTHON = {
    "__bool__", "__float__", "__int__", "__index__", "__array__", "item", "numpy", "tolist",
}  # fmt: skip


class _Calls(TorchFunctionMode):
    """Knows the calls of PyTorch that a step makes, and refuses hooks.

    Questions that precede hooks are refused, too, because the record shows no gradients.

    Args:
        graph: Where to note the call and the line that made a node, if given.

    Attributes:
        last: The name of the last call, such as "einsum".
    """

    def __init__(self, graph: fx.Graph | None = None) -> None:
        super().__init__()
        self.last, self._graph = "", graph

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in _OF_GRAPH:
            raise Unsupported(
                "it registers a hook on a gradient, or asks whether a tensor needs one"
            )
        name = getattr(function, "__name__", "a call")
        if name == "__get__":
            name = getattr(function.__self__, "__name__", "an attribute")
        elif name == "item":  # a traced tensor calls it in __bool__ and the like
            caller = sys._getframe(1).f_code.co_name
            name = caller if caller in _TO_PYTHON else name
        self.last = name
        result = product(function, args, kwargs)
        if result is None:
            result = function(*args, **(kwargs or {}))
        if self._graph is not None:
            call = (self.last, _place(traceback.walk_stack(sys._getframe(1))))
            for node in reversed(self._graph.nodes):
                if "call" in node.meta:
                    break
                node.meta["call"] = call
        return result


def _place(frames: Iterable[tuple[FrameType, int]]) -> str:
    """Return the first line of the user's code, such as " (cell.py, line 3)"."""
    for frame, line in frames:
        path = frame.f_code.co_filename
        if not path.startswith(_INNER):
            return f" ({os.path.basename(path)}, line {line})"
    return ""


_INNER = (os.path.dirname(torch.__file__), os.path.dirname(__file__), contextlib.__file__)


def refusal(node: fx.Node, what: str, advice: str = "") -> Unsupported:
    """Return the error for a node, which names the call of the user that made it."""
    name, place = node.meta.get("call", (f"the derivative's {name_of(node)}", ""))
    name = _WRITTEN.get(name, name.strip("_"))
    return Unsupported(f"{name} {what}{place}{advice and '; '}{advice}")


_WRITTEN = {"__getitem__": "indexing", "__matmul__": "@"}


def name_of(node: fx.Node) -> str:
    """Return the name of a node's operator, without its overload."""
    if node.op != "call_function":
        return str(node.op)
    return str(getattr(node.target, "__name__", node.target)).split(".")[0]


def record(example: Example, batch: int) -> tuple[tuple[Any, ...], list[Tensor]]:
    """Return what a step does, as something to compare, and the tensors it found outside.

    Without gradients (``torch.no_grad``) the weights need gradients as they do for the caller.

    Raises:
        Unsupported: If it runs with ``batch`` sequences only or not at all, reads a tensor that
            needs a gradient, or registers a hook.
    """
    try:
        return _recorded(example, 0)
    except _Raises:
        pass  # some calls, such as h.view(len(h), -1), ask for a row
    try:
        return _recorded(example, _SIZES[0])
    except _Raises as error:
        other = error
    _recorded(example, batch)
    raise Unsupported(f"a step must not depend on the number of sequences, and {other}")


def _recorded(example: Example, batch: int) -> tuple[tuple[Any, ...], list[Tensor]]:
    rows = [
        torch.zeros(batch, width, dtype=example.dtype)
        for width in (*example.state, *example.inputs)
    ]
    state, inputs = rows[: len(example.state)], rows[len(example.state) :]
    # As plain tensors: Python asks a subclass such as Parameter first, so that x < w becomes w > x.
    bare = torch.is_grad_enabled()  # a graph would show in the record
    weights = [w.detach().requires_grad_(w.requires_grad and not bare) for w in example.weights]
    with _Recorder(rows, weights) as recorder:
        new = _stepped(example.step, inputs, state, weights)
    for variable in new:
        recorder._write(variable, False)
    return tuple(recorder.entries), recorder.outside


class _Raises(Unsupported):
    """A step raises an error."""


def _stepped(
    step: Callable[..., Any], inputs: list[Tensor], state: list[Tensor], weights: list[Tensor],
    graph: fx.Graph | None = None,
) -> list[Tensor]:  # fmt: skip
    """Run the step, which checks the form of what it returns."""
    calls = _Calls(graph)
    try:
        with calls:
            return list(step(inputs, state, weights))
    except WrongStep:
        raise
    except Exception as error:
        place = _place(reversed(list(traceback.walk_tb(error.__traceback__))))
        if isinstance(error, Unsupported):
            raise Unsupported(f"{error}{place}") from error
        if graph is not None and calls.last in _TO_PYTHON:
            raise Unsupported(_to_python(calls.last, place)) from error
        first = (str(error).strip().splitlines() or [""])[0].rstrip(".")
        raise _Raises(
            f"with {len(state[0])} sequences it raises {type(error).__name__}{place}: {first}"
        ) from error


def _to_python(call: str, place: str) -> str:
    if call == "__bool__":
        return f"it branches on the value of a tensor{place}; choose with torch.where"
    return f"it makes a Python number of a tensor{place}; compute with the tensor"


# ---- the graph ----------------------------------------------------------------------------------
_SIZES = (13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73)


def trace(example: Example) -> Trace:
    """Trace a step and its gradient.

    Raises:
        Unsupported: If the step holds random numbers or changes tensors of others in place.
    """
    return _trace(example, _spare_sizes(example)[0])


def _spare_sizes(example: Example) -> list[int]:
    """Return two numbers of rows that are no other size of the step."""
    widths = {size for weight in example.weights for size in weight.shape}
    widths |= {*example.state, *example.inputs}
    return [size for size in _SIZES if size not in widths][:2]


def check_batches(traced: Trace, example: Example, batch: int) -> None:
    """Trace again with two other numbers of rows, which must give the same graph.

    (A single row is left out: PyTorch has other graphs for it, and ``cache.check`` runs it.)

    Raises:
        Unsupported: If they do not.
    """
    for other in {_spare_sizes(example)[1], batch} - {1, traced.batch}:
        _compare(traced, _trace(example, other))


class _WithoutErrorChecks(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Leaves out the operator by which ``torch.linalg`` raises errors; ``record`` raises them."""

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operator is aten._linalg_check_errors.default:
            return None
        return operator(*args, **(kwargs or {}))


def _trace(example: Example, batch: int) -> Trace:
    from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

    def joint(
        weights: list[Tensor], state: list[Tensor], inputs: list[Tensor], grads: list[Tensor]
    ) -> list[Tensor | None]:
        wanted = [*example.needs[: len(weights)], *([True] * len(state))]
        wanted += example.needs[len(weights) :]
        leaves = [t.detach() for t in (*weights, *state, *inputs)]
        for leaf, needs in zip(leaves, wanted, strict=True):
            leaf.requires_grad_(needs)
        a, b = len(weights), len(weights) + len(state)
        mode = get_proxy_mode()
        assert mode is not None
        with torch.enable_grad(), _WithoutErrorChecks():  # type: ignore[no-untyped-call]
            new = _stepped(example.step, leaves[b:], leaves[a:b], leaves[:a], mode.tracer.graph)
            pairs = [(v, g) for v, g in zip(new, grads, strict=True) if v.requires_grad]
            found: Sequence[Tensor | None] = [None] * len(leaves)
            if pairs:
                found = torch.autograd.grad(
                    [v for v, _ in pairs],
                    [leaf for leaf in leaves if leaf.requires_grad],
                    [g for _, g in pairs],
                    allow_unused=True,
                )
                given = iter(found)
                found = [next(given) if leaf.requires_grad else None for leaf in leaves]
        return [*(v.detach() for v in new), *found]

    def rows(widths: Sequence[int]) -> list[Tensor]:
        return [torch.zeros(batch, width, dtype=example.dtype) for width in widths]

    arguments = (
        [w.clone() if w.is_inference() else w.detach() for w in example.weights],
        rows(example.state), rows(example.inputs), rows(example.state),
    )  # fmt: skip
    try:
        # Detection of anomalies looks at values, and there are none.
        with torch.autocast("cpu", enabled=False), torch.autograd.set_detect_anomaly(False):
            module = make_fx(
                dispatch_functionalize(joint, FunctionalTensorMode()),
                decomposition_table=_decompositions(), tracing_mode="fake",
                _allow_non_fake_inputs=True,
            )(*arguments)  # fmt: skip
    except (Unsupported, WrongStep):
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        raise Unsupported(f"tracing raises {type(error).__name__}: {first}") from error
    graph = module.graph
    graph.eliminate_dead_code()
    constants = {}
    for node in graph.nodes:
        _check(node)
        if node.op == "get_attr":
            constants[node.target] = getattr(module, node.target)
    holders = [node for node in graph.nodes if node.op == "placeholder"]
    results = list(next(node for node in graph.nodes if node.op == "output").args[0])
    a, b, c = len(example.weights), len(example.state), len(example.inputs)
    new, found = results[:b], results[b:]
    if not all(isinstance(node, fx.Node) for node in new):
        raise Unsupported("the step returns a constant as its state")
    return Trace(
        graph, constants, batch, holders[:a], holders[a : a + b], holders[a + b : a + b + c],
        holders[a + b + c :], list(new), list(found[:a]), list(found[a : a + b]),
        list(found[a + b :]),
    )  # fmt: skip


def _check(node: fx.Node) -> None:
    """Refuse operators whose result is not a function of their arguments."""
    target, value = node.target, node.meta.get("val")
    if not isinstance(target, torch._ops.OpOverload):
        return
    if torch.Tag.nondeterministic_seeded in target.tags:
        raise refusal(node, "draws random numbers", "pass a random mask as a second input")
    if target._schema.is_mutable:
        raise refusal(node, "changes a tensor in place")
    if torch.Tag.data_dependent_output in target.tags:
        raise Unsupported(_to_python(*node.meta["call"]))
    if isinstance(value, Tensor) and not all(type(size) is int for size in value.shape):
        raise refusal(node, "gives as many numbers as the values say", "choose with torch.where")


def _compare(one: Trace, other: Trace) -> None:
    """Refuse a step that does something else with another number of rows."""
    message = "depends on the number of sequences in the batch"
    nodes, others = list(one.graph.nodes), list(other.graph.nodes)
    number = {node: k for k, node in enumerate(nodes)} | {node: k for k, node in enumerate(others)}

    def same(a: Any, b: Any, in_list: bool = False) -> bool:
        if isinstance(a, fx.Node) and isinstance(b, fx.Node):
            return number[a] == number[b]
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
            return len(a) == len(b) and all(same(p, q, True) for p, q in zip(a, b, strict=True))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
        # A size within a shape may be the number of rows.
        if in_list and type(a) is int and (a, b) == (one.batch, other.batch):
            return True
        return type(a) is type(b) and (a == b or (a != a and b != b))

    for a, b in zip(nodes, others, strict=False):
        constant = a.op == b.op == "get_attr"
        alike = a.op == b.op and (constant or a.op == "placeholder" or a.target == b.target)
        if constant and alike:
            alike = torch.equal(one.constants[a.target], other.constants[b.target])
        pairs = zip(a.args, b.args, strict=False)
        alike = alike and len(a.args) == len(b.args) and all(same(p, q) for p, q in pairs)
        if not (alike and same(a.kwargs, b.kwargs)):
            raise refusal(a, message)
    if len(nodes) != len(others):
        raise Unsupported(f"the step {message}")


def _lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    result: Tensor = start + weight * (end - start)
    return result


def _layer_norm(
    x: Tensor, shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(-len(shape), 0))
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    scale = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    normed = centred * scale
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias, mean, scale


def _group_norm(
    x: Tensor, weight: Any, bias: Any, rows: int, columns: int, size: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    grouped = x.reshape(len(x), groups, -1)
    normed, mean, scale = _layer_norm(grouped, grouped.shape[2:], None, None, eps)
    normed = normed.reshape(x.shape)
    over = (columns, *[1] * (x.dim() - 2))
    normed = normed if weight is None else normed * weight.reshape(over)
    normed = normed if bias is None else normed + bias.reshape(over)
    return normed, mean.reshape(len(x), groups), scale.reshape(len(x), groups)


def _var_mean(
    x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dim = list(range(x.dim())) if dim is None else dim
    count = 1
    for axis in dim:
        count *= x.shape[axis]
    mean = x.mean(dim, keepdim=True)
    centred = x - mean
    divisor = max(0, count - (1 if correction is None else correction))
    var = (centred * centred).sum(dim, keepdim=keepdim) / divisor
    return var, mean if keepdim else mean.reshape(var.shape)


def _pad(x: Tensor, pad: Sequence[int], value: float = 0.0) -> Tensor:
    if len(pad) != 2:
        raise Unsupported("constant_pad_nd is compiled for columns only")
    left, right = pad
    x = x[..., max(-left, 0) : x.shape[-1] - max(-right, 0)]
    sides = [x.new_full((*x.shape[:-1], max(columns, 0)), value) for columns in pad]
    return torch.cat([sides[0], x, sides[1]], dim=-1)


def _copied(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(x.dtype).expand(x.shape)


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        raise Unsupported("roll without dims mixes sequences; give dims=1")
    for shift, dim in zip(shifts, dims, strict=True):
        at = -shift % x.shape[dim]
        x = torch.cat([x.narrow(dim, at, x.shape[dim] - at), x.narrow(dim, 0, at)], dim)
    return x


def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return torch.cat([x.unsqueeze(dim) for x in tensors], dim)


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    distance = torch.where(x == y, 0.0, (x - y).abs())  # of infinities, too
    return torch.maximum(x, y) + torch.log1p(torch.exp(-distance))


def _is_nan(x: Tensor) -> Tensor:
    return x != x


def _hardsigmoid_backward(grad: Tensor, x: Tensor) -> Tensor:
    return torch.where((x > -3) & (x < 3), grad * _SIXTH, 0.0)


# PyTorch rounds 1/6 to float32 in float64, too.
_one = torch.ones((), dtype=torch.float64, device="cpu")
_SIXTH = aten.hardsigmoid_backward(_one, torch.zeros_like(_one)).item()


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    buffer = torch.exp(-x.abs())
    return x.clamp(max=0) - torch.log1p(buffer), buffer


def _log_sigmoid_backward(grad: Tensor, x: Tensor, buffer: Tensor) -> Tensor:
    return grad * torch.sigmoid(-x)


def _var(x: Tensor, dim: Any = None, **options: Any) -> Tensor:
    return _var_mean(x, dim, **options)[0]


def _decompositions() -> dict[Any, Any]:
    """Operators that become simpler ones."""
    from torch._decomp import get_decompositions

    table = get_decompositions(
        [
            aten.addmm, aten.addmv, aten.mv, aten.dot, aten.addcmul, aten.addcdiv, aten.lerp,
            aten.tanh_backward, aten.sigmoid_backward, aten.threshold, aten.threshold_backward,
            aten.silu, aten.silu_backward, aten.softplus, aten.softplus_backward, aten.gelu,
            aten.gelu_backward, aten.leaky_relu, aten.leaky_relu_backward, aten.elu,
            aten.elu_backward, aten.hardtanh, aten.hardtanh_backward, aten.hardsigmoid,
            aten.hardsigmoid_backward, aten.hardswish, aten.hardswish_backward, aten.relu6,
            aten.mish, aten.mish_backward, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
            aten.glu, aten.glu_backward, aten.softshrink, aten.hardshrink, aten.celu, aten.selu,
            aten.prelu, aten._prelu_kernel, aten._prelu_kernel_backward,
            aten.native_layer_norm, aten.native_layer_norm_backward,
            aten.native_group_norm_backward, aten.var_mean,
            aten.var, aten.std, aten.rsub, aten._softmax, aten._softmax_backward_data,
            aten._log_softmax, aten._log_softmax_backward_data, aten.logsumexp,
            aten.slice_backward, aten.select_backward, aten.square, aten.frac, aten.hypot,
            aten.linalg_vector_norm, aten.norm, aten.sinc, aten.logit, aten.xlogy, aten.addr,
            aten.unbind, aten.clamp_min, aten.clamp_max, aten.rsub, aten.masked_fill,
        ]
    )  # fmt: skip
    for overload in (aten.lerp.Tensor, aten.lerp.Scalar):
        table[overload] = _lerp
    table[aten.native_layer_norm.default] = _layer_norm
    table[aten.native_group_norm.default] = _group_norm
    table[aten.var_mean.correction], table[aten.var.correction] = _var_mean, _var
    table[aten.constant_pad_nd.default] = _pad
    table[aten.stack.default] = _stack
    table[aten.logaddexp.default] = _logaddexp
    table[aten.isnan.default], table[aten.roll.default] = _is_nan, _roll
    table[aten.copy.default] = table[aten.fill.Tensor] = _copied
    table[aten.hardsigmoid_backward.default] = _hardsigmoid_backward
    table[aten.log_sigmoid_forward.default] = _log_sigmoid
    table[aten.log_sigmoid_backward.default] = _log_sigmoid_backward
    return dict(table)
