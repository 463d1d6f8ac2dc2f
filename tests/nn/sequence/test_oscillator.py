"""Neural oscillators (4.1), in layers (4.2), and UnICORNN: order, closed forms, equations, grid."""

import itertools
import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import anharmonic as ah
from anharmonic.nn.sequence.hamiltonian import work

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
    """Two layers under smooth input, against scipy's solution."""
    torch.manual_seed(0)
    layer = kind(2, 3, 2, activation=activation, scheme=scheme, dtype=F64)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if not name.startswith("weight_hh"):
                parameter.copy_(noise(*parameter.shape, seed=1))
    weights = {k: v.detach() for k, v in layer.state_dict().items()}

    def slope(t, state):
        (y, z), below = (
            torch.from_numpy(state).view(2, 2, 3),
            smooth_input(torch.tensor(t, dtype=F64)),
        )
        forces = []
        for k in range(2):
            V, W, b = (weights[f"{n}_l{k}"] for n in ("weight_ih", "weight_hh", "bias"))
            coupling = W @ y[k] if W.dim() == 2 else W * y[k]
            forces.append(SIGMA[activation](coupling + V @ below + b))
            below = y[k]
        return torch.cat([z.flatten(), *forces]).numpy()

    solved = solve_ivp(slope, (0, 4), torch.zeros(12).numpy(), "DOP853", rtol=1e-10, atol=1e-12)
    exact = torch.from_numpy(solved.y[:, -1]).view(4, 1, 3)
    errors = [(at_the_end(layer, n, 4.0) - exact).abs().max().item() for n in (100, 200, 400)]
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(found - order) < 0.1 for found in orders), (orders, errors)


# ---- in layers ----
def by_hand(drive, w, h, sign, frequency):
    """Outputs, y and z of y'' = ±tanh(w y + drive) - frequency y from rest, in steps h."""
    y = z = torch.zeros_like(drive[0])
    outputs = []
    for u in drive:
        z = z + h * (sign * torch.tanh(w * y + u) - frequency * y)
        y = y + h * z
        outputs.append(y)
    return torch.stack(outputs), y, z


def uneven(**options):
    torch.manual_seed(0)
    return ah.MultiLayerNeuralOscillator(
        2, 3, 3, hidden_sizes=[4, 6, 3], dt=0.2, dtype=F64, **options
    )


def test_unlike_widths_follow_the_equations():
    layer = uneven()
    weights = layer.state_dict()
    assert [tuple(v.shape) for v in weights.values()] == [
        *((4, 2), (4,), (4,)), *((6, 4), (6,), (6,)), *((3, 6), (3,), (3,))
    ]  # fmt: skip
    with torch.no_grad():
        for k in range(3):
            weights[f"bias_l{k}"].copy_(noise(len(weights[f"bias_l{k}"]), seed=k))
    below, x, last = noise(9, 5, 2), noise(9, 5, 2), []
    for k, size in enumerate((4, 6, 3)):
        drive = below @ weights[f"weight_ih_l{k}"].T + weights[f"bias_l{k}"]
        below, y, z = by_hand(drive, weights[f"weight_hh_l{k}"], 0.2, 1, 0)
        last.append(torch.nn.functional.pad(torch.stack([y, z]), (0, 6 - size)))
    for backend in ("auto", "reference"):
        with ah.use_backend(backend):
            output, state = layer(x)
            end, _ = layer(x, output="last")
        torch.testing.assert_close(output, below, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(end, below[-1], rtol=1e-12, atol=1e-13)
        states = torch.stack(tuple(state), 1)  # [layer, variable, sequence, neuron]
        torch.testing.assert_close(states, torch.stack(last), rtol=1e-12, atol=1e-13)


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


# ---- UnICORNN, and the grid of both ----
def test_residual_stacking_follows_the_equations():
    """Layer l > S adds the skip matrix times the output of level l - S - 1 (3.79)."""
    torch.manual_seed(0)
    skip, dt = 2, [0.3, 0.1, 0.4, 0.2]
    stack = ah.UnICORNN(2, 3, num_layers=4, dt=dt, skipped_layers=skip, dtype=F64)
    weights, levels = stack.state_dict(), [noise(8, 2, 2)]
    shapes = {name: tuple(value.shape) for name, value in weights.items() if "skip" in name}
    assert shapes == {"weight_skip_l2": (3, 2), "weight_skip_l3": (3, 3)}  # the first of the input
    for k in range(4):
        drive = levels[k] @ weights[f"weight_ih_l{k}"].T + weights[f"bias_l{k}"]
        if k >= skip:
            drive = drive + levels[k - skip] @ weights[f"weight_skip_l{k}"].T
        h = dt[k] * torch.sigmoid(weights[f"timescale_l{k}"])
        levels.append(by_hand(drive, weights[f"weight_hh_l{k}"], h, -1, 1)[0])
    torch.testing.assert_close(stack(levels[0])[0], levels[-1], rtol=1e-13, atol=1e-14)


def unicornn(**options):
    torch.manual_seed(0)
    return ah.UnICORNN(2, 5, 3, dt=0.2, dtype=F64, **options)


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(
    "make, options",
    [
        (uneven, {}),
        (uneven, {"dropout": 0.5}),
        (unicornn, {}),
        (unicornn, {"skipped_layers": 2}),
        (unicornn, {"dropout": 0.5}),
    ],
)
def test_reversible_memory(make, options, backend, tmp_path):
    """On the grid: near what is stored, on packed input, with dropout, saved and loaded."""
    x, results = noise(150, 3, 2).requires_grad_(), []
    for memory in ("stored", "reversible"):
        layer = make(memory=memory, **options)
        torch.manual_seed(3)
        with ah.use_backend(backend):
            output, state = layer(pack_padded_sequence(x, torch.tensor([150, 80, 3])))
            loss = output.data.sin().sum() + sum(s.cos().sum() for s in state)
            gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output.data, tuple(state), gradients))
    # 150 steps on a grid of spacing 2^-40, with weights below 1.
    close = 1e-9 if make is unicornn else 1e-8
    torch.testing.assert_close(results[1], results[0], rtol=close, atol=close)
    assert not torch.equal(results[1][0], results[0][0])  # the grid it is
    layer.eval().save_pretrained(tmp_path / "layer")
    again = ah.from_pretrained(tmp_path / "layer").eval()
    assert again.memory == "reversible" and "memory='reversible'" in repr(again)
    whole = layer(x, output="last")[0]
    assert torch.equal(again(x, output="last")[0], whole)
    carried = layer(x[:70], output="none")[1]
    parts = layer(x[70:], carried, output="last")[0]
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-12)


