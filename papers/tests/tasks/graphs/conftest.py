import numpy as np
import pytest

from anharmonic.data import coalesce


@pytest.fixture
def homophily():
    """Share of the distinct undirected edges, self-loops counted, that join nodes of one class."""

    def share(edges, y):
        once = coalesce(np.sort(edges, axis=0), len(y))
        return float((y[once[0]] == y[once[1]]).mean())

    path = np.array([[3, 0, 3, 1, 1], [1, 2, 1, 1, 3]])  # 3 - 1 three times, 0 - 2, 1 - 1
    assert share(path, np.array([0, 1, 0, 0])) == 2 / 3
    return share
