"""Answer a question about speed, memory, size or accuracy with numbers of this machine.

    python benchmarks/bench.py QUESTION

measures every case of a question, stores each as a line of results/QUESTION.jsonl in place of the
earlier one, prints the tables and writes them into the pages.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness import results

QUESTIONS = (
    "cpu", "limits", "small_batches", "bfloat16", "compiled", "memory", "graphs", "learning",
    "graph_transfer", "ucr", "seeds", "equal_time", "early", "multivariate", "recipe", "export",
    "tiny", "microcontroller", "scaling", "gpu",
)  # fmt: skip


class Question(Protocol):
    """What a module of a question has; ``draw(results)`` as well where a page has a picture."""

    PACKAGES: Sequence[str]
    """Packages whose versions each result says."""
    PAGES: dict[str, Sequence[str]]
    """Pages by name of a block."""

    def cases(self, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
        """What measures each case, by its name."""

    def tables(self, results: list[results.Result]) -> dict[str, str]:
        """Markdown for each block."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", choices=QUESTIONS)
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--missing", action="store_true", help="only cases without a result")
    parser.add_argument("--tables", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--quick", action="store_true", help="small sizes; nothing is written")
    parser.add_argument("--data", type=Path, help="folder of data sets (learning, ucr, early)")
    options = parser.parse_args(argv)
    question: Any = importlib.import_module(options.question)
    return answer(question, options)


def answer(question: Question, options: argparse.Namespace) -> int:
    """Measure, store, print and write the tables of a question; return the exit code."""
    name, found = options.question, []
    if not options.tables:
        cases = question.cases(options)
        stored = {one["case"] for one in results.read(name)} if options.missing else set()
        wanted = [case for case in cases if options.only in case and case not in stored]
        environment = results.environment(question.PACKAGES)
        for number, case in enumerate(wanted, start=1):
            print(f"[{number}/{len(wanted)}] {case}", file=sys.stderr, flush=True)
            found.append({"case": case, **cases[case](), **environment})
            if not options.quick:
                results.store(name, found[-1])
    if options.quick:
        print("\n\n".join(question.tables(found).values()))
        return 0
    tables = question.tables(results.read(name))
    print("\n\n".join(tables.values()))
    results.write_pages({block: tables[block] for block in question.PAGES}, question.PAGES)
    if hasattr(question, "draw"):
        question.draw(results.read(name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
