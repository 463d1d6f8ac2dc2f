"""Answer a question about speed, memory, size or accuracy with numbers of this machine.

    python benchmarks/bench.py QUESTION

measures every case of a question, stores each as a line of results/QUESTION.jsonl in place of the
earlier one, prints the tables and writes them into the pages.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import results

# Each is a module here with cases(options), what measures each case, by name; tables(results),
# Markdown of each table, which stands in a block of that name on a page; where a result needs more
# than torch, PACKAGES, whose versions it says; and for a picture, PICTURE and draw(results).
QUESTIONS = (
    "cpu", "bfloat16", "small_batches", "compiled", "memory", "graphs", "graph_transfer",
    "platonov", "learning", "learning_cogscale", "seeds", "equal_time", "ucr", "multivariate",
    "early", "export", "microcontroller", "scaling", "gpu",
)  # fmt: skip


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
    name = options.question
    question = importlib.import_module(name)
    found = [] if options.tables else measure(question, options)
    if not options.quick:
        found = results.read(name)
    tables = question.tables(found)
    print("\n\n".join(tables.values()))
    if not options.quick:
        results.write_pages(tables)
        if hasattr(question, "draw"):
            picture = results.PICTURES / question.PICTURE
            question.draw(found).savefig(picture, dpi=150, bbox_inches="tight")
    return 0


def measure(question, options: argparse.Namespace) -> list[results.Result]:
    name, found = options.question, []
    cases = question.cases(options)
    stored = {one["case"] for one in results.read(name)} if options.missing else set()
    wanted = [case for case in cases if options.only in case and case not in stored]
    environment = results.environment(["torch", *getattr(question, "PACKAGES", ())])
    for number, case in enumerate(wanted, start=1):
        print(f"[{number}/{len(wanted)}] {case}", file=sys.stderr, flush=True)
        measured, *given = cases[case]
        found.append({"case": case, **measured(*given), **environment})
        if not options.quick:
            results.store(name, found[-1])
    return found


if __name__ == "__main__":
    raise SystemExit(main())
