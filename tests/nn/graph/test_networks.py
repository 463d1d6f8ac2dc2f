"""Networks for graph tasks: norms, dropout, convolutions, levels, calls."""

import pytest
import torch

import anharmonic as ah
from anharmonic import Adjacency
from anharmonic.nn.graph.convolutions import CONVS
from anharmonic.nn.registry import list_models, model_class
from anharmonic.testing import graph_layer_checks

pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])
each_network = pytest.mark.parametrize("name", ["GraphCON", "GradientGating", "PlainGNN"])
each_model = pytest.mark.parametrize("name", list_models("graph"))


def draw(nodes=5):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(nodes, 6, dtype=torch.float64, generator=generator)


def make(name, **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_layers": 3, "dtype": torch.float64}
    return model_class(name)(6, 3, **sizes | options)


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
    model, x = make(name, **options), draw()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


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


@each_network
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


def test_pair_norm_centres_and_scales():
    model, seen = make("PlainGNN", num_layers=1, norm="pair", activation="identity"), []
    model.decoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    model(draw(), EDGES)
    assert torch.allclose(seen[0].mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-12)
    assert float(seen[0].square().sum(1).mean()) == pytest.approx(1, rel=1e-3)  # PyG adds 1e-5


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


@pytest.mark.covering
@pytest.mark.parametrize("conv", CONVS)
@each_network
def test_every_convolution_trains(name, conv):
    model = make(name, conv=conv, input_dropout=0.2, output_dropout=0.2)
    out = model(draw(), Adjacency(EDGES, 5))
    assert out.shape == (5, 3)
    out.square().sum().backward()
    assert model.encoder.weight.grad.abs().sum() > 0


@pytest.mark.covering
@each_model
@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_graph_level_pools_each_graph(name, pool):
    norm = {"norm": "pair"} if name == "PlainGNN" else {}
    model, x = make(name, level="graph", pool=pool, **norm).eval(), draw()
    edges = torch.cat([EDGES, torch.tensor([[5, 6], [6, 7]])], dim=1)
    found = model(torch.cat([x, x[:3]]), edges, torch.tensor([0] * 5 + [2] * 3), 3)
    small = model(x[:3], torch.tensor([[0, 1], [1, 2]]))
    # The second graph has no nodes.
    expected = torch.cat([model(x, EDGES), torch.zeros_like(small), small])
    assert torch.allclose(found, expected, atol=1e-5)


@each_model
def test_networks_keep_the_promises_of_layers(name):
    checks = dict(graph_layer_checks(lambda: make(name).eval(), 6))
    for promise in checks.keys() - {"reset_parameters_draws_anew", "bad_input_is_refused"}:
        checks[promise]()
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert make(name, level="graph")(draw(0), nothing).isfinite().all()


@pytest.mark.fast("PlainGNN-export")
@pytest.mark.parametrize("way", ["compile", "export"])
@each_model
def test_exports_and_compiles_as_one_graph(name, way):
    model, x = make(name).eval(), draw()
    torch._dynamo.reset()
    if way == "compile":
        program = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    else:
        program = torch.export.export(model, (x, EDGES)).module()
    assert torch.allclose(program(x, EDGES), model(x, EDGES), atol=1e-6)


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
