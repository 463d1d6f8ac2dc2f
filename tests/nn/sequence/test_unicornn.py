"""UnICORNN: residual stacking, reversible memory."""

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def test_residual_stacking_follows_the_equations():
    """Layer l > S adds the skip matrix times the output of level l - S - 1 (3.79)."""
    torch.manual_seed(0)
    skip, dt = 2, [0.3, 0.1, 0.4, 0.2]
    stack = ah.UnICORNN(2, 3, num_layers=4, dt=dt, skipped_layers=skip, dtype=F64)
    weights = stack.state_dict()
    names = {k for k in weights if "skip" in k}
    assert names == {"weight_skip_l2", "weight_skip_l3"}
    assert weights["weight_skip_l2"].shape == (3, 2)  # from the input
    assert weights["weight_skip_l3"].shape == (3, 3)
    x = noise(8, 2, 2)
    levels = [x]
    for k in range(4):
        drive = levels[k] @ weights[f"weight_ih_l{k}"].T + weights[f"bias_l{k}"]
        if k >= skip:
            drive = drive + levels[k - skip] @ weights[f"weight_skip_l{k}"].T
        h = dt[k] * torch.sigmoid(weights[f"timescale_l{k}"])
        y = z = torch.zeros(2, 3, dtype=F64)
        outputs = []
        for u in drive:
            z = z - h * (torch.tanh(weights[f"weight_hh_l{k}"] * y + u) + y)
            y = y + h * z
            outputs.append(y)
        levels.append(torch.stack(outputs))
    torch.testing.assert_close(stack(x)[0], levels[-1], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"skipped_layers": 2}, {"dropout": 0.5}], ids=str)
def test_reversible_layers(options, tmp_path):
    """On the grid: near what is stored, on packed input, with dropout, saved and loaded."""
    x = noise(150, 3, 2).requires_grad_()
    results = []
    for memory in ("stored", "reversible"):
        torch.manual_seed(0)
        layer = ah.UnICORNN(2, 5, 3, dt=0.2, dtype=F64, memory=memory, **options)
        output, state = layer(
            torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([150, 80, 3]))
        )
        loss = output.data.sin().sum() + sum(s.cos().sum() for s in state)
        gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output.data, tuple(state), gradients))
    # 150 steps on a grid of spacing 2^-40, with weights below 1.
    torch.testing.assert_close(results[1], results[0], rtol=1e-9, atol=1e-9)
    layer.eval().save_pretrained(tmp_path / "layer")
    again = ah.from_pretrained(tmp_path / "layer").eval()
    assert again.memory == "reversible" and "memory='reversible'" in repr(again)
    assert torch.equal(again(x, output="last")[0], layer(x, output="last")[0])
    y, carried = layer(x[:70], output="none")[1]
    torch.testing.assert_close(
        layer(x[70:], (y, carried), output="last")[0], layer(x, output="last")[0],
        rtol=0, atol=1e-12,
    )  # fmt: skip
