"""A function called in a fresh process, where nothing that ran before it can change its numbers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

_CODE = "from harness.isolated import child; child()"


def run(function: str, variables: dict[str, str] | None = None, **kwargs: Any) -> Any:
    """Call a function, "package.module:function", in a process of its own.

    Arguments and what it returns pass through JSON. ``variables`` are added to the environment. If
    the process fails, its last line is in the message of a RuntimeError.
    """
    done = subprocess.run(
        [sys.executable, "-c", _CODE, function, json.dumps(kwargs)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | (variables or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{function}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def child() -> None:
    """Make the call on the command line and print what it returned."""
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    print(json.dumps(function(**json.loads(sys.argv[2]))))
