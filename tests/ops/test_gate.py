"""The gate beside its formula on dense arrays, and the compiled one beside the reference."""

import math

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic import ops
from anharmonic.ops import gradient_gate, library
from anharmonic.ops.graph import Adjacency

F64 = torch.float64
BACKENDS = ops.available_backends("gradient_gate")
POWERS = [0.5, 1, 1.5, 2, 2.7, 3, 4, 5]
# nodes, edges: directed, with self-loops, duplicates and isolated nodes by chance
GRAPHS = [(1, 0), (1, 3), (7, 0), (6, 40), (30, 100)]
backends = pytest.mark.parametrize("backend", BACKENDS)
# the maximum has the reference only
aggregations = pytest.mark.parametrize(
    "backend, aggr",
    [(b, a) for b in BACKENDS for a in ("sum", "mean", "max") if (b, a) != ("native", "max")],
)
powers = pytest.mark.parametrize("p", POWERS)
neighbours_of = pytest.mark.parametrize("neighbours", ["in", "out"])
single_rates = pytest.mark.parametrize("single_rate", [False, True], ids=["multi", "single"])


def every_setting(test):
    """Gives a test all settings of the gate."""
    for mark in (neighbours_of, single_rates, powers, aggregations):
        test = mark(test)
    return pytest.mark.covering(2)(test)


needs_library = pytest.mark.skipif(
    library.library() is None, reason=f"needs the C library: {library.why_not()}"
)


def random_graph(nodes, edges, seed=0):
    """With weights, which the gate leaves out."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    return Adjacency(edge_index, nodes, torch.rand(edges, generator=generator))


def features(nodes, width, dtype=F64, ties=False, seed=1):
    """Features between -0.5 and 0.5, where tanh is not yet flat; with ties, of four values."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.rand(nodes, width, generator=generator, dtype=F64) - 0.5
    return ((4 * h).round() / 4 if ties else h).to(dtype)


def closed_form(h, graph, p, aggr, neighbours, single_rate):
    """The rates from arrays [N, N, F] and the number of edges [N, N]."""
    n = graph.num_nodes
    count = torch.zeros(n, n, dtype=h.dtype)
    for source, target in graph.edge_index.T.tolist():
        i, j = (target, source) if neighbours == "in" else (source, target)
        count[i, j] += 1
    terms = (h[None, :, :] - h[:, None, :]).abs() ** p  # of node i (first) and neighbour j
    if single_rate:
        terms = terms.sum(2, keepdim=True)
    total = (count[:, :, None] * terms).sum(1)
    if aggr == "mean":
        total = total / count.sum(1, keepdim=True).clamp(min=1)
    if aggr == "max":
        total = terms.masked_fill(count[:, :, None] == 0, 0.0).amax(1)
    return total.tanh()


def slope(h, graph, seed, **words):
    """Rates and the gradient of their products with ``seed``."""
    leaf = h.clone().requires_grad_()
    rates = gradient_gate(leaf, graph, **words)
    (gradient,) = torch.autograd.grad(rates, leaf, seed[:, : rates.shape[1]])
    return rates.detach(), gradient


@every_setting
def test_dense(aggr, neighbours, single_rate, p, backend):
    words = {"p": p, "aggr": aggr, "neighbours": neighbours, "single_rate": single_rate}
    for nodes, edges in GRAPHS:
        for width in (0, 3):
            h, graph = features(nodes, width), random_graph(nodes, edges)
            rates = gradient_gate(h, graph, backend=backend, **words)
            assert rates.shape == (nodes, 1 if single_rate else width)
            assert torch.allclose(rates, closed_form(h, graph, **words), rtol=1e-12, atol=1e-15)


@backends
def test_small_differences_of_large_features_do_not_cancel(backend):
    graph = Adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    h = torch.tensor([[4096.0], [4096.0 + 2**-10]])
    s = gradient_gate(h, graph, backend=backend)
    assert s.flatten().tolist() == pytest.approx([2**-20, 2**-20], rel=1e-6)


