"""What a trained run does, as numbers and as one self-contained page with pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anharmonic import __version__, pages
from anharmonic._checks import message
from anharmonic.diagnostics.measures import Probe
from anharmonic.nn.store import from_pretrained
from anharmonic.train import folder as folders
from anharmonic.train.files import write_atomically
from anharmonic.train.probes import probe_of, read_diagnostics
from anharmonic.train.results import Result
from anharmonic.train.run import RunEnvironment


@dataclass(frozen=True)
class Trained:
    """A finished run, ready to be looked at.

    Args:
        folder: Its folder.
        result: Its result.
        model: Its model.
        probe: Validation data.
        log: What was measured while it trained.
    """

    folder: Path
    result: Result
    model: Any
    probe: Probe
    log: list[dict[str, Any]]

    @property
    def title(self) -> str:
        """Model, task and name."""
        run = self.result.run
        return f"{run.model} on {run.task}, run {run.hash}"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Args:
        title: Its heading.
        numbers: Names and values, for the terminal and the page.
        picture: A figure of matplotlib; None where numbers say all.
        about: What is shown, in a sentence or two.
    """

    title: str
    numbers: dict[str, str]
    picture: Any
    about: str


def load(folder: str | Path, data_dir: Path | None = None, file: Path | None = None) -> Trained:
    """Reads a finished run and the validation data of its task.

    Args:
        folder: The run's folder.
        data_dir: Folder of the data sets, as in ``RunEnvironment``.
        file: The data file of a run on the task "file".

    Raises:
        FileNotFoundError: If the folder holds no finished run, or its data are missing.
        ValueError: If a file is damaged.
    """
    folder = Path(folder)
    missing = [n for n in (folders.RESULT, folders.BEST) if not (folder / n).exists()]
    if missing:
        began = (folder / folders.RUN).is_file()
        held = ", ".join(sorted(p.name for p in folder.iterdir())) if folder.is_dir() else "nothing"
        raise FileNotFoundError(
            message(
                f"{folder} must be the folder of a finished run, with {' and '.join(missing)}",
                held or "an empty folder",
                f"finish the run: anharmonic train --run {folder / folders.RUN}"
                if began
                else "pass the folder that `anharmonic train` named",
            )
        )
    result = Result.from_json((folder / folders.RESULT).read_text(encoding="utf-8"))
    run = result.run
    if run.task == "file" and file is None:
        raise ValueError(
            message(
                "a run on your own file needs that file",
                f"{folder} without it",
                "add --file PATH with the file it was trained on",
            )
        )
    task = run.make_task(RunEnvironment(data_dir=data_dir, file=file))
    probe = probe_of(task.loaders(run.seed, run.batch_size).valid, task.loss)
    model = from_pretrained(folder / folders.BEST).eval()
    return Trained(folder, result, model, probe, read_diagnostics(folder / folders.DIAGNOSTICS))


def terminal(section: Section) -> str:
    """A section's numbers as plain text.

    Args:
        section: The section.
    """
    return pages.text(
        section.title,
        pages.grid((), ((f"  {name}", value) for name, value in section.numbers.items())),
    )


def write_page(path: Path, trained: Trained, parts: list[Section]) -> None:
    """Writes one HTML page that needs nothing else.

    Args:
        path: The file; its folder is made.
        trained: The run.
        parts: Its sections.

    Raises:
        OSError: If it cannot be written.
    """
    result = trained.result
    about = f"{result.hardware}, {result.device}; {result.started[:10]}; anharmonic {__version__}"
    shown = [
        replace(part, picture=part.picture and pages.image(part.picture, part.about))
        for part in parts
    ]
    page = pages.render(
        pages.TEMPLATES / "diagnosis.html.jinja",
        title=trained.title,
        about=about,
        sections=shown,
        run=result.run.to_json(indent=1),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)
