"""Commands as functions, whose flags tyro reads from types, defaults and docstrings.

(Imported only by commands that need it; `anharmonic list` does not.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter
from typing import Annotated, Any, Literal, TypeVar, get_args

from anharmonic._checks import message, require
from anharmonic.cli.constants import AUTO, HELP, NARROWEST
from anharmonic.nn.registry import descriptions

T = TypeVar("T")
# Flags whose names are not valid in Python.
_FLAGS = {"start_from": "from"}
# Messages of tyro and our replacements.
_WORDS = {
    r"Unrecognized options: (.*)": r"unknown words: \1",
    r"Missing from [^:]*: (\S+) .*": r"no \1",
    r"Missing value for argument '(.*?)'.*": r"no value for \1",
    r"invalid choice (.*) for argument '(.*?)'. Expected one of \((.*)\)": r"\1 for \2, one of \3",
    r"Error parsing (\S+): .*from \['(.*?)'\].*": r"'\2' for \1, of the wrong kind",
    r"Error parsing (\S+): .*?(\[.*\])": r"\2 for \1",
}


def run_command(
    command: Callable[..., T],
    words: Sequence[str],
    prog: str,
    usage: Sequence[str] = (),
    elsewhere: str = "",
) -> T:
    """Call a function with command line arguments.

    Args:
        command: The function. Fields of its dataclasses become flags without a prefix.
        words: The arguments.
        prog: Name of the command, for the help.
        usage: The ways to call it, for the help.
        elsewhere: Where other flags belong, for the error about unknown words.

    Returns:
        What the function returns.

    Raises:
        SystemExit: After the help.
        ValueError: If a flag or value is wrong.
    """
    import tyro
    from tyro import conf

    if asked := [word for word in words if word in HELP]:
        from anharmonic.cli.help import help_text  # not needed by a training

        print(help_text(command, prog, everything="--help-all" in asked, usage=usage))
        raise SystemExit(0)

    @functools.wraps(command)
    def read(*args: Any, **kwargs: Any) -> Any:
        return functools.partial(command, *args, **kwargs)

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            call: Any = tyro.cli(
                read,
                args=list(words),
                prog=prog,
                config=(
                    conf.OmitArgPrefixes,
                    conf.SuppressFixed,
                    conf.PositionalMetavarFromFieldName,
                ),
                add_help=False,
            )
    except SystemExit:
        raise ValueError(_in_our_words(said.getvalue(), prog, elsewhere)) from None
    result: T = call()
    return result


def named(
    words: Sequence[str],
    count: int,
    parser: Callable[..., Callable[..., Any]],
    prog: str,
    usage: Sequence[str],
    advice: str,
) -> list[str]:
    """Return the names that a command line must start with, or show the help without them.

    Raises:
        SystemExit: After the help.
        ValueError: If names are missing.
    """
    found = [word for word in words[:count] if not word.startswith("-")]
    if len(found) < count:
        if asked := [word for word in words if word in HELP]:
            for name in found:  # a model without a task
                usage = [way.replace("MODEL", name) for way in usage]
            run_command(parser(*found), asked, prog, usage)
        expected = f"called with {'a model and ' * (count > 1)}a task or file first"
        require(False, prog, " ".join(words) or "nothing", expected, advice)
    return found


def _in_our_words(text: str, prog: str, elsewhere: str) -> str:
    """Convert tyro's boxed message to one sentence."""
    lines = [line.strip("│╭╮╰╯ ") for line in text.splitlines()[1:]]
    is_rule = [not line.strip("─-") for line in lines]
    blocks = [
        [line for _, line in group]
        for rule, group in itertools.groupby(zip(is_rule, lines, strict=True), lambda pair: pair[0])
        if not rule
    ]
    said, *more = blocks or [["wrong words"]]
    came = " ".join(said).rstrip(".")
    for pattern, words in _WORDS.items():
        came = re.sub(pattern, words, came)
    near = [line.split()[0] for block in more for line in block if line.startswith("--")]
    meant = f"did you mean {near[0]!r}? " if near and came.startswith("unknown") else ""
    other = f"{elsewhere}; " if elsewhere and came.startswith("unknown") else ""
    advice = f"{meant}{other}see {prog} --help"
    return message(f"options of `{prog}` must be known and of the right kind", came, advice)


