import recurrence


def test_a_quick_run_prints_a_row(capsys):
    assert recurrence.main(["--quick", "--rounds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[2].startswith("| 2, 4, 20 |")
