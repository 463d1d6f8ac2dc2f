"""Models that read text: vectors of words, and a state that is carried from part to part."""

import copy

import pytest
import torch

import anharmonic as ah
from anharmonic.nn.embedding import TokenEmbedding

F64 = torch.float64
V = 7


def model(layer="LEM", readout="last", **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 4, "embedding_size": 3} | options
    return ah.SequenceModel(layer, V, V, readout=readout, dtype=F64, **sizes)


def text(rows=3, steps=8):
    return torch.randint(V, (rows, steps), generator=torch.Generator().manual_seed(0))


def test_it_reads_the_vectors_of_words():
    net = model("CoRNN")
    torch.manual_seed(0)
    plain = ah.SequenceModel("CoRNN", 3, V, hidden_size=4, dtype=F64)
    torch.testing.assert_close(plain.layer.state_dict(), net.layer.state_dict())
    output, _ = net.layer(net.embedding.weight[text()])
    torch.testing.assert_close(net(text()), net.linear(output[:, -1]))


def test_padding_does_not_count():
    for readout in ("last", "mean", "all"):
        net, lengths = model(readout=readout), torch.tensor([8, 2, 5])
        whole = net(text(), lengths)
        for b, n in enumerate(lengths.tolist()):
            got = whole[b, :n] if readout == "all" else whole[b]
            torch.testing.assert_close(got, net(text()[b : b + 1, :n])[0])


@pytest.mark.parametrize("layer", ["LEM", "LSTM", "LinOSSNetwork"])
def test_parts_with_a_carried_state_are_one_whole(layer):
    every, last, whole, state, parts = model(layer, "all"), model(layer), text(), None, []
    for part in whole.split(3, dim=1):
        scores, state = every(part, state=state, return_state=True)
        parts.append(scores)
    torch.testing.assert_close(torch.cat(parts, 1), every(whole), rtol=1e-10, atol=1e-12)
    first = last(whole[:, :5], return_state=True)[1]
    torch.testing.assert_close(last(whole[:, 5:], state=first), last(whole), rtol=1e-10, atol=1e-12)


def test_vectors_from_elsewhere():
    words, vectors = model().embedding, torch.rand(V, 3, dtype=F64)
    before = words.weight.clone()
    vectors[2] = torch.nan  # none is known of this word
    words.load(vectors)
    assert torch.equal(words.weight[2], before[2]) and torch.equal(words.weight[3:], vectors[3:])


def test_tied_scores_are_products_with_the_vectors():
    net = model(readout="all", embedding_size=4, tie_embedding=True)
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
    net, plain = model(readout="all", **{option: 0.5}), model(readout="all")
    assert not torch.allclose(net(text(), lengths), plain(text(), lengths))
    torch.testing.assert_close(net.eval()(text(), lengths), plain(text(), lengths))


def test_output_dropout_has_one_mask_for_all_steps():
    net = model(readout="all", output_dropout=0.5)
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
    net = model(readout="all", **options)
    net.save_pretrained(tmp_path / "it")
    again = ah.from_pretrained(tmp_path / "it")
    assert again.config() == net.config()
    assert torch.equal(again.eval()(text()), net.eval()(text()))
