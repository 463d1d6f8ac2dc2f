"""The help of a command: one line per common flag, or every flag in full.

Both come from the same functions, types and docstrings as `flags.run_command`, like the command
line page in the documentation.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from anharmonic.cli.constants import AUTO, NARROWEST
from anharmonic.nn.registry import described_arguments, descriptions

# Flags shown without --help-all, for commands with more flags than _FEW.
COMMON = (
    "rows", "search", "trials", "models", "seeds", "folds", "refit", "streaming", "epochs",
    "hidden_size", "num_layers", "num_oscillators", "dt", "lr", "batch_size",
    "target_column", "id_column", "time_column", "group_column", "window", "horizon", "missing",
    "split", "metric", "seed", "start_from", "device", "threads", "jobs", "out", "html", "storage",
    "dry_run", "progress",
)  # fmt: skip
_FEW = 12
_WIDEST = 100
_GROUPS = {
    "run": "Training",
    "model_options": "Model",
    "task_options": "Data",
    "environment": "Where and how it is computed",
}
_KINDS = {int: "N", float: "X", str: "TEXT", Path: "PATH", bool: "True|False"}
_DEFAULT = re.compile(r"\s*Default:? [^.]*(\.\d[^.]*)*\.")
_BREAK = re.compile(r"[.;:](?=\s|$)|,(?=\s)|\s(?=\()")


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag or a positional argument of a command."""

    name: str
    """Name as typed: "--batch-size", or "RUN" for a positional argument."""
    value: str
    """Placeholder of the value: "N", "PATH" or the choices; "" for a switch."""
    default: str
    """Default as typed; "" if there is none or the description contains it."""
    text: str
    """The whole description."""
    group: str
    """Heading of its group; "" for the command's own flags."""
    argument: str
    """Name of the argument in Python."""
    is_positional: bool = False

    @property
    def head(self) -> str:
        """The flag with its placeholder, as in the help."""
        return f"{self.name} {self.value}".rstrip()


def flags_of(command: Callable[..., Any]) -> list[Flag]:
    """List the flags of a command, the common ones first.

    Example:
        >>> def pour(cups: int = 2): ...
        >>> flags_of(pour)[0].head
        '--cups N'
    """
    flags = list(_flags(command, ""))
    order = {name: place for place, name in enumerate(COMMON)}
    return sorted(flags, key=lambda flag: order.get(flag.argument, len(order)))


