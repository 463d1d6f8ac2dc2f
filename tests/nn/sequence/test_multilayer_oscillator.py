"""Neural oscillators in layers (4.2): unlike widths, reversible memory, bad widths.

What both kinds of neural oscillators promise stands in test_oscillator.py.
"""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def uneven(**options):
    torch.manual_seed(0)
    return ah.MultiLayerNeuralOscillator(
        2, 3, 3, hidden_sizes=[4, 6, 3], dt=0.2, dtype=F64, **options
    )


def test_unlike_widths_follow_the_equations():
    layer = uneven()
    weights = layer.state_dict()
    assert {k: tuple(v.shape) for k, v in weights.items()} == {
        "weight_ih_l0": (4, 2), "weight_hh_l0": (4,), "bias_l0": (4,),
        "weight_ih_l1": (6, 4), "weight_hh_l1": (6,), "bias_l1": (6,),
        "weight_ih_l2": (3, 6), "weight_hh_l2": (3,), "bias_l2": (3,),
    }  # fmt: skip
    with torch.no_grad():
        for k, bias in enumerate((layer.bias_l0, layer.bias_l1, layer.bias_l2)):
            bias.copy_(noise(len(bias), seed=k))
    below = x = noise(9, 5, 2)
    last = []
    for k, size in enumerate((4, 6, 3)):
        y = z = torch.zeros(5, size, dtype=F64)
        outputs = []
        for u in below:
            drive = u @ weights[f"weight_ih_l{k}"].T + weights[f"bias_l{k}"]
            z = z + 0.2 * torch.tanh(weights[f"weight_hh_l{k}"] * y + drive)
            y = y + 0.2 * z
            outputs.append(y)
        below = torch.stack(outputs)
        last.append((y, z))
    for backend in ("auto", "reference"):
        with ah.use_backend(backend):
            output, state = layer(x)
            end, _ = layer(x, output="last")
        torch.testing.assert_close(output, below, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(end, below[-1], rtol=1e-12, atol=1e-13)
        assert state.y.shape == (3, 5, 6)
        for k, (y, z) in enumerate(last):
            size = y.shape[1]
            for row, expected in ((state.y[k], y), (state.z[k], z)):
                torch.testing.assert_close(row[:, :size], expected, rtol=1e-12, atol=1e-13)
                assert not row[:, size:].any()


def test_unlike_widths_in_both_directions():
    """Two layers of widths 4 and 3 are a layer of 4 and one of 3 on top of it."""
    torch.manual_seed(0)
    make = ah.MultiLayerNeuralOscillator
    both = make(2, 3, 2, hidden_sizes=[4, 3], bidirectional=True, dtype=F64)
    lower, upper = (make(w, m, bidirectional=True, dtype=F64) for w, m in ((2, 4), (8, 3)))
    for k, layer in enumerate((lower, upper)):
        layer.load_state_dict(
            {n: both.state_dict()[n.replace("_l0", f"_l{k}")] for n in layer.state_dict()}
        )
    lengths = torch.tensor([7, 3, 5])
    packed = pack_padded_sequence(noise(7, 3, 2), lengths, enforce_sorted=False)
    got = pad_packed_sequence(both(packed)[0])[0]
    assert got.shape == (7, 3, 6)
    expected = pad_packed_sequence(upper(lower(packed)[0])[0])[0]
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("options", [{}, {"dropout": 0.5}], ids=str)
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_reversible_memory(options, backend):
    x = noise(150, 3, 2).requires_grad_()
    results = []
    for memory in ("stored", "reversible"):
        layer = uneven(memory=memory, **options)
        torch.manual_seed(3)
        with ah.use_backend(backend):
            output, state = layer(x)
            loss = output.sin().sum() + sum(s.cos().sum() for s in state)
            gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output, tuple(state), gradients))
    # 150 steps on a grid of spacing 2^-40.
    torch.testing.assert_close(results[1], results[0], rtol=1e-8, atol=1e-8)
    assert not torch.equal(results[1][0], results[0][0])  # the grid it is
