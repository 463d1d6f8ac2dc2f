import json

import small_batches


def test_quick_run_writes_everything(tmp_path, capsys, in_this_process):
    page, file = tmp_path / "page.md", tmp_path / "all.json"
    page.write_text("<!-- small-batches -->\n<!-- /small-batches -->\n")
    options = f"--quick --threads 1 --hidden 8 --steps 100 1 --json {file} --readme {page}"
    assert small_batches.main(options.split()) == 0
    measurements = json.loads(file.read_text())["measurements"]
    assert [(one["batch"], one["steps"]) for one in measurements] == [(2, 20), (1, 1)]
    for one in measurements:
        assert set(one["seconds"]) == {"nn.LSTM", *small_batches.MODELS}
    text = page.read_text()
    assert (
        "| LEM, H 8, T 20, 1 thread |" in text and "| UnICORNN, H 8, one step, 1 thread |" in text
    )
    again = tmp_path / "again.json"
    assert small_batches.main(["--from-json", str(file), "--json", str(again)]) == 0
    assert again.read_text() == file.read_text()
