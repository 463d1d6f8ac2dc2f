"""The directive ``objects``: a summary of public objects, with a page for each.

``.. objects:: anharmonic.data`` lists all public names of a package, or those in its body. Each
page is written to docs/api/objects, which git ignores, before Sphinx looks for pages.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from docutils.statemachine import StringList
from sphinx.ext.autosummary import Autosummary

DIRECTIVE = re.compile(r"^\.\. objects:: (\S+)\n((?:   \S.*\n|\n)*)", re.M)
_OF_TUPLES = ("count", "index")
# What scikit-learn adds to every estimator.
_OF_SCIKIT_LEARN = (
    *("set_fit_request", "set_score_request", "set_predict_request", "set_partial_fit_request"),
    "get_metadata_routing",
)


class Objects(Autosummary):
    """A table of summaries that links to the pages."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[Any]:
        """Returns the table and its hidden contents."""
        module = self.arguments[0]
        names = [line for line in self.content if line.strip()] or public_names(module)
        self.options |= {"nosignatures": None, "toctree": "objects"}
        self.content = StringList([f"~{module}.{name}" for name in names], source="objects")
        return super().run()


def public_names(module: str) -> list[str]:
    """Classes and functions of a package that have no place elsewhere in the reference."""
    package = importlib.import_module(module)
    above = set(importlib.import_module("anharmonic").__all__)
    if module != "anharmonic.nn":
        above |= set(importlib.import_module("anharmonic.nn").__all__)
    found = {name: getattr(package, name) for name in package.__all__ if name not in above}
    return [name for name, one in found.items() if inspect.isclass(one) or inspect.isroutine(one)]


def write_pages(source: Path) -> None:
    """Write a page for each object that is listed in docs/api.

    Args:
        source: The root of the sources.
    """
    folder = source / "docs" / "api" / "objects"
    folder.mkdir(exist_ok=True)
    listed = {}
    for page in (source / "docs" / "api").glob("*.md"):
        for module, body in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            for name in body.split() or public_names(module):
                listed[f"{module}.{name}"] = _page(module, name)
    for old in folder.glob("*.rst"):
        if old.stem not in listed:
            old.unlink()
    for name, text in listed.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _page(module: str, name: str) -> str:
    found = getattr(importlib.import_module(module), name)
    options = ""
    if inspect.isclass(found):
        kind, options = "class", "   :members:\n"
        left_out = [*getattr(found, "_fields", ()), *_OF_TUPLES, *_OF_SCIKIT_LEARN]
        left_out += [key for key, value in vars(found).items() if inspect.isclass(value)]
        options += f"   :exclude-members: {', '.join(left_out)}\n"
    else:
        kind = "function"
    return f"{name}\n{'=' * len(name)}\n\n.. auto{kind}:: {module}.{name}\n{options}"


def setup(app: Any) -> dict[str, bool]:
    """Register the directive and write the pages."""
    app.add_directive("objects", Objects)
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    return {"parallel_read_safe": True}