def fields_of(kind: type, **fixed: Any) -> Any:
    """Return a dataclass as flags, for ``Annotated``; some fields have a fixed value instead.

    Args:
        kind: The dataclass.
        fixed: The values of those fields.
    """
    return _constructor(kind, _parameters(kind, fixed), lambda values: kind(**values, **fixed))


def open_fields_of(kind: type, names: Collection[str]) -> Any:
    """Return fields of a dataclass as flags, for ``Annotated``, parsed to a dict of set flags.

    Flags that are not set are "auto", to be chosen later. Values are not checked here.
    """
    fixed = [entry.name for entry in dataclasses.fields(kind) if entry.name not in names]
    given = [
        parameter.replace(default=AUTO, annotation=_or_auto(parameter.annotation))
        for parameter in _parameters(kind, fixed)
    ]
    return _constructor(
        kind, given, lambda values: {name: v for name, v in values.items() if v != AUTO}
    )


def _parameters(kind: type, left_out: Collection[str]) -> list[Parameter]:
    """Return the fields of a dataclass as parameters."""
    return [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for name, parameter in _signature(kind).parameters.items()
        if name not in left_out
    ]


@functools.cache
def _signature(kind: type) -> inspect.Signature:
    return inspect.signature(kind, eval_str=True)


def _constructor(
    kind: type, parameters: Sequence[Parameter], make: Callable[[dict[str, Any]], Any]
) -> Any:
    """Return the object from which tyro makes flags, and which builds a value of the set ones."""
    from tyro import conf

    def made(**values: Any) -> Any:
        return make(values)

    parameters = [
        p.replace(annotation=Annotated[p.annotation, conf.arg(name=_FLAGS[p.name])])
        if p.name in _FLAGS
        else p
        for p in parameters
    ]
    described = descriptions(kind)
    entries = "".join(
        f"    {p.name}: {described[p.name]}\n" for p in parameters if p.name in described
    )
    made.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]  # inspect reads it
    made.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    made.__doc__ = f"{(inspect.getdoc(kind) or '').partition(chr(10))[0]}\n\nArgs:\n{entries}"
    return conf.arg(constructor=made)


def options_of(
    kind: type,
    parameters: Mapping[str, inspect.Parameter],
    defaults: Mapping[str, Any],
    left_open: Collection[str] = (),
    words: Sequence[str] = (),
) -> Any:
    """Return parameters of a constructor as flags, for ``Annotated``, parsed to a dict.

    The dict holds the values that differ from the defaults, and the flags among the words.

    Args:
        kind: The class, with a Google docstring.
        parameters: The parameters that are flags.
        defaults: Their defaults.
        left_open: Parameters whose flags default to "auto".
        words: The arguments of the command line.
    """
    own = {name: parameter.default for name, parameter in parameters.items()}
    defaults = {**own, **defaults, **dict.fromkeys(left_open, AUTO)}
    given = [
        parameter.replace(
            kind=Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=_or_auto(parameter.annotation)
            if name in left_open
            else parameter.annotation,
        )
        for name, parameter in parameters.items()
    ]
    # A typed default is a choice, too: it must replace the value of another run.
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    typed = {re.sub("^--(no-)?", "", flag).replace("-", "_") for flag in flags}
    chosen = typed & parameters.keys() - set(left_open)
    return _constructor(
        kind,
        given,
        lambda values: {n: v for n, v in values.items() if v != defaults[n] or n in chosen},
    )


def _or_auto(hint: Any) -> Any:
    return hint if AUTO in get_args(hint) else hint | Literal["auto"]


def hanging(name: str, text: str, wrap: bool) -> str:
    """Return a name followed by a text with a hanging indent."""
    if not wrap:
        return f"{name}{text}"
    columns = max(shutil.get_terminal_size().columns, NARROWEST)
    return textwrap.fill(
        text,
        columns,
        initial_indent=name,
        subsequent_indent=" " * len(name),
        break_long_words=False,
        break_on_hyphens=False,
    )
