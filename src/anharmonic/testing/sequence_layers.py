"""Contract of sequence layers: the interface of ``torch.nn.LSTM`` with states to carry over."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

from anharmonic.testing.suite import (
    Check,
    Suite,
    expect,
    expect_close,
    expect_gradients,
    expect_refusal,
    pickled,
    run_checks,
)

F, H = 3, 6
LENGTHS = torch.tensor([3, 7, 1, 5])


def sequence_layer_checks(
    make: Callable[..., nn.Module], *, elapsed: bool | None = None
) -> Iterator[tuple[str, Check]]:
    """Return the name and callable of each check that every sequence layer must pass.

    Args:
        make: Creates the layer, such as its class or a ``functools.partial`` of it. The arguments
            are ``(input_size, hidden_size)`` and the options of ``torch.nn.LSTM``: ``num_layers``,
            ``batch_first``, ``dropout``, ``bidirectional``, ``device`` and ``dtype``. Layers have 3
            inputs and 6 units.
        elapsed: Whether the layer accepts the time between samples. Other layers must reject it.
            Default: the layer's ``has_step_size``.

    Example:
        With pytest, run each check as a separate test::

            checks = dict(sequence_layer_checks(MyLayer))

            @pytest.mark.parametrize("name", checks)
            def test_my_layer(name):
                checks[name]()

        >>> import anharmonic as ah
        >>> len(dict(sequence_layer_checks(ah.LSTM))) > 15
        True
    """
    subject = _Subject(make, elapsed)
    with torch.random.fork_rng(devices=[]):
        layer = subject.layer()
        subject.has_memory = _takes_memory(subject)
    if elapsed is None:
        subject.elapsed = getattr(layer, "has_step_size", False)
    subject.num_layers, subject.bidirectional = layer.num_layers, layer.bidirectional
    return _check.of(subject)


def check_sequence_layer(make: Callable[..., nn.Module], *, elapsed: bool | None = None) -> None:
    """Run every check of ``sequence_layer_checks``.

    Args:
        make: Creates the layer; see ``sequence_layer_checks``.
        elapsed: Whether the layer accepts the time between samples; see ``sequence_layer_checks``.

    Raises:
        AssertionError: If a check failed; the message lists expected and received values.

    Example:
        Check a custom layer that is defined by its step:

        >>> import torch
        >>> from anharmonic.nn import HiddenState, SequenceLayer
        >>> class LeakyRNN(SequenceLayer):
        ...     def __init__(self, input_size, hidden_size, num_layers=1, *, leak=0.5, bias=True,
        ...                  batch_first=False, dropout=0.0, bidirectional=False, device=None,
        ...                  dtype=None):
        ...         super().__init__(input_size, hidden_size, num_layers, bias, batch_first,
        ...                          dropout, bidirectional)
        ...         self.leak = leak
        ...         self.make_parameters(device=device, dtype=dtype)
        ...
        ...     def parameter_shapes(self, input_size):
        ...         H = self.hidden_size
        ...         return {"weight_ih": (H, input_size), "weight_hh": (H, H), "bias": (H,)}
        ...
        ...     def step_function(self, u, state, w, dt):
        ...         new = torch.tanh(u + state.h @ w.weight_hh.T)
        ...         return HiddenState(torch.lerp(state.h, new, self.leak))
        >>> check_sequence_layer(LeakyRNN)
    """
    run_checks(sequence_layer_checks(make, elapsed=elapsed))


class _Subject:
    """The layer under test, always created with the same weights."""

    num_layers: int
    bidirectional: bool
    has_memory: bool

    def __init__(self, make: Callable[..., nn.Module], elapsed: bool | None) -> None:
        self.make, self.elapsed = make, bool(elapsed)

    def layer(self, seed: int = 0, **options: Any) -> Any:
        torch.manual_seed(seed)
        return self.make(F, H, **{"dtype": torch.float64, **options})

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1


def _takes_memory(subject: _Subject) -> bool:
    """Return whether a layer has the option ``memory``, perhaps among ``**options``."""
    try:
        return hasattr(subject.layer(memory="stored"), "memory")
    except TypeError:
        return False


_check = Suite()


def _one_way(subject: _Subject) -> bool:
    return not subject.bidirectional


def _takes_elapsed(subject: _Subject) -> bool:
    return subject.elapsed


def _sequences(batch: int, steps: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(steps, batch, F, generator=generator, dtype=torch.float64)


def _times(batch: int, steps: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return 2 * torch.rand(steps, batch, generator=generator, dtype=torch.float64)


def _some_state(layer: Any, batch: int) -> Any:
    _, state = layer(_sequences(batch, 4))
    return type(state)(*(0.7 * part.detach() for part in state))


def _rows(state: Any, rows: Any) -> Any:
    return type(state)(*(part[:, rows] for part in state))


def _close(what: str, got: Any, expected: Any) -> None:
    # Another batch size changes the order of sums, which changes a few float64 roundings.
    got, expected = (tuple(v) if isinstance(v, tuple) else v for v in (got, expected))
    expect_close(what, got, expected, rtol=1e-12, atol=1e-13)


def _packed(x: Tensor) -> Any:
    return pack_padded_sequence(x, LENGTHS, enforce_sorted=False)


@_check()
def shapes_and_state(subject: _Subject) -> None:
    """Output is [T, B, D * H]; the state is a named tuple of [L * D, B, H], its first the output.

    States may be wider than the top layer if layers have different sizes. If the layer sets
    ``output_is_state = False``, its states are not compared with the output.
    """
    output, state = subject.layer()(_sequences(4, 7))
    shape = (7, 4, subject.directions * H)
    expect(output.shape == shape, f"an output of shape {shape}", tuple(output.shape))
    expect(hasattr(state, "_fields"), "a named tuple as state", type(state).__name__)
    levels = subject.num_layers * subject.directions
    is_state = getattr(subject.layer(), "output_is_state", True)
    for part in state:
        fits = part.shape[:2] == (levels, 4) and (part.shape[2] >= H or not is_state)
        expect(fits, f"state variables of shape [{levels}, 4, {H}]", tuple(part.shape))
    if is_state and not subject.bidirectional:
        _close("the last output and the top layer's state", output[-1], state[0][-1, :, :H])


@_check()
def batch_first_is_a_transpose(subject: _Subject) -> None:
    """With batch_first, input and output are transposed and the state stays as it is."""
    x = _sequences(4, 7)
    time_major, state = subject.layer()(x)
    batch_major, same = subject.layer(batch_first=True)(x.transpose(0, 1))
    _close("the output with batch_first", batch_major.transpose(0, 1), time_major)
    _close("the state with batch_first", same, state)


@_check()
def batched_equals_unbatched(subject: _Subject) -> None:
    """A sequence without a batch axis gives what it gives inside a batch."""
    x, start = _sequences(3, 7), _some_state(subject.layer(), 3)
    output, state = subject.layer()(x, start)
    for layer in (subject.layer(), subject.layer(batch_first=True)):
        for b in range(3):
            one, last = layer(x[:, b], _rows(start, b))
            _close("the output of one sequence", one, output[:, b])
            _close("the state of one sequence", last, _rows(state, b))


@_check()
def every_batch_size(subject: _Subject) -> None:
    """A sequence's output does not depend on the others of its batch, nor on how many there are."""
    layer, x = subject.layer(), _sequences(9, 6)
    whole, _ = layer(x)
    for batch in (1, H, 8):
        _close(f"the first {batch} of 9 sequences", layer(x[:, :batch])[0], whole[:, :batch])


