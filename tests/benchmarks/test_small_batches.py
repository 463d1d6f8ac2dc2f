import pytest

import small_batches


@pytest.mark.slow
def test_a_quick_run_measures_and_shows_each_size(in_this_process, quick, environment):
    cases = small_batches.cases(quick)
    names = ["H 32, T 100, 1 thread, B 2", "H 32, one step, 1 thread, B 1"]
    found = [{"case": name, **cases[name](), **environment} for name in names]
    for one in found:
        assert set(one["seconds"]) == {"nn.LSTM", *small_batches.MODELS}
    text = small_batches.tables(found)["small-batches"]
    assert "| LEM, H 32, T 100, 1 thread |  | " in text
    assert "| UnICORNN, H 32, one step, 1 thread |" in text
