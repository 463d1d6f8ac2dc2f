import pytest
import torch

from anharmonic import kernels

ZERO = torch.zeros(1, 2, 3)
CALLS = {
    "cornn": lambda **w: kernels.cornn(
        torch.ones(4, 2, 1),
        [kernels.CoRNNWeights(torch.ones(3, 1), torch.eye(3), torch.eye(3), None)],
        ZERO, ZERO, dt=0.1, frequency=1.0, damping=1.0, **w,
    ),
    "unicornn": lambda **w: kernels.unicornn(
        torch.ones(4, 2, 1),
        [kernels.UnICORNNWeights(torch.ones(3, 1), torch.ones(3), None, torch.zeros(3))],
        ZERO, ZERO, dt=[0.1], frequency=1.0, **w,
    ),
    "lem": lambda **w: kernels.lem(
        torch.ones(4, 2, 1),
        [kernels.LEMWeights(torch.ones(12, 1), torch.ones(9, 3), torch.eye(3), None)],
        ZERO, ZERO, dt=0.5, **w,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", list(CALLS))
def test_backends_by_name(kernel):
    assert "reference" in kernels.available_backends(kernel)
    auto, named = CALLS[kernel](), CALLS[kernel](backend="reference")
    assert all(torch.equal(a, b) for a, b in zip(auto, named, strict=True))
    with pytest.raises(ValueError, match=r"backend must be one of 'auto', 'reference'.*'fast'"):
        CALLS[kernel](backend="fast")


def test_unknown_kernel():
    with pytest.raises(ValueError, match=r"kernel must be one of .*did you mean 'lem'"):
        kernels.available_backends("lemm")


def test_unknown_scheme():
    with pytest.raises(ValueError, match="scheme must be one of 'explicit', 'implicit'"):
        CALLS["cornn"](scheme="midpoint")


@pytest.mark.parametrize("kernel", list(CALLS))
def test_final_states_are_copies(kernel):
    output, y, _ = CALLS[kernel]()
    y.add_(1.0)
    assert not torch.equal(output[-1], y[0])
