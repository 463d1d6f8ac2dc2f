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
from anharmonic.train import DivergedError, RunEnvironment, fit
from anharmonic.train.evaluate import evaluate
from anharmonic.train.folder import run_folder
from anharmonic.train.results import read_results


def weights(run, environment):
    return (run_folder(run, environment) / "best" / "model.safetensors").read_bytes()


def bare(result):
    return dataclasses.replace(result, seconds=0.0, memory_mb=0.0, started="", commit=None)


def test_result_says_what_was_done(tiny, environment):
    run = tiny()
    result = fit(run, environment)
    assert (result.run, result.hash, result.metric) == (run, run.hash, "mse")
    assert result.curve["epoch"] == [1, 2, 3, 4]
    assert result.valid == min(result.curve["valid"]) or result.valid == pytest.approx(
        min(result.curve["valid"]), rel=1e-5
    )
    assert result.curve["valid"].index(min(result.curve["valid"])) + 1 == result.best_epoch
    assert (result.epochs_run, result.stopped, result.device, result.threads) == (
        4,
        "finished",
        "cpu",
        1,
    )
    assert result.parameters == 293
    assert result.seconds > 0
    assert read_results(environment.results_path) == [result]
    folder = run_folder(run, environment)
    assert sorted(os.listdir(folder)) == [
        "best", "lock", "report.json", "result.json", "run.json", "task.json",
    ]  # fmt: skip
    model = from_pretrained(folder / "best")
    test = make_task(run.task, run.task_options).loaders(run.seed, run.batch_size).test
    task = make_task(run.task, run.task_options)
    assert evaluate(model, test, task, torch.device("cpu")).metric == result.test


def test_same_run_same_bits_other_seed_other_bits(tiny, environment, tmp_path):
    again = dataclasses.replace(environment, out=tmp_path / "again")
    fit(tiny(), environment)
    fit(tiny(), again)
    fit(tiny(seed=4), again)
    assert weights(tiny(), environment) == weights(tiny(), again)
    assert weights(tiny(), environment) != weights(tiny(seed=4), again)


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
    task = make_task(run.task, run.task_options)
    valid = task.loaders(run.seed, run.batch_size).valid
    model = from_pretrained(run_folder(run, environment) / "best")
    assert evaluate(model, valid, task, torch.device("cpu")).metric == result.valid


def test_patience(tiny, environment):
    result = fit(tiny(lr=1.0, epochs=50, patience=2), environment)
    assert result.stopped == "early"
    assert result.epochs_run == result.best_epoch + 2 < 50
    assert len(result.curve["valid"]) == result.epochs_run


def test_class_task_and_per_step_task(environment, tiny, tmp_path):
    digits = tiny(task="digits", task_options={}, epochs=1, batch_size=64)
    result = fit(digits, environment)
    assert result.metric == "accuracy" and result.higher_is_better and 0 <= result.test <= 100
    waves = tmp_path / "waves.npz"
    x = np.random.default_rng(0).random((20, 6, 2))
    np.savez(waves, x=x, y=x.cumsum(1))
    environment = dataclasses.replace(environment, file=waves)
    run = tiny(task="file", task_options={"sha256": file_digest(waves)}, epochs=1)
    assert fit(run, environment).test > 0
    folder = run_folder(dataclasses.replace(run, readout="mean"), environment)
    with pytest.raises(ValueError, match=r"readout on task 'file' must be .*; got 'mean'"):
        fit(dataclasses.replace(run, readout="mean"), environment)
    assert not folder.exists()


def test_readout(tiny, environment):
    last, mean = fit(tiny(epochs=1), environment), fit(tiny(epochs=1, readout="mean"), environment)
    assert last.hash != mean.hash and last.test != mean.test
    model = from_pretrained(run_folder(mean.run, environment) / "best")
    assert model.readout == "mean"


def test_finished_run_is_returned_at_once(tiny, environment, capsys, hook_batches):
    result = fit(tiny(), environment)
    hook_batches(lambda name, batch: pytest.fail("trained again"))
    loud = dataclasses.replace(environment, progress=True)
    assert fit(tiny(), loud) == result
    assert "is finished already" in capsys.readouterr().err
    # With another results file the folder still knows it, and the line is added there.
    elsewhere = dataclasses.replace(environment, results=environment.out / "other.jsonl")
    assert fit(tiny(), elsewhere) == result
    assert read_results(elsewhere.results_path) == [result]
    assert read_results(environment.results_path) == [result]