@_check()
def packed_equals_padded(subject: _Subject) -> None:
    """Each sequence of a packed batch gives what it gives alone, with its own last state."""
    layer, x = subject.layer(), _sequences(4, 7)
    start, packed = _some_state(layer, 4), _packed(x)
    output, state = layer(packed, start)
    padded, lengths = pad_packed_sequence(output)
    expect(torch.equal(lengths, LENGTHS), f"lengths {LENGTHS.tolist()}", lengths.tolist())
    same = torch.equal(output.sorted_indices, packed.sorted_indices)
    expect(same, "the order of the packed input", output.sorted_indices)
    for b, n in enumerate(LENGTHS.tolist()):
        row = slice(b, b + 1)
        alone, last = layer(x[:n, row], _rows(start, row))
        _close("the output of a packed sequence", padded[:n, row], alone)
        expect(not padded[n:, b].any(), "zeros beyond a sequence's end", padded[n:, b])
        _close("the state of a packed sequence", _rows(state, row), last)


@_check()
def packed_in_given_order(subject: _Subject) -> None:
    """Sequences that were packed in order of length come back in that order."""
    layer, x = subject.layer(), _sequences(2, 5)
    output, _ = layer(pack_sequence([x[:, 0], x[:3, 1]]))
    expect(output.sorted_indices is None, "no sorted_indices", output.sorted_indices)
    padded, _ = pad_packed_sequence(output)
    _close("the output of the shorter sequence", padded[:3, 1:], layer(x[:3, 1:])[0])


