"""Distributed training: launchers, process groups and signals."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from anharmonic import _checks, _processes
from anharmonic.train.run import RunEnvironment

TERMINATED = 128 + signal.SIGTERM
"""The exit code after SIGTERM."""
# The port of the process group that this package starts.
_PORT = "ANHARMONIC_PORT"
# Seconds for a process to report its error before another process's end stops it.
_GRACE = 5.0
_children: list[subprocess.Popen[bytes]] = []


def check_processes(environment: RunEnvironment) -> None:
    """Check the number of processes against those started."""
    launch = _processes.find_launch()
    came = f"devices={environment.devices}, num_nodes={environment.num_nodes}"
    if launch is None:
        advice = "start the command by torchrun or srun on every machine, see the documentation"
        single = environment.num_nodes == 1
        _checks.require(single, "num_nodes", came, "1 without torchrun or SLURM", advice)
        return
    _checks.require(
        environment.world_size == launch.world_size,
        "devices times num_nodes",
        came,
        f"{launch.world_size}, the number of processes that {launch.launcher} started",
        "pass the processes per machine as --devices, the machines as --num-nodes",
    )


def threads_of(environment: RunEnvironment) -> int | None:
    """Return the threads of each process: the given number, or its share of the processors.

    None leaves PyTorch's number.
    """
    shared = environment.devices > 1 and "OMP_NUM_THREADS" not in os.environ
    if environment.threads is None and shared:
        return max(1, (os.cpu_count() or 1) // environment.devices)
    return environment.threads


def join(environment: RunEnvironment, device: str) -> None:
    """Connect the processes of a run, and start those of this machine if no launcher has.

    The group stays until the processes end; the next run of the same script uses the same group.
    """
    launch, world = _processes.find_launch(), environment.world_size
    if device == "cuda":
        torch.cuda.set_device(0 if launch is None else launch.local_rank)
    if world == 1 or dist.is_initialized():
        return
    backend = "nccl" if device == "cuda" else "gloo"
    atexit.register(_leave)
    if launch is None:
        store: Any = dist.TCPStore(  # type: ignore[attr-defined]
            "127.0.0.1", 0, world, is_master=True, wait_for_workers=False
        )
        _start_processes(world, store.port)
        dist.init_process_group(backend, store=store, rank=0, world_size=world)
    elif _PORT in os.environ:
        port = int(os.environ[_PORT])
        store = dist.TCPStore("127.0.0.1", port, world, is_master=False)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=launch.rank, world_size=world)
    else:
        if launch.launcher == "SLURM":
            os.environ.setdefault("MASTER_ADDR", first_host(os.environ["SLURM_NODELIST"]))
            port = 15000 + int(os.environ["SLURM_JOB_ID"]) % 10000
            os.environ.setdefault("MASTER_PORT", str(port))
        dist.init_process_group(backend, rank=launch.rank, world_size=world)


def first_host(nodes: str) -> str:
    """Return the first machine in SLURM's list.

    Example:
        >>> first_host("node[017-018,021]"), first_host("a1,a2"), first_host("gpu-[3]-rack")
        ('node017', 'a1', 'gpu-3-rack')
    """
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodes).split(",")[0]


def _start_processes(world: int, port: int) -> None:
    """Run this program again as the processes 1 to world - 1."""
    spec = sys.modules["__main__"].__spec__
    program = [os.path.abspath(sys.argv[0])] if spec is None else ["-m", spec.name]
    for rank in range(1, world):
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, _PORT: port}
        child = subprocess.Popen(
            [sys.executable, *program, *sys.argv[1:]],
            env=os.environ | {name: str(value) for name, value in own.items()},
        )
        _children.append(child)
        threading.Thread(target=_end_with, args=(rank, child), daemon=True).start()


def _end_with(rank: int, child: subprocess.Popen[bytes]) -> None:
    """End this process when another has failed, to avoid waiting forever."""
    if child.wait() != 0 and child in _children:
        time.sleep(_GRACE)
        text = f"process {rank} of this training ended with code {child.returncode}"
        print(text, file=sys.stderr, flush=True)
        os._exit(1)


def end_processes() -> None:
    """Terminate the processes started by this one."""
    while _children:
        _children.pop().terminate()


def _leave() -> None:
    """Wait for the processes started by this one to end."""
    if dist.is_initialized():
        dist.destroy_process_group()
    for child in list(_children):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(60)
    end_processes()


def gather(value: Any, world: int) -> list[Any]:
    """Return every process's value in the order of ranks."""
    if world == 1:
        return [value]
    values: list[Any] = [None] * world
    dist.all_gather_object(values, value)
    return values


def broadcast(value: Any, world: int) -> Any:
    """Return the first process's value."""
    if world == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def average_over_processes(tensors: list[Tensor], world: int) -> None:
    """Replace tensors by their means over all processes, in one exchange."""
    if world == 1:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    flat /= world
    means = torch.split(flat, [tensor.numel() for tensor in tensors])
    for tensor, mean in zip(tensors, means, strict=True):
        tensor.copy_(mean.view_as(tensor))


@contextlib.contextmanager
def signals() -> Iterator[None]:
    """Make SIGTERM raise ``SystemExit``, and SLURM's SIGUSR1 requeue the job.

    Existing handlers of the caller stay. Outside the main thread, as in a process of Ray, signals
    are left to the caller.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminated = False

    def leave(number: int, frame: object) -> None:
        nonlocal terminated
        terminated = True
        raise SystemExit(TERMINATED)

    handlers: dict[signal.Signals, Any] = {signal.SIGTERM: leave}
    launch = _processes.find_launch()
    if launch is not None and launch.launcher == "SLURM":
        handlers[signal.SIGUSR1] = _requeue
    free = [number for number in handlers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in free:
            signal.signal(number, handlers[number])
        yield
    except Exception as error:
        if not terminated:
            raise
        # (Another process was terminated just before, and this one missed it.)
        raise SystemExit(TERMINATED) from error
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)


def _requeue(number: int, frame: object) -> None:
    """Requeue this SLURM job; the last epoch's state is saved."""
    if _processes.rank() > 0:
        return
    job = os.environ["SLURM_JOB_ID"]
    if (array := os.environ.get("SLURM_ARRAY_JOB_ID")) is not None:
        job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    with contextlib.suppress(OSError):  # SLURM's tools are not installed
        subprocess.run(["scontrol", "requeue", job], check=False)
