"""Docstrings of models: what a class leaves out is taken from its base classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

_ORDER = ("Args", "Attributes", "Shape", "Raises", "Note", "Example", "References")
_INHERITED = {"Shape", "Raises"}


def complete(cls: type, arguments: Iterable[str], *others: type) -> None:
    """Fills a class's docstring up with what its base classes say of the same things.

    Arguments that it does not describe, and a missing section "Shape" or "Raises", come from the
    nearest base class that has them. A class without a docstring is left as it is.

    Args:
        cls: The class; its docstring is in Google form.
        arguments: The arguments of its constructor, in their order.
        *others: Classes to ask after its base classes, such as one that it wraps.

    Example:
        >>> class Base:
        ...     '''A layer.
        ...
        ...     Args:
        ...         size: Neurons.
        ...     '''
        >>> class Layer(Base):
        ...     '''One with a step.
        ...
        ...     Args:
        ...         dt: Step size.
        ...     '''
        >>> complete(Layer, ["size", "dt"])
        >>> print(Layer.__doc__)
        One with a step.
        <BLANKLINE>
        Args:
            size: Neurons.
            dt: Step size.
    """
    if not cls.__doc__:
        return
    summary, own = _sections(cls.__doc__)
    described = _entries(own)
    sections, texts = dict(own), dict(described)
    for base in (*cls.__mro__[1:], *others):
        _, inherited = _sections(vars(base).get("__doc__") or "")
        texts = _entries(inherited) | texts
        sections = {name: inherited[name] for name in _INHERITED & inherited.keys()} | sections
    known = [name for name in arguments if name in texts]
    known += [name for name in described if name not in known]
    if known:
        sections["Args"] = "".join(f"    {name}: {texts[name]}" for name in known) + "\n"
    places = sorted(sections, key=_ORDER.index)
    cls.__doc__ = "".join([summary, *(f"{name}:\n{sections[name]}" for name in places)]).rstrip()


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """What comes before the first section, and the sections by name."""
    summary, *parts = re.split(rf"^({'|'.join(_ORDER)}):\n", inspect.cleandoc(doc), flags=re.M)
    sections = {
        name: text.rstrip() + "\n\n" for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return summary.rstrip() + "\n\n", sections


def _entries(sections: dict[str, str]) -> dict[str, str]:
    """The text of every argument by its name."""
    parts = re.split(r"^ {4}(\*{0,2}\w+): ", sections.get("Args", ""), flags=re.M)
    return {name: text.rstrip() + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}
