"""What undoing UnICORNN's steps in plain floating point does to gradients, beside the grid.

The backward pass needs the states of every step. UnICORNN's step can be undone, so they could be
rebuilt from the last one instead of kept. In floating point the rebuilt states differ from those
that were there by rounding, and the difference grows on the way back. On a grid of multiples of
2^-40 (``memory="reversible"``) a step is undone exactly. Here both are written out in NumPy, for
one layer; the input of every neuron has variance 1, either independent from step to step or smooth
(correlated over 100 steps, as recordings of movement are).

    python examples/inversion_drift.py --steps 17984 --picture drift.png   # a minute
"""

import argparse
from pathlib import Path

import numpy as np

GRID = 2.0**-40
SETTINGS = [  # largest step dt, frequency α, steps over which the input is correlated
    (0.0343, 0.0, 0),
    (0.0343, 0.0, 100),
    (0.45, 12.5, 0),
    (0.45, 12.5, 100),
]


class Neurons:
    """One layer: z -= h (tanh(w y + x) + α y), y += h z, with h = dt sigmoid(c), in one dtype."""

    def __init__(self, dt, alpha, correlated, steps, grid=False, dtype=np.float32):
        rng = np.random.default_rng(0)
        batch, hidden = 8, 32
        w, c = rng.uniform(0, 1, hidden), rng.uniform(-0.1, 0.1, hidden)
        x = rng.standard_normal((steps, batch, hidden))
        if correlated:
            keep = 1 - 1 / correlated
            for n in range(1, steps):
                x[n] = keep * x[n - 1] + np.sqrt(1 - keep**2) * x[n]
        gate = 1 / (1 + np.exp(-c))
        self.w, self.h, self.x = w.astype(dtype), (dt * gate).astype(dtype), x.astype(dtype)
        self.slope = (dt * gate * (1 - gate)).astype(dtype)  # dh/dc
        self.alpha, self.dtype = dtype(alpha), dtype
        self.rounded = to_grid if grid else lambda v: v
        self.start = np.zeros((batch, hidden), np.float64 if grid else dtype)

    def drop(self, x, y):
        """By how much z falls in a step; y in the dtype of the layer, as everything but states."""
        y = y.astype(self.dtype)
        return self.rounded(self.h * (np.tanh(self.w * y + x) + self.alpha * y))

    def rise(self, z):
        """By how much y rises in a step."""
        return self.rounded(self.h * z.astype(self.dtype))

    def forward(self):
        """The states (y, z) of every step, the initial ones first."""
        y = z = self.start
        states = [(y, z)]
        for x in self.x:
            z = z - self.drop(x, y)
            y = y + self.rise(z)
            states.append((y, z))
        return states

    def undone(self, y, z):
        """The same states from the last to the first, rebuilt from the last alone."""
        yield y, z
        for x in self.x[::-1]:
            y = y - self.rise(z)
            z = z + self.drop(x, y)
            yield y, z

    def gradient(self, states):
        """Gradients [3, H] of w, c and the bias; the loss is the sum of the last y over the batch.

        ``states`` come from the last to the first: (y_N, z_N), ..., (y_0, z_0).
        """
        states = iter(states)
        z = next(states)[1].astype(self.dtype)
        dy, dz = np.ones_like(z), np.zeros_like(z)
        total = np.zeros((3, *z.shape))
        for x, (y, z_before) in zip(self.x[::-1], states, strict=True):
            y = y.astype(self.dtype)
            t = np.tanh(self.w * y + x)
            dz = dz + self.h * dy
            a = -dz * self.h * (1 - t * t)
            total += a * y, self.slope * (dy * z - dz * (t + self.alpha * y)), a
            dy = dy + a * self.w - dz * self.h * self.alpha
            z = z_before.astype(self.dtype)
        return total.sum(1)


def to_grid(v):
    """Rounds to the nearest multiple of 2^-40, ties to even."""
    shift = 6755399441055744 * GRID
    return (v.astype(np.float64) + shift) - shift


def relative(gradient, truth):
    """Largest of the relative errors of the three gradients."""
    return float(np.max(np.linalg.norm(gradient - truth, axis=1) / np.linalg.norm(truth, axis=1)))


def compare(setting, steps, grid):
    """Errors by step of the rebuilt y, and of the gradients: rebuilt, and both against float64."""
    neurons = Neurons(*setting, steps, grid)
    states = neurons.forward()
    size = np.sqrt(np.mean([np.mean(y**2) for y, _ in states]))
    rebuilt = list(neurons.undone(*states[-1]))
    off = [
        np.sqrt(np.mean((y - kept) ** 2)) / size
        for (y, _), (kept, _) in zip(rebuilt, states[::-1], strict=True)
    ]
    stored = neurons.gradient(states[::-1])
    inverted = neurons.gradient(rebuilt)
    exact = Neurons(*setting, steps, dtype=np.float64)
    truth = exact.gradient(exact.forward()[::-1])
    return {
        "state": off,
        "gradient": relative(inverted, stored),
        "stored": relative(stored, truth),
        "inverted": relative(inverted, truth),
    }


def name(setting):
    dt, alpha, correlated = setting
    return f"dt {dt:g}, α {alpha:g}, {'smooth' if correlated else 'white'} input"


def table(steps):
    """The numbers of the documentation page, in Markdown."""
    print(f"Relative errors after {steps} steps, float32:\n")
    heads = "states | state: rebuilt | gradient: rebuilt | rebuilt, of float64 | stored, of float64"
    print(f"| | {heads} |")
    print("| --- | --- | --- | --- | --- | --- |")
    for setting in SETTINGS:
        for grid in (False, True):
            found = compare(setting, steps, grid)
            kind = "grid" if grid else "plain"
            print(
                f"| {name(setting)} | {kind} | {max(found['state']):.2g} | "
                f"{found['gradient']:.2g} | {found['inverted']:.2g} | {found['stored']:.2g} |",
                flush=True,
            )


def draw(path, steps):
    """States on the way back, and gradients by length: plain inversion and grid."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    floor = 3e-9
    lengths = [n for n in (500, 1000, 2000, 4000, 8000) if n < steps] + [steps]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, dpi=100)
    for colour, setting in zip(("#9ecae1", "#2171b5", "#fdae6b", "#d94801"), SETTINGS, strict=True):
        found = [compare(setting, n, grid=False) for n in lengths]
        assert compare(setting, lengths[0], grid=True)["gradient"] == 0
        off = np.array(found[-1]["state"])
        left.plot(np.arange(1, steps + 1), off[1:], color=colour, lw=1.6)
        errors = [one["gradient"] for one in found]
        right.plot(lengths, errors, "o-", color=colour, lw=1.6, ms=4, label=name(setting))
    for axes, title, label in (
        (left, "Rebuilt state", "steps undone"),
        (right, "Gradient from rebuilt states", "length of the sequence"),
    ):
        axes.set_yscale("log")
        axes.set_ylim(floor / 2, 10)
        axes.axhline(1, color="0.4", lw=0.8, ls=":")
        axes.axhline(floor, color="#238b45", lw=3)
        axes.text(steps, floor * 1.5, "on the grid: exactly 0", color="#238b45", ha="right")
        axes.set_xlim(0, steps * 1.02)
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.grid(axis="y", color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
    left.text(steps * 0.01, 1.3, "as wrong as it is large", color="0.4", fontsize=8)
    left.set_ylabel("relative error against stored states")
    figure.legend(loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    table(arguments.steps)
    if arguments.picture is not None:
        draw(arguments.picture, arguments.steps)


if __name__ == "__main__":
    main()