@_check()
def packed_gradients_equal_padded(subject: _Subject) -> None:
    """Each sequence of a packed batch has the gradient that it has alone."""
    layer, lengths = subject.layer(), [6, 4]
    x = _sequences(2, 6).requires_grad_()
    output, _ = layer(pack_padded_sequence(x, torch.tensor(lengths)))
    (packed,) = torch.autograd.grad(pad_packed_sequence(output)[0].sin().sum(), x)
    alone = torch.zeros_like(x)
    for b, n in enumerate(lengths):
        part = x.detach()[:n, b : b + 1].requires_grad_()
        (alone[:n, b : b + 1],) = torch.autograd.grad(layer(part)[0].sin().sum(), part)
    _close("the gradient of packed input", packed, alone)


@_check(_one_way)
def two_halves_equal_one_whole(subject: _Subject) -> None:
    """Two halves of a sequence with the state carried on give what the whole gives."""
    layer, x = subject.layer(), _sequences(4, 9)
    whole, state = layer(x)
    first, middle = layer(x[:4])
    second, last = layer(x[4:], tuple(middle))  # a plain tuple will do
    _close("the output of two halves", torch.cat([first, second]), whole)
    _close("the state after two halves", last, state)


@_check(_one_way)
def steps_equal_sequence(subject: _Subject) -> None:
    """Step by step, a layer gives what it gives on the whole sequence."""
    x = _sequences(4, 6)
    output, state = subject.layer()(x)
    for layer in (subject.layer(), subject.layer(batch_first=True)):
        carried = None
        for t, x_t in enumerate(x):
            y_t, carried = layer.step(x_t, carried)
            _close(f"step {t}", y_t, output[t])
        _close("the state after all steps", carried, state)
        _close("one step without a batch axis", layer.step(x[0, 0])[0], output[0, 0])


@_check(lambda subject: subject.bidirectional)
def a_reverse_direction_cannot_stream(subject: _Subject) -> None:
    """A bidirectional layer refuses step(), which cannot see the end of the sequence."""
    layer = subject.layer()
    expect_refusal(lambda: layer.step(_sequences(2, 1)[0]), "a step", "bidirectional=True")


@_check(lambda subject: subject.num_layers == 1 and not subject.bidirectional)
def bidirectional_is_two_walks(subject: _Subject) -> None:
    """A bidirectional layer joins a walk forward and, with weights ``..._reverse``, one back."""
    layer, walker, x = subject.layer(bidirectional=True), subject.layer(), _sequences(3, 6)
    output, state = layer(x)
    weights = layer.state_dict()
    for direction, suffix in enumerate(("", "_reverse")):
        names = walker.state_dict()
        walker.load_state_dict({k: weights[k + suffix * k.endswith("_l0")] for k in names})
        walked, last = walker(x.flip(0) if direction else x)
        walked = walked.flip(0) if direction else walked
        own = output[..., direction * H : (direction + 1) * H]
        _close(f"the output of direction {direction}", own, walked)
        _close(f"the state of direction {direction}", state[0][direction], last[0][0])


