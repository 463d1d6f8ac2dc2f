"""The site: `make docs` builds it from this repository alone, without a network."""

import os

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import anharmonic

project = "anharmonic"
author = "The anharmonic authors"
copyright = author  # the theme prints it
version = release = anharmonic.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
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
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
]
exclude_patterns = [".*", "build", "src", "tests", "examples", "docs/_build", "papers/src"]
html_extra_path = ["root"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
# What scikit-learn adds to every estimator.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_score_request, set_predict_request, "
    "set_partial_fit_request, get_metadata_routing"
}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_rtype = False
suppress_warnings = ["myst.header"]  # benchmarks/cpu.md begins below its README
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
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_theme_options = {
    "navbar_align": "left",
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


def setup(app):
    """Formulas become MathML, which browsers show without a script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
