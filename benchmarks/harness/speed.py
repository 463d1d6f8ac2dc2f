"""Times of our layers beside what a user would pick instead, taken in turns."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from anharmonic import diagnostics
from harness import isolated
from harness.cases import CASES, ENTRANTS, LSTM, OURS, SLOW, Case, work
from harness.speed_report import plural

SLOW_SECONDS = 4.0
"""Loops in Python are left out where one turn would take longer."""
SLOW_TURNS = 2
"""Turns that loops in Python take after the one that warms up."""
STREAM_STEPS = 200
"""Steps of one turn of a stream."""
FORMAT = 3


def measure(
    cases: Sequence[Case] = CASES,
    *,
    threads: Sequence[int] = (1, 2),
    repeats: int = 7,
    rounds: int = 3,
    say: Callable[[str], None] = lambda line: None,
    begun: Mapping[str, Any] | None = None,
    save: Callable[[dict[str, Any]], None] = lambda result: None,
) -> dict[str, Any]:
    """Times all entrants on each case, each measurement in a fresh process.

    What ran before changes how long the system takes to hand out memory, and so the time of an
    LSTM. Within the process the entrants take turns; the first turn of a round
    warms up. An entrant's time is the best of the rounds' medians; only the LSTM and ours take
    part in more than the first. Garbage is collected before each round and not during it.

    Args:
        cases: What to time.
        threads: Numbers of threads, each >= 1.
        repeats: Turns that count, >= 1; the documented numbers use at least 7.
        rounds: Rounds, >= 1.
        say: Takes a line whenever a case is begun or done.
        begun: What ``save`` was given last by a measurement that was interrupted. If it was the
            same one, it is continued; if it was finished or another, all is measured anew.
        save: Takes the result so far, whenever a case is done.

    Returns:
        JSON values: ``machine``, ``versions``, ``commit``, ``date``, ``settings``, whether it is
        ``finished``, and ``measurements``, one for each case, mode and number of threads, with
        ``seconds`` and ``ratios`` by entrant (the LSTM's time by the entrant's) and the reasons
        why an entrant was ``left_out``.

    Raises:
        ValueError: If a number is below 1.

    Example:
        >>> result = measure([CASES[0].quick()], threads=[1], repeats=1, rounds=1)
        >>> [one["mode"] for one in result["measurements"]]
        ['training', 'inference']
    """
    from anharmonic.train import commit  # not needed, and slow to import, where turns are timed

    if min(repeats, rounds, *threads) < 1:
        raise ValueError(
            f"repeats, rounds and threads must be >= 1; got {repeats}, {rounds}, {threads}; pass "
            "at least 1."
        )
    todo = [(case, mode, count) for case in cases for mode in case.modes for count in threads]
    result: dict[str, Any] = {
        "format": FORMAT,
        "finished": False,
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch", "torchrecurrent"]),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "settings": {
            "repeats": repeats,
            "rounds": rounds,
            "dtype": "float32",
            "measurements": [f"{case.name} {mode} {count}" for case, mode, count in todo],
        },
        "measurements": [],
    }
    measured = result["measurements"]
    same = ("finished", "machine", "versions", "settings")
    if begun is not None and all(begun.get(name) == result[name] for name in same):
        measured.extend(begun["measurements"])
    for number, (case, mode, count) in enumerate(todo, start=1):
        title = f"[{number}/{len(todo)}] {case.title}: {mode}, {plural(count, 'thread')}"
        if number <= len(measured):
            say(f"{title}: measured before")
            continue
        say(f"{title} ...")
        seconds, left_out = isolated.run(
            case.title,
            f"{__name__}:times",
            fields=dataclasses.asdict(case),
            mode=mode,
            threads=count,
            repeats=repeats,
            rounds=rounds,
        )
        one = measurement(case, mode, count, seconds, left_out)
        measured.append(one)
        result["finished"] = number == len(todo)
        save(result)
        say(f"{title}: {one['ratios'][OURS]:.2f} times as fast as {LSTM}")
    return result


def measurement(
    case: Case,
    mode: str,
    threads: int,
    seconds: Mapping[str, float],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """One entry of the result, with its ratios.

    Args:
        case: What was timed.
        mode: How.
        threads: On how many threads.
        seconds: Time of a training step, a pass or a step of a stream, by entrant.
        left_out: Why an entrant has no time.

    Example:
        >>> times = {"nn.LSTM": 3.0, "anharmonic": 0.5}
        >>> measurement(CASES[0], "training", 1, times, {})["ratios"]
        {'nn.LSTM': 1.0, 'anharmonic': 6.0}
    """
    sizes = {
        name: getattr(case, name)
        for name in ("model", "layers", "batch", "hidden", "steps", "inputs")
    }
    wanted = mode != "inference"
    return {
        "case": case.name,
        "title": case.title,
        **sizes,
        "mode": mode,
        "threads": threads,
        "seconds": dict(seconds),
        "ratios": {name: seconds[LSTM] / value for name, value in seconds.items()},
        "left_out": dict(left_out),
        "target": case.target if wanted else None,
        "stretch": case.stretch if wanted else None,
    }


def read(path: Path) -> dict[str, Any]:
    """Reads what ``--json`` wrote.

    Raises:
        FileNotFoundError: If the file is not there.
        ValueError: If it holds something else.
    """
    try:
        result = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        result = error
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        raise ValueError(
            f"{path} must hold what python benchmarks/cpu.py --json writes; got something else; "
            f"measure again: python benchmarks/cpu.py --json {path}."
        )
    return result


def history_line(result: Mapping[str, Any]) -> str:
    """What is kept of a measurement: where, when and of what, and our ratios.

    Args:
        result: What `measure` returned.
    """
    ratios = {
        f"{one['case']} {one['mode']} {one['threads']}": round(one["ratios"][OURS], 2)
        for one in result["measurements"]
    }
    kept = {name: result[name] for name in ("commit", "date", "machine", "versions")}
    return json.dumps({**kept, "ratios": ratios})


def times(
    fields: Mapping[str, Any], mode: str, threads: int, repeats: int, rounds: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Times a case in this process.

    Args:
        fields: Those of a `Case`.
        mode: "training", "inference" or "streaming".
        threads: Threads of this process from now on.
        repeats: Turns that count.
        rounds: Rounds.

    Returns:
        Seconds by entrant, and why others have none.
    """
    case = Case(**fields)
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    length = STREAM_STEPS if mode == "streaming" else case.steps
    turns: dict[str, Callable[[], None]] = {}
    left_out = {}
    for entrant in ENTRANTS:
        turn = work(entrant, case, mode, length)
        if turn is None:
            left_out[entrant] = "not installed"
        elif entrant in SLOW and (guess := _guess(entrant, case, mode, length)) > SLOW_SECONDS:
            left_out[entrant] = f"about {guess:.0f} s"
        else:
            turns[entrant] = turn
    best = dict.fromkeys(turns, math.inf)
    for one in range(rounds):
        entrants = turns if one == 0 else {e: turns[e] for e in turns if e in (LSTM, OURS)}
        taken = take_turns(entrants, lambda number: number <= repeats)
        best |= {name: min(best[name], statistics.median(v)) for name, v in taken.items()}
    each = length if mode == "streaming" else 1
    return {name: value / each for name, value in best.items()}, left_out


