import pytest

import bfloat16
from anharmonic.ops import library


@pytest.mark.slow
@pytest.mark.skipif(not library.has_bfloat16(), reason="no products in bfloat16 here")
def test_a_quick_run_measures_and_shows_all_parts(in_this_process, quick, environment, monkeypatch):
    sets = bfloat16.data_sets()
    small = {"digits": tuple(part[:40] for part in sets["digits"])}
    monkeypatch.setattr(bfloat16, "data_sets", lambda: small)
    found = [
        {"case": name, **measure(), **environment}
        for name, measure in bfloat16.cases(quick).items()
    ]
    for one in found:
        if one["case"].startswith("errors"):
            assert max(one["float32"]) < 1e-5 < max(one["bfloat16"]) < 0.1
    text = bfloat16.tables(found)["bfloat16"]
    assert "| CoRNN, bfloat16 |" in text and "| digits, LEM |" in text
