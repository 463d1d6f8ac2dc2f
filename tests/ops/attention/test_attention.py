"""Attention along edges beside dense matrices with a column per node."""

import functools
import itertools
import math

import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.attention import attention_weights, edge_product, edge_softmax, edge_sum
from anharmonic.ops.bridge import library

F64 = torch.float64
backends = pytest.mark.parametrize("backend", ops.available_backends("edge_sum"))
needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"needs the C library: {library.why_not()}"
)
# nodes, edges: directed, with self-loops, duplicates and isolated nodes by chance
graphs = pytest.mark.parametrize("nodes, edges", [(1, 0), (1, 3), (7, 0), (6, 40), (40, 300)])
# one lane, less than a vector, vectors and a rest, no feature at all
sizes = pytest.mark.parametrize("heads, wide", [(1, 1), (2, 3), (4, 17), (3, 130), (2, 0)])


def random_graph(nodes, edges, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Adjacency(torch.randint(0, nodes, (2, edges), generator=generator), nodes)


def draw(*shape, dtype=F64, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ends(graph):
    return graph.edge_index[:, graph.by_target.edge].tolist()


@backends
@graphs
@sizes
def test_products_are_those_of_both_ends(nodes, edges, heads, wide, backend):
    graph = random_graph(nodes, edges)
    q, k = draw(nodes, heads * wide), draw(nodes, heads * wide, seed=2)
    found = edge_product(q, k, graph, heads=heads, backend=backend)
    assert found.shape == (edges, heads)
    for e, (j, i) in enumerate(zip(*ends(graph), strict=True)):
        for h, (a, b) in enumerate(zip(q[i].split(wide), k[j].split(wide), strict=True)):
            assert torch.allclose(found[e, h], a @ b, rtol=1e-12, atol=1e-12)
        if not wide:
            assert (found[e] == 0).all()


@backends
@graphs
@pytest.mark.parametrize("heads", [1, 3, 8])
def test_softmax_sums_to_one_over_the_edges_of_a_node(nodes, edges, heads, backend):
    graph, score = random_graph(nodes, edges), 5 * draw(edges, heads)
    found = edge_softmax(score, graph, backend=backend)
    assert found.shape == (edges, heads)
    start = graph.by_target.start.tolist()
    for first, last in itertools.pairwise(start):
        expected = score[first:last].softmax(0)
        assert torch.allclose(found[first:last], expected, rtol=1e-13, atol=0)


@backends
@graphs
@sizes
def test_sums_are_those_over_in_neighbours(nodes, edges, heads, wide, backend):
    graph, w, x = random_graph(nodes, edges), draw(edges, heads), draw(nodes, heads * wide, seed=2)
    expected = torch.zeros(nodes, heads, wide, dtype=F64)
    for e, (j, i) in enumerate(zip(*ends(graph), strict=True)):
        expected[i] += w[e, :, None] * x[j].view(heads, wide)
    found = edge_sum(w, x, graph, backend=backend)
    assert torch.allclose(found, expected.flatten(1), rtol=1e-12, atol=1e-12)


def chain(q, k, x, graph, heads, backend):
    score = edge_product(q, k, graph, heads=heads, backend=backend)
    return edge_sum(edge_softmax(score, graph, backend=backend), x, graph, backend=backend)


@backends
@pytest.mark.parametrize("heads, wide", [(1, 1), (2, 3)])
def test_gradcheck(heads, wide, backend):
    graph = random_graph(5, 12)
    given = [draw(5, heads * wide, seed=s).requires_grad_() for s in range(3)]
    function = functools.partial(chain, graph=graph, heads=heads, backend=backend)
    assert torch.autograd.gradcheck(function, given)


@backends
def test_products_and_sums_have_second_derivatives(backend):
    graph = random_graph(5, 12)
    q, k, w = (draw(*s).requires_grad_() for s in ((5, 4), (5, 4), (12, 2)))
    product = functools.partial(edge_product, graph=graph, heads=2, backend=backend)
    total = functools.partial(edge_sum, graph=graph, backend=backend)
    assert torch.autograd.gradgradcheck(product, (q, k))
    assert torch.autograd.gradgradcheck(total, (w, k))


@backends
def test_the_softmax_has_second_derivatives(backend):
    graph, score = random_graph(5, 12), draw(12, 2).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda s: edge_softmax(s, graph, backend=backend), score)


@backends
@pytest.mark.parametrize("heads, wide", [(1, 5), (4, 17)])
def test_float32(heads, wide, backend):
    graph = random_graph(40, 300)
    given = [draw(40, heads * wide, seed=s) for s in range(3)]
    exact = chain(*given, graph, heads, "reference")
    found = chain(*[t.float() for t in given], graph, heads, backend)
    # scores of about 4 from terms rounded to 2^-24, of which the weights are the exponentials
    assert found.dtype == torch.float32
    assert (found.double() - exact).abs().max() < 3e-5 * exact.abs().max()


@backends
@pytest.mark.parametrize("far", [1e3, -1e3, 3e38])
def test_large_scores_stay_finite(far, backend):
    graph = Adjacency(torch.tensor([[0, 1, 2], [2, 2, 2]]), 3)
    score = torch.tensor([[far], [0.0], [-math.inf]], requires_grad=True)
    found = edge_softmax(score, graph, backend=backend)
    assert torch.equal(found.flatten(), torch.tensor([float(far > 0), float(far < 0), 0.0]))
    found[0].sum().backward()
    assert torch.isfinite(score.grad).all()


@backends
def test_nan_spoils_only_its_own_node(backend):
    graph = Adjacency(torch.tensor([[0, 1, 2, 0], [2, 2, 0, 1]]), 3)
    score = torch.zeros(4, 2)
    score[2, 1] = math.nan  # the first edge of node 2, sorted by target
    found = edge_softmax(score, graph, backend=backend)
    wrong = torch.isnan(found)
    assert wrong[2:, 1].all() and not wrong[:2].any() and not wrong[:, 0].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision(dtype):
    graph = random_graph(6, 20)
    given = [draw(6, 4, seed=s) for s in range(3)]
    found = chain(*[t.to(dtype) for t in given], graph, 2, "auto")
    assert found.dtype == dtype
    exact = chain(*given, graph, 2, "auto")
    assert torch.allclose(found.double(), exact, rtol=0.05, atol=0.05)


@needs_library
def test_threads_do_not_change_a_bit():
    graph = random_graph(500, 9000)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaves = [draw(500, 68, dtype=torch.float32, seed=s).requires_grad_() for s in range(3)]
            y = chain(*leaves, graph, 4, "native")
            y.square().sum().backward()
            found.append((y.detach(), *[leaf.grad for leaf in leaves]))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, found[0], strict=True))


