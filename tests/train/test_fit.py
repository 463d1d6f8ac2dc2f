import dataclasses
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import torch

from anharmonic.data import SequencesTask, save_npz, sequences_from
from anharmonic.data.readers import file_digest
from anharmonic.data.registry import make_task
from anharmonic.diagnostics import machine
from anharmonic.nn.store import from_pretrained
from anharmonic.train import DivergedError, Range, RunEnvironment, fit, search
from anharmonic.train.evaluate import evaluate
from anharmonic.train.folder import run_folder
from anharmonic.train.results import read_results


def bare(result):
    return dataclasses.replace(result, seconds=0.0, memory_mb=0.0, started="", commit=None)


def only(environment):
    """The only result of an environment."""
    (result,) = read_results(environment.results_path)
    return result


def metric_of(run, environment, part):
    """The metric that the kept weights reach on a part of the data."""
    task = make_task(run.task, run.task_options)
    batches = getattr(task.loaders(run.seed, run.batch_size), part)
    model = from_pretrained(run_folder(run, environment) / "best")
    return evaluate(model, batches, task, torch.device("cpu")).metric


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
    assert sorted(os.listdir(run_folder(run, whole))) == [
        "best", "lock", "report.json", "result.json", "run.json", "task.json",
    ]  # fmt: skip
    assert metric_of(run, whole, "test") == result.test


def test_same_run_same_bits_other_seed_other_bits(tiny, whole, environment, weights_of):
    for seed in (3, 4):
        run = tiny(seed=seed)
        fit(run, environment)
        assert (weights_of(run, environment) == weights_of(tiny(), whole)) == (seed == 3)


def test_own_loop_gives_the_same_weights(tiny, environment):
    """What fit does, written out in plain PyTorch."""
    run = tiny(
        model_options={"hidden_size": 4}, select="last", clip_norm=0.3, lr_drop_epoch=2, lr=0.05
    )
    fit(run, environment)
    from anharmonic.nn.heads import SequenceModel

    torch.manual_seed(run.seed)
    model = SequenceModel("LSTM", 2, 1, hidden_size=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=run.lr)
    loaders = make_task(run.task, run.task_options).loaders(run.seed, run.batch_size)
    for epoch in range(run.epochs):
        for group in optimizer.param_groups:
            group["lr"] = run.lr if epoch < 2 else run.lr / 10
        for batch in loaders.train(epoch):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(batch.x), batch.y).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            optimizer.step()
    trained = from_pretrained(run_folder(run, environment) / "best").state_dict()
    for name, tensor in model.state_dict().items():
        # Ours divides a sum and fuses the optimiser's operations: float32 rounding over 24 steps.
        torch.testing.assert_close(trained[name], tensor, rtol=1e-4, atol=1e-6)


def test_select_last(tiny, environment):
    run = tiny(select="last", lr=0.3, epochs=6)
    result = fit(run, environment)
    assert result.best_epoch == 6
    assert result.valid == pytest.approx(result.curve["valid"][-1], rel=1e-5)
    assert metric_of(run, environment, "valid") == result.valid


def test_patience(tiny, environment):
    result = fit(tiny(lr=1.0, epochs=50, patience=2), environment)
    assert result.stopped == "early"
    assert result.epochs_run == result.best_epoch + 2 < 50
    assert len(result.curve["valid"]) == result.epochs_run


def test_finished_run_is_returned_at_once(tiny, finished, capsys, hook_batches):
    hook_batches(lambda name, batch: pytest.fail("trained again"))
    result = only(finished)
    loud = dataclasses.replace(finished, progress=True)
    assert fit(tiny(), loud) == result
    said = capsys.readouterr().err
    assert "is finished already" in said and "To train it again" not in said
    # With another results file the folder still knows it, and the line is added there.
    elsewhere = dataclasses.replace(finished, results=finished.out / "other.jsonl")
    assert fit(tiny(), elsewhere) == result == only(elsewhere) == only(finished)
    # Without the folder the line knows it.
    shutil.rmtree(run_folder(tiny(), finished))
    assert fit(tiny(), loud) == result
    assert "To train it again, remove its line" in capsys.readouterr().err


