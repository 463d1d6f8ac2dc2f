"""A delay written down as a network of oscillators: its error against its width.

Nothing is trained. The first layer of 23 T/e oscillators computes sine transforms of the input,
from which the input of 0.5 ago is read; the last two, an integrator and as many oscillators again,
are what a nonlinear operator would need, here for the identity (theorem 4.2.1 of the thesis). What
is read is smoothed over e and so lags behind; reading the first layer that much earlier cures it.

    python papers/examples/causal_operator.py --smallest 0.04 --picture operator.png
"""

import argparse
from pathlib import Path

import torch

from anharmonic_papers.theory.networks import identity
from anharmonic_papers.theory.operators import delay, function
from anharmonic_papers.theory.oscillator_networks import before, chain
from anharmonic_papers.theory.oscillators import errors_by_width

TAU, END, SCALE = 0.5, 1.5, 1e-4


def u(t):
    """A swelling wave."""
    return (t**2 * torch.sin(3 * t))[:, None]


def network(inverse, lag, earlier):
    first = delay(inverse, TAU - earlier, SCALE)
    return chain(first, function(identity(1, 1e-2), inverse, lag, SCALE))


def as_proved(inverse, lag):
    return network(inverse, lag, 0.0)


def read_earlier(inverse, lag):
    return network(inverse, lag, inverse.smoothing + lag)


def errors(smoothings):
    """Neurons and errors, by name of the network."""
    networks = {"as the proof builds it": as_proved, "read earlier by its lag": read_earlier}
    return {
        name: errors_by_width(build, before(u, TAU), (u, END, smoothings))
        for name, build in networks.items()
    }


def draw(path, found):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.6), dpi=110)
    for (name, (neurons, error)), colour in zip(found.items(), ("#d94801", "#2171b5"), strict=True):
        axes.plot(neurons, error, "o-", color=colour, lw=1.8, label=name)
    axes.set(xscale="log", yscale="log", xlabel="neurons", ylabel="largest error of u(t - 0.5)")
    axes.grid(color="0.92", which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smallest", type=float, default=0.15, help="the smallest smoothing e")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    smoothings = [0.32]
    while smoothings[-1] / 2 >= arguments.smallest:
        smoothings.append(smoothings[-1] / 2)
    found = errors(smoothings)
    for name, (neurons, error) in found.items():
        for m, off in zip(neurons.tolist(), error.tolist(), strict=True):
            print(f"{name:24s} {m:5d} neurons, error {off:.4f}")
    if arguments.picture is not None:
        draw(arguments.picture, found)


if __name__ == "__main__":
    main()