@_check()
def gradients_are_right(subject: _Subject) -> None:
    """Gradients with respect to input, state and weights are those of finite differences."""
    layer = subject.layer()
    x = _sequences(2, 4).requires_grad_()
    start = [part.requires_grad_() for part in _some_state(layer, 2)]
    names = [name for name, _ in layer.named_parameters()]
    weights = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def run(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        state, parameters = rest[: len(start)], dict(zip(names, rest[len(start) :], strict=True))
        output, last = torch.func.functional_call(layer, parameters, (x, tuple(state)))
        return (output, *last)

    expect_gradients(run, x, *start, *weights)


@_check()
def output_all_last_none(subject: _Subject) -> None:
    """output="last" is each direction's last valid step, "none" is None; the state is the same."""
    x, ends = _sequences(4, 7), LENGTHS - 1
    for batch_first in (False, True):
        layer = subject.layer(batch_first=batch_first)
        for kind in ("batched", "unbatched", "packed"):
            given = {"batched": x.transpose(0, 1) if batch_first else x, "unbatched": x[:, 0]}
            given["packed"] = _packed(x)
            output, state = layer(given[kind])
            last, same = layer(given[kind], output="last")
            nothing, again = layer(given[kind], output="none")
            expect(nothing is None, 'no output for output="none"', nothing)
            for other in (same, again):
                expect(type(other) is type(state), f"a {type(state).__name__}", type(other))
                _close(f"the state of {kind} input", other, state)
            if kind == "packed":
                output, _ = pad_packed_sequence(output)
            elif kind == "unbatched":
                output, last = output[:, None], last[None]
            elif batch_first:
                output = output.transpose(0, 1)
            steps = ends if kind == "packed" else torch.full((len(last),), 6)
            forward = output[steps, torch.arange(len(last)), :H]
            expected = torch.cat([forward, output[0, :, H:]], dim=-1)
            _close(f"the last output of {kind} input", last, expected)
            shared = last.untyped_storage().data_ptr() == same[0].untyped_storage().data_ptr()
            expect(not shared, "an output with memory of its own", "a view of the state")


@_check(_takes_elapsed)
def elapsed_in_every_layout(subject: _Subject) -> None:
    """The time between samples acts per step and sequence, in every layout; ones change nothing."""
    major, minor = subject.layer(), subject.layer(batch_first=True)
    x, gaps = _sequences(4, 7), _times(4, 7)
    output, _ = major(x, elapsed=gaps)
    plain, _ = major(x)
    expect(not torch.allclose(output, plain), "elapsed to change the output", "the same output")
    _close("elapsed of one", major(x, elapsed=torch.ones_like(gaps))[0], plain)
    transposed, _ = minor(x.transpose(0, 1), elapsed=gaps.t())
    _close("elapsed with batch_first", transposed.transpose(0, 1), output)
    for layer in (major, minor):
        alone, _ = layer(x[:, 2], elapsed=gaps[:, 2])
        _close("elapsed of one sequence", alone, output[:, 2])
        padded_gaps = gaps.t() if layer is minor else gaps
        for given in (_packed(gaps), padded_gaps):
            ragged, state = layer(_packed(x), elapsed=given)
            padded, _ = pad_packed_sequence(ragged)
            for b, n in enumerate(LENGTHS.tolist()):
                row = slice(b, b + 1)
                alone, last = major(x[:n, row], elapsed=gaps[:n, row])
                _close("elapsed of a packed sequence", padded[:n, row], alone)
                _close("the state of a packed sequence", _rows(state, row), last)


@_check(_takes_elapsed)
def elapsed_gradients_are_right(subject: _Subject) -> None:
    """Gradients with respect to elapsed are those of finite differences."""
    layer = subject.layer()

    def run(x: Tensor, gaps: Tensor) -> tuple[Tensor, ...]:
        output, last = layer(x, elapsed=gaps)
        return (output, *last)

    expect_gradients(run, _sequences(2, 4).requires_grad_(), (_times(2, 4) + 0.1).requires_grad_())


@_check(lambda subject: subject.elapsed and not subject.bidirectional)
def elapsed_in_halves_and_steps(subject: _Subject) -> None:
    """With elapsed, two halves and single steps give what the whole sequence gives."""
    layer, x, gaps = subject.layer(), _sequences(4, 9), _times(4, 9)
    whole, state = layer(x, elapsed=gaps)
    first, middle = layer(x[:4], elapsed=gaps[:4])
    second, last = layer(x[4:], middle, elapsed=gaps[4:])
    _close("the output of two halves", torch.cat([first, second]), whole)
    _close("the state after two halves", last, state)
    carried = None
    for t in range(9):
        y_t, carried = layer.step(x[t], carried, gaps[t])
        _close(f"step {t}", y_t, whole[t])
    _close("the state after all steps", carried, state)
    alone, _ = layer.step(x[0, 0], None, gaps[0, 0])
    _close("one step without a batch axis", alone, whole[0, 0])


@_check(lambda subject: subject.has_memory)
def memory_policies_agree(subject: _Subject) -> None:
    """memory="chunked" gives what "stored" gives: outputs, states, gradients, dropout included."""
    dropout: dict[str, Any] = {"dropout": 0.5} if subject.num_layers > 1 else {}
    x, lengths = _sequences(3, 150).requires_grad_(), torch.tensor([150, 70, 9])
    extra = {"elapsed": _times(3, 150)} if subject.elapsed else {}
    results = []
    for policy in ("stored", "chunked"):
        layer = subject.layer(**dropout, memory=policy)
        torch.manual_seed(3)
        output, state = layer(pack_padded_sequence(x, lengths), **extra)
        loss = output.data.sin().sum() + sum(part.cos().sum() for part in state)
        gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output.data, tuple(state), gradients))
    _close("chunked and stored states", results[1], results[0])


