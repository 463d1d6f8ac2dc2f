"""A function called in a fresh process, where nothing that ran before it can change its numbers."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

_CODE = "from harness.apart import child; child()"


def call(what: str, function: str, **arguments: Any) -> Any:
    """Calls a function in a process of its own.

    Args:
        what: Its name in an error.
        function: Module and name, as "package.module:function".
        **arguments: What JSON can write.

    Returns:
        What the function returned, as JSON reads it.

    Raises:
        RuntimeError: If the process fails; its last words are in the message.

    Example:
        >>> call("a list", "json:dumps", obj=[1, 2])
        '[1, 2]'
    """
    words = json.dumps({"function": function, "arguments": arguments})
    done = subprocess.run(
        [sys.executable, "-c", _CODE, words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{what}: {last[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def child() -> None:
    """Makes the call on the command line and prints what it returned."""
    words = json.loads(sys.argv[1])
    module, _, name = words["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    print(json.dumps(function(**words["arguments"])))
