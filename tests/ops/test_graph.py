"""Sums over neighbours and the gate beside dense arrays, and the C library beside the reference."""

import math
from functools import partial

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import gradient_gate, library
from anharmonic.ops.graph import Adjacency, neighbour_sum

F32, F64 = torch.float32, torch.float64
BACKENDS = ops.available_backends("gradient_gate")
POWERS = [0.5, 1, 1.5, 2, 2.7, 3, 4, 5]
# nodes, edges: directed, with self-loops, duplicates and isolated nodes by chance
GRAPHS = [(1, 0), (1, 3), (7, 0), (6, 40), (50, 30), (30, 100)]
backends = pytest.mark.parametrize("backend", BACKENDS)
powers = pytest.mark.parametrize("p", POWERS)
aggregations = pytest.mark.parametrize("aggr", ["sum", "mean", "max"])
neighbours_of = pytest.mark.parametrize("neighbours", ["in", "out"])
single_rates = pytest.mark.parametrize("single_rate", [False, True], ids=["multi", "single"])
weighted = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"needs the C library: {library.why_not()}"
)
OPERATIONS = {
    "neighbours": lambda x, graph: graph.matmul(x),
    "gate": partial(gradient_gate, p=1.5),
    "gate, mean": partial(gradient_gate, p=2.0, aggr="mean"),
    "gate, one rate": partial(gradient_gate, p=2.5, aggr="mean", single_rate=True),
    "gate, max": partial(gradient_gate, p=2.5, aggr="max"),
}
operations = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
compiled = pytest.mark.parametrize("operation", [*OPERATIONS.values()][:4], ids=[*OPERATIONS][:4])


