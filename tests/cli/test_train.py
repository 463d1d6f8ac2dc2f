import dataclasses
import re
import statistics

import numpy as np
import pytest

from anharmonic.cli.train import command_of, names, read, train
from anharmonic.data.readers import file_digest
from anharmonic.data.registry import list_tasks, task_class
from anharmonic.nn.registry import list_models
from anharmonic.train.options import model_option_parameters, task_option_parameters
from anharmonic.train.recipe import fill, streaming_options
from anharmonic.train.run import Run, RunEnvironment

QUICK = ("--hidden-size", "4", "--epochs", "1", "--no-progress", "--threads", "1")
SHORT = ("--length", "8", "--steps-per-epoch", "2", "--valid-size", "8", "--test-size", "8")


@pytest.mark.parametrize(
    ("words", "options", "more"),
    [
        ("", {}, {}),
        ("--lr auto --dt auto", {}, {}),
        ("--dt=1.0 --lr 0.001 --clip-norm None", {"dt": 1.0}, {"lr": 0.001, "clip_norm": None}),
        ("--hidden-size 32 --epochs 5 --seed 3", {"hidden_size": 32}, {"epochs": 5, "seed": 3}),
        ("--bias", {"bias": True}, {}),
        ("--no-bias --num-layers 2", {"bias": False, "num_layers": 2}, {}),
    ],
)
def test_flags_that_are_typed_make_the_run(words, options, more):
    asked = read(["LEM", "Adding", "--length", "200", *words.split()])
    assert (asked.task, asked.model) == ("adding", "LEM")
    assert asked.given == {"task_options": {"length": 200}, "model_options": options, **more}
    assert vars(asked.environment) == vars(RunEnvironment()) and asked.seeds == ()


def test_flags_take_lists():
    asked = read("unicornn digits --dt 0.1 0.2 --seeds 1 2".split())
    assert asked.given["model_options"] == {"dt": [0.1, 0.2]} and asked.seeds == (1, 2)


def test_the_default_of_an_option_that_a_task_recommends_can_be_typed(monkeypatch):
    monkeypatch.setattr(task_class("digits"), "recommended", {"split_seed": 7})
    command = command_of(Run("digits", "LEM"))
    assert "--split-seed 1234" in command
    asked = read(command.split()[2:])
    assert asked.given["task_options"] == {"split_seed": 1234}


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_checkpoint_lets_freed_memory_go(checkpoint, monkeypatch):
    called, module = [], "anharmonic.cli.train"
    monkeypatch.setattr(f"{module}.return_large_blocks", lambda: called.append("returned"))
    monkeypatch.setattr(f"{module}.fit", lambda *arguments: called.append("fitted") or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(Run("cora", "GraphCON", model_options={"checkpoint": checkpoint}), RunEnvironment())
    assert called == ["returned"] * checkpoint + ["fitted"]


def test_a_file_is_known_by_its_content_and_may_have_folds(data):
    asked = read(["gru", str(data), "--folds", "3", "--refit"])
    assert asked.folds == 3 and asked.refit and asked.given["task_options"]["folds"] == 3
    assert asked.task == "file" and asked.environment.file == data
    run = fill(asked.model, asked.task, asked.given, asked.environment).run
    assert run.task_options["sha256"] == file_digest(data)


def test_flags_of_run_model_task_and_place_never_clash():
    fields = [f.name for kind in (Run, RunEnvironment) for f in dataclasses.fields(kind)]
    for task in list_tasks():
        for model in list_models(task_class(task).kind):
            options = [*model_option_parameters(model), *task_option_parameters(task)]
            flags = [*fields, "seeds", "refit", *options, *({"folds"} - {*options})]
            assert len(set(flags)) == len(flags), (model, task)


def test_a_name_says_the_class(data, tmp_path, monkeypatch):
    assert names("unicornn", "DIGITS") == ("UnICORNN", "digits", None)
    assert names("lem", str(data)) == ("LEM", "file", data)
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r"For the folder say \./digits"):
        assert names("lem", "digits")[1:] == ("digits", None)


def test_a_stored_run_runs_again_and_is_known_without_its_folder(cli, done, tmp_path):
    words = ("train", "rnn", "adding", *QUICK, *SHORT)
    code, out, err = cli(*words)
    assert code == 0 and err == ""
    said = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in out.splitlines()}
    assert {"test mse", "validation mse", "parameters", "seconds"} <= set(said)
    assert (tmp_path / said["run folder"] / "result.json").is_file() and "predict" not in out
    first = out.splitlines()[0]
    (stored,) = tmp_path.glob("runs/*/run.json")
    again = done("train", "--run", stored, "--out", "elsewhere", "--no-progress")
    assert again.splitlines()[0] == first
    assert (tmp_path / "elsewhere" / stored.parent.name / "result.json").is_file()
    stored.parent.rename(tmp_path / "moved")
    again = done(*words)
    assert again.splitlines()[0].split() == first.split() and "run folder" not in again


def test_several_seeds_end_with_mean_and_deviation(done):
    out = done("train", "rnn", "adding", *QUICK, *SHORT, "--seeds", "0", "1", "2")
    assert out.count("run folder") == 3
    values = [float(value) for value in re.findall(r"test mse +([0-9.e-]+)", out)[:3]]
    last = out.splitlines()[-1]
    mean = pytest.approx(statistics.fmean(values), rel=1e-4)
    assert float(last.split()[2]) == mean and "3 runs" in last


@pytest.mark.parametrize(("lr", "steps", "said"), [("1e-9", "2", True), ("0.05", "60", False)])
def test_a_model_that_did_not_learn_is_called_so(done, lr, steps, said):
    words = "adding --length 2 --valid-size 8 --test-size 8 --epochs 3 --hidden-size 8 --threads 1"
    flags = ("--lr", lr, "--steps-per-epoch", steps, "--no-progress")
    out = done("train", "lem", *words.split(), *flags)
    assert ("did NOT learn its training data" in out) == said


def test_a_model_that_streams_is_asked_for_and_others_say_so(cli, train_quickly, tmp_path):
    """Series of which one is far larger than others, with uneven times: all that a stream lacks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 12, 2)) * 10.0 ** rng.uniform(-2, 2, (40, 1, 1))
    y = np.where(x.mean((1, 2)) > 0, "high", "low")
    elapsed = rng.uniform(0.5, 1.5, (40, 12))
    np.savez(tmp_path / "mine.npz", x=x.astype("f4"), y=y, elapsed=elapsed.astype("f4"))
    for flags, said in ((["--streaming"], []), ([], ["train with --streaming"])):
        folder, out = train_quickly("lem", "mine.npz", *flags)
        lines = [line for line in out.splitlines() if line.startswith("streaming")]
        assert [line[-len("train with --streaming") :] for line in lines] == said
        assert all("both directions" in line for line in lines)
        code, out, err = cli("export", folder, "--c", "model")
        assert (code, said == [] or said[0] in err) == (2 if said else 0, True), err
    with pytest.raises(ValueError, match=r"--streaming .*model of sequences"):
        streaming_options("GraphCON", "cora", {})
