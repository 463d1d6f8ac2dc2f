from copy import deepcopy
from functools import partial

import pytest
import torch
from torch.optim import lr_scheduler

from anharmonic.nn import SequenceModel
from anharmonic.train import Run
from anharmonic.train.optim import first_beta, learning_rate, make_optimizer


def one_cycle(optimizer, steps, start=0.3):
    return lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=steps, pct_start=start)


@pytest.mark.parametrize(
    ("settings", "schedule"),
    [
        ({"schedule": "one_cycle", "epochs": 10}, one_cycle),
        ({"schedule": "one_cycle", "epochs": 37}, one_cycle),
        ({"schedule": "one_cycle", "epochs": 10, "warmup": 0.5}, partial(one_cycle, start=0.5)),
        ({"schedule": "cosine", "epochs": 20}, lr_scheduler.CosineAnnealingLR),
    ],
)
def test_schedules_are_torchs(settings, schedule):
    run = Run("adding", "LEM", lr=0.01, **settings)
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    theirs = schedule(optimizer, 4 * run.epochs)
    for step in range(4 * run.epochs):
        (group,) = optimizer.param_groups
        assert learning_rate(run, step, 4) == pytest.approx(group["lr"], abs=1e-12)
        assert first_beta(run, step, 4) == pytest.approx(group["betas"][0], abs=1e-12)
        optimizer.step()
        if step + 1 < 4 * run.epochs:
            theirs.step()


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_one_cycle_of_a_few_steps_reaches_its_rate(epochs):
    run = Run("adding", "LEM", lr=0.01, schedule="one_cycle", epochs=epochs)
    assert max(learning_rate(run, step, 1) for step in range(epochs)) == pytest.approx(0.01)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_optimizer_is_torchs_with_the_runs_numbers(name):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    twin = deepcopy(model)
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
