"""Stacks of each recurrence with everything in them: masks, ragged lengths, elapsed time."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import library

T, B, F, H, L = 70, 3, 2, 4, 3
F64 = torch.float64


class Stack:
    """A kernel with its arguments; ``run`` returns its results and the gradient of every leaf."""

    def __init__(
        self, kernel, bidirectional=False, dtype=F64, steps=T, batch=B, hidden=H, layers=L,
        device="cpu",
    ):  # fmt: skip
        generator = torch.Generator().manual_seed(0)
        directions = 2 if bidirectional else 1
        B, H, L = batch, hidden, layers

        def leaf(*shape):
            value = torch.randn(*shape, generator=generator, dtype=F64)
            return (0.5 * value).to(device, dtype).requires_grad_()

        def weights(layer):
            width = F if layer == 0 else directions * H
            if kernel == "cornn":
                return ops.CoRNNWeights(leaf(H, width), leaf(H, H), leaf(H, H), leaf(H))
            if kernel == "lem":
                return ops.LEMWeights(leaf(4 * H, width), leaf(3 * H, H), leaf(H, H), leaf(4 * H))
            skip = leaf(H, F) if layer == 2 else None
            return ops.UnICORNNWeights(leaf(H, width), leaf(H), leaf(H), leaf(H), skip)

        self.kernel = kernel
        self.x = leaf(steps, B, F)
        self.start = [leaf(L * directions, B, H), leaf(L * directions, B, H)]
        self.weights = [weights(k // directions) for k in range(L * directions)]
        gaps = torch.rand(steps, B, generator=generator, dtype=F64)
        self.own, self.scalars = {
            "cornn": ({"frequency": 1.5, "damping": 0.8}, {"dt": 0.1}),
            "lem": ({"dt": 0.6, "gate_floor": 0.05}, {}),
            "unicornn": ({"dt": [0.3, 0.2, 0.4][:L], "frequency": 1.2, "skipped_layers": 2}, {}),
        }[kernel]
        self.scalars = {
            k: torch.tensor(v, dtype=dtype, device=device, requires_grad=True)
            for k, v in self.scalars.items()
        }
        self.given = {
            "bidirectional": bidirectional,
            "lengths": torch.tensor([steps, steps // 3, steps - 1])[:B],
            "masks": [
                torch.full((B, directions * H), 0.5 + k, dtype=dtype, device=device)
                for k in range(L - 1)
            ],
            "elapsed": (2 * gaps).to(device, dtype).requires_grad_(),
        }
        flat = [t for weight in self.weights for t in weight if t is not None]
        gaps = [self.given["elapsed"]]
        self.leaves = [self.x, *self.start, *gaps, *self.scalars.values(), *flat]

    def call(self, **changes):
        words = {**self.own, **self.scalars, **self.given, **changes}
        return getattr(ops, self.kernel)(self.x, self.weights, *self.start, **words)

    def loss(self, results):
        """Every entry of every result with a weight of its own."""
        total = 0.0
        for k, value in enumerate(results):
            if value is not None:
                weight = torch.linspace(-1, 1 + k, value.numel()).to(value)
                total = total + (weight.view_as(value) * value).sum()
        return total

    def run(self, **changes):
        results = self.call(**changes)
        return results, torch.autograd.grad(self.loss(results), self.leaves)


@pytest.fixture
def same_bits_with_any_threads():
    """Checks that what a function returns has the same bits with 1, 2 and 5 threads."""
    before = torch.get_num_threads()

    def check(run):
        results = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(run())
        for other in results[1:]:
            assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))

    yield check
    torch.set_num_threads(before)


@pytest.fixture
def select():
    """Selects an instruction set of the C library until the test ends."""
    in_use = library.instruction_set()
    yield library.select
    if in_use is not None:
        library.select(in_use)


@pytest.fixture
def make_stack():
    return Stack