@every_setting
def test_gradcheck(aggr, neighbours, single_rate, p, backend):
    graph, h = random_graph(6, 14), features(6, 3).requires_grad_()
    words = {"p": p, "aggr": aggr, "neighbours": neighbours, "single_rate": single_rate}
    assert torch.autograd.gradcheck(lambda h: gradient_gate(h, graph, backend=backend, **words), h)


@pytest.mark.covering
@pytest.mark.parametrize("aggr", ["sum", "mean"])
@powers
def test_second_derivatives_of_the_reference(p, aggr):
    graph, h = random_graph(5, 9), features(5, 2).requires_grad_()

    def call(h):
        return gradient_gate(h, graph, p=p, aggr=aggr, backend="reference")

    # at p = 0.5, differences of the numerical derivative are of its step's size
    assert torch.autograd.gradgradcheck(call, h, eps=1e-7, atol=1e-4)


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
@aggregations
@powers
@single_rates
@pytest.mark.parametrize("apart", [0.4, 0.9, 1.1])  # slopes that, alone or added, overflow
def test_nodes_far_apart_have_a_finite_gradient(apart, single_rate, p, backend, aggr):
    graph = random_graph(6, 40)
    h = features(6, 3, torch.float32)
    h[2] = apart * torch.finfo(h.dtype).max ** (1 / max(p - 1, 2))
    words = {"p": p, "aggr": aggr, "single_rate": single_rate, "backend": backend}
    rates, gradient = slope(h, graph, torch.ones(6, 1 if single_rate else 3), **words)
    assert gradient.isfinite().all() and rates.max() == 1


@needs_library
def test_second_derivatives_of_the_compiled_one_are_refused():
    graph, h = random_graph(6, 20), features(6, 3).requires_grad_()
    rates = gradient_gate(h, graph, backend="native")
    with pytest.raises(RuntimeError, match=r"differentiated once.*use_backend"):
        torch.autograd.grad(rates.sum(), h, create_graph=True)


@needs_library
@pytest.mark.covering
@powers
@pytest.mark.parametrize("width", [1, 3, 17, 130])
@pytest.mark.parametrize("ties", [False, True], ids=["any", "ties"])
def test_is_the_reference(ties, width, p, select):
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


def compare(h, graph, words, select):
    """Every instruction set against the one truth."""
    seed = features(*h.shape, seed=2)
    rates, gradient = slope(h, graph, seed, backend="reference", **words)
    # ties of float64 are ties of float32: they are multiples of 1/4; else h itself is rounded
    single, seeds = h.float(), seed.float()
    exact = slope(single.double(), graph, seeds.double(), backend="reference", **words)
    for instruction_set in library.available():
        select(instruction_set)
        said = f"{instruction_set} {words}"
        ours = slope(h, graph, seed, backend="native", **words)
        assert torch.allclose(ours[0], rates, rtol=1e-12, atol=1e-14), said
        off = (ours[1] - gradient).abs().max()
        assert off <= 1e-12 * gradient.abs().max().clamp(min=1), said
        found = slope(single, graph, seeds, backend="native", **words)
        # of some 10 terms, each with 1.5 + p units of 2^-23 at most, before sums and tanh
        for a, b in zip(found, exact, strict=True):
            assert a.dtype is torch.float32
            assert (a.double() - b).abs().max() <= 1e-5 * b.abs().max().clamp(min=1), said


@needs_library
@pytest.mark.parametrize("p", [2.0, 2.5])
@single_rates
def test_threads_do_not_change_a_bit(single_rate, p, same_bits_with_any_threads):
    graph, h = random_graph(500, 9000), features(500, 70, dtype=torch.float32)
    words = {"p": p, "aggr": "mean", "single_rate": single_rate, "backend": "native"}
    same_bits_with_any_threads(lambda: slope(h, graph, h, **words))


