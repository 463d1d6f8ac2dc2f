"""Peak memory of one training step, each in a process of its own."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anharmonic import diagnostics
from anharmonic.nn import model_class
from harness import isolated
from harness.speed_report import about, markdown_table


@dataclass(frozen=True)
class Case:
    """One training step: forward, backward, loss on the final state.

    Args:
        model: "UnICORNN", "CoRNN", "LEM", or "nn.LSTM" for comparison.
        layers: Layers stacked.
        steps: Length of the sequences.
        batch: Sequences.
        memory: Policy of our layers.
        target: MB (10**6 bytes) wanted at most, or None.
        hidden: Hidden size.
        inputs: Features per step.
    """

    model: str
    layers: int
    steps: int
    batch: int
    memory: str = "auto"
    target: float | None = None
    hidden: int = 32
    inputs: int = 1

    @property
    def title(self) -> str:
        """The case in words.

        Example:
            >>> CASES[0].title
            'UnICORNN 3 layers, auto, T 17,984, B 8, H 32'
        """
        stack = f"{self.model} {self.layers} layers" if self.layers > 1 else self.model
        policy = "" if self.model == "nn.LSTM" else f" {self.memory},"
        return f"{stack},{policy} T {self.steps:,}, B {self.batch}, H {self.hidden}"


CASES = (
    Case("UnICORNN", 3, 17_984, 8, target=30, inputs=6),
    Case("LEM", 1, 17_984, 8, target=30, inputs=6),
    Case("CoRNN", 1, 17_984, 8, target=30, inputs=6),
    Case("nn.LSTM", 1, 17_984, 8, inputs=6),
    Case("UnICORNN", 3, 1_000_000, 1, target=200),
    Case("LEM", 1, 1_000_000, 1, target=200),
    Case("CoRNN", 1, 1_000_000, 1, target=200),
    Case("UnICORNN", 3, 1_000_000, 1, memory="reversible", target=40),
)


def measure(
    cases: Sequence[Case] = CASES,
    *,
    threads: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measures each case in a fresh process.

    Args:
        cases: What to measure.
        threads: Threads of each process.
        say: Takes a line whenever a case is begun.

    Returns:
        JSON values: ``machine``, ``versions`` and ``measurements``, each with the case's sizes,
        ``peak_mb`` (above what the process held before the step, its input included),
        ``seconds`` of the step, and whether all gradients are ``finite``.

    Raises:
        RuntimeError: If a process fails; its last words are in the message.

    Example:
        >>> tiny = Case("LEM", 1, 3, 1, hidden=2)
        >>> measure([tiny])["measurements"][0]["finite"]
        True
    """
    found = []
    for number, case in enumerate(cases, start=1):
        say(f"[{number}/{len(cases)}] {case.title} ...")
        values = dataclasses.asdict(case)
        one = isolated.run(case.title, f"{__name__}:one_step", fields=values, threads=threads)
        found.append({**values, "title": case.title, **one})
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch"]),
        "threads": threads,
        "measurements": found,
    }


def one_step(fields: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """Takes one training step in this process and says its peak memory.

    A step over eight time steps comes first, so that libraries are loaded and threads run. The
    peak counts from what the process holds then, the input included. Where the system cannot reset
    the peak (macOS, or a closed /proc), it counts from the peak so far: at most as much.

    Args:
        fields: Those of a `Case`.
        threads: Threads of this process from now on.
    """
    case = Case(**fields)
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    sizes: Any = (case.inputs, case.hidden, case.layers)
    if case.model == "nn.LSTM":
        layer: Any = torch.nn.LSTM(*sizes)
    else:
        # The papers' rule; with 0.03, gradients through a million steps pass 10^38.
        dt = case.steps**-0.5
        layer = model_class(case.model)(*sizes, memory=case.memory, dt=dt)
    x = torch.randn(case.steps, case.batch, case.inputs)

    def step(x: torch.Tensor) -> None:
        layer.zero_grad()
        if case.model == "nn.LSTM":
            last = layer(x)[1][0][-1]
        else:
            last = layer(x, output="none")[1].y[-1]
        last.sum().backward()

    step(x[:8])
    diagnostics.reset_peak_memory("cpu")
    before = diagnostics.peak_memory_mb("cpu")
    start = time.perf_counter()
    step(x)
    seconds = time.perf_counter() - start
    return {
        "peak_mb": diagnostics.peak_memory_mb("cpu") - before,
        "seconds": seconds,
        "finite": all(math.isfinite(p.grad.abs().sum().item()) for p in layer.parameters()),
    }


def table(result: dict[str, Any]) -> str:
    """The measurements in Markdown."""
    table = [
        ["training step, loss on the final state", "peak, MB", "target", "seconds", "gradients"]
    ]
    for one in result["measurements"]:
        target = "" if one["target"] is None else f"{one['target']:g}"
        gradients = "finite" if one["finite"] else "NOT FINITE"
        peak, seconds = f"{one['peak_mb']:.1f}", f"{one['seconds']:.2f}"
        table.append([one["title"], peak, target, seconds, gradients])
    return f"{markdown_table(table)}\n\n{about(result)}"


def missed(result: dict[str, Any]) -> list[str]:
    """What is above its target or has no finite gradients, one line each."""
    return [
        f"not reached: {one['title']}"
        for one in result["measurements"]
        if not one["finite"] or one["peak_mb"] > (one["target"] or math.inf)
    ]
