"""Every row of every table is the same runs as before, and every result line keeps its name."""

import dataclasses
import json

import pytest
from pinned import RESULTS, Run, read_lines


def whole_runs(line):
    """The JSON of the runs of a row, and their hashes."""
    for seed, name in line["hashes"]:
        options = line["run"]["task_options"]
        if line["split"]:
            options = {**options, line["split"]: seed}
        yield {**line["run"], "seed": seed, "task_options": options}, name


def written_then(run, fields):
    """The JSON of a run without the fields that were added since, which have their defaults."""
    added = {f.name: f.default for f in dataclasses.fields(Run) if f.name not in fields}
    assert {name: getattr(run, name) for name in added} == added
    return {k: v for k, v in json.loads(run.to_json()).items() if k not in added}


ROWS = read_lines("tables.jsonl")
FIELDS = ROWS[0]["run"].keys()
pytestmark = pytest.mark.papers  # the tables, and most models and tasks of the runs, are theirs


@pytest.mark.parametrize("name", sorted({line["table"] for line in ROWS}))
def test_rows_are_the_same_runs(name):
    from anharmonic_papers.tables import table

    expected = {line["row"]: list(whole_runs(line)) for line in ROWS if line["table"] == name}
    # Rows may be added, with fields that came later; those that were there stay the same runs.
    found = {
        row.id: [(written_then(run, FIELDS), run.hash) for run in row.runs()]
        for row in table(name).rows
        if row.id in expected and row.run is not None
    }
    assert found == expected


@pytest.mark.parametrize(
    "line",
    read_lines("defaults.jsonl"),
    ids=lambda line: f"{line['run']['task']}-{line['run']['model']}",
)
def test_options_left_out_are_those_written_out(line):
    run = Run(**line["run"])
    assert written_then(run, line["run"]) == line["run"]
    required = {"hidden_size": run.model_options["hidden_size"]}
    digest = {"sha256": "0" * 64} if run.task == "file" else {}
    bare = Run(run.task, run.model, task_options=digest, model_options=required)
    assert line["hash"] == run.hash == bare.hash == Run(run.task, run.model, digest).hash


def test_result_lines_keep_their_names():
    checked = 0
    for path in sorted(RESULTS.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            result = json.loads(line)
            assert Run.from_json(json.dumps(result["run"])).hash == result["hash"], path.name
            checked += 1
    assert checked >= 876
