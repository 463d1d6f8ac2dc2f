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
