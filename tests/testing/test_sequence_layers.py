"""Layers that break one promise each: the check of that promise fails, and says so."""

from functools import partial

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

import anharmonic as ah
from anharmonic.nn import HiddenState, StepLayer
from anharmonic.nn.sequence.fastgrnn import FastGRNN
from anharmonic.testing import check_sequence_layer, sequence_layer_checks
from anharmonic.testing.suite import expect_refusal


class Leaky(StepLayer):
    """A layer that keeps every promise."""

    def __init__(
        self, input_size, hidden_size, num_layers=1, *, leak=0.5, device=None, dtype=None, **options
    ):
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.leak = leak
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size):
        H = self.hidden_size
        return {"weight_ih": (H, input_size), "weight_hh": (H, H), "bias": (H,)}

    def step_function(self, u, state, w, dt):
        new = torch.tanh(u + state.h @ w.weight_hh.T)
        return HiddenState(torch.lerp(state.h, new, self.leak))


def changed(base=Leaky, **methods):
    """A layer like ``base`` with other methods, each called with the old one first."""
    layer = type(base.__name__, (base,), {})
    for name, method in methods.items():
        old = getattr(base, name)
        setattr(layer, name, lambda self, *a, _old=old, _new=method, **k: _new(_old, self, *a, **k))
    return layer


Timed = changed(ah.CoRNN)


def output_of(change):
    """A layer whose output is changed, packed or not."""

    def forward(old, self, x, *args, **kwargs):
        output, state = old(self, x, *args, **kwargs)
        if is_packed(output):
            return output._replace(data=change(self, output.data)), state
        return None if output is None else change(self, output), state

    return changed(forward=forward)


def input_of(change, packed=False):
    """A layer whose input is changed where it is a tensor, or where it is packed."""

    def forward(old, self, x, *args, **kwargs):
        if packed and is_packed(x):
            x = x._replace(data=change(self, x.data))
        elif not packed and isinstance(x, torch.Tensor):
            x = change(self, x)
        return old(self, x, *args, **kwargs)

    return changed(forward=forward)


def elapsed_of(change):
    """A layer whose times are changed."""

    def forward(old, self, x, state=None, *, elapsed=None, **kwargs):
        elapsed = change(elapsed) if isinstance(elapsed, torch.Tensor) else elapsed
        return old(self, x, state, elapsed=elapsed, **kwargs)

    return changed(Timed, forward=forward)


def is_packed(x):
    return isinstance(x, PackedSequence)


def mixed(self, x):
    return x + x.mean(0 if self.batch_first else 1, keepdim=True) if x.dim() == 3 else x


def no_empty(self, x):
    if 0 in x.shape:
        raise ValueError("input must hold a sequence")
    return x


def leaking(old, self, x, state=None, *args, **kwargs):
    if not is_packed(x):
        return old(self, x, state, *args, **kwargs)
    padded, _ = pad_packed_sequence(x, batch_first=self.batch_first)
    _, last = old(self, padded, state, *args, **kwargs)  # states walk on over the padding
    return old(self, x, state, *args, **kwargs)[0], last


def resorted(old, self, x, *args, **kwargs):
    output, state = old(self, x, *args, **kwargs)
    if is_packed(output) and output.sorted_indices is None:
        order = torch.arange(len(state[0][0]))
        output = PackedSequence(output.data, output.batch_sizes, order, order)
    return output, state


def view(old, self, x, *args, output="all", **kwargs):
    result, state = old(self, x, *args, output=output, **kwargs)
    return (state.h[-1] if output == "last" and not self.bidirectional else result), state


def any_state(old, self, x, state=None, **kwargs):
    try:
        return old(self, x, state, **kwargs)
    except (TypeError, ValueError):
        return old(self, x, None, **kwargs)


def any_step(old, self, x_t, state=None, elapsed=None):
    return old(self, torch.nn.functional.pad(x_t, (0, self.input_size - x_t.shape[-1])), state)


def streaming(old, self, x_t, state=None, elapsed=None):
    self.bidirectional = False
    try:
        return old(self, x_t, state, elapsed)
    finally:
        self.bidirectional = True


def flipped(old, self, x, state=None, **kwargs):
    output, state = old(self, x, state, **kwargs)
    return (output.flip(0) if self.bidirectional and not is_packed(x) else output), state


def chunky(old, self, x, *args, **kwargs):
    output, state = old(self, x, *args, **kwargs)
    wrong = 1.001 if self.memory == "chunked" else 1.0
    return output, type(state)(*(wrong * part for part in state))


def always_dropping(old, self, x, *args, **kwargs):
    output, state = old(self, x, *args, **kwargs)
    if self.dropout and not is_packed(x):
        output = torch.nn.functional.dropout(output, self.dropout)
    return output, state


