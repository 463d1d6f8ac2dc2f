"""The skew-symmetric recurrence as a function: policies agree, weights are checked."""

import pytest
import torch

from anharmonic import ops

F64 = torch.float64


def call(memory, steps=150, **words):
    torch.manual_seed(0)
    shapes = ((6, 2), (6, 3), (6,))
    weights = [torch.randn(s, dtype=F64).requires_grad_() for s in shapes]
    x = torch.randn(steps, 2, 2, dtype=F64)
    y0 = torch.randn(1, 2, 3, dtype=F64).requires_grad_()
    w = ops.SkewWeights(*weights)
    out, y = ops.skew(x, [w], y0, dt=0.05, memory=memory, **words)
    return out, y, [*weights, y0]


def test_chunked_equals_stored():
    found = []
    for memory in ("stored", "chunked"):
        out, y, leaves = call(memory)
        assert torch.equal(out[-1], y[0])
        found.append((out.detach(), torch.autograd.grad(out.sin().sum() + y.sum(), leaves)))
    assert torch.equal(found[0][0], found[1][0])
    for stored, chunked in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(chunked, stored, rtol=1e-12, atol=1e-12)


def test_weights_are_checked():
    zero = torch.zeros(1, 4, 3)
    bad = ops.SkewWeights(torch.ones(5, 2), torch.zeros(6, 3), None)
    with pytest.raises(ValueError, match=r"weights\[0\].weight_ih must be .*shape \[6, 2\]"):
        ops.skew(torch.ones(5, 4, 2), [bad], zero, dt=0.1)
