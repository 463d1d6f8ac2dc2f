"""One suite over every registered sequence layer and its variants: the contract of ``nn.LSTM``.

This package's models run on the reference and, where there is a faster backend, as users have them.
"""

import copy
import io
import warnings

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

import anharmonic as ah
from anharmonic import ops
from anharmonic.nn.registry import list_models, model_class

F, H = 3, 5
OURS = ["CoRNN", "UnICORNN", "LEM", "NeuralOscillator", "MultiLayerNeuralOscillator", "SkewRNN"]
# Those with a step size, which elapsed multiplies.
TIMED = [*OURS, "AntisymmetricRNN", "GatedAntisymmetricRNN", "LipschitzRNN"]
OWN = {
    "CoRNN": [
        {"dt": 0.3, "frequency": 2.0, "damping": 0.7},
        {"dt": 0.3, "scheme": "implicit", "bias": False},
        {"dt": 0.3, "trainable_dt": True, "trainable_frequency": True, "trainable_damping": True},
    ],
    "UnICORNN": [
        {"dt": 0.4, "frequency": 1.5},
        {"dt": 0.4, "trainable_timescales": False, "bias": False},
    ],
    "LEM": [
        {"dt": 0.6},
        {"dt": 0.3, "multiscale": False, "bias": False},
        {"gate_floor": 0.25, "chrono_length": 20},
    ],
    "NeuralOscillator": [
        {"dt": 0.2},
        # Pendula with noise for input are chaotic: roundings grow with the time that passes.
        {"dt": 0.05, "scheme": "velocity-verlet", "activation": "sin", "bias": False},
    ],
    "MultiLayerNeuralOscillator": [
        {"dt": 0.2},
        {"dt": 0.05, "scheme": "velocity-verlet", "activation": "sin", "bias": False},
    ],
    "SkewRNN": [{"dt": 0.3}, {"dt": 0.1, "bias": False}],
    "RNN": [{}],
    "LSTM": [{}, {"bias": False}],
    "GRU": [{}],
    "ChronoLSTM": [{"chrono_length": 20}],
    "AntisymmetricRNN": [{"dt": 0.3}],
    "GatedAntisymmetricRNN": [{"dt": 0.3, "bias": False}],
    "ExpRNN": [{"initialisation": "henaff"}],
    "IndRNN": [{"longest_dependency": 20}, {"activation": "tanh", "bias": False}],
    "FastRNN": [{}],
    "FastGRNN": [{}],
    "LipschitzRNN": [{"dt": 0.3, "scheme": "midpoint"}],
}
STACKS = [{}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}]
CASES = [
    (name, {**own, **stack})
    for name in OWN
    for own in OWN[name]
    for stack in (STACKS if name in OURS else STACKS[::2])
]
CASES += [
    ("UnICORNN", {"num_layers": 4, "dt": [0.1, 0.2, 0.3, 0.4], "skipped_layers": 2}),
    ("UnICORNN", {"num_layers": 3, "skipped_layers": 2, "bidirectional": True}),
    ("MultiLayerNeuralOscillator", {"num_layers": 2, "hidden_sizes": [7, 5], "dt": 0.2}),
]
every = pytest.mark.parametrize("name, options", CASES, ids=str)
one_way = pytest.mark.parametrize(
    "name, options", [c for c in CASES if not c[1].get("bidirectional")], ids=str
)
timed = pytest.mark.parametrize("name, options", [c for c in CASES if c[0] in TIMED], ids=str)
kept = pytest.mark.parametrize("name, options", [c for c in CASES if c[0] in OURS], ids=str)
both_ways = pytest.mark.parametrize(
    "name, options", [c for c in CASES if c[1].get("bidirectional")], ids=str
)
# One layer of each kind and variant, to walk by hand in both directions.
single = pytest.mark.parametrize("name, options", [(n, o) for n in OWN for o in OWN[n]], ids=str)
BACKENDS = ["auto", "reference"] if len(ops.available_backends("lem")) > 1 else ["reference"]
# Sums are taken in another order for another batch size: a few roundings in float64.
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


