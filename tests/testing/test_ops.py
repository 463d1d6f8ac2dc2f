"""Backends that differ from the reference: the suite sees it."""

import pytest
import torch

from anharmonic.testing import OpCall, check_op

noise = iter(range(1000))


BROKEN = {
    "a value": (lambda x: x.tanh() * (1 + 1e-9), "agrees"),
    "a gradient": (lambda x: 2 * x.tanh() - x.tanh().detach(), "agrees"),
    "a view": (lambda x: x.view_as(x), "results_are_copies"),
    "the same bits": (lambda x: x.tanh() + 1e-14 * next(noise), "the_same_bits_again"),
}


def calls(fast):
    """An op, tanh, whose fast backend is the given function."""

    def make(sizes):
        x = torch.rand(sizes.steps, sizes.hidden, dtype=torch.float64, requires_grad=True)
        return OpCall(
            lambda backend: [(torch.tanh if backend == "reference" else fast)(x)], {"x": x}
        )

    return make


def test_an_equal_backend_passes():
    check_op(calls(lambda x: x.exp().log().tanh()), "native")


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_is_found(fault):
    fast, check = BROKEN[fault]
    with pytest.raises(AssertionError, match=rf"(?s){check}.*Expected .*; got "):
        check_op(calls(fast), "native")
