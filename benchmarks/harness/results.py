"""Measured numbers: stored as JSON lines, shown as Markdown tables in marked blocks of pages."""

import json
import re
import statistics
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anharmonic import diagnostics
from anharmonic.train import commit, write_atomically

Result = dict[str, Any]
"""One case: its name as ``case``, what was measured, and its `environment`.

An empty ``machine`` was not recorded."""
Options = Namespace
"""What a question is given: ``quick``, and ``data`` where it reads a folder."""
Cases = dict[str, tuple[Any, ...]]
"""The function that measures each case, and its arguments, by name."""
BENCHMARKS = Path(__file__).parents[1]
RESULTS = BENCHMARKS / "results"
PICTURES = BENCHMARKS.parent / "docs" / "pictures"


def read(question: str) -> list[Result]:
    """Return the stored results of a question, in the order of the file."""
    path = RESULTS / f"{question}.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def store(question: str, result: Result) -> None:
    """Store a result, in place of an earlier one of the same case."""
    by_case = {one["case"]: one for one in read(question)} | {result["case"]: result}
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in by_case.values())
    RESULTS.mkdir(exist_ok=True)
    write_atomically(RESULTS / f"{question}.jsonl", "".join(lines))


def grouped(results: Sequence[Result], *keys: str) -> dict[tuple[Any, ...], list[Result]]:
    """Return the results of each combination of values, in the order of the results."""
    found: dict[tuple[Any, ...], list[Result]] = {}
    for one in results:
        found.setdefault(tuple(one[key] for key in keys), []).append(one)
    return found


def environment(packages: Sequence[str]) -> Result:
    """Return this machine, the versions of packages, the commit and the date of a result."""
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(packages),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def caption(results: Sequence[Result], *more: str) -> str:
    """Return one line with the machines and versions of results."""
    versions: dict[str, dict[str, None]] = {}
    for one in results:
        for name, version in one["versions"].items():
            versions.setdefault(name, {})[version] = None
    for found in versions.values():
        if len(found) > 1:  # some results did not need the package
            found.pop("not installed", None)
    said = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions.items())
    machines = dict.fromkeys(_machine(**one["machine"]) for one in results if one["machine"])
    return "; ".join(part for part in (*machines, said, *more) if part) + "."


def _machine(processor: str, cores: int, instruction_set: str | None = "", **_: Any) -> str:
    kernels = "no compiled kernels" if instruction_set is None else instruction_set
    return ", ".join(part for part in (processor, plural(cores, "core"), kernels) if part)


def write_pages(tables: Mapping[str, str], root: Path = BENCHMARKS.parent) -> None:
    """Write each table into its block; of all pages, one has it, once."""
    pages = [page for folder in ("benchmarks", "docs") for page in root.glob(f"{folder}/*.md")]
    for name, text in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        block = re.compile(f"(?s)(?<={start}).*?(?={end})")
        found = [page for page in pages for _ in block.finditer(page.read_text("utf-8"))]
        if len(found) != 1:
            raise ValueError(
                f"Pages must have one block {start.strip()} ... {end}; got {len(found)}; "
                "mark where the table belongs."
            )
        page = block.sub(lambda _, text=text: f"{text}\n", found[0].read_text("utf-8"))
        found[0].write_text(page, "utf-8")


def markdown_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown, heads first, with so many columns aligned to the left."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * left + " ---: |" * (len(rows[0]) - left))
    return "\n".join(lines)


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return mean ± standard deviation; of one value only that."""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{deviation}"


def duration(seconds: float) -> str:
    """Return a time with a fitting unit, which a line of a page never separates from it."""
    if seconds >= 1:
        return f"{seconds:.2f}\N{NO-BREAK SPACE}s"
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    return f"{value:.1f}\N{NO-BREAK SPACE}{unit}"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