@_check()
def every_dtype(subject: _Subject) -> None:
    """In float32, bfloat16 and float16 output and state keep the dtype and follow float64."""
    exact, _ = subject.layer()(_sequences(3, 6))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        output, state = subject.layer().to(dtype)(_sequences(3, 6).to(dtype))
        kinds = {output.dtype, *(part.dtype for part in state)}
        expect(kinds == {dtype}, f"{dtype} everywhere", kinds)
        # Six steps of a recurrence with derivatives below 2 stay well within 30 roundings.
        furthest = (output.double() - exact).abs().max().item()
        bound = 30 * torch.finfo(dtype).eps
        expect(furthest < bound, f"a difference below {bound:.2g} in {dtype}", f"{furthest:.2g}")


@_check()
def dropout_acts_in_training_only(subject: _Subject) -> None:
    """Dropout draws from torch's generator while training, and does nothing in eval mode."""
    if subject.num_layers == 1:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            subject.make(F, H, dropout=0.5)
        expect(
            any("dropout" in str(w.message) for w in caught),
            "a warning that dropout acts between layers only", "none",
        )  # fmt: skip
        return
    layer, x = subject.layer(dropout=0.5), _sequences(40, 6)
    first, second = layer(x)[0], layer(x)[0]
    expect(not torch.equal(first, second), "other masks in another call", "the same output")
    torch.manual_seed(3)
    again, _ = layer(x)
    torch.manual_seed(3)
    _close("the output under one seed", layer(x)[0], again)
    _close("the output in eval mode", layer.eval()(x)[0], subject.layer()(x)[0])


@_check()
def rebuilt_from_its_config(subject: _Subject) -> None:
    """``type(layer)(**layer.config())`` with the layer's ``state_dict`` is the same layer.

    The configuration holds JSON values, so that a saved model consists of names and numbers.
    """
    layer, x = subject.layer(), _sequences(2, 5)
    arguments = json.loads(json.dumps(layer.config()))
    again = type(layer)(**arguments, dtype=torch.float64)
    again.load_state_dict(layer.state_dict())
    expect(repr(again) == repr(layer), repr(layer), repr(again))
    _close("the output of the rebuilt layer", again(x)[0], layer(x)[0])


@_check()
def copies_and_pickles(subject: _Subject) -> None:
    """A copy, and a layer that was pickled, give the same numbers."""
    layer, x = subject.layer(), _sequences(2, 5)
    layer.flatten_parameters()  # as code written for nn.LSTM does
    for other in (copy.deepcopy(layer), pickled(layer)):
        _close("the output of a copy", other(x)[0], layer(x)[0])


@_check()
def reset_parameters_draws_anew(subject: _Subject) -> None:
    """``reset_parameters`` draws anew whatever starts at random."""
    layer, other = subject.layer(), subject.layer(seed=1)
    start = {name: value.clone() for name, value in layer.state_dict().items()}
    random = [n for n, value in other.state_dict().items() if not torch.equal(value, start[n])]
    layer.reset_parameters()
    same = [name for name in random if torch.equal(layer.state_dict()[name], start[name])]
    expect(not same, "other values after reset_parameters", f"the same for {same}")


