"""What the pins share: the package's names they use, and how results of two machines compare.

The files in ``data`` were written by ``make.py``. They hold what a user may have on disk: names of
runs, saved models, run folders. Where the package moves, the imports below follow and nothing else.
"""

from __future__ import annotations

import functools
import json
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

import anharmonic as ah
from anharmonic.diagnostics import cpu, versions
from anharmonic.ops.backend import forced
from anharmonic.train import Result, Run, RunEnvironment, fit, predict

__all__ = ["Result", "Run", "RunEnvironment", "ah", "fit", "predict"]

DATA = Path(__file__).parent / "data"
RESULTS = Path(__file__).parents[2] / "papers" / "results"
WAVES, NEW_WAVES = DATA / "waves.npz", DATA / "new-waves.npz"

# Other machines take sums in another order and round elementary functions otherwise. With other
# instruction sets of the C library and of PyTorch, and with the reference, the largest difference,
# as a part of the largest number, was below 1e-6 in one pass, and below 1e-4 after training, where
# Adam divides by a gradient's size. Ten times that is allowed.
# A solver that chooses its steps may choose others where numbers round otherwise, and then differs
# by about its tolerance, here 1e-4 (5e-5 was seen).
FORWARD = 1e-5
TRAINED = 1e-3
SOLVED = 1e-3


def fingerprint() -> dict[str, str | None]:
    """What decides the last bits: where it is equal (and one thread computes), so are they."""
    here, path = cpu(), Path("/proc/cpuinfo")
    # The family of the processor, which its name may hide.
    family = re.search(r"cpu family\s*: (\d+)", path.read_text() if path.exists() else "")
    packages = ("torch", "numpy", "torch_geometric", "torchdiffeq")
    found = versions(packages)
    return {package: found[package] for package in packages} | {
        "machine": platform.machine(),
        "processor": f"{here['processor']}, family {family[1] if family else 'unknown'}",
        "instruction_set": None if forced() == "reference" else here["instruction_set"],
        "torch_instruction_set": torch.backends.cpu.get_cpu_capability(),
    }


def same_machine() -> bool:
    """Whether bits have to be those of the files."""
    return _same_machine_with(forced())


@functools.cache
def _same_machine_with(backend: str | None) -> bool:
    return fingerprint() == json.loads((DATA / "fingerprint.json").read_text())


def close(got: Any, expected: Any, elsewhere: float, scale: float | None = None) -> None:
    """Checks tensors or numbers: bit for bit on the same machine, else within a tolerance.

    The tolerance is a part of ``scale``, by default of the largest number in ``expected``.
    """
    got, expected = torch.as_tensor(got), torch.as_tensor(expected)
    if scale is None:
        scale = float(expected.abs().max())
    atol = 0.0 if same_machine() else elsewhere * scale
    torch.testing.assert_close(got, expected, rtol=0.0, atol=atol)


def computed(model: Any, inputs: list[Tensor]) -> dict[str, Tensor]:
    """Outputs of a model and the gradients of the sum of their squares, by name."""
    model.eval()
    wanted = {
        f"input.{i}": x.requires_grad_() for i, x in enumerate(inputs) if x.is_floating_point()
    }
    wanted |= {name: p for name, p in model.named_parameters() if p.requires_grad}
    outputs = _flat(model(*inputs))
    loss = sum(out.square().sum() for out in outputs)
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    found = {f"output.{i}": out.detach() for i, out in enumerate(outputs)}
    for name, gradient in zip(wanted, gradients, strict=True):
        if gradient is not None:
            found[f"gradient.{name}"] = gradient
    # Files hold contiguous tensors that share no memory.
    form = torch.contiguous_format
    return {name: tensor.clone(memory_format=form) for name, tensor in found.items()}


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in value for tensor in _flat(part)]


def tensors(folder: Path) -> dict[str, Tensor]:
    """The weights of a saved model."""
    return load_file(folder / "model.safetensors")


def read_lines(name: str) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines among the files."""
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def run_folders(kind: str) -> list[Path]:
    """The run folders among the files: "finished" or "interrupted"."""
    return sorted(path for path in (DATA / kind).iterdir() if path.is_dir())


def run_in(folder: Path) -> Run:
    """The run that a folder belongs to."""
    return Run.from_json((folder / "run.json").read_text())


def environment_for(run: Run, out: Path) -> RunEnvironment:
    """An environment of one thread, with the data file where the task needs one."""
    file = WAVES if run.task == "file" else None
    return RunEnvironment(out=out, file=file, threads=1, progress=False)


@contextmanager
def counted_steps(stop_at: int | None = None) -> Iterator[list[int]]:
    """Counts the steps of all optimisers; presses Ctrl-C instead of step ``stop_at``."""
    steps = [0]

    def count(*_: object) -> None:
        if steps[0] == stop_at:
            raise KeyboardInterrupt
        steps[0] += 1

    handle = register_optimizer_step_pre_hook(count)
    try:
        yield steps
    finally:
        handle.remove()
