"""Flags come from fields, constructors and docstrings, and from nowhere else."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from anharmonic.cli.flags import fields_of, options_of, run_command
from anharmonic.nn.registry import MODEL_KINDS, list_models, model_class
from anharmonic.train.options import check_model_options, model_option_parameters


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


def flags_of(model):
    defaults = check_model_options(model, {})
    return options_of(model_class(model), model_option_parameters(model), defaults)


@pytest.mark.parametrize("model", [name for kind in MODEL_KINDS for name in list_models(kind)])
def test_every_option_of_a_model_is_a_flag_with_help(model, capsys):
    def command(options: Annotated[dict[str, Any], flags_of(model)]) -> dict[str, Any]:
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