def test_finished_run_whose_folder_is_gone(tiny, environment, capsys):
    result = fit(tiny(), environment)
    loud = dataclasses.replace(environment, progress=True)
    assert fit(tiny(), loud) == result
    assert "To train it again" not in capsys.readouterr().err
    shutil.rmtree(run_folder(tiny(), environment))
    assert fit(tiny(), loud) == result
    said = capsys.readouterr().err
    assert (
        f"Its trained model is not in {run_folder(tiny(), environment)}. To train it again, "
        in said
    )
    assert "remove its line from the results file, or choose another --out and --results" in said


def test_a_killed_processs_files_are_removed(tiny, environment):
    folder = run_folder(tiny(), environment)
    folder.mkdir(parents=True)
    (folder / "resume.ckpt.1234.tmp").write_bytes(b"half")
    fit(tiny(), environment)
    assert "resume.ckpt.1234.tmp" not in os.listdir(folder)


def test_result_of_another_run_in_the_folder(tiny, environment):
    fit(tiny(), environment)
    mine, other = run_folder(tiny(), environment), run_folder(tiny(seed=9), environment)
    other.mkdir()
    (other / "result.json").write_bytes((mine / "result.json").read_bytes())
    with pytest.raises(ValueError, match=r"must be the result of run .*move this folder"):
        fit(tiny(seed=9), environment)


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
def test_interrupted_by_an_error(tiny, environment, tmp_path, hook_batches, where):
    whole = dataclasses.replace(environment, out=tmp_path / "whole")
    expected = fit(tiny(), whole)
    seen = []

    def fail_once(name, batch):
        if not name.startswith("train"):
            random.random(), torch.rand(1)  # what is drawn between epochs must not matter
        if name == where and where not in seen:
            seen.append(name)
            raise OSError("the network went away")

    hook_batches(fail_once)
    with pytest.raises(OSError, match="went away"):
        fit(tiny(), environment)
    assert bare(fit(tiny(), environment)) == bare(expected)
    assert weights(tiny(), environment) == weights(tiny(), whole)


def test_early_stop_is_remembered(tiny, environment, hook_batches):
    run = tiny(lr=1.0, epochs=50, patience=2)
    seen = []

    def fail_once(name, batch):
        seen.append(name)
        if seen.count("test 0") == 1 and name == "test 0":
            raise OSError("the network went away")

    hook_batches(fail_once)
    with pytest.raises(OSError, match="went away"):
        fit(run, environment)
    # (The baseline looks at epoch 0 again.)
    trained = len([name for name in seen if name.startswith("train 1")])
    assert fit(run, environment).stopped == "early"
    assert len([name for name in seen if name.startswith("train 1")]) == trained


