"""What processes and shards cost, and where one training stops scaling.

A training step of a LEM has a part that every process pays whatever its share of the batch, and a
part per sequence; both come from two batch sizes on one thread. An all-reduce among P processes
takes 2 (P - 1) latencies of a ring (gloo), or among GPUs (NCCL) 2 log2 P of a tree where that is
less, and twice the bytes of the gradient over the bandwidth. The speed-ups are computed from that.
"""

import functools
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import anharmonic as ah
from anharmonic.data import SequenceDataset, ShardsTask, write_shards
from harness import speed
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.speed import medians

STEPS, CHANNELS, HIDDEN = 500, 2, 128
UPDATES = 100_000
MACHINES = {
    "core": (
        ("64 cores", 64, 1e-5, 5e9),
        ("100 nodes of 16 cores, Ethernet", 1600, 5e-5, 1.25e9),
    ),
    "GPU": (
        ("8 GPUs, NVLink", 8, 1e-5, 2e11),
        ("100 nodes of one GPU, InfiniBand", 100, 1e-5, 2.5e10),
    ),
}
"""Name, processes, latency in seconds and bandwidth in bytes per second between them."""
GPU_STEP = (0.005, 2e-5)
"""Seconds of a step and of each sequence on a GPU: assumed, 5 µs for a step in time each way."""
TRAIN = "-m anharmonic train lem digits"
COMPARE = "-m anharmonic compare digits --models lem --seeds 0 1 2 3"
COMMANDS = {
    "one training, one process": TRAIN,
    "the same by torchrun in two processes": (
        f"-m torch.distributed.run --standalone --nproc-per-node 2 {TRAIN} --devices 2"
    ),
    "four trainings, `--jobs 1`": f"{COMPARE} --jobs 1",
    "four trainings, `--jobs 2`": f"{COMPARE} --jobs 2",
}
SHARDS = ("shards, first run", "shards, second run")
SHARD_STEP = "a training step of LEM of width 64"
_cpu_medians = functools.partial(medians, warm_up=0, clock=time.process_time)


def cases(options: Options) -> Cases:
    commands, steps, sizes = (1, 1, (64, 16)) if options.quick else (3, 5, (16_384, 1024))
    return {
        **{name: (command_seconds, c, commands) for name, c in COMMANDS.items()},
        **dict.fromkeys(SHARDS, (speed.isolated, shard_seconds, sizes)),
        "a training step": (speed.isolated, step_seconds, steps),
        "all-reduce of two processes": (all_reduce_seconds,),
    }


def command_seconds(command: str, repeats: int) -> Result:
    """Return the median CPU seconds of a command and of all that it starts, in a new folder."""
    words = [sys.executable, *command.split(), "--hidden-size", "64", "--epochs", "4"]
    words += ["--threads", "1", "--no-progress"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)

    def clock() -> float:
        used = os.times()
        return used.children_user + used.children_system

    return {"cpu_seconds": medians({command: run}, repeats, warm_up=0, clock=clock)[command]}


def shard_seconds(sizes: tuple[int, int]) -> Result:
    """Return the median CPU seconds of a batch of 256 from mapped shards, from memory, and trained.

    The shards have just been written and are in the system's cache: reading a disk comes on top.
    """
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*sizes, 1), np.float32)
    y = rng.integers(0, 2, len(x))
    with tempfile.TemporaryDirectory() as folder:
        cut = zip(*(np.array_split(values, 8) for values in (x, y)), strict=True)
        parts = {"train": cut, "test": [(x[:8], np.arange(8) % 2)]}
        mapped = ShardsTask(write_shards(Path(folder), parts)).splits().train
        inside = SequenceDataset(torch.from_numpy((x - x.mean()) / x.std()), torch.from_numpy(y))
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        seconds = {}
        for name, data in (("from mapped shards", mapped), ("from memory", inside)):
            batches = data.batches(min(256, len(x)), order)
            seconds |= _cpu_medians({name: functools.partial(next, iter(batches))}, len(batches))
    model, batch = ah.SequenceModel("LEM", 1, 2, hidden_size=64), batches[0]

    def step() -> None:
        torch.nn.functional.cross_entropy(model(batch.x), batch.y).backward()

    return {"seconds": seconds | _cpu_medians({SHARD_STEP: step}, 3)}


