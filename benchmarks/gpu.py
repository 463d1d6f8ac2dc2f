"""Training steps on a GPU beside cuDNN's LSTM, checked first, with the limits of the device.

Each case is first checked against float64, then timed with CUDA events, called directly and
captured in a CUDA graph. The time of a single sequence stands beside it as a lower bound.
"""

from __future__ import annotations

import copy
import functools
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

import anharmonic as ah
from anharmonic import diagnostics
from harness.results import Result, duration, markdown_table, plural
from harness.speed import no_garbage_collection, training_step

PACKAGES = ("torch", "triton")
PAGES = {"gpu": ("docs/gpu.md",)}
LSTM, OURS = "LSTM", "ours"
GRAPH = ", captured"
REPEATS = 20
BOUNDS = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 1e-1}
"""Errors that a check allows, relative to the largest entry, over 600 steps."""


@dataclass(frozen=True)
class Case:
    """One comparison; the precision is that of products, in bfloat16 of all of the LSTM."""

    model: str
    batch: int
    hidden: int
    layers: int
    steps: int
    inputs: int = 1
    precision: str = "float32"
    memory: str = "auto"

    @property
    def title(self) -> str:
        """The case in words."""
        layers = plural(self.layers, "layer")
        sizes = f"B {self.batch}, H {self.hidden}, T {self.steps:,}"
        memory = "" if self.memory == "auto" else f", {self.memory}"
        return f"{self.model}, {layers}, {sizes}, {self.precision}{memory}"


_BIG: dict[str, Any] = {"batch": 128, "hidden": 256, "layers": 3, "steps": 1000}
_LONG: dict[str, Any] = {"batch": 8, "hidden": 32, "layers": 2, "steps": 17_984, "inputs": 6}
_MEDIUM: dict[str, Any] = {"batch": 32, "hidden": 128, "layers": 1, "steps": 1000}
CASES = (
    Case("UnICORNN", **_BIG),
    Case("UnICORNN", **_BIG, precision="tf32"),
    Case("UnICORNN", **_LONG),
    Case("UnICORNN", **_LONG, memory="chunked"),
    Case("CoRNN", **_MEDIUM, precision="bfloat16"),
    Case("CoRNN", **{**_MEDIUM, "hidden": 64}),
    Case("CoRNN", **_MEDIUM),
    Case("LEM", **_MEDIUM, precision="bfloat16"),
    Case("LEM", **{**_MEDIUM, "hidden": 64}),
    Case("LEM", **_MEDIUM),
)


def layer_of(case: Case) -> nn.Module:
    """The layer of a case, with fixed weights, on the CPU in float32."""
    torch.manual_seed(0)
    return getattr(ah, case.model)(case.inputs, case.hidden, case.layers, memory=case.memory)


def error_of(case: Case, device: str = "cuda", steps: int = 600) -> float:
    """The largest relative error of outputs and gradients beside float64 on the CPU."""
    layer = layer_of(case)
    exact = copy.deepcopy(layer).double()
    x = torch.randn(min(steps, case.steps), min(case.batch, 8), case.inputs)
    results = []
    for one, source, precision in (
        (layer.to(device), x.to(device), case.precision),
        (exact, x.double(), "float32"),
    ):
        source.requires_grad_()
        with ah.use_precision(precision):
            output, _ = one(source)
        (output * torch.linspace(-1, 1, output.numel()).to(output).view_as(output)).sum().backward()
        gradients = [source.grad, *(p.grad for p in one.parameters())]
        results.append([t.detach().cpu().double() for t in (output, *gradients)])
    pairs = zip(*results, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-30)) for a, b in pairs)


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    if not torch.cuda.is_available():
        print("gpu needs a CUDA device; none is here; nothing was timed.")
        sys.exit(2)
    chosen = [replace(case, steps=100) if options.quick else case for case in CASES]
    return {case.title: functools.partial(measure, case) for case in chosen}


