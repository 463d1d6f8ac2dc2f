"""Norms inside deep graph networks: the equations by hand, what is kept, and what is saved."""

import pytest
import torch
from torch import nn

import anharmonic as ah
from anharmonic.nn import GraphCON, infer_by_layers, model_class
from anharmonic.nn.graph.couplings import ResidualCoupling

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])
NETWORKS = ("GraphCON", "GradientGating", "PlainGNN")


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def draw(width=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(5, width, dtype=torch.float64, generator=generator)


def make(name, **options):
    """A network whose norms are not at their start, where they would be easy to mistake."""
    torch.manual_seed(0)
    model = model_class(name)(6, 3, hidden_size=8, num_layers=3, dtype=torch.float64, **options)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.5, 0.5)
    return model


def gcn(conv, x):
    """GCN written with a dense matrix."""
    if isinstance(conv, ResidualCoupling):
        return gcn(conv.conv, x) + x @ conv.residual.weight.T + conv.residual.bias
    a = torch.eye(5, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d @ (x @ conv.lin.weight.T) + conv.bias


def normalised(norm, x):
    """A norm over the features of a node, or of one feature over all nodes."""
    dim = 1 if isinstance(norm, nn.LayerNorm) else 0
    centred = x - x.mean(dim, keepdim=True)
    return (
        centred / (centred.square().mean(dim, keepdim=True) + 1e-5).sqrt() * norm.weight + norm.bias
    )


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_graphcon_by_hand(norm, shared):
    model, x = (
        make("GraphCON", norm=norm, shared=shared, dt=0.3, frequency=0.7, damping=0.2),
        draw(),
    )
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


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_the_tuned_classic_by_hand(norm):
    model, x = make("PlainGNN", norm=norm, residual="plain"), draw()
    h = model.encoder(x).relu()
    for own, conv in zip(model.norms, model.convs, strict=True):
        h = normalised(own, gcn(conv, h)).relu()
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
    assert torch.equal(loaded(x, EDGES), after)
    assert loaded.config()["norm"] == "batch"


@pytest.mark.parametrize("name", ["GraphCON", "GradientGating"])
def test_checkpoints_and_parts_of_a_graph_give_the_same(name):
    options = {"norm": "layer", "shared": False}
    whole, saving = make(name, **options), make(name, checkpoint=True, **options)
    grads = []
    for model in (whole, saving):
        model(draw(), EDGES).square().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-12, atol=1e-12)
    batch = make(name, norm="batch")
    batch(draw(), EDGES)
    batch.eval()
    torch.testing.assert_close(
        infer_by_layers(batch, draw(), EDGES, 2), batch(draw(), EDGES), rtol=1e-12, atol=1e-12
    )


def test_redrawing_resets_norms():
    model = make("GradientGating", norm="batch", separate_gate=True)
    model(draw(), EDGES)
    model.block.reset_parameters()
    for norm in [*model.block.norms, *model.block.gate_norms]:
        assert norm.weight.eq(1).all() and norm.bias.eq(0).all() and norm.running_mean.eq(0).all()


def test_one_norm_is_shared_and_to_hetero_has_one_for_each_kind(pyg):
    torch.manual_seed(0)
    layer = GraphCON(pyg.SAGEConv(8, 8), 2, norm=nn.LayerNorm(8)).double()
    assert len(layer.norms) == 1
    x, kinds = {"a": draw(8), "b": draw(8, seed=1)}, [("a", "to", "b"), ("b", "to", "a")]
    model = pyg.to_hetero(layer, (["a", "b"], kinds))
    found, y = model(x, dict.fromkeys(kinds, EDGES)), dict(x)
    for _ in range(2):
        force = {}
        for source, _, target in kinds:
            conv = model.convs[0][f"{source}__to__{target}"]
            heard = conv((x[source], x[target]), EDGES)
            force[target] = normalised(model.norms[0][target], heard).relu()
        y = {kind: y[kind] + 0.5 * (force[kind] - x[kind] - y[kind]) for kind in x}
        x = {kind: x[kind] + 0.5 * y[kind] for kind in x}
    torch.testing.assert_close(found, x, rtol=1e-11, atol=1e-12)


def test_a_name_is_no_norm_of_a_layer(pyg):
    with pytest.raises(
        TypeError, match=r"norm must be a torch.nn.Module .* got 'layer'.*LayerNorm"
    ):
        GraphCON(pyg.GCNConv(8, 8), 3, norm="layer")
    with pytest.raises(ValueError, match="length of the list norm must be one for each of the 3"):
        GraphCON(pyg.GCNConv(8, 8), 3, norm=[nn.LayerNorm(8)] * 2)


def test_dropout_of_gradient_gating_spares_gate_and_old_features():
    model, x = make("GradientGating", dropout=0.5, rate_exponent=0.0, conv="MLP"), draw()
    block = model.block
    _, states = block.train()(model.encoder(x).relu(), EDGES, return_states=True)
    target = block.convs[0](states.x[0]).relu()
    # Without gating, a layer's features are the new ones: each is dropped or doubled.
    assert ((states.x[1] == 0) | (states.x[1] == 2 * target)).all()
    assert (states.x[1] == 0).sum() > (target == 0).sum() < target.numel()
    gated = make("GradientGating", dropout=0.5, conv="MLP").train()
    torch.manual_seed(1)
    _, states = gated.block(model.encoder(x).relu(), EDGES, return_states=True)
    torch.manual_seed(2)
    _, others = gated.block(model.encoder(x).relu(), EDGES, return_states=True)
    assert torch.equal(states.tau[0], others.tau[0])
    assert not torch.equal(states.x[1], others.x[1])
    assert torch.equal(gated.eval()(x, EDGES), make("GradientGating", conv="MLP")(x, EDGES))
