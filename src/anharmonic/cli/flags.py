"""Commands as functions: tyro reads their flags from types, defaults and docstrings.

(It is imported when a command wants it: `anharmonic list` does without.)
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

T = TypeVar("T")
AUTO = "auto"
"""The value of a flag that was left open."""


def run_command(
    command: Callable[..., T], words: Sequence[str], prog: str, compact: bool = False
) -> T:
    """Calls a function with the arguments that were typed.

    Args:
        command: The function; fields of its dataclasses are flags without a prefix.
        words: What was typed.
        prog: How the command is called, for the help.
        compact: Whether the help is flags only.

    Returns:
        What the function returns.

    Raises:
        SystemExit: After the help (0), or if a flag or value is wrong (2), which tyro then shows.
    """
    import tyro
    from tyro import conf

    return tyro.cli(
        command,
        args=list(words),
        prog=prog,
        config=(
            conf.OmitArgPrefixes,
            conf.SuppressFixed,
            conf.PositionalMetavarFromFieldName,
        ),
        compact_help=compact,
    )


def fields_of(kind: type, **fixed: Any) -> Any:
    """A dataclass as flags, for ``Annotated``; some fields have a value and are no flags.

    Args:
        kind: The dataclass.
        fixed: The values of those fields.
    """
    from tyro import conf

    no_flag: Any = conf.Fixed
    hints = typing.get_type_hints(kind)
    fields: list[Any] = [
        (name, no_flag[hints[name]], _with_default(value)) for name, value in fixed.items()
    ]
    made = dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, eq=False)
    made.__doc__ = kind.__doc__
    return conf.arg(constructor=made)


def open_fields_of(kind: type, **fixed: Any) -> Any:
    """A dataclass as flags, for ``Annotated``: a dictionary of what was typed.

    Fields without a flag are "auto": left open, to be filled later.

    Args:
        kind: The dataclass; nothing of it is checked here.
        fixed: Fields that are no flags.
    """
    from tyro import conf

    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in fixed]
    bases = {"__post_init__": lambda self: None, "__annotations__": {}}
    fields: list[Any] = [(name, _or_auto(hints[name]), _with_default(AUTO)) for name in names]
    no_flag: Any = conf.Fixed
    fields += [(name, no_flag[Any], _with_default(value)) for name, value in fixed.items()]
    made = dataclasses.make_dataclass(
        kind.__name__, fields, bases=(kind,), namespace=bases, frozen=True, eq=False
    )
    made.__doc__ = kind.__doc__
    return conf.arg(constructor=made)


def typed(fields: Any, names: Iterable[str]) -> dict[str, Any]:
    """What was typed of the flags of `open_fields_of`.

    Args:
        fields: What they gave.
        names: The fields to look at.
    """
    return {name: value for name in names if (value := getattr(fields, name)) != AUTO}


def options_of(
    kind: type,
    parameters: Mapping[str, inspect.Parameter],
    defaults: Mapping[str, Any],
    left_open: Collection[str] = (),
) -> Any:
    """Parameters of a constructor as flags, for ``Annotated``: a dictionary of what differs.

    Args:
        kind: The class; its docstring is in Google form.
        parameters: The parameters that are flags.
        defaults: Their defaults.
        left_open: Parameters whose flags are "auto" unless typed.
    """
    from tyro import conf

    from anharmonic.nn.arguments import argument_descriptions

    own = {name: parameter.default for name, parameter in parameters.items()}
    defaults = {**own, **defaults, **dict.fromkeys(left_open, AUTO)}

    def options(**values: Any) -> dict[str, Any]:
        return {name: v for name, v in values.items() if v != defaults[name]}

    given = [
        parameter.replace(
            kind=parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=_or_auto(parameter.annotation)
            if name in left_open
            else parameter.annotation,
        )
        for name, parameter in parameters.items()
    ]
    text = inspect.getdoc(kind) or ""
    options.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
    options.__annotations__ = {parameter.name: parameter.annotation for parameter in given}
    described = argument_descriptions(kind)
    if (fields := getattr(kind, "options_class", None)) is not None:
        described |= argument_descriptions(fields)
    entries = "".join(
        f"    {name}: {described[name]}\n" for name in parameters if name in described
    )
    options.__doc__ = f"{text.partition(chr(10))[0]}\n\nArgs:\n{entries}"
    return conf.arg(constructor=options)


def _or_auto(hint: Any) -> Any:
    return hint if AUTO in get_args(hint) else hint | Literal["auto"]


def _with_default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value)
