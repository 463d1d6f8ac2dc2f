"""A GRU written as one step: compiled, as a loop in PyTorch, and `torch.nn.GRU`.

python benchmarks/recurrence.py

Prints the median milliseconds of a training step on one thread, and how often the compiled step
fits into the others. All take turns in one process.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import torch

from anharmonic import recurrence
from harness.speed import take_turns

SIZES = ((32, 128, 1000), (8, 32, 1000), (8, 32, 17_984))
"""Batch, hidden size and steps."""


def gru(u: torch.Tensor, h: torch.Tensor, w: dict[str, torch.Tensor]) -> torch.Tensor:
    """One step of a GRU, as ``torch.nn.GRU`` has it."""
    from_u, from_h = u @ w["V"] + w["b"], h @ w["W"] + w["c"]
    r_u, z_u, n_u = from_u.chunk(3, 1)
    r_h, z_h, n_h = from_h.chunk(3, 1)
    new = torch.tanh(n_u + torch.sigmoid(r_u + r_h) * n_h)
    return torch.lerp(new, h, torch.sigmoid(z_u + z_h))


def measure(batch: int, hidden: int, steps: int, rounds: int) -> dict[str, float]:
    """Median seconds of a training step, by who makes it; they must agree first."""
    torch.manual_seed(0)
    layer = torch.nn.GRU(6, hidden)
    weights = {
        "V": layer.weight_ih_l0.detach().T.contiguous().requires_grad_(),
        "W": layer.weight_hh_l0.detach().T.contiguous().requires_grad_(),
        "b": layer.bias_ih_l0.detach().clone().requires_grad_(),
        "c": layer.bias_hh_l0.detach().clone().requires_grad_(),
    }
    compiled, loop = recurrence(gru, compiled=True), recurrence(gru, compiled=False)
    x, h = torch.randn(steps, batch, 6), torch.zeros(batch, hidden)
    turns = {
        "compiled": lambda: compiled(x, h, weights)[0].square().mean().backward(),
        "loop": lambda: loop(x, h, weights)[0].square().mean().backward(),
        "nn.GRU": lambda: layer(x)[0].square().mean().backward(),
    }
    torch.testing.assert_close(compiled(x, h, weights)[0], layer(x)[0], rtol=1e-4, atol=1e-5)
    found = take_turns(turns, lambda number: number <= rounds)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of which the median is taken")
    parser.add_argument("--quick", action="store_true", help="one small size, to try it")
    arguments = parser.parse_args(words)
    torch.set_num_threads(1)
    print(
        "| batch, units, steps | compiled | loop | nn.GRU | loop / compiled | nn.GRU / compiled |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for size in ((2, 4, 20),) if arguments.quick else SIZES:
        found = measure(*size, arguments.rounds)
        times = " | ".join(f"{1e3 * seconds:.1f} ms" for seconds in found.values())
        ours = found["compiled"]
        ratios = f"{found['loop'] / ours:.1f} | {found['nn.GRU'] / ours:.1f}"
        print(f"| {', '.join(f'{n:,}' for n in size)} | {times} | {ratios} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