def test_result_of_another_run_in_the_folder(tiny, finished):
    mine, other = run_folder(tiny(), finished), run_folder(tiny(seed=9), finished)
    other.mkdir()
    (other / "result.json").write_bytes((mine / "result.json").read_bytes())
    with pytest.raises(ValueError, match=r"must be the result of run .*move this folder"):
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


@pytest.mark.parametrize("where", ["train 0 3", "train 2 0", "valid 2", "test 1"])
def test_interrupted_by_an_error(tiny, environment, whole, hook_batches, weights_of, where):
    run, seen = tiny(), []

    def fail_once(name, batch):
        if not name.startswith("train"):
            random.random(), torch.rand(1)  # what is drawn between epochs must not matter
        if name == where and where not in seen:
            seen.append(name)
            raise OSError("the network went away")

    hook_batches(fail_once)
    with pytest.raises(OSError, match="went away"):
        fit(run, environment)
    folder = run_folder(run, environment)
    # What a process left that was killed while it wrote.
    (folder / "resume.ckpt.1234.tmp").write_bytes(b"half")
    (folder / ".best-1").mkdir()
    assert bare(fit(run, environment)) == bare(only(whole))
    assert weights_of(run, environment) == weights_of(run, whole)
    assert sorted(os.listdir(folder)) == sorted(os.listdir(run_folder(run, whole)))


def test_early_stop_is_remembered(tiny, environment, interrupted, hook_batches):
    run = tiny(lr=1.0, epochs=50, patience=2)
    interrupted(run, environment, "test 0")

    def fail(name, batch):
        # (The baseline looks at epoch 0 again.)
        assert not name.startswith("train") or name.startswith("train 0")

    hook_batches(fail)
    assert fit(run, environment).stopped == "early"


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_ends_a_training_that_goes_on_later(
    tiny, environment, whole, capsys, hook_batches, number, error
):
    seen = []

    def send(name, batch):
        seen.append(name)
        if name == "train 2 3":
            signal.raise_signal(number)

    hook_batches(send)
    handler = signal.getsignal(number)
    with pytest.raises(error) as end:
        fit(tiny(), dataclasses.replace(environment, progress=True))
    assert seen[-1] in ("train 2 3", "train 2 4")
    assert signal.getsignal(number) == handler
    said = "Interrupted after 2 of 4 epochs; the same command continues"
    assert capsys.readouterr().err.count(said) == 1
    assert said in "".join([str(end.value), *getattr(end.value, "__notes__", ())])
    assert error is KeyboardInterrupt or end.value.code == 143
    hook_batches(lambda name, batch: None)
    assert bare(fit(tiny(), environment)) == bare(only(whole))


def test_damaged_resume_file(tiny, environment):
    path = run_folder(tiny(), environment) / "resume.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a check")
    with pytest.raises(ValueError, match=r"resume\.ckpt.*delete this file to start the run again"):
        fit(tiny(), environment)


def test_full_disk(tiny, environment, monkeypatch, whole, weights_of):
    folder = run_folder(tiny(), environment)
    write, big = os.write, []

    def full_at_the_third_checkpoint(descriptor, data):
        if len(data) > 5000:
            big.append(len(data))
            if len(big) >= 3:
                write(descriptor, data[:1000])
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full_at_the_third_checkpoint)
    with pytest.raises(OSError, match=r"resume.ckpt must be writable; got No space left") as error:
        fit(tiny(), environment)
    assert error.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert sorted(os.listdir(folder)) == ["lock", "resume.ckpt", "run.json", "task.json"]
    checkpoint = torch.load(folder / "resume.ckpt", weights_only=True)
    assert checkpoint["curve"]["epoch"] == [1, 2]
    fit(tiny(), environment)
    assert weights_of(tiny(), environment) == weights_of(tiny(), whole)


