import pytest
import torch

import anharmonic as ah
from anharmonic.nn import HiddenState, StepLayer

F64 = torch.float64
THEIRS = [pytest.param("LipschitzRNN", marks=pytest.mark.papers)]


def model(layer="LEM", readout="last", **options):
    torch.manual_seed(0)
    return ah.SequenceModel(layer, 3, 2, hidden_size=4, readout=readout, dtype=F64, **options)


def batch():
    x = torch.randn(3, 6, 3, dtype=F64, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([6, 2, 4])


@pytest.mark.covering(2)
@pytest.mark.parametrize("layer", ["LEM", "GRU", "LinOSSNetwork"])
@pytest.mark.parametrize("readout, shape", [("last", (3, 2)), ("mean", (3, 2)), ("all", (3, 6, 2))])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_does_not_count(layer, readout, shape, bidirectional):
    net = model(layer, readout, bidirectional=bidirectional)
    x, lengths = batch()
    whole = net(x, lengths)
    assert whole.shape == shape
    for b, n in enumerate(lengths.tolist()):
        alone = net(x[b : b + 1, :n])[0]
        got = whole[b, :n] if readout == "all" else whole[b]
        torch.testing.assert_close(got, alone, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(net(x, torch.full((3,), 6)), net(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("readout, shape", [("last", (0, 2)), ("mean", (0, 2)), ("all", (0, 6, 2))])
def test_an_empty_batch_with_lengths(readout, shape):
    x, lengths = batch()
    assert model(readout=readout)(x[:0], lengths[:0]).shape == shape


@pytest.mark.parametrize("with_lengths", [False, True])
def test_an_empty_batch_of_patches(with_lengths):
    x, lengths = batch()
    net = model("CoRNN", patch=4)
    assert net(x[:0], lengths[:0] if with_lengths else None, x[:0, :, 0]).shape == (0, 2)


def test_patches_of_no_steps_are_refused():
    x, _ = batch()
    with pytest.raises(ValueError, match="at least one time step"):
        model("CoRNN", patch=4)(x[:, :0], elapsed=x[:, :0, 0])


def test_readouts_are_what_they_say():
    net = model("CoRNN", "mean")
    x, _ = batch()
    output, state = net.layer(x)
    torch.testing.assert_close(net(x), net.linear(output.mean(1)))
    net.readout = "last"
    torch.testing.assert_close(net(x), net.linear(state.y[-1]))
    torch.testing.assert_close(net(x), net.linear(output[:, -1]))
    net.readout = "all"
    torch.testing.assert_close(net(x), net.linear(output))


@pytest.mark.covering(2)
@pytest.mark.parametrize("layer", ["CoRNN", "UnICORNN", "LEM", *THEIRS])
@pytest.mark.parametrize("readout", ["last", "mean", "all"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_elapsed(layer, readout, bidirectional):
    net = model(layer, readout, bidirectional=bidirectional)
    x, lengths = batch()
    gaps = 2 * torch.rand(3, 6, dtype=F64, generator=torch.Generator().manual_seed(1))
    whole = net(x, lengths, gaps)
    assert not torch.allclose(whole, net(x, lengths))
    for b, n in enumerate(lengths.tolist()):
        alone = net(x[b : b + 1, :n], elapsed=gaps[b : b + 1, :n])[0]
        got = whole[b, :n] if readout == "all" else whole[b]
        torch.testing.assert_close(got, alone, rtol=1e-12, atol=1e-13)
    gaps[1, 2:] = float("nan")  # past the end of the second sequence, where nothing counts
    torch.testing.assert_close(net(x, lengths, gaps), whole, rtol=0, atol=0)
    with pytest.raises(
        ValueError, match=r"elapsed must be a tensor \[B, T\] = \[3, 6\]; got shape"
    ):
        net(x, lengths, gaps.t())


def test_only_what_is_read_is_asked_for(layer="CoRNN"):
    for readout, wanted in (("last", "last"), ("mean", "all"), ("all", "all")):
        net, seen = model(layer, readout), []
        net.layer.register_forward_pre_hook(
            lambda _, args, words, seen=seen: seen.append(words["output"]), with_kwargs=True
        )
        x, lengths = batch()
        net(x)
        net(x, lengths)
        assert seen == [wanted] * 2


class Leaky(StepLayer):
    def __init__(self, input_size, hidden_size, *, leak=0.1, **options):
        super().__init__(input_size, hidden_size, **options)
        self.leak = leak
        self.make_parameters()

    def parameter_shapes(self, input_size):
        H = self.hidden_size
        return {"weight_ih": (H, input_size), "weight_hh": (H, H)}

    def step_function(self, u, state, w, dt):
        new = torch.tanh(u + state.h @ w.weight_hh.T)
        return HiddenState(torch.lerp(state.h, new, self.leak))


def test_a_layer_of_ones_own(tmp_path):
    model = ah.SequenceModel(Leaky, 3, 2, hidden_size=4, leak=0.5, dtype=torch.float64)
    x = torch.randn(5, 9, 3, dtype=torch.float64)
    output, _ = model.layer(x)
    torch.testing.assert_close(model(x), model.linear(output[:, -1]))
    again = ah.SequenceModel(**model.config(), dtype=torch.float64)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), model(x)) and again.layer.leak == 0.5
    with pytest.raises(TypeError, match="save other modules with torch"):
        ah.save_pretrained(model, tmp_path / "model")
    with pytest.raises(TypeError, match="derived from SequenceLayer"):
        ah.SequenceModel(torch.nn.LSTM, 3, 2, hidden_size=4)
    with pytest.raises(ValueError, match="option of Leaky"):
        ah.SequenceModel(Leaky, 3, 2, hidden_size=4, leaks=0.5)