def random_graph(nodes, edges, weighted=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    weight = torch.randn(edges, generator=generator, dtype=F64) if weighted else None
    return Adjacency(edge_index, nodes, weight)


def features(nodes, width, dtype=F64, ties=False, seed=1):
    """Features between -0.5 and 0.5, where tanh is not yet flat; with ties, of four values."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.rand(nodes, width, generator=generator, dtype=F64) - 0.5
    return ((4 * h).round() / 4 if ties else h).to(dtype)


def dense(graph, weight=None):
    """The edges as a matrix, entry by entry; target by source."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=F64)
    for e, (source, target) in enumerate(graph.edge_index.T.tolist()):
        matrix[target, source] += 1.0 if weight is None else weight[e]
    return matrix


def values(operation, x, graph, backend="auto", seed=None):
    """The result, with gradients as without, and the gradient of its products with ``seed``."""
    leaf = x.clone().requires_grad_()
    with ah.use_backend(backend):
        found = operation(leaf, graph)
        assert torch.equal(operation(x, graph), found)
        seed = features(*x.shape, x.dtype, seed=2) if seed is None else seed
        (gradient,) = torch.autograd.grad(found, leaf, seed[:, : found.shape[1]])
    return found.detach(), gradient


# ---- sums over neighbours ----
def test_what_is_derived_is_right_and_kept():
    graph = random_graph(6, 20)
    assert torch.equal(
        dense(graph.transposed, graph.transposed.weight), dense(graph, graph.weight).T
    )
    assert graph.transposed.transposed is graph and graph.transposed.by_target is graph.by_source
    assert graph.by_target is graph.by_target and graph.normalised is graph.normalised
    assert graph.sparse(F64) is graph.sparse(F64) and graph.to("cpu") is graph
    away = graph.to("meta")
    assert graph.device.type == "cpu" and away.device.type == away.weight.device.type == "meta"
    assert (away.num_nodes, away.num_edges) == (6, 20)


@pytest.mark.covering(2)
@pytest.mark.parametrize("core", ["reference", *library.available()])
@pytest.mark.parametrize("dtype, bound", [(F64, 1e-14), (F32, 1e-6)], ids=["double", "float"])
@pytest.mark.parametrize("kind", ["sum", "weighted sum", "mean"])
@pytest.mark.parametrize("width", [0, 1, 3, 17, 45, 130])
@pytest.mark.parametrize("nodes, edges", GRAPHS)
def test_is_the_dense_product(nodes, edges, width, kind, dtype, bound, core, select):
    """A mean leaves weights out."""
    graph = random_graph(nodes, edges, weighted=kind != "sum")
    matrix = dense(graph, None if kind == "mean" else graph.weight)
    operation = Adjacency.matmul
    if kind == "mean":
        matrix, operation = matrix / matrix.sum(1, keepdim=True).clamp(min=1), Adjacency.mean
    if core != "reference":
        select(core)
    x, seed = features(nodes, width, dtype), features(nodes, width, dtype, seed=2)
    found = values(
        lambda x, graph: operation(graph, x), x, graph,
        "reference" if core == "reference" else "native",
    )  # fmt: skip
    for got, M, v in zip(found, (matrix, matrix.T), (x.double(), seed.double()), strict=True):
        assert got.dtype is dtype
        assert ((got.double() - M @ v).abs() <= bound * (M.abs() @ v.abs())).all()


@weighted
@pytest.mark.parametrize("seed", range(3))
def test_is_that_of_pytorch_geometric(seed, weighted):
    norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv", reason="needs torch_geometric")
    # directed, with self-loops and duplicates; weights >= 0, or roots of degrees are NaN there
    graph = random_graph(9, 40, weighted, seed=seed)
    weight = None if graph.weight is None else graph.weight.abs()
    ours = Adjacency(graph.edge_index, 9, weight).normalised
    edges, weights = norm.gcn_norm(
        graph.edge_index, weight, num_nodes=9, add_self_loops=True, dtype=F64
    )
    theirs = dense(Adjacency(edges, 9), weights)
    assert torch.allclose(dense(ours, ours.weight), theirs, rtol=1e-12, atol=1e-15)


def test_a_node_without_degree_has_no_rows():
    graph = Adjacency(torch.tensor([[0, 1], [1, 1]]), 2, torch.tensor([1.0, -1.0])).normalised
    assert dense(graph, graph.weight)[1].tolist() == [0, 0]


def test_edges_changed_behind_our_back():
    edges = torch.tensor([[0, 1], [1, 2]])
    graph, fresh = Adjacency(edges, 3), Adjacency(edges.clone(), 3)
    edges[0, 0] = fresh.edge_index[0, 0] = 77
    graph.matmul(torch.ones(3, 1))
    with pytest.raises(ValueError, match="values from 1 to 77"):
        fresh.matmul(torch.ones(3, 1))


# ---- the gate ----
@pytest.mark.covering(2)
@aggregations
@powers
@single_rates
@neighbours_of
def test_the_gate_is_its_formula_on_dense_arrays(aggr, neighbours, single_rate, p):
    gate = partial(
        gradient_gate, p=p, aggr=aggr, neighbours=neighbours, single_rate=single_rate,
        backend="reference",
    )  # fmt: skip
    for nodes, edges in GRAPHS:
        for width in (0, 3):
            h, graph = features(nodes, width), random_graph(nodes, edges)
            count = dense(graph)  # of edges, by node and neighbour; weights are left out
            count = (count if neighbours == "in" else count.T)[:, :, None]
            terms = (h[None, :, :] - h[:, None, :]).abs() ** p
            if single_rate:
                terms = terms.sum(2, keepdim=True)
            total = (count * terms).sum(1)
            if aggr == "mean":
                total = total / count.sum(1).clamp(min=1)
            if aggr == "max":
                total = terms.masked_fill(count == 0, 0.0).amax(1)
            rates = gate(h, graph)
            assert rates.shape == (nodes, 1 if single_rate else width)
            assert torch.allclose(rates, total.tanh(), rtol=1e-12, atol=1e-15)
    graph, h = random_graph(6, 14), features(6, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda h: gate(h, graph), h)


@backends
def test_small_differences_of_large_features_do_not_cancel(backend):
    graph = Adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    h = torch.tensor([[4096.0], [4096.0 + 2**-10]])
    s = gradient_gate(h, graph, backend=backend)
    assert s.flatten().tolist() == pytest.approx([2**-20, 2**-20], rel=1e-6)


@pytest.mark.covering
@backends
@powers
def test_ties_have_finite_gradients(p, backend):
    graph = random_graph(30, 100)
    for h in (features(30, 3, ties=True), torch.ones(30, 3, dtype=F64)):
        rates = gradient_gate(h.requires_grad_(), graph, p=p, backend=backend)
        twice = backend == "reference"
        (first,) = torch.autograd.grad(rates.sum(), h, create_graph=twice)
        assert first.isfinite().all()
        if twice:
            (second,) = torch.autograd.grad(first.square().sum(), h)
            assert second.isfinite().all()
    assert not rates.any() and not first.any()  # where all are alike


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    "backend, aggr",
    [(b, a) for b in BACKENDS for a in ("sum", "mean", "max") if (b, a) != ("native", "max")],
)
@powers
@single_rates
@pytest.mark.parametrize("apart", [0.4, 0.9, 1.1])  # slopes that, alone or added, overflow
def test_nodes_far_apart_have_a_finite_gradient(apart, single_rate, p, backend, aggr):
    gate = partial(gradient_gate, p=p, aggr=aggr, single_rate=single_rate)
    h = features(6, 3, F32)
    h[2] = apart * torch.finfo(h.dtype).max ** (1 / max(p - 1, 2))
    rates, gradient = values(gate, h, random_graph(6, 40), backend, torch.ones(6, 3))
    assert gradient.isfinite().all() and rates.max() == 1