def help_text(
    command: Callable[..., Any],
    prog: str,
    everything: bool = False,
    usage: Sequence[str] = (),
) -> str:
    """Return the help of a command.

    Args:
        command: The function.
        prog: Name of the command.
        everything: Whether to show rare flags and full descriptions.
        usage: The ways to call it; built from the flags if empty.
    """
    columns = min(max(shutil.get_terminal_size().columns, NARROWEST), _WIDEST)
    flags = flags_of(command)
    places = [flag for flag in flags if flag.is_positional]
    typed = [flag for flag in flags if not flag.is_positional]
    shown = [flag for flag in typed if everything or flag.argument in COMMON]
    if len(typed) <= _FEW:
        shown = typed
    usage = usage or [" ".join([prog, *(flag.head for flag in places), "[OPTIONS]"])]
    summary, _, more = (inspect.getdoc(command) or "").partition("\nArgs:\n")[0].partition("\n\n")
    lines = [("usage: " if n == 0 else "       ") + one for n, one in enumerate(usage)]
    for paragraph in [summary, *more.strip().split("\n\n")]:
        if paragraph:
            lines += ["", *textwrap.wrap(" ".join(paragraph.split()), columns)]
    if everything:
        for title in dict.fromkeys(flag.group for flag in [*places, *shown]):
            lines += ["", f"{title or 'Options'}:"]
            for flag in [*places, *shown]:
                if flag.group == title:
                    lines += _in_full(flag, columns)
        return "\n".join(lines)
    rows = [(flag.head, flag.text, flag.default) for flag in [*places, *shown]]
    rows.append(("--help-all", "Show every flag in full.", ""))
    width = max(len(head) for head, _, _ in rows)
    width = min(width, columns // 3)
    lines.append("")
    for head, text, default in rows:
        after = f" [{default}]" if default else ""
        room = columns - width - 4 - len(after)
        if len(head) > width:
            head = f"{head.split()[0]} WORD"
        lines.append(f"  {head.ljust(width)}  {first_clause(text, room)}{after}")
    if any(default for _, _, default in rows):
        chosen = " The data decide what is auto." if any(d == AUTO for *_, d in rows) else ""
        lines += ["", f"Defaults are in brackets.{chosen}"]
    return "\n".join(lines)


def first_clause(text: str, room: int) -> str:
    """Return the first sentence of a text, or as many of its clauses as fit.

    Example:
        >>> first_clause("Passes over the data, at least 1; fewer if patience ends it.", 45)
        'Passes over the data, at least 1'
    """
    sentence = re.split(r"\.(?=\s|$)", text)[0]
    ends = [found.start() for found in _BREAK.finditer(sentence)] + [len(sentence)]
    fitting = [end for end in ends if end <= room]
    return sentence[: fitting[-1]] if fitting else textwrap.shorten(sentence, room, placeholder="…")


def _in_full(flag: Flag, columns: int) -> list[str]:
    body = textwrap.wrap(flag.text, columns - 6, break_long_words=False, break_on_hyphens=False)
    default = f" [{flag.default}]" if flag.default else ""
    return [f"  {flag.head}{default}", *(f"      {line}" for line in body)]


def _flags(command: Callable[..., Any], group: str) -> Iterator[Flag]:
    if isinstance(command, type):
        texts = descriptions(command)
    else:
        texts = described_arguments(inspect.getdoc(command) or "")
    texts = {name: text.replace("`", "") for name, text in texts.items()}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        hint, metadata = _unwrapped(parameter.annotation)
        factories = [getattr(one, "constructor_factory", None) for one in metadata]
        makers = [factory() for factory in factories if factory is not None]
        if dataclasses.is_dataclass(hint):
            makers = [hint, *makers]
        if makers:
            title = _GROUPS.get(name, name.replace("_", " ").capitalize())
            yield from _flags(makers[-1], title)
            continue
        renamed = next((one.name for one in metadata if getattr(one, "name", None)), name)
        positional = any("ositional" in repr(one) for one in metadata)
        yield _flag(parameter, hint, renamed, texts.get(name, ""), group, positional)


def _flag(
    parameter: Parameter, hint: Any, name: str, text: str, group: str, positional: bool
) -> Flag:
    typed = name.replace("_", "-")
    if positional:
        head = f"[{typed.upper()} ...]" if hint != Path else typed.upper()
        return Flag(head, "", "", text, group, parameter.name, is_positional=True)
    default = parameter.default
    if hint is bool:
        head, value = (f"--[no-]{typed}", "on") if default is True else (f"--{typed}", "")
        return Flag(head, "", value, text, group, parameter.name)
    several = isinstance(default, list | tuple)
    shown = " ".join(map(str, default)) if several else str(default)
    if default is None or default is Parameter.empty:
        shown = ""
    if default == AUTO:  # the class's default is not the command's
        text = _DEFAULT.sub("", text)
    return Flag(f"--{typed}", _value(hint), shown, text, group, parameter.name)


def _unwrapped(hint: Any) -> tuple[Any, list[Any]]:
    """Return the type inside `Annotated`, and its metadata."""
    if get_origin(hint) is Annotated:
        kind, *metadata = get_args(hint)
        return kind, metadata
    return hint, []


def _value(hint: Any) -> str:
    """Return the placeholder for the value of a type."""
    hint, _ = _unwrapped(hint)
    if hint in _KINDS:
        return _KINDS[hint]
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return "|".join(map(str, arguments))
    if get_origin(hint) is tuple and arguments[-1] is not Ellipsis:
        return " ".join(map(_value, arguments))
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Sequence):
        return f"{_value(arguments[0])} ..."
    kinds = [kind for kind in arguments if kind not in (NoneType, Literal["auto"])]
    return "|".join(dict.fromkeys(map(_value, kinds))) or "TEXT"
