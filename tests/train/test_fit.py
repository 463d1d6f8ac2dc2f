import dataclasses
import random
import signal
import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler

from anharmonic.data import SequencesTask, save_npz, sequences_from
from anharmonic.data.readers import file_digest
from anharmonic.data.registry import make_task
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.store import from_pretrained
from anharmonic.ops.backend import current_precision
from anharmonic.train import DivergedError, Range, fit, search
from anharmonic.train.fit import _thinned
from anharmonic.train.folder import run_folder
from anharmonic.train.results import read_results
from anharmonic.train.scoring import evaluate


def only(environment):
    """The only result of an environment."""
    (result,) = read_results(environment.results_path)
    return result


def best(run, environment):
    return from_pretrained(run_folder(run, environment) / "best")


def test_result_says_what_was_done(tiny, whole):
    run, result = tiny(), only(whole)
    assert (result.run, result.hash, result.metric) == (run, run.hash, "mse")
    assert result.curve["epoch"] == [1, 2, 3, 4]
    valid = result.curve["valid"]
    assert result.valid == pytest.approx(min(valid), rel=1e-5)
    assert valid.index(min(valid)) + 1 == result.best_epoch
    assert (result.epochs_run, result.stopped) == (4, "finished")
    assert (result.device, result.threads, result.parameters) == ("cpu", 1, 293)
    assert result.seconds > 0
    assert result.trivial_loss == pytest.approx(1 / 6, rel=0.5)  # of few sums of two uniforms
    task = make_task(run.task, run.task_options)
    test = task.loaders(run.seed, run.batch_size).test
    assert evaluate(best(run, whole), test, task, torch.device("cpu")).metric == result.test


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_has_the_precision_of_the_run(tiny, environment, precision):
    found = []
    run = tiny(precision=precision)
    fit(run, environment, on_epoch_end=lambda *_: found.append(current_precision()))
    assert found == [precision] * 4
    assert current_precision() == "float32"


BETAS = {"betas": (0.8, 0.9), "weight_decay": 0.5}
ONE_CYCLE = partial(lr_scheduler.OneCycleLR, max_lr=0.05, total_steps=24)


@pytest.mark.parametrize(
    ("kind", "schedule", "fields"),
    [
        ("Adam", partial(lr_scheduler.StepLR, step_size=12), BETAS | {"lr_drop_epoch": 2}),
        (
            "AdamW",
            partial(lr_scheduler.CosineAnnealingLR, T_max=24),
            BETAS | {"schedule": "cosine", "ema_decay": 0.8},
        ),
        ("Adam", partial(ONE_CYCLE, pct_start=0.3), {"schedule": "one_cycle"}),
        (
            "AdamW",
            partial(ONE_CYCLE, pct_start=0.5),
            {"schedule": "one_cycle", "warmup": 0.5, "weight_decay": 0.5},
        ),
    ],
    ids=["drop", "cosine", "one cycle", "warmup"],
)
def test_own_loop_gives_the_same_weights(tiny, environment, kind, schedule, fields):
    """What fit does in 4 epochs of 6 steps, written out in plain PyTorch."""
    run = tiny(
        model_options={"hidden_size": 4}, select="last", clip_norm=0.3, lr=0.05,
        optimizer=kind.lower(), **fields,
    )  # fmt: skip
    result = fit(run, environment)
    assert result.best_epoch == 4
    assert result.valid == pytest.approx(result.curve["valid"][-1], rel=1e-5)
    torch.manual_seed(run.seed)
    model = SequenceModel("LSTM", 2, 1, hidden_size=4)
    options = {"lr": 0.05, "betas": run.betas, "weight_decay": run.weight_decay}
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
    rate, average, kept_share = schedule(optimizer), None, run.ema_decay or 0.0
    loaders = make_task(run.task, run.task_options).loaders(run.seed, run.batch_size)
    for epoch in range(run.epochs):
        norms = []
        for batch in loaders.train(epoch):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(batch.x), batch.y).backward()
            norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)))
            optimizer.step()
            rate.step()
            weights = {name: w.clone() for name, w in model.state_dict().items()}
            average = {n: w.lerp((average or weights)[n], kept_share) for n, w in weights.items()}
        assert result.curve["grad_norm"][epoch] == pytest.approx(np.median(norms), rel=1e-4)
        assert result.curve["grad_norm_max"][epoch] == pytest.approx(max(norms), rel=1e-4)
    assert max(norms) > 0.3  # before they are cut
    # Ours divides a sum and fuses the optimiser's operations: float32 rounding over 24 steps.
    kept = best(run, environment).state_dict()
    torch.testing.assert_close(kept, average, rtol=1e-4, atol=1e-6)


def test_patience(tiny, environment):
    result = fit(tiny(lr=1.0, epochs=50, patience=2), environment)
    assert result.stopped == "early"
    assert result.epochs_run == result.best_epoch + 2 < 50
    assert len(result.curve["valid"]) == result.epochs_run


def test_a_long_curve_is_thinned_but_keeps_the_best_and_the_last():
    epochs = list(range(1, 1502))
    curve = {"epoch": epochs, "valid": [float(e) for e in epochs]}
    thinned = _thinned(curve, best_epoch=778)
    assert len(thinned["epoch"]) <= 103
    assert thinned["epoch"][0] == 1 and thinned["epoch"][-1] == 1501 and 778 in thinned["epoch"]
    assert thinned["valid"] == [float(epoch) for epoch in thinned["epoch"]]
    short = {name: values[:100] for name, values in curve.items()}
    assert _thinned(short, 3)["epoch"] == epochs[:100]