def take_turns(
    turns: Mapping[str, Callable[[], None]], goes_on: Callable[[int], bool], warm_up: int = 1
) -> dict[str, list[float]]:
    """Let all take turns; loops in Python leave early.

    Args:
        turns: What to time, by name.
        goes_on: Says from the number of rounds so far whether there is another.
        warm_up: Rounds that do not count.

    Returns:
        The seconds of each turn that counts, by name.

    Example:
        >>> {name: len(v) for name, v in take_turns({"a": int}, lambda number: number < 4).items()}
        {'a': 3}
    """
    taken: dict[str, list[float]] = {}
    number = 0
    with no_garbage_collection():
        while goes_on(number):
            for name, turn in turns.items():
                if name in SLOW and number > SLOW_TURNS:
                    continue
                seconds = _seconds(turn)
                if number >= warm_up:
                    taken.setdefault(name, []).append(seconds)
            number += 1
    return taken


def _guess(entrant: str, case: Case, mode: str, length: int) -> float:
    """Seconds of a turn of a loop in Python, from a part of it."""
    part = min(length, 50)
    turn = work(entrant, case, mode, part)
    assert turn is not None
    turn()
    return _seconds(turn) * length / part


def _seconds(turn: Callable[[], None]) -> float:
    start = time.perf_counter()
    turn()
    return time.perf_counter() - start


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collects garbage before a ``with`` block and not during it, so that no turn pays for it."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