@pytest.fixture(params=BACKENDS, autouse=True)
def backend(request):
    """Every test of one of our models runs on every backend."""
    name = getattr(request.node, "callspec", None)
    if name is not None and name.params.get("name", "LEM") not in OURS:
        if request.param != BACKENDS[0]:
            pytest.skip("baselines have no other backend")
        yield
        return
    if name is not None and "activation" in name.params.get("options", {}):
        if request.param != "reference":
            pytest.skip("only the reference runs this scheme and activation")
    with ah.use_backend(request.param):
        yield


def make(name, options, dtype=torch.float64, **more):
    torch.manual_seed(0)
    return model_class(name)(F, H, **options, **more, dtype=dtype)


def sequences(batch, steps, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(steps, batch, F, generator=generator, dtype=torch.float64).to(dtype)


def times(batch, steps, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    return (2 * torch.rand(steps, batch, generator=generator, dtype=torch.float64)).to(dtype)


def some_state(layer, batch):
    _, state = layer(sequences(batch, 4))
    return type(state)(*(0.7 * s.detach() for s in state))


def close(got, expected):
    torch.testing.assert_close(got, expected, **CLOSE)


def test_every_registered_layer_is_covered():
    assert set(OWN) == set(list_models())


@every
def test_shapes_and_state_names(name, options):
    layer = make(name, options)
    output, state = layer(sequences(4, 7))
    directions = 2 if options.get("bidirectional") else 1
    assert output.shape == (7, 4, directions * H)
    wide = max(options.get("hidden_sizes", [H]))
    for part in state:
        assert part.shape == (options.get("num_layers", 1) * directions, 4, wide)
    names = {"LSTM": ("h", "c"), "ChronoLSTM": ("h", "c"), **dict.fromkeys(OURS, ("y", "z"))}
    names["SkewRNN"] = ("h",)
    assert state._fields == names.get(name, ("h",))
    if directions == 1:
        assert torch.equal(output[-1], state[0][-1, :, :H])


@every
def test_batch_first_is_a_transpose(name, options):
    x = sequences(4, 7)
    time_major, state = make(name, options)(x)
    layer = make(name, options, batch_first=True)
    batch_major, same = layer(x.transpose(0, 1))
    close(batch_major.transpose(0, 1), time_major)
    close(tuple(same), tuple(state))


@every
@pytest.mark.parametrize("batch_first", [False, True])
def test_batched_equals_unbatched(name, options, batch_first):
    layer = make(name, options, batch_first=batch_first)
    x, start = sequences(3, 7), some_state(make(name, options), 3)
    output, state = layer(x.transpose(0, 1) if batch_first else x, start)
    for b in range(3):
        one, last = layer(x[:, b], type(start)(*(s[:, b] for s in start)))
        close(one, output[b] if batch_first else output[:, b])
        for part, whole in zip(last, state, strict=True):
            assert part.dim() == 2
            close(part, whole[:, b])


@every
@pytest.mark.parametrize("batch", [1, H, 9])
def test_every_batch_size(name, options, batch):
    layer = make(name, options)
    x = sequences(9, 6)
    whole, _ = layer(x)
    part, _ = layer(x[:, :batch])
    close(part, whole[:, :batch])


@every
def test_packed_equals_padded(name, options):
    layer = make(name, options)
    lengths = torch.tensor([3, 7, 1, 5])
    x, start = sequences(4, 7), some_state(layer, 4)
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, state = layer(packed, start)
    padded, got_lengths = pad_packed_sequence(output)
    assert torch.equal(got_lengths, lengths)
    assert torch.equal(output.batch_sizes, packed.batch_sizes)
    assert torch.equal(output.sorted_indices, packed.sorted_indices)
    for b, n in enumerate(lengths.tolist()):
        alone, last = layer(x[:n, b : b + 1], type(start)(*(s[:, b : b + 1] for s in start)))
        close(padded[:n, b : b + 1], alone)
        assert not padded[n:, b].any()
        for part, whole in zip(last, state, strict=True):
            close(part, whole[:, b : b + 1])


@every
def test_packed_in_given_order(name, options):
    layer = make(name, options)
    x = sequences(2, 5)
    output, _ = layer(pack_sequence([x[:, 0], x[:3, 1]]))
    assert output.sorted_indices is None
    padded, _ = pad_packed_sequence(output)
    alone, _ = layer(x[:3, 1:])
    close(padded[:3, 1:], alone)


@every
def test_packed_gradients_equal_padded(name, options):
    layer = make(name, options)
    lengths = [6, 4]
    x = sequences(2, 6).requires_grad_()
    output, _ = layer(pack_padded_sequence(x, torch.tensor(lengths)))
    (packed,) = torch.autograd.grad(pad_packed_sequence(output)[0].sin().sum(), x)
    alone = torch.zeros_like(x)
    for b, n in enumerate(lengths):
        part = x.detach()[:n, b : b + 1].requires_grad_()
        (alone[:n, b : b + 1],) = torch.autograd.grad(layer(part)[0].sin().sum(), part)
    close(packed, alone)


@both_ways
def test_a_reverse_direction_cannot_stream(name, options):
    layer = make(name, options)
    with pytest.raises(ValueError, match="needs a unidirectional layer; got bidirectional=True"):
        layer.step(sequences(2, 1)[0])


@one_way
def test_two_halves_equal_one_whole(name, options):
    layer = make(name, options)
    x = sequences(4, 9)
    whole, state = layer(x)
    first, middle = layer(x[:4])
    second, last = layer(x[4:], tuple(middle))  # a plain tuple will do
    close(torch.cat([first, second]), whole)
    close(tuple(last), tuple(state))


@one_way
@pytest.mark.parametrize("batch_first", [False, True])
def test_steps_equal_sequence(name, options, batch_first):
    layer = make(name, options, batch_first=batch_first)
    x = sequences(4, 6)
    output, state = layer(x.transpose(0, 1) if batch_first else x)
    carried = None
    for t, x_t in enumerate(x):
        y_t, carried = layer.step(x_t, carried)
        assert y_t.shape == (4, H)
        close(y_t, output[:, t] if batch_first else output[t])
    close(tuple(carried), tuple(state))
    alone, _ = layer.step(x[0, 0])
    assert alone.shape == (H,)
    close(alone, output[0, 0])


@single
def test_bidirectional_is_two_walks(name, options):
    layer = make(name, {**options, "bidirectional": True})
    walker = make(name, options)
    x = sequences(3, 6)
    output, state = layer(x)
    for direction, suffix in enumerate(("", "_reverse")):
        weights = layer.state_dict()
        walker.load_state_dict(
            {k: weights[k + suffix * k.endswith("_l0")] for k in walker.state_dict()}
        )
        walked, last = walker(x.flip(0) if direction else x)
        walked = walked.flip(0) if direction else walked
        close(output[..., direction * H : (direction + 1) * H], walked)
        close(state[0][direction], last[0][0])


@every
def test_gradients(name, options):
    layer = make(name, options)
    x = sequences(2, 4).requires_grad_()
    start = [s.requires_grad_() for s in some_state(layer, 2)]
    names = [n for n, _ in layer.named_parameters()]
    weights = [p.detach().clone().requires_grad_() for p in layer.parameters()]

    def run(x, *rest):
        state, parameters = rest[: len(start)], dict(zip(names, rest[len(start) :], strict=True))
        output, last = torch.func.functional_call(layer, parameters, (x, tuple(state)))
        return (output, *last)

    # All entries of one layer; of stacks, a random direction through all of them.
    fast = options.get("num_layers", 1) > 1
    assert torch.autograd.gradcheck(run, (x, *start, *weights), fast_mode=fast)


@every
@pytest.mark.parametrize("batch_first", [False, True])
def test_output_all_last_none(name, options, batch_first):
    layer = make(name, options, batch_first=batch_first)
    directions = 2 if options.get("bidirectional") else 1
    x = sequences(4, 7)
    lengths = torch.tensor([3, 7, 1, 5])
    inputs = {
        "batched": x.transpose(0, 1) if batch_first else x,
        "unbatched": x[:, 0],
        "packed": pack_padded_sequence(x, lengths, enforce_sorted=False),
    }
    for kind, given in inputs.items():
        output, state = layer(given)
        last, same = layer(given, output="last")
        nothing, again = layer(given, output="none")
        assert nothing is None
        for got in (same, again):
            assert type(got) is type(state)
            close(tuple(got), tuple(state))
        ends = [6] * 4
        if kind == "packed":
            output, ends = pad_packed_sequence(output)[0], (lengths - 1).tolist()
        elif kind == "unbatched":
            output, last = output[:, None], last[None]
        elif batch_first:
            output = output.transpose(0, 1)
        assert last.shape == (output.shape[1], directions * H)
        for b in range(len(last)):
            close(last[b, :H], output[ends[b], b, :H])
            close(last[b, H:], output[0, b, H:])
        assert last.untyped_storage().data_ptr() != same[0].untyped_storage().data_ptr()


@timed
@pytest.mark.parametrize("batch_first", [False, True])
def test_elapsed_in_every_layout(name, options, batch_first):
    layer = make(name, options, batch_first=batch_first)
    major = make(name, options)
    x, gaps = sequences(4, 7), times(4, 7)
    output, state = major(x, elapsed=gaps)
    assert not torch.allclose(output, major(x)[0])
    close(major(x, elapsed=torch.ones_like(gaps))[0], major(x)[0])
    for b in range(4):
        close(layer(x[:, b], elapsed=gaps[:, b])[0], output[:, b])
    if batch_first:
        close(layer(x.transpose(0, 1), elapsed=gaps.t())[0].transpose(0, 1), output)
    lengths = torch.tensor([3, 7, 1, 5])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    for given in (
        pack_padded_sequence(gaps, lengths, enforce_sorted=False),
        gaps.t() if batch_first else gaps,
    ):
        ragged, state = layer(packed, elapsed=given)
        padded, _ = pad_packed_sequence(ragged)
        for b, n in enumerate(lengths.tolist()):
            alone, last = major(x[:n, b : b + 1], elapsed=gaps[:n, b : b + 1])
            close(padded[:n, b : b + 1], alone)
            close(tuple(s[:, b : b + 1] for s in state), tuple(last))


@timed
def test_elapsed_gradients(name, options):
    layer = make(name, options)
    x, gaps = sequences(2, 4).requires_grad_(), (times(2, 4) + 0.1).requires_grad_()

    def run(x, gaps):
        output, last = layer(x, elapsed=gaps)
        return (output, *last)

    assert torch.autograd.gradcheck(run, (x, gaps))


@pytest.mark.parametrize(
    "name, options", [c for c in CASES if c[0] in TIMED and not c[1].get("bidirectional")], ids=str
)
def test_halves_and_steps_with_elapsed(name, options):
    layer = make(name, options)
    x, gaps = sequences(4, 9), times(4, 9)
    whole, state = layer(x, elapsed=gaps)
    first, middle = layer(x[:4], elapsed=gaps[:4])
    second, last = layer(x[4:], middle, elapsed=gaps[4:])
    close(torch.cat([first, second]), whole)
    close(tuple(last), tuple(state))
    for batch_first in (False, True):
        streaming, carried = make(name, options, batch_first=batch_first), None
        for t in range(9):
            y_t, carried = streaming.step(x[t], carried, gaps[t])
            close(y_t, whole[t])
        close(tuple(carried), tuple(state))
    alone, _ = layer.step(x[0, 0], None, gaps[0, 0])
    close(alone, whole[0, 0])


@kept
def test_chunked_layers(name, options):
    """Beyond a tile and with packed input; the same dropout masks go into both passes."""
    dropout = {"dropout": 0.5} if options.get("num_layers", 1) > 1 else {}
    x, lengths = sequences(3, 150).requires_grad_(), torch.tensor([150, 70, 9])
    results = []
    for policy in ("stored", "chunked"):
        layer = make(name, options, **dropout, memory=policy)
        torch.manual_seed(3)
        packed = pack_padded_sequence(x, lengths)
        output, state = layer(packed, elapsed=times(3, 150))
        loss = output.data.sin().sum() + sum(s.cos().sum() for s in state)
        gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output.data, tuple(state), gradients))
    close(results[1], results[0])


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(name, options, dtype):
    exact, _ = make(name, options)(sequences(3, 6))
    layer = make(name, options).to(dtype)
    output, state = layer(sequences(3, 6, dtype))
    assert output.dtype == dtype and all(s.dtype == dtype for s in state)
    # Six steps of a recurrence with derivatives below 2: well within 30 roundings.
    bound = 30 * torch.finfo(dtype).eps
    assert (output.double() - exact).abs().max() < bound


