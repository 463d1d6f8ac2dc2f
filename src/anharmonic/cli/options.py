"""Flags from what is already written: dataclass fields, constructor signatures, docstrings."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import difflib
import functools
import inspect
import io
import itertools
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from anharmonic._checks import message, missing_extra


@dataclass(frozen=True)
class Option:
    """One flag.

    Args:
        name: The argument's name, with underscores.
        type: Its type.
        default: Its default.
        help: What it means.
    """

    name: str
    type: Any
    default: Any
    help: str

    @property
    def flag(self) -> str:
        """The name as typed."""
        return "--" + self.name.replace("_", "-")


def tyro() -> Any:
    """The package that reads flags.

    Raises:
        ImportError: If it is missing; the message names what to install.
    """
    try:
        import tyro
    except ImportError as error:
        raise missing_extra("tyro", "train", "this command") from error
    return tyro


def field_options(cls: type, leave_out: Sequence[str] = ()) -> list[Option]:
    """The fields of a dataclass as flags, each with the string below it as help.

    Args:
        cls: The dataclass.
        leave_out: Fields that are no flags.
    """
    hints = typing.get_type_hints(cls)
    body = typing.cast(
        ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    ).body
    help_of = {
        before.target.id: " ".join(after.value.value.split())
        for before, after in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }
    found = []
    for field in dataclasses.fields(cls):
        if field.name not in leave_out:
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            found.append(
                Option(field.name, hints[field.name], default, help_of.get(field.name, ""))
            )
    return found


def constructor_options(cls: type, names: Container[str]) -> list[Option]:
    """The keyword parameters of a constructor as flags, with the docstring's ``Args`` as help.

    Args:
        cls: The class; its docstring is in Google form.
        names: The parameters that are flags.
    """
    initialiser: Callable[..., Any] = cls.__init__  # type: ignore[misc]
    hints = typing.get_type_hints(initialiser)
    help_of = documented(inspect.getdoc(cls) or "")
    parameters = list(inspect.signature(initialiser).parameters.values())[1:]
    return [
        Option(p.name, hints.get(p.name, str), p.default, help_of.get(p.name, ""))
        for p in parameters
        if p.name in names
    ]


def documented(docstring: str) -> dict[str, str]:
    r"""The entries of a Google docstring's ``Args`` section.

    Example:
        >>> documented("What.\n\nArgs:\n    dt: Step,\n        > 0.\n    n: Count.\n\nNote:")
        {'dt': 'Step, > 0.', 'n': 'Count.'}
    """
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", inspect.cleandoc(docstring), re.MULTILINE)
    if section is None:
        return {}
    entries: dict[str, str] = {}
    name = ""
    for line in textwrap.dedent(section.group(1)).splitlines():
        start = re.match(r"(\w+)(?: \([^)]*\))?: (.*)", line)
        if start:
            name = start.group(1)
            entries[name] = start.group(2)
        elif name and line.strip():
            entries[name] += " " + line.strip()
    return entries


def part(title: str, options: Sequence[Option]) -> type:
    """A dataclass of these options, for tyro.

    Args:
        title: Its name.
        options: Its fields; those without default come first.
    """
    conf = tyro().conf
    fields: list[Any] = []
    for option in options:
        kind: Any = Annotated[option.type, conf.arg(**_described(option))]
        if option.default in (dataclasses.MISSING, inspect.Parameter.empty):
            fields.append((option.name, kind))
        else:
            make = functools.partial(copy.copy, option.default)
            fields.append((option.name, kind, dataclasses.field(default_factory=make)))
    return dataclasses.make_dataclass(re.sub(r"\W", "", title) or "Part", fields, frozen=True)


def _without_default(option: Option) -> str:
    """The help without a last sentence that only says the default, which is shown anyway."""
    end = re.search(r"\s*Default:? (\S+)\.$", option.help)
    if end is None or option.default is None or isinstance(option.default, bool):
        return option.help
    said = {str(option.default), str(option.default).removesuffix(".0")}
    return option.help[: end.start()] if end.group(1) in said else option.help


def _described(option: Option) -> dict[str, Any]:
    """Help without saying a default twice, and a plain placeholder for an optional value."""
    found: dict[str, Any] = {"help": _without_default(option) or None}
    if option.default in (None, ()):
        found["help_behavior_hint"] = ""
        kinds = [kind for kind in typing.get_args(option.type) if kind is not type(None)]
        if option.default is None and len(kinds) == 1 and isinstance(kinds[0], type):
            found["metavar"] = kinds[0].__name__.upper()
    return found


def parse(
    words: Sequence[str],
    groups: Mapping[str, Sequence[Option]],
    prog: str,
    description: str,
    positionals: str = "",
) -> dict[str, Any]:
    """Reads flags; the groups are headings of the help.

    Args:
        words: What was typed, without positionals.
        groups: Options by heading; no name may come twice.
        prog: How the command is called, for the help.
        description: What it does, for the help.
        positionals: What comes between it and the flags, for the help.

    Returns:
        The values of all options by name.

    Raises:
        ValueError: If a flag is unknown (the message names the nearest) or its value is of the
            wrong kind.
    """
    options = [option for options in groups.values() for option in options]
    check_flags(words, options, prog)
    if not set(words) & {"-h", "--help"}:
        _check_values(words, options, prog)
    package = tyro()
    fields = {name: re.sub(r"\W", "_", name) for name in groups}
    kinds = [(fields[name], part(name, options)) for name, options in groups.items()]
    whole = dataclasses.make_dataclass("Options", kinds, frozen=True)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = package.cli(
                whole,
                args=list(words),
                prog=f"{prog} {positionals}".strip(),
                description=description,
                config=(package.conf.OmitArgPrefixes,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ValueError(
            message(
                "options must be as --help shows them", _gist(said.getvalue()), f"see {prog} --help"
            )
        ) from None
    return {
        option.name: getattr(getattr(parsed, fields[name]), option.name)
        for name, options in groups.items()
        for option in options
    }


def _gist(box: str) -> str:
    """What tyro's framed error says, without the frame and the repeated help."""
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    end = next((i for i, line in enumerate(lines) if line.startswith("─")), len(lines))
    return " ".join(lines[:end]) or " ".join(box.split())


