"""A recurrence of one's own, trained on handwritten digits beside LEM and a GRU.

Digits of 8 x 8 pixels come pixel by pixel, 64 steps. The cell is a GRU without its reset gate, and
its state is normalised. It is compiled when it is first called; with `--loop` it runs as the loop
in PyTorch.

    python examples/own_recurrence.py             # a minute
    python examples/own_recurrence.py --loop
"""

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn

import anharmonic as ah
from anharmonic.nn import HiddenState, SequenceLayer


class NormedGate(SequenceLayer):
    """h' = norm((1 - z) h + z tanh(V x + W h + b)), z = sigmoid(V_z x + W_z h + b_z)."""

    def __init__(self, input_size, hidden_size, num_layers=1, **options):
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.make_parameters()

    def parameter_shapes(self, input_size):
        """V over V_z, W over W_z, and the biases."""
        H = self.hidden_size
        return {"weight_ih": (2 * H, input_size), "weight_hh": (2 * H, H), "bias": (2 * H,)}

    def step_function(self, u, state, w, dt):
        """The equation above."""
        new, gate = (u + state.h @ w.weight_hh.T).chunk(2, dim=1)
        h = torch.lerp(state.h, torch.tanh(new), torch.sigmoid(gate))
        return HiddenState(h / (h.square().mean(dim=1, keepdim=True) + 1e-3).sqrt())


def trained(layer, epochs, seed):
    """Accuracy on the test part, in percent, and seconds of training."""
    torch.manual_seed(seed)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32)[:, :, None] / 16
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1234))
    (x_train, x_test), (y_train, y_test) = (
        x[order].split([1400, 397]),
        torch.tensor(y)[order].split([1400, 397]),
    )
    readout = nn.Linear(64, 10)
    optimiser = torch.optim.Adam([*layer.parameters(), *readout.parameters()], 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    began = time.perf_counter()
    for _ in range(epochs):
        for rows in torch.randperm(len(x_train)).split(50):
            output, _ = layer(x_train[rows])
            loss = nn.functional.cross_entropy(readout(output[:, -1]), y_train[rows])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimiser.step()
        schedule.step()
    seconds = time.perf_counter() - began
    with torch.no_grad():
        right = readout(layer(x_test)[0][:, -1]).argmax(1) == y_test
    return 100 * float(right.float().mean()), seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loop", action="store_true", help="do not compile the cell")
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    layers = {
        "own cell": NormedGate(1, 64, batch_first=True, compiled=False if asked.loop else "auto"),
        "LEM": ah.LEM(1, 64, batch_first=True),
        "nn.GRU": nn.GRU(1, 64, batch_first=True),
    }
    for name, layer in layers.items():
        accuracy, seconds = trained(layer, asked.epochs, asked.seed)
        print(f"{name:10} {accuracy:5.1f} % of 397 digits right, {seconds:5.1f} s", flush=True)
    ah.explain(layers["own cell"])


if __name__ == "__main__":
    main()
