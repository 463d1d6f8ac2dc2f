"""The page of the command line, made from the same functions that parse it.

``python tools/command_line_page.py`` writes docs/command-line.md; with ``--check`` it exits with 1
if the page is not current.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anharmonic.cli import compare, diagnose, export, info, predict, search, train
from anharmonic.cli import list as list_command
from anharmonic.cli.help import COMMON, Flag, flags_of
from anharmonic.cli.main import COMMANDS

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
INTRODUCTION = """\
# Command line

<!-- Written by `python tools/command_line_page.py` from the commands: edit their docstrings. -->

`anharmonic COMMAND --help` shows the common flags, one line each. `--help-all` shows every flag in
full. With a model and a task before it (`anharmonic train lem mine.csv --help-all`) it also shows
the options of that model. Default `auto` means that the value [follows from the data](recipe.md).
Common flags are bold.

| command | what it does |
| --- | --- |
"""
ENDING = """
## Exit codes and variables

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | work failed, for example one of several trainings |
| 2 | wrong use, or a missing file or package |
| 130, 143 | interrupted, terminated. The same command continues |

| variable | meaning |
| --- | --- |
| `ANHARMONIC_DATA` | folder of data sets, as `--data-dir` |
| `ANHARMONIC_BACKEND=reference` | compute in plain PyTorch, without the C library |
| `ANHARMONIC_INSTRUCTION_SET=avx2` | choose a variant of the C library |
| `ANHARMONIC_DEBUG=1` | show the whole trace of an error, as `--debug` |

The package `anharmonic-papers` adds `table`, `figure`, `report` and `theory`; see
[its page](../papers/README.md).
"""
# Commands that read their words themselves.
_USAGES = {
    "list": list_command.USAGE,
    "info": info.USAGE,
}


def commands() -> dict[str, tuple[list[str], Callable[..., Any]]]:
    """Usages and function of every command with flags."""
    return {
        "train": (list(train.USAGE), train.parser("", "file")),
        "compare": (list(compare.USAGE), compare.parser("file")),
        "search": (list(search.USAGE), search.parser("", "file")),
        "predict": (["anharmonic predict RUN DATA [OPTIONS]"], predict.write_predictions),
        "export": (["anharmonic export RUN [OPTIONS]"], export.export),
        "diagnose": (["anharmonic diagnose RUN [OPTIONS]"], diagnose.diagnose),
    }


def page() -> str:
    """The whole page."""
    known = commands()
    parts = [INTRODUCTION]
    parts += [f"| [`{name}`](#{name}) | {what} |\n" for name, what in COMMANDS.items()]
    shared: dict[str, str] = {}
    for name in COMMANDS:
        parts.append(f"\n## {name}\n\n")
        if name in _USAGES:
            parts.append(f"```\n{_USAGES[name].removeprefix('usage: ')}\n```\n")
            continue
        usage, command = known[name]
        described = (inspect.getdoc(command) or "").partition("\nArgs:")[0]
        lines = "\n".join(usage)
        parts.append(f"```\n{lines}\n```\n\n{_paragraphs(described)}\n")
        flags = flags_of(command)
        for group in dict.fromkeys(flag.group for flag in flags):
            table = _table([flag for flag in flags if flag.group == group])
            title = group or "Options"
            if table == shared.get(group):
                parts.append(f"\n**{title}**: as of [`train`](#train).\n")
                continue
            shared.setdefault(group, table)
            parts.append(f"\n**{title}**\n\n{table}")
    return "".join(parts) + ENDING


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _table(flags: list[Flag]) -> str:
    rows = ["| flag | default | meaning |\n", "| --- | --- | --- |\n"]
    for flag in flags:
        head = f"`{flag.head}`".replace("|", "\\|")
        head = f"**{head}**" if flag.argument in COMMON else head
        text = re.sub(r"([|*_<\[])", r"\\\1", flag.text)
        rows.append(f"| {head} | {flag.default} | {text} |\n")
    return "".join(rows)


def main() -> int:
    """Write the page, or check it."""
    made = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
