"""Layers of one's own: compiled, they give what the loop gives."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import anharmonic as ah
from anharmonic.nn import State, StepLayer
from anharmonic.ops.compiler import layers
from anharmonic.testing import check_sequence_layer

T, B, F, H = 40, 3, 2, 4


class Pair(StepLayer):
    """Two variables, a gate, and a step size."""

    state_type = State
    has_step_size = True

    def __init__(self, *sizes, dt=0.3, device=None, dtype=None, **options):
        super().__init__(*sizes, **options)
        self.dt = dt
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size):
        H = self.hidden_size
        return {"weight_ih": (2 * H, input_size), "weight_hh": (H, H), "bias": (2 * H,)}

    def prepare(self, w):
        return w.weight_hh - w.weight_hh.T

    def step_function(self, u, state, w, dt):
        a, b = u.chunk(2, -1)
        z = state.z + dt * torch.tanh(a + state.y @ w)
        return State(state.y + dt * torch.sigmoid(b) * z, z)


def layer(compiled, **options):
    torch.manual_seed(0)
    return Pair(F, H, compiled=compiled, dtype=torch.float64, **options)


def results(module, call):
    """What a call returns, and all gradients."""
    torch.manual_seed(1)
    x = torch.randn(T, B, F, dtype=torch.float64, requires_grad=True)
    output, state = call(module, x)
    values = [getattr(output, "data", output), *state] if output is not None else [*state]
    loss = sum((v * torch.cos(torch.arange(v.numel()).view_as(v))).sum() for v in values)
    leaves = [x, *module.parameters()]
    return [v.detach() for v in values] + list(torch.autograd.grad(loss, leaves))


def packed(module, x, **gaps):
    return module(pack_padded_sequence(x, [5, T, 17], enforce_sorted=False), **gaps)


def uneven(module, x, run=StepLayer.__call__):
    return run(module, x, elapsed=torch.rand(T, B, dtype=x.dtype))


def carried(module, x):
    _, state = module(x[:35])
    return module(x[35:].contiguous(), state)


CALLS = {
    "plain": (lambda m, x: m(x), {}),
    "last": (lambda m, x: m(x, output="last"), {"num_layers": 2}),
    "none": (lambda m, x: m(x, output="none"), {"memory": "auto"}),
    "stack": (lambda m, x: m(x), {"num_layers": 3, "dropout": 0.5}),
    "both directions": (lambda m, x: m(x), {"num_layers": 2, "bidirectional": True}),
    "both directions, last": (lambda m, x: m(x, output="last"), {"bidirectional": True}),
    "packed": (packed, {"num_layers": 2, "memory": "chunked"}),
    "packed, both directions": (packed, {"bidirectional": True}),
    "uneven": (uneven, {"num_layers": 2}),
    "uneven and packed": (lambda m, x: uneven(m, x, packed), {"bidirectional": True}),
    "carried": (carried, {"memory": "chunked"}),
    "unbatched": (lambda m, x: m(x[:, 0]), {}),
    "batch first": (lambda m, x: m(x.transpose(0, 1)), {"batch_first": True}),
    "no bias": (lambda m, x: m(x), {"bias": False}),
}


@pytest.mark.fast("stack", "both directions, last", "packed", "uneven and packed", "no bias")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    call, options = CALLS[name]
    module = layer(True, **options)
    found, expected = results(module, call), results(layer(False, **options), call)
    assert "at every step" in module.explain()
    for value, right in zip(found, expected, strict=True):
        assert (value - right).abs().max() <= 1e-12 * right.abs().max().clamp(min=1e-3)


def test_short_sequences_are_not_compiled():
    module = layer("auto")
    x = torch.zeros(31, B, F, dtype=torch.float64)
    module(x)
    assert "fewer than 32 steps" in module.explain()
    module(torch.zeros(32, B, F, dtype=torch.float64))
    assert "at every step" in module.explain()
    with ah.use_backend("reference"):
        layer(True)(x)


def test_explain(capsys):
    module = layer("auto")
    module(torch.zeros(T, B, F, dtype=torch.float64))
    ah.explain(module)
    ah.explain(ah.LEM(2, 3))
    said = capsys.readouterr().out
    assert "Pair runs compiled (" in said and "LEM runs code that was written by hand" in said
    run = ah.recurrence(lambda u, h, w: h * (0.1 * torch.exp(w["a"])) + torch.tanh(u @ w["V"]))
    weights = {"V": torch.ones(3, 8), "a": torch.zeros(8)}
    run(torch.zeros(T, B, 3), torch.zeros(B, 8), weights)
    assert "from weights alone: 1 exp, 1 mul\n" in run.explain()


class Across(Pair):
    """Its drive looks at more than one step, which no single step can do."""

    def drive(self, x, w):
        return super().drive(x, w).cumsum(0)


def test_a_drive_across_time_runs_as_the_loop():
    module, x = Across(F, H), torch.randn(T, B, F)
    with pytest.warns(UserWarning, match="Across is not compiled and runs as a loop"):
        output, _ = module(x)
    module.compiled = False
    assert torch.equal(module(x)[0], output)
    module.compiled = True
    with pytest.raises(ValueError, match="Across must be a step that can be compiled"):
        module(x)
    module = layer(True).to(torch.bfloat16)
    with pytest.raises(ValueError, match=r"float32 or float64 .*got torch\.bfloat16; convert"):
        module(x.bfloat16())


def test_transforms_and_exports_hold_the_loop(monkeypatch):
    monkeypatch.setattr(layers, "_SHORTEST", 2)
    module, x = layer("auto"), torch.randn(4, B, F, dtype=torch.float64)
    right, weights = module(x)[0], dict(module.named_parameters())
    mapped = torch.func.vmap(lambda x: torch.func.functional_call(module, weights, (x,))[0])
    compiled = torch.compile(module, backend="eager")
    exported = torch.export.export(module, (x,)).module()
    for found in (mapped(x[None])[0], compiled(x)[0], exported(x)[0]):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


# ---- layers of this package without code written by hand -----------------------------------------
VERLET = {"scheme": "velocity-verlet"}
BUILT_IN = {
    "FastGRNN": (ah.FastGRNN, {}),
    "SkewRNN": (ah.SkewRNN, {"num_layers": 2}),
    "ResonatorBank": (ah.ResonatorBank, {"bidirectional": True}),
    "LinOSS": (ah.LinOSS, {}),
    "D-LinOSS": (ah.LinOSS, {"scheme": "implicit-explicit", "damping": True}),
    "velocity Verlet": (ah.NeuralOscillator, {**VERLET, "activation": "sin"}),
    "velocity Verlet, layers": (ah.MultiLayerNeuralOscillator, {**VERLET, "num_layers": 3}),
}


@pytest.mark.fast("quick-D-LinOSS-dtype0-1e-12")
@pytest.mark.parametrize("dtype, bound", [(torch.float64, 1e-12), (torch.float32, 2e-6)])
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_layers(name, dtype, bound, level):
    kind, options = BUILT_IN[name]
    found = []
    for compiled in ("auto", False):
        torch.manual_seed(0)
        module = kind(F, H, **options, dtype=dtype)
        module.compiled = compiled
        x = torch.randn(T, B, F, dtype=dtype, requires_grad=True)
        calls = [{}, {"elapsed": torch.rand(T, B, dtype=dtype)}] if module.has_step_size else [{}]
        for call in calls:
            output, state = module(x, **call)
            weight = torch.cos(torch.arange(output.numel(), dtype=dtype)).view_as(output)
            loss = (output * weight).sum() + sum(part.sum() for part in state)
            gradients = torch.autograd.grad(loss, [x, *module.parameters()])
            found += [output.detach(), *(part.detach() for part in state), *gradients]
            # Uneven steps of resonators are computed in float64.
            wide = kind is ah.ResonatorBank and call and dtype is torch.float32
            assert ("at every step" in module.explain()) != (compiled is False or wide)
    half = len(found) // 2
    for value, expected in zip(found[:half], found[half:], strict=True):
        assert (value - expected).abs().max() <= bound * expected.abs().max().clamp(min=1)


def test_an_attribute_may_change():
    module, x = layer(True), torch.randn(T, B, F, dtype=torch.float64)
    first, _ = module(x)
    module.dt = 0.1
    changed, _ = module(x)
    loop = layer(False, dt=0.1)
    assert not torch.allclose(first, changed)
    torch.testing.assert_close(changed, loop(x)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_the_suite_of_layers(monkeypatch):
    monkeypatch.setattr(layers, "_SHORTEST", 2)
    check_sequence_layer(Pair)
