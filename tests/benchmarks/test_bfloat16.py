import json

import pytest

import bfloat16
from anharmonic.ops import library


@pytest.mark.skipif(not library.has_bfloat16(), reason="no products in bfloat16 here")
def test_quick_run_writes_everything(tmp_path, capsys, in_this_process, monkeypatch):
    sets = bfloat16.data_sets()
    small = {"digits": tuple(part[:40] for part in sets["digits"])}
    monkeypatch.setattr(bfloat16, "data_sets", lambda: small)
    page, file = tmp_path / "page.md", tmp_path / "all.json"
    page.write_text("<!-- bfloat16 -->\n<!-- /bfloat16 -->\n")
    words = f"--quick --threads 1 --json {file} --readme {page}"
    assert bfloat16.main(words.split()) == 0
    result = json.loads(file.read_text())
    for single, rounded in ((one["float32"], one["bfloat16"]) for one in result["errors"].values()):
        assert max(single) < 1e-5 < max(rounded) < 0.1
    text = page.read_text()
    assert "| CoRNN, bfloat16 |" in text and "| digits, LEM |" in text
    # A part that is measured again leaves the others as they are.
    assert bfloat16.main([*words.split(), "--parts", "speed"]) == 0
    assert json.loads(file.read_text())["errors"] == result["errors"]
