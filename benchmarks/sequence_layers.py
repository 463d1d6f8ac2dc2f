"""Time of one training step (forward and backward) of our layers beside ``torch.nn.LSTM``.

Layers take turns within one process; printed are medians and the ratio to the LSTM of equal width.

    python benchmarks/sequence_layers.py [--repeats 7] [--threads 1]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

import anharmonic as ah

SIZES = [  # batch, steps, inputs, hidden
    (8, 2000, 6, 32),
    (32, 1000, 1, 16),
    (50, 500, 2, 128),
]


def seconds(layer: torch.nn.Module, x: torch.Tensor) -> float:
    start = time.perf_counter()
    output, _ = layer(x)
    output.sum().backward()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {arguments.threads} thread(s), float32, seconds a step")
    for batch, steps, inputs, hidden in SIZES:
        x = torch.randn(steps, batch, inputs)
        layers = {
            "nn.LSTM": torch.nn.LSTM(inputs, hidden),
            "CoRNN": ah.CoRNN(inputs, hidden),
            "UnICORNN": ah.UnICORNN(inputs, hidden),
            "LEM": ah.LEM(inputs, hidden, dt=0.5),
        }
        taken: dict[str, list[float]] = {name: [] for name in layers}
        for turn in range(arguments.repeats + 1):
            for name, layer in layers.items():
                value = seconds(layer, x)
                if turn:  # the first turn warms up
                    taken[name].append(value)
        peer = statistics.median(taken["nn.LSTM"])
        print(f"B {batch}, T {steps}, F {inputs}, H {hidden}")
        for name, values in taken.items():
            median = statistics.median(values)
            print(f"  {name:9s} {median:7.3f} s   {median / peer:5.1f} x nn.LSTM")


if __name__ == "__main__":
    main()
