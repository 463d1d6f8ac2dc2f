"""Where data-parallel training of a recurrent model stops scaling, and what it costs: on paper.

python benchmarks/scaling.py
python benchmarks/scaling.py --measure cpu
python benchmarks/scaling.py --all-reduce 2 4 8

A training step of a LEM has a part that every process pays whatever its share of the batch, and a
part per sequence; `--measure` finds both from two batch sizes, on one thread in CPU seconds or on a
GPU. An all-reduce among P processes takes 2 (P - 1) latencies of a ring (gloo), or among GPUs
(NCCL) 2 log2 P of a tree where that is less, and twice the bytes of the gradient over the
bandwidth. `--all-reduce` measures those of gloo among processes of this machine, to set beside the
formula. Validation, which every process does in full, is not in it.
"""

import argparse
import math
import statistics
import tempfile
import time

import torch
import torch.distributed as dist

import anharmonic as ah

STEPS, CHANNELS = 500, 2
UPDATES = 100_000
# Name, processes, latency in seconds and bandwidth in bytes per second between them.
MACHINES = (
    ("64 cores of one machine", 64, 1e-5, 5e9),
    ("8 GPUs, NVLink", 8, 1e-5, 2e11),
    ("100 nodes of one GPU, InfiniBand", 100, 1e-5, 2.5e10),
    ("100 nodes of 16 cores, 10 Gbit Ethernet", 1600, 5e-5, 1.25e9),
)


def seconds(model, batch, repeats, device):
    """Seconds of a training step, the median of some: of the processor, or on a GPU elapsed."""
    x, y = torch.rand(batch, STEPS, CHANNELS, device=device), torch.rand(batch, 1, device=device)
    now = time.process_time if device == "cpu" else synchronised
    optimizer = torch.optim.Adam(model.parameters())
    found = []
    for _ in range(repeats):
        began = now()
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        found.append(now() - began)
    return statistics.median(found)


def synchronised():
    torch.cuda.synchronize()
    return time.perf_counter()


def reduce_seconds(processes, size, latency, bandwidth, tree=False):
    """An all-reduce of `size` bytes in a ring, or in a tree if that is allowed and takes less."""
    ring = 2 * (processes - 1) * latency + 2 * (processes - 1) / processes * size / bandwidth
    along = 2 * math.ceil(math.log2(processes)) * latency + 2 * size / bandwidth
    return min(ring, along) if tree else ring


def measured_reduce(rank, processes, size, path, repeats=200):
    """One of the processes of an all-reduce by gloo; the first one prints its wall seconds."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=processes)
    values, found = torch.zeros(size // 4), []
    for _ in range(repeats):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(values)
        found.append(1e3 * (time.perf_counter() - began))
    if rank == 0:
        paper = 1e3 * reduce_seconds(processes, size, *MACHINES[0][2:])
        best, median = min(found), statistics.median(found)
        print(f"| {processes} | {best:.2g} | {median:.2g} | {paper:.2g} |", flush=True)
    dist.destroy_process_group()


def speedup(processes, batch, fixed, each, communication):
    """How many times faster than one process the same batch is, cut among processes."""
    share = -(-batch // processes)
    return (fixed + each * batch) / (fixed + each * share + communication)


def measure(model, device, repeats):
    """Prints both parts of a training step."""
    seconds(model, 8, 2, device)
    small, large = (8, 64) if device == "cpu" else (64, 4096)
    few, many = (seconds(model, batch, repeats, device) for batch in (small, large))
    each = max((many - few) / (large - small), 1e-9)
    fixed = max(few - small * each, 0.0)
    flag = {"cpu": "--cpu-step", "cuda": "--gpu-step"}[device]
    print(f"on paper: python benchmarks/scaling.py {flag} {fixed:.3g} {each:.3g}")


def measure_reduce(numbers, size):
    """Prints what all-reduces take on this machine."""
    print(f"All-reduce of {size / 1e6:.2f} MB by gloo on this machine, ms\n")
    print("| processes | shortest | median | formula |\n| ---: | ---: | ---: | ---: |")
    for processes in numbers:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(
                measured_reduce, (processes, size, f"{folder}/meet"), processes
            )


def on_paper(size, cpu_step, gpu_step):
    """Prints speed-up and cost of every machine."""
    print(
        f"| machine | batch | speed-up | of the ideal | all-reduce | hours of {UPDATES:,} steps | "
        "core- or GPU-hours | of one process |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for name, processes, latency, bandwidth in MACHINES:
        fixed, each = gpu_step if "GPU" in name else cpu_step
        cost = reduce_seconds(processes, size, latency, bandwidth, tree="GPU" in name)
        for batch in (64, 1024, 16_384):
            found = speedup(processes, batch, fixed, each, cost)
            alone = UPDATES * (fixed + each * batch) / 3600
            hours = alone / found
            print(
                f"| {name} | {batch:,} | {found:.3g} | {found / processes:.1%} | "
                f"{1e3 * cost:.3g} ms | {hours:.3g} | {hours * processes:,.4g} | {alone:.3g} |"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden-size", type=int, default=128)
    parser.add_argument("--measure", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all-reduce", type=int, nargs="+", metavar="PROCESSES")
    parts = {"type": float, "nargs": 2, "metavar": ("SECONDS", "PER_SEQUENCE")}
    measured = "as --measure cpu found it on an AMD EPYC"
    parser.add_argument("--cpu-step", default=(0.0035, 0.00144), help=measured, **parts)
    parser.add_argument("--gpu-step", default=(0.005, 2e-5), help="assumed", **parts)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", CHANNELS, 1, hidden_size=arguments.hidden_size)
    size = 4 * sum(p.numel() for p in model.parameters())
    if arguments.measure:
        measure(model.to(arguments.measure), arguments.measure, arguments.repeats)
    elif arguments.all_reduce:
        measure_reduce(arguments.all_reduce, size)
    else:
        on_paper(size, arguments.cpu_step, arguments.gpu_step)


if __name__ == "__main__":
    main()
