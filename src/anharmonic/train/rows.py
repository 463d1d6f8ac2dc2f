"""Many runs, such as the rows of a table: what has a result is not repeated, a failure stops none.

Several processes may work on the same rows: a run that another one trains is left to it.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from anharmonic.train.fit import fit
from anharmonic.train.folder import RunLockedError
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment

# Seconds from one line about a training to the next.
_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Row:
    """A run and what it is called among others.

    Args:
        name: The name, for people.
        run: The run.
    """

    name: str
    run: Run


def without_results(rows: Iterable[Row], results: Iterable[Result]) -> list[Row]:
    """The rows that are still to be trained; of rows of one run the first.

    Args:
        rows: The rows.
        results: The results that are known.

    Example:
        >>> rows = [Row("a", Run("adding", "LEM")), Row("b", Run("adding", "LEM", seed=1))]
        >>> [row.name for row in without_results([*rows, Row("c", rows[0].run)], [])]
        ['a', 'b']
    """
    done = {result.hash for result in results}
    missing: dict[str, Row] = {}
    for row in rows:
        if row.run.hash not in done:
            missing.setdefault(row.run.hash, row)
    return list(missing.values())


def fit_rows(
    rows: Sequence[Row],
    environment: RunEnvironment,
    *,
    say: Callable[[str], None] = print,
    describe: Callable[[Exception], str] = str,
    debug: bool = False,
) -> list[str]:
    """Trains rows one after the other; start again after an interruption to go on.

    Args:
        rows: The rows.
        environment: Where they are trained; each adds a line to its results file.
        say: Takes a line about each row and its result.
        describe: How an error is said.
        debug: Whether the trace of an error is printed on standard error.

    Returns:
        A line for each row that failed.
    """
    failed = []
    for number, row in enumerate(rows, start=1):
        say(f"[{number}/{len(rows)}] {row.name}")
        try:
            # Where nothing else shows that a long training goes on, a line does now and then.
            told = None if environment.progress else _teller(row.run, say)
            result = fit(row.run, environment, told=told)
        except RunLockedError:
            say("    another process trains it; it is left to that one")
        except Exception as error:
            failed.append(f"{row.name}: {describe(error)}")
            say(f"    failed: {describe(error)}")
            if debug:
                traceback.print_exc()
        else:
            say(
                f"    test {result.metric} {result.test:.6g}, {result.parameters} parameters, "
                f"{result.seconds:.1f} s"
            )
    return failed


def _teller(run: Run, say: Callable[[str], None]) -> Callable[[int, float], None]:
    """Says now and then how far a training is."""
    began = said = time.monotonic()

    def told(epoch: int, valid: float) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _BETWEEN_LINES and epoch < run.epochs:
            said = now
            reached = "" if math.isnan(valid) else f", validation {valid:.4g}"
            say(f"    epoch {epoch} of {run.epochs}{reached}, {now - began:.0f} s")

    return told
