"""Energies of undamped oscillators: the work of a force, and equations of motion."""

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
