"""Training steps on a GPU beside cuDNN's LSTM, checked first, with the limits of the device.

Each case is first checked against float64, then timed, called directly and captured in a CUDA
graph. The time of a single sequence stands beside it as a lower bound.
"""

import copy
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import anharmonic as ah
from anharmonic import diagnostics
from harness.results import Cases, Options, Result, duration, markdown_table, plural
from harness.speed import Case, medians, training_step

PACKAGES = ("triton",)
LSTM, OURS = "LSTM", "ours"
GRAPH = ", captured"
REPEATS = 20
BOUNDS = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 1e-1}
"""Errors that a check allows, relative to the largest entry, over 600 steps."""


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


def title(case: Case) -> str:
    layers = plural(case.layers, "layer")
    sizes = f"B {case.batch}, H {case.hidden}, T {case.steps:,}"
    memory = "" if case.memory == "auto" else f", {case.memory}"
    return f"{case.model}, {layers}, {sizes}, {case.precision}{memory}"


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


def cases(options: Options) -> Cases:
    if not torch.cuda.is_available():
        print("gpu needs a CUDA device; none is here; nothing was timed.")
        sys.exit(2)
    chosen = [replace(case, steps=100) if options.quick else case for case in CASES]
    return {title(case): (measure, case) for case in chosen}


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
        "one_sequence": _medians({OURS: _captured(_ours(small, x))})[OURS],
    }


def _ours(case: Case, x: Tensor) -> Callable[[], Any]:
    return ah.use_precision(case.precision)(training_step(layer_of(case).cuda(), x))


def _captured(step: Callable[[], Any]) -> Callable[[], Any]:
    side = torch.cuda.Stream()
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
        return {"seconds": _medians(steps), "megabytes": memory}
    finally:
        rnn.fp32_precision = before
        torch.cuda.empty_cache()


def _medians(steps: dict[str, Callable[[], Any]]) -> dict[str, float]:
    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return medians(steps, REPEATS, warm_up=2, clock=clock)


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
