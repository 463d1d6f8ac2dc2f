"""A function called in a fresh process, where nothing that ran before it can change its numbers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

_CODE = "from harness.isolated import child; child()"


def run(title: str, function: str, **kwargs: Any) -> Any:
    """Calls a function in a process of its own.

    Args:
        title: What an error calls it.
        function: Module and name, as "package.module:function".
        **kwargs: What JSON can write.

    Returns:
        What the function returned, as JSON reads it.

    Raises:
        RuntimeError: If the process fails; its last words are in the message.

    Example:
        >>> run("a list", "json:dumps", obj=[1, 2])
        '[1, 2]'
    """
    done = subprocess.run(
        [sys.executable, "-c", _CODE, function, json.dumps(kwargs)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{title}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def child() -> None:
    """Makes the call on the command line and prints what it returned."""
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    print(json.dumps(function(**json.loads(sys.argv[2]))))
