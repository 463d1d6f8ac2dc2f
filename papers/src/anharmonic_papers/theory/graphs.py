"""Small graphs, their coupling matrices and differences between neighbours, for the statements.

Letters: `v` nodes, `E` edges, `m` features. A graph is ``edge_index`` [2, E], an undirected edge
in both directions; d_i is the number of neighbours of node i.
"""

import math
from collections.abc import Iterable

import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from anharmonic import _checks


class MatrixCoupling(nn.Module):
    """The coupling F(X) = w A X + B of features [v, m] with fixed A [v, v] and B; w is learned."""

    matrix: Tensor

    def __init__(self, matrix: Tensor, weight: float = 1.0, drive: Tensor | float = 0.0) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)
        self.weight, self.drive = nn.Parameter(matrix.new_tensor(weight)), drive

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """The coupling; the matrix says what the edges are."""
        return self.weight * (self.matrix @ x) + self.drive


def features(nodes: int, width: int, seed: int) -> Tensor:
    """Normally distributed features of an example, float64, [nodes, width]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, width, generator=generator, dtype=torch.float64)


def symmetric_stochastic(coupling: Tensor) -> dict[str, bool]:
    """The assumption on A that most statements on graphs share."""
    symmetric = torch.allclose(coupling, coupling.T, rtol=0, atol=1e-12)
    return {"A symmetric": symmetric} | rows_sum_to_one(coupling.sum(1))


def rows_sum_to_one(sums: Tensor) -> dict[str, bool]:
    """The assumption on A of statements that need no symmetry."""
    return {"rows of A sum to 1": bool((sums - 1).abs().max() < 1e-10)}


def undirected(pairs: Iterable[tuple[int, int]]) -> Tensor:
    """The edges [2, 2 E] of an undirected graph in both directions, from every edge once."""
    one_way = torch.tensor(list(pairs)).reshape(-1, 2).T
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def path(nodes: int) -> Tensor:
    """The graph of nodes in a row."""
    return undirected((i, i + 1) for i in range(nodes - 1))


def cycle(nodes: int) -> Tensor:
    """The graph of three or more nodes in a ring."""
    return undirected((i, (i + 1) % nodes) for i in range(nodes))


def random_graph(nodes: int, chords: int, seed: int) -> Tensor:
    """A connected graph: a random tree with further random edges, fewer where there is no room."""
    generator = torch.Generator().manual_seed(seed)
    pairs = {(int(torch.randint(i, (), generator=generator)), i) for i in range(1, nodes)}
    others = [(i, j) for j in range(nodes) for i in range(j) if (i, j) not in pairs]
    picked = torch.randperm(len(others), generator=generator)[:chords]
    return undirected(sorted(pairs | {others[k] for k in picked.tolist()}))


def neighbours(edge_index: Tensor, nodes: int) -> Tensor:
    """The matrix [v, v] with 1 at (i, j) where j is a neighbour of i.

    Refuses loops and edges that are missing in one direction.
    """
    found = torch.zeros(nodes, nodes, dtype=torch.float64)
    found[edge_index[1], edge_index[0]] = 1.0
    plain = torch.equal(found, found.T) and not bool(found.diagonal().any())
    advice = "list every edge in both directions and none from a node to itself"
    _checks.require(plain, "the graph", edge_index, "undirected and without loops", advice)
    return found


def gcn_matrix(edge_index: Tensor, nodes: int) -> Tensor:
    """The operator of GCN (7.5), A_ij = 1/sqrt(d_i d_j) with every node its own neighbour too."""
    found = neighbours(edge_index, nodes) + torch.eye(nodes, dtype=torch.float64)
    scale = found.sum(1).rsqrt()
    return scale[:, None] * found * scale


def random_walk_matrix(edge_index: Tensor, nodes: int) -> Tensor:
    """The mean over the neighbours (7.27), A_ij = 1/d_i: rows sum to 1, not symmetric."""
    found = neighbours(edge_index, nodes)
    return found / found.sum(1, keepdim=True)


def metropolis_matrix(edge_index: Tensor, nodes: int) -> Tensor:
    """A symmetric matrix whose rows sum to 1: A_ij = 1/(1 + max(d_i, d_j)), the rest on A_ii."""
    found = neighbours(edge_index, nodes)
    degree = found.sum(1)
    matrix = found / (1 + torch.maximum(degree[:, None], degree))
    return matrix + torch.diag(1 - matrix.sum(1))


def joined(matrix: Tensor) -> Tensor:
    """The matrix with 1 where a coupling matrix joins two different nodes."""
    return ((matrix != 0) & ~torch.eye(len(matrix), dtype=torch.bool)).to(matrix.dtype)


def difference_sum(x: Tensor, weights: Tensor) -> Tensor:
    """The ordered double sum Σ_i Σ_j w_ij |X_i - X_j|² of features [..., v, m], [...].

    With the neighbours as weights it is v times the Dirichlet energy (6.2).
    """
    i, j = weights.nonzero(as_tuple=True)
    return (weights[i, j, None] * (x[..., i, :] - x[..., j, :]).square()).sum((-2, -1))


def laplacian_values(weights: Tensor) -> Tensor:
    """The eigenvalues of the Laplacian of symmetric weights, ascending; connected: second > 0."""
    values: Tensor = torch.linalg.eigvalsh(torch.diag(weights.sum(1)) - weights)
    return values


def eccentricity(edge_index: Tensor, nodes: int) -> int:
    """The largest distance of the first node to another; a graph in several parts is refused."""
    weights = neighbours(edge_index, nodes)
    furthest = float(shortest_path(weights.numpy(), unweighted=True, indices=0).max())
    is_connected, advice = math.isfinite(furthest), "join its parts"
    _checks.require(is_connected, "the graph", "a node out of reach", "connected", advice)
    return int(furthest)
