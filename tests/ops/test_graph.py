"""Graphs as sorted rows beside dense matrices and beside what PyTorch Geometric computes."""

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import library
from anharmonic.ops.graph import Adjacency, neighbour_sum

F64 = torch.float64
BACKENDS = ops.available_backends("neighbour_sum")
backends = pytest.mark.parametrize("backend", BACKENDS)
needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"needs the C library: {library.why_not()}"
)
# nodes, edges: directed, with self-loops, duplicates and isolated nodes by chance
GRAPHS = [(1, 0), (1, 3), (7, 0), (6, 40), (50, 30), (40, 300)]


def random_graph(nodes, edges, weighted=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    weight = torch.randn(edges, generator=generator, dtype=F64) if weighted else None
    return Adjacency(edge_index, nodes, weight)


weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def dense(graph):
    """The operator as a matrix, entry by entry."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=F64)
    for e, (source, target) in enumerate(graph.edge_index.T.tolist()):
        matrix[target, source] += 1.0 if graph.weight is None else graph.weight[e]
    return matrix


def features(*shape, dtype=F64, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_what_is_derived_is_right_and_kept():
    graph = random_graph(6, 20, weighted=True)
    assert torch.equal(dense(graph.transposed), dense(graph).T)
    assert graph.transposed.transposed is graph and graph.transposed.by_target is graph.by_source
    assert graph.by_target is graph.by_target and graph.normalised is graph.normalised
    assert graph.sparse(F64) is graph.sparse(F64) and graph.to("cpu") is graph
    away = graph.to("meta")
    assert graph.device.type == "cpu" and away.device.type == away.weight.device.type == "meta"
    assert (away.num_nodes, away.num_edges) == (6, 20)


@pytest.mark.covering(2)
@backends
@weighted
@pytest.mark.parametrize("width", [0, 1, 3, 17, 130])
@pytest.mark.parametrize("nodes, edges", GRAPHS)
def test_is_the_dense_product(nodes, edges, width, weighted, backend):
    graph = random_graph(nodes, edges, weighted)
    x = features(nodes, width).requires_grad_()
    seed = features(nodes, width, seed=2)
    matrix = dense(graph)
    found = neighbour_sum(x, graph, backend=backend)
    assert torch.allclose(found, matrix @ x, rtol=1e-12, atol=1e-12)
    gradient = torch.autograd.grad(found, x, seed)[0]
    assert torch.allclose(gradient, matrix.T @ seed, rtol=1e-12, atol=1e-12)


@backends
@pytest.mark.parametrize("width", [1, 3, 17, 130])
def test_float32(width, backend):
    graph = random_graph(40, 300, weighted=True)
    x = features(40, width)
    found = neighbour_sum(x.float(), graph, backend=backend).double()
    # sums of about 8 terms, each rounded to 2^-24
    assert (found - dense(graph) @ x).abs().max() < 1e-6 * (dense(graph).abs() @ x.abs()).max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision(dtype):
    graph = random_graph(6, 20, weighted=True)
    x = features(6, 3).to(dtype).requires_grad_()
    found = graph.matmul(x)
    assert found.dtype == dtype
    exact = dense(graph) @ x.detach().double()
    assert torch.allclose(found.double(), exact, rtol=0.05, atol=0.05)
    found.sum().backward()
    exact = dense(graph).sum(0)[:, None].expand(6, 3)
    assert torch.allclose(x.grad.double(), exact, rtol=0.05, atol=0.05)


@backends
@weighted
def test_gradcheck(weighted, backend):
    graph = random_graph(5, 12, weighted)
    x = features(5, 2).requires_grad_()
    with ah.use_backend(backend):
        assert torch.autograd.gradcheck(graph.matmul, x)
        assert torch.autograd.gradgradcheck(graph.matmul, x)


def test_transforms_take_the_reference():
    graph, x = random_graph(5, 12, weighted=True), features(4, 5, 2)
    found, slope = torch.func.jvp(torch.func.vmap(graph.matmul), (x,), (x.flip(0),))
    assert torch.allclose(found, dense(graph) @ x, rtol=1e-13)
    assert torch.allclose(slope, dense(graph) @ x.flip(0), rtol=1e-13)


@needs_library
def test_threads_do_not_change_a_bit(same_bits_with_any_threads):
    graph, x = random_graph(500, 9000, weighted=True), features(500, 70, dtype=torch.float32)

    def run():
        leaf = x.clone().requires_grad_()
        y = neighbour_sum(leaf, graph, backend="native")
        return y.detach(), *torch.autograd.grad(y.square().sum(), leaf)

    same_bits_with_any_threads(run)


@needs_library
@pytest.mark.parametrize("instruction_set", library.available())
def test_every_instruction_set(instruction_set, select):
    graph, x = random_graph(40, 300, weighted=True), features(40, 45)
    select(instruction_set)
    found = neighbour_sum(x, graph, backend="native")
    assert torch.allclose(found, dense(graph) @ x, rtol=1e-12, atol=1e-12)


@needs_library
def test_fake_results_have_the_shapes_of_real_ones():
    graph = random_graph(6, 20, weighted=True)
    rows, back = graph.by_target, graph.by_source
    weight, back_weight = graph.row_weights(F64)
    for x in (features(6, 3), features(3, 6).T):
        torch.library.opcheck(
            torch.ops.anharmonic.neighbour_sum.default,
            (x.requires_grad_(), rows.start, rows.other, weight, back.start, back.other,
             back_weight),
            test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
        )  # fmt: skip


@pytest.mark.covering(2)
@backends
@pytest.mark.parametrize("nodes, edges", GRAPHS)
def test_divides_by_the_edges_and_leaves_weights_out(nodes, edges, backend):
    graph = random_graph(nodes, edges, weighted=True)
    x = features(nodes, 5).requires_grad_()
    matrix = dense(Adjacency(graph.edge_index, nodes))
    matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    with ah.use_backend(backend):
        found = graph.mean(x)
    assert torch.allclose(found, matrix @ x, rtol=1e-12, atol=1e-14)
    gradient = torch.autograd.grad(found.sum(), x)[0]
    assert torch.allclose(gradient, matrix.T.sum(1)[:, None].expand_as(x), rtol=1e-12)


@weighted
@pytest.mark.parametrize("seed", range(3))
def test_is_that_of_pytorch_geometric(seed, weighted):
    norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv", reason="needs torch_geometric")
    # directed, with self-loops and duplicates; weights >= 0, or roots of degrees are NaN there
    graph = random_graph(9, 40, weighted, seed=seed)
    weight = None if graph.weight is None else graph.weight.abs()
    graph = Adjacency(graph.edge_index, 9, weight)
    edges, weights = norm.gcn_norm(
        graph.edge_index, weight, num_nodes=9, add_self_loops=True, dtype=F64
    )
    theirs = dense(Adjacency(edges, 9, weights))
    assert torch.allclose(dense(graph.normalised), theirs, rtol=1e-12, atol=1e-15)


def test_a_node_without_degree_has_no_rows():
    graph = Adjacency(torch.tensor([[0, 1], [1, 1]]), 2, torch.tensor([1.0, -1.0]))
    assert dense(graph.normalised)[1].tolist() == [0, 0]


def test_edges_changed_behind_our_back():
    edges = torch.tensor([[0, 1], [1, 2]])
    graph = Adjacency(edges, 3)
    edges[0, 0] = 77
    graph.matmul(torch.ones(3, 1))
    fresh = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3)
    fresh.edge_index[0, 0] = 77
    with pytest.raises(ValueError, match="values from 1 to 77"):
        fresh.matmul(torch.ones(3, 1))
