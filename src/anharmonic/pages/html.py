"""Self-contained pages from jinja2 templates, with figures as images."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from anharmonic.pages import plots

TEMPLATES = Path(__file__).with_name("templates")
"""Holds ``base.html.jinja``, which pages extend, and its style sheet."""


def render(template: Path, **values: Any) -> str:
    """Render a page as text.

    Values are escaped in every template except Markdown (``.md.jinja``).

    Args:
        template: A file; it may extend or include files beside it and those in ``TEMPLATES``.
        **values: The template's variables.

    Raises:
        jinja2.UndefinedError: If a variable of the template is missing.

    Example:
        >>> page = render(TEMPLATES / "base.html.jinja", title="<a> & b")
        >>> "<title>&lt;a&gt; &amp; b</title>" in page
        True
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, TEMPLATES]),
        autoescape=select_autoescape(disabled_extensions=("md.jinja",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(values)


def image(figure: Any, alt: str) -> Markup:
    """Return a figure as a self-contained element of a page.

    An image has its own names, while inline SVGs of several figures would share ids.

    Args:
        figure: A figure from ``panels``.
        alt: Text description for screen readers.
    """
    data = base64.b64encode(plots.encode(figure, "svg")).decode()
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, alt)
