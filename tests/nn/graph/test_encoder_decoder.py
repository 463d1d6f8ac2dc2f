"""Networks for graph tasks: every convolution, both levels, published variants, saving."""

import pytest
import torch

from anharmonic import Adjacency
from anharmonic.nn.graph.convolutions import CONVS
from anharmonic.nn.graph.encoder_decoder import pooled
from anharmonic.nn.registry import list_models, model_class

EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 1, 2, 3]])


@pytest.fixture(autouse=True)
def _library():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")


def make(name, **options):
    torch.manual_seed(0)
    return model_class(name)(6, 3, hidden_size=8, num_layers=3, **options)


def draw(nodes=5):
    return torch.rand(nodes, 6, generator=torch.Generator().manual_seed(0))


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
    model = make(name, level="graph", pool=pool, **norm).eval()
    x = draw()
    both = model(
        torch.cat([x, x[:3]]),
        torch.cat([EDGES, torch.tensor([[5, 6], [6, 7]])], dim=1),
        torch.tensor([0] * 5 + [1] * 3),
        2,
    )
    one = model(x, EDGES)
    other = model(x[:3], torch.tensor([[0, 1], [1, 2]]))
    assert torch.allclose(both, torch.cat([one, other]), atol=1e-5)


@pytest.mark.parametrize("name", list_models("graph"))
def test_called_by_name_with_int32_with_an_adjacency_and_without_nodes(name):
    model, nothing = make(name).eval(), torch.zeros(2, 0, dtype=torch.int64)
    expected = model(draw(), EDGES)
    assert torch.equal(model(x=draw(), edge_index=EDGES), expected)
    assert torch.equal(model(draw(), EDGES.int()), expected)
    assert torch.allclose(model(draw(), Adjacency(EDGES, 5)), expected, atol=1e-6)
    assert model(draw(0), nothing).shape == (0, 3)
    assert model(draw(3), nothing).isfinite().all()
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


def test_wrong_feature_width_is_refused():
    with pytest.raises(ValueError, match=r"x must be a tensor \[N, 6\]; got shape \[5, 4\]"):
        make("GraphCON")(torch.zeros(5, 4), EDGES)


@pytest.mark.parametrize(
    "membership",
    [torch.zeros(4).long(), torch.zeros(5), torch.tensor([0, 0, 1, 1, 2]), [0, 0, 1, 1, 1]],
)
def test_wrong_membership_is_refused(membership):
    with pytest.raises(ValueError, match=r"membership must be int64 \[N=5\], numbers in \[0, num"):
        make("GraphCON", level="graph")(draw(), EDGES, membership, 2)


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


def test_a_changed_setting_of_the_block_is_stored(tmp_path):
    for name, setting in (("GradientGating", "gate_scale"), ("GraphCON", "dt")):
        model = make(name, conv="MLP")
        setattr(model.block, setting, 0.25)
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path)
        assert getattr(loaded.block, setting) == 0.25
        assert torch.equal(loaded(draw(), EDGES), model(draw(), EDGES))


def test_several_graphs_need_a_membership():
    with pytest.raises(ValueError, match="num_graphs must be 1 without membership; got 2"):
        make("GraphCON", level="graph")(draw(), EDGES, None, 2)


def test_the_library_is_imported_only_when_a_convolution_is_made(run_python):
    code = (
        "import sys, anharmonic; from anharmonic.train.run import Run; "
        "anharmonic.GraphCON, anharmonic.GradientGating; "
        "assert 'torch_geometric' not in sys.modules"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
