"""Models of sequences and of texts: readouts, padding, patches, words, carried states."""

import copy

import pytest
import torch

import anharmonic as ah
from anharmonic.nn import HiddenState, StepLayer
from anharmonic.nn.embedding import TokenEmbedding

F64, V = torch.float64, 7
THEIRS = [pytest.param("LipschitzRNN", marks=pytest.mark.papers)]


def model(layer="LEM", readout="last", **options):
    torch.manual_seed(0)
    return ah.SequenceModel(layer, 3, 2, hidden_size=4, readout=readout, dtype=F64, **options)


def batch():
    x = torch.randn(3, 6, 3, dtype=F64, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([6, 2, 4])


@pytest.mark.covering(2)
@pytest.mark.parametrize("layer", ["LEM", "CoRNN", "UnICORNN", "GRU", "LinOSSNetwork", *THEIRS])
@pytest.mark.parametrize(
    "readout, patch", [("last", 1), ("mean", 1), ("all", 1), ("mean", 4), ("last", 4)]
)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
def test_padding_does_not_count(layer, readout, patch, bidirectional, uneven):
    uneven = uneven and layer != "GRU"  # which takes no times
    net = model(layer, readout, bidirectional=bidirectional, patch=patch)
    x, lengths = batch()
    gaps = 0.5 + torch.rand(3, 6, dtype=F64, generator=torch.Generator().manual_seed(1))
    spoiled, spoiled_gaps = x.clone(), gaps.clone()
    spoiled[1, 2:] = 9.0 if patch == 1 else torch.nan
    spoiled_gaps[1, 2:], spoiled_gaps[2, 4:] = torch.nan, 9.0
    whole = net(spoiled, lengths, spoiled_gaps if uneven else None)
    assert whole.shape == ((3, 6, 2) if readout == "all" else (3, 2))
    for b, n in enumerate(lengths.tolist()):
        alone = net(x[b : b + 1, :n], elapsed=gaps[b : b + 1, :n] if uneven else None)[0]
        got = whole[b, :n] if readout == "all" else whole[b]
        torch.testing.assert_close(got, alone, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(net(x, torch.full((3,), 6)), net(x), rtol=1e-12, atol=1e-13)
    assert not uneven or not torch.allclose(net(x, elapsed=gaps), net(x))
    for empty in (lengths[:0], *([None] if patch > 1 else [])):
        none = net(x[:0], empty, gaps[:0] if uneven else None)
        assert none.shape == (0, *whole.shape[1:])


def test_patches_are_steps_of_a_wider_input_with_zeros_at_the_end_and_mean_gaps(tmp_path):
    ours = model("LEM", "mean", patch=4)
    torch.manual_seed(0)
    plain = ah.SequenceModel("LEM", 12, 2, hidden_size=4, readout="mean", dtype=F64)
    x, gaps = torch.randn(3, 8, 3, dtype=F64), torch.rand(3, 8, dtype=F64)
    steps = x.reshape(3, 2, 12)
    assert torch.equal(ours(x), plain(steps))
    expected = plain(steps, elapsed=gaps.reshape(3, 2, 4).mean(2))
    torch.testing.assert_close(ours(x, elapsed=gaps), expected, rtol=1e-12, atol=1e-13)
    filled = torch.nn.functional.pad(x[:, :6], (0, 0, 0, 2))
    assert torch.equal(ours(x[:, :6]), ours(filled))
    ah.save_pretrained(ours, tmp_path / "model")
    assert torch.equal(ah.from_pretrained(tmp_path / "model")(x), ours(x))
    assert "patch" not in plain.config()


def test_readouts_are_what_they_say():
    net, (x, _) = model("CoRNN", "mean"), batch()
    output, state = net.layer(x)
    torch.testing.assert_close(output[:, -1], state.y[-1])
    for net.readout, read in (("mean", output.mean(1)), ("last", state.y[-1]), ("all", output)):
        torch.testing.assert_close(net(x), net.linear(read))


def test_the_mean_of_many_steps_in_half_precision():
    net = ah.SequenceModel("CoRNN", 2, 1, hidden_size=4, readout="mean", dtype=torch.bfloat16)
    x = torch.ones(1, 1000, 2, dtype=torch.bfloat16)
    torch.testing.assert_close(net(x, torch.tensor([1000])), net(x), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("readout, wanted", [("last", "last"), ("mean", "all"), ("all", "all")])
def test_only_what_is_read_is_asked_for(readout, wanted):
    net, seen = model("CoRNN", readout), []
    net.layer.register_forward_pre_hook(
        lambda _, args, words: seen.append(words["output"]), with_kwargs=True
    )
    for given in ((batch()[0],), batch()):
        net(*given)
    assert seen == [wanted] * 2


class Leaky(StepLayer):
    def __init__(self, input_size, hidden_size, *, leak=0.1, **options):
        super().__init__(input_size, hidden_size, **options)
        self.leak = leak
        self.make_parameters()

    def parameter_shapes(self, input_size):
        return {"weight_ih": (self.hidden_size, input_size)}

    def step_function(self, u, state, w, dt):
        return HiddenState(torch.lerp(state.h, torch.tanh(u + state.h), self.leak))


def test_a_layer_of_ones_own():
    model = ah.SequenceModel(Leaky, 3, 2, hidden_size=4, leak=0.5, dtype=torch.float64)
    x = torch.randn(5, 9, 3, dtype=torch.float64)
    output, _ = model.layer(x)
    torch.testing.assert_close(model(x), model.linear(output[:, -1]))
    again = ah.SequenceModel(**model.config(), dtype=torch.float64)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x)) and again.layer.leak == 0.5


# ---- texts ----
def reader(layer="LEM", readout="last", **options):
    """A model of texts, of seven words."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 4, "embedding_size": 3} | options
    return ah.SequenceModel(layer, V, V, readout=readout, dtype=F64, **sizes)


def text(rows=3, steps=8):
    return torch.randint(V, (rows, steps), generator=torch.Generator().manual_seed(0))


def test_it_reads_the_vectors_of_words():
    net = reader("CoRNN")
    torch.manual_seed(0)
    plain = ah.SequenceModel("CoRNN", 3, V, hidden_size=4, dtype=F64)
    torch.testing.assert_close(plain.layer.state_dict(), net.layer.state_dict())
    output, _ = net.layer(net.embedding.weight[text()])
    torch.testing.assert_close(net(text()), net.linear(output[:, -1]))


@pytest.mark.parametrize("layer", ["LEM", "LSTM", "LinOSSNetwork"])
def test_parts_with_a_carried_state_are_one_whole(layer):
    every, last, whole, state, parts = reader(layer, "all"), reader(layer), text(), None, []
    for part in whole.split(3, dim=1):
        scores, state = every(part, state=state, return_state=True)
        parts.append(scores)
    torch.testing.assert_close(torch.cat(parts, 1), every(whole), rtol=1e-10, atol=1e-12)
    first = last(whole[:, :5], return_state=True)[1]
    torch.testing.assert_close(last(whole[:, 5:], state=first), last(whole), rtol=1e-10, atol=1e-12)


def test_vectors_from_elsewhere():
    words, vectors = reader().embedding, torch.rand(V, 3, dtype=F64)
    before = words.weight.clone()
    vectors[2] = torch.nan  # none is known of this word
    words.load(vectors)
    assert torch.equal(words.weight[2], before[2]) and torch.equal(words.weight[3:], vectors[3:])


def test_tied_scores_are_products_with_the_vectors():
    net = reader(readout="all", embedding_size=4, tie_embedding=True)
    output, _ = net.layer(net.embedding.weight[text()])
    torch.testing.assert_close(net(text()), output @ net.embedding.weight.T + net.linear.bias)
    names = {name for name, _ in net.named_parameters() if "layer" not in name}
    assert names == {"embedding.weight", "linear.bias"}
    other = copy.deepcopy(net)
    other.embedding.weight.data.zero_()
    assert other(text()).eq(0).all() and not net(text()).eq(0).all()


def test_words_are_dropped_wherever_they_stand():
    torch.manual_seed(0)
    words, tokens = TokenEmbedding(1000, 2, dropout=0.25), torch.arange(1000).repeat(2, 1)
    first, second = words(tokens)
    dropped = first.eq(0).all(1)
    assert torch.equal(first, second) and 0.2 < dropped.float().mean() < 0.3
    torch.testing.assert_close(first[~dropped], words.weight[~dropped] / 0.75)
    assert torch.equal(words.eval()(tokens)[0], words.weight)


@pytest.mark.parametrize("option", ["input_dropout", "output_dropout"])
@pytest.mark.parametrize("lengths", [None, torch.tensor([8, 8, 5])])
def test_dropout_is_for_training_only(option, lengths):
    net, plain = reader(readout="all", **{option: 0.5}), reader(readout="all")
    assert not torch.allclose(net(text(), lengths), plain(text(), lengths))
    torch.testing.assert_close(net.eval()(text(), lengths), plain(text(), lengths))


def test_output_dropout_has_one_mask_for_all_steps():
    net = reader(readout="all", output_dropout=0.5)
    with torch.no_grad():
        net.linear.weight.copy_(torch.eye(V, 4))
        net.linear.bias.zero_()
    zero = net(text()).eq(0)[..., :4]
    assert torch.equal(zero, zero[:, :1].expand_as(zero)) and zero.any() and not zero.all()


@pytest.mark.parametrize(
    "options", [{}, {"embedding_dropout": 0.1, "input_dropout": 0.2},
                {"embedding_size": 4, "tie_embedding": True, "output_dropout": 0.3}]
)  # fmt: skip
def test_saved_models_come_back(options, tmp_path):
    net = reader(readout="all", **options)
    net.save_pretrained(tmp_path / "it")
    again = ah.from_pretrained(tmp_path / "it")
    assert again.config() == net.config()
    assert torch.equal(again.eval()(text()), net.eval()(text()))
