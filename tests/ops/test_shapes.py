"""What does not fit is one error, whatever the backend: compiled code trusts its sizes."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import available_backends

WEIGHTS = [ops.LEMWeights(torch.ones(12, f), torch.ones(9, 3), torch.eye(3), None) for f in (2, 3)]
ZERO = torch.zeros(2, 4, 3)
RIGHT = {"x": torch.randn(5, 4, 2), "weights": WEIGHTS, "y0": ZERO, "z0": ZERO}
BAD = {
    "no steps": ({"x": torch.zeros(0, 4, 2)}, r"x must be .*T, B, F"),
    "no batch": ({"x": torch.zeros(5, 0, 2)}, r"y0 must have shape \[2, 0, 3\]"),
    "flat": ({"x": torch.zeros(5, 4)}, r"x must be .*T, B, F"),
    "one state": ({"y0": torch.zeros(1, 4, 3)}, r"y0 must have shape \[2, 4, 3\]"),
    "broadcast state": ({"z0": torch.zeros(2, 1, 3)}, r"z0 must have shape \[2, 4, 3\]"),
    "one weight": ({"weights": WEIGHTS[:1]}, r"y0 must have shape \[1, 4, 3\]"),
    "wide": ({"weights": WEIGHTS[::-1]}, r"weights\[0\].weight_ih must be .*shape \[12, 2\]"),
    "missing": (
        {"weights": [WEIGHTS[0], WEIGHTS[1]._replace(weight_zh=None)]},
        r"weights\[1\].weight_zh must be .*shape \[3, 3\]",
    ),
    "elapsed": ({"elapsed": torch.ones(5, 1)}, r"elapsed must have shape \[5, 4\]"),
    "masks": ({"masks": []}, "masks must be .*1; got 0"),
    "mask": ({"masks": [torch.ones(3)]}, r"masks\[0\] must have shape \[4, 3\]"),
    "trained mask": (
        {"masks": [torch.ones(4, 3, requires_grad=True)]},
        r"masks\[0\] must be .*detach",
    ),
    "short": ({"lengths": torch.tensor([5])}, r"lengths must be .*\[4\]"),
    "int32": ({"lengths": torch.ones(4, dtype=torch.int32)}, "lengths must be .*int64"),
    "long": ({"lengths": torch.tensor([5, 6, 1, 1])}, r"lengths must be in \[0, 5\]"),
    "negative": ({"lengths": torch.tensor([5, 4, -1, 1])}, r"lengths must be in \[0, 5\]"),
}


@pytest.mark.covering
@pytest.mark.parametrize("backend", available_backends("lem"))
@pytest.mark.parametrize("name", BAD)
def test_refused(name, backend):
    changes, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        ops.lem(**RIGHT | changes, dt=0.5, backend=backend)


@pytest.mark.parametrize("backend", [b for b in available_backends("lem") if b != "triton"])
def test_an_input_without_features(backend):  # on the CPU
    weight = WEIGHTS[0]._replace(weight_ih=torch.zeros(12, 0))
    zero, call = torch.zeros(1, 4, 3), {"dt": 0.5, "backend": backend}
    output, *_ = ops.lem(torch.zeros(5, 4, 0), [weight], zero, zero, **call)
    weight = weight._replace(weight_ih=torch.zeros(12, 1))
    right, *_ = ops.lem(torch.zeros(5, 4, 1), [weight], zero, zero, **call)
    torch.testing.assert_close(output, right)


def test_strided_lengths_are_read_as_they_are():
    lengths = torch.tensor([5, 0, 1, 0, 3, 0, 0, 0])[::2]
    strided, compact = (ops.lem(**RIGHT, dt=0.5, lengths=n) for n in (lengths, lengths.clone()))
    assert all(map(torch.equal, strided, compact))


def test_what_other_kernels_need():
    w = ops.UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
    zero = torch.zeros(1, 4, 3)
    with pytest.raises(ValueError, match=r"dt must be .*1"):
        ops.unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1, 0.2], frequency=1.0)
    skewed = ops.SkewWeights(torch.ones(5, 2), torch.zeros(6, 3), None)
    with pytest.raises(ValueError, match=r"weights\[0\].weight_ih must be .*shape \[6, 2\]"):
        ops.skew(torch.ones(5, 4, 2), [skewed], zero, dt=0.1)
    skip = w._replace(weight_skip=torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"weight_skip must be None"):
        ops.unicornn(torch.ones(5, 4, 2), [skip], zero, zero, dt=[0.1], frequency=1.0)
