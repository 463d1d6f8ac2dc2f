"""Backends that differ from the reference: the suite sees it."""

import pytest
import torch

from anharmonic.testing import OpCall, check_op, op_checks

noise = iter(range(1000))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


BROKEN = {
    "a value": (lambda x: x.tanh() * (1 + 1e-9), "agrees"),
    "a gradient": (lambda x: Twice.apply(x.tanh()), "agrees"),
    "a view": (lambda x: x.view_as(x), "results_are_copies"),
    "the same bits": (lambda x: x.tanh() + 1e-14 * next(noise), "the_same_bits_again"),
}


def calls(fast):
    """An op, tanh, whose fast backend is the given function."""

    def make(sizes):
        x = torch.rand(sizes.steps, sizes.hidden, dtype=torch.float64, requires_grad=True)

        def run(backend):
            return [x.tanh() if backend == "reference" else fast(x), None]

        return OpCall(run, {"x": x})

    return make


def test_an_equal_backend_passes():
    check_op(calls(lambda x: x.exp().log().tanh()), "native")


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_is_found(fault):
    fast, check = BROKEN[fault]
    found = [name for name, run in op_checks(calls(fast), "native") if fails(run)]
    assert any(name.startswith(check) for name in found)


def fails(run):
    try:
        run()
    except AssertionError as error:
        assert "Expected" in str(error) and "got" in str(error)
        return True
    return False
