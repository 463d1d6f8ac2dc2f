"""The site: `make docs` builds it from this repository alone, without a network."""

import os
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import anharmonic

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "anharmonic"
author = "The anharmonic authors"
copyright = author  # the theme prints it
version = release = anharmonic.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "objects",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

# Pages lie where the repository has them, so that their links lead somewhere there too.
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "papers/docs/**",
    "papers/README.md",
    "benchmarks/*.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
]
exclude_patterns = [".*", "build", "src", "tests", "examples", "docs/_build", "papers/src"]
html_extra_path = ["root"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = False
default_role = "py:obj"  # `name` in a docstring links to the object
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_rtype = False
suppress_warnings = ["myst.header"]  # benchmarks/cpu.md begins below its README
html_context = {"default_mode": "auto"}
napoleon_use_ivar = True
napoleon_custom_sections = [("Keys", "params_style")]
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples/gallery"],
    "gallery_dirs": ["docs/gallery"],
    "filename_pattern": r"\.py",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "anharmonic"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
highlight_language = "none"  # a block without a language is for the shell, or output
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {
    "navbar_align": "left",
    "logo": {"text": "anharmonic", "alt_text": ""},
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Where versions are published side by side (.github/workflows/docs.yml), one switches between them.
if site := os.environ.get("ANHARMONIC_SITE"):
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/versions.json", "version_match": version},
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher"],
    }

# make links: what answers robots with an error is no broken link.
linkcheck_timeout = 20
linkcheck_anchors = False

html_math_renderer = "mathml"


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise SkipNode


def _block(writer, node):
    text = node.astext()
    if "&" in text:
        text = rf"\begin{{align*}}{text}\end{{align*}}"
    writer.body.append(f'<div class="formula" tabindex="0">{convert(text, display="block")}</div>')
    raise SkipNode


# Pages that answer no question of a user; the rest of the site is searched without them.
UNSEARCHED = ("papers/docs/", "CHANGELOG", "CONTRIBUTING", "SECURITY", "benchmarks/cpu")


def _unsearched(app, env):
    for name in env.found_docs:
        if name.startswith(UNSEARCHED):
            env.metadata[name]["nosearch"] = True


def setup(app):
    """Formulas become MathML, which browsers show without a script."""
    app.connect("env-updated", _unsearched)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