BROKEN = {
    "shapes_and_state": changed(forward=lambda old, *a, **k: (old(*a, **k)[0], old(*a)[1].h)),
    "batch_first_is_a_transpose": output_of(lambda self, out: out + 0.1 * self.batch_first),
    "batched_equals_unbatched": input_of(mixed),
    "every_batch_size": input_of(mixed),
    "packed_equals_padded": changed(forward=leaking),
    "packed_in_given_order": changed(forward=resorted),
    "packed_gradients_equal_padded": input_of(lambda self, x: x.detach(), packed=True),
    "two_halves_equal_one_whole": changed(
        forward=lambda old, self, x, state=None, **k: old(self, x, None, **k)
    ),
    "steps_equal_sequence": changed(step=lambda old, self, x_t, *a: old(self, 0.9 * x_t, *a)),
    "a_reverse_direction_cannot_stream": partial(changed(step=streaming), bidirectional=True),
    "bidirectional_is_two_walks": changed(forward=flipped),
    "gradients_are_right": output_of(lambda self, out: 2 * out - out.detach()),
    "output_all_last_none": changed(forward=view),
    "elapsed_in_every_layout": elapsed_of(lambda gaps: None),
    "elapsed_gradients_are_right": elapsed_of(torch.Tensor.detach),
    "elapsed_in_halves_and_steps": changed(
        Timed, step=lambda old, self, x_t, state=None, elapsed=None: old(self, x_t, state)
    ),
    "memory_policies_agree": changed(ah.LEM, forward=chunky),
    "every_dtype": output_of(lambda self, out: out.float()),
    "dropout_acts_in_training_only": partial(changed(forward=always_dropping), num_layers=2),
    "rebuilt_from_its_config": changed(config=lambda old, self: {**old(self), "leak": 0.1}),
    "copies_and_pickles": changed(
        make_parameters=lambda old, self, **k: (old(self, **k), setattr(self, "f", lambda: 0))
    ),
    "reset_parameters_draws_anew": changed(
        reset_parameters=lambda old, self: (
            hasattr(self, "drawn") or setattr(self, "drawn", old(self))
        )
    ),
    "stable_for_long": changed(
        step_function=lambda old, self, u, state, w, dt: HiddenState(1.1 * state.h + u)
    ),
    "device_argument": changed(
        make_parameters=lambda old, self, device, dtype: old(self, dtype=dtype)
    ),
    "bad_arguments_are_refused": changed(
        __init__=lambda old, self, F, H, L=1, bias=True, **k: old(
            self, F, H, L, bias=bool(bias), **k
        )
    ),
    "bad_input_is_refused": input_of(lambda self, x: x.float()),
    "arguments_have_the_names_of_torch": changed(
        forward=lambda old, self, x, state=None, **k: old(self, x, state, **k)
    ),
    "nan_stays_in_its_sequence": input_of(lambda self, x: x.nan_to_num(0.0)),
    "an_empty_batch_passes": input_of(no_empty),
    "bad_states_are_refused": changed(forward=any_state),
    "bad_steps_are_refused": changed(step=any_step),
    "elapsed_is_refused": changed(
        forward=lambda old, self, x, state=None, *, elapsed=None, **k: old(self, x, state, **k)
    ),
    "bad_elapsed_is_refused": elapsed_of(lambda gaps: gaps.nan_to_num(1.0, 1.0, 1.0).clamp(min=0)),
}


def test_layers_that_keep_their_promises_pass_and_every_check_has_one_that_fails_it():
    names = set()
    for make in (Leaky, partial(Leaky, bidirectional=True), Timed):
        check_sequence_layer(make)
        names |= set(dict(sequence_layer_checks(make)))
    assert set(BROKEN) == names


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    checks = dict(sequence_layer_checks(BROKEN[name]))
    with pytest.raises(AssertionError, match=r"(?s)Expected .*; got "):
        checks[name]()


def test_options_handed_on_are_tested_and_the_global_seed_stays():
    class Own(Leaky):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)

    before = torch.get_rng_state()
    assert "memory_policies_agree" in dict(sequence_layer_checks(Own))
    assert "memory_policies_agree" not in dict(sequence_layer_checks(FastGRNN))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_refusal_with_another_error_is_told():
    def call():
        raise KeyError("dt")

    with pytest.raises(AssertionError, match="Expected a ValueError for a bad dt; got KeyError"):
        expect_refusal(call, "a bad dt")


def test_all_failures_are_told_at_once():
    with pytest.raises(AssertionError, match=r"(?s)of \d+ checks failed.*every_batch_size: .* got"):
        check_sequence_layer(BROKEN["every_batch_size"])


def test_initial_values_may_be_fixed():
    def init_parameter(old, self, name, p):
        p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p))

    check_sequence_layer(changed(init_parameter=init_parameter))