@needs_library
@pytest.mark.parametrize("instruction_set", library.available())
def test_every_instruction_set(instruction_set):
    in_use, graph = library.instruction_set(), random_graph(40, 300)
    given = [draw(40, 4 * 13, seed=s) for s in range(3)]
    library.select(instruction_set)
    try:
        found = chain(*given, graph, 4, "native")
    finally:
        library.select(in_use)
    expected = chain(*given, graph, 4, "reference")
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_transforms_take_the_reference():
    graph, q, k, x = random_graph(6, 20), draw(6, 4), draw(6, 4, seed=2), draw(6, 4, seed=3)
    run = functools.partial(chain, graph=graph, heads=2, backend="auto")
    several = torch.func.vmap(run, in_dims=(0, None, None))(torch.stack([q, -q]), k, x)
    assert torch.allclose(several[1], run(-q, k, x), rtol=1e-12)
    _, slope = torch.func.jvp(lambda x: run(q, k, x), (x,), (k,))
    assert torch.allclose(slope, run(q, k, k), rtol=1e-12)


@backends
def test_compiles_as_one_graph(backend):
    graph = random_graph(6, 20)
    leaves = [draw(6, 4, seed=s).requires_grad_() for s in range(3)]
    run = functools.partial(chain, graph=graph, heads=2, backend=backend)
    eager = run(*leaves)
    traced = torch.compile(run, backend="aot_eager", fullgraph=True)(*leaves)
    assert torch.allclose(eager, traced, rtol=1e-13)
    for a, b in zip(
        torch.autograd.grad(eager.sum(), leaves),
        torch.autograd.grad(traced.sum(), leaves),
        strict=True,
    ):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-15)


@needs_library
def test_fake_results_have_the_shapes_of_real_ones():
    graph = random_graph(6, 20)
    rows, back, place = graph.by_target, graph.by_source, graph.place_by_source
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    q, w = draw(6, 4).requires_grad_(), draw(20, 2).requires_grad_()
    turned = (back.start, back.other, place)
    for operator, given in (
        ("edge_product", (q, draw(4, 6).T, rows.start, rows.other, *turned, 2)),
        ("edge_sum", (w, q, rows.start, rows.other, None, *turned)),
        ("edge_sum", (w, q, *turned, rows.start, rows.other, None)),
        ("edge_softmax", (w, rows.start)),
    ):
        called = getattr(torch.ops.anharmonic, operator).default
        torch.library.opcheck(called, given, test_utils=tests)


@needs_library
def test_what_does_not_fit_the_library_is_said():
    graph, w, x = random_graph(6, 20), draw(20, 2), draw(6, 4).float()
    with pytest.raises(ValueError, match=r"torch\.float64 beside torch\.float32"):
        edge_sum(w, x, graph, backend="native")
    with ah.use_backend("reference"):
        assert edge_sum(w, x, graph).dtype == F64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g, x, w: edge_product(x[:2], x, g), r"query must be a tensor \[N=6, F\]"),
        (lambda g, x, w: edge_product(x, x[:2], g), r"key must be a tensor \[N=6, F\]"),
        (lambda g, x, w: edge_product(x, x[:, :2], g), "query and key must have the same width"),
        (lambda g, x, w: edge_product(x, x, g, heads=3), "a multiple of heads=3"),
        (lambda g, x, w: edge_product(x, x, g, heads=0), "heads must be an int >= 1"),
        (lambda g, x, w: edge_softmax(w[:1], g), r"score must be a tensor \[E=20, H >= 1\]"),
        (lambda g, x, w: edge_softmax(w[:, :0], g), r"score must be a tensor \[E=20, H >= 1\]"),
        (lambda g, x, w: edge_softmax(w[:, 0], g), r"score must be a tensor \[E=20, H >= 1\]"),
        (lambda g, x, w: edge_sum(w[:1], x, g), r"weight must be a tensor \[E=20, H >= 1\]"),
        (lambda g, x, w: edge_sum(w, x[:2], g), r"x must be a tensor \[N=6, F\]"),
        (lambda g, x, w: edge_sum(w, x[:, :3], g), "must be a multiple of the 2 heads of weight"),
        (lambda g, x, w: edge_sum(w.to("meta"), x, g), "on cpu; got .* on meta"),
        (lambda g, x, w: attention_weights(x, x, g, heads=3), "a multiple of heads=3"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_read(call, text):
    with pytest.raises(ValueError, match=text):
        call(random_graph(6, 20), draw(6, 4), draw(20, 2))


def test_numbers_must_be_floating_point():
    with pytest.raises(TypeError, match="weight must be a floating-point tensor"):
        edge_sum(torch.ones(20, 2).long(), draw(6, 4), random_graph(6, 20))
