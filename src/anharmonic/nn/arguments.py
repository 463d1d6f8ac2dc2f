"""Arguments of constructors, by name."""

from __future__ import annotations

import inspect
import re


def constructor_arguments(cls: type, *, eval_str: bool = False) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor by name.

    ``**kwargs`` stand for the arguments of the base class, and of a network for those of its
    ``block_type`` that its ``block_options`` name.

    Args:
        cls: The class.
        eval_str: Whether annotations that are text are evaluated.

    Example:
        >>> import anharmonic as ah
        >>> list(constructor_arguments(ah.GRU))[:2]
        ['input_size', 'hidden_size']
    """
    arguments: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base):
            _, *given = inspect.signature(
                vars(base)["__init__"], eval_str=eval_str
            ).parameters.values()
            named = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            arguments.update({p.name: p for p in named if p.name not in arguments})
            if not any(p.kind is p.VAR_KEYWORD for p in given):
                break
    block_options = getattr(cls, "block_options", ())
    if block_options:
        known = constructor_arguments(cls.block_type, eval_str=eval_str)  # type: ignore[attr-defined]
        arguments.update({name: known[name] for name in block_options})
    return arguments


def argument_descriptions(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and of its base classes say of each argument.

    Args:
        cls: The class; docstrings are in Google form.

    Example:
        >>> import anharmonic as ah
        >>> argument_descriptions(ah.LEM)["input_size"]
        'Features per step, F >= 1.'
    """
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = inspect.cleandoc(vars(base).get("__doc__") or "").partition("\nArgs:\n")[2]
        entries = re.split(
            r"^ {4}(\*{0,2}\w+): ", re.split(r"\n\n|\n(?=\S)", section)[0], flags=re.M
        )
        for name, text in zip(entries[1::2], entries[2::2], strict=True):
            texts[name] = " ".join(text.split())
    return texts
