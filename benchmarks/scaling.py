"""Where data-parallel training of a recurrent model stops scaling: a step measured, then on paper.

python benchmarks/scaling.py --gpu-step 0.005 2e-5
python benchmarks/scaling.py --all-reduce 2 4 8

One training step of a LEM is measured for two batch sizes on one thread, in CPU seconds: a part
that every process pays whatever its share of the batch, and a part per sequence. The machines are
on paper: an all-reduce among P processes takes 2 (P - 1) latencies of a ring (gloo), or among GPUs
(NCCL) 2 log2 P of a tree where that is less, and twice the bytes of the gradient over the
bandwidth. Validation, which every process does in full, is not in it. `--all-reduce` measures those
of gloo among processes of this machine, to set beside the formula.
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all-reduce", type=int, nargs="+", metavar="PROCESSES")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--gpu-step",
        type=float,
        nargs=2,
        metavar=("SECONDS", "PER_SEQUENCE"),
        help="the two parts measured on a GPU, as printed here by --device cuda",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", CHANNELS, 1, hidden_size=arguments.hidden_size)
    model.to(arguments.device)
    size = 4 * sum(p.numel() for p in model.parameters())
    if arguments.all_reduce:
        print(f"All-reduce of {size / 1e6:.2f} MB by gloo on this machine, ms\n")
        print("| processes | shortest | median | formula |\n| ---: | ---: | ---: | ---: |")
        for processes in arguments.all_reduce:
            with tempfile.TemporaryDirectory() as folder:
                torch.multiprocessing.spawn(
                    measured_reduce, (processes, size, f"{folder}/meet"), processes
                )
        return
    seconds(model, 8, 2, arguments.device)
    small, large = (8, 64) if arguments.device == "cpu" else (64, 4096)
    few, many = (seconds(model, b, arguments.repeats, arguments.device) for b in (small, large))
    each = max((many - few) / (large - small), 1e-9)
    fixed = max(few - small * each, 0.0)
    print(f"LEM of width {arguments.hidden_size}, {STEPS} steps, {size / 1e6:.2f} MB of gradients")
    print(
        f"{arguments.device}: {1e3 * fixed:.3g} ms per step and {1e3 * each:.3g} ms per sequence\n"
    )
    if arguments.device == "cuda":
        print(f"on paper: python benchmarks/scaling.py --gpu-step {fixed:.3g} {each:.3g}")
        return
    print(
        "| machine | batch | speed-up | of the ideal | all-reduce | "
        f"hours for {UPDATES:,} steps | core- or GPU-hours | of one |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for name, processes, latency, bandwidth in MACHINES:
        base = fixed, each
        if gpu := "GPU" in name:
            if arguments.gpu_step is None:
                continue
            base = tuple(arguments.gpu_step)
        cost = reduce_seconds(processes, size, latency, bandwidth, tree=gpu)
        for batch in (64, 1024, 16_384):
            found = speedup(processes, batch, *base, cost)
            alone = UPDATES * (base[0] + base[1] * batch) / 3600
            print(
                f"| {name} | {batch:,} | {found:.3g} | {found / processes:.1%} | "
                f"{1e3 * cost:.2g} ms | {alone / found:.3g} | "
                f"{alone / found * processes:.3g} | {alone:.3g} |"
            )


if __name__ == "__main__":
    main()
