"""The summary judges rows as stated, names every experiment, and stands in the README."""

import dataclasses
import os
import re
from pathlib import Path

import pytest
import yaml

from anharmonic.train import read_results
from anharmonic_papers.experiments import experiments
from anharmonic_papers.figures import base as drawn
from anharmonic_papers.figures.registry import figure, list_figures
from anharmonic_papers.report import summary as summaries
from anharmonic_papers.report.summary import STATES, put_into, short, summary
from anharmonic_papers.tables import list_tables, table

ROOT = Path(__file__).parents[3]


@pytest.fixture
def results_of(make_result):
    """Results of rows of a table, by the test values of their seeds in the table's unit."""

    def made(name, **values):
        found, scale = table(name), table(name).scale
        out = []
        for row, tests in values.items():
            run = found.row(row.replace("_", "-")).run
            for seed, test in enumerate(tests):
                one = dataclasses.replace(run, seed=seed)
                out.append(make_result(one, test=test / scale))
        return out

    return made


def entry(results, name, figures=()):
    return {e.experiment.id: e for e in summary(results, figures)}[name]


def test_names_are_those_of_the_papers():
    folder = os.environ.get("ANHARMONIC_PAPERS")
    if not folder:
        pytest.skip("ANHARMONIC_PAPERS does not name the folder of the papers' numbers")
    entries = yaml.safe_load((Path(folder) / "experiments.yaml").read_text())["experiments"]
    assert [one.id for one in experiments()] == [one["id"] for one in entries]


def test_every_experiment_is_a_table_or_a_figure():
    known = {*list_tables(), *list_figures()}
    assert {one.id for one in experiments()} <= known
    # What must be downloaded is said where the table says so.
    said = {one.id for one in experiments() if one.data}
    assert said >= {name for name in list_tables() if table(name).data}


def test_matched_is_within_rounding_or_a_deviation(results_of):
    name = "lem-fitzhugh-nagumo"  # lower is better: coRNN 0.4, LEM 0.2
    assert entry(results_of(name, cornn=[0.44], lem=[0.1]), name).state == "matched"
    found = entry(results_of(name, cornn=[0.5], lem=[0.1]), name)
    gap = "coRNN: 0.4 → 0.500 x 1e-2, 1 of 3 seeds"
    assert (found.state, found.matched, found.gap) == ("below", "1 of 2", gap)
    assert entry(results_of(name, cornn=[0.5]), name).matched == "0 of 1, 1 more without a full run"
    assert entry(results_of(name, cornn=[0.8, 0.8, 0.8]), name).gap == "coRNN: 0.4 → 0.800 x 1e-2"
    # Three seeds 0.3 apart: 0.5 is within a deviation of 0.4.
    assert entry(results_of(name, cornn=[0.2, 0.5, 0.8], lem=[0.1]), name).state == "matched"
    # The best of a row's variants counts; rivals do not.
    variants = results_of(name, lem=[0.9], lem_dt_2=[0.2], lstm=[9.0])
    best = entry(variants, name)
    assert best.state == "matched"
    assert best.why.startswith("with the paper's settings; with the printed dt = 1 our errors are")


def test_few_rows_of_a_table_do_not_match_it(make_result):
    name = "cornn-retraining-statistics"
    run = table(name).row("imdb-cornn-short-half-of-the-words-dropped").run
    found = entry([make_result(run, test=87.0)], name)
    assert (found.state, found.matched) == ("smaller budget", "1 of 1, 3 more without a full run")


def test_higher_is_better_where_the_table_says_so(results_of):
    name = "cornn-smnist"
    found = entry(results_of(name, cornn_128=[99.0]), name)
    assert (found.state, found.gap) == ("below", "coRNN 128: 99.3 → 99.00 %")
    assert entry(results_of(name, cornn_128=[99.5]), name).state == "matched"


