"""Lists of edges; what is refused is tested where graphs are made, in test_adjacency.py."""

import pytest
import torch

from anharmonic.ops.edges import check_edges, check_weight, edges_of, node_count

EDGES = torch.tensor([[0, 1], [1, 2]])


def test_check_edges_returns_what_it_was_given():
    assert check_edges(EDGES, 3) is EDGES
    assert check_edges(torch.empty(2, 0, dtype=torch.int64), 0).shape == (2, 0)
    assert torch.equal(check_edges(EDGES.int(), 3), EDGES)
    with pytest.raises(ValueError, match=r"nodes in \[0, 2\)"):
        check_edges(EDGES, 2)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_sparse_row_holds_the_edges_that_end_in_it(layout):
    dense = torch.zeros(3, 3)
    dense[1, 0] = dense[2, 1] = 1.0
    assert torch.equal(edges_of(dense.to_sparse(layout=layout)), EDGES)


def test_counts_and_weights():
    assert node_count(3) == 3
    with pytest.raises(ValueError, match=r"num_nodes must be .*got -1"):
        node_count(-1)
    check_weight(torch.ones(2), EDGES)
    with pytest.raises(ValueError, match=r"weight must be a tensor \[E=2\]"):
        check_weight(torch.ones(3), EDGES)
