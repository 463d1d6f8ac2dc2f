"""Peak memory of one training step of 128 graph layers, each case in a process of its own.

python benchmarks/graph_memory.py --json benchmarks/graph_memory.json --readme benchmarks/README.md

A graph of the size of OGB's arXiv, 64 layers deep (docs/more-than-one-machine.md):
python benchmarks/graph_memory.py --sizes 64 64 170000 1200000 --only Adjacency
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path

from harness import graph_memory
from harness.speed_report import fill

# glibc keeps freed blocks of a few megabytes and hardly ever reuses them, so a checkpoint saves
# nothing. Blocks above this size go back to the system; the variable is read when a process starts.
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", "1000000")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    usual = [128, 64, graph_memory.NODES, graph_memory.EDGES]
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=4,
        default=usual,
        metavar=("LAYERS", "WIDTH", "NODES", "EDGES"),
    )
    parser.add_argument("--only", default="", help="part of a case's title")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--readme", type=Path, help="page with a block <!-- graph-memory -->")
    arguments = parser.parse_args()
    result = graph_memory.measure(
        *arguments.sizes,
        only=arguments.only,
        threads=arguments.threads,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    text = graph_memory.table(result)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.readme is not None:
        fill(arguments.readme, "graph-memory", text)
    target = graph_memory.TARGET if arguments.sizes == usual else math.inf
    missed = [
        one["title"]
        for one in result["measurements"]
        if not one["finite"] or (one["checkpoint"] and one["peak_mb"] > target)
    ]
    print("\n".join(f"not reached: {title}" for title in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