@_check()
def stable_for_long(subject: _Subject) -> None:
    """On 500 steps of strong noise no layer grows faster than the sum of its input."""
    layer, x = subject.layer(), 10 * _sequences(2, 500)
    with torch.no_grad():
        output, _ = layer(x)
    largest, bound = output.abs().max().item(), x.abs().sum(0).max().item() ** subject.num_layers
    expect(largest < bound, f"an output below {bound:.3g}", largest)  # which NaN is not


@_check()
def device_argument(subject: _Subject) -> None:
    """``device`` says where all weights live."""
    devices = {t.device.type for t in subject.layer(device="meta").state_dict().values()}
    expect(devices == {"meta"}, "all weights on the device meta", devices)


@_check()
def bad_arguments_are_refused(subject: _Subject) -> None:
    """The constructor refuses bad arguments, and names argument and value."""
    for name, value, error in (
        ("num_layers", 0, ValueError),
        ("num_layers", None, TypeError),
        ("dropout", 1.5, ValueError),
        ("dropout", float("nan"), ValueError),
        ("bias", 1, TypeError),
        ("batch_first", "no", TypeError),
        ("bidirectional", None, TypeError),
    ):
        options = {name: value}
        expect_refusal(
            partial(subject.make, F, H, **options),
            f"{name}={value!r}", name, str(value), error=error,
        )  # fmt: skip
    for size, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)):
        for name, sizes in (("input_size", (size, H)), ("hidden_size", (F, size))):
            expect_refusal(
                partial(subject.make, *sizes),
                f"{name}={size}", name, str(size), error=error,
            )  # fmt: skip


@_check()
def bad_input_is_refused(subject: _Subject) -> None:
    """Input of another shape, dtype or device, or without steps, is refused before any work."""
    layer, good = subject.layer(dtype=torch.float32), torch.zeros(7, 4, F)
    for given, named in (
        (good[..., :2], "[7, 4, 2]"),
        (good[None], "[1, 7, 4, 3]"),
        (good[0, 0], "[3]"),
        (good[:0], "[0, 4, 3]"),
        (good[..., :0], "[7, 4, 0]"),
        (good.to("meta"), "device"),
        (pack_sequence([good[:, 0, :2]]), "[7, 2]"),
    ):
        expect_refusal(partial(layer, given), named, "input", named)
    for dtype in ("float64", "float16", "complex64", "int64", "bool"):
        given = good.to(getattr(torch, dtype))
        expect_refusal(partial(layer, given), dtype, "input", dtype, error=TypeError)
    for value in ([1.0], good.numpy(), None, "x"):
        name = type(value).__name__
        expect_refusal(partial(layer, value), name, "input", name, error=TypeError)
    for output in ("end", None):
        expect_refusal(partial(layer, good, output=output), f"output={output}", "output", "last")


@_check()
def arguments_have_the_names_of_torch(subject: _Subject) -> None:
    """Input and state are called ``input`` and ``hx``, as in ``torch.nn.LSTM``."""
    layer, x = subject.layer(), _sequences(4, 7)
    state = _some_state(layer, 4)
    _close("the output of a call by name", layer(input=x, hx=state)[0], layer(x, state)[0])


@_check()
def nan_stays_in_its_sequence(subject: _Subject) -> None:
    """NaN in one sequence makes its output NaN, and leaves the other sequences as they are."""
    layer, x = subject.layer(), _sequences(4, 7)
    bad = x.clone()
    bad[2, 1, 0] = float("nan")
    output, state = layer(bad)
    others = [0, 2, 3]
    expect(bool(output[2:, 1].isnan().any()), "NaN in the output of the sequence", "none")
    _close("the output of the other sequences", output[:, others], layer(x)[0][:, others])
    expect(bool(state[0][:, others].isfinite().all()), "no NaN in the other states", "some")


@_check()
def an_empty_batch_passes(subject: _Subject) -> None:
    """A batch without sequences gives output and state without any, and gradients of zero."""
    layer = subject.layer()
    x = _sequences(4, 7)[:, :0].clone().requires_grad_()
    output, state = layer(x)
    shape = (7, 0, subject.directions * H)
    expect(output.shape == shape, f"an output of shape {shape}", tuple(output.shape))
    for part in state:
        expect(part.shape[1] == 0, "a state without sequences", tuple(part.shape))
    output.sum().backward()
    expect(x.grad is not None and x.grad.shape == x.shape, "a gradient of x's shape", "none")
    if not subject.bidirectional:
        out, _ = layer.step(x[0].detach())
        expect(out.shape == (0, H), "an output without rows of a step", tuple(out.shape))


