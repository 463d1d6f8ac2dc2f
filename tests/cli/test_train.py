import dataclasses
import json

import pytest

from anharmonic.cli.train import names, read
from anharmonic.data.files import file_digest
from anharmonic.data.registry import list_tasks, task_class
from anharmonic.nn.registry import list_models
from anharmonic.train.options import model_option_parameters, task_option_parameters
from anharmonic.train.run import Run, RunEnvironment

QUICK = ("--hidden-size", "4", "--epochs", "1", "--no-progress", "--threads", "1")
SHORT = ("--length", "8", "--steps-per-epoch", "2", "--valid-size", "8", "--test-size", "8")


def test_flags_of_run_model_and_task_make_the_run():
    words = "LEM Adding --length 200 --hidden-size 32 --dt 0.05 --lr 0.003 --epochs 5 --seed 3"
    run, environment, seeds = read(words.split())
    assert run == Run(
        "adding",
        "LEM",
        {"length": 200},
        {"hidden_size": 32, "dt": 0.05},
        seed=3,
        epochs=5,
        lr=0.003,
    )
    assert vars(environment) == vars(RunEnvironment()) and seeds == (3,)


def test_a_run_holds_only_what_differs_from_the_defaults():
    assert read(["lem", "digits"])[0] == Run("digits", "LEM")
    assert read(["lem", "digits", "--dt", "1.0"])[0] == Run("digits", "LEM")


def test_switches_and_lists():
    run, _, seeds = read(
        "unicornn digits --no-bias --num-layers 2 --dt 0.1 0.2 --seeds 1 2".split()
    )
    assert run.model_options["bias"] is False
    assert json.loads(run.to_json())["model_options"]["dt"] == [0.1, 0.2]
    assert seeds == (1, 2)


def test_flags_of_run_model_task_and_place_never_clash():
    fields = [f.name for kind in (Run, RunEnvironment) for f in dataclasses.fields(kind)]
    for task in list_tasks():
        for model in list_models(task_class(task).kind):
            options = [*model_option_parameters(model), *task_option_parameters(task)]
            known = [*fields, "seeds", *options]
            assert len(set(known)) == len(known), (model, task)


@pytest.mark.papers
def test_a_name_says_the_class(data):
    assert names("unicornn", "PSMNIST") == ("UnICORNN", "psmnist", None)
    assert names("lem", str(data)) == ("LEM", "file", data)


def test_a_file_is_known_by_its_content(data):
    run, environment, _ = read(["gru", str(data)])
    assert run.task == "file" and run.task_options == {"sha256": file_digest(data)}
    assert environment.file == data


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("lem",), "a model and a task first; got 'lem'; for example"),
        (("lem", "--epochs", "3"), "got 'lem --epochs 3'"),
        (("lam", "digits"), "model must be one of 'CoRNN'"),
        (("lem", "digitz"), "did you mean 'digits'"),
        (("lem", "file"), "task must be one of"),
        (("lem", "no.npz"), "must be an existing file; got 'no.npz'"),
        (("lem", "mine.xls"), "your own data must be a file that ends in .npz, .ts, .arff, .csv"),
        (("lem", "."), "got . (a folder)"),
        (("lem", "digits", "--dt", "-1"), "dt must be a finite number"),
        (("--run", "no.json"), "the file of a run's JSON; got 'no.json'"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(cli, words, text):
    code, _, err = cli("train", *words)
    assert code == 2 and text in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("lem", "digits", "--frequency", "3"), "--frequency"),
        (("lem", "digits", "--hiden-size", "3"), "Perhaps you meant: --hidden-size INT"),
        (("lem", "digits", "--lr", "abc"), "--lr: could not convert string to float: 'abc'"),
        (("unicornn", "digits", "--dt", "0.1", "x"), "'x'"),
        (("lem", "digits", "--epochs", "many"), "--epochs"),
        (("lem", "digits", "--epochs", "0"), "epochs must be an int >= 1"),
    ],
)
def test_wrong_flags_are_told_by_tyro(cli, words, text):
    code, out, err = cli("train", *words)
    assert code == 2 and out == "" and "Traceback" not in err
    assert text in " ".join(err.replace("│", " ").split())


