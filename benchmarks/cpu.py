r"""How fast the layers are on this CPU, beside ``torch.nn.LSTM`` and others.

python benchmarks/cpu.py --json benchmarks/cpu.json --markdown benchmarks/cpu.md \
    --readme benchmarks/README.md --history
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import speed, speed_report
from harness.cases import CASES

HISTORY = Path(__file__).parent / "history" / "cpu.jsonl"
"""One line for every commit and machine that was measured."""


def main(words: Sequence[str] | None = None) -> int:
    parser = speed_report.parser(__doc__, "bench")
    names = {case.name: case for case in CASES}
    parser.add_argument("--cases", nargs="+", choices=names, default=list(names), metavar="NAME")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=7, help="turns of which the median is taken")
    parser.add_argument("--rounds", type=int, default=3, help="medians of which the best is taken")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    parser.add_argument("--history", action="store_true", help=f"add a line to {HISTORY.name}")
    arguments = parser.parse_args(words)
    file = arguments.json

    def save(result: dict[str, Any]) -> None:
        if file is not None:
            file.write_text(json.dumps(result, indent=1) + "\n", "utf-8")

    if arguments.from_json is not None:
        result = speed.read(arguments.from_json)
    else:
        cases = [names[name] for name in arguments.cases]
        result = speed.measure(
            [case.quick() for case in cases] if arguments.quick else cases,
            threads=arguments.threads,
            repeats=arguments.repeats,
            rounds=arguments.rounds,
            say=lambda line: print(line, file=sys.stderr, flush=True),
            begun=speed.read(file) if file is not None and file.exists() else None,
            save=save,
        )
    text, short = speed_report.markdown(result), speed_report.summary(result)
    speed_report.write(arguments, result, text, short)
    print("\n".join(speed_report.missed(result)))
    if arguments.history:
        HISTORY.parent.mkdir(exist_ok=True)
        with HISTORY.open("a", encoding="utf-8") as lines:
            lines.write(speed.history_line(result) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