@every
def test_save_and_load(name, options, tmp_path):
    layer = make(name, options)
    ah.save_pretrained(layer, tmp_path / "saved")
    again = ah.from_pretrained(tmp_path / "saved")
    assert type(again) is type(layer) and again.config() == layer.config()
    x = sequences(2, 5)
    assert torch.equal(again(x)[0], layer(x)[0])
    assert repr(again) == repr(layer)


@every
def test_copies_and_pickles(name, options):
    layer = make(name, options)
    layer.flatten_parameters()  # as code written for nn.LSTM does
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    x = sequences(2, 5)
    for other in (copy.deepcopy(layer), torch.load(buffer, weights_only=False)):
        assert torch.equal(other(x)[0], layer(x)[0])


@every
def test_reset_parameters_draws_anew(name, options):
    layer = make(name, options)
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    torch.manual_seed(0)
    make(name, options)  # leaves the generator as it was after the first construction
    layer.reset_parameters()
    changed = [k for k, v in layer.state_dict().items() if not torch.equal(v, before[k])]
    fixed = {k for k in before if k.startswith(("raw_", "bias"))}
    assert set(changed) >= set(before) - fixed


@pytest.mark.parametrize("name", OURS)
def test_dropout_is_one_mask_per_sequence(name):
    layer = make(name, {"num_layers": 2, "dropout": 0.5})
    seen = {}

    def keep(x, suffixes, state, **words):
        seen["masks"] = words["masks"]
        return type(layer)._kernel(layer, x, suffixes, state, **words)

    layer._kernel = keep
    x = sequences(40, 6)
    layer(x)
    (mask,) = seen["masks"]
    assert mask.shape == (40, H) and set(mask.unique().tolist()) == {0.0, 2.0}
    first, _ = layer(x)
    second, _ = layer(x)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    again, _ = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x)[0], again)
    layer.eval()
    layer(x)
    assert seen["masks"] is None


