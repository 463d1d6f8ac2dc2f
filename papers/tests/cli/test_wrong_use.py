"""What the commands refuse: one line, exit code 2, and nothing is run or written."""

import pytest


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("table", "must be names of tables; got 'nothing'; known are demo"),
        ("table --dry-run", "must be names of tables"),
        ("table lem-smist", "did you mean 'lem-smnist'"),
        ("table g2-mad demo", "given tables; got 'g2-mad'; run `anharmonic figure g2-mad`."),
        ("table demo --rows nothing", "row must be one of"),
        ("table demo --epochs 0", "epochs must be an int >= 1"),
        ("table demo --devices 0", "devices must be an int >= 1"),
        (
            "table cornn-smnist --rows urnn",
            "a row of cornn-smnist that can run must be one of lstm",
        ),
        ("table lem-fitzhugh-nagumo --length 5", "leave out --length"),
        ("table demo --rows", "--rows must be given with values; got 'nothing'"),
        ("table demo --dry-run --seeds", "--seeds must be given with values"),
        ("table g2-heterophilic --dry-run --seeds 12", "split must be in [0, 9]; got 12"),
        ("table demo --trials 5 --dry-run", "got 'no --search'; add --search"),
        ("table tyni --search", "table must be one of"),
        (
            "table lem-psmnist --search --rows lem",
            "a row of lem-psmnist with ranges must be one of",
        ),
        ("table cornn-adding --search --dry-run", "leave out --dry-run."),
        ("table cornn-adding --search --jobs 2", "leave out --jobs."),
        ("table cornn-adding --search --results mine.jsonl", "leave out --results."),
        ("report lem-smist", "did you mean 'lem-smnist'"),
        ("report lem", "a whole name; got 'lem'; choose among lem-adding, "),
        ("report --html pages", "--html must be a file with an ending; got 'pages'"),
        ("report --markdown pages", "--markdown must be a file with an ending; got 'pages'"),
        ("report demo g2-mad --html page.html", "got 'g2-mad'; run `anharmonic figure g2-mad`"),
        ("report demo --summary", "must be that of all experiments; got 'demo'"),
        ("report demo --into page.md", "must be that of all experiments; got 'demo'"),
        ("figure", "must be names of figures"),
        ("figure g2-mud", "did you mean 'g2-mad'?"),
        ("figure demo", "no table; got 'demo'; run `anharmonic table demo`."),
        ("figure g2-mad --results file.json", "file.json must be"),
        ("theory graphcon-enrgy", "did you mean 'graphcon-energy'?"),
        ("theory --chapter GraphCom", "did you mean 'GraphCON'?"),
        ("theory g2-poincare --chapter LEM", "--chapter must be that of g2-poincare; got 'LEM'"),
        ("theory g2-poincare --markdown page.md", "--markdown must be alone"),
        ("theory --chapter LEM --markdown page.md", "--markdown must be alone"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(cli, tmp_path, words, text):
    (tmp_path / "file.json").write_text("{}")
    code, out, err = cli(*words.split())
    assert code == 2 and text in err and not out and len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]