@needs_library
def test_nan_stays_where_it_is_seen():
    graph = Adjacency(torch.tensor([[0, 1, 2], [1, 2, 2]]), 4)
    for p in POWERS:
        h = torch.tensor([[math.nan], [0.0], [1.0], [1.0]])
        rates = gradient_gate(h, graph, p=p, backend="native").flatten()
        assert rates.isnan().tolist() == [False, True, False, False]


def compare(h, graph, words, select):
    """Every instruction set against the one truth."""
    gate, said = partial(gradient_gate, **words), str(words)
    rates, gradient = values(gate, h, graph, "reference")
    # ties of float64 are ties of float32: they are multiples of 1/4; else h itself is rounded
    single, seed = h.float(), features(*h.shape, F32, seed=2)
    exact = values(gate, single.double(), graph, "reference", seed.double())
    for instruction_set in library.available():
        select(instruction_set)
        ours = values(gate, h, graph, "native")
        assert torch.allclose(ours[0], rates, rtol=1e-12, atol=1e-14), said
        off = (ours[1] - gradient).abs().max()
        assert off <= 1e-12 * gradient.abs().max().clamp(min=1), said
        # of some 10 terms, each with 1.5 + p units of 2^-23 at most, before sums and tanh
        for a, b in zip(values(gate, single, graph, "native"), exact, strict=True):
            assert a.dtype is F32
            assert (a.double() - b).abs().max() <= 1e-5 * b.abs().max().clamp(min=1), said


@needs_library
@pytest.mark.covering
@powers
@pytest.mark.parametrize("width", [1, 3, 17, 130])
@pytest.mark.parametrize("ties", [False, True], ids=["any", "ties"])
def test_the_compiled_gate_is_the_reference(ties, width, p, select):
    for nodes, edges in GRAPHS:
        h, graph = features(nodes, width, ties=ties), random_graph(nodes, edges)
        for call in range(8):
            words = {
                "p": p,
                "aggr": "mean" if call & 1 else "sum",
                "neighbours": "out" if call & 2 else "in",
                "single_rate": bool(call & 4),
            }
            compare(h, graph, words, select)


@needs_library
@neighbours_of
def test_a_node_with_most_of_the_edges(neighbours, select):
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(0, 300, (5000,), generator=generator)
    target = torch.where(torch.rand(5000, generator=generator) < 0.9, 7, source.flip(0))
    graph, h = Adjacency(torch.stack([source, target]), 300), 0.01 * features(300, 70)
    compare(h, graph, {"p": 1.5, "neighbours": neighbours}, select)


@needs_library
@pytest.mark.covering(2)
@pytest.mark.parametrize("p", [0.5, 1.5, 2.5, 2.7, 5.0, 7.3])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("instruction_set", library.available())
def test_error_of_powers(instruction_set, dtype, p, select):
    """|d|^p and p |d|^(p - 1), seen through a graph of one edge: numbers of every size."""
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("needs a long double wider than double")
    kind = torch.finfo(dtype)
    if dtype is F32:
        bits = torch.arange(1, 0x7F800000, 99991, dtype=torch.int64).to(torch.int32)
        wide = bits.view(F32)
    else:
        wide = torch.exp2(torch.linspace(-1074, 1023.9, 10_001, dtype=F64))
    d = torch.cat([wide, torch.linspace(0.25, 4, 10_001, dtype=F64).to(dtype)])
    h, zero = torch.stack([torch.zeros_like(d), d]), torch.zeros_like(d)
    rows = *map(torch.tensor, ([0, 1, 1], [1], [0, 0, 1], [0])), p, False, False
    select(instruction_set)
    gate, backward = torch.ops.anharmonic.gate_sum, torch.ops.anharmonic.gate_sum_backward
    found = gate(h, *rows)[0], backward(torch.stack([zero + 1, zero]), h, *rows)[1]
    wide, q = d.numpy().astype(np.longdouble), np.longdouble(p)
    with np.errstate(over="ignore"):
        exact = wide**q, q * wide ** (q - 1)
    for got, true in zip(found, exact, strict=True):
        got = got.numpy()
        normal = (true > kind.tiny) & (true < 0.999 * np.longdouble(kind.max))
        relative = np.abs(got[normal] - true[normal]) / true[normal]
        assert relative.max() <= (1.5 + p) * kind.eps
        assert np.abs(got - true)[true <= kind.tiny].max(initial=0) <= (
            (1.5 + p) * np.longdouble(kind.smallest_normal) * kind.eps
        )
        assert np.isinf(got[true / 1.001 > np.longdouble(kind.max)]).all()


