import builtins
from dataclasses import dataclass
from typing import Literal

import pytest

from anharmonic.cli.options import (
    Option,
    check_flags,
    constructor_options,
    distinct,
    documented,
    field_options,
    given,
    parse,
    plain_help,
    short_usage,
    tyro,
)
from anharmonic.data.registry import list_tasks, task_class, task_options
from anharmonic.nn.registry import list_models, model_class
from anharmonic.train.options import model_option_parameters
from anharmonic.train.run import Run, RunEnvironment


@dataclass(frozen=True)
class Sample:
    """A dataclass."""

    count: int = 3
    """How many."""
    kind: Literal["a", "b"] = "a"
    """Which."""
    rate: float | None = None
    silent: bool = False
    """Whether
    nothing is said."""
    many: tuple[int, ...] = ()
    """Several."""


def test_fields_become_options_with_their_texts():
    options = {o.name: o for o in field_options(Sample)}
    assert options["count"] == Option("count", int, 3, "How many.")
    assert options["silent"].help == "Whether nothing is said."
    assert options["rate"].help == ""
    assert [o.name for o in field_options(Sample, ("kind", "rate"))] == ["count", "silent", "many"]


@pytest.mark.parametrize("cls", [Run, RunEnvironment])
def test_every_field_of_a_run_is_explained(cls):
    assert all(option.help for option in field_options(cls))


@pytest.mark.parametrize("name", list_models())
def test_every_option_of_a_model_is_explained(name):
    known = model_option_parameters(name)
    found = constructor_options(model_class(name), known)
    assert [o.name for o in found] == list(known) and all(o.help for o in found)


@pytest.mark.parametrize("name", list_tasks())
def test_every_option_of_a_task_is_explained(name):
    known = task_options(name)
    found = constructor_options(task_class(name), known)
    assert [o.name for o in found] == list(known) and all(o.help for o in found)


def test_documented_reads_continuation_lines_and_stops():
    arguments = "Args:\n    a: One,\n        two.\n\n    b (int): B.\n\n"
    text = f"What.\n\n{arguments}Shape:\n    c: no\n"
    assert documented(text) == {"a": "One, two.", "b": "B."}
    assert documented("Nothing.") == {}


def test_parse_reads_values():
    values = parse(["--count", "4", "--silent"], {"x y": field_options(Sample)}, "prog", "What.")
    assert values == {"count": 4, "kind": "a", "rate": None, "silent": True, "many": ()}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--count x", "--count must be a whole number; got 'x'"),
        ("--count=1.5", "--count must be a whole number; got '1.5'"),
        ("--count", "--count must be a whole number; got nothing"),
        ("--count 1 2", "--count must be one value, a whole number; got 1 2"),
        ("--kind c", "--kind must be one of a, b; got 'c'"),
        ("--rate abc", "--rate must be a number; got 'abc'"),
        ("--many 1 x", "--many must be a whole number; got 'x'"),
        ("c --count 1", "options must begin with --; got 'c'"),
    ],
)
def test_wrong_values_are_one_clear_line(words, text, capsys):
    with pytest.raises(ValueError, match=r"; see prog --help\.$") as caught:
        parse(words.split(), {"x": field_options(Sample)}, "prog", "What.")
    assert str(caught.value) == f"{text}; see prog --help."
    assert capsys.readouterr().err == ""


def test_values_without_a_plain_name_are_checked_too(capsys):
    with pytest.raises(ValueError, match=r"options must be as --help .* see prog --help"):
        parse(["--silent", "7"], {"x": field_options(Sample)}, "prog", "What.")
    assert capsys.readouterr().err == ""


def test_negative_numbers_are_values():
    values = parse(["--rate", "-1e-3", "--many", "-1", "-2"], {"x": field_options(Sample)}, "p", "")
    assert values["rate"] == -1e-3 and values["many"] == (-1, -2)


def test_short_usage_is_wrong_use(capsys):
    assert short_usage("usage: x", "more") == 2
    assert capsys.readouterr() == ("", "usage: x\nmore\n")


def test_unknown_flag_names_the_nearest():
    for word, hint in (("--cuont", "did you mean --count?"), ("--zzzz", "nothing here is called")):
        with pytest.raises(ValueError, match=f"unknown option {word}; ") as caught:
            parse([word, "3"], {"x": field_options(Sample)}, "prog", "What.")
        assert hint in str(caught.value) and str(caught.value).endswith("; see prog --help")


def test_flags_may_be_negated_only_if_they_are_switches():
    check_flags(["--no-silent", "-1", "-.5"], field_options(Sample), "prog")
    with pytest.raises(ValueError, match="unknown option --no-count"):
        check_flags(["--no-count"], field_options(Sample), "prog")


def test_given_knows_all_spellings():
    assert given(["--a-b", "1", "--c_d=2", "--no-e", "-3"]) == {"a_b", "c_d", "e"}


def test_distinct_refuses_doubles():
    distinct("--seeds", ())
    with pytest.raises(ValueError, match=r"--seeds must differ; got 0, 2 more than once; name"):
        distinct("--seeds", (0, 2, 0, 1, 2))


def test_plain_help_says_default_and_meaning():
    text = plain_help(field_options(Sample))
    assert "--count (default 3): How many." in text
    assert "--rate" in text and "None" not in text


def test_a_default_is_said_once():
    options = [Option("dt", float, 1.0, "Step. Default 1."), Option("n", int, 2, "N. Default 1.")]
    text = plain_help(options)
    assert "--dt (default 1.0): Step.\n" in text and "N. Default 1." in text


def test_missing_tyro_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "tyro":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "anharmonic\[train\]"'):
        tyro()
