import pytest
import torch

from anharmonic.ops import UnICORNNWeights, unicornn
from anharmonic.ops.unicornn import rounded


def test_rounding():
    spacing = 2.0**-40
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype=torch.float64) * spacing
    assert (rounded(values) / spacing).tolist() == [0, 2, 2, 0, -2, 0]
    large = torch.tensor([4095.0 + spacing, -4095.5 - 2 * spacing], dtype=torch.float64)
    assert torch.equal(rounded(large), large)
    x = torch.tensor([0.3], requires_grad=True)
    rounded(x).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.item() == 1.0


def run_away(scale, **words):
    zero = torch.zeros(1, 1, 1)
    weight = UnICORNNWeights(torch.zeros(1, 1), torch.zeros(1), None, torch.zeros(1))
    return unicornn(
        torch.zeros(70, 1, 1), [weight], zero, zero + scale, dt=[2.0], frequency=0.0,
        memory="reversible", **words,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [100.0, -100.0, float("inf"), float("nan")])
def test_leaving_the_grid_is_reported(scale):
    with pytest.raises(OverflowError, match=r"left the grid; use a smaller dt.* memory='chunked'"):
        run_away(scale)


def test_a_start_outside_is_reported_and_one_inside_is_not():
    with pytest.raises(OverflowError, match="1024"):
        run_away(5000.0)
    _, y, _ = run_away(10.0)
    assert y.item() == 700.0


def test_without_gradients_nothing_differs(make_stack):
    stack = make_stack("unicornn")
    expected = stack.call(memory="reversible", backend="reference")
    with torch.no_grad():
        got = stack.call(memory="reversible", backend="reference")
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