def check_flags(words: Sequence[str], options: Sequence[Option], prog: str) -> None:
    """Refuses unknown flags before anything is read.

    Args:
        words: What was typed.
        options: The known flags.
        prog: The command whose help shows them.

    Raises:
        ValueError: If a flag is unknown; the message names the nearest.
    """
    known = ["--help", "-h"]
    for option in options:
        known.append(option.flag)
        if option.type is bool:
            known.append("--no-" + option.flag[2:])
    for word in words:
        flag = word.split("=", 1)[0].replace("_", "-")
        if _is_flag(word) and flag not in known:
            near = difflib.get_close_matches(flag, known, n=1, cutoff=0.7)
            hint = f"did you mean {near[0]}?" if near else "nothing here is called like that"
            raise ValueError(f"unknown option {flag}; {hint}; see {prog} --help")


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.match(r"-[\d.]", word) and word != "-"


def _check_values(words: Sequence[str], options: Sequence[Option], prog: str) -> None:
    """Refuses values of the wrong kind where the kind has a plain name; tyro sees the rest.

    Raises:
        ValueError: If a value is missing, of the wrong kind, or one too many.
    """
    known = {option.flag: option for option in options}
    typed: list[tuple[str, list[str]]] = []
    for word in words:
        if _is_flag(word):
            flag, equals, value = word.partition("=")
            typed.append((flag.replace("_", "-"), [value] if equals else []))
        elif typed:
            typed[-1][1].append(word)
        else:
            advice = f"see {prog} --help"
            raise ValueError(message("options must begin with --", repr(word), advice))
    for flag, values in typed:
        wanted = _kind(known[flag].type) if flag in known else None
        if wanted is None:
            continue
        what, fits, several = wanted
        wrong = next((value for value in values if not fits(value)), None)
        if wrong is not None:
            got = repr(wrong)
        elif not values and not several:
            got = "nothing"
        elif len(values) > 1 and not several:
            got, what = " ".join(values), f"one value, {what}"
        else:
            continue
        raise ValueError(message(f"{flag} must be {what}", got, f"see {prog} --help"))


def _kind(annotation: Any) -> tuple[str, Callable[[str], bool], bool] | None:
    """What a value of a type is, in words and as a test, and whether several may come."""
    if typing.get_origin(annotation) is Literal:
        allowed = [str(value) for value in typing.get_args(annotation)]
        return f"one of {', '.join(allowed)}", allowed.__contains__, False
    parts = [p for p in typing.get_args(annotation) or (annotation,) if p is not type(None)]
    origin = typing.get_origin(annotation)
    if origin in (Sequence, list) or (origin is tuple and parts[1:] == [...]):
        inner = _kind(parts[0])
        return inner and (inner[0], inner[1], True)
    if parts == [annotation]:
        names = {int: "a whole number", float: "a number"}
        return (names[annotation], _reads(annotation), False) if annotation in names else None
    kinds = [_kind(part) for part in parts]
    # A number or several of them: the last one that is said allows more.
    return kinds[-1] if len({kind and kind[0] for kind in kinds}) == 1 else None


def _reads(kind: type) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return fits


def short_usage(*lines: str) -> int:
    """Says on standard error how a command is called.

    Returns:
        The exit code of wrong use.
    """
    print("\n".join(lines), file=sys.stderr)
    return 2


def distinct(flag: str, values: Sequence[Hashable]) -> None:
    """Refuses values that come twice.

    Args:
        flag: As typed.
        values: What was typed after it.

    Raises:
        ValueError: If a value comes twice.

    Example:
        >>> distinct("--seeds", (0, 1))
    """
    twice = [str(v) for v in dict.fromkeys(values) if values.count(v) > 1]
    if twice:
        raise ValueError(
            message(f"{flag} must differ", f"{', '.join(twice)} more than once", "name each once")
        )


def given(words: Sequence[str]) -> set[str]:
    """The names of the options typed.

    Example:
        >>> sorted(given(["--hidden-size", "3", "--no-bias", "--dt=0.1"]))
        ['bias', 'dt', 'hidden_size']
    """
    flags = (w.split("=", 1)[0] for w in words if w.startswith("--"))
    return {flag.removeprefix("--").removeprefix("no-").replace("-", "_") for flag in flags}


def plain_help(options: Sequence[Option], width: int = 96) -> str:
    """Options as text, one entry each: flag, default, meaning."""
    out = []
    for option in options:
        default = "" if option.default in (inspect.Parameter.empty, None, ()) else option.default
        head = f"{option.flag}{f' (default {default})' if default != '' else ''}: "
        out.append(
            textwrap.fill(
                head + _without_default(option),
                width,
                initial_indent="  ",
                subsequent_indent="      ",
            )
        )
    return "\n".join(out)
