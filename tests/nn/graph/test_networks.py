"""Networks for graph tasks: their equations with dense matrices, norms, convolutions, levels."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

import anharmonic as ah
from anharmonic import Adjacency
from anharmonic.nn import GraphCON
from anharmonic.nn.graph.convolutions import CONVS
from anharmonic.nn.graph.couplings import RandomWalk, ResidualCoupling
from anharmonic.nn.graph.encoder_decoder import pooled
from anharmonic.nn.graph.textbook import GAT, GCN
from anharmonic.nn.registry import list_models, model_class
from anharmonic.testing import graph_layer_checks

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])
NETWORKS = ("GraphCON", "GradientGating", "PlainGNN")


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def draw(nodes=5, width=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(nodes, width, dtype=torch.float64, generator=generator)


def make(kind, **options):
    """A network whose norms are not at their start, where they would be easy to mistake."""
    torch.manual_seed(0)
    if isinstance(kind, str):
        kind, options = model_class(kind), {"hidden_size": 8, "num_layers": 3, **options}
    model = kind(6, 3, **{"dtype": torch.float64, **options})
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.5, 0.5)
    return model


def adjacency():
    """Edges by target, with self-loops."""
    a = torch.eye(5, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    return a


def averaged(x):
    """GCN's operator, D^-1/2 (A + I) D^-1/2 with in-degrees, times x."""
    d = adjacency().sum(1).rsqrt()
    return d[:, None] * adjacency() * d @ x


def gcn(conv, x):
    """GCN written with a dense matrix."""
    if isinstance(conv, ResidualCoupling):
        return gcn(conv.conv, x) + x @ conv.residual.weight.T + conv.residual.bias
    return averaged(conv.lin(x)) + conv.bias


def normalised(norm, x):
    """A norm over the features of a node, or of one feature over all nodes."""
    dim = 1 if isinstance(norm, nn.LayerNorm) else 0
    centred = x - x.mean(dim, keepdim=True)
    scaled = centred / (centred.square().mean(dim, keepdim=True) + 1e-5).sqrt()
    return scaled * norm.weight + norm.bias


# ---- equations ----
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared": True},
        {"jump": "cat"},
        {"jump": "max"},
        {"norm": "layer", "residual": "plain"},
        {"norm": "batch", "residual": "plain"},
    ],
    ids=str,
)
def test_a_plain_network_is_its_equation(options):
    model, x = make("PlainGNN", **options), draw()
    h, found = model.encoder(x).relu(), []
    shared = options.get("shared", False)
    assert len(model.convs) == (1 if shared else 3)
    for n in range(3):
        h = gcn(model.convs[0 if shared else n], h)
        h = (normalised(model.norms[n], h) if "norm" in options else h).relu()
        found.append(h)
    if "jump" in options:
        h = torch.cat(found, 1) if options["jump"] == "cat" else torch.stack(found).amax(0)
    assert torch.allclose(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)


def test_pair_norm_centres_and_scales():
    model, seen = make("PlainGNN", num_layers=1, norm="pair", activation="identity"), []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    model(draw(), EDGES)
    (h,) = seen
    assert torch.allclose(h.mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-12)
    assert float(h.square().sum(1).mean()) == pytest.approx(1, rel=1e-3)  # PyG adds 1e-5


@pytest.mark.papers
def test_gcn2_is_its_equation():
    model = make(model_class("GCNII"), hidden_size=8, num_layers=4, alpha=0.3, theta=0.7)
    x = draw()
    h = start = model.encoder(x).relu()
    for n, conv in enumerate(model.convs, 1):
        beta = math.log(0.7 / n + 1)
        mixed = 0.7 * averaged(h) + 0.3 * start
        h = ((1 - beta) * mixed + beta * mixed @ conv.weight1).relu()
    assert torch.allclose(model(x, EDGES), model.decoder(h), atol=1e-14)


