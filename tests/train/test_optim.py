import pytest
import torch

from anharmonic.nn import SequenceModel
from anharmonic.train import Run
from anharmonic.train.optim import first_beta, learning_rate, make_optimizer


def rates(run, per_epoch=1):
    return [learning_rate(run, step, per_epoch) for step in range(run.epochs * per_epoch)]


def test_the_drop_comes_after_its_epochs():
    run = Run("adding", "LEM", lr=0.2, lr_drop_epoch=3, epochs=5)
    assert rates(run, 2) == pytest.approx([0.2] * 6 + [0.02] * 4)
    assert set(rates(Run("adding", "LEM", lr=0.2), 7)) == {0.2}


@pytest.mark.parametrize("warmup", [None, 0.5])
@pytest.mark.parametrize("epochs", [10, 37])
def test_one_cycle_is_torchs(epochs, warmup):
    run = Run("adding", "LEM", lr=0.01, schedule="one_cycle", epochs=epochs, warmup=warmup)
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.01, total_steps=4 * epochs, pct_start=0.3 if warmup is None else warmup
    )
    for step in range(4 * epochs):
        (group,) = optimizer.param_groups
        assert learning_rate(run, step, 4) == pytest.approx(group["lr"], abs=1e-12)
        assert first_beta(run, step, 4) == pytest.approx(group["betas"][0], abs=1e-12)
        optimizer.step()
        if step + 1 < 4 * epochs:
            theirs.step()


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_one_cycle_of_a_few_steps(epochs):
    run = Run("adding", "LEM", lr=0.01, schedule="one_cycle", epochs=epochs)
    assert max(rates(run)) == pytest.approx(0.01)


def test_cosine_is_torchs():
    run = Run("adding", "LEM", lr=0.01, schedule="cosine", epochs=20)
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for rate in rates(run):
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_warmup_rises_evenly_to_the_rate():
    rise = rates(Run("adding", "LEM", lr=0.5, epochs=10, warmup=0.4))
    assert rise == pytest.approx([0.02, 0.14, 0.26, 0.38, *[0.5] * 6])


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_optimizer_is_torchs_with_the_runs_numbers(name):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    twin = torch.nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    run = Run("adding", "LEM", lr=0.1, weight_decay=0.5, optimizer=name, betas=(0.8, 0.9))
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    plain = kind(twin.parameters(), lr=0.1, weight_decay=0.5, betas=(0.8, 0.9))
    ours = make_optimizer(run, model)
    for _ in range(3):
        for net, optimizer in ((model, ours), (twin, plain)):
            optimizer.zero_grad()
            net(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
    assert type(ours) is kind
    torch.testing.assert_close(model.weight, twin.weight)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_the_output_layer_may_be_left_out_of_weight_decay(optimizer):
    model = SequenceModel("LEM", 2, 3, hidden_size=4)
    start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    run = Run("adding", "LEM", lr=0.1, weight_decay=0.5, decay_output=False, optimizer=optimizer)
    steps = make_optimizer(run, model)
    for weight in model.parameters():  # only the decay moves a weight whose gradient is 0
        weight.grad = torch.zeros_like(weight)
    steps.step()
    moved = {n for n, weight in model.named_parameters() if not torch.equal(weight, start[n])}
    assert moved == {name for name in start if name.startswith("layer.")}
    # All weights, each once: a weight in two groups would be moved twice.
    assert sum(len(group["params"]) for group in steps.param_groups) == len(start)


def test_a_model_without_an_output_layer_is_told_so():
    run = Run("adding", "LEM", weight_decay=0.5, decay_output=False)
    with pytest.raises(ValueError, match=r"decay_output must be True for Linear.*leave"):
        make_optimizer(run, torch.nn.Linear(1, 1))
