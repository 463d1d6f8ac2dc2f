"""Peak memory of one training step on long sequences, each in a process of its own.

python benchmarks/memory.py --json benchmarks/memory.json --readme benchmarks/README.md
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from harness import memory
from harness.speed_report import fill


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--readme", type=Path, help="page with a block <!-- memory -->")
    parser.add_argument("--quick", action="store_true", help="20 steps each, to try it")
    arguments = parser.parse_args()
    cases = list(memory.CASES)
    if arguments.quick:
        cases = [dataclasses.replace(case, steps=20) for case in cases]
    result = memory.measure(
        cases, threads=arguments.threads, say=lambda line: print(line, file=sys.stderr, flush=True)
    )
    text = memory.table(result)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.readme is not None:
        fill(arguments.readme, "memory", text)
    missed = [
        one["title"]
        for one in result["measurements"]
        if not one["finite"] or one["peak_mb"] > (one["target"] or float("inf"))
    ]
    print("\n".join(f"not reached: {title}" for title in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
