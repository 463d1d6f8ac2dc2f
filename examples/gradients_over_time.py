"""How far back a loss sees before any training: an LSTM, a tanh network and the models here.

The gradient of the last step's loss in the state k steps before, for random inputs and the initial
weights of each layer. An exponential decay means that what happened k steps ago cannot be learned.

    python examples/gradients_over_time.py --steps 1000 --picture gradients.svg   # half a minute
"""

import argparse
from pathlib import Path

import torch

import anharmonic as ah
from anharmonic.diagnostics import state_gradients
from anharmonic.pages import lines, panels, save

LAYERS = {
    "torch.nn.RNN": lambda: torch.nn.RNN(1, 64),
    "torch.nn.LSTM": lambda: torch.nn.LSTM(1, 64),
    "CoRNN, dt = 0.02": lambda: ah.CoRNN(1, 64, dt=0.02),
    "UnICORNN, dt = 0.1": lambda: ah.UnICORNN(1, 64, dt=0.1),
    "LEM, dt = 0.02": lambda: ah.LEM(1, 64, dt=0.02),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    curves = {}
    for name, make in LAYERS.items():
        torch.manual_seed(0)
        layer, x = make(), torch.randn(arguments.steps, 8, 1)
        sizes = state_gradients(layer, x).median(1).values
        sizes = sizes / sizes[0]
        curves[name] = (range(len(sizes)), sizes.tolist())
        print(f"{name:20s} {sizes[-1]:9.2e} of the gradient is left {len(sizes) - 1} steps back")
    if arguments.picture is not None:
        figure, (axes,) = panels(1, height=3.4)
        words = {"x": "distance k in steps", "y": "|∂loss_N/∂state_(N-k)|, relative to k = 0"}
        lines(axes, curves, **words, log="y", low=1e-20)
        save(figure, arguments.picture)


if __name__ == "__main__":
    main()
