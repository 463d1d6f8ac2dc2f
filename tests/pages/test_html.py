"""Pages: what comes in is escaped, nothing is left out silently, figures are images."""

import base64
import re

import pytest

from anharmonic import pages

jinja2 = pytest.importorskip("jinja2", reason="pages are made with it")


@pytest.fixture
def render(tmp_path):
    def made(text, name="a.html.jinja", **values):
        (tmp_path / name).write_text(text)
        return pages.render(tmp_path / name, **values)

    return made


def test_values_are_escaped_but_in_markdown_and_none_may_lack(render):
    assert render("{{ word }}", word="<b>") == "&lt;b&gt;"
    assert render("{{ word }}", "a.md.jinja", word="<b>") == "<b>"
    with pytest.raises(jinja2.UndefinedError, match="word"):
        render("{{ word }}", wrod="")


def test_pages_extend_the_base_and_bring_its_style(render):
    child = '{% extends "base.html.jinja" %}{% block main %}<p>{{ word }}</p>{% endblock %}'
    page = render(child, title="A & B", word="hello")
    assert "<h1>A &amp; B</h1>" in page and "<p>hello</p>" in page and "--page:" in page
    assert re.search(r"body \{[^}]*overflow-wrap: break-word;", page)  # of long names of files


def test_a_figure_is_one_image_with_its_words():
    pytest.importorskip("matplotlib", reason="pictures are drawn with it")
    figure, _ = pages.panels(1)
    start, _, rest = pages.image(figure, 'a "picture" <of>').partition("base64,")
    data, alt = rest.split('" alt="')
    assert start == '<img src="data:image/svg+xml;' and b"<svg" in base64.b64decode(data)
    assert alt == 'a &#34;picture&#34; &lt;of&gt;">'
