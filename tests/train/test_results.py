import json
import os
from pathlib import Path

import pytest

from anharmonic.train import Result, Run
from anharmonic.train.results import append, read_results


@pytest.fixture
def result(make_result):
    return lambda seed=0, **changes: make_result(Run("adding", "LEM", seed=seed), **changes)


def test_round_trip(tmp_path, result):
    path = tmp_path / "new" / "results.jsonl"
    lines = [result(seed, commit="abc") for seed in range(3)]
    for line in lines:
        append(path, line)
    append(path, result(3, hash="0123456789ab"))
    assert read_results(path) == [*lines, result(3)]  # the hash is the run's, whatever a line says
    assert path.read_text().count("\n") == 4 and '"hash":"0123456789ab"' in path.read_text()
    assert Result.from_json(lines[0].to_json(indent=2)) == lines[0]
    with pytest.raises(ValueError, match="Out of range float"):
        result(test=float("nan")).to_json()


def test_a_cut_line_is_reported_and_kept_apart_and_one_without_its_end_is_read(tmp_path, result):
    path = tmp_path / "results.jsonl"
    append(path, result(0))
    path.write_bytes(path.read_bytes()[:-1])
    assert read_results(path) == [result(0)]
    append(path, result(1, hardware="Prozessor µ"))
    path.write_bytes(path.read_bytes()[:-40])
    append(path, result(2))
    with pytest.warns(UserWarning, match=r"results.jsonl, line 2 is skipped"):
        assert read_results(path) == [result(0), result(2)]
    assert path.read_bytes().count(b"\n") == 3


LINES = {
    "CRLF": b"garbage\r\n",
    "no object": b"null\n[]\n",
    "other keys": b'{"a": 1}\n',
    "wrong types": b'{"run": 3, "hash": 4}\n',
    "nested": b"[" * 100_000 + b"\n",
    "5000 digits": b'{"test": ' + b"9" * 5000 + b"}\n",
    "blank": b"\n\n\n",
    "NUL": b"\0" * 4096,
    "half a character": "é".encode()[:1],
}


@pytest.mark.filterwarnings("ignore:.*is skipped:UserWarning")
@pytest.mark.parametrize("damage", LINES.values(), ids=LINES)
def test_damaged_lines_are_skipped_and_kept(tmp_path, result, damage):
    path = tmp_path / "results.jsonl"
    append(path, result(0))
    before = path.read_bytes() + damage
    path.write_bytes(before)
    append(path, result(1))
    assert path.read_bytes().startswith(before) and read_results(path) == [result(0), result(1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": "1"}, r"test of a result must be float; got '1' \(str\)"),
        ({"test": True}, "test of a result must be float"),
        ({"curve": {"epoch": [1, "2"]}}, "curve of a result must be"),
        ({"curve": []}, "curve of a result must be"),
        ({"curve": {"valid": [1.0]}}, "curve of a result must be .epoch"),
        ({"curve": {"epoch": [1.0, 2.0], "valid": [1.0]}}, "as many values of everything else"),
        ({"curve": {"epoch": [1.0], "valid": [float("inf")]}}, "Infinity is not valid JSON"),
        ({"versions": {"torch": 2}}, "versions of a result must be"),
        ({"stopped": "x"}, "stopped of a result must be"),
        ({"commit": 3}, "commit of a result must be"),
        ({"epochs_run": 1.5}, "epochs_run of a result must be int"),
        ({"run": 3}, "a run's JSON must be a JSON object; got int; put it in braces"),
        ({"zzz": 1}, r"unknown key 'zzz' \(known: run, hash"),
        ({"test": ..., "tset": 1.0}, "no key 'test'; unknown key 'tset' .did you mean 'test'"),
    ],
)
def test_errors_name_the_key(change, message, result):
    fields = json.loads(result().to_json()) | change
    text = json.dumps({name: value for name, value in fields.items() if value is not ...})
    with pytest.raises(ValueError, match=message):
        Result.from_json(text)


def test_only_files_hold_results(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, Path("/dev/full"), tmp_path / "pipe"):
        with pytest.raises(ValueError, match="--results must be a file of results"):
            read_results(path)