def test_gcn_is_its_equation():
    model, x = make(GCN, num_layers=3).eval(), draw()
    h = x
    for n, conv in enumerate(model.convs):
        h = gcn(conv, h)
        h = h.relu() if n < 2 else h
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)
    assert [conv.lin.weight.shape for conv in model.convs] == [(16, 6), (16, 16), (3, 16)]
    assert model.output_layer is model.convs[2]


def attention(conv, x, heads, width):
    """GAT's heads, one after the other: softmax of LeakyReLU(a [W x_i, W x_j]) over neighbours."""
    mapped = conv.lin(x).view(5, heads, width)
    out = []
    for k in range(heads):
        at = (mapped[:, k] * conv.att_dst[0, k]).sum(1)[:, None]
        score = functional.leaky_relu(at + (mapped[:, k] * conv.att_src[0, k]).sum(1), 0.2)
        weight = score.masked_fill(adjacency() == 0, -torch.inf).softmax(1)
        out.append(weight @ mapped[:, k])
    return torch.stack(out, 1)


def test_gat_puts_heads_side_by_side_and_averages_the_last():
    model, x = make(GAT, heads=2, hidden_size=8, output_heads=3).eval(), draw()
    first, last = model.convs
    h = functional.elu(attention(first, x, 2, 4).flatten(1) + first.bias)
    h = attention(last, h, 3, 3).mean(1) + last.bias
    assert torch.allclose(model(x, EDGES), h, atol=1e-14)
    assert model.output_layer is last


def wave(width, classes, dtype, **options):
    return GraphCON(RandomWalk(), 3, **options)


GCNII = pytest.param("GCNII", {"num_layers": 2, "dropout": 0.5}, marks=pytest.mark.papers)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PlainGNN", {"num_layers": 2, "dropout": 0.5}),
        GCNII,
        ("GCN", {"num_layers": 1, "dropout": 0.9}),  # of the features
        ("GAT", {"dropout": 0.0, "attention_dropout": 0.5}),
    ],
)
def test_dropout_acts_in_training_only(name, options):
    model, x = make(model_class(name), **options), draw()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


