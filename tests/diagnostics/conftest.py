import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws the same numbers, alone and after others."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        yield
