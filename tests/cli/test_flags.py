"""Flags come from fields, constructors and docstrings; each has a line of help at 80 columns."""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from tyro.conf import Positional

from anharmonic.cli.flags import fields_of, options_of, run_command
from anharmonic.cli.help import first_clause, flags_of, help_text
from anharmonic.cli.main import COMMANDS
from anharmonic.nn.registry import MODEL_KINDS, list_models, model_class
from anharmonic.train.options import check_model_options, model_option_parameters

HELPS = [
    *((name,) for name in COMMANDS),
    ("train", "lem", "digits"),
    ("train", "graphcon", "cora"),
    ("train", "resonators", "digits"),
    ("train", "lem", "mine.csv"),
    ("train", "graphcon", "mine.npz"),
    ("compare", "mine.csv"),
    ("search", "lem", "mine.csv"),
]


@pytest.fixture(autouse=True)
def terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "mine.npz"):
        (tmp_path / name).touch()


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_has_one_line_per_flag_and_help_all_says_every_flag(cli, words):
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


def test_common_flags_come_first_and_rare_ones_only_with_help_all(cli):
    short, full = (cli("train", "lem", "mine.csv", flag)[1] for flag in ("--help", "--help-all"))
    assert "--epochs N" in short and "--ema-decay" not in short and "--ema-decay" in full
    assert full.index("--epochs") < full.index("--ema-decay")
    assert "--multiscale" in full.replace("[no-]", "") and "--damping" not in full
    fitted = cli("train", "resonators", "mine.csv", "--help")[1]
    assert "--num-oscillators N" in fitted and "--pools" not in fitted
    assert "--group-column TEXT" in fitted


def test_values_are_named_by_their_kind_and_defaults_are_in_brackets():
    def pour(
        cup: Positional[Path],
        number: int = 2,
        warm: bool = True,
        sweet: bool = False,
        kind: Literal["tea", "coffee"] = "tea",
        pair: tuple[float, float] = (0.5, 1.0),
        names: tuple[str, ...] = (),
        where: Path | None = None,
    ) -> int:
        """Pour a cup.

        Args:
            cup: Cup to fill. It must be empty.
            number: Cups.
            warm: Whether it is warm.
            sweet: Whether it is sweet.
            kind: What is in it.
            pair: Two shares.
            names: Of guests.
            where: Table.
        """
        return number

    heads = "CUP,--number N,--[no-]warm,--sweet,--kind tea|coffee,--pair X X,--names TEXT ...,"
    assert [flag.head for flag in flags_of(pour)] == f"{heads}--where PATH".split(",")
    text = help_text(pour, "pour")
    assert text.startswith("usage: pour CUP [OPTIONS]\n\nPour a cup.\n")
    assert "Cups [2]" in text and "Whether it is warm [on]" in text and "Table\n" in text
    assert "Cup to fill\n" in text and "It must be empty" in help_text(pour, "pour", True)


@pytest.mark.parametrize(
    ("width", "clause"),
    [
        (60, "Folder of the data, in which all lies; it must exist"),
        (40, "Folder of the data, in which all lies"),
        (30, "Folder of the data"),
        (12, "Folder of…"),
    ],
)
def test_a_long_sentence_ends_with_the_last_clause_that_fits(width, clause):
    text = "Folder of the data, in which all lies; it must exist."
    assert first_clause(text, width) == clause


@dataclass(frozen=True)
class Cup:
    """A cup."""

    size: int = 3
    """How much goes in."""
    colour: str = "red"
    """Of the outside."""


def pour(
    cup: Annotated[Cup, fields_of(Cup, colour="blue")], kinds: tuple[str, ...] = ()
) -> tuple[Cup, tuple[str, ...]]:
    """Pours.

    Args:
        cup: Into which.
        kinds: Of tea.
    """
    return cup, kinds


def test_fields_are_flags_and_fixed_ones_are_not(capsys):
    cup, kinds = run_command(pour, ["--size", "4", "--kinds", "a", "b"], "pour")
    assert isinstance(cup, Cup) and (cup.size, cup.colour, kinds) == (4, "blue", ("a", "b"))
    with pytest.raises(SystemExit) as stop:
        run_command(pour, ["--help"], "pour")
    assert stop.value.code == 0
    for words in (["--colour", "red"], ["--size"], ["--size", "x"], ["--siz", "3"]):
        with pytest.raises(ValueError, match=f"options of `pour` must be .*{words[0]}.*--help"):
            run_command(pour, words, "pour")
    with pytest.raises(ValueError, match="did you mean '--size'"):
        run_command(pour, ["--sise", "3"], "pour")
    said = capsys.readouterr()
    assert "How much goes in [3]" in said.out and "--colour" not in said.out


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


def test_options_without_a_default_given_apart_have_that_of_the_constructor():
    class Pot:
        """A pot.

        Args:
            size: How much goes in.
            lid: Whether it has one.
        """

        def __init__(self, size: int = 3, lid: bool = True) -> None: ...

    known = {k: p for k, p in inspect.signature(Pot.__init__).parameters.items() if k != "self"}
    kinds = {"size": int, "lid": bool}
    known = {name: p.replace(annotation=kinds[name]) for name, p in known.items()}

    def command(options: Annotated[dict[str, Any], options_of(Pot, known, {"lid": True})]) -> Any:
        return options

    assert run_command(command, ["--size", "5"], "x") == {"size": 5}
    assert run_command(command, ["--no-lid"], "x") == {"lid": False}
    assert run_command(command, ["--size", "3"], "x") == {}

    def typed(*words: str) -> Any:
        def command(options: Annotated[dict[str, Any], options_of(Pot, known, {}, (), words)]):
            return options

        return run_command(command, words, "x")

    assert typed("--size=3") == {"size": 3} and typed("--lid") == {"lid": True} and typed() == {}