@pytest.fixture
def heeds_ctrl_c():
    """In the background of a shell the signal is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c(tiny, environment, capsys, hook_batches):
    run = tiny()

    def press(name, batch):
        if name == "train 2 3":
            signal.raise_signal(signal.SIGINT)

    hook_batches(press)
    handler = signal.getsignal(signal.SIGINT)
    text = r"Interrupted after 2 of 4 epochs; the same command continues"
    with pytest.raises(KeyboardInterrupt, match=text):
        fit(run, dataclasses.replace(environment, progress=True))
    assert signal.getsignal(signal.SIGINT) == handler
    error = capsys.readouterr().err
    assert error.count("the same command continues") == 1
    assert "graceful shutdown" not in error
    hook_batches(lambda name, batch: None)
    assert fit(run, environment).epochs_run == 4


def test_sigterm_ends_soon(tiny, environment, hook_batches, capsys):
    seen = []

    def terminate(name, batch):
        seen.append(name)
        if name == "train 1 1":
            signal.raise_signal(signal.SIGTERM)

    hook_batches(terminate)
    with pytest.raises(SystemExit) as end:
        fit(tiny(), dataclasses.replace(environment, progress=True))
    assert end.value.code == 143
    assert seen[-1] in ("train 1 1", "train 1 2")
    error = capsys.readouterr().err
    said = "Interrupted after 1 of 4 epochs; the same command continues"
    assert error.count(said) == 1 and said in end.value.__notes__[0]
    hook_batches(lambda name, batch: None)
    assert fit(tiny(), environment).epochs_run == 4


def test_damaged_resume_file(tiny, environment, hook_batches):
    path = run_folder(tiny(), environment) / "resume.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a check")
    with pytest.raises(ValueError, match=r"resume\.ckpt.*delete this file to start the run again"):
        fit(tiny(), environment)
    path.unlink()
    fit(tiny(), environment)


def test_folder_of_another_run(tiny, environment):
    path = run_folder(tiny(), environment) / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(tiny(seed=8).to_json())
    with pytest.raises(ValueError, match=r"run\.json must hold this run"):
        fit(tiny(), environment)


def test_full_disk(tiny, environment, monkeypatch, tmp_path):
    whole = dataclasses.replace(environment, out=tmp_path / "whole")
    fit(tiny(), whole)
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
    assert weights(tiny(), environment) == weights(tiny(), whole)


def test_resuming_elsewhere_warns(tiny, environment, hook_batches):
    def fail(name, batch):
        if name == "train 1 0":
            raise OSError("the network went away")

    hook_batches(fail)
    with pytest.raises(OSError, match="went away"):
        fit(tiny(), dataclasses.replace(environment, threads=2))
    hook_batches(lambda name, batch: None)
    with pytest.warns(UserWarning, match="not equal an uninterrupted one.*threads was 2, is 1"):
        fit(tiny(), environment)


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
    with pytest.raises(DivergedError, match=r"validation mse must stay finite.*step 6, epoch 1"):
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


def test_commit_and_versions_of_the_first_start(tiny, environment, monkeypatch, hook_batches):
    def fail(name, batch):
        if name == "train 1 0":
            raise OSError("the network went away")

    monkeypatch.setattr(machine, "commit", lambda: "first")
    hook_batches(fail)
    with pytest.raises(OSError, match="went away"):
        fit(tiny(), environment)
    hook_batches(lambda name, batch: None)
    monkeypatch.setattr(machine, "commit", lambda: "second")
    assert fit(tiny(), environment).commit == "first"


def test_no_gpu(tiny, environment, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match='"cuda" needs a GPU'):
        fit(tiny(), dataclasses.replace(environment, device="cuda"))


@pytest.mark.slow
def test_two_processes_train_like_one(tmp_path):
    """Two CPU processes; a smaller last batch in every epoch."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
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
    )
    lines = {}
    for devices in (1, 2):
        command = [sys.executable, str(script), str(tmp_path / str(devices)), str(devices)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        lines[devices] = read_results(RunEnvironment(out=tmp_path / str(devices)).results_path)
        assert len(lines[devices]) == 1
        # Every process gets the same result.
        assert len(set(done.stdout.splitlines())) == 1
        assert len(done.stdout.splitlines()) == devices
    (one,), (two,) = lines[1], lines[2]
    assert (one.hash, one.devices, two.devices) == (two.hash, 1, 2)
    # The same gradients up to float32 rounding.
    for name in ("train_loss", "valid"):
        assert two.curve[name] == pytest.approx(one.curve[name], rel=1e-4)


def test_file_task(tiny, environment, tmp_path):
    path = tmp_path / "mine.npz"
    x = np.random.default_rng(0).random((30, 6, 2))
    np.savez(path, x=x, y=np.where(x.mean((1, 2)) > 0.5, "high", "low"))
    run = tiny(task="file", task_options={"sha256": file_digest(path)}, epochs=1)
    assert fit(run, dataclasses.replace(environment, file=path)).metric == "accuracy"
    with pytest.raises(
        ValueError, match=r"file must be given for the task .file.; got None; pass the path"
    ):
        fit(dataclasses.replace(run, seed=1), environment)


def test_says_how_the_data_were_understood(tiny, environment, tmp_path, capsys):
    fit(tiny(epochs=1), environment)
    assert capsys.readouterr().err == ""
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


@pytest.fixture
def in_memory():
    rng = np.random.default_rng(0)
    x = rng.random((30, 6, 2))
    return sequences_from(x, np.where(x.mean((1, 2)) > 0.5, "high", "low"))


def test_a_task_in_memory_trains_as_its_file(tiny, environment, in_memory, tmp_path):
    path = save_npz(tmp_path / "mine.npz", in_memory)
    options = {"split_seed": 5}
    known = {"here": in_memory.digest, "file": file_digest(path)}
    tasks = {"here": SequencesTask({"all": in_memory}, **options), "file": None}
    made = {}
    for kind, sha256 in known.items():
        run = tiny(task="file", task_options={"sha256": sha256, **options}, epochs=1)
        there = dataclasses.replace(environment, file=path if kind == "file" else None)
        made[kind] = fit(run, there, tasks[kind]).test, weights(run, there)
    assert made["here"] == made["file"]
    with pytest.raises(ValueError, match=r"task must be 'adding', as in the run; got 'file'"):
        fit(tiny(), environment, tasks["here"])


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