def test_finished_run_is_returned_at_once(tiny, finished, capsys, hook_batches):
    hook_batches(lambda name, batch: pytest.fail("trained again"))
    result, loud = only(finished), dataclasses.replace(finished, progress=True)
    assert fit(tiny(), loud) == result
    said = capsys.readouterr().err
    assert "is finished already" in said and "To train it again" not in said
    # With another results file the folder still knows it, and the line is added there.
    elsewhere = dataclasses.replace(finished, results=finished.out / "other.jsonl")
    assert fit(tiny(), elsewhere) == result == only(elsewhere) == only(finished)
    # Without the folder the line knows it.
    folder, other = (run_folder(run, finished) for run in (tiny(), tiny(seed=9)))
    folder.rename(other)
    assert fit(tiny(), loud) == result
    assert "To train it again, remove its line" in capsys.readouterr().err
    (other / "run.json").unlink()
    for text, said in (
        ((other / "result.json").read_text(), r"must be the result of run .*move this folder"),
        ("[" * 100_000, "; got .*; "),
    ):
        (other / "result.json").write_text(text)
        with pytest.raises(ValueError, match=said):
            fit(tiny(seed=9), finished)


def test_random_states_threads_and_signals_are_left_alone(tiny, environment):
    torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
    expected = torch.rand(1), np.random.rand(), random.random()  # noqa: NPY002
    torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGTERM)
    fit(tiny(epochs=1), dataclasses.replace(environment, threads=2))
    assert (torch.rand(1), np.random.rand(), random.random()) == expected  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert signal.getsignal(signal.SIGTERM) == handler


@pytest.mark.parametrize(
    ("where", "fields", "place", "words"),
    [
        ("train 0 4", {"lr_drop_epoch": 1}, (4, 1, 0.01), "no gradient.*dt.*no epoch was finished"),
        ("train 2 4", {"lr_drop_epoch": 1}, (16, 3, 0.001), "state after epoch 2 is kept in"),
        ("valid 0", {"clip_norm": 3.0}, (6, 1, 0.01), "^validation mse must.*clip_norm=3"),
        ("test 0", {"epochs": 1}, (0, 1, 0.01), "test mse must be finite; got inf with the weig"),
    ],
)
def test_what_is_infinite_ends_a_training(
    tiny, environment, hook_batches, where, fields, place, words
):
    hook_batches(lambda name, batch: batch._replace(y=batch.y / 0) if name == where else None)
    with pytest.raises(DivergedError, match=words) as raised:
        fit(tiny(**fields), environment)
    error, said = raised.value, str(raised.value)
    assert (error.step, error.epoch, error.lr) == pytest.approx(place)
    path = run_folder(tiny(**fields), environment) / "resume.ckpt"
    assert path.exists() == (where in ("train 2 4", "test 0"))
    assert (f" is kept in {path}" in said) == (where == "train 2 4")
    assert where == "test 0" or f"got inf at step {place[0]}, epoch {place[1]}, with" in said


@pytest.mark.parametrize(
    ("fields", "changes", "error", "words"),
    [
        ({}, {"devices": 3}, ValueError, "batch_size must be a multiple of devices=3; got 4"),
        ({"model_options": {"dropout": "x"}}, {}, TypeError, "dropout must be"),
        ({"label_smoothing": 0.1}, {}, ValueError, "label_smoothing must be .*where no classes"),
        ({"class_weights": "balanced"}, {}, ValueError, "class_weights must be .*where no classes"),
    ],
)
def test_what_cannot_be_trained_is_found_before_any_work(
    tiny, environment, fields, changes, error, words
):
    with pytest.raises(error, match=words):
        fit(tiny(**fields), dataclasses.replace(environment, **changes))
    assert not environment.out.exists()


def test_a_system_that_cannot_train_is_said(tiny, environment, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(RuntimeError, match="training runs on Linux and macOS"):
        fit(tiny(), environment)
    with pytest.raises(RuntimeError, match="training runs on Linux and macOS"):
        search(tiny(), {"lr": Range(1e-3, 1e-2)}, 1, environment, "study.db")


def test_a_task_in_memory_trains_as_its_file(tiny, environment, tmp_path, outcome):
    x = np.random.default_rng(0).random((30, 6, 2))
    sequences = sequences_from(x, np.where(x.mean((1, 2)) > 0.5, "high", "low"))
    path = save_npz(tmp_path / "mine.npz", sequences)
    task, made = SequencesTask({"all": sequences}, split_seed=5), []
    for sha256, file, given in ((sequences.digest, None, task), (file_digest(path), path, None)):
        run = tiny(task="file", task_options={"sha256": sha256, "split_seed": 5}, epochs=1)
        result = fit(run, dataclasses.replace(environment, file=file), given)
        made.append((result.metric, result.test, outcome(run, environment)[0]))
    assert made[0] == made[1] and result.metric == "accuracy"
    other = SequencesTask({"all": sequences}, split_seed=6)
    with pytest.raises(ValueError, match=r"split_seed of task must be 5, as in the run; got .*6"):
        fit(dataclasses.replace(run, seed=1), environment, other)
    with pytest.raises(ValueError, match=r"task must be 'adding', as in the run; got 'file'"):
        fit(tiny(), environment, task)
    with pytest.raises(ValueError, match=r"file must be given for the task .file.; got None"):
        fit(dataclasses.replace(run, seed=1), environment)


def test_says_how_the_data_were_understood(tiny, environment, tmp_path, capsys):
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((20, 3)), y=np.arange(20.0) % 2)
    run = tiny(task="file", task_options={"sha256": file_digest(path)}, epochs=1)
    fit(run, dataclasses.replace(environment, file=path, progress=True))
    summary, split, hint, *_ = capsys.readouterr().err.splitlines()
    assert summary.startswith("mine.npz: 20 sequences") and split == "split at random"
    assert "--target class (target='class') makes them classes" in hint
