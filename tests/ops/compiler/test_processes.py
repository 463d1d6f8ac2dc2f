"""A compiled layer in two processes: DDP averages its gradients as those of any module."""

import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

import anharmonic as ah
from anharmonic.ops.compiler import build


def gradients(compiled, rank=None):
    """Of the mean over a batch, or of one half of it in each of two processes."""
    torch.manual_seed(0)
    layer = ah.FastGRNN(2, 4, 2, dtype=torch.float64)
    layer.compiled = compiled
    x = torch.randn(40, 6, 2, dtype=torch.float64)
    module = layer if rank is None else DistributedDataParallel(layer)
    part = x if rank is None else x[:, rank::2]
    module(part)[0].square().mean().backward()
    assert compiled is False or "at every step" in layer.explain()
    return [p.grad for p in layer.parameters()]


def one_of_two(rank, folder):
    torch.set_num_threads(1)
    build.LEVEL = build.QUICK_LEVEL = "-O0"
    distributed.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=2)
    torch.save(gradients(True, rank), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes(tmp_path):
    multiprocessing.start_processes(
        one_of_two, (str(tmp_path),), nprocs=2, start_method="forkserver"
    )
    expected = gradients(False)
    for rank in (0, 1):
        found = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)
