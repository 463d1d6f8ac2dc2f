"""What processes cost beside the trainings in them: --jobs and torchrun.

python benchmarks/processes.py

The same trainings of LEM on digits in one process, and in several; each case is a command
in a folder of its own. CPU seconds are those of all its processes; what its wall seconds say
depends on what else the machine does.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = ["--threads", "1", "--no-progress"]


def cases(epochs, rows):
    """The commands by name."""
    learn = ["--hidden-size", "64", "--epochs", str(epochs), *THREADS]
    train = ["-m", "anharmonic", "train", "lem", "digits", *learn]
    seeds = [str(seed) for seed in range(rows)]
    compare = ["-m", "anharmonic", "compare", "digits", "--models", "lem", "--seeds", *seeds]
    compare += learn
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *train]
    return {
        "one training, one process": train,
        "one training, torchrun with two processes": [*torchrun, "--devices", "2"],
        f"{rows} trainings, --jobs 1": compare,
        f"{rows} trainings, --jobs 2": [*compare, "--jobs", "2"],
    }


def seconds(words):
    """CPU seconds of a command and of all that it starts, and wall seconds."""
    with tempfile.TemporaryDirectory() as folder:
        before, began = os.times(), time.monotonic()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
        )
        after, wall = os.times(), time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    user, system = (
        getattr(after, name) - getattr(before, name)
        for name in ("children_user", "children_system")
    )
    return user + system, wall


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a case's name")
    arguments = parser.parse_args()
    print("| what | CPU seconds | wall seconds |\n| --- | ---: | ---: |", flush=True)
    for name, words in cases(arguments.epochs, arguments.rows).items():
        if arguments.only in name:
            found = [seconds(words) for _ in range(arguments.repeats)]
            cpu, wall = (statistics.median(column) for column in zip(*found, strict=True))
            print(f"| {name} | {cpu:.1f} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
