"""Self-contained pages from jinja2 templates; figures stand in them as images."""

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
    """A page as text.

    Values are escaped in every template but those of Markdown (``.md.jinja``).

    Args:
        template: A file; it may extend or include those beside it and those of ``TEMPLATES``.
        **values: What the template names.

    Raises:
        jinja2.UndefinedError: If the template names a value that is not there.

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
    """A figure as an element of a page, with everything in it.

    An image has names of its own: inline, the SVG of several figures would repeat each other's ids.

    Args:
        figure: Of ``panels``.
        alt: What it shows, for those who cannot see it.
    """
    data = base64.b64encode(plots.encode(figure, "svg")).decode()
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, alt)