def measure(case: Case) -> Result:
    """Check and time a case.

    One sequence is timed as well: its steps wait for each other, whatever the batch.
    """
    small = replace(case, batch=1, hidden=32 if case.model == "UnICORNN" else case.hidden)
    x = torch.randn(case.steps, 1, case.inputs, device="cuda")
    return {
        "device": f"{diagnostics.hardware('cuda')}, CUDA {torch.version.cuda}",
        "error": error_of(case),
        "bound": BOUNDS[case.precision],
        **_times(case),
        "one_sequence": _turns({OURS: _captured(_ours(small, x))})[OURS],
    }


def _ours(case: Case, x: Tensor) -> Callable[[], Any]:
    return ah.use_precision(case.precision)(training_step(layer_of(case).cuda(), x))


def _captured(step: Callable[[], Any]) -> Callable[[], Any]:
    """The same step as a CUDA graph."""
    stream: Any = torch.cuda.Stream
    side = stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _times(case: Case) -> dict[str, Any]:
    """Seconds of both entrants, called and captured, and peak megabytes of a step."""
    half = case.precision == "bfloat16"
    rnn: Any = torch.backends.cudnn.rnn  # uses tf32 by default
    before, rnn.fp32_precision = rnn.fp32_precision, "tf32" if case.precision == "tf32" else "ieee"
    try:
        x = torch.randn(case.steps, case.batch, case.inputs, device="cuda")
        lstm = nn.LSTM(case.inputs, case.hidden, case.layers).cuda()
        given = x.bfloat16() if half else x
        if half:
            lstm = lstm.bfloat16()
            lstm.flatten_parameters()  # else cuDNN copies the weights at every call
        steps = {LSTM: training_step(lstm, given), OURS: _ours(case, x)}
        memory = {}
        for name, step in steps.items():
            step()
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            step()
            torch.cuda.synchronize()
            memory[name] = (torch.cuda.max_memory_allocated() - held) / 1e6
        steps |= {name + GRAPH: _captured(step) for name, step in list(steps.items())}
        return {"seconds": _turns(steps), "megabytes": memory}
    finally:
        rnn.fp32_precision = before
        torch.cuda.empty_cache()


def _turns(steps: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each, by events, taken in turns; the first two turns warm up."""
    event: Any = torch.cuda.Event
    taken: dict[str, list[float]] = {name: [] for name in steps}
    with no_garbage_collection():
        for turn in range(REPEATS + 2):
            for name, step in steps.items():
                start, end = (event(enable_timing=True) for _ in range(2))
                torch.cuda.synchronize()
                start.record()
                step()
                end.record()
                torch.cuda.synchronize()
                if turn > 1:
                    taken[name].append(start.elapsed_time(end) / 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}


def tables(results: list[Result]) -> dict[str, str]:
    heads = ["layer, sizes, precision", "relative error", LSTM, OURS, "times as fast"]
    heads += ["times as fast, CUDA graph", f"{OURS}, one sequence"]
    rows, devices = [[*heads, f"{LSTM}, peak MB", f"{OURS}, peak MB"]], {}
    for one in results:
        seconds = one["seconds"]
        row = [one["case"], f"{one['error']:.0e}" if one["error"] <= one["bound"] else "WRONG"]
        row += [duration(seconds[LSTM]), duration(seconds[OURS])]
        for how in ("", GRAPH):
            ratio = seconds[LSTM + how] / seconds[OURS + how]
            row.append(f"{ratio:.1f}" if ratio > 1 else f"{ratio:.2f}")
        row.append(duration(one["one_sequence"]))
        rows.append([*row, *(f"{one['megabytes'][name]:,.0f}" for name in (LSTM, OURS))])
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        devices[f"{one['device']}; {versions}"] = None
    return {"gpu": f"{markdown_table(rows)}\n\n{'. '.join(devices)}."}
