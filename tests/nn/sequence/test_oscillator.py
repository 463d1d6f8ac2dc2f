"""Neural oscillators (4.1), and in layers (4.2): order, a closed form, unlike widths."""

import itertools
import math

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import anharmonic as ah

F64 = torch.float64
SCHEMES = ["symplectic-euler", "velocity-verlet"]
SIGMA = {"tanh": torch.tanh, "sin": torch.sin, "identity": lambda a: a}


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def smooth_input(t):
    return torch.stack([torch.sin(1.3 * t), torch.cos(0.7 * t) - 0.4], dim=-1)


def at_the_end(layer, steps, end):
    """The state after ``steps`` steps up to time ``end``, the input sampled in their middles."""
    middles = (torch.arange(steps, dtype=F64) + 0.5) * end / steps
    layer.dt = end / steps
    with torch.no_grad():
        _, state = layer(smooth_input(middles)[:, None], output="none")
    return torch.cat(tuple(state))


@pytest.mark.usefixtures("loops")
@pytest.mark.covering("kind scheme", "activation")
@pytest.mark.parametrize("kind", [ah.NeuralOscillator, ah.MultiLayerNeuralOscillator])
@pytest.mark.parametrize("activation", ["tanh", "sin"])
@pytest.mark.parametrize("scheme, order", list(zip(SCHEMES, (1, 2), strict=True)))
def test_order_of_convergence(kind, activation, scheme, order):
    """Two layers under smooth input, against 200 steps of a Runge-Kutta method of order 4."""
    torch.manual_seed(0)
    layer = kind(2, 3, 2, activation=activation, scheme=scheme, dtype=F64)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if not name.startswith("weight_hh"):
                parameter.copy_(noise(*parameter.shape, seed=1))
    weights = {k: v.detach() for k, v in layer.state_dict().items()}

    def slope(t, y, z):
        below, forces = smooth_input(t), []
        for k in range(2):
            V, W, b = (weights[f"{n}_l{k}"] for n in ("weight_ih", "weight_hh", "bias"))
            coupling = W @ y[k] if W.dim() == 2 else W * y[k]
            forces.append(SIGMA[activation](coupling + V @ below + b))
            below = y[k]
        return z, torch.stack(forces)

    end, count = torch.tensor(4.0, dtype=F64), 200
    h = end / count
    y = z = torch.zeros(2, 3, dtype=F64)
    for n in range(count):
        t = n * h
        a1, b1 = slope(t, y, z)
        a2, b2 = slope(t + h / 2, y + h / 2 * a1, z + h / 2 * b1)
        a3, b3 = slope(t + h / 2, y + h / 2 * a2, z + h / 2 * b2)
        a4, b4 = slope(t + h, y + h * a3, z + h * b3)
        y, z = y + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), z + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    exact = torch.cat([y, z])[:, None]
    errors = [(at_the_end(layer, n, 4.0) - exact).abs().max().item() for n in (100, 200, 400)]
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(found - order) < 0.1 for found in orders), (orders, errors)


@pytest.mark.parametrize("kind", [ah.NeuralOscillator, ah.MultiLayerNeuralOscillator])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_free_neuron_outputs_a_quarter_of_t_squared(kind, scheme):
    """w = 0, V = 0, tanh b = 1/2 from rest: z = t/2, y = t²/4 (Euler: t (t + dt) / 4)."""
    layer = kind(1, 1, dt=0.01, scheme=scheme, dtype=F64)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.fill_(math.atanh(0.5) if name.startswith("bias") else 0.0)
        output, state = layer(noise(100, 1, 1))
    t = torch.arange(1, 101, dtype=F64) * 0.01
    shift = 0.01 if scheme == "symplectic-euler" else 0.0
    torch.testing.assert_close(output[:, 0, 0], t * (t + shift) / 4, rtol=1e-12, atol=0)
    assert abs(state.z.item() - 0.5) < 1e-12


# ---- in layers ----
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