@pytest.mark.parametrize(
    ("cls", "options", "text"),
    [
        (GCN, {"dropout": 1.0}, "dropout must be"),
        (GCN, {"activation": "relo"}, "activation must be one of.*'relu'"),
        (GAT, {"hidden_size": 20}, "hidden_size must be a multiple of heads=8; got 20"),
        (GAT, {"hidden_size": 0}, "hidden_size must be"),
        (GAT, {"output_heads": 0}, "output_heads must be"),
        (GAT, {"attention_dropout": 1.5}, "attention_dropout must be"),
        (wave, {"norm": "layer"}, r"norm must be a torch.nn.Module .* got 'layer'.*LayerNorm"),
        (wave, {"norm": [nn.Identity()] * 2}, "length of the list norm must be one for each of"),
    ],
)
def test_bad_arguments(cls, options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make(cls, **options)


# ---- norms ----
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_graphcon_by_hand(norm, shared):
    settings = {"dt": 0.3, "frequency": 0.7, "damping": 0.2}
    model, x = make("GraphCON", norm=norm, shared=shared, **settings), draw()
    h = y = model.encoder(x).relu()
    assert len(model.block.norms) == 3  # a norm of its own for each layer, also of a shared conv
    for n, own in enumerate(model.block.norms):
        coupling = normalised(own, gcn(model.block.convs[0 if shared else n], h)).relu()
        y = y + 0.3 * (coupling - 0.7 * h - 0.2 * y)
        h = h + 0.3 * y
    torch.testing.assert_close(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_gradient_gating_by_hand(norm, separate):
    model, x = make("GradientGating", norm=norm, separate_gate=separate, residual="plain"), draw()
    block, h = model.block, model.encoder(x).relu()
    for n in range(3):
        f = normalised(block.norms[n], gcn(block.convs[0], h)).relu()
        gate = f
        if separate:
            gate = normalised(block.gate_norms[n], gcn(block.gate_convs[0], h)).relu()
        tau = torch.zeros_like(h)
        for j, i in EDGES.T.tolist():
            tau[i] += (gate[j] - gate[i]) ** 2
        tau = tau.tanh()
        h = (1 - tau) * h + tau * f
    torch.testing.assert_close(model(x, EDGES), model.decoder(h), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_batch_statistics_are_learned_in_training_and_kept_when_saved(name, tmp_path):
    model, x = make(name, norm="batch"), draw()
    before = model.eval()(x, EDGES)
    assert torch.equal(model(x, EDGES), before)
    for _ in range(20):
        model.train()(x, EDGES)
    after = model.eval()(x, EDGES)
    assert not torch.allclose(after, before, atol=1e-2)
    ah.save_pretrained(model, tmp_path / "model")
    loaded = ah.from_pretrained(tmp_path / "model").eval()
    assert loaded.config()["norm"] == "batch" and torch.equal(loaded(x, EDGES), after)


def test_redrawing_resets_norms():
    model = make("GradientGating", norm="batch", separate_gate=True)
    model(draw(), EDGES)
    model.block.reset_parameters()
    for norm in [*model.block.norms, *model.block.gate_norms]:
        assert norm.weight.eq(1).all() and norm.bias.eq(0).all() and norm.running_mean.eq(0).all()


def test_dropout_of_gradient_gating_spares_gate_and_old_features():
    model, x = make("GradientGating", dropout=0.5, rate_exponent=0.0, conv="MLP"), draw()
    _, states = model.block.train()(model.encoder(x).relu(), EDGES, return_states=True)
    target = model.block.convs[0](states.x[0]).relu()
    # Without gating, a layer's features are the new ones: each is dropped or doubled.
    assert ((states.x[1] == 0) | (states.x[1] == 2 * target)).all()
    assert (states.x[1] == 0).sum() > (target == 0).sum() < target.numel()
    gated, drawn = make("GradientGating", dropout=0.5, conv="MLP").train(), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        drawn.append(gated.block(model.encoder(x).relu(), EDGES, return_states=True)[1])
    assert torch.equal(drawn[0].tau[0], drawn[1].tau[0])
    assert not torch.equal(drawn[0].x[1], drawn[1].x[1])
    assert torch.equal(gated.eval()(x, EDGES), make("GradientGating", conv="MLP")(x, EDGES))


# ---- convolutions, levels, calls ----
@pytest.mark.covering
@pytest.mark.parametrize("conv", CONVS)
@pytest.mark.parametrize("name", ["GraphCON", "GradientGating", "PlainGNN"])
def test_every_convolution_trains(name, conv):
    model = make(name, conv=conv, input_dropout=0.2, output_dropout=0.2)
    out = model(draw(), Adjacency(EDGES, 5))
    assert out.shape == (5, 3)
    out.square().sum().backward()
    assert model.encoder.weight.grad.abs().sum() > 0


@pytest.mark.covering
@pytest.mark.parametrize("name", list_models("graph"))
@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_graph_level_pools_each_graph(name, pool):
    norm = {"norm": "pair"} if name == "PlainGNN" else {}
    model, x = make(name, level="graph", pool=pool, **norm).eval(), draw()
    edges = torch.cat([EDGES, torch.tensor([[5, 6], [6, 7]])], dim=1)
    both = model(torch.cat([x, x[:3]]), edges, torch.tensor([0] * 5 + [1] * 3), 2)
    each = [model(x, EDGES), model(x[:3], torch.tensor([[0, 1], [1, 2]]))]
    assert torch.allclose(both, torch.cat(each), atol=1e-5)


@pytest.mark.parametrize("name", list_models("graph"))
def test_networks_keep_the_promises_of_layers(name):
    checks = dict(graph_layer_checks(lambda: make(name).eval(), 6))
    for promise in checks.keys() - {"reset_parameters_draws_anew", "bad_input_is_refused"}:
        checks[promise]()
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert make(name, level="graph")(draw(0), nothing).isfinite().all()


@pytest.mark.fast("PlainGNN-export")
@pytest.mark.parametrize("way", ["compile", "export"])
@pytest.mark.parametrize("name", list_models("graph"))
def test_exports_and_compiles_as_one_graph(name, way):
    model, x = make(name).eval(), draw()
    torch._dynamo.reset()
    if way == "compile":
        program = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    else:
        program = torch.export.export(model, (x, EDGES)).module()
    assert torch.allclose(program(x, EDGES), model(x, EDGES), atol=1e-6)


def test_pooling_leaves_zero_for_a_graph_without_nodes():
    x = torch.tensor([[1.0], [-2.0], [-5.0]])
    for pool, wanted in (("sum", [-1.0, 0.0, -5.0]), ("max", [1.0, 0.0, -5.0])):
        assert pooled(x, torch.tensor([0, 0, 2]), 3, pool).flatten().tolist() == wanted


@pytest.mark.parametrize("name", [*NETWORKS, "GCN"])
def test_features_of_another_dtype_are_refused(name):
    model, x = model_class(name)(6, 3), torch.rand(5, 6)
    for dtype in (torch.float64, torch.float16):
        expected = rf"x must have the dtype .*torch.float32; got .*{dtype}; .*to\({dtype}\)"
        with pytest.raises(TypeError, match=expected):
            model(x.to(dtype), EDGES)
    with pytest.raises(TypeError, match=r"x must .*got .*torch.int64; conv"):
        model(x.long(), EDGES)
    with torch.autocast("cpu", torch.bfloat16):
        model(x, EDGES)


WHICH_GRAPH = r"membership must be int64 \[N=5\], numbers in \[0, num"


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((torch.zeros(5, 4), EDGES), ValueError, r"x must be a tensor \[N, 6\]; got .*\[5, 4\]"),
        ((draw(), None), TypeError, r"edge_index must be .*; got None; pass it after x"),
        ((draw(),), TypeError, r"missing .* 'edge_index'"),
        ((draw(), EDGES, None, 2), ValueError, "num_graphs must be 1 without membership; got 2"),
        ((draw(), EDGES, torch.zeros(4).long(), 2), ValueError, WHICH_GRAPH),
        ((draw(), EDGES, torch.zeros(5), 2), ValueError, WHICH_GRAPH),
        ((draw(), EDGES, torch.tensor([0, 0, 1, 1, 2]), 2), ValueError, WHICH_GRAPH),
        ((draw(), EDGES, [0, 0, 1, 1, 1], 2), ValueError, WHICH_GRAPH),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        make("GraphCON", level="graph")(*arguments)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_node_without_features_stays_zero_when_rows_are_scaled(dtype):
    model = make("PlainGNN", conv="MLP", scale_rows=True, dtype=dtype).eval()
    x = draw().to(dtype)
    x[3] = 0
    inputs = []
    model.encoder.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    assert model(x, EDGES).isfinite().all()
    assert (inputs[0][3] == 0).all()
    size = inputs[0].float().square().mean(1).sqrt()
    assert torch.allclose(size[[0, 1, 2, 4]], torch.ones(4), atol=0.02)


@pytest.mark.parametrize("name, setting", [("GradientGating", "gate_scale"), ("GraphCON", "dt")])
def test_a_changed_setting_of_the_block_is_stored(name, setting, tmp_path):
    model = make(name, conv="MLP")
    for bad in (-1, 0, float("nan"), True, "1"):
        with pytest.raises((TypeError, ValueError), match=f"{setting} must be"):
            setattr(model.block, setting, bad)
    setattr(model, setting, 0.125)
    assert getattr(model.block, setting) == 0.125
    setattr(model.block, setting, 0.25)
    assert getattr(model, setting) == 0.25
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert getattr(loaded.block, setting) == 0.25
    assert torch.equal(loaded(draw(), EDGES), model(draw(), EDGES))
