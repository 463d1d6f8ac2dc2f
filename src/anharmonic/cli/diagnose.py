"""``anharmonic diagnose RUN``: analyse a trained run, as numbers and a page with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tyro.conf import Positional

from anharmonic import pages
from anharmonic._checks import require
from anharmonic.cli.flags import run_command
from anharmonic.train.diagnosis import in_short, load, sections, terminal, write_page
from anharmonic.train.watching import say


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic diagnose`` with these arguments and return the exit code."""
    return run_command(diagnose, words, "anharmonic diagnose")


def diagnose(
    run: Positional[Path],
    html: Path | None = None,
    data_dir: Path | None = None,
    file: Path | None = None,
) -> int:
    """Examine a trained run: print numbers and write an HTML page with charts.

    Args:
        run: Folder of a finished run, such as runs/adding-LEM-0123456789ab.
        html: HTML page to write. Default: diagnosis.html in the run's folder.
        data_dir: Folder of the data sets. Default: ANHARMONIC_DATA, or a per-user cache.
        file: Data file of a run that was trained on your own file.

    Raises:
        ValueError: If a file is damaged.
        FileNotFoundError: If the folder holds no finished run, or data are missing.
    """
    if html is not None:
        require(not html.is_dir(), "--html", str(html), "a file", "name a file in that folder")
    trained = load(run, data_dir, file)
    print(trained.title)
    parts = []
    for part in sections(trained, lambda name: say(f"{name} ...")):
        print(f"\n{terminal(part)}", flush=True)
        parts.append(part)
    print(f"\n{pages.text('In short', pages.bullets(in_short(parts)))}")
    path = html or trained.folder / "diagnosis.html"
    write_page(path, trained, parts)
    print(f"\nwrote {path}")
    return 0
