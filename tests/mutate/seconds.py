"""A plugin of pytest that stores what each test that passes takes."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)
_passed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds what the phases of a test take."""
    _seconds[report.nodeid] += report.duration
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes them, once: not in the worker processes."""
    if not hasattr(session.config, "workerinput"):
        passed = {name: _seconds[name] for name in sorted(_passed)}
        path = Path(os.environ["ANHARMONIC_SECONDS"])
        path.write_text(json.dumps(passed), encoding="utf-8")
