"""Tables and text for the terminal, within its width and in colour; plain text for pipes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anharmonic import _checks

try:
    from rich import box
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise _checks.missing_extra("rich", "train", "printing tables") from error

WIDEST = 120
"""Largest line length, for readability."""
NARROWEST = 20
"""Smallest width for tables; narrower terminals wrap lines themselves."""
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10}


def text(*parts: RenderableType) -> str:
    r"""Render what rich can print, as text for ``print``.

    It is as wide as the terminal, 80 columns where there is none (or what ``COLUMNS`` says).

    Args:
        *parts: Strings, which are wrapped and of which no character is markup, or what the
            functions below make.

    Example:
        >>> text("size [in m]", grid(["model", "loss"], [["LEM", "0.1"]]))
        'size [in m]\nmodel  loss\n───────────\nLEM    0.1'
    """
    console = Console(markup=False, emoji=False, highlight=False)
    console.width = width()
    with console.capture() as captured:
        for part in parts:
            shown = _visible(part) if isinstance(part, str) else part
            console.print(shown, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def width() -> int:
    """Return the number of columns that `text` uses."""
    return min(max(Console().width, NARROWEST), WIDEST)


def _visible(words: str) -> str:
    """Escape control characters, so that a name in a file cannot control the terminal."""
    return words.translate(_CONTROL)


def grid(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    strong: Sequence[str] = (),
    fixed: Sequence[str] = (),
) -> Table:
    """Return a table whose widest columns wrap if it does not fit.

    Args:
        head: Names of the columns; without any there is no line of names.
        rows: The cells.
        strong: Columns that stand out, by name.
        fixed: Columns that wrap only as a last resort.
    """
    made = Table(
        box=box.SIMPLE_HEAD if head else None,
        padding=(0, 1 if head else 2, 0, 0),
        pad_edge=False,
        show_edge=False,
        show_header=bool(head),
    )
    for name in head:
        style = "bold" if name in strong else None
        made.add_column(Text(_visible(name)), style=style, overflow="fold", no_wrap=name in fixed)
    for row in rows:
        made.add_row(*(Text(_visible(cell)) for cell in row))
    return made


def bullets(lines: Iterable[str], mark: str = "*") -> Table:
    """Return paragraphs with a bullet and a hanging indent.

    Args:
        lines: The paragraphs.
        mark: The bullet.
    """
    made = Table.grid(padding=(0, 1, 0, 0))
    for line in lines:
        made.add_row(mark, Text(_visible(line)))
    return made


def unwrapped(line: str) -> Text:
    """Return a line that never wraps, such as a command to copy or a path."""
    return Text(_visible(line))
