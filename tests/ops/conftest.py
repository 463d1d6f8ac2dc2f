"""Stacks of each recurrence with everything in them: masks, ragged lengths, elapsed time."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import library

F64 = torch.float64


class Stack:
    """A kernel with its arguments; ``run`` returns its results and the gradient of every leaf.

    Args:
        kernel: "cornn", "lem" or "unicornn".
        own: Options of the kernel; "trained" makes its numbers tensors.
        given: Which of lengths, masks and elapsed are given.
    """

    def __init__(
        self, kernel, own=None, *, bidirectional=False, dtype=F64, device="cpu", steps=70, batch=3,
        inputs=2, hidden=4, layers=3, given=("lengths", "masks", "elapsed"),
    ):  # fmt: skip
        generator = torch.Generator().manual_seed(0)
        H, directions = hidden, 2 if bidirectional else 1

        def leaf(*shape):
            value = torch.randn(*shape, generator=generator, dtype=F64) / max(1, shape[-1]) ** 0.5
            return value.to(device, dtype).requires_grad_()

        if own is None:
            special = {"cornn": {"trained": True}, "lem": {"gate_floor": 0.05}}
            own = special.get(kernel, {"skipped_layers": 2})
        self.own = {
            "cornn": {"dt": 0.1, "frequency": 1.5, "damping": 0.8},
            "lem": {"dt": 0.6},
            "unicornn": {"dt": [0.3, 0.2, 0.4, 0.1, 0.25][:layers], "frequency": 1.2},
        }[kernel] | {name: value for name, value in own.items() if name != "trained"}
        skips = self.own.get("skipped_layers") or layers

        def weights(k):
            layer = k // directions
            width = directions * H if layer else inputs
            if kernel == "cornn":
                return ops.CoRNNWeights(leaf(H, width), leaf(H, H), leaf(H, H), leaf(H))
            if kernel == "lem":
                rows = 4 if self.own.get("multiscale", True) else 2
                return ops.LEMWeights(
                    leaf(rows * H, width), leaf((rows - 1) * H, H), leaf(H, H), leaf(rows * H)
                )
            skip = None
            if layer >= skips:
                skip = leaf(H, inputs if layer == skips else directions * H)
            return ops.UnICORNNWeights(leaf(H, width), leaf(H), leaf(H), leaf(H), skip)

        self.kernel = kernel
        self.x = leaf(steps, batch, inputs)
        self.start = [leaf(layers * directions, batch, H) for _ in "yz"]
        self.weights = [weights(k) for k in range(layers * directions)]
        self.leaves = [self.x, *self.start, *(t for w in self.weights for t in w if t is not None)]
        self.given = {"lengths": None, "masks": None, "elapsed": None}
        self.given["bidirectional"] = bidirectional
        if "lengths" in given:
            self.given["lengths"] = steps - torch.arange(batch) * 23 % steps
        if "masks" in given:
            mask = torch.linspace(0, 2, batch * directions * H, dtype=dtype, device=device)
            self.given["masks"] = [mask.view(batch, -1) + k for k in range(layers - 1)]
        if "elapsed" in given:
            gaps = 2 * torch.rand(steps, batch, generator=generator, dtype=F64)
            self.given["elapsed"] = gaps.to(device, dtype).requires_grad_()
            self.leaves.append(self.given["elapsed"])
        if own.get("trained"):
            for name in ("dt", "frequency", "damping"):
                self.own[name] = torch.tensor(
                    self.own[name], dtype=dtype, device=device, requires_grad=True
                )
                self.leaves.append(self.own[name])

    def call(self, **changes):
        words = {**self.own, **self.given, **changes}
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

    def values(self, **changes):
        """Results and gradients in one list, for comparisons."""
        results, gradients = self.run(**changes)
        return [value.detach() for value in (*results, *gradients) if value is not None]

    def off(self, **changes):
        """How far the C library is from the reference."""
        pair = (self.values(backend=backend, **changes) for backend in ("native", "reference"))
        return self.furthest(*pair)

    @staticmethod
    def furthest(got, expected):
        """The largest difference, relative to the largest entry of a tensor where that is > 1."""
        pairs = zip(got, expected, strict=True)
        return max(((a - b).abs().max() / b.abs().max().clamp(min=1)).item() for a, b in pairs)


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
            assert len(other) == len(results[0]) and all(map(torch.equal, results[0], other))

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