def step_seconds(repeats: int) -> Result:
    """Return the CPU seconds of a training step: its fixed part, and the part of each sequence."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", CHANNELS, 1, hidden_size=HIDDEN)
    optimizer = torch.optim.Adam(model.parameters())

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()

    given = {n: (torch.rand(n, STEPS, CHANNELS), torch.rand(n, 1)) for n in (8, 64)}
    found = _cpu_medians({n: functools.partial(step, *of) for n, of in given.items()}, repeats)
    each = max((found[64] - found[8]) / (64 - 8), 1e-9)
    size = 4 * sum(p.numel() for p in model.parameters())
    return {"fixed": max(found[8] - 8 * each, 0.0), "each": each, "gradient_bytes": size}


def all_reduce_seconds() -> Result:
    """Return the shortest wall time of an all-reduce by gloo among two processes here."""
    size = step_seconds(1)["gradient_bytes"]
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_all_reduce, (size, folder), 2)
        return {"seconds": float((Path(folder) / "seconds").read_text())}


def _all_reduce(rank: int, size: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=2)
    values, found = torch.zeros(size // 4), []
    for _ in range(200):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(values)
        found.append(time.perf_counter() - began)
    if rank == 0:
        (Path(folder) / "seconds").write_text(str(min(found)))
    dist.destroy_process_group()


def reduce_formula(
    processes: int, size: int, latency: float, bandwidth: float, tree: bool = False
) -> float:
    """Return the seconds of an all-reduce in a ring, or in a tree if allowed and shorter."""
    ring = 2 * (processes - 1) * latency + 2 * (processes - 1) / processes * size / bandwidth
    along = 2 * math.ceil(math.log2(processes)) * latency + 2 * size / bandwidth
    return min(ring, along) if tree else ring


def speed_up(processes: int, batch: int, fixed: float, each: float, reduce: float) -> float:
    """Return how many times as fast as one process the same batch is, cut among processes."""
    share = -(-batch // processes)
    return (fixed + each * batch) / (fixed + each * share + reduce)


def tables(results: list[Result]) -> dict[str, str]:
    by_case = {one["case"]: one for one in results}
    processes = [["trainings", "CPU seconds"]]
    processes += [[n, f"{by_case[n]['cpu_seconds']:.1f}"] for n in COMMANDS if n in by_case]
    shards = [["time for a batch of 256 sequences of 1,024 steps", "first run", "second run"]]
    runs = [by_case[name]["seconds"] for name in SHARDS if name in by_case]
    for name in ("from mapped shards", "from memory", SHARD_STEP):
        shards.append([name, *(f"{1e3 * run[name]:.3g} ms" for run in runs)])
    found = {
        "processes": f"{markdown_table(processes)}\n\n{caption(results)}",
        "shards": markdown_table(shards),
    }
    if step := by_case.get("a training step"):
        found["speed-up"], found["cost"] = _computed(step)
    return found


def _computed(step: Result) -> tuple[str, str]:
    batches = (64, 1024, 16_384)
    gains = [["machine", *(f"batch {batch:,}" for batch in batches), "averaging the gradients"]]
    costs = [["machine", "hours", "core-hours or GPU-hours", "divided by those of one process"]]
    for kind, machines in MACHINES.items():
        fixed, each = GPU_STEP if kind == "GPU" else (step["fixed"], step["each"])
        alone = UPDATES * (fixed + each * 1024) / 3600
        costs.append([f"one {kind}", *2 * [_digits(alone)], "1"])
        for name, processes, latency, bandwidth in machines:
            size = step["gradient_bytes"]
            cost = reduce_formula(processes, size, latency, bandwidth, kind == "GPU")
            gain = {n: speed_up(processes, n, fixed, each, cost) for n in batches}
            cells = [f"{_digits(gain[n])} ({100 * gain[n] / processes:.0f} %)" for n in batches]
            gains.append([name, *cells, f"{_digits(1e3 * cost)} ms"])
            hours = alone / gain[1024]
            more = (hours, hours * processes, processes / gain[1024])
            costs.append([name, *map(_digits, more)])
    return markdown_table(gains), markdown_table(costs)


def _digits(value: float) -> str:
    """Two digits, or all before the point."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
