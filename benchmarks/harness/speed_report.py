"""Measured speed as tables: for the terminal, Markdown, and marked blocks of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anharmonic._checks import message
from harness.cases import GRU, LSTM, OURS, PEER, REFERENCE
from harness.speed import plural

MODES = {
    "training": "Training step (forward and backward)",
    "inference": "Inference (forward under no_grad)",
    "streaming": "Streaming, one step",
}
_OTHERS = (GRU, REFERENCE, PEER)


def rows(result: dict[str, Any], mode: str) -> list[list[str]]:
    """The table of one mode, its heads first: times of the LSTM and ours, ratios of all.

    Args:
        result: What `speed.measure` returns.
        mode: "training", "inference" or "streaming".
    """
    wanted = mode != "inference"
    heads = ["case", "threads", LSTM, OURS, "ratio", *(("target", "stretch") if wanted else ())]
    found = [[*heads, *(f"{name}: ratio" for name in _OTHERS)]]
    for one in result["measurements"]:
        if one["mode"] == mode:
            row = [one["title"], str(one["threads"])]
            row += [duration(one["seconds"][LSTM]), duration(one["seconds"][OURS])]
            row.append(f"{one['ratios'][OURS]:.2f}")
            if wanted:
                row += [f"{one['target']:g}", f"{one['stretch']:g}"]
            found.append(row + [_ratio(one, name) for name in _OTHERS])
    return found


def terminal(result: dict[str, Any]) -> str:
    """All tables in columns."""
    return _document(result, lambda title: title, _columns)


def markdown(result: dict[str, Any]) -> str:
    """All tables in Markdown."""
    return _document(result, lambda title: f"### {title}", _markdown_table)


def summary(result: dict[str, Any]) -> str:
    """The table of a README: the ratio of each case that has a target, by number of threads."""
    counts = sorted({one["threads"] for one in result["measurements"]})
    table = [["case", *(plural(count, "thread") for count in counts)]]
    measured = {(one["case"], one["threads"]): one for one in _with_target(result)}
    for case in dict.fromkeys(case for case, _ in measured):
        ones = [measured.get((case, count)) for count in counts]
        ratios = [f"{one['ratios'][OURS]:.1f}" if one else "–" for one in ones]
        some = next(one for one in ones if one)
        table.append([some["title"], *ratios])
    return f"{_markdown_table(table)}\n\n{_about(result)}"


def missed(result: dict[str, Any]) -> list[str]:
    """One line for each measurement below its target."""
    return [
        f"below target: {one['title']}, {plural(one['threads'], 'thread')}: "
        f"{one['ratios'][OURS]:.2f} of {one['target']:g}"
        for one in _with_target(result)
        if one["ratios"][OURS] < one["target"]
    ]


def fill(path: Path, name: str, text: str) -> None:
    """Puts text between ``<!-- name -->`` and ``<!-- /name -->`` of a page, in place of what is.

    Args:
        path: The page.
        name: Of the block.
        text: What it shall hold.

    Raises:
        FileNotFoundError: If the page is not there.
        ValueError: If it has no such block, or several.
    """
    page = path.read_text("utf-8")
    block = re.compile(rf"(<!-- {re.escape(name)} -->).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
    count = len(block.findall(page))
    if count != 1:
        raise ValueError(
            message(
                f"{path} must have one block <!-- {name} --> ... <!-- /{name} -->",
                f"{count} of them",
                "mark where the numbers shall go",
            )
        )
    path.write_text(block.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", page), "utf-8")


def duration(seconds: float) -> str:
    """A time with a fitting unit.

    Example:
        >>> duration(0.0123), duration(2.5e-5)
        ('12.3 ms', '25.0 µs')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def _with_target(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in result["measurements"] if one["target"] is not None]


def _ratio(one: dict[str, Any], name: str) -> str:
    if name in one["ratios"]:
        return f"{one['ratios'][name]:.2g}"
    return str(one["left_out"].get(name, "–"))


def _about(result: dict[str, Any]) -> str:
    """Machine, versions and how it was measured, in a sentence or two."""
    computer, versions, settings = result["machine"], result["versions"], result["settings"]
    kind = computer["instruction_set"] or "no compiled kernels"
    return (
        f"{computer['processor']}, {plural(computer['cores'], 'core')}, {kind}; "
        f"anharmonic {versions['anharmonic']}, torch {versions['torch']}, "
        f"torchrecurrent {versions['torchrecurrent']}, Python {versions['python']}; "
        f"{settings['dtype']}, best of {plural(settings['rounds'], 'median')} "
        f"of {settings['repeats']}."
    )


def _document(result: dict[str, Any], heading: Any, table: Any) -> str:
    parts = [_about(result)]
    parts.append(
        f"Ratios are the time of {LSTM} by that of the layer; above 1 is faster. "
        "Python loops that take seconds are left out, with the time they would take."
    )
    for mode, title in MODES.items():
        found = rows(result, mode)
        if len(found) > 1:
            parts += [heading(title), table(found)]
    return "\n\n".join(parts)


def _markdown_table(table: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "| --- |" + " ---: |" * (len(table[0]) - 1))
    return "\n".join(lines)


def _columns(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if k else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
