"""A function called in a fresh process, where nothing that ran before it can change its numbers."""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any
from unittest import mock


def run(function: Callable[..., Any], *given: Any, variables: Mapping[str, str] | None = None):
    """Call a function of a module in a process of its own, with more environment variables."""
    fresh = multiprocessing.get_context("spawn")
    with mock.patch.dict(os.environ, variables or {}), ProcessPoolExecutor(1, fresh) as pool:
        return pool.submit(function, *given).result()