def test_resuming_elsewhere_warns_and_keeps_the_commit_of_the_first_start(
    tiny, environment, monkeypatch, interrupted
):
    monkeypatch.setattr(machine, "commit", lambda: "first")
    interrupted(tiny(), dataclasses.replace(environment, threads=2), "train 1 0")
    monkeypatch.setattr(machine, "commit", lambda: "second")
    with pytest.warns(UserWarning, match="not equal an uninterrupted one.*threads was 2, is 1"):
        assert fit(tiny(), environment).commit == "first"


@pytest.mark.parametrize("epoch", [0, 2])
def test_diverged_loss(tiny, environment, hook_batches, epoch):
    hook_batches(
        lambda name, batch: batch._replace(y=batch.y / 0) if name == f"train {epoch} 4" else None
    )
    with pytest.raises(DivergedError) as raised:
        fit(tiny(lr_drop_epoch=1), environment)
    error = raised.value
    assert (error.step, error.epoch) == (epoch * 6 + 4, epoch + 1)
    assert error.lr == pytest.approx(0.01 if epoch == 0 else 0.001)
    text = str(error)
    assert "training loss must stay finite; got inf at step" in text
    assert "no gradient clipping" in text and "dt" in text
    path = run_folder(tiny(lr_drop_epoch=1), environment) / "resume.ckpt"
    assert path.exists() == (epoch > 0)
    kept = f"the state after epoch {epoch} is kept in {path}" if epoch else "no epoch was finished"
    assert kept in text


def test_diverged_validation_and_test(tiny, environment, hook_batches):
    hook_batches(lambda name, batch: batch._replace(y=batch.y / 0) if name == "valid 0" else None)
    with pytest.raises(DivergedError, match=r"validation .* finite.*step 6, epoch 1.*clip_norm=3"):
        fit(tiny(clip_norm=3.0), environment)
    hook_batches(lambda name, batch: batch._replace(y=batch.y / 0) if name == "test 0" else None)
    with pytest.raises(DivergedError, match="test mse must be finite; got inf with the weights"):
        fit(tiny(), environment)


def test_bad_places_and_options_are_found_before_any_work(tiny, environment):
    with pytest.raises(ValueError, match=r"batch_size must be a multiple of devices=3; got 4"):
        fit(tiny(), dataclasses.replace(environment, devices=3))
    with pytest.raises(TypeError, match=r"run must be a Run; got .*; make one with Run\("):
        fit({"task": "adding"}, environment)
    with pytest.raises(
        TypeError, match=r"environment must be a RunEnvironment; got 'runs'; make one with"
    ):
        fit(tiny(), "runs")
    with pytest.raises(ValueError, match=r"dt must be .*-1"):
        fit(tiny(model="LEM", model_options={"dt": -1}), environment)
    with pytest.raises(TypeError, match="dropout must be"):
        fit(tiny(model_options={"dropout": "x"}), environment)
    assert not environment.out.exists()


