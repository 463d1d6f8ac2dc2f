"""Reading tables from YAML: the errors for faulty files. (tests/pins covers our own tables.)"""

import pytest

from anharmonic_papers.tables.read import read_head, read_table

HEAD = "title: Tiny\nsource: here\nmetric: mse\n"


@pytest.fixture
def read(tmp_path):
    """Reads a table from the text of its file."""

    def read(text):
        (tmp_path / "tiny.yaml").write_text(text)
        read_table.cache_clear()
        return read_table(tmp_path / "tiny.yaml")

    return read


def test_the_head_is_read_without_the_rows(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(HEAD + "rows: [}")
    assert read_head(path)["title"] == "Tiny"


RUN = "run: {task: adding, model: LEM}"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("label: L, reported: 1.50", r"reported must be text; got 1.5; write reported: \"1.5\""),
        ("label: L, group: 8", "group must be text; got 8"),
        ("label: L, reprted: x", "'reprted'; did you mean 'reported'"),
        ("reported: x", "label must be given"),
        ("label: L, settings: papers", "settings must be one of .* did you mean 'paper'"),
        ("label: L, seeds: 3", "seeds must be a list; got 3"),
        ("label: L, run: LEM", "run must be a mapping of names to values; got 'LEM'"),
        ("label: L, run: {task: adding, modl: LEM}", "'modl'; did you mean 'model'"),
        ("label: L, run: {task: adding, model: LEN}", "'LEN'; did you mean 'LEM'"),
        (f"label: L, {RUN}, search: {{lr: {{hihg: 1}}}}", "'hihg'; did you mean 'high'"),
        (f"label: L, {RUN}, chosen: {{like: m}}", "chosen must be left out"),
        (
            f"label: L, {RUN}, search: {{lr: {{high: 1}}}}, chosen: {{trials: 1, seeds: [0], "
            "values: {dt: 1}}",
            r"values must be one for each of \['lr'\]; got \['dt'\]",
        ),
        (f"label: L, {RUN}, search: {{lr: {{high: 1}}}}, chosen: {{like: l}}", "l.*; name another"),
        ("label: L, like: tiny/l", "like must be TABLE/ROW of another table"),
        ("label: L, like: nowhere/l", "like must be TABLE/ROW of another table"),
    ],
)
def test_what_is_wrong_in_a_row_names_file_and_row(read, row, message):
    with pytest.raises((ValueError, TypeError), match=rf"^tiny\.yaml: row 2( \(L\))?: .*{message}"):
        read(f"{HEAD}rows:\n- {{label: first}}\n- {{{row}}}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "the file must be YAML; got .* in line 2"),
        (HEAD + "title: again", r"a key must be given once; got \['title'\]"),
        ("- a list", "the file must be a mapping"),
        (HEAD + "directoin: lower", "'directoin'; did you mean 'direction'"),
        (HEAD + "direction: least", "direction must be one of 'higher', 'lower'"),
        (HEAD + "rows: [{label: L}, {label: l}]", "label must be its group's only one; got 'l'"),
        (HEAD + "rows: [L]", "the row must be a mapping"),
        ("source: here", "missing .* 'title'"),
    ],
)
def test_what_is_wrong_in_a_file_names_the_file(read, text, message):
    with pytest.raises((ValueError, TypeError), match=rf"^tiny\.yaml: .*{message}"):
        read(text)
