"""Measured numbers as tables, in the terminal and in Markdown, and in marked blocks of a page."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cases import GRU, LSTM, OURS, PEER, REFERENCE

MODES = {
    "training": "Training step (forward and backward)",
    "inference": "Inference (forward under no_grad)",
    "streaming": "Streaming, one step",
}
_OTHERS = (GRU, REFERENCE, PEER)
_RATIOS = (
    f"Ratios are the time of {LSTM} by that of the layer; above 1 is faster. Python loops that "
    "take seconds are left out, with the time they would take."
)


def rows(result: Mapping[str, Any], mode: str) -> list[list[str]]:
    """The table of one mode, its heads first: times of the LSTM and ours, ratios of all.

    Args:
        result: What `speed.measure` returns.
        mode: "training", "inference" or "streaming".
    """
    wanted = mode != "inference"
    heads = ["case", "threads", LSTM, OURS, "ratio", *(("target", "stretch") if wanted else ())]
    table = [[*heads, *(f"{name}: ratio" for name in _OTHERS)]]
    for one in result["measurements"]:
        if one["mode"] == mode:
            row = [one["title"], str(one["threads"])]
            row += [duration(one["seconds"][LSTM]), duration(one["seconds"][OURS])]
            row.append(f"{one['ratios'][OURS]:.2f}")
            row += [f"{one['target']:g}", f"{one['stretch']:g}"] if wanted else []
            for name in _OTHERS:
                missing = one["left_out"].get(name, "–")
                row.append(f"{one['ratios'][name]:.2g}" if name in one["ratios"] else missing)
            table.append(row)
    return table


def markdown(result: Mapping[str, Any]) -> str:
    """All tables of `speed.measure`."""
    parts = [about(result), _RATIOS]
    for mode, title in MODES.items():
        table = rows(result, mode)
        parts += [f"### {title}", markdown_table(table)] if len(table) > 1 else []
    return "\n\n".join(parts)


def summary(result: Mapping[str, Any]) -> str:
    """The table of a README: the ratio of each case that has a target, by number of threads."""
    counts = sorted({one["threads"] for one in result["measurements"]})
    table = [["case", *(plural(count, "thread") for count in counts)]]
    measured = {
        (one["title"], one["threads"]): f"{one['ratios'][OURS]:.1f}"
        for one in result["measurements"]
        if one["target"] is not None
    }
    for title in dict.fromkeys(title for title, _ in measured):
        table.append([title, *(measured.get((title, count), "–") for count in counts)])
    return f"{markdown_table(table)}\n\n{about(result)}"


def missed(result: Mapping[str, Any]) -> list[str]:
    """One line for each measurement below its target."""
    return [
        f"below target: {one['title']}, {plural(one['threads'], 'thread')}: "
        f"{one['ratios'][OURS]:.2f} of {one['target']:g}"
        for one in result["measurements"]
        if one["target"] is not None and one["ratios"][OURS] < one["target"]
    ]


def about(result: Mapping[str, Any]) -> str:
    """Machine and versions in a sentence, and how `speed.measure` measured."""
    computer, versions = result["machine"], result["versions"]
    kind = computer["instruction_set"] or "no compiled kernels"
    cores = plural(computer["cores"], "core")
    said = ", ".join(f"{name} {version}" for name, version in versions.items())
    text = f"{computer['processor']}, {cores}, {kind}; {said}"
    if "rounds" in (settings := result.get("settings", {})):
        rounds = plural(settings["rounds"], "median")
        text += f"; {settings['dtype']}, best of {rounds} of {settings['repeats']}"
    return f"{text}."


def markdown_table(table: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its first row the heads.

    Example:
        >>> print(markdown_table([["case", "ratio"], ["LEM", "2"]]))
        | case | ratio |
        | --- | ---: |
        | LEM | 2 |
    """
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "| --- |" + " ---: |" * (len(table[0]) - 1))
    return "\n".join(lines)


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
            f"{path} must have one block <!-- {name} --> ... <!-- /{name} -->; got {count} of "
            "them; mark where the numbers shall go."
        )
    path.write_text(block.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", page), "utf-8")


def parser(about: str, block: str) -> argparse.ArgumentParser:
    """The options that every benchmark has.

    Args:
        about: The docstring of the script, of which the first line is shown.
        block: Of the pages that ``--readme`` names.
    """
    made = argparse.ArgumentParser(description=about.splitlines()[0])
    made.add_argument("--json", type=Path, help="file for the numbers")
    made.add_argument("--markdown", type=Path, help="file for the tables")
    made.add_argument(
        "--readme", type=Path, nargs="+", default=[], help=f"pages with a block <!-- {block} -->"
    )
    made.add_argument("--quick", action="store_true", help="small sizes; the numbers say nothing")
    made.set_defaults(block=block)
    return made


def write(arguments: argparse.Namespace, result: Any, text: str, short: str = "") -> None:
    """Prints the tables, and writes the files that the options of `parser` name.

    Args:
        arguments: What the parser gave.
        result: The numbers.
        text: The tables.
        short: What goes into pages; the tables if empty.
    """
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(text + "\n", "utf-8")
    for page in arguments.readme:
        fill(page, arguments.block, short or text)


def duration(seconds: float) -> str:
    """A time with a fitting unit.

    Example:
        >>> duration(0.0123), duration(2.5e-5)
        ('12.3 ms', '25.0 µs')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def plural(count: int, word: str) -> str:
    """A count and its word.

    Example:
        >>> plural(1, "thread"), plural(2, "thread")
        ('1 thread', '2 threads')
    """
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
