"""Layers whose steps are compiled when they are first called, beside their loops and `nn.LSTM`.

    python benchmarks/compiled_layers.py [--rounds 5] [--only TEXT]
    python benchmarks/compiled_layers.py --memory

Prints the milliseconds of a training step on one thread (forward and backward in float32), medians
of turns in one process: FastGRNN, SkewRNN, ResonatorBank, LinOSS and velocity Verlet of this
package, a cell of one's own from the documentation, the models that the papers compare with (where
anharmonic-papers is installed), and the cell's loop under `torch.compile`, 25 steps at a time.
`--memory` prints the peak memory of one step of the cell through a million time steps instead.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn

import anharmonic as ah
from anharmonic import diagnostics
from anharmonic.nn import HiddenState, StepLayer
from harness import isolated

SIZES = ((32, 128, 1000), (8, 32, 17_984))
"""Batch, hidden size and steps; as many inputs as neurons."""
CHUNK = 25


class MinimalGate(StepLayer):
    """h' = (1 - z) h + z tanh(V x + W (z h) + b), z = sigmoid(V_z x + W_z h + b_z)."""

    def __init__(self, input_size, hidden_size, num_layers=1, **options):
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.make_parameters()

    def parameter_shapes(self, input_size):
        """V over V_z, W and W_z, and the biases."""
        H = self.hidden_size
        return {"weight_ih": (2 * H, input_size), "W": (H, H), "W_z": (H, H), "bias": (2 * H,)}

    def step_function(self, u, state, w, dt):
        """One step."""
        new, gate = u.chunk(2, dim=1)
        z = torch.sigmoid(gate + state.h @ w.W_z.T)
        return HiddenState(torch.lerp(state.h, torch.tanh(new + (z * state.h) @ w.W.T), z))


class Chunks(nn.Module):
    """The loop of a layer, 25 steps at a time, for `torch.compile`."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.chunk = torch.compile(self._chunk)

    def _chunk(self, u: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        w, outputs = self.layer.layer_weights(), []
        for u_t in u.unbind(0):
            h = self.layer.step_function(u_t, HiddenState(h), w, 1.0).h
            outputs.append(h)
        return torch.stack(outputs), h

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """All steps."""
        u = self.layer.drive(x, self.layer.layer_weights())
        h, outputs = x.new_zeros(x.shape[1], self.layer.hidden_size), []
        for part in u.split(CHUNK):
            output, h = self.chunk(part, h)
            outputs.append(output)
        return torch.cat(outputs), h


def models(hidden):
    """Makers of layers by name."""
    wide = (hidden, hidden)
    made = {
        "a gate of one's own": lambda: MinimalGate(*wide),
        "FastGRNN": lambda: ah.FastGRNN(*wide),
        "SkewRNN": lambda: ah.SkewRNN(*wide),
        "ResonatorBank": lambda: ah.ResonatorBank(*wide),
        "LinOSS": lambda: ah.LinOSS(*wide),
        "D-LinOSS": lambda: ah.LinOSS(*wide, scheme="implicit-explicit", damping=True),
        "velocity Verlet": lambda: ah.NeuralOscillator(*wide, scheme="velocity-verlet"),
        "LinOSSNetwork, 2 blocks": lambda: ah.LinOSSNetwork(*wide),
    }
    for name in ("AntisymmetricRNN", "IndRNN", "LipschitzRNN", "ExpRNN"):
        if name in ah.list_models():
            made[name] = lambda name=name: getattr(ah, name)(*wide)
    return made


def training_step(layer, x):
    """Seconds of one."""
    began = time.perf_counter()
    layer.zero_grad()
    layer(x)[0].square().mean().backward()
    return time.perf_counter() - began


def set_compiled(module, compiled):
    """Say of every layer inside whether it is compiled."""
    for part in module.modules():
        if isinstance(part, ah.nn.SequenceLayer):
            part.compiled = compiled
    return module


def measured(make, x, rounds):
    """Milliseconds compiled and as a loop, and seconds of the first call."""
    torch.manual_seed(0)
    compiled, loop = set_compiled(make(), "auto"), set_compiled(make(), False)
    first = training_step(compiled, x)
    short = len(x) > 5000
    turns = {"compiled": [], "loop": []}
    for number in range(rounds):
        turns["compiled"].append(training_step(compiled, x))
        if number < (1 if short else 2):
            turns["loop"].append(training_step(loop, x))
    return [1e3 * statistics.median(turns[name]) for name in turns], first


def peak_of_a_long_step(steps, memory="chunked", hidden=32):
    """MB of memory that one training step takes beyond its input, with the loss on the last state.

    Call it in a process of its own. A short step comes first and compiles the cell.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer, x = MinimalGate(1, hidden, memory=memory), torch.randn(steps, 1, 1)

    def step(x):
        layer.zero_grad()
        layer(x, output="none")[1].h.sum().backward()

    step(x[:64])
    diagnostics.reset_peak_memory("cpu")
    before = diagnostics.peak_memory_mb("cpu")
    step(x)
    return diagnostics.peak_memory_mb("cpu") - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of a layer's name")
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 1], help="which sizes")
    parser.add_argument("--memory", action="store_true", help="the peak of a long sequence")
    asked = parser.parse_args()
    if asked.memory:
        peak = isolated.run("the cell", "compiled_layers:peak_of_a_long_step", steps=1_000_000)
        print(f"B 1, H 32, T 1,000,000, chunked: {peak:.1f} MB")
        return
    torch.set_num_threads(1)
    for batch, hidden, steps in (SIZES[k] for k in asked.sizes):
        x = torch.randn(steps, batch, hidden)
        lstm, times = nn.LSTM(hidden, hidden), []
        print(f"\nB {batch}, H {hidden}, T {steps:,}\n")
        print("| layer | compiled, ms | loop | loop / compiled | nn.LSTM / compiled | first, s |")
        print("| --- |" + " ---: |" * 5)
        for name, make in models(hidden).items():
            if asked.only not in name:
                continue
            times += [training_step(lstm, x) for _ in range(2)]
            (ms, loop), first = measured(make, x, asked.rounds)
            ratio = 1e3 * statistics.median(times) / ms
            print(
                f"| {name} | {ms:.0f} | {loop:.0f} | {loop / ms:.1f} | {ratio:.1f} | {first:.1f} |",
                flush=True,
            )
        if asked.only in "torch.compile" and steps < 5000:
            chunks = Chunks(MinimalGate(hidden, hidden))
            first = training_step(chunks, x)
            ms = 1e3 * statistics.median(training_step(chunks, x) for _ in range(asked.rounds))
            ratio = 1e3 * statistics.median(times) / ms
            print(
                f"| a gate of one's own, torch.compile | {ms:.0f} | | | {ratio:.1f} | {first:.1f} |"
            )
        print(f"| nn.LSTM | {1e3 * statistics.median(times):.0f} | | | | |", flush=True)


if __name__ == "__main__":
    main()