# ---- energies ----
@pytest.mark.parametrize("activation", ["tanh", "sin", "identity"])
def test_work_is_the_integral(activation):
    """Against Gauss-Legendre with 60 nodes, over slopes from 0 and 1e-12 to 3, of both signs."""
    nodes, weights = (torch.from_numpy(a) for a in numpy.polynomial.legendre.leggauss(60))
    slopes = torch.tensor([0.0, 1e-300, 1e-12, -1e-7, 1e-3, -0.2, 1.0, -3.0], dtype=F64)
    w, x, y = torch.meshgrid(
        slopes,
        torch.tensor([0.0, 0.4, -3.0, 18.0], dtype=F64),
        torch.tensor([0.0, 0.3, -1.0, 3.0], dtype=F64),
        indexing="ij",
    )
    s = y[..., None] * (nodes + 1) / 2
    sigma = SIGMA[activation](w[..., None] * s + x[..., None])
    exact = (sigma * weights).sum(-1) * y / 2
    found = work(activation, w, x, y)
    torch.testing.assert_close(found, exact, rtol=1e-11, atol=1e-14)


UNIT = {"dt": 1e-6, "dtype": F64}


@pytest.mark.parametrize(
    "kind, options, width",
    [
        (ah.UnICORNN, {"frequency": 1.7}, 3),
        (ah.UnICORNN, {"num_layers": 3, "skipped_layers": 2}, 3),
        (ah.MultiLayerNeuralOscillator, {}, 3),
        (ah.MultiLayerNeuralOscillator, {"activation": "sin"}, 3),
        (ah.MultiLayerNeuralOscillator, {"activation": "identity"}, 3),
        # Layers of unlike widths fill the front of a row.
        (ah.MultiLayerNeuralOscillator, {"num_layers": 3, "hidden_sizes": [5, 4, 3]}, 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("slope", [None, 0.0])
def test_it_gives_the_equations_of_motion(kind, options, width, slope):
    """y' = dH/dz and z' = -dH/dy in the top layer, with the layer's own step for z'."""
    torch.manual_seed(0)
    layer, h = kind(2, 3, **UNIT, **options), 1e-6
    top = layer.num_layers - 1
    y, z, u = noise(top + 1, 3, width, seed=1), noise(top + 1, 3, width, seed=2), noise(3, 2)
    with torch.no_grad():
        if slope is not None:
            getattr(layer, f"weight_hh_l{top}").fill_(slope)
        if kind is ah.UnICORNN:
            h = h * torch.sigmoid(getattr(layer, f"timescale_l{top}"))
        _, after = layer.step(u, (y, z))
    y.requires_grad_(), z.requires_grad_()
    energy = ah.hamiltonian(layer, (y, z), u)
    dy, dz = (d[top, :, :3] for d in torch.autograd.grad(energy[top].sum(), (y, z)))
    torch.testing.assert_close(dz, z[top, :, :3].detach(), rtol=1e-14, atol=0)
    force = (after.z - z.detach())[top, :, :3] / h
    # The difference of two velocities of order 1 over dt. The layer below has moved on by dt.
    torch.testing.assert_close(-dy, force, rtol=0, atol=2e-5 if top else 1e-8)
    one = ah.hamiltonian(layer, (y[:, 1], z[:, 1]), u[1])
    torch.testing.assert_close(one, energy[:, 1], rtol=1e-12, atol=1e-13)
    assert not ah.hamiltonian(layer, (0 * y, 0 * z), u).any()