@needs_library
def test_a_node_with_most_of_the_edges(select):
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(0, 300, (5000,), generator=generator)
    target = torch.where(torch.rand(5000, generator=generator) < 0.9, 7, source.flip(0))
    graph, h = Adjacency(torch.stack([source, target]), 300), 0.01 * features(300, 70)
    for neighbours in ("in", "out"):
        compare(h, graph, {"p": 1.5, "neighbours": neighbours}, select)


@needs_library
def test_nan_stays_where_it_is_seen():
    graph = Adjacency(torch.tensor([[0, 1, 2], [1, 2, 2]]), 4)
    for p in POWERS:
        h = torch.tensor([[math.nan], [0.0], [1.0], [1.0]])
        rates = gradient_gate(h, graph, p=p, backend="native").flatten()
        assert rates.isnan().tolist() == [False, True, False, False]


@needs_library
@single_rates
def test_fake_results_have_the_shapes_of_real_ones(single_rate):
    graph, ops = random_graph(6, 20), torch.ops.anharmonic
    rows = (*graph.by_target[:2], *graph.by_source[:2])
    for h in (features(6, 3), features(3, 6).T):
        arguments = (h, *rows, 2.5, False, single_rate)
        grad = torch.ones_like(ops.gate_sum.default(*arguments))
        tests = ("test_schema", "test_faketensor", "test_autograd_registration")
        torch.library.opcheck(ops.gate_sum.default, arguments, test_utils=tests)
        backward = (grad, *arguments)
        torch.library.opcheck(ops.gate_sum_backward.default, backward, test_utils=tests)


"""|d|^p of the active instruction set, seen through a graph of one edge."""

ROWS = tuple(map(torch.tensor, ([0, 1, 1], [1], [0, 0, 1], [0])))


def evaluate(d, p):
    """|d|^p and p |d|^(p - 1)."""
    ops = torch.ops.anharmonic
    h = torch.stack([torch.zeros_like(d), d])
    value = ops.gate_sum.default(h, *ROWS, p, False, False)
    seed = torch.stack([torch.ones_like(d), torch.zeros_like(d)])
    return value[0], ops.gate_sum_backward.default(seed, h, *ROWS, p, False, False)[1]


def numbers(dtype):
    """Positive numbers of every size, subnormal ones too, and many near 1."""
    if dtype is torch.float32:
        bits = torch.arange(1, 0x7F800000, 99991, dtype=torch.int64).to(torch.int32)
        wide = bits.view(torch.float32)
    else:
        wide = torch.exp2(torch.linspace(-1074, 1023.9, 10_001, dtype=F64))
    near = torch.linspace(0.25, 4, 10_001, dtype=F64).to(dtype)
    return torch.cat([wide, near])


@needs_library
@pytest.mark.covering(2)
@pytest.mark.parametrize("p", [0.5, 1.5, 2.5, 2.7, 5.0, 7.3])
@pytest.mark.parametrize("dtype", [torch.float32, F64], ids=str)
@pytest.mark.parametrize("instruction_set", library.available())
def test_error(instruction_set, dtype, p, select):
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("needs a long double wider than double")
    d, kind = numbers(dtype), torch.finfo(dtype)
    select(instruction_set)
    found = evaluate(d, p)
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("aggr", ["sum", "mean", "max"])
def test_half_precision(aggr, dtype):
    graph, h = random_graph(6, 20), features(6, 3, dtype=dtype)
    rates = gradient_gate(h, graph, p=2.5, aggr=aggr)
    assert rates.dtype == dtype
    exact = gradient_gate(h.double(), graph, p=2.5, aggr=aggr)
    assert torch.allclose(rates.double(), exact, atol=0.03)


def test_transforms_take_the_reference():
    graph = random_graph(6, 20)
    h = torch.stack([features(6, 3, seed=k) for k in range(4)])
    found = torch.func.vmap(lambda h: gradient_gate(h, graph, p=1.5))(h)
    each = torch.stack([gradient_gate(one, graph, p=1.5) for one in h])
    assert torch.allclose(found, each, rtol=1e-13)


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
