import itertools
import json

import pytest

from anharmonic.cli.options import field_options
from anharmonic.cli.train import model_options, names, read, task_options
from anharmonic.data.files import file_digest
from anharmonic.data.registry import list_tasks
from anharmonic.nn.registry import list_models
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
    assert environment == RunEnvironment() and seeds == ()


def test_a_run_holds_only_the_options_typed():
    assert read(["lem", "digits"])[0] == Run("digits", "LEM")
    assert read(["lem", "digits", "--dt", "1.0"])[0].model_options == {
        "dt": 1.0,
        "hidden_size": 128,
    }


def test_switches_and_lists():
    run, _, seeds = read(
        "unicornn digits --no-bias --num-layers 2 --dt 0.1 0.2 --seeds 1 2".split()
    )
    assert run.model_options["bias"] is False
    assert json.loads(run.to_json())["model_options"]["dt"] == [0.1, 0.2]
    assert seeds == (1, 2)


def test_flags_of_run_model_task_and_place_never_clash():
    general = [o.name for cls in (Run, RunEnvironment) for o in field_options(cls)] + ["seeds"]
    for model, task in itertools.product(list_models(), list_tasks()):
        found = [o.name for o in model_options(model) + task_options(task)]
        assert len(set(found)) == len(found)
        assert not set(found) & set(general), (model, task)


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
        (("lem",), "anharmonic train takes a model and a task first; got lem"),
        (("lem", "--epochs", "3"), "anharmonic train takes a model and a task first"),
        (("lam", "digits"), "model must be one of 'CoRNN'"),
        (("lem", "digitz"), "did you mean 'digits'"),
        (("lem", "file"), "task must be one of"),
        (("lem", "no.npz"), "no.npz must be an existing .npz or .ts file"),
        (("lem", "mine.csv"), "your own data must be a .npz or .ts file; got mine.csv; save them"),
        (("lem", "."), "your own data must be a .npz or .ts file; got . (a folder)"),
        (("lem", "digits", "--seeds", "0", "0"), "--seeds must differ; got 0 more than once"),
        (("lem", "digits", "--frequency", "3"), "unknown option --frequency; "),
        (
            ("lem", "digits", "--hiden-size", "3"),
            "unknown option --hiden-size; did you mean --hidden-size?; see anharmonic train lem",
        ),
        (("lem", "digits", "--lr", "abc"), "--lr must be a number; got 'abc'; see anharmonic"),
        (("unicornn", "digits", "--dt", "0.1", "x"), "--dt must be a number; got 'x'; see"),
        (("lem", "digits", "--epochs", "0"), "epochs must be an int >= 1"),
        (("lem", "digits", "--epochs", "many"), "--epochs"),
        (("lem", "digits", "--dt", "-1"), "dt must be a finite number"),
        (("--run", "no.json"), "no.json must be a run's JSON"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(cli, words, text):
    code, _, err = cli("train", *words)
    assert code == 2 and text in err and len(err.splitlines()) == 1


def test_without_words_the_usage_is_short(cli):
    code, out, err = cli("train")
    assert code == 2 and out == "" and len(err.splitlines()) == 5
    assert err.startswith("usage: anharmonic train MODEL TASK") and "train --help" in err


def test_general_help_shows_every_model_and_task(cli):
    code, out, _ = cli("train", "--help")
    assert code == 0
    assert all(f"\nModel {name}\n" in out for name in list_models())
    assert all(f"\nTask {name}\n" in out for name in list_tasks() if name != "file")
    assert "--batch-size (default 64)" in out and "--split-seed" in out and "--damping" in out


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
