"""``anharmonic figure ID``: measure figures of the papers and draw them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from anharmonic._checks import require
from anharmonic.cli import fields_of, run_command
from anharmonic.pages import save
from anharmonic.train import RunEnvironment
from anharmonic_papers.figures.base import measure, path_of, picture, terminal
from anharmonic_papers.figures.registry import figure, list_figures
from anharmonic_papers.report.compare import results_folder

PROG = "anharmonic figure"
Environment = Annotated[
    RunEnvironment,
    fields_of(
        RunEnvironment, file=None, results=None, start_from=None, diagnose=(), diagnose_every=1
    ),
]


def run(words: Sequence[str]) -> int:
    """Run the command with the arguments after ``anharmonic figure``; return the exit code."""
    return run_command(draw, words, PROG)


def draw(
    ids: Positional[tuple[str, ...]],
    environment: Environment,
    results: Path | None = None,
    pictures: Path = Path("pictures"),
    form: Literal["svg", "png"] = "svg",
    dry_run: bool = False,
) -> int:
    """Measure and draw figures of the papers, training models where needed.

    Args:
        ids: Names of figures, such as g2-mad. `anharmonic list figures` shows all.
        environment: Where runs are trained.
        results: Folder of the numbers, ID.json. Figures with numbers are not measured again.
            Default: papers/results of a checkout, else results.
        pictures: Folder of the pictures, ID.svg or ID.png.
        form: File format of the pictures.
        dry_run: List what would be measured, and stop.

    Raises:
        ValueError: If a name is wrong.
    """
    known = ", ".join(list_figures())
    require(bool(ids), f"IDs of {PROG}", "nothing", "names of figures", f"known are {known}")
    folder = results or results_folder()
    for one in [figure(name) for name in dict.fromkeys(ids)]:
        if dry_run:
            state = "has a result" if path_of(one, folder).exists() else "would be measured"
            print(f"{one.id}: {one.title} ({one.source})  {state}")
            continue
        measured = measure(one, folder, environment)
        path = pictures / f"{one.id}.{form}"
        save(picture(one, measured), path)
        print(f"{terminal(one, measured)}\nwrote {path}\n", flush=True)
    return 0