@_check()
def bad_states_are_refused(subject: _Subject) -> None:
    """A state of another shape, dtype or number of variables is refused."""
    layer, x = subject.layer(dtype=torch.float32), torch.zeros(7, 4, F)
    good = tuple(part.detach() for part in layer(x)[1])
    short = tuple(part[:, :3] for part in good)
    shape = str(list(short[0].shape))
    expect_refusal(lambda: layer(x, short), "3 rows for 4 sequences", "state", shape)
    deep = tuple(torch.cat([part, part]) for part in good)
    expect_refusal(lambda: layer(x, deep), "twice the layers", "state", str(list(deep[0].shape)))
    meta = tuple(part.to("meta") for part in good)
    expect_refusal(lambda: layer(x, meta), "another device", "state", "device")
    double = tuple(part.double() for part in good)
    expect_refusal(lambda: layer(x, double), "float64", "state", "float64", error=TypeError)
    expect_refusal(lambda: layer(x, (*good, good[0])), "a tensor more", "state", error=TypeError)
    for value in (3, "zz", {"y": good[0]}):
        name = type(value).__name__
        expect_refusal(partial(layer, x, value), name, "state", name, error=TypeError)


@_check(_one_way)
def bad_steps_are_refused(subject: _Subject) -> None:
    """A step of another shape is refused, and so is one in training mode with dropout."""
    layer = subject.layer()
    wrong, x_t = torch.zeros(4, 2, dtype=torch.float64), _sequences(4, 1)[0]
    expect_refusal(lambda: layer.step(wrong), "2 features", "x", "[4, 2]")
    if subject.num_layers > 1:
        stack = subject.layer(dropout=0.3)
        expect_refusal(lambda: stack.step(x_t), "dropout in training", "dropout", "eval()")
        stack.eval().step(x_t)


@_check(lambda subject: not subject.elapsed)
def elapsed_is_refused(subject: _Subject) -> None:
    """A layer without a step size refuses the time between samples."""
    layer, x, gaps = subject.layer(), _sequences(4, 7), _times(4, 7)
    expect_refusal(lambda: layer(x, elapsed=gaps), "elapsed", "elapsed", type(layer).__name__)
    if not subject.bidirectional:
        expect_refusal(lambda: layer.step(x[0], None, gaps[0]), "elapsed", "elapsed")


@_check(_takes_elapsed)
def bad_elapsed_is_refused(subject: _Subject) -> None:
    """Times that are negative, not finite, or of another shape, dtype or packing are refused."""
    layer = subject.layer(dtype=torch.float32)
    x, ones = torch.zeros(7, 4, F), torch.ones(7, 4)
    for value in (-1e-3, float("nan"), float("inf")):
        bad = ones.clone()
        bad[2, 1] = value
        name = f"{value:g}"
        expect_refusal(partial(layer, x, elapsed=bad), name, "elapsed", name)
        if not subject.bidirectional:
            expect_refusal(partial(layer.step, x[0], None, bad[2]), name, "elapsed")
    expect_refusal(lambda: layer(x, elapsed=ones.t()), "a transpose", "elapsed", "[4, 7]")
    for given, named in ((1.0, "float"), (ones.double(), "float64"), (ones.long(), "int64")):
        expect_refusal(
            partial(layer, x, elapsed=given),
            named, "elapsed", named, error=TypeError,
        )  # fmt: skip
    packed = pack_sequence([x[:, 0], x[:3, 1]])
    for times, named in (
        (ones, "[7, 4]"),
        (pack_sequence([ones[:, 0]]), "[7]"),
        (pack_sequence([ones[:, 0], ones[:4, 1]]), "[11]"),
        (pack_sequence([ones[:5, 0], ones[:5, 1]]), "[5, 5]"),
    ):
        expect_refusal(
            partial(layer, packed, elapsed=times),
            f"times {named}", "elapsed", named,
        )  # fmt: skip