@pytest.mark.parametrize("name", list(OWN))
class TestRefusals:
    """Each message names what was expected, what came and what to do."""

    def refuse(self, call, error, *words):
        with pytest.raises(error) as caught:
            call()
        for word in words:
            assert word in str(caught.value), f"{word!r} not in {caught.value}"

    def test_constructor(self, name):
        cls = model_class(name)
        self.refuse(lambda: cls(0, H), ValueError, "input_size must be an int >= 1", "input_size=0")
        self.refuse(lambda: cls(F, 2.5), TypeError, "hidden_size must be an int", "2.5 (float)")
        self.refuse(lambda: cls(F, H, 0), ValueError, "num_layers must be an int >= 1")
        self.refuse(lambda: cls(F, H, dropout=1.5), ValueError, "dropout must be", "[0, 1]", "1.5")
        self.refuse(lambda: cls(F, H, bias=1), TypeError, "bias must be True or False")
        self.refuse(lambda: cls(F, H, batch_first="no"), TypeError, "batch_first must be True")
        self.refuse(lambda: cls(F, H, bidirectional=None), TypeError, "bidirectional must be")

    def test_dropout_without_layers_warns(self, name):
        with pytest.warns(UserWarning, match="dropout"):
            model_class(name)(F, H, dropout=0.5)

    def test_input(self, name):
        layer = make(name, {}, dtype=torch.float32)
        good = torch.zeros(7, 4, F)
        self.refuse(
            lambda: layer(good.double()), TypeError, "x must have the layer's dtype", "float64"
        )
        self.refuse(
            lambda: layer([1.0]), TypeError, "x must be a torch.Tensor", "list", "as_tensor"
        )
        self.refuse(lambda: layer(good[..., :2]), ValueError, "[T, B, 3]", "shape [7, 4, 2]")
        self.refuse(lambda: layer(good[None]), ValueError, "[T, B, 3]", "shape [1, 7, 4, 3]")
        self.refuse(lambda: layer(good[0, 0]), ValueError, "[T, B, 3]", "shape [3]")
        self.refuse(lambda: layer(good[:0]), ValueError, "at least one sequence", "shape [0, 4, 3]")
        self.refuse(lambda: layer(good[:, :0]), ValueError, "at least one", "shape [7, 0, 3]")
        bad = good.clone()
        bad[2, 1, 0] = float("nan")
        self.refuse(lambda: layer(bad), ValueError, "must not contain NaN", "1 NaN of 84")
        self.refuse(lambda: layer(good.to("meta")), ValueError, "x must be on the layer's device")
        packed = pack_sequence([good[:, 0, :2]])
        self.refuse(lambda: layer(packed), ValueError, "packed data", "shape [7, 2]")

    def test_output_and_elapsed(self, name):
        layer = make(name, {}, dtype=torch.float32)
        x, ones = torch.zeros(7, 4, F), torch.ones(7, 4)
        self.refuse(lambda: layer(x, output="end"), ValueError, "output must be one of 'all', 'la")
        if name not in TIMED:
            words = (f"elapsed for {name}", "CoRNN, UnICORNN or LEM")
            self.refuse(lambda: layer(x, elapsed=ones), ValueError, *words)
            self.refuse(lambda: layer.step(x[0], None, ones[0]), ValueError, *words)
            return
        for value in (-1e-3, float("nan"), float("inf")):
            bad = ones.clone()
            bad[2, 1] = value
            words = ("elapsed must be finite and >= 0", f"{value:g}")
            self.refuse(lambda bad=bad: layer(x, elapsed=bad), ValueError, *words)
            self.refuse(lambda bad=bad: layer.step(x[0], None, bad[2]), ValueError, words[0])
        shape = ("elapsed must have the shape of x without its features, [7, 4]", "[4, 7]")
        self.refuse(lambda: layer(x, elapsed=ones.t()), ValueError, *shape)
        self.refuse(lambda: layer(x, elapsed=1.0), TypeError, "elapsed must be a torch.Tensor")
        self.refuse(lambda: layer(x, elapsed=ones.double()), TypeError, "elapsed", "float64")
        self.refuse(lambda: layer.step(x[0], None, ones[0, :3]), ValueError, "elapsed", "[4]")
        packed = pack_sequence([x[:, 0], x[:3, 1]])
        other = pack_sequence([ones[:, 0], ones[:4, 1]])
        less = pack_sequence([ones[:, 0]])
        self.refuse(lambda: layer(packed, elapsed=ones), ValueError, "elapsed", "[7, 2]")
        self.refuse(lambda: layer(packed, elapsed=less), ValueError, "elapsed", "[10]")
        swapped = pack_sequence([ones[:5, 0], ones[:5, 1]])
        self.refuse(lambda: layer(packed, elapsed=other), ValueError, "elapsed", "shape [11]")
        self.refuse(
            lambda: layer(packed, elapsed=swapped), ValueError, "the lengths of x, [7, 3]", "[5, 5]"
        )

    def test_memory(self, name):
        if name not in OURS:
            self.refuse(lambda: model_class(name)(F, H, memory="stored"), TypeError, "memory")
            return
        make = model_class(name)
        self.refuse(lambda: make(F, H, memory="none"), ValueError, "memory must be one of 'auto'")
        both = {"memory": "reversible", "bidirectional": True}
        self.refuse(lambda: make(F, H, **both), ValueError, "needs UnICORNN in one direction")
        if name not in ("UnICORNN", "MultiLayerNeuralOscillator"):
            self.refuse(
                lambda: make(F, H, memory="reversible"), ValueError, "another model", "chunked"
            )

    def test_state(self, name):
        layer = make(name, {}, dtype=torch.float32)
        x = torch.zeros(7, 4, F)
        parts = len(layer(x)[1])
        shaped = [torch.zeros(1, 3, H)] * parts
        self.refuse(lambda: layer(x, tuple(shaped)), ValueError, "state.", "[1, 4, 5]", "[1, 3, 5]")
        double = [torch.zeros(1, 4, H, dtype=torch.float64)] * parts
        self.refuse(lambda: layer(x, tuple(double)), TypeError, "state.", "dtype", "float64")
        self.refuse(lambda: layer(x, (shaped[0],) * (parts + 1)), TypeError, "state must")
        self.refuse(lambda: layer(x, 3), TypeError, "state must", "int")

    def test_step(self, name):
        layer = make(name, {}, dtype=torch.float32)
        self.refuse(lambda: layer.step(torch.zeros(4, 2)), ValueError, "x", "shape")
        stack = make(name, {"num_layers": 2, "dropout": 0.3})
        x_t = sequences(4, 1)[0]
        self.refuse(lambda: stack.step(x_t), ValueError, "without dropout", "layer.eval()")
        stack.eval()
        stack.step(x_t)


