import numpy as np
import pytest

pytest.importorskip("sklearn")


@pytest.fixture(scope="session")
def waves():
    """Slow and fast waves of two channels [n, C, T], and their names."""
    rng = np.random.default_rng(0)
    fast = rng.random(60) > 0.5
    phase = rng.uniform(0, 6, (60, 2, 1))
    x = np.sin(np.where(fast, 1.2, 0.3)[:, None, None] * np.arange(30) + phase)
    return x + 0.1 * rng.normal(size=x.shape), np.where(fast, "fast", "slow")
