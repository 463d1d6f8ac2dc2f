"""The pages of results have every picture once."""

import re
from pathlib import Path

import pytest

from anharmonic_papers.report.markdown_pages import write_pages

DOCS = Path(__file__).parents[2] / "docs"


def test_a_section_has_its_picture_once(tmp_path):
    picture = tmp_path / "pictures" / "g2-mad.svg"
    picture.parent.mkdir()
    picture.write_text("<svg/>")
    write_pages(tmp_path / "results.md", [], {"g2-mad": "## Distance\n\n`g2-mad` · layer.\n"})
    page = (tmp_path / "results" / "g2.md").read_text(encoding="utf-8")
    assert page.count("](../pictures/g2-mad.svg)") == 1


@pytest.mark.parametrize(
    "page", sorted((DOCS / "results").glob("*.md")), ids=lambda page: page.name
)
def test_the_pages_have_each_picture_once(page):
    shown = re.findall(r"\]\((\S+\.svg)\)", page.read_text(encoding="utf-8"))
    assert len(shown) == len(set(shown))