@pytest.mark.parametrize("name", OURS)
def test_autocast_keeps_the_weights_dtype(name):
    layer = make(name, {}, dtype=torch.float32)
    x = sequences(2, 5, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = layer(x.bfloat16())
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, layer(x.bfloat16().float())[0])


@pytest.mark.parametrize("name", list_models())
def test_defaults_are_stable(name):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = model_class(name)(F, H)
    generator = torch.Generator().manual_seed(0)
    x = 10 * torch.randn(2000, 2, F, generator=generator)
    output, _ = layer(x)
    limit = 100.0
    if name == "ExpRNN":  # keeps the norm of what it has, and adds V u_n and at most b
        limit = (layer.weight_ih_l0.norm() * x.norm(dim=-1) + layer.bias_l0.norm()).sum(0).max()
    assert output.isfinite().all() and output.abs().max() < limit


@pytest.mark.parametrize("name", list_models())
def test_device_argument(name):
    layer = model_class(name)(F, H, device="meta")
    assert {t.device.type for t in layer.state_dict().values()} == {"meta"}


@pytest.mark.parametrize("name", OURS)
def test_transforms_of_torch_func(name):
    layer = make(name, {})
    x = sequences(6, 5).reshape(5, 3, 2, F)
    mapped = torch.func.vmap(lambda part: layer(part)[0], in_dims=1, out_dims=1)(x)
    close(mapped, torch.stack([layer(x[:, k])[0] for k in range(3)], dim=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", list_models())
def test_large_sizes(name):
    """Two halves equal one whole at 20,000 steps and 130 neurons; gradients reach the start."""
    torch.manual_seed(0)
    # Neural oscillators are chaotic over long times, and the gates of SkewRNN and of
    # GatedAntisymmetricRNN depend on the state: they amplify roundings.
    steps = {
        "SkewRNN": 1e-3,
        "NeuralOscillator": 0.005,
        "MultiLayerNeuralOscillator": 0.005,
        "GatedAntisymmetricRNN": 0.005,
    }
    own = {"dt": steps[name]} if name in steps else {}
    layer = model_class(name)(F, 130, num_layers=2, **own, dtype=torch.float64)
    x = sequences(2, 20_000)
    with torch.no_grad():
        whole, state = layer(x)
        first, middle = layer(x[:9_999])
        second, last = layer(x[9_999:], middle)
    # Roundings of 20,000 steps add up; none of the models amplifies them.
    words = {"rtol": 1e-8, "atol": 1e-10}
    torch.testing.assert_close(torch.cat([first, second]), whole, **words)
    torch.testing.assert_close(tuple(last), tuple(state), **words)
    start = x[:2_000].clone().requires_grad_()
    layer(start)[0][-1].sum().backward()
    assert start.grad.isfinite().all()
