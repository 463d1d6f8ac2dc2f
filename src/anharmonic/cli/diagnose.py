"""``anharmonic diagnose RUN``: looks into a trained run; numbers and one page with pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anharmonic._checks import message
from anharmonic.cli.options import field_options, parse

PROG = "anharmonic diagnose"


@dataclass(frozen=True)
class Look:
    """Where things are."""

    html: Path | None = None
    """The page to write. Default: diagnosis.html in the run's folder."""
    data_dir: Path | None = None
    """Folder of the data sets. Default: ANHARMONIC_DATA, else a per-user cache."""
    file: Path | None = None
    """The data file that a run on your own file was trained on."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic diagnose``.

    Returns:
        The exit code.

    Raises:
        ValueError: If an option is wrong or a file is damaged.
        FileNotFoundError: If the folder holds no finished run, or data are missing.
    """
    folders = [word for word in words[:1] if not word.startswith("-")]
    if not folders and not set(words) & {"-h", "--help"}:
        raise ValueError(
            message(
                f"{PROG} takes the folder of a run first",
                " ".join(words) or "nothing",
                f"for example {PROG} runs/adding-LEM-0123456789ab, the folder that train named",
            )
        )
    about = "Looks into a trained run: prints numbers, writes a page with pictures."
    values = parse(words[len(folders) :], {"look": field_options(Look)}, PROG, about, "RUN_FOLDER")
    from anharmonic.train.diagnosis import load, sections, terminal, write_page

    trained = load(folders[0], values["data_dir"], values["file"])
    print(trained.title)
    parts = []
    for part in sections(trained, lambda name: print(f"{name} ...", file=sys.stderr, flush=True)):
        print(f"\n{terminal(part)}", flush=True)
        parts.append(part)
    path = values["html"] or trained.folder / "diagnosis.html"
    write_page(path, trained, parts)
    print(f"\nwrote {path}")
    return 0
