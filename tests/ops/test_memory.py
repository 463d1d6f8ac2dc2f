import pytest
import torch

from anharmonic import nn, ops
from anharmonic.ops import backend as memory
from anharmonic.ops.reference import TILE

every = pytest.mark.parametrize("kernel", ["cornn", "unicornn", "lem"])


@every
def test_chunked_needs_no_gradient_of_everything(make_stack, kernel):
    stack, gradients = make_stack(kernel), []
    leaf = stack.weights[-1][0]
    for policy in ("stored", "chunked"):
        loss = stack.loss(stack.call(memory=policy, backend="reference"))
        gradients += torch.autograd.grad(loss, leaf)
        for other in stack.leaves:
            other.requires_grad_(other is leaf)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-13)


@every
def test_graph_is_forgotten_where_states_are_computed_again(make_stack, kernel, monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 100)

    def nodes(policy, output):
        results = stack.call(output=output, memory=policy, backend="reference")
        seen, todo = set(), [r.grad_fn for r in results if r is not None]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo.extend(n for n, _ in node.next_functions)
        return len(seen)

    for steps in (2 * TILE, 4 * TILE):
        stack = make_stack(kernel, steps=steps)
        assert nodes("chunked", "none") < 60 and nodes("auto", "none") < 60
        assert nodes("stored", "none") > steps and nodes("auto", "all") > steps


def test_auto_stores_within_transforms(monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    weight = ops.LEMWeights(torch.ones(12, 1), torch.zeros(9, 3), torch.eye(3), None)
    zero = torch.zeros(1, 2, 3)

    def end(x, policy):
        return ops.lem(x, [weight], zero, zero, dt=0.5, output="none", memory=policy)[1].sum()

    x = torch.ones(5, 2, 1, requires_grad=True)
    (expected,) = torch.autograd.grad(end(x, "auto"), x)
    torch.testing.assert_close(torch.func.grad(lambda x: end(x, "auto"))(x.detach()), expected)
    with pytest.raises(ValueError, match="memory='chunked' needs plain autograd; got a transform"):
        torch.func.grad(lambda x: end(x, "chunked"))(x.detach())


@pytest.mark.parametrize("policy", ["chunked", "reversible"])
def test_second_derivatives_are_refused(make_stack, policy):
    """A loss linear in the output has a constant gradient: nothing else would tell."""
    stack = make_stack("unicornn", steps=10)
    loss = stack.loss(stack.call(memory=policy, backend="reference"))
    with pytest.raises(RuntimeError, match=r"second derivatives need every state.*'stored'"):
        torch.autograd.grad(loss, stack.x, create_graph=True)
    loss = stack.loss(stack.call(memory="stored", backend="reference"))
    (gradient,) = torch.autograd.grad(loss, stack.x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), stack.x)
    assert second.abs().max() > 0


def test_backward_within_autocast(make_stack):
    stack = make_stack("lem", dtype=torch.float32)
    words = {"memory": "chunked", "backend": "reference"}
    _, expected = stack.run(**words)
    loss = stack.loss(stack.call(**words))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = torch.autograd.grad(loss, stack.leaves)
    assert all(map(torch.equal, found, expected))


class OwnStepSize(nn.SequenceLayer):
    """Learns its step size, which is not among the weights of its step."""

    has_step_size = True

    def __init__(self, input_size, hidden_size, **options):
        super().__init__(input_size, hidden_size, compiled=False, **options)
        self.dt = torch.nn.Parameter(torch.tensor(0.3))
        self.make_parameters()

    def parameter_shapes(self, input_size):
        return {"weight_ih": (self.hidden_size, input_size)}

    def step_function(self, u, state, w, dt):
        return nn.HiddenState(state.h + dt * torch.tanh(u - state.h))


def test_no_gradient_of_a_hidden_parameter_is_lost(monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    layer, x = OwnStepSize(2, 3, memory="auto"), torch.ones(5, 2, 2)
    layer(x, output="last")[0].sum().backward()
    assert layer.dt.grad.abs() > 0
    layer.memory = "chunked"
    with pytest.raises(ValueError, match="needs a gradient"):
        layer(x)
    layer.dt.requires_grad_(False)
    layer(x)


class RandomSteps(OwnStepSize):
    def step_function(self, u, state, w, dt):
        return nn.HiddenState(state.h + torch.dropout(u, 0.5, True))


def test_random_steps_are_not_computed_again(monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    results = []
    for policy in ("stored", "auto"):
        torch.manual_seed(0)
        layer, x = RandomSteps(2, 3, memory=policy), torch.ones(5, 2, 2)
        output, _ = layer(x, output="last")
        results += torch.autograd.grad(output.sum(), layer.weight_ih_l0)
    assert torch.equal(*results)
    layer.memory = "chunked"
    with pytest.raises(ValueError, match="random numbers"):
        layer(x)