def test_without_words_an_example_is_given(cli):
    code, out, err = cli("train")
    assert code == 2 and out == "" and "for example anharmonic train lem digits" in err


def test_general_help_is_short(cli):
    code, out, _ = cli("train", "--help")
    assert code == 0 and len(out.splitlines()) < 80
    assert out.startswith("usage: anharmonic train MODEL TASK")
    assert "--batch-size INT (default: 64)" in out and "--seeds" in out and "--threads" in out
    longer = cli("train", "--help-verbose")[1]
    assert "Sequences or graphs per optimiser step" in longer


def test_help_of_a_pair_shows_its_options_only(cli):
    code, out, _ = cli("train", "lem", "adding", "--help")
    assert code == 0
    assert "--multiscale" in out and "--steps-per-epoch" in out and "--damping" not in out


def test_train_says_metrics_folder_and_next_command(cli, tmp_path):
    code, out, err = cli("train", "lem", "adding", *QUICK, *SHORT)
    assert code == 0 and err == ""
    said = dict(line.split("  ", 1) for line in out.splitlines())
    assert {"test mse", "validation mse", "parameters", "seconds"} <= {k.strip() for k in said}
    folder = next(v.strip() for k, v in said.items() if k.strip() == "run folder")
    assert (tmp_path / folder / "result.json").is_file()
    assert "predict" not in out


def test_a_known_result_without_its_folder_names_no_folder(cli, tmp_path):
    words = ("train", "rnn", "adding", *QUICK, *SHORT)
    first = cli(*words)[1]
    (folder,) = (tmp_path / "runs").glob("adding-RNN-*")
    folder.rename(tmp_path / "elsewhere")
    code, again, _ = cli(*words)
    assert code == 0 and again.splitlines()[0].split() == first.splitlines()[0].split()
    assert "run folder" not in again


def test_several_seeds_end_with_mean_and_deviation(cli):
    code, out, _ = cli("train", "rnn", "adding", *QUICK, *SHORT, "--seeds", "0", "1", "2")
    assert code == 0
    assert out.count("run folder") == 3
    assert "test mse over seeds 0 1 2: " in out and "± " in out


def test_a_stored_run_runs_again(cli, tmp_path):
    out = cli("train", "rnn", "adding", *QUICK, *SHORT)[1]
    (stored,) = tmp_path.glob("runs/*/run.json")
    code, again, _ = cli("train", "--run", stored, "--out", "elsewhere", "--no-progress")
    assert code == 0
    assert again.splitlines()[0] == out.splitlines()[0]
    assert (tmp_path / "elsewhere" / stored.parent.name / "result.json").is_file()


def test_a_damaged_stored_run_is_refused(cli, tmp_path):
    (tmp_path / "run.json").write_text('{"task": "adding", "model": "LEM", "epoch": 3}')
    code, _, err = cli("train", "--run", "run.json")
    assert code == 2 and "unknown key 'epoch'" in err


def test_file_to_predictions_to_report(cli, data, tmp_path):
    code, out, _ = cli("train", "lem", data, *QUICK, "--batch-size", "8")
    assert code == 0 and "test accuracy" in out
    (folder,) = (tmp_path / "runs").glob("file-LEM-*")
    assert f"anharmonic predict runs/{folder.name} DATA.npz --output predictions.csv" in out
    code, out, _ = cli("predict", folder, data, "--output", "predictions.csv")
    assert code == 0 and out == "wrote predictions.csv: 40 sequences\n"
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert lines[0] == 'index,prediction,p_high,"p_low, <b>"' and len(lines) == 41
    assert cli("predict", folder, data, "--output", "-")[1].splitlines() == lines
