"""Energies of undamped oscillators: equations of motion, the work of a force, refusals."""

import numpy
import pytest
import torch

import anharmonic as ah
from anharmonic.nn.sequence.hamiltonian import work

F64 = torch.float64
SIGMA = {"tanh": torch.tanh, "sin": torch.sin, "identity": lambda a: a}


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


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


@pytest.mark.parametrize("slope", [None, 0.0])
@pytest.mark.parametrize(
    "kind, options",
    [
        (ah.UnICORNN, {"frequency": 1.7}),
        (ah.MultiLayerNeuralOscillator, {}),
        (ah.MultiLayerNeuralOscillator, {"activation": "sin"}),
        (ah.MultiLayerNeuralOscillator, {"activation": "identity"}),
    ],
    ids=str,
)
def test_it_gives_the_equations_of_motion(kind, options, slope):
    """y' = dH/dz and z' = -dH/dy in the first layer, with the layer's own step for z'."""
    torch.manual_seed(0)
    layer, h = kind(2, 4, dt=1e-6, dtype=F64, **options), 1e-6
    with torch.no_grad():
        if slope is not None:
            layer.weight_hh_l0.fill_(slope)
        if kind is ah.UnICORNN:
            h = h * torch.sigmoid(layer.timescale_l0)
    y, z, u = noise(1, 3, 4, seed=1), noise(1, 3, 4, seed=2), noise(3, 2)
    with torch.no_grad():
        _, after = layer.step(u, (y, z))
    y.requires_grad_(), z.requires_grad_()
    energy = ah.hamiltonian(layer, (y, z), u)
    dy, dz = torch.autograd.grad(energy.sum(), (y, z))
    torch.testing.assert_close(dz, z.detach(), rtol=1e-14, atol=0)
    # The difference of two velocities of order 1 over dt.
    torch.testing.assert_close(-dy, (after.z - z.detach()) / h, rtol=0, atol=1e-8)
    one = ah.hamiltonian(layer, (y[:, 1], z[:, 1]), u[1])
    torch.testing.assert_close(one, energy[:, 1], rtol=1e-12, atol=1e-13)
    assert not ah.hamiltonian(layer, (0 * y, 0 * z), u).any()


def test_residual_stacking_and_unlike_widths():
    """The energy of a layer takes what drives it: skips, and the front of a filled row."""
    torch.manual_seed(0)
    stack = ah.UnICORNN(2, 3, 3, dt=1e-6, skipped_layers=2, dtype=F64)
    uneven = ah.MultiLayerNeuralOscillator(2, 3, 3, hidden_sizes=[5, 4, 3], dt=1e-6, dtype=F64)
    for layer, size in ((stack, 3), (uneven, 5)):
        y, z, u = noise(3, 1, size, seed=1), noise(3, 1, size, seed=2), noise(1, 2)
        y.requires_grad_(), z.requires_grad_()
        energy = ah.hamiltonian(layer, (y, z), u)
        (force,) = torch.autograd.grad(-energy[2, 0], y, retain_graph=True)
        with torch.no_grad():
            _, after = layer.step(u, (y, z))
        h = 1e-6 if layer is uneven else 1e-6 * torch.sigmoid(layer.timescale_l2)
        # The layer below has moved on by dt already: O(dt).
        found = (after.z[2, 0] - z[2, 0].detach())[:3] / h
        torch.testing.assert_close(force[2, 0, :3], found, rtol=0, atol=2e-5)


def test_refusals():
    zero = torch.zeros(1, 3, 4)
    for layer in (ah.NeuralOscillator(2, 4), ah.CoRNN(2, 4), "UnICORNN"):
        with pytest.raises(TypeError, match="layer must be a UnICORNN or a MultiLayer"):
            ah.hamiltonian(layer, (zero, zero), torch.zeros(3, 2))
    with pytest.raises(ValueError, match="bidirectional=True"):
        ah.hamiltonian(ah.UnICORNN(2, 4, bidirectional=True), (zero, zero), torch.zeros(3, 2))
    layer = ah.UnICORNN(2, 4)
    with pytest.raises(ValueError, match=r"state.y must have shape \[1, 5, 4\]"):
        ah.hamiltonian(layer, (zero, zero), torch.zeros(5, 2))
    with pytest.raises(ValueError, match=r"x_t must be of shape \[B, 2\].*; got shape \[3, 3\]"):
        ah.hamiltonian(layer, (zero, zero), torch.zeros(3, 3))
