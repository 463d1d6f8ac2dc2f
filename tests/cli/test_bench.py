import json

from anharmonic.diagnostics import speed


def test_quick_run_writes_everything(cli, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench -->\n<!-- /bench -->\n")
    words = "--quick --cases lem-b32 lem-streaming --threads 1 --repeats 1 --rounds 1"
    files = "--json all.json --markdown all.md --readme page.md"
    code, out, err = cli("bench", *words.split(), *files.split())
    assert code == 0
    assert "Training step" in out and "Inference" in out and "Streaming" in out
    assert err.startswith("[1/3] LEM, B 2, H 8, T 20: training, 1 thread ...")
    assert len(json.loads((tmp_path / "all.json").read_text())["measurements"]) == 3
    assert "### Training step" in (tmp_path / "all.md").read_text()
    assert "| LEM, B 2, H 8, T 20 |" in page.read_text()


def test_stored_numbers_are_not_measured_again(cli, tmp_path, monkeypatch):
    words = "--quick --cases lem-streaming --threads 1 --repeats 1 --rounds 1 --json all.json"
    _, first, _ = cli("bench", *words.split())
    monkeypatch.setattr(speed, "measure", None)
    assert cli("bench", "--from-json", "all.json") == (0, first, "")


def test_wrong_use(cli):
    code, _, err = cli("bench", "--cases", "lem-b23")
    assert code == 2 and "did you mean 'lem-b32'" in err
    assert cli("bench", "--threads", "1", "1")[0] == 2
    assert "no such" in cli("bench", "--from-json", "missing.json")[2].lower()
