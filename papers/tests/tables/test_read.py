"""Tables from YAML: what a file may say, and how what is wrong in it is told."""

import pytest

from anharmonic_papers.tables.read import UNSEARCHED, read_head, read_table

HEAD = "title: Tiny\nsource: here\nmetric: mse\n"
DEFAULTS = """
defaults:
  settings: ours
  seeds: [0, 1]
  run: {task: adding, task_options: {length: 10}, epochs: 2, lr: 1e-2, clip_norm: 1.0}
  search: {lr: {low: 1e-3, high: 1e-1, log: true}}
"""


@pytest.fixture
def read(tmp_path):
    """Reads a table from the text of its file."""

    def read(text, name="tiny"):
        (tmp_path / f"{name}.yaml").write_text(text)
        read_table.cache_clear()
        return read_table(tmp_path / f"{name}.yaml")

    return read


def test_defaults_are_those_of_rows_with_a_run(read):
    rows = """
rows:
- {label: printed only, reported: "1.0"}
- {label: LEM, run: {model: LEM, task_options: {valid_size: 8}}}
- {label: other, seeds: [3], run: {model: LEM, lr: 0.5, clip_norm: null}, search: null}
"""
    printed, first, other = read(HEAD + DEFAULTS + rows).rows
    assert (printed.run, printed.seeds, printed.settings) == (None, (0,), "paper")
    assert first.run.task_options == {"length": 10, "valid_size": 8}
    assert (first.run.lr, first.run.clip_norm, first.seeds) == (0.01, 1.0, (0, 1))
    assert first.settings == "ours" and first.search["lr"].log and first.note == UNSEARCHED
    assert (other.run.lr, other.run.clip_norm, other.seeds) == (0.5, None, (3,))
    assert other.search == {} and other.note == ""


def test_a_row_runs_what_a_search_chose(read):
    rows = """
rows:
- label: LEM
  run: {model: LEM}
  chosen: {trials: 3, seeds: [0, 1], valid: 0.2, values: {lr: 0.05}}
- {label: LSTM, run: {model: LSTM}, chosen: {like: lem}, note: A note.}
- {label: GRU, run: {model: GRU}, chosen: {values: {lr: 0.07}}, note: Chosen by hand.}
"""
    first, second, third = read(HEAD + DEFAULTS + rows).rows
    assert (third.run.lr, third.note) == (0.07, "Chosen by hand.")
    assert first.run.lr == second.run.lr == 0.05
    assert "3 trials for this row" in first.note and "with seeds 0 and 1" in first.note
    assert "for lem chose" in second.note and second.note.endswith("A note.")


def test_a_row_may_be_like_one_of_another_table(read):
    read(HEAD + DEFAULTS + "rows: [{label: LEM, run: {model: LEM}, note: A note.}]", "other")
    rows = 'rows: [{label: fast, reported: "2", like: other/lem, run: {lr: 0.5}}]'
    (row,) = read(HEAD + rows).rows
    assert (row.run.model, row.run.lr, row.run.epochs) == ("LEM", 0.5, 2)
    assert (row.seeds, row.settings, row.search) == ((0, 1), "ours", {})
    assert row.note.endswith("A note.") and row.reported == "2"


def test_parts_are_the_groups_of_the_rows(read):
    part = "- {{id: {0}, title: {0}, source: s, metric: {0}, rows: [{1}]}}\n"
    parts = part.format("a", "{label: x}") + part.format("b", "{label: x}, {label: y}")
    table = read("title: Both\nsource: here\nparts:\n" + parts)
    assert [row.id for row in table.rows] == ["a-x", "b-x", "b-y"]
    assert table.id == "tiny" and [table.part(name).metric for name in "ab"] == ["a", "b"]


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
