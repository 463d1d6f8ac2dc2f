"""``anharmonic figure ID``: measures figures of the documents and draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anharmonic._checks import message
from anharmonic.cli import field_options, parse
from anharmonic_papers.report.places import results_folder

PROG = "anharmonic figure"


@dataclass(frozen=True)
class Draw:
    """What to write."""

    results: Path | None = None
    """Folder of the numbers, ID.json; what is there is drawn and not measured again."""
    pictures: Path = Path("pictures")
    """Folder of the pictures, ID.svg or ID.png."""
    form: Literal["svg", "png"] = "svg"
    """Form of the pictures."""
    dry_run: bool = False
    """List what would be done and stop."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic figure``.

    Returns:
        The exit code.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    from anharmonic.pages import save
    from anharmonic.train import RunEnvironment
    from anharmonic_papers.figures.base import measure, path_of, terminal
    from anharmonic_papers.figures.drawing import picture
    from anharmonic_papers.figures.registry import figure as find
    from anharmonic_papers.figures.registry import list_figures

    first = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    ids, flags = list(dict.fromkeys(words[:first])), words[first:]
    if not ids and not set(flags) & {"-h", "--help"}:
        known = ", ".join(list_figures())
        raise ValueError(
            message(
                f"{PROG} takes the names of figures first",
                " ".join(words) or "nothing",
                f"for example {PROG} g2-mad; known are {known}",
            )
        )
    left_out = ("file", "results", "diagnose", "diagnose_every")
    groups = {"figure": field_options(Draw), "environment": field_options(RunEnvironment, left_out)}
    about = "Measures figures of the documents, training where they need it, and draws them."
    values = parse(flags, groups, PROG, about, "ID [ID ...]")
    environment = RunEnvironment(**{o.name: values[o.name] for o in groups["environment"]})
    folder: Path = values["results"] or results_folder()
    for figure in [find(name) for name in ids]:
        if values["dry_run"]:
            done = path_of(figure, folder).exists()
            state = "has a result" if done else "would be measured"
            print(f"{figure.id}: {figure.title} ({figure.source})  {state}")
            continue
        found = measure(figure, folder, environment)
        path = values["pictures"] / f"{figure.id}.{values['form']}"
        save(picture(figure, found), path)
        print(f"{terminal(figure, found)}\nwrote {path}\n", flush=True)
    return 0
