import pytest

from harness import speed_report
from harness.cases import CASES
from harness.speed import measurement

LSTM, OURS = "nn.LSTM", "anharmonic"


@pytest.fixture
def result():
    """Times made up: UnICORNN reaches its target on one thread and misses it on two."""
    times = {LSTM: 1.0, OURS: 0.04, "nn.GRU": 0.5}
    left_out = {"reference": "about 9 s", "torchrecurrent": "not installed"}
    return {
        "machine": {"processor": "A Processor", "cores": 2, "instruction_set": "avx2"},
        "versions": dict.fromkeys(("anharmonic", "torch", "torchrecurrent", "python"), "1.0"),
        "settings": {"repeats": 7, "rounds": 3, "dtype": "float32"},
        "measurements": [
            measurement(CASES[0], "training", 1, times, left_out),
            measurement(CASES[0], "training", 2, {**times, OURS: 0.1}, left_out),
            measurement(CASES[0], "inference", 1, times, left_out),
            measurement(CASES[-1], "streaming", 1, {LSTM: 6e-5, OURS: 2e-5}, {}),
        ],
    }


def test_rows(result):
    heads, row, _ = speed_report.rows(result, "training")
    assert dict(zip(heads, row, strict=True)) == {
        "case": "UnICORNN, B 32, H 128, T 1,000",
        "threads": "1",
        LSTM: "1.00 s",
        OURS: "40.0 ms",
        "ratio": "25.00",
        "target": "20",
        "stretch": "40",
        "nn.GRU: ratio": "2",
        "reference: ratio": "about 9 s",
        "torchrecurrent: ratio": "not installed",
    }
    assert "target" not in speed_report.rows(result, "inference")[0]


def test_the_summary_has_a_row_for_each_case_with_a_target(result):
    lines = speed_report.summary(result).splitlines()
    assert lines[0] == "| case | 1 thread | 2 threads |"
    assert lines[2:4] == [
        "| UnICORNN, B 32, H 128, T 1,000 | 25.0 | 10.0 |",
        "| LEM, B 1, H 128, one step | 3.0 | – |",
    ]
    assert "A Processor, 2 cores, avx2" in lines[-1] and "best of 3 medians of 7" in lines[-1]


def test_all_tables(result):
    text = speed_report.markdown(result)
    for part in ("A Processor", "### Training step", "Inference", "Streaming", "25.00", "60.0 µs"):
        assert part in text


def test_missed_targets_are_said(result):
    assert speed_report.missed(result) == [
        "below target: UnICORNN, B 32, H 128, T 1,000, 2 threads: 10.00 of 20"
    ]


def test_fill_replaces_the_block_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- bench -->\nold\n<!-- /bench -->\nb <!-- limits --><!-- /limits -->\n")
    for text in ("new \\1", "newer"):
        speed_report.fill(page, "bench", text)
        wanted = f"a\n<!-- bench -->\n{text}\n<!-- /bench -->\nb <!-- limits --><!-- /limits -->\n"
        assert page.read_text() == wanted


@pytest.mark.parametrize("text", ["none", "<!-- b --><!-- /b --> <!-- b --><!-- /b -->"])
def test_fill_wants_one_block(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=r"must have one block <!-- b --> .*; got [02] of them"):
        speed_report.fill(page, "b", "new")
    assert page.read_text() == text
