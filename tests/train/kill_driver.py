"""Trains one run in many sittings, each ended by SIGKILL, and prints what came out as JSON.

Usage: python kill_driver.py OUT

Every sitting is a forked child, so that the packages are imported once. The child stops at every
event (a batch, a file about to be replaced, a file replaced) and asks whether to go on, so that
the kill hits exactly there.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo  # as an optimizer does: once, and not in every sitting

import anharmonic._files as files
from anharmonic.data.base import Batches, Loaders
from anharmonic.data.registry import make_task
from anharmonic.train import Run, RunEnvironment, fit

# (As an attribute of the package, `fit` is the function.)
run_module = sys.modules["anharmonic.train.run"]

RUN = Run(
    task="adding",
    model="LSTM",
    task_options={"length": 8, "valid_size": 64, "test_size": 64, "steps_per_epoch": 8},
    model_options={"hidden_size": 4, "num_layers": 2, "dropout": 0.3},
    epochs=5,
    batch_size=4,
    lr=0.01,
    lr_drop_epoch=3,
    clip_norm=1.0,
    seed=11,
)
# The sitting is killed at the first of these events it meets; then the next one counts.
MOMENTS = [
    "train 0 2",
    "valid 3",
    "replace resume.ckpt",
    "train 0 7",
    "replaced resume.ckpt",
    "train 2 4",
    "valid 0",
    "replaced resume.ckpt",
    "replaced resume.ckpt",
    "valid 15",
    "train 4 0",
    "replaced resume.ckpt",
    "test 1",
    "replace result.json",
    "replaced result.json",
]


def sitting(out: str, hook: Callable[[str], None]) -> None:
    """The child: trains, calling ``hook`` at every event."""

    class Hooked:
        def __init__(self, *arguments: object, **named: object) -> None:
            self.task = make_task(*arguments, **named)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(self.task, name)

        def loaders(self, *arguments: int) -> Loaders:
            train, valid, test = self.task.loaders(*arguments)
            return Loaders(
                lambda epoch: hooked(f"train {epoch}", train(epoch)),
                hooked("valid", valid),
                hooked("test", test),
            )

    def hooked(name: str, batches: Batches) -> Batches:
        def make(index: int) -> object:
            hook(f"{name} {index}")
            return batches[index]

        return Batches(len(batches), make)  # type: ignore[arg-type]

    replace = os.replace

    def replace_with_hook(source: Path, target: Path) -> None:
        hook(f"replace {Path(target).name}")
        replace(source, target)
        hook(f"replaced {Path(target).name}")

    run_module.make_task = Hooked  # type: ignore[attr-defined]
    files.os.replace = replace_with_hook  # type: ignore[attr-defined]
    fit(RUN, RunEnvironment(out=Path(out), threads=1, progress=False))


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended(child: int) -> bool:
    """Waits for the child; True if it finished, False if it was killed."""
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit("a sitting failed")
    return True


def killed_at(out: str, moment: str | None) -> bool:
    events_in, events_out = os.pipe()
    go_in, go_out = os.pipe()

    def work() -> None:
        os.close(events_in)

        def hook(name: str) -> None:
            os.write(events_out, (name + "\n").encode())
            os.read(go_in, 1)

        sitting(out, hook)

    child = forked(work)
    os.close(events_out)
    with os.fdopen(events_in) as events:
        for line in events:
            if line.rstrip("\n") == moment:
                os.kill(child, signal.SIGKILL)
            os.write(go_out, b"+")
    os.close(go_in)
    os.close(go_out)
    return ended(child)


def outcome(out: str) -> dict[str, object]:
    folder = Path(out) / RUN.folder_name
    result = json.loads((folder / "result.json").read_text())
    for name in ("seconds", "memory_mb", "started", "commit"):
        del result[name]
    weights = (folder / "best" / "model.safetensors").read_bytes()
    return {
        "weights": hashlib.sha256(weights).hexdigest(),
        "result": result,
        "lines": len((Path(out) / "results.jsonl").read_text().splitlines()),
        "files": sorted(path.name for path in folder.iterdir()),
    }


def main() -> None:
    out = sys.argv[1]
    torch.set_num_threads(1)
    assert killed_at(f"{out}/whole", None)
    for moment in MOMENTS:
        if killed_at(f"{out}/cut", moment):
            sys.exit(f"finished before {moment!r} was met")
    assert killed_at(f"{out}/cut", None)
    print(json.dumps([outcome(f"{out}/whole"), outcome(f"{out}/cut")]))


if __name__ == "__main__":
    main()
