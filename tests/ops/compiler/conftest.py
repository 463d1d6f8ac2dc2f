import os

import pytest
import torch

from anharmonic.ops import library
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.trace import Unsupported

LEVEL, QUICK_LEVEL = build.LEVEL, build.QUICK_LEVEL


@pytest.fixture(scope="session", autouse=True)
def compiled_steps(tmp_path_factory):
    """Steps compiled here go to a folder of their own, unless one is named."""
    if library.library() is None:
        pytest.skip("needs the C library")
    try:
        build._compiler()
    except Unsupported as error:
        pytest.skip(str(error))
    if build.FOLDER in os.environ:
        yield
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # several processes share what they build
        folder = folder.parent
    (folder / "compiled").mkdir(mode=0o700, exist_ok=True)
    os.environ[build.FOLDER] = str(folder / "compiled")
    yield
    del os.environ[build.FOLDER]


@pytest.fixture(params=["for use", "quick"])
def level(request, monkeypatch):
    """Both levels of optimisation."""
    monkeypatch.setattr(build, "QUICK_LEVEL", QUICK_LEVEL)
    monkeypatch.setattr(build, "LEVEL", LEVEL if request.param == "for use" else QUICK_LEVEL)


@pytest.fixture
def values():
    """What a recurrence gives: outputs, last states, and the gradients of all that need one.

    Every entry has a weight of its own in the loss, a positive one, as sums that cancel say nothing
    in float32.
    """

    def values(run, x, state, weights, **options):
        output, end = run(x, state, weights, **options)
        found = [output, *(end if isinstance(end, tuple) else (end,))]
        loss = 0.0
        for k, value in enumerate(found):
            weight = 1 + torch.cos(torch.arange(value.numel()) * 1.3 + k).to(value) / 2
            loss = loss + (value * weight.view_as(value)).sum() / x.shape[:2].numel()
        states = state if isinstance(state, tuple) else (state,)
        leaves = [leaf for leaf in (x, *states, *weights.values()) if leaf.requires_grad]
        gradients = [torch.zeros_like(leaf) for leaf in leaves]
        if leaves and loss.requires_grad:
            gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
        return [value.detach() for value in found] + list(gradients)

    return values
