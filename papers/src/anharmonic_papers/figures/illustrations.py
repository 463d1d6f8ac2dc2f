"""Figures of single trajectories: a few coRNN neurons, and a molecule under GraphCON."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from anharmonic import pages
from anharmonic.nn import GraphCON, make_conv
from anharmonic.ops import Adjacency
from anharmonic.train import RunEnvironment
from anharmonic_papers.figures.base import Curves, Figure, Measured


@dataclass(frozen=True)
class FewOscillators:
    r"""A few coupled oscillators with one input, which motivate coRNN (C, supplement B).

    .. math::
        y' = z, \qquad z' = \sigma(W y + \mathcal{W} z + V u + b) - \gamma y - \epsilon z

    with the time step (2.3):
    :math:`z_n = z_{n-1} + dt\,(\sigma(A_n) - \gamma y_{n-1} - \epsilon z_{n-1})`,
    :math:`y_n = y_{n-1} + dt\, z_n`.

    Args:
        W: The coupling of the positions, a square matrix.
        coupling: The coupling 𝒲 of the velocities, a square matrix.
        V: The weights of the input, one per oscillator.
        bias: The bias b, one per oscillator.
        damping: ε.
        frequency: γ.
        activation: "tanh", "identity", or "duffing", σ(x) = x - x³/3.
        start: Initial positions; velocities start at zero.
    """

    W: tuple[tuple[float, ...], ...] = ((0.0,),)
    coupling: tuple[tuple[float, ...], ...] = ((0.0,),)
    V: tuple[float, ...] = (0.0,)
    bias: tuple[float, ...] = (0.0,)
    damping: float = 0.0
    frequency: float = 1.0
    activation: str = "tanh"
    start: tuple[float, ...] = (0.0,)

    def trajectory(self, inputs: Tensor, dt: float) -> Tensor:
        """Return the positions [T + 1, n] at the times 0, dt, 2 dt, ... of the inputs [T].

        They may become infinite with the activation "duffing", which is unbounded.
        """
        sigma = _SIGMAS[self.activation]
        W, other, V, b, y = (
            torch.tensor(part, dtype=torch.float64)
            for part in (self.W, self.coupling, self.V, self.bias, self.start)
        )
        z, found = torch.zeros_like(y), [y]
        for u in inputs.double():
            force = sigma(W @ y + other @ z + V * u + b)
            z = z + dt * (force - self.frequency * y - self.damping * z)
            y = y + dt * z
            found.append(y)
        return torch.stack(found)


_SIGMAS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "identity": lambda x: x,
    "duffing": lambda x: x - x**3 / 3,
}

_NEURON = FewOscillators(((-2.0,),), ((0.75,),), (2.0,), (0.25,), 0.25, activation="identity")
_PAIR = FewOscillators(
    ((-2.0, 0.0), (3.0, -2.0)),
    ((0.75, 0.0), (-1.0, 0.75)),
    (2.0, 2.0),
    (0.25, 0.25),
    0.25,
    start=(0.0, 0.0),
)

OSCILLATORS: dict[str, FewOscillators] = {
    "SHO": FewOscillators(start=(1.0,)),
    "FHO": FewOscillators(V=(1.0,), activation="identity"),
    "FDO": FewOscillators(V=(1.0,), damping=0.25, activation="identity"),
    "CFDO": _NEURON,
    "coRNN": replace(_NEURON, activation="tanh"),
    "DUFF": replace(_NEURON, activation="duffing"),
    "UC": replace(_PAIR, W=((-2.0, 0.0), (0.0, -2.0)), coupling=((0.75, 0.0), (0.0, 0.75))),
    "ORD": _PAIR,
    "FC": replace(_PAIR, W=((-2.0, 1.0), (3.0, -2.0)), coupling=((0.75, 0.3), (-1.0, 0.75))),
}
"""The simple, forced, forced damped and controlled harmonic oscillator, coRNN's neuron and the
Duffing oscillator; and two coRNN neurons: uncoupled, ordered and fully connected. SHO has no input
and starts at 1. Its W, V and b are zero, so σ has no effect."""

_DT, _END, _LIMIT = 0.02, 20.0, 8.0
_INPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "u = cos 4t": lambda t: (4 * t).cos(),
    "u in steps": lambda t: 1.0 * (t > 2) - 1.5 * (t > 8) + 1.0 * (t > 14),
}
_HELD, _TWO = "one controlled neuron", "second of two coRNN neurons"
_PANELS = {
    "one oscillator": ("SHO", "FHO", "FDO"),
    _HELD: ("CFDO", "coRNN", "DUFF"),
    _TWO: ("UC", "ORD", "FC"),
}


def _heuristics(environment: RunEnvironment) -> Curves:
    t = _DT * torch.arange(1, round(_END / _DT) + 1, dtype=torch.float64)
    values: dict[str, list[float]] = {}
    places: dict[str, list[float]] = {}
    for said, source in _INPUTS.items():
        inputs = source(t)
        for part, names in _PANELS.items():
            for name in names:
                path = OSCILLATORS[name].trajectory(inputs, _DT)[:, -1]
                kept = torch.where(path.abs() > _LIMIT, torch.nan, path)[::5].tolist()
                values[f"{part}, {said}: {name}"] = kept
                places[f"{part}, {said}: {name}"] = [5 * _DT * k for k in range(len(kept))]
        values[f"{said}: u"] = inputs[4::5].tolist()
        places[f"{said}: u"] = t[4::5].tolist()
    return Curves(values, places)


def _heuristics_picture(figure: Figure, found: Measured) -> Any:
    drawn, axes = pages.panels(6, height=2.6, width=8.4)
    spots = iter(axes)
    for said in _INPUTS:
        for part, names in _PANELS.items():
            curves = {name: f"{part}, {said}: {name}" for name in names}
            axis = next(spots)
            shown = {name: (found.at(key), found.curves[key]) for name, key in curves.items()}
            key = f"{said}: u"
            axis.plot(found.at(key), found.curves[key], color="0.75", lw=0.8, zorder=0)
            pages.lines(axis, shown, x=figure.x, y=figure.y, title=f"{part}\n{said} (grey)")
            axis.set_ylim(-2.6, 2.6)
    return drawn


# Bonds and elements of COCc1ccc(C(=O)Oc2ccc(F)cc2)cc1, the second validation molecule of ZINC-12k.
_ATOMS = "COCCCCCCOOCCCCFCCCC"
_BONDS = (
    (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (7, 9), (9, 10), (10, 11),
    (11, 12), (12, 13), (13, 14), (13, 15), (15, 16), (6, 17), (17, 18), (18, 3), (16, 10),
)  # fmt: skip
_LAYERS, _STEP, _SHOWN = 400, 0.05, 20.0


def _layout() -> Tensor:
    """Return positions in the plane by minimising the stress against the distances along bonds."""
    size = len(_ATOMS)
    bonds = torch.zeros(size, size)
    bonds[tuple(torch.tensor(_BONDS).t())] = 1.0
    far = torch.from_numpy(shortest_path(bonds.numpy(), directed=False, unweighted=True))
    weight = torch.where(far > 0, far.clamp(min=1.0) ** -2, 0.0)
    angle = torch.arange(size, dtype=torch.float64) * 2 * math.pi / size
    where = 3 * torch.stack([angle.cos(), angle.sin()], dim=1)
    laplacian = torch.diag(weight.sum(1)) - weight
    inverse = torch.linalg.pinv(laplacian)
    for _ in range(500):  # majorisation: every sweep lowers the stress
        apart = (where[:, None] - where).norm(dim=-1)
        pull = torch.where(apart > 0, -weight * far / apart.clamp(min=1e-12), 0.0)
        pull = pull - torch.diag(pull.sum(1))
        where = inverse @ pull @ where
    where = where - where.mean(0)
    return where / where.abs().max()


def _molecule(environment: RunEnvironment) -> Curves:
    there, back = torch.tensor(_BONDS).t(), torch.tensor(_BONDS).t().flip(0)
    graph = Adjacency(torch.cat([there, back], dim=1), len(_ATOMS))
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(0)
        conv = make_conv("GCN", 2).double()
        model = GraphCON(conv, _LAYERS, dt=_STEP, damping=0.0, activation="tanh")
        _, states = model(_layout(), graph, return_states=True)
    values = {}
    for n in range(len(_ATOMS)):
        for axis, name in enumerate("xy"):
            values[f"{_ATOMS[n]}{n} {name}"] = states.x[::4, n, axis].tolist()
    times = [4 * _STEP * k for k in range(_LAYERS // 4 + 1)]
    return Curves(values, dict.fromkeys(values, times))


def _molecule_picture(figure: Figure, found: Measured) -> Any:
    drawn, axes = pages.panels(3, height=3.0, width=8.4)
    names = [f"{element}{n}" for n, element in enumerate(_ATOMS)]
    times = found.at(f"{names[0]} x")
    elements = {"C": "carbon", "O": "oxygen", "F": "fluorine"}
    for axis, when in zip(axes, (0.0, _SHOWN), strict=False):
        row = min(range(len(times)), key=lambda k: abs(times[k] - when))
        where = [(found.curves[f"{n} x"][row], found.curves[f"{n} y"][row]) for n in names]
        kinds = [elements[element] for element in _ATOMS]
        pages.network(axis, where, _BONDS, kinds=kinds, title=f"positions at t = {when:g}")
    shown = {n: (times, found.curves[f"{n} x"]) for n in (names[0], names[8], names[14])}
    pages.lines(axes[2], shown, x=figure.x, y="feature 1", title="three nodes over time")
    return drawn


FIGURES = (
    Figure(
        id="cornn-single-neuron-heuristics",
        title="One and two oscillators answering an input",
        source="coRNN paper, supplement B, Figure 4",
        x="time t",
        y="position y",
        outcomes={
            f"{part}, {said}: {name}": text
            for said in _INPUTS
            for part, name, text in (
                (_HELD, "CFDO", "superposition of frequencies"),
                (_HELD, "coRNN", "superposition of frequencies"),
                (_HELD, "DUFF", "heavily damped, can blow up"),
                (_TWO, "ORD", "superposition; approximates a step"),
                (_TWO, "FC", "superposition of frequencies"),
            )
        },
        measure=_heuristics,
        marks=(0, 5, 10, 15, 19.9),
        note=(
            "Scheme (2.3) with dt = 0.02. The paper prints the oscillators' parameters, not the "
            "steps of the input nor the initial values: ours rise by 1 at t = 2, fall by 1.5 at 8 "
            "and rise by 1 at 14; all start at rest at 0, SHO, which has no input, at 1. With the "
            "parameters printed the controlled linear oscillator grows, because its damping ε - 𝒲 "
            "is negative, and Duffing's leaves every bound, here for both inputs. A curve "
            f"ends where it leaves [-{_LIMIT:g}, {_LIMIT:g}]."
        ),
        draw=_heuristics_picture,
    ),
    Figure(
        id="graphcon-molecule-illustration",
        title="A molecule's positions carried by GraphCON-GCN with random weights",
        source="thesis Figure 7.1",
        x="time t",
        y="position",
        outcomes=dict.fromkeys(["C0 x", "C0 y", "O8 x", "F14 x"], "oscillates"),
        measure=_molecule,
        marks=(0, 5, 10, 15, 20),
        note=(
            "A molecule of ZINC with 19 heavy atoms (the thesis does not say which), its initial "
            "positions a drawing in the plane, initial velocities equal to them; one GCN, width "
            "2, seed 0; σ = tanh, γ = 1, α = 0, 400 layers of dt = 0.05 (the thesis prints no dt)."
        ),
        draw=_molecule_picture,
    ),
)
