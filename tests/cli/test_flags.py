"""Flags come from fields, constructors and docstrings; each has a line of help at 80 columns."""

import inspect
import re
from typing import Annotated, Any

import pytest

from anharmonic.cli.flags import options_of, run_command
from anharmonic.cli.main import COMMANDS
from anharmonic.nn import LEM
from anharmonic.nn.registry import MODEL_KINDS, list_models, model_class
from anharmonic.train.options import check_model_options, model_option_parameters

HELPS = [
    *COMMANDS,
    *("train lem digits", "train graphcon cora", "train resonators digits", "train lem mine.csv"),
    *("train graphcon mine.npz", "compare mine.csv", "search lem mine.csv"),
]


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "mine.npz"):
        (tmp_path / name).touch()


@pytest.mark.parametrize("words", HELPS)
def test_help_has_one_line_per_flag_and_help_all_says_every_flag(cli, words):
    words = words.split()
    code, out, err = cli(*words, "--help")
    assert (code, err) == (0, "") and out.startswith("usage: anharmonic ")
    lines = out.splitlines()
    assert len(lines) < 45 and max(map(len, lines)) <= 80
    assert "(default: )" not in out and "options options" not in out and "…" not in out
    if words[0] in ("list", "info"):
        assert lines[0].startswith(f"usage: anharmonic {words[0]} [")
        return
    flags = [line for line in lines if re.match(r"  \S", line)]
    assert all(re.match(r"  (--|\[?[A-Z])[\S]+.* {2}\S", line) for line in flags), flags
    code, full, _ = cli(*words, "--help-all")
    assert code == 0 and all(len(line) <= 80 for line in full.splitlines())
    for line in flags:
        if line.startswith("  --") and "--help-all" not in line:
            assert f"\n  {line.split()[0]}" in full, line


def test_the_help_of_a_model_without_a_task_lists_its_options(cli, refused):
    for model, known, unknown in (("resonators", "num-oscillators", "lr"), ("LEM", "dt", "p")):
        code, out, _ = cli("train", model, "--help")
        assert code == 0 and f"anharmonic train {model} TASK" in out and "MODEL" not in out
        assert f"  --{known} " in out and f"  --{unknown} " not in out
    assert "got 'digits'" in refused("train", "digits", "--help")


def test_common_flags_come_first_and_rare_ones_only_with_help_all(cli):
    short, full = (cli("train", "lem", "mine.csv", flag)[1] for flag in ("--help", "--help-all"))
    assert "--epochs N" in short and "--ema-decay" not in short and "--ema-decay" in full
    assert full.index("--epochs") < full.index("--ema-decay")
    assert "--multiscale" in full.replace("[no-]", "") and "--damping" not in full
    fitted = cli("train", "resonators", "mine.csv", "--help")[1]
    assert "--num-oscillators N" in fitted and "--pools" not in fitted
    assert "--group-column TEXT" in fitted


def flags_of_model(model):
    defaults = check_model_options(model, {})
    return options_of(model_class(model), model_option_parameters(model), defaults)


@pytest.mark.parametrize("model", [name for kind in MODEL_KINDS for name in list_models(kind)])
def test_every_option_of_a_model_is_a_flag_with_help(model, capsys):
    def command(options: Annotated[dict[str, Any], flags_of_model(model)]) -> dict[str, Any]:
        return options

    assert run_command(command, [], "x") == {}
    with pytest.raises(SystemExit):
        run_command(command, ["--help-all"], "x")
    text = capsys.readouterr().out.replace("[no-]", "")
    for name in model_option_parameters(model):
        entry = text.partition(f"  --{name.replace('_', '-')}")[2].partition("\n  --")[0]
        assert len(entry.partition("\n")[2].split()) > 2, (model, name)


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--target-column", "multiscale"], {}),
        (["--multiscale", "True"], {"multiscale": True}),
        (["--multiscale=True"], {"multiscale": True}),
        (["--no-multiscale"], {"multiscale": True}),
    ],
)
def test_a_flag_that_was_typed_is_kept_though_it_is_the_default(words, kept):
    parameters = inspect.signature(LEM.__init__).parameters
    chosen = {name: parameters[name] for name in ("multiscale", "dt")}
    options = options_of(LEM, chosen, {}, words=words).constructor_factory()
    assert options(multiscale=True, dt=1.0) == kept
