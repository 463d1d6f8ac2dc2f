"""Which epoch's weights are kept, what is averaged, and what runs without a validation set give."""

import dataclasses
import sys

import numpy as np
import pytest
import torch

from anharmonic.data.readers import file_digest
from anharmonic.nn.store import from_pretrained
from anharmonic.train import fit, loop, run_folder
from anharmonic.train.evaluate import Scores


@pytest.fixture
def best_epoch(tiny, environment, monkeypatch):
    """The epoch chosen where the validations gave these metrics and losses."""

    def chosen(select, rises, *scores):
        left = iter([Scores(*pair, 1) for pair in scores])
        monkeypatch.setattr(loop, "evaluate", lambda *_: next(left))
        monkeypatch.setattr(
            sys.modules["anharmonic.train.fit"], "evaluate", lambda *_: Scores(1.0, 1.0, 1)
        )
        task = {"task": "digits", "task_options": {}, "batch_size": 700} if rises else {}
        return fit(tiny(select=select, epochs=len(scores), **task), environment).best_epoch

    return chosen


TIES = [(1.0, 0.5), (0.9, 0.4), (0.9, 0.3), (0.9, 0.3), (0.9, 0.35), (2.0, 0.1)]
LOSSES = [(9.0, 0.1), (50.0, 0.05), (50.0, 0.05), (80.0, 0.2)]


@pytest.mark.parametrize(
    ("select", "rises", "scores", "epoch"),
    [
        ("best", False, TIES, 4),
        ("best", True, [(-metric, loss) for metric, loss in TIES], 4),
        ("loss", True, LOSSES, 3),
        ("last", True, LOSSES, 4),
    ],
)
def test_ties_go_to_the_smaller_loss_then_to_the_later(best_epoch, select, rises, scores, epoch):
    assert best_epoch(select, rises, *scores) == epoch


def test_averaged_weights_are_tested_and_kept(tiny, environment, monkeypatch):
    """The average of every step's weights, computed here by hand."""
    run = tiny(ema_decay=0.8, select="last", epochs=2)
    steps = []
    step = torch.optim.Adam.step

    def spied(self, *arguments, **named):
        out = step(self, *arguments, **named)
        steps.append([w.detach().clone() for group in self.param_groups for w in group["params"]])
        return out

    monkeypatch.setattr(torch.optim.Adam, "step", spied)
    fit(run, environment)
    average = steps[0]
    for weights in steps[1:]:
        average = [0.8 * a + 0.2 * w for a, w in zip(average, weights, strict=True)]
    kept = list(from_pretrained(run_folder(run, environment) / "best").parameters())
    for found, expected in zip(kept, average, strict=True):
        torch.testing.assert_close(found, expected)


def test_the_gradients_norms_are_in_the_curve(tiny, environment, monkeypatch):
    run = tiny(clip_norm=1e-3, epochs=2)
    norms = []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(
        torch.nn.utils, "clip_grad_norm_", lambda *a: norms.append(float(n := clip(*a))) or n
    )
    curve = fit(run, environment).curve
    unclipped = fit(dataclasses.replace(run, clip_norm=1e6), environment).curve
    for epoch in (0, 1):
        mine = norms[6 * epoch : 6 * epoch + 6]
        assert curve["grad_norm"][epoch] == pytest.approx(np.median(mine), rel=1e-5)
        assert curve["grad_norm_max"][epoch] == pytest.approx(max(mine), rel=1e-5)
    assert unclipped["grad_norm_max"][0] == pytest.approx(max(norms[12:18]), rel=1e-5)


@pytest.mark.parametrize(("weights", "share"), [("none", 0.2), ("balanced", 0.5)])
def test_balanced_weights_help_the_rare_class(tiny, environment, stored, weights, share):
    """With a useless input the answer is the frequent class, unless classes count alike."""
    path = stored(x=np.zeros((60, 4, 1)), y=(np.arange(60) % 5 == 0).astype(int))
    here = dataclasses.replace(environment, file=path)
    task = {"task": "file", "task_options": {"sha256": file_digest(path)}}
    run = tiny(**task, class_weights=weights, lr=0.2, epochs=25, select="last", batch_size=42)
    fit(run, here)
    model = from_pretrained(run_folder(run, here) / "best").eval()
    found = float(model(torch.zeros(1, 4, 1)).softmax(-1)[0, 1].detach())
    assert found == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize(("size", "select"), [(20, "best"), (20, "last"), (50, "best")])
def test_a_small_validation_set_is_said(tiny, environment, capsys, size, select):
    options = {"length": 8, "valid_size": size, "test_size": 20, "steps_per_epoch": 2}
    run = tiny(select=select, epochs=1, task_options=options)
    fit(run, dataclasses.replace(environment, progress=True))
    heard = f"Only {size} sequences choose the epoch" in capsys.readouterr().err
    assert heard == (size == 20 and select == "best")