def test_a_best_of_several_trainings_is_compared_with_their_mean(results_of):
    name = "cornn-psmnist"  # 97.3 is the best, 96.10 ± 1.20 the mean
    assert entry(results_of(name, cornn_256=[94.9]), name).state == "matched"
    found = entry(results_of(name, cornn_256=[94.8]), name)
    assert (found.state, found.gap) == ("below", "coRNN 256: 96.10 → 94.80 %")


def test_worse_after_a_fraction_of_the_papers_epochs_is_a_smaller_budget(results_of):
    name = "lem-ptb-char"  # the paper's row has 760 epochs, the small one 6
    found = entry(results_of(name, lem_small=[1.6]), name)
    assert (found.state, found.matched) == ("smaller budget", "0 of 1, 1 more without a full run")
    assert entry(results_of(name, lem=[1.6]), name).state == "below"
    assert entry(results_of(name, lem_small=[1.2]), name).state == "matched"


def test_what_has_no_number_or_no_result(results_of, make_result):
    name = "cornn-adding"
    assert entry(results_of(name, t_500_cornn=[0.1]), name).state == "measured"
    run = dataclasses.replace(table(name).row("t-500-cornn").run, epochs=1, reduced=True)
    assert entry([make_result(run)], name).state == "measured"
    assert entry([], name).state == "not run"
    assert entry([], "g2-mad", ["g2-mad"]).state == "measured"
    assert entry([], "lem-google12").state == "no data"
    assert entry([], "lem-google12").why == "needs Google Speech Commands V2"


def test_a_table_without_our_models_is_not_measured(results_of):
    name = "lem-fitzhugh-nagumo"  # the paper prints numbers, and only its rival ran
    assert entry(results_of(name, lstm=[1.2]), name).state == "not run"


def test_rows_with_numbers_of_their_own_are_judged_by_themselves(results_of):
    name = "lem-eigenworms-chrono"  # LEM 57.9, and with chrono initialisation 88.2
    found = entry(results_of(name, lem_dt_1=[57.9], lem_dt_1_chrono=[60.0]), name)
    assert (found.state, found.matched) == ("below", "1 of 2, 1 more without a full run")
    assert found.gap.startswith("LEM dt=1: 88.2 → 60.0")


def test_printed_digits():
    assert summaries._last_digit("2.0e-2") == pytest.approx(1e-3)
    assert summaries._last_digit("85") == 1


def test_the_page_and_the_short_form_name_all(results_of):
    entries = summary(results_of("cornn-smnist", cornn_128=[99.0]), [])
    page, few, said = summaries.markdown(entries), short(entries), summaries.terminal(entries)
    for one in experiments():
        assert one.id in page and one.id in said
    assert "coRNN 128: 99.3 → 99.00 %" in page
    assert "(0 of 1 rows, 1 more without a full run; coRNN 128: 99.3 → 99.00 %)" in " ".join(
        said.split()
    )
    counts = re.findall(rf"(\d+) (?:{'|'.join(STATES)})\*\*: ", few)
    (measured,) = re.findall(r"The papers report 70 experiments. For (\d+) of these", few)
    assert sum(int(n) for n in counts) + int(measured) == 70
    assert len(few.splitlines()) <= 10


def test_marks_are_needed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- summary -->\nold\n<!-- /summary -->\nb\n")
    put_into(page, "new\n")
    assert page.read_text() == "a\n<!-- summary -->\nnew\n<!-- /summary -->\nb\n"
    page.write_text("a\n")
    with pytest.raises(ValueError, match=r"page\.md must be .*<!-- summary -->.*add them"):
        put_into(page, "new\n")


def test_pages_have_the_summary_of_the_results():
    folder = ROOT / "papers" / "results"
    results = [r for path in sorted(folder.glob("*.jsonl")) for r in read_results(path)]
    figures = [name for name in list_figures() if drawn.path_of(figure(name), folder).exists()]
    entries = summary(results, figures)
    advice = "run `anharmonic report --into README.md --markdown papers/docs/results.md`"
    assert short(entries) in (ROOT / "README.md").read_text("utf-8"), advice
    page = (ROOT / "papers" / "docs" / "results.md").read_text("utf-8")
    assert summaries.markdown(entries) in re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", page), advice