# ---- what holds of both ----
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@operations
def test_half_precision(operation, dtype):
    graph, x = random_graph(6, 20), features(6, 3, dtype)
    found = values(operation, x, graph)
    for half, exact in zip(found, values(operation, x.double(), graph), strict=True):
        assert half.dtype == dtype
        torch.testing.assert_close(half.double(), exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@operations
def test_a_node_of_many_neighbours_in_half_precision(operation, dtype):
    ends = torch.stack([torch.arange(1, 3001), torch.zeros(3000, dtype=torch.long)])
    graph = Adjacency(torch.cat([ends, ends.flip(0)], 1), 3001)
    x = torch.linspace(0, 0.5, 3001)[:, None].to(dtype)
    torch.testing.assert_close(
        operation(x, graph).double(), operation(x.double(), graph), rtol=0.02, atol=0.02
    )


@operations
def test_transforms_and_second_derivatives_take_the_reference(operation):
    graph, x = random_graph(5, 12), torch.stack([features(5, 2, seed=k) for k in range(4)])
    found = torch.func.vmap(lambda x: operation(x, graph))(x)
    assert torch.allclose(found, torch.stack([operation(one, graph) for one in x]), rtol=1e-13)
    h = x[0].clone().requires_grad_()
    with ah.use_backend("reference"):
        # at p < 2, differences of the numerical derivative are of its step's size
        assert torch.autograd.gradcheck(lambda h: operation(h, graph), h, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda h: operation(h, graph), h, eps=1e-7, atol=1e-4)


@needs_library
def test_second_derivatives_of_the_compiled_gate_are_refused_and_those_of_a_sum_are_right():
    graph, h = random_graph(6, 20), features(6, 3).requires_grad_()
    rates = gradient_gate(h, graph, backend="native")
    with pytest.raises(RuntimeError, match=r"differentiated once.*use_backend"):
        torch.autograd.grad(rates.sum(), h, create_graph=True)
    assert torch.autograd.gradgradcheck(partial(neighbour_sum, graph=graph, backend="native"), h)


@needs_library
@compiled
def test_threads_do_not_change_a_bit(operation, same_bits_with_any_threads):
    graph, x = random_graph(500, 9000), features(500, 70, F32)
    same_bits_with_any_threads(lambda: values(operation, x, graph, "native"))


@needs_library
@pytest.mark.parametrize("single_rate", [None, False, True], ids=["neighbours", "multi", "single"])
def test_fake_results_have_the_shapes_of_real_ones(single_rate):
    graph, ops = random_graph(6, 20), torch.ops.anharmonic
    rows, back = graph.by_target[:2], graph.by_source[:2]
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    check = partial(torch.library.opcheck, test_utils=tests)
    for x in (features(6, 3), features(3, 6).T):
        if single_rate is None:
            weight, back_weight = graph.row_weights(F64)
            arguments = (x.requires_grad_(), *rows, weight, *back, back_weight)
            check(ops.neighbour_sum.default, arguments)
        else:
            arguments = (x, *rows, *back, 2.5, False, single_rate)
            check(ops.gate_sum.default, arguments)
            grad = torch.ones_like(ops.gate_sum.default(*arguments))
            check(ops.gate_sum_backward.default, (grad, *arguments))


@needs_library
@pytest.mark.parametrize(
    "words, text",
    [
        ({"aggr": "max"}, r"aggr='max', which only the reference has; use backend='auto'"),
        ({"h": torch.ones(3, 2).half()}, r"torch.float16"),
    ],
)
def test_forced_backend_says_why_it_cannot(words, text):
    call = {"h": torch.ones(3, 2), "graph": random_graph(3, 2), **words}
    with pytest.raises(ValueError, match=text):
        gradient_gate(**call, backend="native")
    with ah.use_backend("native"), pytest.raises(ValueError, match=text):
        gradient_gate(**call)