def test_windows(tiny, environment, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(RuntimeError, match="training runs on Linux and macOS"):
        fit(tiny(), environment)
    with pytest.raises(RuntimeError, match="training runs on Linux and macOS"):
        search(tiny(), {"lr": Range(1e-3, 1e-2)}, 1, environment, "study.db")


def test_warnings_of_the_model_come_once(tiny, environment, monkeypatch):
    reset = torch.nn.LSTM.reset_parameters

    def warn(self):
        warnings.warn("take care", stacklevel=2)
        reset(self)

    monkeypatch.setattr(torch.nn.LSTM, "reset_parameters", warn)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit(tiny(model_options={"hidden_size": 4}, epochs=1), environment)
    assert [str(warning.message) for warning in seen].count("take care") == 1


@pytest.mark.slow
def test_two_processes_train_like_one(tmp_path):
    """Two CPU processes; a smaller last batch in every epoch."""
    script = textwrap.dedent(
        """
        import sys
        from anharmonic.train import Run, RunEnvironment, fit

        run = Run("digits", "LSTM", model_options={"hidden_size": 4}, epochs=2, batch_size=64)
        out, devices = sys.argv[1], int(sys.argv[2])
        environment = RunEnvironment(out=out, devices=devices, threads=1, progress=False)
        result = fit(run, environment)
        # In one write: both processes have this output.
        sys.stdout.write(f"{result.devices} {result.test} {result.curve['train_loss']}\\n")
        """
    )
    (tmp_path / "script.py").write_text(script)
    lines = {}
    for devices in (1, 2):
        script, out = tmp_path / "script.py", tmp_path / str(devices)
        command = [sys.executable, str(script), str(out), str(devices)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        lines[devices] = read_results(RunEnvironment(out=out).results_path)
        assert len(lines[devices]) == 1
        # Every process gets the same result.
        assert len(set(done.stdout.splitlines())) == 1
        assert len(done.stdout.splitlines()) == devices
    (one,), (two,) = lines[1], lines[2]
    assert (one.hash, one.devices, two.devices) == (two.hash, 1, 2)
    # The same gradients up to float32 rounding.
    for name in ("train_loss", "valid"):
        assert two.curve[name] == pytest.approx(one.curve[name], rel=1e-4)


@pytest.fixture
def in_memory():
    rng = np.random.default_rng(0)
    x = rng.random((30, 6, 2))
    return sequences_from(x, np.where(x.mean((1, 2)) > 0.5, "high", "low"))


def test_a_task_in_memory_trains_as_its_file(tiny, environment, in_memory, tmp_path, weights_of):
    path = save_npz(tmp_path / "mine.npz", in_memory)
    options = {"split_seed": 5}
    known = {"here": in_memory.digest, "file": file_digest(path)}
    tasks = {"here": SequencesTask({"all": in_memory}, **options), "file": None}
    made = {}
    for kind, sha256 in known.items():
        run = tiny(task="file", task_options={"sha256": sha256, **options}, epochs=1)
        there = dataclasses.replace(environment, file=path if kind == "file" else None)
        result = fit(run, there, tasks[kind])
        made[kind] = result.metric, result.test, weights_of(run, there)
    assert made["here"] == made["file"] and result.metric == "accuracy"
    with pytest.raises(ValueError, match=r"task must be 'adding', as in the run; got 'file'"):
        fit(tiny(), environment, tasks["here"])
    with pytest.raises(ValueError, match=r"file must be given for the task .file.; got None"):
        fit(dataclasses.replace(run, seed=1), environment)


def test_says_how_the_data_were_understood(tiny, environment, tmp_path, capsys):
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((20, 3)), y=np.arange(20.0) % 2)
    run = tiny(task="file", task_options={"sha256": file_digest(path)}, epochs=1)
    fit(run, dataclasses.replace(environment, file=path, progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "mine.npz: 20 sequences (14 train, 3 valid, 3 test), 3 steps, 1 channel, "
        "1 value per sequence"
    )
    assert lines[1] == "split at random" and "target=class makes them classes" in lines[2]


def test_class_weights_of_a_task_count(tiny, environment, in_memory, tmp_path):
    run = tiny(task="file", task_options={"sha256": in_memory.digest}, epochs=1)
    made = {}
    for given in (None, (1, 1), (1, 0)):
        here = dataclasses.replace(environment, out=tmp_path / str(given))
        fit(run, here, SequencesTask({"all": in_memory}, class_weights=given))
        best = from_pretrained(run_folder(run, here) / "best")
        made[given] = best.linear.bias.detach()
    assert torch.allclose(made[None], made[(1, 1)], rtol=1e-5)
    assert not torch.allclose(made[None], made[(1, 0)], rtol=1e-2)
